"""Events of Nexus operations."""

from datetime import timedelta

from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Payload


class NexusOperationScheduled(Message, frozen=True):
    """NEXUS_OPERATION_SCHEDULED (48)."""

    endpoint: str = ""
    service: str = ""
    operation: str = ""
    input: Payload | None = None
    schedule_to_close_timeout: timedelta | None = None
    nexus_header: dict[str, str] = {}
    workflow_task_completed_event_id: int = 0
    request_id: str = ""
    endpoint_id: str = ""
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None


class NexusOperationStarted(Message, frozen=True):
    """NEXUS_OPERATION_STARTED (49)."""

    scheduled_event_id: int = 0
    operation_id: str = ""  # deprecated
    request_id: str = ""
    operation_token: str = ""


class NexusOperationCompleted(Message, frozen=True):
    """NEXUS_OPERATION_COMPLETED (50)."""

    scheduled_event_id: int = 0
    result: Payload | None = None
    request_id: str = ""


class NexusOperationFailed(Message, frozen=True):
    """NEXUS_OPERATION_FAILED (51)."""

    scheduled_event_id: int = 0
    failure: Failure | None = None
    request_id: str = ""


class NexusOperationTimedOut(Message, frozen=True):
    """NEXUS_OPERATION_TIMED_OUT (53)."""

    scheduled_event_id: int = 0
    failure: Failure | None = None
    request_id: str = ""


class NexusOperationCanceled(Message, frozen=True):
    """NEXUS_OPERATION_CANCELED (52)."""

    scheduled_event_id: int = 0
    failure: Failure | None = None
    request_id: str = ""


class NexusOperationCancelRequested(Message, frozen=True):
    """NEXUS_OPERATION_CANCEL_REQUESTED (54)."""

    scheduled_event_id: int = 0
    workflow_task_completed_event_id: int = 0


class NexusOperationCancelRequestCompleted(Message, frozen=True):
    """NEXUS_OPERATION_CANCEL_REQUEST_COMPLETED (56)."""

    requested_event_id: int = 0
    workflow_task_completed_event_id: int = 0
    scheduled_event_id: int = 0


class NexusOperationCancelRequestFailed(Message, frozen=True):
    """NEXUS_OPERATION_CANCEL_REQUEST_FAILED (57)."""

    requested_event_id: int = 0
    workflow_task_completed_event_id: int = 0
    failure: Failure | None = None
    scheduled_event_id: int = 0
