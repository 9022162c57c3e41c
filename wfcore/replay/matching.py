"""Commands against history: on replay the code must ask for what is recorded, in that order.

Kinds are always compared, ids and types by the rules that the history names. Arguments, timeouts
and other options may change from one release to the next.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, Protocol

from wfcore.exceptions import HistoryMismatchError
from wfcore.protocol import commands, events
from wfcore.protocol.commands import COMMAND_TYPES, Command
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.message import Message
from wfcore.protocol.metadata import EventGroupMarker
from wfcore.protocol.payloads import UserMetadata
from wfcore.replay.activation import Recorded
from wfcore.replay.flags import CoreFlag, Flags
from wfcore.replay.loop import WorkflowLoop
from wfcore.replay.markers import is_change_version, read_local_activity, read_patch

_LOOP = WorkflowLoop.run_ready.__code__
_API = "wfcore.workflow."
#: Modules that stand between a line of workflow code and the command it asks for.
_INNER = (_API, "wfcore.replay.", "asyncio.", "contextlib", "_asyncio")
_CLOSING = frozenset(
    {
        commands.CompleteWorkflowExecution,
        commands.FailWorkflowExecution,
        commands.CancelWorkflowExecution,
        commands.ContinueAsNewWorkflowExecution,
    }
)


#: A place in the code.
Line = tuple[CodeType | None, int]


class Operation(Protocol):
    """What a command belongs to, if it has a life after it."""

    def recorded(self, event: HistoryEvent) -> None:
        """The command became this event."""


class Issued:
    """A command of the current workflow task, and the line of code that asked for it."""

    __slots__ = ("attributes", "code", "is_dropped", "line", "markers", "metadata", "operation")

    def __init__(
        self,
        attributes: Message,
        operation: Operation | None,
        metadata: UserMetadata | None,
        markers: tuple[EventGroupMarker, ...],
        line: Line | None,
    ) -> None:
        self.attributes = attributes
        self.operation = operation
        self.metadata = metadata
        self.markers = markers
        self.is_dropped = False
        self.code, self.line = line or _workflow_line()

    @property
    def location(self) -> str:
        """Where it was asked for, as ``file:line in function``."""
        if self.code is None:
            return ""
        return f"{self.code.co_filename}:{self.line} in {self.code.co_qualname}"

    def __str__(self) -> str:
        shown = _describe(self.attributes)
        return f"{shown} at {self.location}" if self.code else shown


class CommandQueue:
    """What the code has asked for in the current workflow task, in order."""

    __slots__ = ("_is_closed", "_issued")

    def __init__(self) -> None:
        self._issued: list[Issued] = []
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Whether the run has ended."""
        return self._is_closed

    def add(
        self,
        attributes: Message,
        operation: Operation | None = None,
        metadata: UserMetadata | None = None,
        markers: tuple[EventGroupMarker, ...] = (),
        line: Line | None = None,
    ) -> Issued:
        """Ask for something; `line` is where, if that is not the line that runs now."""
        issued = Issued(attributes, operation, metadata, markers, line)
        self._issued.append(issued)
        if type(attributes) in _CLOSING:
            self._is_closed = True
        return issued

    def drop(self, issued: Issued) -> None:
        """Take back a command that was not sent yet."""
        issued.is_dropped = True

    def commands(self, flags: Flags) -> tuple[Command, ...]:
        """The commands to send."""
        return tuple(
            Command(
                command_type=COMMAND_TYPES[type(issued.attributes)],
                attributes=issued.attributes,
                user_metadata=issued.metadata,
                event_group_markers=issued.markers,
            )
            for issued in self._ordered(flags)
        )

    def match(self, answer: Recorded, flags: Flags) -> None:
        """Compare with what the history holds of the task's answer, which gives events to commands.

        Raises:
            HistoryMismatchError: they disagree.
        """
        waiting = list(self._ordered(flags))
        at = 0
        for event in _without_deprecated_patches(answer.commands, waiting):
            issued = waiting[at] if at < len(waiting) else None
            at += 1
            if issued is None:
                raise _mismatch(event, None)
            check = _CHECKS.get(type(event.attributes))
            if check is None or not check(event.attributes, issued.attributes, flags):
                raise _mismatch(event, issued)
            if issued.operation is not None:
                issued.operation.recorded(event)
        if answer.next_event is not None and at < len(waiting):
            raise _mismatch(answer.next_event, waiting[at], has_event=False)
        self._issued.clear()

    def _ordered(self, flags: Flags) -> Iterator[Issued]:
        """Commands in the order of their events: the first that ends the run comes last."""
        kept = [issued for issued in self._issued if not issued.is_dropped]
        ends = [at for at, issued in enumerate(kept) if type(issued.attributes) in _CLOSING]
        if not ends:
            return iter(kept)
        first = ends[0]
        after: Sequence[Issued] = ()
        if flags.core(CoreFlag.CLOSE_LAST):
            after = [c for c in kept[first + 1 :] if type(c.attributes) not in _CLOSING]
        return iter([*kept[:first], *after, kept[first]])


