"""Events of signals and cancels sent to other workflows."""

from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import (
    CancelExternalWorkflowExecutionFailedCause,
    SignalExternalWorkflowExecutionFailedCause,
)
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Header, Payloads


class RequestCancelExternalWorkflowExecutionInitiated(Message, frozen=True):
    """REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED (22)."""

    workflow_task_completed_event_id: int = 0
    namespace: str = ""
    namespace_id: str = ""
    workflow_execution: WorkflowExecution | None = None
    control: str = ""  # deprecated
    child_workflow_only: bool = False
    reason: str = ""


class RequestCancelExternalWorkflowExecutionFailed(Message, frozen=True):
    """REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED (23)."""

    cause: CancelExternalWorkflowExecutionFailedCause = (
        CancelExternalWorkflowExecutionFailedCause.UNSPECIFIED
    )
    workflow_task_completed_event_id: int = 0
    namespace: str = ""
    namespace_id: str = ""
    workflow_execution: WorkflowExecution | None = None
    initiated_event_id: int = 0
    control: str = ""  # deprecated


class ExternalWorkflowExecutionCancelRequested(Message, frozen=True):
    """EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED (24)."""

    initiated_event_id: int = 0
    namespace: str = ""
    namespace_id: str = ""
    workflow_execution: WorkflowExecution | None = None


class SignalExternalWorkflowExecutionInitiated(Message, frozen=True):
    """SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED (37)."""

    workflow_task_completed_event_id: int = 0
    namespace: str = ""
    namespace_id: str = ""
    workflow_execution: WorkflowExecution | None = None
    signal_name: str = ""
    input: Payloads | None = None
    control: str = ""  # deprecated
    child_workflow_only: bool = False
    header: Header | None = None


class SignalExternalWorkflowExecutionFailed(Message, frozen=True):
    """SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED (38)."""

    cause: SignalExternalWorkflowExecutionFailedCause = (
        SignalExternalWorkflowExecutionFailedCause.UNSPECIFIED
    )
    workflow_task_completed_event_id: int = 0
    namespace: str = ""
    namespace_id: str = ""
    workflow_execution: WorkflowExecution | None = None
    initiated_event_id: int = 0
    control: str = ""  # deprecated


class ExternalWorkflowExecutionSignaled(Message, frozen=True):
    """EXTERNAL_WORKFLOW_EXECUTION_SIGNALED (39)."""

    initiated_event_id: int = 0
    namespace: str = ""
    namespace_id: str = ""
    workflow_execution: WorkflowExecution | None = None
    control: str = ""  # deprecated
