"""Child workflows, as their parent sees them: asked for, started or refused, ended.

A child runs its first workflow task only when its parent has recorded that it started. What the
parent records is made here from the parent's own event and the child's.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from wfcore.history import search_attributes
from wfcore.history.activity_options import inherited_priority, priority_fault
from wfcore.history.faults import BadCommandError
from wfcore.history.machines import delivery
from wfcore.history.machines.chain import queue_fault
from wfcore.history.machines.workflow import run_timeouts
from wfcore.history.requests import Delivered
from wfcore.history.retries import check_policy, fill_policy
from wfcore.history.sizes import memo_bytes, payloads_bytes
from wfcore.history.state import DeliveryKind, InboxItem, Recorded
from wfcore.history.step import CHILD_ENDS, Step
from wfcore.protocol import commands, events
from wfcore.protocol.commands import Command
from wfcore.protocol.common import TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import ParentClosePolicy, TaskQueueKind, WorkflowIdReusePolicy
from wfcore.protocol.enums import StartChildWorkflowExecutionFailedCause as FailedCause
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import SearchAttributes
from wfcore.protocol.rpc.workflows import StartWorkflowExecutionRequest
from wfcore.schedules import cron

_ZERO = timedelta(0)
_BAD = Cause.BAD_START_CHILD_EXECUTION_ATTRIBUTES
_COMMAND = "StartChildWorkflowExecutionCommand"
#: What the engine refuses of a command that names another namespace than the run's own.
CROSS_NAMESPACE = "cross namespace commands are not allowed"


# ---- the command


def start(
    step: Step,
    command: Command,
    attributes: commands.StartChildWorkflowExecution,
    completed: int,
) -> None:
    """START_CHILD_WORKFLOW_EXECUTION: the child is made when this step is committed."""
    attributes = msgspec.structs.replace(
        attributes,
        task_queue=TaskQueue(
            name=(attributes.task_queue.name if attributes.task_queue else "")
            or step.recorded.task_queue,
            kind=TaskQueueKind.NORMAL,
        ),
    )
    _check(step, attributes)
    pending, limit = len(step.recorded.children), step.limits.pending_children
    if pending >= limit:
        raise BadCommandError(
            Cause.PENDING_CHILD_WORKFLOWS_LIMIT_EXCEEDED,
            f"the number of pending child workflow executions, {pending}, has reached the "
            f"per-workflow limit of {limit}",
        )
    event_id = step.append(
        _initiated(step, attributes, completed),
        user_metadata=command.user_metadata,
        markers=command.event_group_markers,
    )
    delivery.add(step, DeliveryKind.START_CHILD, event_id)


def _initiated(
    step: Step, attributes: commands.StartChildWorkflowExecution, completed: int
) -> events.StartChildWorkflowExecutionInitiated:
    execution, run, task = run_timeouts(
        attributes.workflow_execution_timeout,
        attributes.workflow_run_timeout,
        attributes.workflow_task_timeout,
        step.limits,
    )
    policy, memo = attributes.retry_policy, attributes.memo
    return events.StartChildWorkflowExecutionInitiated(
        namespace=step.recorded.namespace,
        namespace_id=step.namespace_id,
        workflow_id=attributes.workflow_id,
        workflow_type=attributes.workflow_type,
        task_queue=attributes.task_queue,
        input=attributes.input,
        workflow_execution_timeout=execution,
        workflow_run_timeout=run or _ZERO,
        workflow_task_timeout=task,
        parent_close_policy=attributes.parent_close_policy or ParentClosePolicy.TERMINATE,
        control=attributes.control,
        workflow_task_completed_event_id=completed,
        workflow_id_reuse_policy=attributes.workflow_id_reuse_policy
        or WorkflowIdReusePolicy.ALLOW_DUPLICATE,
        retry_policy=fill_policy(policy) if policy else None,
        cron_schedule=attributes.cron_schedule,
        header=attributes.header,
        memo=memo if memo and memo.fields else None,
        search_attributes=_typed(step, attributes.search_attributes),
        inherit_build_id=attributes.inherit_build_id,
        priority=attributes.priority,
        versioning_override=attributes.versioning_override,
    )


def _typed(step: Step, given: SearchAttributes | None) -> SearchAttributes | None:
    if given is None or not given.indexed_fields:
        return None
    return search_attributes.merged(None, search_attributes.typed(given, step.limits))


def _check(step: Step, attributes: commands.StartChildWorkflowExecution) -> None:
    namespace = step.recorded.namespace
    if attributes.namespace not in ("", namespace):
        raise BadCommandError(_BAD, CROSS_NAMESPACE)
    kind = attributes.workflow_type.name if attributes.workflow_type else ""
    _check_names(attributes.workflow_id, kind, namespace, step.limits.id_bytes)
    names = f"WorkflowId={attributes.workflow_id} WorkflowType={kind} Namespace={namespace}"
    for name, duration in (
        ("WorkflowExecutionTimeout", attributes.workflow_execution_timeout),
        ("WorkflowRunTimeout", attributes.workflow_run_timeout),
        ("WorkflowTaskTimeout", attributes.workflow_task_timeout),
    ):
        if duration is not None and duration < _ZERO:
            raise BadCommandError(_BAD, f"Invalid {name} on {_COMMAND}: negative duration. {names}")
    if fault := check_policy(attributes.retry_policy):
        raise BadCommandError(_BAD, f"invalid WorkflowRetryPolicy on {_COMMAND}: {fault}. {names}")
    if attributes.cron_schedule:
        try:
            cron.parse(attributes.cron_schedule)
        except cron.CronError as error:
            text = f"invalid CronSchedule on {_COMMAND}: {error}. {names}"
            raise BadCommandError(_BAD, text) from error
    queue = attributes.task_queue.name if attributes.task_queue else ""
    if fault := queue_fault(queue, step.limits.id_bytes):
        raise BadCommandError(
            _BAD,
            f"invalid TaskQueue on {_COMMAND}: {fault}. {names} "
            f'TaskQueue=name:"{queue}"  kind:TASK_QUEUE_KIND_NORMAL',
        )
    if fault := priority_fault(attributes.priority):
        raise BadCommandError(_BAD, f"invalid priorities: {fault}")
    _check_data(step, attributes)


def _check_names(workflow_id: str, kind: str, namespace: str, limit: int) -> None:
    if not workflow_id:
        raise BadCommandError(
            _BAD,
            f"Required field WorkflowId is not set on {_COMMAND}. WorkflowType={kind} "
            f"Namespace={namespace}",
        )
    if not kind:
        raise BadCommandError(
            _BAD,
            f"Required field WorkflowType is not set on {_COMMAND}. WorkflowId={workflow_id} "
            f"Namespace={namespace}",
        )
    if (length := len(workflow_id.encode())) > limit:
        raise BadCommandError(
            _BAD,
            f"WorkflowId on {_COMMAND} exceeds length limit. WorkflowId={workflow_id} "
            f"Length={length} Limit={limit} WorkflowType={kind} Namespace={namespace}",
        )
    if (length := len(kind.encode())) > limit:
        raise BadCommandError(
            _BAD,
            f"WorkflowType on {_COMMAND} exceeds length limit. WorkflowId={workflow_id} "
            f"WorkflowType={kind} Length={length} Limit={limit} Namespace={namespace}",
        )


def _check_data(step: Step, attributes: commands.StartChildWorkflowExecution) -> None:
    limits = step.limits
    if (given := attributes.search_attributes) is not None:
        bad = Cause.BAD_SEARCH_ATTRIBUTES
        if fault := search_attributes.name_fault(given, step.recorded.namespace, limits):
            raise BadCommandError(bad, fault)
        if fault := search_attributes.size_fault(given, limits):
            raise BadCommandError(bad, fault, terminates=True)
    if payloads_bytes(attributes.input) > limits.blob_bytes:
        raise BadCommandError(
            _BAD,
            "StartChildWorkflowExecutionCommandAttributes. Input exceeds size limit.",
            terminates=True,
        )
    if memo_bytes(attributes.memo) > limits.memo_bytes:
        raise BadCommandError(
            _BAD,
            "StartChildWorkflowExecutionCommandAttributes.Memo exceeds size limit.",
            terminates=True,
        )


# ---- the start, as the parent's event asks for it


def start_request(parent: Recorded, initiated: HistoryEvent) -> StartWorkflowExecutionRequest:
    """The start of a child; the same one each time."""
    asked = _asked(initiated)
    return StartWorkflowExecutionRequest(
        namespace=parent.namespace,
        workflow_id=asked.workflow_id,
        workflow_type=asked.workflow_type,
        task_queue=asked.task_queue,
        input=asked.input,
        workflow_execution_timeout=asked.workflow_execution_timeout,
        workflow_run_timeout=asked.workflow_run_timeout,
        workflow_task_timeout=asked.workflow_task_timeout,
        request_id=delivery.request_id(parent.run_id, initiated.event_id),
        workflow_id_reuse_policy=asked.workflow_id_reuse_policy,
        retry_policy=asked.retry_policy,
        cron_schedule=asked.cron_schedule,
        memo=asked.memo,
        search_attributes=asked.search_attributes,
        header=asked.header,
        user_metadata=initiated.user_metadata,
        priority=inherited_priority(asked.priority, parent.priority),
        versioning_override=asked.versioning_override,
    )


def started(initiated: HistoryEvent, run_id: str) -> events.ChildWorkflowExecutionStarted:
    """The fact that the child exists."""
    asked = _asked(initiated)
    return events.ChildWorkflowExecutionStarted(
        namespace=asked.namespace,
        namespace_id=asked.namespace_id,
        initiated_event_id=initiated.event_id,
        workflow_execution=WorkflowExecution(workflow_id=asked.workflow_id, run_id=run_id),
        workflow_type=asked.workflow_type,
        header=asked.header,
    )


def refused(initiated: HistoryEvent) -> events.StartChildWorkflowExecutionFailed:
    """The fact that there will be no child, since its workflow id is taken."""
    asked = _asked(initiated)
    return events.StartChildWorkflowExecutionFailed(
        namespace=asked.namespace,
        namespace_id=asked.namespace_id,
        workflow_id=asked.workflow_id,
        workflow_type=asked.workflow_type,
        cause=FailedCause.WORKFLOW_ALREADY_EXISTS,
        initiated_event_id=initiated.event_id,
    )


def _asked(event: HistoryEvent) -> events.StartChildWorkflowExecutionInitiated:
    if not isinstance(event.attributes, events.StartChildWorkflowExecutionInitiated):
        raise TypeError(f"event {event.event_id} asks for no child but is {event.event_type.name}")
    return event.attributes


# ---- the end, as the child tells it


def report(
    child: Recorded, closing: HistoryEvent, begun: Message | None, now: datetime
) -> InboxItem:
    """What the parent records, now, of a child that has ended.

    `begun` is the fact that it exists, for a parent that has not recorded that yet.
    """
    ended: Any = closing.attributes
    kind, fields = _ENDS[type(ended)]
    return InboxItem(
        event_time=now,
        attributes=kind(
            namespace=child.parent_namespace,
            namespace_id=child.parent_namespace_id,
            workflow_execution=WorkflowExecution(
                workflow_id=child.workflow_id, run_id=child.run_id
            ),
            workflow_type=WorkflowType(name=child.workflow_type),
            initiated_event_id=child.parent_initiated_event_id,
            **{field: getattr(ended, field) for field in fields},
        ),
        started=begun,
    )


def is_news(step: Step, done: Delivered) -> bool:
    """Whether a fact about another workflow tells the history something: a child's start doesn't
    when a report of its end has brought it along.
    """
    if done.kind is not DeliveryKind.START_CHILD:
        return True
    known = step.recorded.children.get(done.event_id)
    return known is not None and not known.started_event_id


def is_report(item: InboxItem) -> bool:
    """Whether a fact is that a child has ended."""
    return isinstance(item.attributes, CHILD_ENDS)


def is_refusal(item: InboxItem) -> bool:
    """Whether a fact is that there will be no child."""
    return isinstance(item.attributes, events.StartChildWorkflowExecutionFailed)


def initiated_by(item: InboxItem) -> int:
    """The parent's event that asked for the child of which a fact tells."""
    return getattr(item.attributes, "initiated_event_id", 0)


#: The child's closing event, what its parent writes, and the fields that are handed on.
_ENDS: dict[type[Message], tuple[Callable[..., Message], tuple[str, ...]]] = {
    events.WorkflowExecutionCompleted: (events.ChildWorkflowExecutionCompleted, ("result",)),
    events.WorkflowExecutionFailed: (
        events.ChildWorkflowExecutionFailed,
        ("failure", "retry_state"),
    ),
    events.WorkflowExecutionCanceled: (events.ChildWorkflowExecutionCanceled, ("details",)),
    events.WorkflowExecutionTimedOut: (events.ChildWorkflowExecutionTimedOut, ("retry_state",)),
    events.WorkflowExecutionTerminated: (events.ChildWorkflowExecutionTerminated, ()),
}
