"""Runs that follow a run: continue-as-new, retry, cron. The next run is made in the same change."""

from datetime import timedelta

import msgspec

from wfcore.history import search_attributes
from wfcore.history.faults import BadCommandError
from wfcore.history.machines import workflow
from wfcore.history.outcome import finish
from wfcore.history.retries import LONGEST_WAIT, backoff, check_policy, decide, fill_policy
from wfcore.history.sizes import memo_bytes, payloads_bytes
from wfcore.history.state import Volatile
from wfcore.history.step import Step
from wfcore.protocol import commands, events
from wfcore.protocol.common import TaskQueue, WorkflowType
from wfcore.protocol.enums import ContinueAsNewInitiator, RetryState, TaskQueueKind
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause
from wfcore.protocol.failures import Failure
from wfcore.protocol.payloads import Payloads

_ZERO = timedelta(0)
_COMMAND = "ContinueAsNewWorkflowExecutionCommand"
#: Queues whose names begin so belong to the engine.
RESERVED_QUEUE_PREFIX = "/_sys/"


def retry_state(step: Step, failure: Failure) -> tuple[RetryState, timedelta]:
    """Whether a run that failed so is retried, and after what wait."""
    recorded = step.recorded
    policy = recorded.retry_policy
    if policy is None:
        return RetryState.RETRY_POLICY_NOT_SET, _ZERO
    wait = backoff(policy, recorded.attempt)
    application = failure.application_failure_info
    if application is not None and application.next_retry_delay is not None:
        # zero or less reads as "no interval": the longest is taken; a longer one is cut
        delay = application.next_retry_delay
        maximum = min(policy.maximum_interval or wait, LONGEST_WAIT)
        wait = min(delay, maximum) if delay > _ZERO else maximum
    deadline = recorded.expiration_time
    return decide(policy, recorded.attempt, failure, wait, step.now, deadline), wait


def retry(step: Step, failure: Failure, wait: timedelta) -> None:
    """Make the run that repeats this one."""
    _follow(
        step,
        msgspec.structs.replace(
            _first_event(step),
            continued_execution_run_id=step.recorded.run_id,
            initiator=ContinueAsNewInitiator.RETRY,
            continued_failure=failure,
            attempt=step.recorded.attempt + 1,
            original_execution_run_id=step.next_run_id,
            first_workflow_task_backoff=wait,
            identity="",
            eager_execution_accepted=False,
            completion_callbacks=step.recorded.completion_callbacks,
            priority=step.recorded.priority,
        ),
    )


def cron_wait(step: Step) -> timedelta | None:
    """How long the next run of a cron schedule waits if this one ends now; None: none follows."""
    recorded = step.recorded
    if not recorded.cron_schedule:
        return None
    return workflow.cron_wait(recorded.cron_schedule, recorded.execution_time, step.now)


def cron(
    step: Step, wait: timedelta, *, result: Payloads | None = None, failure: Failure | None = None
) -> None:
    """Make the next run of a cron schedule; one that failed leaves the result before it."""
    first = _first_event(step)
    _follow(
        step,
        msgspec.structs.replace(
            first,
            continued_execution_run_id=step.recorded.run_id,
            initiator=ContinueAsNewInitiator.CRON_SCHEDULE,
            continued_failure=failure,
            last_completion_result=first.last_completion_result if failure else result,
            attempt=1,
            original_execution_run_id=step.next_run_id,
            first_workflow_task_backoff=wait,
            identity="",
            eager_execution_accepted=False,
            completion_callbacks=(),
            priority=step.recorded.priority,
        ),
    )


def continued_as_new(
    step: Step, command: commands.ContinueAsNewWorkflowExecution, completed: int
) -> events.WorkflowExecutionContinuedAsNew:
    """The closing event of a run that continues as new, with what the next run takes over."""
    recorded = step.recorded
    kind = command.workflow_type.name if command.workflow_type else ""
    queue = command.task_queue.name if command.task_queue else ""
    given = command.workflow_run_timeout
    _, run, task = workflow.run_timeouts(
        recorded.execution_timeout,
        given or recorded.run_timeout,
        command.workflow_task_timeout or recorded.workflow_task_timeout,
        step.limits,
    )
    return events.WorkflowExecutionContinuedAsNew(
        new_execution_run_id=step.next_run_id,
        workflow_type=WorkflowType(name=kind or recorded.workflow_type),
        task_queue=TaskQueue(name=queue or recorded.task_queue, kind=TaskQueueKind.NORMAL),
        input=command.input,
        # an explicit zero is repeated
        workflow_run_timeout=run if run or given is None else _ZERO,
        workflow_task_timeout=task,
        workflow_task_completed_event_id=completed,
        last_completion_result=command.last_completion_result,
        header=command.header if command.header and command.header.fields else None,
        memo=command.memo if command.memo and command.memo.fields else None,
        search_attributes=command.search_attributes
        if command.search_attributes and command.search_attributes.indexed_fields
        else None,
        inherit_build_id=command.inherit_build_id,
        initial_versioning_behavior=command.initial_versioning_behavior,
    )


