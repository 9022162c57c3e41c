"""A history for people: compact, with one line for each thing that began, or event by event.

Compact leaves out what went as it should: workflow tasks that succeeded, and the events between the
begin and the end of an activity, a timer or a child, which share one line.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from wfapp.presentation.values import text_of, texts_of
from wfapp.presentation.words import camel, event_name, failure_line, one_line, span
from wfcore.protocol import events as ev
from wfcore.protocol import json_form
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Payload, Payloads


@dataclass(kw_only=True, slots=True)
class Line:
    """One thing that happened, or is happening."""

    event_id: int
    began_at: datetime
    what: str
    name: str = ""
    #: how it stands: ``completed``, ``failed``, ``fired``, ...; ``open`` while it has no end
    state: str = ""
    ended_at: datetime | None = None
    detail: str = ""
    event_ids: list[int] = field(default_factory=list)

    @property
    def took(self) -> str:
        """How long it lasted, or nothing for what has no length."""
        return span(self.ended_at - self.began_at) if self.ended_at is not None else ""

    @property
    def is_failure(self) -> bool:
        """Whether it went wrong."""
        return self.state in ("failed", "timed out", "terminated")


@dataclass(frozen=True, kw_only=True, slots=True)
class _End:
    """How a kind of event ends the line of another."""

    #: field of its attributes that holds the id of the event that began the line
    begun_by: str
    state: str


_BEGINNINGS: Mapping[type[Message], str] = {
    ev.ActivityTaskScheduled: "activity",
    ev.TimerStarted: "timer",
    ev.StartChildWorkflowExecutionInitiated: "child workflow",
    ev.SignalExternalWorkflowExecutionInitiated: "signal to another workflow",
    ev.RequestCancelExternalWorkflowExecutionInitiated: "cancel request to another workflow",
    ev.NexusOperationScheduled: "Nexus operation",
    ev.WorkflowExecutionUpdateAccepted: "update",
}

_ENDS: Mapping[type[Message], _End] = {
    ev.ActivityTaskCompleted: _End(begun_by="scheduled_event_id", state="completed"),
    ev.ActivityTaskFailed: _End(begun_by="scheduled_event_id", state="failed"),
    ev.ActivityTaskTimedOut: _End(begun_by="scheduled_event_id", state="timed out"),
    ev.ActivityTaskCanceled: _End(begun_by="scheduled_event_id", state="canceled"),
    ev.TimerFired: _End(begun_by="started_event_id", state="fired"),
    ev.TimerCanceled: _End(begun_by="started_event_id", state="canceled"),
    ev.StartChildWorkflowExecutionFailed: _End(begun_by="initiated_event_id", state="failed"),
    ev.ChildWorkflowExecutionCompleted: _End(begun_by="initiated_event_id", state="completed"),
    ev.ChildWorkflowExecutionFailed: _End(begun_by="initiated_event_id", state="failed"),
    ev.ChildWorkflowExecutionTimedOut: _End(begun_by="initiated_event_id", state="timed out"),
    ev.ChildWorkflowExecutionCanceled: _End(begun_by="initiated_event_id", state="canceled"),
    ev.ChildWorkflowExecutionTerminated: _End(begun_by="initiated_event_id", state="terminated"),
    ev.ExternalWorkflowExecutionSignaled: _End(begun_by="initiated_event_id", state="completed"),
    ev.SignalExternalWorkflowExecutionFailed: _End(begun_by="initiated_event_id", state="failed"),
    ev.ExternalWorkflowExecutionCancelRequested: _End(
        begun_by="initiated_event_id", state="completed"
    ),
    ev.RequestCancelExternalWorkflowExecutionFailed: _End(
        begun_by="initiated_event_id", state="failed"
    ),
    ev.NexusOperationCompleted: _End(begun_by="scheduled_event_id", state="completed"),
    ev.NexusOperationFailed: _End(begun_by="scheduled_event_id", state="failed"),
    ev.NexusOperationCanceled: _End(begun_by="scheduled_event_id", state="canceled"),
    ev.NexusOperationTimedOut: _End(begun_by="scheduled_event_id", state="timed out"),
    ev.WorkflowExecutionUpdateCompleted: _End(begun_by="accepted_event_id", state="completed"),
}

#: Events in the middle of a line, by the field that leads to its begin.
_MIDDLES: Mapping[type[Message], str] = {
    ev.ActivityTaskStarted: "scheduled_event_id",
    ev.ActivityTaskCancelRequested: "scheduled_event_id",
    ev.ChildWorkflowExecutionStarted: "initiated_event_id",
    ev.NexusOperationStarted: "scheduled_event_id",
}

#: Events with a line of their own: what they are called, and how they stand.
_SINGLE: Mapping[type[Message], tuple[str, str]] = {
    ev.WorkflowExecutionStarted: ("workflow", "started"),
    ev.WorkflowExecutionCompleted: ("workflow", "completed"),
    ev.WorkflowExecutionFailed: ("workflow", "failed"),
    ev.WorkflowExecutionTimedOut: ("workflow", "timed out"),
    ev.WorkflowExecutionCanceled: ("workflow", "canceled"),
    ev.WorkflowExecutionTerminated: ("workflow", "terminated"),
    ev.WorkflowExecutionContinuedAsNew: ("workflow", "continued as new"),
    ev.WorkflowExecutionCancelRequested: ("cancel request", "received"),
    ev.WorkflowExecutionSignaled: ("signal", "received"),
    ev.WorkflowTaskFailed: ("workflow task", "failed"),
    ev.WorkflowTaskTimedOut: ("workflow task", "timed out"),
    ev.MarkerRecorded: ("marker", "recorded"),
}

#: What went as it should.
_SILENT = (ev.WorkflowTaskScheduled, ev.WorkflowTaskStarted, ev.WorkflowTaskCompleted)


def _named(kind: Any) -> str:
    return str(kind.name) if kind is not None else ""


_NAMES: Mapping[type[Message], Callable[[Any], str]] = {
    ev.ActivityTaskScheduled: lambda a: f"{_named(a.activity_type)} ({a.activity_id})",
    ev.TimerStarted: lambda a: f"{a.timer_id} ({span(a.start_to_fire_timeout or timedelta())})",
    ev.WorkflowExecutionStarted: lambda a: _named(a.workflow_type),
    ev.WorkflowExecutionSignaled: lambda a: str(a.signal_name),
    ev.MarkerRecorded: lambda a: str(a.marker_name),
    ev.StartChildWorkflowExecutionInitiated: lambda a: (
        f"{_named(a.workflow_type)} ({a.workflow_id})"
    ),
    ev.SignalExternalWorkflowExecutionInitiated: lambda a: str(a.signal_name),
}


def compact(events: Iterable[HistoryEvent]) -> list[Line]:
    """One line for each thing, in order of their begins."""
    lines: dict[int, Line] = {}
    for event in events:
        attributes = event.attributes
        kind = type(attributes)
        if kind in _ENDS:
            end = _ENDS[kind]
            line = lines.get(getattr(attributes, end.begun_by))
            if line is not None:
                _finish(line, event, end.state)
                continue
        if kind in _MIDDLES:
            line = lines.get(getattr(attributes, _MIDDLES[kind]))
            if line is not None:
                _continue(line, event)
                continue
        if kind not in _SILENT:
            lines[event.event_id] = _begin(event)
    return list(lines.values())


def _begin(event: HistoryEvent) -> Line:
    kind = type(event.attributes)
    if kind in _BEGINNINGS:
        what, state = _BEGINNINGS[kind], "open"
    else:
        what, state = _SINGLE.get(kind, (event_name(event.event_type), ""))
    return Line(
        event_id=event.event_id,
        began_at=event.event_time,
        what=what,
        name=_name(event.attributes),
        state=state,
        detail=_detail(event.attributes),
        event_ids=[event.event_id],
    )


def _continue(line: Line, event: HistoryEvent) -> None:
    line.event_ids.append(event.event_id)
    if isinstance(event.attributes, ev.ActivityTaskStarted) and event.attributes.attempt > 1:
        line.detail = f"attempt {event.attributes.attempt}"
    elif isinstance(event.attributes, ev.ActivityTaskCancelRequested):
        line.detail = "cancel requested"


def _finish(line: Line, event: HistoryEvent, state: str) -> None:
    line.event_ids.append(event.event_id)
    line.state, line.ended_at = state, event.event_time
    line.detail = ", ".join(filter(None, (line.detail, _detail(event.attributes))))


def _name(attributes: Message) -> str:
    """What people call it."""
    make = _NAMES.get(type(attributes))
    return make(attributes) if make is not None else ""


def _detail(attributes: Message) -> str:
    """What came in, came out or went wrong."""
    failure = getattr(attributes, "failure", None)
    if isinstance(failure, Failure):
        return failure_line(failure)
    parts = [
        str(getattr(attributes, name))
        for name in ("reason", "cause", "new_execution_run_id")
        if isinstance(getattr(attributes, name, None), str) and getattr(attributes, name)
    ]
    cause = getattr(attributes, "cause", None)
    if cause is not None and not isinstance(cause, str):
        parts.append(camel(cause))
    for name in ("input", "result", "details"):
        value = getattr(attributes, name, None)
        if isinstance(value, Payloads) and value.payloads:
            parts.append(", ".join(one_line(text, 80) for text in texts_of(value)))
    return one_line(" ".join(parts))


# ---- event by event


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """An event and all that it says, a line for each value: ``input[0]`` and its JSON."""

    event_id: int
    at: datetime
    name: str
    values: tuple[tuple[str, str], ...]


def full(events: Iterable[HistoryEvent]) -> list[Event]:
    """Each event with all of its values."""
    return [
        Event(
            event_id=event.event_id,
            at=event.event_time,
            name=event_name(event.event_type),
            values=tuple(_values("", event.attributes)),
        )
        for event in events
    ]


def _values(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Payload):
        yield path, text_of(value)
    elif isinstance(value, Payloads):
        for index, payload in enumerate(value.payloads):
            yield f"{path}[{index}]", text_of(payload)
    elif isinstance(value, Message):
        for name, shown in zip(
            value.__struct_fields__, value.__struct_encode_fields__, strict=True
        ):
            item = getattr(value, name)
            if item not in (None, "", 0, (), {}):
                yield from _values(f"{path}.{shown}" if path else shown, item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _values(f"{path}.{key}", item)
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _values(f"{path}[{index}]", item)
    else:
        written = json_form.write(value)
        yield path, written if isinstance(written, str) else str(written)
