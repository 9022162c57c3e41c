"""Signals and cancel requests to other workflows: asked for, delivered or not."""

import re
from dataclasses import dataclass

from wfcore.history.faults import BadCommandError
from wfcore.history.limits import Limits
from wfcore.history.machines import delivery
from wfcore.history.machines.child import CROSS_NAMESPACE
from wfcore.history.requests import ENGINE_IDENTITY, RequestCancelRun, SignalRun
from wfcore.history.sizes import payloads_bytes
from wfcore.history.state import DeliveryKind, Recorded
from wfcore.history.step import Step
from wfcore.protocol import commands, events
from wfcore.protocol.commands import Command
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import CancelExternalWorkflowExecutionFailedCause as CancelFailed
from wfcore.protocol.enums import SignalExternalWorkflowExecutionFailedCause as SignalFailed
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause
from wfcore.protocol.events import HistoryEvent

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_BAD_SIGNAL = Cause.BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES
_BAD_CANCEL = Cause.BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES
_SIGNAL = "SignalExternalWorkflowExecutionCommand"
_CANCEL = "RequestCancelExternalWorkflowExecutionCommand"


# ---- commands


def signal(
    step: Step,
    command: Command,
    attributes: commands.SignalExternalWorkflowExecution,
    completed: int,
) -> None:
    """SIGNAL_EXTERNAL_WORKFLOW_EXECUTION."""
    _check_signal(step, attributes)
    pending, limit = len(step.recorded.external_signals), step.limits.pending_signals
    if pending >= limit:
        raise BadCommandError(
            Cause.PENDING_SIGNALS_LIMIT_EXCEEDED,
            f"the number of pending signals to external workflows, {pending}, has reached the "
            f"per-workflow limit of {limit}",
        )
    event_id = step.append(
        events.SignalExternalWorkflowExecutionInitiated(
            workflow_task_completed_event_id=completed,
            namespace=attributes.namespace,
            namespace_id=step.namespace_id,
            workflow_execution=attributes.execution,
            signal_name=attributes.signal_name,
            input=attributes.input,
            control=attributes.control,
            child_workflow_only=attributes.child_workflow_only,
            header=attributes.header,
        ),
        user_metadata=command.user_metadata,
        markers=command.event_group_markers,
    )
    delivery.add(step, DeliveryKind.SIGNAL, event_id)


def request_cancel(
    step: Step,
    command: Command,
    attributes: commands.RequestCancelExternalWorkflowExecution,
    completed: int,
) -> None:
    """REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION."""
    _check_cancel(step, attributes, completed)
    pending, limit = len(step.recorded.external_cancels), step.limits.pending_cancels
    if pending >= limit:
        raise BadCommandError(
            Cause.PENDING_REQUEST_CANCEL_LIMIT_EXCEEDED,
            f"the number of pending requests to cancel external workflows, {pending}, has reached "
            f"the per-workflow limit of {limit}",
        )
    event_id = step.append(
        events.RequestCancelExternalWorkflowExecutionInitiated(
            workflow_task_completed_event_id=completed,
            namespace=attributes.namespace,
            namespace_id=step.namespace_id,
            workflow_execution=WorkflowExecution(
                workflow_id=attributes.workflow_id, run_id=attributes.run_id
            ),
            control=attributes.control,
            child_workflow_only=attributes.child_workflow_only,
            reason=attributes.reason,
        ),
        user_metadata=command.user_metadata,
        markers=command.event_group_markers,
    )
    delivery.add(step, DeliveryKind.CANCEL, event_id)


def _check_signal(step: Step, attributes: commands.SignalExternalWorkflowExecution) -> None:
    if attributes.namespace not in ("", step.recorded.namespace):
        raise BadCommandError(_BAD_SIGNAL, CROSS_NAMESPACE)
    target = attributes.execution
    if target is None:
        raise BadCommandError(_BAD_SIGNAL, f"Execution is not set on {_SIGNAL}.")
    namespace, name = f"Namespace={attributes.namespace}", f"SignalName={attributes.signal_name}"
    workflow_id, run_id = f"WorkflowId={target.workflow_id}", f"RunId={target.run_id}"
    if not target.workflow_id:
        raise BadCommandError(
            _BAD_SIGNAL, f"WorkflowId is not set on {_SIGNAL}. {namespace} {run_id} {name}"
        )
    if fault := _too_long(target.workflow_id, _SIGNAL, step.limits):
        raise BadCommandError(_BAD_SIGNAL, f"{fault} {namespace} {run_id} {name}")
    if target.run_id and _UUID.fullmatch(target.run_id) is None:
        raise BadCommandError(
            _BAD_SIGNAL,
            f"Invalid RunId set on {_SIGNAL}. {workflow_id} {namespace} {run_id} {name}",
        )
    if not attributes.signal_name:
        raise BadCommandError(
            _BAD_SIGNAL, f"SignalName is not set on {_SIGNAL}. {workflow_id} {namespace} {run_id}"
        )
    if payloads_bytes(attributes.input) > step.limits.blob_bytes:
        raise BadCommandError(
            _BAD_SIGNAL,
            "SignalExternalWorkflowExecutionCommandAttributes.Input exceeds size limit.",
            terminates=True,
        )


