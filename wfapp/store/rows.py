"""Rows to values of the engine and back. JSON here is msgspec's own form, as the database holds it.

Encoders and decoders are made once: making one costs more than a thousand uses. A form that is
newer than this release's is never guessed at: it raises `SnapshotTooNewError`.
"""

import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import msgspec

from wfapp.models import columns
from wfcore.history.change import Change
from wfcore.history.effects import Journal
from wfcore.history.state import (
    SNAPSHOT_FORMAT,
    ActivityState,
    InboxItem,
    MutableState,
    PendingActivity,
)
from wfcore.history.updates import Update
from wfcore.protocol.common import Priority, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import EventType, WorkflowExecutionStatus
from wfcore.protocol.events import ATTRIBUTES, EVENT_TYPES, HistoryEvent
from wfcore.protocol.message import Message
from wfcore.protocol.metadata import EventGroupMarker, Link, Principal, ResetPoints
from wfcore.protocol.payloads import Memo, Payload, SearchAttributes, UserMetadata
from wfcore.protocol.rpc.info import WorkflowExecutionInfo
from wfcore.service.ports import CurrentRun, RunHead, RunKey, SnapshotTooNewError

Row = Sequence[Any]


class _EventExtras(Message, frozen=True):
    """What few events have; field for field as in `HistoryEvent`."""

    version: int = 0
    task_id: int = 0
    worker_may_ignore: bool = False
    user_metadata: UserMetadata | None = None
    links: tuple[Link, ...] = ()
    principal: Principal | None = None
    event_group_markers: tuple[EventGroupMarker, ...] = ()


class _InboxExtras(Message, frozen=True):
    """What few arrivals have; the STARTED event's attributes with their kind beside them."""

    user_metadata: UserMetadata | None = None
    links: tuple[Link, ...] = ()
    started_type: int = 0
    started: msgspec.Raw = msgspec.Raw(b"null")
    started_at: datetime | None = None


_NO_EVENT_EXTRAS = _EventExtras()
_NO_INBOX_EXTRAS = _InboxExtras()

encode = msgspec.json.Encoder().encode
_decode_state = msgspec.json.Decoder(MutableState).decode
_decode_activity = msgspec.json.Decoder(PendingActivity).decode
_decode_update = msgspec.json.Decoder(Update).decode
_decode_event_extras = msgspec.json.Decoder(_EventExtras).decode
_decode_inbox_extras = msgspec.json.Decoder(_InboxExtras).decode
_decode_payload = msgspec.json.Decoder(Payload).decode
_decode_memo = msgspec.json.Decoder(Memo).decode
_decode_priority = msgspec.json.Decoder(Priority).decode


@cache
def _attributes_decoder(event_type: int) -> msgspec.json.Decoder[Any]:
    """The decoder of one kind's attributes: sixty in all, made when first needed."""
    try:
        return msgspec.json.Decoder(ATTRIBUTES[EventType(event_type)])
    except (ValueError, KeyError):
        raise SnapshotTooNewError(
            f"event type {event_type} was written by a newer release"
        ) from None


def _micros(value: datetime | None) -> int | None:
    return None if value is None else columns.to_micros(value)


def _time(value: int | None) -> datetime | None:
    return None if value is None else columns.from_micros(value)


# ---- the hot row

#: Columns of `ExecutionState` that every transition writes, in the order of `state_values`.
STATE_COLUMNS = (
    "wakeup_at",
    "unclaimed_at",
    "next_event_id",
    "status",
    "format",
    "task_started",
    "cancel_unseen",
    "owner",
    "snapshot",
)
#: Those that are written once, in the order of `state_constants`.
STATE_CONSTANTS = (
    "first_execution_run_id",
    "namespace",
    "workflow_id",
    "workflow_type",
    "task_queue",
)


def state_values(state: MutableState, wakeup_at: int | None) -> list[Any]:
    """The changing columns of the hot row."""
    task = state.volatile.task if state.is_open else None
    started = task is not None and task.started_at is not None
    waits = task is not None and not started
    return [
        wakeup_at,
        _micros(task.scheduled_at) if task is not None and waits else None,
        state.recorded.next_event_id,
        int(state.recorded.status),
        state.format,
        started,
        state.cancel_unseen,
        task.owner if task is not None and started else "",
        encode(state),
    ]


def state_constants(state: MutableState) -> list[Any]:
    """The columns of the hot row that a run keeps."""
    recorded = state.recorded
    return [
        uuid.UUID(recorded.first_execution_run_id),
        recorded.namespace,
        recorded.workflow_id,
        recorded.workflow_type,
        recorded.task_queue,
    ]


