"""What the ticker does: all that has come due, in bounded batches, one transaction a run.

A run that fails is journalled, comes again after a growing wait, and never stops a batch. Any
number of sweeps at once is safe: each looks at a run under its lock, where nothing is due twice.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from wfcore.exceptions import InvalidArgumentError, NotFoundError
from wfcore.history import transition
from wfcore.history.effects import Journal
from wfcore.history.machines import activity
from wfcore.history.requests import Due, TaskLost
from wfcore.history.state import PendingActivity
from wfcore.service.activity_tasks import carry_out
from wfcore.service.arriving import deliver
from wfcore.service.host import Host
from wfcore.service.ports import RunBusyError, RunKey, SnapshotTooNewError
from wfcore.service.transacting import load_change, repeatedly, save

logger = logging.getLogger(__name__)

#: How long a sweep waits for a run that is busy; it comes again in the next one.
LOCK_WAIT = timedelta(milliseconds=200)
#: How old an arrival must be before a sweep takes it from whoever stored it.
DELIVERY_GRACE = timedelta(seconds=5)
#: The wait after the first failure of a run's sweep, doubled up to the last.
FIRST_BACKOFF = timedelta(seconds=10)
LAST_BACKOFF = timedelta(minutes=10)
#: Runs whose failures in a row are remembered.
REMEMBERED_FAILURES = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepReport:
    """What one sweep did."""

    #: the store's time by which work was due or not
    at: datetime
    runs: int
    activities: int
    inboxes: int
    #: runs and activities whose sweep failed or that were busy
    failed: int
    #: a batch was full, so that more may be due already
    more: bool
    #: when to sweep again at the latest; None: nothing is to come
    next_due: datetime | None


class Sweeper:
    """Sweeps of one process; remembers only how often a run failed in a row."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._failures: OrderedDict[RunKey, int] = OrderedDict()
        self._lock = threading.Lock()

    def sweep(self, limit: int = 100) -> SweepReport:
        """Do what is due, at most `limit` runs, activities and inboxes each."""
        store = self._host.store
        now = store.now()
        keys = store.due_runs(now, limit)
        runs = sum(self._guarded(key, partial(self._run, key)) for key in keys)
        rows = store.due_activities(now, limit)
        activities = sum(
            self._guarded(_run_key(row), partial(self._activity, row, now)) for row in rows
        )
        waiting = store.undelivered(now - DELIVERY_GRACE, limit)
        inboxes = sum(
            self._guarded(key, partial(deliver, self._host, key, LOCK_WAIT)) for key in waiting
        )
        found = (len(keys), len(rows), len(waiting))
        return SweepReport(
            at=now,
            runs=runs,
            activities=activities,
            inboxes=inboxes,
            failed=sum(found) - runs - activities - inboxes,
            more=limit in found,
            next_due=store.next_due(),
        )

    def lose_worker(self, owner: str, why: str, limit: int = 100) -> int:
        """A worker process is dead: its claims are lost. Gives how many were; repeat until 0."""
        keys, rows = self._host.store.claims_of(owner, limit)
        for key in keys:
            self._guarded(key, partial(self._task_lost, key, owner))
        for row in rows:
            self._guarded(_run_key(row), partial(self._attempt_lost, row, why))
        return len(keys) + len(rows)

    def _guarded(self, key: RunKey, work: Callable[[], None]) -> bool:
        """Whether the work was done; a failure is journalled and backs off."""
        try:
            work()
        except (RunBusyError, SnapshotTooNewError, NotFoundError):
            return False  # another transaction or release has it, or it is over
        except Exception as error:  # one run's failure must not stop the others
            logger.exception("sweep failed", extra={"action": "sweep", "run_id": key.run_id})
            self._back_off(key, error)
            return False
        with self._lock:
            self._failures.pop(key, None)
        return True

    def _back_off(self, key: RunKey, error: Exception) -> None:
        with self._lock:
            count = self._failures[key] = self._failures.pop(key, 0) + 1
            if len(self._failures) > REMEMBERED_FAILURES:
                self._failures.popitem(last=False)
        wait = min(FIRST_BACKOFF * 2 ** min(count - 1, 30), LAST_BACKOFF)
        now = self._host.store.now()
        entry = Journal(
            namespace=key.namespace,
            workflow_id=key.workflow_id,
            run_id=key.run_id,
            at=now,
            kind="sweep_failed",
            text=f"{type(error).__name__}: {error}; comes again in {wait.total_seconds():g} s",
            attempt=count,
        )
        try:
            self._host.store.postpone_run(key, now + wait, entry)
        except Exception:  # the store itself fails: the next sweep finds the run again
            logger.exception("back-off failed", extra={"action": "sweep", "run_id": key.run_id})

    def _run(self, key: RunKey) -> None:
        host = self._host

        def once() -> None:
            with host.store.transaction(key.namespace, key.workflow_id, wait=LOCK_WAIT) as tx:
                state = tx.load(key.run_id)
                if state is None:
                    return
                order = Due(next_run_id=host.ids.run_id(tx.now))
                change = load_change(tx, state, order)
                transition.apply(change, order, host.limits)
                save(host, tx, change)

        repeatedly(once)

    def _activity(self, row: PendingActivity, now: datetime) -> None:
        self._carry_out(row, activity.due(row, now, self._host.limits))

    def _task_lost(self, key: RunKey, owner: str) -> None:
        host, order = self._host, TaskLost(owner=owner)

        def once() -> None:
            with host.store.transaction(key.namespace, key.workflow_id, wait=LOCK_WAIT) as tx:
                state = tx.load(key.run_id)
                if state is None or not state.is_open:
                    return
                change = load_change(tx, state, order)
                transition.apply(change, order, host.limits)
                save(host, tx, change)

        repeatedly(once)

    def _attempt_lost(self, row: PendingActivity, why: str) -> None:
        self._carry_out(row, activity.lost(row, self._host.store.now(), why, self._host.limits))

    def _carry_out(self, row: PendingActivity, decision: activity.Decision | None) -> None:
        if decision is None:
            return
        # a run that reaches a limit by this has been ended by it when the error comes
        with suppress(InvalidArgumentError):
            carry_out(self._host, row, decision, wait=LOCK_WAIT)


def _run_key(row: PendingActivity) -> RunKey:
    return RunKey(namespace=row.namespace, workflow_id=row.workflow_id, run_id=row.run_id)
