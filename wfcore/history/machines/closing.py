"""How a run ends: by its own command, by a call, by time, or by a limit. Nothing is written behind
the closing event.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from wfcore.history import buffer
from wfcore.history.deadlines import run_ends_at
from wfcore.history.faults import BadCommandError
from wfcore.history.machines import chain, delivery, update, workflow_task
from wfcore.history.requests import ENGINE_IDENTITY, TerminateRun
from wfcore.history.sizes import failure_bytes, payloads_bytes
from wfcore.history.step import Step
from wfcore.protocol import commands, events
from wfcore.protocol.commands import Command
from wfcore.protocol.enums import RetryState, TimeoutType
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause
from wfcore.protocol.failures import Failure, TimeoutFailureInfo
from wfcore.protocol.message import Message

#: Reasons of ends that the engine decides, as Temporal words them.
HISTORY_COUNT_EXCEEDED = "Workflow history count exceeds limit."
HISTORY_SIZE_EXCEEDED = "Workflow history size exceeds limit."
NO_REASON = "terminated by user via frontend"


def complete(
    step: Step, command: Command, attributes: commands.CompleteWorkflowExecution, completed: int
) -> None:
    """COMPLETE_WORKFLOW_EXECUTION; a cron schedule has another run follow."""
    _check_unhandled(step, completed)
    if payloads_bytes(attributes.result) > step.limits.blob_bytes:
        # the server uses the cause of another command here
        raise BadCommandError(
            Cause.BAD_SCHEDULE_ACTIVITY_ATTRIBUTES,
            "CompleteWorkflowExecutionCommandAttributes.Result exceeds size limit.",
            terminates=True,
        )
    wait = chain.cron_wait(step)
    _close(
        step,
        command,
        events.WorkflowExecutionCompleted(
            result=attributes.result,
            workflow_task_completed_event_id=completed,
            new_execution_run_id="" if wait is None else step.next_run_id,
        ),
    )
    if wait is not None:
        chain.cron(step, wait, result=attributes.result)


def fail(
    step: Step, command: Command, attributes: commands.FailWorkflowExecution, completed: int
) -> None:
    """FAIL_WORKFLOW_EXECUTION; the retry policy may have another run follow, then the schedule."""
    _check_unhandled(step, completed)
    failure = attributes.failure
    cause = Cause.BAD_FAIL_WORKFLOW_EXECUTION_ATTRIBUTES
    if failure is None:
        raise BadCommandError(cause, "Failure is not set on FailWorkflowExecutionCommand.")
    if failure_bytes(failure) > step.limits.blob_bytes:
        raise BadCommandError(
            cause,
            "FailWorkflowExecutionCommandAttributes.Failure exceeds size limit.",
            terminates=True,
        )
    state, follow = _what_follows(step, failure)
    _close(
        step,
        command,
        events.WorkflowExecutionFailed(
            failure=failure,
            retry_state=state,
            workflow_task_completed_event_id=completed,
            new_execution_run_id=step.next_run_id if follow else "",
        ),
    )
    if follow:
        follow()


def cancel(
    step: Step, command: Command, attributes: commands.CancelWorkflowExecution, completed: int
) -> None:
    """CANCEL_WORKFLOW_EXECUTION; no cancel need have been requested."""
    _check_unhandled(step, completed)
    _close(
        step,
        command,
        events.WorkflowExecutionCanceled(
            workflow_task_completed_event_id=completed, details=attributes.details
        ),
    )


def continue_as_new(
    step: Step,
    command: Command,
    attributes: commands.ContinueAsNewWorkflowExecution,
    completed: int,
) -> None:
    """CONTINUE_AS_NEW_WORKFLOW_EXECUTION."""
    _check_unhandled(step, completed)
    chain.check_continue_as_new(step, attributes)
    closing = chain.continued_as_new(step, attributes, completed)
    _close(step, command, closing)
    chain.continue_as_new(step, attributes, closing)


def terminate(step: Step, request: TerminateRun) -> int:
    """End the run at once, with what waits for it written first."""
    workflow_task.force_close(step)
    return _end(
        step,
        events.WorkflowExecutionTerminated(
            reason=request.reason or NO_REASON,
            details=request.details,
            identity=request.identity,
        ),
        request=request,
    )


def give_up(step: Step, reason: str) -> None:
    """The engine terminates a run that exceeded a limit."""
    terminate(step, TerminateRun(reason=reason, identity=ENGINE_IDENTITY))


def has_timed_out(step: Step) -> bool:
    """Whether the run or its chain has reached its end."""
    return any(end is not None and end <= step.now for end in _ends(step))


def time_out(step: Step) -> None:
    """The run or its chain took too long. No code of the workflow runs; a run that reached only
    its own end may be followed by another."""
    chain_end, _ = _ends(step)
    failure = Failure(
        message="workflow timeout",
        source="Server",
        timeout_failure_info=TimeoutFailureInfo(timeout_type=TimeoutType.START_TO_CLOSE),
    )
    state, follow = RetryState.TIMEOUT, None
    if chain_end is None or step.now < chain_end:
        state, follow = _what_follows(step, failure)
    workflow_task.force_close(step)
    _end(
        step,
        events.WorkflowExecutionTimedOut(
            retry_state=state, new_execution_run_id=step.next_run_id if follow else ""
        ),
    )
    if follow:
        follow()


def _what_follows(step: Step, failure: Failure) -> tuple[RetryState, Callable[[], None] | None]:
    """What is said of a retry, and how the run that follows a failed one is made."""
    state, wait = chain.retry_state(step, failure)
    if state is RetryState.IN_PROGRESS:
        return state, partial(chain.retry, step, failure, wait)
    next_time = chain.cron_wait(step)
    if next_time is None:
        return state, None
    return state, partial(chain.cron, step, next_time, failure=failure)


def _ends(step: Step) -> tuple[datetime | None, datetime | None]:
    return step.recorded.expiration_time, run_ends_at(step.recorded)


def _check_unhandled(step: Step, completed: int) -> None:
    if buffer.holds_facts(step, completed):
        raise BadCommandError(Cause.UNHANDLED_COMMAND)


def _close(step: Step, command: Command, attributes: Message) -> None:
    """A close by command: what the same answer would have written later is dropped."""
    step.late = []
    step.append(
        attributes,
        user_metadata=command.user_metadata,
        markers=command.event_group_markers,
    )
    _ended(step)


def _end(step: Step, attributes: Message, request: TerminateRun | None = None) -> int:
    event_id = step.append(attributes, links=request.links if request else ())
    _ended(step)
    return event_id


def _ended(step: Step) -> None:
    step.change.closed = True
    update.end_all(step)
    step.volatile.task = None
    step.volatile.closing = False
    step.announce = False
    delivery.close(step)