def read_state(snapshot: bytes, format_number: int, run_id: object) -> MutableState:
    """The state that a snapshot holds.

    Raises:
        SnapshotTooNewError: a newer release wrote it.
    """
    refuse_newer(format_number, run_id)
    return _decode_state(snapshot)


def refuse_newer(format_number: int, run_id: object) -> None:
    """Raise `SnapshotTooNewError` for a form that this release can't read."""
    if format_number > SNAPSHOT_FORMAT:
        raise SnapshotTooNewError(
            f"run {run_id} was written in form {format_number} by a newer release; this one reads "
            f"forms up to {SNAPSHOT_FORMAT}"
        )


def wakeup(stored: int | None, needed: datetime | None, now: datetime) -> int | None:
    """When the ticker is to look at a run: at once earlier, later only if the shift is worth it.

    An index entry moves with it, so that a stored time that is somewhat too early stays.
    """
    wanted = _micros(needed)
    if stored is None or wanted is None or stored <= columns.to_micros(now):
        return wanted
    lazy = stored <= wanted <= stored + LAZY_WAKEUP_MICROS
    return stored if lazy else wanted


LAZY_WAKEUP_MICROS = 60_000_000


# ---- heads and current runs

HEAD_COLUMNS = (
    "namespace",
    "workflow_id",
    "run_id",
    "status",
    "task_started",
    "next_event_id",
    "workflow_type",
    "task_queue",
    "first_execution_run_id",
    "cancel_unseen",
)
CURRENT_COLUMNS = ("run_id", "status", "create_request_id", "first_execution_run_id", "start_time")


def read_key(row: Row) -> RunKey:
    """(namespace, workflow id, run id)."""
    return RunKey(namespace=row[0], workflow_id=row[1], run_id=_text(row[2]))


def read_head(row: Row) -> RunHead:
    """A row of `HEAD_COLUMNS`."""
    return RunHead(
        key=read_key(row),
        status=WorkflowExecutionStatus(row[3]),
        task_started=bool(row[4]),
        next_event_id=row[5],
        workflow_type=row[6],
        task_queue=row[7],
        first_execution_run_id=_text(row[8]),
        cancel_unseen=bool(row[9]),
    )


def current_values(state: MutableState) -> list[Any]:
    """A row of `CURRENT_COLUMNS`."""
    recorded = state.recorded
    return [
        uuid.UUID(recorded.run_id),
        int(recorded.status),
        state.volatile.create_request_id,
        uuid.UUID(recorded.first_execution_run_id),
        columns.to_micros(recorded.start_time),
    ]


def read_current(row: Row) -> CurrentRun:
    """A row of `CURRENT_COLUMNS`."""
    return CurrentRun(
        run_id=_text(row[0]),
        status=WorkflowExecutionStatus(row[1]),
        create_request_id=row[2],
        first_execution_run_id=_text(row[3]),
        start_time=columns.from_micros(row[4]),
    )


def _text(value: uuid.UUID | str) -> str:
    """A run id as the engine writes it; SQLite gives 32 digits without hyphens."""
    return str(value if isinstance(value, uuid.UUID) else uuid.UUID(value))


# ---- events

EVENT_COLUMNS = (
    "shard",
    "run_id",
    "event_time",
    "event_id",
    "event_type",
    "attributes",
    "extras",
)
#: What `read_event` reads.
EVENT_READ = ("event_time", "event_id", "event_type", "attributes", "extras")


def event_rows(change: Change, shard: int) -> Iterable[list[Any]]:
    """Rows of `EVENT_COLUMNS` of what one change appends to its run."""
    run_id = uuid.UUID(change.state.recorded.run_id)
    encoded: Iterable[bytes] = change.encoded
    if len(change.encoded) != len(change.events):
        encoded = (encode(event.attributes) for event in change.events)
    for event, attributes in zip(change.events, encoded, strict=True):
        yield [
            shard,
            run_id,
            columns.to_micros(event.event_time),
            event.event_id,
            int(event.event_type),
            attributes,
            _event_extras(event),
        ]


def _event_extras(event: HistoryEvent) -> bytes | None:
    extras = _EventExtras(
        version=event.version,
        task_id=event.task_id,
        worker_may_ignore=event.worker_may_ignore,
        user_metadata=event.user_metadata,
        links=event.links,
        principal=event.principal,
        event_group_markers=event.event_group_markers,
    )
    return None if extras == _NO_EVENT_EXTRAS else encode(extras)