# --- which event belongs to which command -------------------------------------------------------

_Check = Callable[[Any, Any, Flags], bool]


def _is_kind(kind: type[Message]) -> _Check:
    return lambda event, command, flags: type(command) is kind


def _is_activity(event: events.ActivityTaskScheduled, command: Message, flags: Flags) -> bool:
    if type(command) is not commands.ScheduleActivityTask:
        return False
    return not flags.core(CoreFlag.IDS_AND_TYPES) or (
        command.activity_id == event.activity_id
        and _name(command.activity_type) == _name(event.activity_type)
    )


def _is_child(
    event: events.StartChildWorkflowExecutionInitiated, command: Message, flags: Flags
) -> bool:
    if type(command) is not commands.StartChildWorkflowExecution:
        return False
    return not flags.core(CoreFlag.IDS_AND_TYPES) or (
        command.workflow_id == event.workflow_id
        and _name(command.workflow_type) == _name(event.workflow_type)
    )


def _is_marker(event: events.MarkerRecorded, command: Message, flags: Flags) -> bool:
    if type(command) is not commands.RecordMarker or command.marker_name != event.marker_name:
        return False
    patch, asked = read_patch(event), read_patch(command)
    if patch is not None:
        return asked is not None and asked.id == patch.id
    local, ended = read_local_activity(event), read_local_activity(command)
    if local is None or ended is None or not flags.core(CoreFlag.IDS_AND_TYPES):
        return True
    return (ended.activity_id, ended.activity_type) == (local.activity_id, local.activity_type)


def _without_deprecated_patches(
    recorded: Sequence[HistoryEvent], issued: Sequence[Issued]
) -> Sequence[HistoryEvent]:
    """The events but for patches that were marked as deprecated and are gone from the code."""
    if not any(type(event.attributes) is events.MarkerRecorded for event in recorded):
        return recorded
    asked = {patch.id for command in issued if (patch := read_patch(command.attributes))}
    kept: list[HistoryEvent] = []
    skips_upsert = False
    for event in recorded:
        patch = read_patch(event.attributes)
        if patch is not None and patch.deprecated and patch.id not in asked:
            skips_upsert = True
        elif not (skips_upsert and is_change_version(event.attributes)):
            kept.append(event)
            skips_upsert = False
        else:
            skips_upsert = False
    return kept


def _is_acceptance(
    event: events.WorkflowExecutionUpdateAccepted, command: Message, flags: Flags
) -> bool:
    return (
        type(command) is commands.ProtocolMessage
        and command.message_id == f"{event.protocol_instance_id}/accept"
    )


def _is_response(
    event: events.WorkflowExecutionUpdateCompleted, command: Message, flags: Flags
) -> bool:
    if type(command) is not commands.ProtocolMessage:
        return False
    update_id, _, what = command.message_id.rpartition("/")
    named = event.meta.update_id if event.meta else ""
    return what == "complete" and named in ("", update_id)


