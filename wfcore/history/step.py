"""One transition in progress. It alone appends events, and it can be taken back to where it stood,
so that a bad command leaves nothing behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from wfcore.history import recording, task_events
from wfcore.history.change import Change
from wfcore.history.effects import Effect, Journal
from wfcore.history.limits import Limits
from wfcore.history.requests import CompleteTask
from wfcore.history.state import InboxItem, PendingActivity, Recorded, TaskClaim, Volatile
from wfcore.protocol import events as ev
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.events import EVENT_TYPES, WORKER_MAY_IGNORE, HistoryEvent
from wfcore.protocol.message import Message
from wfcore.protocol.metadata import EventGroupMarker, Link
from wfcore.protocol.payloads import Memo, SearchAttributes, UserMetadata
from wfcore.protocol.updates import ProtocolMessage

#: What a parent writes of the end of its child.
CHILD_ENDS = (
    ev.ChildWorkflowExecutionCompleted,
    ev.ChildWorkflowExecutionFailed,
    ev.ChildWorkflowExecutionCanceled,
    ev.ChildWorkflowExecutionTimedOut,
    ev.ChildWorkflowExecutionTerminated,
)
#: Closing events of activities, children and Nexus operations: a flush moves them behind the rest.
_LAST_WORDS = frozenset(
    {
        *CHILD_ENDS,
        ev.ActivityTaskCompleted,
        ev.ActivityTaskFailed,
        ev.ActivityTaskTimedOut,
        ev.ActivityTaskCanceled,
        ev.NexusOperationCompleted,
        ev.NexusOperationFailed,
        ev.NexusOperationCanceled,
        ev.NexusOperationTimedOut,
    }
)
_MAY_IGNORE = frozenset(kind for kind, number in EVENT_TYPES.items() if number in WORKER_MAY_IGNORE)


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a step began."""

    recorded: Recorded
    volatile: Volatile
    memo: Memo | None
    search_attributes: SearchAttributes | None
    events: int