def read_event(row: Row) -> HistoryEvent:
    """A row of `EVENT_READ`.

    Raises:
        SnapshotTooNewError: this release doesn't know the event's kind.
    """
    event_time, event_id, event_type, attributes, extras = row
    more = _NO_EVENT_EXTRAS if extras is None else _decode_event_extras(extras)
    return HistoryEvent(
        event_id=event_id,
        event_time=columns.from_micros(event_time),
        attributes=_attributes_decoder(event_type).decode(attributes),
        version=more.version,
        task_id=more.task_id,
        worker_may_ignore=more.worker_may_ignore,
        user_metadata=more.user_metadata,
        links=more.links,
        principal=more.principal,
        event_group_markers=more.event_group_markers,
    )


# ---- inbox

#: Besides shard, run id and time of arrival.
INBOX_COLUMNS = ("event_time", "event_type", "attributes", "extras")
INBOX_READ = ("id", *INBOX_COLUMNS)


def inbox_values(item: InboxItem) -> list[Any]:
    """A row of `INBOX_COLUMNS`."""
    extras = _InboxExtras(
        user_metadata=item.user_metadata,
        links=item.links,
        started_type=0 if item.started is None else int(EVENT_TYPES[type(item.started)]),
        started=msgspec.Raw(b"null" if item.started is None else encode(item.started)),
        started_at=item.started_at,
    )
    return [
        columns.to_micros(item.event_time),
        int(EVENT_TYPES[type(item.attributes)]),
        encode(item.attributes),
        None if extras == _NO_INBOX_EXTRAS else encode(extras),
    ]


def read_inbox_item(row: Row) -> InboxItem:
    """A row of `INBOX_READ`.

    Raises:
        SnapshotTooNewError: this release doesn't know the fact's kind.
    """
    item_id, event_time, event_type, attributes, extras = row
    more = _NO_INBOX_EXTRAS if extras is None else _decode_inbox_extras(extras)
    started: Message | None = None
    if more.started_type:
        started = _attributes_decoder(more.started_type).decode(bytes(more.started))
    return InboxItem(
        event_time=columns.from_micros(event_time),
        attributes=_attributes_decoder(event_type).decode(attributes),
        user_metadata=more.user_metadata,
        links=more.links,
        started=started,
        started_at=more.started_at,
        item_id=item_id,
    )


# ---- pending activities

#: Columns that change when an activity is replaced, in the order of `activity_values`.
ACTIVITY_COLUMNS = (
    "due_at",
    "claimable_at",
    "stamp",
    "format",
    "standing",
    "task_queue",
    "owner",
    "body",
)
#: Those that are written once, in the order of `activity_constants`.
ACTIVITY_CONSTANTS = ("shard", "run_id", "scheduled_event_id", "activity_id", "namespace")
ACTIVITY_READ = ("body", "format", "run_id")


def activity_values(activity: PendingActivity, *, standing: bool, format_number: int) -> list[Any]:
    """The changing columns of an activity's row; without standing nobody finds it."""
    started = standing and activity.state == ActivityState.STARTED
    return [
        _micros(activity.due_at) if standing else None,
        _micros(activity.claimable_at) if standing else None,
        activity.stamp,
        format_number,
        standing,
        activity.task_queue,
        activity.owner if started else "",
        encode(activity),
    ]


def activity_constants(activity: PendingActivity, shard: int) -> list[Any]:
    """The columns that an activity keeps."""
    return [
        shard,
        uuid.UUID(activity.run_id),
        activity.scheduled_event_id,
        activity.activity_id,
        activity.namespace,
    ]


def read_activity(row: Row) -> PendingActivity:
    """A row of `ACTIVITY_READ`.

    Raises:
        SnapshotTooNewError: a newer release wrote it.
    """
    refuse_newer(row[1], row[2])
    return _decode_activity(row[0])


# ---- updates


def update_values(update: Update) -> list[Any]:
    """A row of `statements.UPDATE_COLUMNS`."""
    return [update.update_id, encode(update)]


def read_update(row: Row) -> Update:
    """The update of a row that is its body."""
    return _decode_update(row[0])


# ---- what people list

EXECUTION_COLUMNS = (
    "run_id",
    "shard",
    "start_time",
    "execution_time",
    "close_time",
    "history_bytes",
    "history_length",
    "state_transitions",
    "status",
    "first_run_id",
    "parent_run_id",
    "root_run_id",
    "namespace",
    "workflow_id",
    "workflow_type",
    "task_queue",
    "parent_workflow_id",
    "root_workflow_id",
    "priority",
)
#: Those that are written again when the status changes, in the order of `execution_progress`.
EXECUTION_PROGRESS = (
    "close_time",
    "history_bytes",
    "history_length",
    "state_transitions",
    "status",
)


