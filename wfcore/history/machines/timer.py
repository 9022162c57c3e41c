"""Timers. One that comes due while a workflow task is started fires when that task ends, so a
cancel in between takes the firing with it.
"""

from datetime import datetime, timedelta

from wfcore.history.faults import BadCommandError
from wfcore.history.state import InboxItem
from wfcore.history.step import Step
from wfcore.protocol import commands, events
from wfcore.protocol.commands import Command
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause

_ZERO = timedelta(0)


def any_due(step: Step, before: int) -> bool:
    """Whether a timer started before that event has come due and not fired."""
    return any(
        timer.fire_at <= step.now and timer.started_event_id < before
        for timer in step.recorded.timers.values()
    )


def due(step: Step, floor: datetime) -> list[InboxItem]:
    """The firings of timers that have come due, earliest first, each at its due time or `floor`."""
    fired = [
        (max(timer.fire_at, floor), timer.started_event_id, timer_id)
        for timer_id, timer in step.recorded.timers.items()
        if timer.fire_at <= step.now
    ]
    fired.sort()
    return [
        InboxItem(
            event_time=at,
            attributes=events.TimerFired(timer_id=timer_id, started_event_id=started_event_id),
        )
        for at, started_event_id, timer_id in fired
    ]


def start(step: Step, command: Command, attributes: commands.StartTimer, completed: int) -> None:
    """START_TIMER."""
    timer_id = attributes.timer_id
    cause = Cause.BAD_START_TIMER_ATTRIBUTES
    _check_id(step, timer_id, cause, "StartTimerCommand")
    duration = attributes.start_to_fire_timeout or _ZERO
    if duration < _ZERO:
        raise BadCommandError(
            cause,
            "An invalid StartToFireTimeout is set on StartTimerCommand: negative duration. "
            f"TimerId={timer_id}",
        )
    if timer_id in step.recorded.timers:
        raise BadCommandError(
            Cause.START_TIMER_DUPLICATE_ID, _builder("add-timer-started-event", timer_id)
        )
    step.append(
        events.TimerStarted(
            timer_id=timer_id,
            start_to_fire_timeout=min(duration, step.limits.duration),
            workflow_task_completed_event_id=completed,
        ),
        user_metadata=command.user_metadata,
        markers=command.event_group_markers,
    )


def cancel(step: Step, command: Command, attributes: commands.CancelTimer, completed: int) -> None:
    """CANCEL_TIMER."""
    timer_id = attributes.timer_id
    cause = Cause.BAD_CANCEL_TIMER_ATTRIBUTES
    _check_id(step, timer_id, cause, "CancelTimerCommand")
    timer = step.recorded.timers.get(timer_id)
    if timer is None:
        raise BadCommandError(cause, _builder("add-timer-canceled-event", timer_id))
    step.append(
        events.TimerCanceled(
            timer_id=timer_id,
            started_event_id=timer.started_event_id,
            workflow_task_completed_event_id=completed,
            identity=step.identity,
        ),
        user_metadata=command.user_metadata,
        markers=command.event_group_markers,
    )


def _check_id(step: Step, timer_id: str, cause: Cause, command: str) -> None:
    if not timer_id:
        raise BadCommandError(cause, f"TimerId is not set on {command}.")
    length = len(timer_id.encode())
    if length > step.limits.id_bytes:
        raise BadCommandError(
            cause,
            f"TimerId on {command} exceeds length limit. TimerId={timer_id} Length={length} "
            f"Limit={step.limits.id_bytes}",
        )


def _builder(action: str, timer_id: str) -> str:
    return f"invalid history builder state for action: {action}, TimerID: {timer_id}"
