"""What the store in memory keeps of a run, and the indexes by which work is found.

Rows change only under the store's mutex, by the writes of a transaction that commits.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from wfcore.history.change import Change
from wfcore.history.effects import Journal
from wfcore.history.state import SNAPSHOT_FORMAT, InboxItem, MutableState, PendingActivity
from wfcore.history.updates import Update
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.payloads import Memo, SearchAttributes
from wfcore.service.infos import with_reported_problems
from wfcore.service.ports import CurrentRun, RunHead, RunKey

T = TypeVar("T")

#: How much earlier than needed `wakeup_at` may stay.
LAZY_WAKEUP = timedelta(minutes=1)


@dataclass(kw_only=True, slots=True)
class Arrival:
    """An inbox row."""

    item: InboxItem
    stored_at: datetime
    size: int


@dataclass(kw_only=True, slots=True)
class Run:
    """All rows of one run."""

    key: RunKey
    head: RunHead
    current: CurrentRun
    snapshot: bytes
    format: int
    events: list[HistoryEvent] = field(default_factory=list)
    activities: dict[int, PendingActivity] = field(default_factory=dict)
    updates: dict[str, Update] = field(default_factory=dict)
    inbox: dict[int, Arrival] = field(default_factory=dict)
    request_ids: set[str] = field(default_factory=set)
    memo: Memo | None = None
    search_attributes: SearchAttributes | None = None
    journal: list[Journal] = field(default_factory=list)
    wakeup_at: datetime | None = None
    #: the outstanding workflow task: since when it waits, or who holds it
    task_waits_since: datetime | None = None
    task_owner: str = ""
    closed: bool = False
    #: ids of activities whose rows changed since they were indexed
    dirty: set[int] = field(default_factory=set)

    def copy(self) -> "Run":
        """A run that can be written to without touching this one."""
        return Run(
            key=self.key,
            head=self.head,
            current=self.current,
            snapshot=self.snapshot,
            format=self.format,
            events=list(self.events),
            activities=dict(self.activities),
            updates=dict(self.updates),
            inbox=dict(self.inbox),
            request_ids=set(self.request_ids),
            memo=self.memo,
            search_attributes=self.search_attributes,
            journal=list(self.journal),
            wakeup_at=self.wakeup_at,
            task_waits_since=self.task_waits_since,
            task_owner=self.task_owner,
            closed=self.closed,
        )

    @property
    def readable(self) -> bool:
        """Whether this release can read the snapshot."""
        return self.format <= SNAPSHOT_FORMAT


def new_run(key: RunKey, state: MutableState, snapshot: bytes) -> Run:
    """A run without events, to which its first change is applied."""
    return Run(
        key=key,
        head=_head(key, state),
        current=_current(state),
        snapshot=snapshot,
        format=state.format,
    )


def apply_change(run: Run, change: Change, state: MutableState, snapshot: bytes) -> None:
    """Write a change; `state` is a copy of the change's own."""
    run.snapshot = snapshot
    run.format = state.format
    run.head = _head(run.key, state)
    run.current = _current(state)
    run.events.extend(change.events)
    for event_id, row in change.activity_rows.items():
        run.dirty.add(event_id)
        if row is None:
            run.activities.pop(event_id, None)
        else:
            run.activities[event_id] = row
    for update_id, update in change.update_rows.items():
        if update is None:
            run.updates.pop(update_id, None)
        else:
            run.updates[update_id] = update
    for item_id in change.inbox_taken:
        run.inbox.pop(item_id, None)
    if change.memo is not None:
        run.memo = change.memo
    if change.search_attributes is not None:
        run.search_attributes = change.search_attributes
    if change.reported_problems is not None:
        run.search_attributes = with_reported_problems(
            run.search_attributes, change.reported_problems
        )
    run.journal.extend(change.journal)
    run.wakeup_at = _wakeup(run.wakeup_at, change.next_deadline, change.now)
    task = state.volatile.task if state.is_open else None
    run.task_waits_since = task.scheduled_at if task and task.started_at is None else None
    run.task_owner = task.owner if task and task.started_at is not None else ""
    if not state.is_open and not run.closed:
        run.closed = True
        run.dirty.update(run.activities)


def _head(key: RunKey, state: MutableState) -> RunHead:
    recorded = state.recorded
    return RunHead(
        key=key,
        status=recorded.status,
        task_started=state.is_open and state.task_started,
        cancel_unseen=state.cancel_unseen,
        next_event_id=recorded.next_event_id,
        workflow_type=recorded.workflow_type,
        task_queue=recorded.task_queue,
        first_execution_run_id=recorded.first_execution_run_id,
    )


def _current(state: MutableState) -> CurrentRun:
    recorded = state.recorded
    return CurrentRun(
        run_id=recorded.run_id,
        status=recorded.status,
        create_request_id=state.volatile.create_request_id,
        first_execution_run_id=recorded.first_execution_run_id,
        start_time=recorded.start_time,
    )


def _wakeup(stored: datetime | None, needed: datetime | None, now: datetime) -> datetime | None:
    if stored is None or stored <= now:
        return needed
    if needed is None or needed < stored or needed - stored > LAZY_WAKEUP:
        return needed
    return stored


class Ordered(Generic[T]):
    """Items in the order of a time each, found and moved in logarithmic time."""

    def __init__(self) -> None:
        self._entries: list[tuple[datetime, int]] = []
        self._items: dict[int, T] = {}
        self._places: dict[T, tuple[datetime, int]] = {}
        self._count = 0

    def put(self, item: T, at: datetime | None) -> None:
        """Place an item, or take it out with no time."""
        place = self._places.get(item)
        if place is not None:
            if place[0] == at:
                return
            del self._entries[bisect_left(self._entries, place)]
            del self._places[item], self._items[place[1]]
        if at is not None:
            self._count += 1
            place = (at, self._count)
            insort(self._entries, place)
            self._places[item] = place
            self._items[self._count] = item

    def until(self, now: datetime | None = None) -> Iterator[T]:
        """Items whose time has come, nearest first; all without a time."""
        for at, count in self._entries:
            if now is not None and at > now:
                return
            yield self._items[count]

    def newest(self) -> Iterator[T]:
        """All items, latest first."""
        return (self._items[count] for _, count in reversed(self._entries))

    def first(self) -> datetime | None:
        """The nearest time."""
        return self._entries[0][0] if self._entries else None


#: One row's change, applied to its run when the transaction commits.
Write = Callable[[Run], None]