def execution_values(state: MutableState, shard: int) -> list[Any]:
    """A row of `EXECUTION_COLUMNS`."""
    recorded = state.recorded
    run_id = uuid.UUID(recorded.run_id)
    parent, root = recorded.parent, recorded.root
    return [
        run_id,
        shard,
        columns.to_micros(recorded.start_time),
        columns.to_micros(recorded.execution_time),
        *execution_progress(state)[:-1],
        int(recorded.status),
        uuid.UUID(recorded.first_execution_run_id),
        uuid.UUID(parent.run_id) if parent is not None else None,
        uuid.UUID(root.run_id) if root is not None else run_id,
        recorded.namespace,
        recorded.workflow_id,
        recorded.workflow_type,
        recorded.task_queue,
        parent.workflow_id if parent is not None else "",
        root.workflow_id if root is not None else recorded.workflow_id,
        encode(recorded.priority) if recorded.priority is not None else None,
    ]


def execution_progress(state: MutableState) -> list[Any]:
    """A row of `EXECUTION_PROGRESS`."""
    recorded = state.recorded
    return [
        _micros(recorded.close_time),
        recorded.history_bytes,
        recorded.next_event_id - 1,
        state.volatile.state_transitions,
        int(recorded.status),
    ]


def read_info(row: Any, memo: Memo, search_attributes: SearchAttributes) -> WorkflowExecutionInfo:
    """What a list shows of a run, from a `WorkflowExecution`."""
    execution_time = columns.from_micros(row.execution_time)
    close_time = _time(row.close_time)
    return WorkflowExecutionInfo(
        execution=WorkflowExecution(workflow_id=row.workflow_id, run_id=str(row.run_id)),
        type=WorkflowType(name=row.workflow_type),
        start_time=columns.from_micros(row.start_time),
        close_time=close_time,
        execution_time=execution_time,
        # A run that ended during its start delay took no time.
        execution_duration=max(close_time, execution_time) - execution_time if close_time else None,
        status=WorkflowExecutionStatus(row.status),
        history_length=row.history_length,
        history_size_bytes=row.history_bytes,
        state_transition_count=row.state_transitions,
        parent_execution=WorkflowExecution(
            workflow_id=row.parent_workflow_id, run_id=str(row.parent_run_id)
        )
        if row.parent_run_id
        else None,
        root_execution=WorkflowExecution(
            workflow_id=row.root_workflow_id, run_id=str(row.root_run_id)
        ),
        first_run_id=str(row.first_run_id),
        memo=memo,
        search_attributes=search_attributes,
        auto_reset_points=ResetPoints(),
        task_queue=row.task_queue,
        priority=_decode_priority(row.priority) if row.priority is not None else None,
    )


def read_memo(body: bytes | None) -> Memo:
    """The memo of a row; without a row, an empty one."""
    return Memo() if body is None else _decode_memo(body)


def read_search_attributes(pairs: Iterable[tuple[str, bytes]]) -> SearchAttributes:
    """Search attributes of their rows (name, value)."""
    return SearchAttributes(indexed_fields={name: _decode_payload(value) for name, value in pairs})


# ---- journal

JOURNAL_COLUMNS = (
    "shard",
    "run_id",
    "entry_id",
    "at",
    "scheduled_event_id",
    "attempt",
    "kind",
    "text",
    "identity",
)


def journal_values(entry: Journal, order: int) -> list[Any]:
    """A row of `JOURNAL_COLUMNS`; `order` is the entry's place among those written together."""
    at = columns.to_micros(entry.at)
    return [
        columns.shard_of(entry.namespace, entry.workflow_id),
        uuid.UUID(entry.run_id),
        columns.entry_id(at, order),
        at,
        entry.scheduled_event_id,
        entry.attempt,
        entry.kind,
        entry.text,
        entry.identity,
    ]


def read_journal(row: Any, key: RunKey) -> Journal:
    """An entry, from a `RunJournal`."""
    return Journal(
        namespace=key.namespace,
        workflow_id=key.workflow_id,
        run_id=key.run_id,
        at=columns.from_micros(row.at),
        kind=row.kind,
        text=row.text,
        scheduled_event_id=row.scheduled_event_id,
        attempt=row.attempt,
        identity=row.identity,
    )
