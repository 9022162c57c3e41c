"""Commands of workflow tasks that tests answer by hand."""

from datetime import timedelta
from typing import Any

from tests.features.worlds import failure, values
from wfcore.protocol import commands
from wfcore.protocol.common import ActivityType, RetryPolicy, TaskQueue, WorkflowType


def activity(
    activity_id: str = "a", *given: Any, seconds: float = 0, queue: str = "", **options: Any
) -> commands.ScheduleActivityTask:
    """Schedule an activity; `seconds` is its start-to-close timeout, by default a minute."""
    if not any(name.endswith("_to_close_timeout") for name in options):
        options["start_to_close_timeout"] = timedelta(seconds=seconds or 60)
    return commands.ScheduleActivityTask(
        activity_id=activity_id,
        activity_type=ActivityType(name="charge"),
        task_queue=TaskQueue(name=queue) if queue else None,
        input=values(*given) if given else None,
        **options,
    )


def retries(
    maximum: int = 0, *, first: float = 0, cap: float = 0, types: tuple[str, ...] = ()
) -> RetryPolicy:
    """A retry policy; what is 0 is left to its default."""
    return RetryPolicy(
        initial_interval=timedelta(seconds=first) if first else None,
        maximum_interval=timedelta(seconds=cap) if cap else None,
        maximum_attempts=maximum,
        non_retryable_error_types=types,
    )


def cancel_activity(scheduled_event_id: int) -> commands.RequestCancelActivityTask:
    """Ask an activity to end."""
    return commands.RequestCancelActivityTask(scheduled_event_id=scheduled_event_id)


def timer(seconds: float, timer_id: str = "t") -> commands.StartTimer:
    """Start a timer."""
    return commands.StartTimer(timer_id=timer_id, start_to_fire_timeout=timedelta(seconds=seconds))


def complete(*result: Any) -> commands.CompleteWorkflowExecution:
    """Complete the run."""
    return commands.CompleteWorkflowExecution(result=values(*result) if result else None)


def fail(message: str = "no", **options: Any) -> commands.FailWorkflowExecution:
    """Fail the run."""
    return commands.FailWorkflowExecution(failure=failure(message, **options))


def cancel() -> commands.CancelWorkflowExecution:
    """End the run as cancelled."""
    return commands.CancelWorkflowExecution()


def go_on(*given: Any, **options: Any) -> commands.ContinueAsNewWorkflowExecution:
    """Continue as new with this input."""
    options = {"workflow_type": WorkflowType(name="Ships"), **options}
    return commands.ContinueAsNewWorkflowExecution(
        input=values(*given) if given else None, **options
    )