class Step:
    """A change being made to one run, by one request."""

    __slots__ = (
        "activity_ids",
        "announce",
        "answer",
        "change",
        "late",
        "limits",
        "messages",
        "namespace_id",
        "next_run_id",
        "now",
        "origin",
        "recorded",
        "taken",
        "takes_up",
        "task_before",
        "volatile",
        "wants_task",
    )

    def __init__(self, change: Change, limits: Limits) -> None:
        self.change = change
        self.limits = limits
        self.recorded = change.state.recorded
        self.volatile = change.state.volatile
        #: time of this step's events: never before anything that is known to have happened
        self.now = max(change.now, self.recorded.last_event_time, *_times_of(self.volatile.task))
        #: facts that the commands of this step made, written behind what waits in the inbox
        self.late: list[InboxItem] = []
        #: a workflow task must follow although nothing was flushed
        self.wants_task = False
        #: the workflow task is to be announced to workers
        self.announce = False
        #: the worker's answer that is carried out, and the activities that it takes at once
        self.answer: CompleteTask | None = None
        #: what it says about updates and is not yet carried out, by message id in order
        self.messages: dict[str, ProtocolMessage] = {}
        self.taken: list[PendingActivity] = []
        #: activity ids in use, once a command has asked for them
        self.activity_ids: set[str] | None = None
        #: of the run that may follow
        self.next_run_id = ""
        #: of the run's namespace, for events that name it
        self.namespace_id = ""
        #: what is due of the run's deliveries is begun again
        self.takes_up = False
        self.task_before = self.volatile.task
        #: where this step began
        self.origin = self._mark()

    # ---- what stands

    @property
    def is_open(self) -> bool:
        """Whether the run may still change."""
        return self.recorded.status in (Status.RUNNING, Status.PAUSED)

    @property
    def started_task(self) -> TaskClaim | None:
        """The workflow task that a worker holds."""
        task = self.volatile.task
        return task if task is not None and task.started_at is not None else None

    @property
    def has_changed(self) -> bool:
        """Whether this step has done anything."""
        change = self.change
        return bool(
            change.events
            or change.activity_rows
            or change.update_rows
            or change.inbox_taken
            or self.announce
            or self.volatile.task is not self.task_before
        )

    @property
    def identity(self) -> str:
        """Of the worker whose answer is carried out."""
        return self.answer.identity if self.answer is not None else ""

    @property
    def in_backoff(self) -> bool:
        """Whether the run waits before its first workflow task."""
        return not self.recorded.first_task_scheduled

    def activity(self, scheduled_event_id: int) -> PendingActivity | None:
        """A pending activity as it stands in this step."""
        rows = self.change.activity_rows
        if scheduled_event_id in rows:
            return rows[scheduled_event_id]
        return self.change.activities.get(scheduled_event_id)

    # ---- writing

    def append(
        self,
        attributes: Message,
        *,
        at: datetime | None = None,
        user_metadata: UserMetadata | None = None,
        links: tuple[Link, ...] = (),
        markers: tuple[EventGroupMarker, ...] = (),
    ) -> int:
        """Write an event and give its id; `at` is when it happened, now if not given.

        A speculative workflow task that nobody has taken becomes one like any other before.
        """
        task = self.volatile.task
        if task is not None and task.is_speculative and task.started_at is None:
            self.store_task(task)
        event_id = self.recorded.next_event_id
        event = HistoryEvent(
            event_id=event_id,
            event_time=at or self.now,
            attributes=attributes,
            worker_may_ignore=type(attributes) in _MAY_IGNORE,
            user_metadata=user_metadata,
            links=links,
            event_group_markers=markers,
        )
        encoded = recording.encode(attributes)
        recording.record(self.recorded, event, recording.event_bytes(encoded, user_metadata))
        # a fact may have arrived by a clock that was ahead
        self.now = max(self.now, event.event_time)
        self.change.events.append(event)
        self.change.encoded.append(encoded)
        return event_id

    def store_task(self, task: TaskClaim) -> TaskClaim:
        """Write SCHEDULED of a speculative task that waits for a worker."""
        stored = msgspec.structs.replace(task, stored=True, schedule_to_start_due=None)
        self.volatile.task = stored
        timeout = task.start_to_close_timeout
        self.append(
            task_events.scheduled(self.recorded, timeout, task.attempt), at=task.scheduled_at
        )
        return stored

    def append_item(self, item: InboxItem) -> int:
        """Write a fact whose time is that of its arrival."""
        attributes = item.attributes
        event_id = self.append(
            attributes, at=item.event_time, user_metadata=item.user_metadata, links=item.links
        )
        if (
            isinstance(attributes, ev.WorkflowExecutionOptionsUpdated)
            and attributes.attached_request_id
        ):
            self.volatile.attached_request_ids[attributes.attached_request_id] = event_id
        return event_id

    def append_facts(self, items: Sequence[InboxItem]) -> None:
        """Write facts in order of arrival, closing events behind everything else, and fill in the
        ids of STARTED events that are known only now."""
        last: list[tuple[InboxItem, int]] = []
        for item in items:
            started_id = 0
            if item.started is not None and not isinstance(item.attributes, CHILD_ENDS):
                started_id = self.append(item.started, at=item.started_at or item.event_time)
            if type(item.attributes) in _LAST_WORDS:
                last.append((item, started_id))
            else:
                self.append_item(item)
        for item, started_id in last:
            if isinstance(item.attributes, CHILD_ENDS):
                started_id = self._child_start(item)  # noqa: PLW2901
            if started_id:
                attributes = msgspec.structs.replace(item.attributes, started_event_id=started_id)
                item = msgspec.structs.replace(item, attributes=attributes)  # noqa: PLW2901
            self.append_item(item)

    def _child_start(self, item: InboxItem) -> int:
        """The event that a child's end refers to; a report that overtook it brings it along."""
        children = self.recorded.children
        initiated: int = item.attributes.initiated_event_id  # type: ignore[attr-defined]
        if not children[initiated].started_event_id and item.started is not None:
            self.append(item.started)
        return children[initiated].started_event_id

    def effect(self, effect: Effect) -> None:
        """Have the host do something after the commit."""
        self.change.effects.append(effect)

    def note(self, kind: str, text: str, *, identity: str = "", **ids: int) -> None:
        """Tell operators something that the history doesn't hold."""
        self.change.journal.append(
            Journal(
                namespace=self.recorded.namespace,
                workflow_id=self.recorded.workflow_id,
                run_id=self.recorded.run_id,
                at=self.now,
                kind=kind,
                text=text,
                identity=identity,
                **ids,
            )
        )

    # ---- going back

    def _mark(self) -> Mark:
        recorded, volatile = self.recorded, self.volatile
        return Mark(
            recorded=_copy(recorded),
            volatile=_copy_volatile(volatile),
            memo=self.change.memo,
            search_attributes=self.change.search_attributes,
            events=len(self.change.events),
        )

    def begin_anew(self) -> None:
        """Undo everything that this step has done."""
        change, origin = self.change, self.origin
        self.recorded = change.state.recorded = _copy(origin.recorded)
        self.volatile = change.state.volatile = _copy_volatile(origin.volatile)
        del change.events[origin.events :]
        del change.encoded[origin.events :]
        change.inbox_taken = []
        change.activity_rows = {}
        change.update_rows = {}
        change.effects = []
        change.journal = []
        change.memo = origin.memo
        change.search_attributes = origin.search_attributes
        change.reported_problems = None
        change.next_run = None
        change.closed = False
        self.late = []
        self.taken = []
        self.activity_ids = None
        self.wants_task = False
        self.announce = False


def _times_of(task: TaskClaim | None) -> tuple[datetime, ...]:
    """Times of a task that may not be events yet."""
    if task is None:
        return ()
    return (task.scheduled_at,) if task.started_at is None else (task.started_at,)


def _copy(recorded: Recorded) -> Recorded:
    """Its values are frozen; only the maps are changed in place."""
    return msgspec.structs.replace(
        recorded,
        timers=dict(recorded.timers),
        open_activities=dict(recorded.open_activities),
        children=dict(recorded.children),
        external_signals=dict(recorded.external_signals),
        external_cancels=dict(recorded.external_cancels),
    )


def _copy_volatile(volatile: Volatile) -> Volatile:
    return msgspec.structs.replace(
        volatile,
        attached_request_ids=dict(volatile.attached_request_ids),
        deliveries=dict(volatile.deliveries),
    )