def _check_cancel(
    step: Step, attributes: commands.RequestCancelExternalWorkflowExecution, completed: int
) -> None:
    recorded = step.recorded
    if attributes.namespace not in ("", recorded.namespace):
        raise BadCommandError(_BAD_CANCEL, CROSS_NAMESPACE)
    workflow_id = f"WorkflowId={attributes.workflow_id}"
    rest = f"RunId={attributes.run_id} Namespace={attributes.namespace}"
    if not attributes.workflow_id:
        raise BadCommandError(
            _BAD_CANCEL,
            f"WorkflowId is not set on {_CANCEL}. Namespace={attributes.namespace} "
            f"RunId={attributes.run_id}",
        )
    if fault := _too_long(attributes.workflow_id, _CANCEL, step.limits):
        raise BadCommandError(_BAD_CANCEL, f"{fault} {rest}")
    if attributes.run_id and _UUID.fullmatch(attributes.run_id) is None:
        raise BadCommandError(_BAD_CANCEL, f"Invalid RunId set on {_CANCEL}. {workflow_id} {rest}")
    begun = (child.workflow_id for at, child in recorded.children.items() if at > completed)
    if attributes.workflow_id in begun:
        raise BadCommandError(
            _BAD_CANCEL,
            "Start and RequestCancel for child workflow is not allowed in same workflow task. "
            f"{workflow_id} {rest}",
        )


def _too_long(workflow_id: str, command: str, limits: Limits) -> str:
    length = len(workflow_id.encode())
    if length <= limits.id_bytes:
        return ""
    return (
        f"WorkflowId on {command} exceeds length limit. WorkflowId={workflow_id} "
        f"Length={length} Limit={limits.id_bytes}"
    )


# ---- what the other run gets


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Whom a signal or a cancel request is for."""

    execution: WorkflowExecution
    #: it must be a child of the sender
    only_child: bool


def target_of(initiated: HistoryEvent) -> Target:
    """Whom an event of the sender means."""
    match initiated.attributes:
        case (
            events.SignalExternalWorkflowExecutionInitiated()
            | events.RequestCancelExternalWorkflowExecutionInitiated() as asked
        ):
            return Target(
                execution=asked.workflow_execution or WorkflowExecution(),
                only_child=asked.child_workflow_only,
            )
    raise TypeError(f"event {initiated.event_id} means nobody: it is {initiated.event_type.name}")


def signal_of(sender: Recorded, initiated: HistoryEvent) -> SignalRun:
    """The signal that an event of the sender asks for."""
    asked = _asked_signal(initiated)
    return SignalRun(
        signal_name=asked.signal_name,
        input=asked.input,
        header=asked.header,
        identity=ENGINE_IDENTITY,
        request_id=delivery.request_id(sender.run_id, initiated.event_id),
        external_workflow_execution=_address(sender),
    )


def cancel_of(sender: Recorded, initiated: HistoryEvent) -> RequestCancelRun:
    """The cancel request that an event of the sender asks for."""
    return RequestCancelRun(
        identity=ENGINE_IDENTITY,
        reason=_asked_cancel(initiated).reason,
        external_initiated_event_id=initiated.event_id,
        external_workflow_execution=_address(sender),
    )


def close_of(parent: Recorded) -> RequestCancelRun:
    """The cancel request of a parent that has closed."""
    return RequestCancelRun(identity=ENGINE_IDENTITY, external_workflow_execution=_address(parent))


def _address(run: Recorded) -> WorkflowExecution:
    return WorkflowExecution(workflow_id=run.workflow_id, run_id=run.run_id)


# ---- what the sender records


def signaled(sender: Recorded, initiated: HistoryEvent) -> events.ExternalWorkflowExecutionSignaled:
    """The fact that the signal was delivered."""
    asked = _asked_signal(initiated)
    return events.ExternalWorkflowExecutionSignaled(
        initiated_event_id=initiated.event_id,
        namespace=sender.namespace,
        namespace_id=asked.namespace_id,
        workflow_execution=asked.workflow_execution,
        control=asked.control,
    )


def not_signaled(
    sender: Recorded, initiated: HistoryEvent, cause: SignalFailed
) -> events.SignalExternalWorkflowExecutionFailed:
    """The fact that the signal will never be delivered."""
    asked = _asked_signal(initiated)
    return events.SignalExternalWorkflowExecutionFailed(
        cause=cause,
        namespace=sender.namespace,
        namespace_id=asked.namespace_id,
        workflow_execution=asked.workflow_execution,
        initiated_event_id=initiated.event_id,
        control=asked.control,
    )


def cancel_requested(
    sender: Recorded, initiated: HistoryEvent
) -> events.ExternalWorkflowExecutionCancelRequested:
    """The fact that the cancel request was delivered, or that the run was closed."""
    asked = _asked_cancel(initiated)
    return events.ExternalWorkflowExecutionCancelRequested(
        initiated_event_id=initiated.event_id,
        namespace=sender.namespace,
        namespace_id=asked.namespace_id,
        workflow_execution=asked.workflow_execution,
    )


def cancel_not_requested(
    sender: Recorded, initiated: HistoryEvent
) -> events.RequestCancelExternalWorkflowExecutionFailed:
    """The fact that there is no run to cancel."""
    asked = _asked_cancel(initiated)
    return events.RequestCancelExternalWorkflowExecutionFailed(
        cause=CancelFailed.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND,
        namespace=sender.namespace,
        namespace_id=asked.namespace_id,
        workflow_execution=asked.workflow_execution,
        initiated_event_id=initiated.event_id,
        control=asked.control,
    )


def _asked_signal(event: HistoryEvent) -> events.SignalExternalWorkflowExecutionInitiated:
    if not isinstance(event.attributes, events.SignalExternalWorkflowExecutionInitiated):
        raise TypeError(f"event {event.event_id} asks for no signal but is {event.event_type.name}")
    return event.attributes


def _asked_cancel(event: HistoryEvent) -> events.RequestCancelExternalWorkflowExecutionInitiated:
    if not isinstance(event.attributes, events.RequestCancelExternalWorkflowExecutionInitiated):
        raise TypeError(f"event {event.event_id} asks for no cancel but is {event.event_type.name}")
    return event.attributes
