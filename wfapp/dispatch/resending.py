"""Announcing again what waits unclaimed, when the broker has forgotten it.

A broker that was emptied looks like one that has been read. A random key tells: the engine keeps it
in the broker and a copy in the database, and whoever changes the copy announces everything again.
Single messages are lost too, with a worker that was killed before it claimed what they name: what
has waited for a while beside an empty queue is announced again, before its own resend is due.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Protocol

import msgspec
from django.db.models import Q

from wfapp.models import BrokerEpoch, ExecutionState, PendingActivity
from wfapp.models.columns import to_micros
from wfcore.history.effects import DispatchActivity, DispatchWorkflowTask
from wfcore.history.machines import activity
from wfcore.service.ports import Dispatcher, Store

logger = logging.getLogger(__name__)

#: What is announced of one queue; the rest follows by its own back-off.
QUEUE_LIMIT = 10_000
#: Messages sent in one go.
BATCH = 100

Announcement = DispatchWorkflowTask | DispatchActivity


def unclaimed(
    store: Store, alias: str, before: datetime | None = None, limit: int = QUEUE_LIMIT
) -> Iterator[Announcement]:
    """What waits for a worker now, queue by queue, oldest first.

    With `before`, of those queues in which something has waited since then.
    """
    waiting = Q(unclaimed_at__lte=to_micros(before)) if before else Q(unclaimed_at__isnull=False)
    for namespace, task_queue in _queues(ExecutionState, alias, waiting):
        for key in store.unclaimed_workflow_tasks(namespace, task_queue, limit):
            yield DispatchWorkflowTask(
                namespace=key.namespace,
                workflow_id=key.workflow_id,
                run_id=key.run_id,
                task_queue=task_queue,
                scheduled_event_id=0,
                attempt=1,
            )
    waiting = Q(claimable_at__lte=to_micros(before)) if before else Q(claimable_at__isnull=False)
    for namespace, task_queue in _queues(PendingActivity, alias, waiting):
        found = store.unclaimed_activities(namespace, task_queue, store.now(), limit)
        for row in found:
            yield msgspec.structs.replace(activity.dispatch(row), sent=0)


def _queues(
    model: type[ExecutionState] | type[PendingActivity], alias: str, waiting: Q
) -> list[tuple[str, str]]:
    rows = model.objects.using(alias).filter(waiting).values_list("namespace", "task_queue")
    return sorted(rows.distinct())


class EpochWatch:
    """Notices that the broker was emptied and announces all unclaimed work, a batch at a time.

    `epoch` reads the key in the broker; None where it isn't known or there is none.
    """

    def __init__(
        self,
        *,
        broker: str,
        alias: str,
        epoch: Callable[[], str | None],
        store: Store,
        dispatcher: Dispatcher,
    ) -> None:
        self._broker = broker
        self._alias = alias
        self._epoch = epoch
        self._store = store
        self._dispatcher = dispatcher
        self._known: str | None = None
        self._left: deque[Announcement] = deque()

    @property
    def is_busy(self) -> bool:
        """Whether there is more to announce at once."""
        return bool(self._left)

    def look(self) -> None:
        """Compare the two copies; announce the next batch."""
        epoch = self._epoch()
        if epoch is not None and epoch != self._known:
            if self._take(epoch, self._store.now()):
                self._left = deque(unclaimed(self._store, self._alias))
                logger.warning(
                    "the broker was emptied; announcing what waits again",
                    extra={"action": "broker_emptied", "messages": len(self._left)},
                )
            self._known = epoch
        batch = list(islice(self._left, BATCH))
        if batch:
            self._dispatcher.dispatch(batch)
            for _ in batch:
                self._left.popleft()

    def _take(self, epoch: str, now: datetime) -> bool:
        """Whether this process is the one that changed the copy."""
        rows = BrokerEpoch.objects.using(self._alias)
        seen_at = to_micros(now)
        changed = rows.filter(broker=self._broker).exclude(epoch=epoch)
        if changed.update(epoch=epoch, seen_at=seen_at):
            return True
        before = rows.filter(broker=self._broker).exists()
        if not before:
            row = BrokerEpoch(broker=self._broker, epoch=epoch, seen_at=seen_at)
            rows.bulk_create([row], ignore_conflicts=True)
        return not before


class QueueDispatcher(Protocol):
    """The part of the dispatcher that looks after lost messages."""

    def dispatch_into_empty(self, effects: Iterable[Announcement]) -> int: ...


class LostMessages:
    """Announces again, at most every `pause`, what has waited for so long beside an empty queue.

    A batch a queue: where messages stand, whoever takes them shows whether more are needed.
    """

    #: A look takes no larger part of the ticker's time.
    SHARE = 100

    def __init__(
        self,
        *,
        alias: str,
        store: Store,
        dispatcher: QueueDispatcher,
        pause: timedelta,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._alias = alias
        self._store = store
        self._dispatcher = dispatcher
        self._pause = pause
        self._clock = clock
        self._next = 0.0

    def look(self) -> None:
        """Announce what seems to be lost, if it is time to look."""
        begun = self._clock()
        if begun < self._next:
            return
        before = self._store.now() - self._pause
        waiting = unclaimed(self._store, self._alias, before, BATCH)
        if sent := self._dispatcher.dispatch_into_empty(waiting):
            logger.info(
                "announced again what waited beside an empty queue",
                extra={"action": "lost_messages_sent", "messages": sent},
            )
        ended = self._clock()
        self._next = ended + max(self._pause.total_seconds(), self.SHARE * (ended - begun))
