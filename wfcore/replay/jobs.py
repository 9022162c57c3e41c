"""Facts of a history to jobs: what the code is told, in the order in which it is told.

Signals and updates come first, each kind in the history's order. All facts are taken note of before
any code runs: what has ended can't be cancelled any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from wfcore.exceptions import MalformedHistoryError
from wfcore.protocol import events
from wfcore.protocol.enums import WorkflowTaskFailedCause
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.message import Message
from wfcore.replay.state import Job, RunState


class Run(Protocol):
    """What jobs do to a run, apart from its operations."""

    def begin(self, first: HistoryEvent, started: events.WorkflowExecutionStarted) -> None:
        """The run's first event."""

    def start(self) -> None:
        """Start the main coroutine."""

    def signal(self, event_id: int, event: events.WorkflowExecutionSignaled) -> None:
        """A signal."""

    def admit(self, event_id: int, event: events.WorkflowExecutionUpdateAdmitted) -> Job | None:
        """An update that a reset brought over."""

    def cancel(self, reason: str) -> None:
        """A request to cancel."""

    def set_seed(self, run_id: str) -> None:
        """A reset: random numbers are others from here on."""


class Jobs:
    """Jobs of one workflow task."""

    __slots__ = ("first", "others", "updates")

    def __init__(self) -> None:
        #: Signals and updates.
        self.first: list[Job] = []
        #: How many of those are updates.
        self.updates = 0
        self.others: list[Job] = []

    @property
    def are_updates_only(self) -> bool:
        """Whether nothing but updates came."""
        return not self.others and self.updates == len(self.first)


def read_facts(facts: Sequence[HistoryEvent], state: RunState, run: Run) -> Jobs:
    """The jobs of a task that learns these facts.

    Raises:
        MalformedHistoryError: an event belongs to a command that the history doesn't have.
    """
    jobs = Jobs()
    for event in facts:
        read = _READERS.get(type(event.attributes))
        if read is not None:
            read(event, event.attributes, state, run, jobs)
    return jobs


_Reader = Callable[[HistoryEvent, Any, RunState, Run, Jobs], None]


def _started(
    event: HistoryEvent,
    attributes: events.WorkflowExecutionStarted,
    _state: RunState,
    run: Run,
    jobs: Jobs,
) -> None:
    run.begin(event, attributes)
    jobs.others.append(run.start)


def _signaled(
    event: HistoryEvent,
    attributes: events.WorkflowExecutionSignaled,
    _state: RunState,
    run: Run,
    jobs: Jobs,
) -> None:
    jobs.first.append(partial(run.signal, event.event_id, attributes))


def _update_admitted(
    event: HistoryEvent,
    attributes: events.WorkflowExecutionUpdateAdmitted,
    _state: RunState,
    run: Run,
    jobs: Jobs,
) -> None:
    job = run.admit(event.event_id, attributes)
    if job is not None:
        jobs.first.append(job)
        jobs.updates += 1


def _cancel_requested(
    _event: HistoryEvent,
    attributes: events.WorkflowExecutionCancelRequested,
    _state: RunState,
    run: Run,
    jobs: Jobs,
) -> None:
    jobs.others.append(partial(run.cancel, attributes.cause))


def _task_failed(
    _event: HistoryEvent,
    attributes: events.WorkflowTaskFailed,
    _state: RunState,
    run: Run,
    jobs: Jobs,
) -> None:
    if attributes.cause is WorkflowTaskFailedCause.RESET_WORKFLOW:
        jobs.others.insert(0, partial(run.set_seed, attributes.new_run_id))


def _activity_closed(
    event: HistoryEvent,
    attributes: events.ActivityTaskCompleted,
    state: RunState,
    _run: Run,
    jobs: Jobs,
) -> None:
    job = _operation(state, attributes.scheduled_event_id, event).closed(event)
    if job is not None:
        jobs.others.append(job)


def _timer_fired(
    event: HistoryEvent,
    attributes: events.TimerFired,
    state: RunState,
    _run: Run,
    jobs: Jobs,
) -> None:
    jobs.others.append(_operation(state, attributes.started_event_id, event).fired(event))


def _external_answered(
    event: HistoryEvent,
    attributes: events.ExternalWorkflowExecutionSignaled,
    state: RunState,
    _run: Run,
    jobs: Jobs,
) -> None:
    job = _operation(state, attributes.initiated_event_id, event).answered(event)
    if job is not None:
        jobs.others.append(job)


def _child_started(
    event: HistoryEvent,
    attributes: events.ChildWorkflowExecutionStarted,
    state: RunState,
    _run: Run,
    jobs: Jobs,
) -> None:
    job = _operation(state, attributes.initiated_event_id, event).has_started(event)
    if job is not None:
        jobs.others.append(job)


def _child_start_failed(
    event: HistoryEvent,
    attributes: events.StartChildWorkflowExecutionFailed,
    state: RunState,
    _run: Run,
    jobs: Jobs,
) -> None:
    job = _operation(state, attributes.initiated_event_id, event).start_failed(event)
    if job is not None:
        jobs.others.append(job)


def _child_closed(
    event: HistoryEvent,
    attributes: events.ChildWorkflowExecutionCompleted,
    state: RunState,
    _run: Run,
    jobs: Jobs,
) -> None:
    job = _operation(state, attributes.initiated_event_id, event).closed(event)
    if job is not None:
        jobs.others.append(job)


def _operation(state: RunState, event_id: int, event: HistoryEvent) -> Any:
    operation = state.operations.get(event_id)
    if operation is None:
        raise MalformedHistoryError(
            f"event {event.event_id} ({event.event_type.name}) belongs to event {event_id}, which "
            "is no open operation of this run"
        )
    return operation


_READERS: dict[type[Message], _Reader] = {
    events.WorkflowExecutionStarted: _started,
    events.WorkflowExecutionSignaled: _signaled,
    events.WorkflowExecutionUpdateAdmitted: _update_admitted,
    events.WorkflowExecutionCancelRequested: _cancel_requested,
    events.WorkflowTaskFailed: _task_failed,
    events.ActivityTaskCompleted: _activity_closed,
    events.ActivityTaskFailed: _activity_closed,
    events.ActivityTaskTimedOut: _activity_closed,
    events.ActivityTaskCanceled: _activity_closed,
    events.TimerFired: _timer_fired,
    events.ExternalWorkflowExecutionSignaled: _external_answered,
    events.SignalExternalWorkflowExecutionFailed: _external_answered,
    events.ExternalWorkflowExecutionCancelRequested: _external_answered,
    events.RequestCancelExternalWorkflowExecutionFailed: _external_answered,
    events.ChildWorkflowExecutionStarted: _child_started,
    events.StartChildWorkflowExecutionFailed: _child_start_failed,
    events.ChildWorkflowExecutionCompleted: _child_closed,
    events.ChildWorkflowExecutionFailed: _child_closed,
    events.ChildWorkflowExecutionCanceled: _child_closed,
    events.ChildWorkflowExecutionTimedOut: _child_closed,
    events.ChildWorkflowExecutionTerminated: _child_closed,
}
