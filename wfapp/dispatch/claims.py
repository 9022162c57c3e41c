"""Leases: who is alive, and whose claims are lost.

A claim carries the boot id of the process that made it. A process is alive while its row's lease is
renewed; nothing else keeps a claim alive, no host name and no earlier row. Rows are written by
upsert, so that deleting one by hand costs nothing but a wait.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import DatabaseError, InterfaceError, close_old_connections, connections

from wfapp.models import ExecutionState, PendingActivity, WorkerProcess
from wfapp.models.columns import to_micros
from wfcore.exceptions import UnavailableError

logger = logging.getLogger(__name__)

_DATABASE_ERRORS = (DatabaseError, InterfaceError)
#: Owners that are judged in one look.
_OWNERS = 100


def new_boot_id() -> str:
    """A name that no other process has or had."""
    return str(uuid.uuid4())


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """A worker process as operators see it."""

    boot_id: str
    pid: int
    started_at: datetime
    host: str = ""
    identity: str = ""
    pool: str = ""
    build_id: str = ""
    slots: int = 1
    queues: Sequence[str] = ()
    draining: bool = False


@dataclass(kw_only=True)
class Health:
    """Since when this process has had its database without a break.

    Who could not reach the database could not renew its lease either, so nobody is judged until all
    have had a full lease to do so.
    """

    lease: timedelta
    clock: Callable[[], float] = time.monotonic
    _since: float | None = None
    _last: float = field(default=0.0)

    def reached(self) -> None:
        """The database answered."""
        now = self.clock()
        if self._since is None or now - self._last > self.lease.total_seconds():
            self._since = now  # it was away, or this process was asleep
        self._last = now

    def missed(self) -> None:
        """The database did not answer."""
        self._since = None

    @property
    def may_judge(self) -> bool:
        """Whether a full lease has passed."""
        since = self._since
        return since is not None and self.clock() - since >= self.lease.total_seconds()


class LeaseTable:
    """The rows of `WorkerProcess`; `now` is the database's clock."""

    def __init__(self, alias: str, now: Callable[[], datetime], lease: timedelta) -> None:
        self._alias = alias
        self._now = now
        self.lease = lease

    def renew(self, processes: Iterable[Process]) -> None:
        """These processes live for another lease from now."""
        expires_at = to_micros(self._now() + self.lease)
        rows = [
            WorkerProcess(
                boot_id=process.boot_id,
                expires_at=expires_at,
                started_at=to_micros(process.started_at),
                pid=process.pid,
                slots=process.slots,
                draining=process.draining,
                host=process.host[:255],
                identity=process.identity,
                pool=process.pool,
                build_id=process.build_id,
                queues="\n".join(process.queues),
            )
            for process in processes
        ]
        if rows:
            WorkerProcess.objects.using(self._alias).bulk_create(
                rows,
                update_conflicts=True,
                unique_fields=["boot_id"],
                update_fields=["expires_at", "slots", "draining", "queues"],
            )

    def forget(self, boot_ids: Sequence[str]) -> None:
        """These processes have ended."""
        WorkerProcess.objects.using(self._alias).filter(boot_id__in=boot_ids).delete()

    def expired(self) -> list[str]:
        """Processes whose lease is over, longest first."""
        now = to_micros(self._now())
        rows = WorkerProcess.objects.using(self._alias).filter(expires_at__lt=now)
        return list(rows.order_by("expires_at").values_list("boot_id", flat=True)[:_OWNERS])

    def serving(self, task_queue: str) -> bool:
        """Whether a living process takes work of this queue."""
        rows = WorkerProcess.objects.using(self._alias).filter(
            expires_at__gte=to_micros(self._now()), draining=False, queues__contains=task_queue
        )
        return any(
            task_queue in queues.split("\n") for queues in rows.values_list("queues", flat=True)
        )

    def without_row(self) -> set[str]:
        """Owners of claims who have no row. Claims are few: as many as workers have slots."""
        owners: set[str] = set()
        for model in (ExecutionState, PendingActivity):
            found = model.objects.using(self._alias).filter(owner__gt="").values_list("owner")
            owners |= {owner for (owner,) in found.distinct()}
        known = WorkerProcess.objects.using(self._alias).filter(boot_id__in=owners)
        return owners - set(known.values_list("boot_id", flat=True))