_CHECKS: dict[type[Message], _Check] = {
    events.WorkflowExecutionUpdateAccepted: _is_acceptance,
    events.WorkflowExecutionUpdateCompleted: _is_response,
    events.ActivityTaskScheduled: _is_activity,
    events.StartChildWorkflowExecutionInitiated: _is_child,
    events.MarkerRecorded: _is_marker,
    events.ActivityTaskCancelRequested: _is_kind(commands.RequestCancelActivityTask),
    events.TimerStarted: _is_kind(commands.StartTimer),
    events.TimerCanceled: _is_kind(commands.CancelTimer),
    events.SignalExternalWorkflowExecutionInitiated: _is_kind(
        commands.SignalExternalWorkflowExecution
    ),
    events.RequestCancelExternalWorkflowExecutionInitiated: _is_kind(
        commands.RequestCancelExternalWorkflowExecution
    ),
    events.UpsertWorkflowSearchAttributes: _is_kind(commands.UpsertWorkflowSearchAttributes),
    events.WorkflowPropertiesModified: _is_kind(commands.ModifyWorkflowProperties),
    events.WorkflowExecutionCompleted: _is_kind(commands.CompleteWorkflowExecution),
    events.WorkflowExecutionFailed: _is_kind(commands.FailWorkflowExecution),
    events.WorkflowExecutionCanceled: _is_kind(commands.CancelWorkflowExecution),
    events.WorkflowExecutionContinuedAsNew: _is_kind(commands.ContinueAsNewWorkflowExecution),
}


def _name(kind: Any) -> str:
    return kind.name if kind is not None else ""


# --- saying what is wrong -----------------------------------------------------------------------

#: Fields that tell one command or event from another of its kind, with their words.
_NAMING = (
    ("activity_type", "type"),
    ("activity_id", "activity id"),
    ("timer_id", "timer id"),
    ("workflow_type", "type"),
    ("workflow_id", "workflow id"),
    ("signal_name", "signal"),
    ("marker_name", "marker"),
    ("protocol_instance_id", "update"),
    ("message_id", "message"),
    ("scheduled_event_id", "scheduled event"),
    ("started_event_id", "started event"),
)
_ADVICE = (
    "The code is not the one that recorded this history, or what it does depends on something that "
    "a replay does not repeat (time, chance, I/O, global state). Guard changed code with "
    "workflow.patched(), or deploy the old code again; to have the run go on under the new code, "
    "reset it to an event before this one."
)


def _mismatch(
    event: HistoryEvent, issued: Issued | None, *, has_event: bool = True
) -> HistoryMismatchError:
    found = f"event {event.event_id} ({event.event_type.name}{_naming(event.attributes)})"
    if issued is None:
        said = f"the history has {found}, but the code asked for nothing more in that workflow task"
    elif has_event:
        said = f"the history has {found}, but the code asked for {issued}"
    else:
        said = f"the code asked for {issued}, but the history has no such event before {found}"
    return HistoryMismatchError(
        f"Nondeterminism error: {said}. {_ADVICE}",
        event_id=event.event_id,
        event_type=event.event_type.name,
        command=_describe(issued.attributes) if issued else "",
        location=issued.location if issued else "",
    )


def _describe(command: Message) -> str:
    return COMMAND_TYPES[type(command)].name + _naming(command)


def _naming(attributes: Message) -> str:
    shown = []
    for field, word in _NAMING:
        value = getattr(attributes, field, None)
        value = getattr(value, "name", value)
        if value:
            shown.append(f"{word} {value!r}")
    return f", {', '.join(shown)}" if shown else ""


def line_of(error: BaseException) -> Line:
    """The innermost line of workflow code that an exception passed."""
    found: Line = (None, 0)
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if not frame.f_globals.get("__name__", "").startswith(_INNER):
            found = (frame.f_code, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _workflow_line() -> Line:
    """The innermost line of the code that runs which is not asyncio's or ours; interceptors that
    stand between the authoring API and the command are passed over.
    """
    # Costs least of all ways to a caller's line.
    frame: FrameType | None = sys._getframe(3)  # noqa: SLF001
    innermost: Line = (None, 0)
    has_passed_api = False
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(_INNER):
            if has_passed_api:
                return frame.f_code, frame.f_lineno
            if innermost[0] is None:
                innermost = frame.f_code, frame.f_lineno
        elif module.startswith(_API):
            has_passed_api = True
        if frame.f_code is _LOOP:
            break  # what called the loop is no workflow code
        frame = frame.f_back
    return innermost
