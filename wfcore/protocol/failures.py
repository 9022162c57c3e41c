"""Failures as stored values: what went wrong, without a Python exception."""

from datetime import timedelta

from wfcore.protocol.common import ActivityType, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import (
    ApplicationErrorCategory,
    NexusHandlerErrorRetryBehavior,
    RetryState,
    TimeoutType,
)
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Payload, Payloads


class ActivityFailureInfo(Message, frozen=True):
    """Activity failure info."""

    scheduled_event_id: int = 0
    started_event_id: int = 0
    identity: str = ""
    activity_type: ActivityType | None = None
    activity_id: str = ""
    retry_state: RetryState = RetryState.UNSPECIFIED


class ApplicationFailureInfo(Message, frozen=True):
    """Application failure info."""

    type: str = ""
    non_retryable: bool = False
    details: Payloads | None = None
    next_retry_delay: timedelta | None = None
    category: ApplicationErrorCategory = ApplicationErrorCategory.UNSPECIFIED


class CanceledFailureInfo(Message, frozen=True):
    """Canceled failure info."""

    details: Payloads | None = None
    identity: str = ""


class ChildWorkflowExecutionFailureInfo(Message, frozen=True):
    """Child workflow execution failure info."""

    namespace: str = ""
    workflow_execution: WorkflowExecution | None = None
    workflow_type: WorkflowType | None = None
    initiated_event_id: int = 0
    started_event_id: int = 0
    retry_state: RetryState = RetryState.UNSPECIFIED


class NexusHandlerFailureInfo(Message, frozen=True):
    """Nexus handler failure info."""

    type: str = ""
    retry_behavior: NexusHandlerErrorRetryBehavior = NexusHandlerErrorRetryBehavior.UNSPECIFIED


class NexusOperationFailureInfo(Message, frozen=True):
    """Nexus operation failure info."""

    scheduled_event_id: int = 0
    endpoint: str = ""
    service: str = ""
    operation: str = ""
    operation_id: str = ""  # deprecated
    operation_token: str = ""


class ResetWorkflowFailureInfo(Message, frozen=True):
    """Reset workflow failure info."""

    last_heartbeat_details: Payloads | None = None


class ServerFailureInfo(Message, frozen=True):
    """Server failure info."""

    non_retryable: bool = False


class TerminatedFailureInfo(Message, frozen=True):
    """Terminated failure info."""

    identity: str = ""


class TimeoutFailureInfo(Message, frozen=True):
    """Timeout failure info."""

    timeout_type: TimeoutType = TimeoutType.UNSPECIFIED
    last_heartbeat_details: Payloads | None = None


class Failure(Message, frozen=True):
    """What went wrong; at most one of the `*_info` fields is set, `cause` leads on."""

    message: str = ""
    source: str = ""
    stack_trace: str = ""
    encoded_attributes: Payload | None = None
    cause: "Failure | None" = None
    application_failure_info: ApplicationFailureInfo | None = None
    timeout_failure_info: TimeoutFailureInfo | None = None
    canceled_failure_info: CanceledFailureInfo | None = None
    terminated_failure_info: TerminatedFailureInfo | None = None
    server_failure_info: ServerFailureInfo | None = None
    reset_workflow_failure_info: ResetWorkflowFailureInfo | None = None
    activity_failure_info: ActivityFailureInfo | None = None
    child_workflow_execution_failure_info: ChildWorkflowExecutionFailureInfo | None = None
    nexus_operation_execution_failure_info: NexusOperationFailureInfo | None = None
    nexus_handler_failure_info: NexusHandlerFailureInfo | None = None