def continue_as_new(
    step: Step,
    command: commands.ContinueAsNewWorkflowExecution,
    closing: events.WorkflowExecutionContinuedAsNew,
) -> None:
    """Make the run that continues this one; a run of less than a second is followed slowly.

    As on Temporal's server its age counts from when its first task could begin, so that a run that
    had to wait itself is followed as slowly.
    """
    recorded = step.recorded
    age = max(step.now - recorded.execution_time, _ZERO)
    wait = max(
        min(command.backoff_start_interval or _ZERO, step.limits.duration),
        step.limits.continue_as_new_interval - age,
    )
    policy = command.retry_policy
    _follow(
        step,
        events.WorkflowExecutionStarted(
            workflow_type=closing.workflow_type,
            workflow_id=recorded.workflow_id,
            task_queue=closing.task_queue,
            input=closing.input,
            workflow_execution_timeout=recorded.execution_timeout,
            workflow_run_timeout=closing.workflow_run_timeout,
            workflow_task_timeout=closing.workflow_task_timeout,
            workflow_execution_expiration_time=recorded.expiration_time,
            continued_execution_run_id=recorded.run_id,
            initiator=ContinueAsNewInitiator.WORKFLOW,
            last_completion_result=closing.last_completion_result,
            original_execution_run_id=step.next_run_id,
            first_execution_run_id=recorded.first_execution_run_id,
            retry_policy=fill_policy(policy) if policy else None,
            attempt=1,
            cron_schedule=command.cron_schedule,
            first_workflow_task_backoff=wait if wait > _ZERO else None,
            memo=closing.memo,
            search_attributes=closing.search_attributes,
            header=closing.header,
            completion_callbacks=recorded.completion_callbacks,
            priority=recorded.priority,
            parent_workflow_namespace=recorded.parent_namespace,
            parent_workflow_namespace_id=recorded.parent_namespace_id,
            parent_workflow_execution=recorded.parent,
            parent_initiated_event_id=recorded.parent_initiated_event_id,
            root_workflow_execution=recorded.root,
        ),
    )


def check_continue_as_new(step: Step, command: commands.ContinueAsNewWorkflowExecution) -> None:
    """Refuse a command that can't be carried out."""
    cause = Cause.BAD_CONTINUE_AS_NEW_ATTRIBUTES
    recorded = step.recorded
    kind = (command.workflow_type.name if command.workflow_type else "") or recorded.workflow_type
    queue = (command.task_queue.name if command.task_queue else "") or recorded.task_queue
    names = f'WorkflowType={kind} TaskQueue=name:"{queue}"  kind:TASK_QUEUE_KIND_NORMAL'
    length = len(kind.encode())
    if length > step.limits.id_bytes:
        raise BadCommandError(
            cause,
            f"WorkflowType on {_COMMAND} exceeds length limit. WorkflowType={kind} "
            f"Length={length} Limit={step.limits.id_bytes}",
        )
    if fault := queue_fault(queue, step.limits.id_bytes):
        raise BadCommandError(cause, f"error validating {_COMMAND} TaskQueue: {fault}. {names}")
    for name, duration in (
        ("WorkflowRunTimeout", command.workflow_run_timeout),
        ("WorkflowTaskTimeout", command.workflow_task_timeout),
        ("BackoffStartInterval", command.backoff_start_interval),
    ):
        if duration is not None and duration < _ZERO:
            raise BadCommandError(
                cause, f"Invalid {name} on {_COMMAND}: negative duration. {names}"
            )
    if fault := check_policy(command.retry_policy):
        raise BadCommandError(cause, f"invalid WorkflowRetryPolicy on {_COMMAND}: {fault}. {names}")
    attributes = command.search_attributes
    if attributes is not None:
        bad = Cause.BAD_SEARCH_ATTRIBUTES
        if fault := search_attributes.name_fault(attributes, recorded.namespace, step.limits):
            raise BadCommandError(bad, fault)
        if fault := search_attributes.size_fault(attributes, step.limits):
            raise BadCommandError(bad, fault, terminates=True)
    if payloads_bytes(command.input) > step.limits.blob_bytes:
        raise BadCommandError(
            cause, f"{_COMMAND}Attributes. Input exceeds size limit.", terminates=True
        )
    if memo_bytes(command.memo) > step.limits.memo_bytes:
        raise BadCommandError(
            cause, f"{_COMMAND}Attributes. Memo exceeds size limit.", terminates=True
        )


def queue_fault(name: str, id_bytes: int) -> str:
    """What is wrong with the name of a task queue; empty when it is good."""
    if not name:
        return "missing task queue name"
    if len(name.encode()) > id_bytes:
        return "taskQueue length exceeds limit"
    if name.startswith(RESERVED_QUEUE_PREFIX):
        return f"task queue name cannot start with reserved prefix {RESERVED_QUEUE_PREFIX}"
    return ""


def _first_event(step: Step) -> events.WorkflowExecutionStarted:
    if step.change.start_event is None:
        raise LookupError("the next run repeats event 1: load what transition.needs() asks for")
    return step.change.start_event


def _follow(step: Step, attributes: events.WorkflowExecutionStarted) -> None:
    if not step.next_run_id:
        raise LookupError("another run follows: the request must bring next_run_id")
    following = workflow.begin(
        step.now,
        attributes,
        step.limits,
        namespace=step.recorded.namespace,
        run_id=step.next_run_id,
        volatile=Volatile(waits_for_parent=step.volatile.waits_for_parent),
    )
    workflow.first_task(following)
    finish(following)
    step.change.next_run = following.change