class Judge:
    """Finds dead owners. Any number of judges may sit at once."""

    def __init__(
        self,
        table: LeaseTable,
        health: Health,
        lose_claims: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._table = table
        self._health = health
        self._lose_claims = lose_claims
        self._clock = clock
        self._missing_since: dict[str, float] = {}
        self._missing_looked_at = float("-inf")

    def judge(self) -> list[str]:
        """Give the claims of dead processes up; the boot ids of these."""
        if not self._health.may_judge:
            self._missing_since.clear()
            return []
        dead = self._table.expired()
        missing = self._missing()
        for boot_id in (*dead, *missing):
            logger.warning(
                "a worker process is lost; its claims are given up",
                extra={"action": "worker_lost", "boot_id": boot_id},
            )
            self._lose_claims(boot_id)
        if dead:
            self._table.forget(dead)
        return [*dead, *missing]

    def _missing(self) -> list[str]:
        now = self._clock()
        lease = self._table.lease.total_seconds()
        if now - self._missing_looked_at < lease / 3:
            return []
        self._missing_looked_at = now
        self._missing_since = {
            boot_id: self._missing_since.get(boot_id, now) for boot_id in self._table.without_row()
        }
        return [boot_id for boot_id, since in self._missing_since.items() if now - since >= lease]


class LeaseKeeper:
    """A daemon thread that renews leases each third of the lease.

    `living` gives the processes to renew; `lost` gives those that ended since it was last asked,
    whose claims are given up at once. Both are asked each second, in this thread.
    """

    LOOK_SECONDS = 1.0
    FIRST_LOOK_SECONDS = 0.1

    def __init__(
        self,
        table: LeaseTable,
        health: Health,
        *,
        living: Callable[[], Sequence[Process]],
        lost: Callable[[], Sequence[str]],
        lose_claims: Callable[[str], None],
    ) -> None:
        self._table = table
        self._health = health
        self._living = living
        self._lost = lost
        self._lose_claims = lose_claims
        self._unreported: list[str] = []
        self._renewed: Sequence[Process] = []
        self._renewed_at = float("-inf")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wfapp-leases", daemon=True)

    def start(self) -> None:
        """Begin; the first renewal follows at once."""
        self._thread.start()

    def leave(self) -> None:
        """End; the leases run out by themselves, unless their processes have finished before."""
        self._stopping.set()
        self._thread.join(timeout=5)

    def stop(self) -> None:
        """End, and give up what the processes still hold: they have stopped working."""
        if self._stopping.is_set():
            return
        self.leave()
        ended = [*self._unreported, *(process.boot_id for process in self._renewed)]
        try:
            for boot_id in ended:
                self._lose_claims(boot_id)
            self._table.forget(ended)
        except (*_DATABASE_ERRORS, UnavailableError) as error:
            # others find it out when the lease is over
            logger.warning(
                "leaving without the database",
                extra={"action": "lease_not_ended", "error": str(error)},
            )

    def look(self) -> None:
        """One round of the thread."""
        self._unreported += self._lost()
        living = self._living()
        if self._is_due() or living != self._renewed:
            self._table.renew(living)
            self._health.reached()
            self._renewed, self._renewed_at = living, time.monotonic()
        # The living come first: giving up may take a while where runs are busy.
        while self._unreported and not self._is_due():
            self._lose_claims(self._unreported[-1])
            self._table.forget([self._unreported.pop()])

    def _is_due(self) -> bool:
        return time.monotonic() - self._renewed_at >= self._table.lease.total_seconds() / 3

    def _run(self) -> None:
        failing = False
        while not self._stopping.wait(
            self.LOOK_SECONDS if self._renewed or failing else self.FIRST_LOOK_SECONDS
        ):
            try:
                close_old_connections()
                self.look()
                failing = False
            except Exception as error:  # a thread that ended here would let all leases end
                self._health.missed()
                if not failing:  # once for each outage
                    logger.warning(
                        "lease not renewed, it is tried again: %s",
                        error,
                        exc_info=not isinstance(error, (*_DATABASE_ERRORS, UnavailableError)),
                        extra={"action": "lease_missed"},
                    )
                failing = True
        connections.close_all()
