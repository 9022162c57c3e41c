"""Events of workflow updates."""

from wfcore.protocol.enums import UpdateAdmittedEventOrigin
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message
from wfcore.protocol.updates import Meta, Outcome, Request


class WorkflowExecutionUpdateAccepted(Message, frozen=True):
    """WORKFLOW_EXECUTION_UPDATE_ACCEPTED (41)."""

    protocol_instance_id: str = ""
    accepted_request_message_id: str = ""
    accepted_request_sequencing_event_id: int = 0
    accepted_request: Request | None = None


class WorkflowExecutionUpdateCompleted(Message, frozen=True):
    """WORKFLOW_EXECUTION_UPDATE_COMPLETED (43)."""

    meta: Meta | None = None
    accepted_event_id: int = 0
    outcome: Outcome | None = None


class WorkflowExecutionUpdateRejected(Message, frozen=True):
    """WORKFLOW_EXECUTION_UPDATE_REJECTED (42)."""

    protocol_instance_id: str = ""
    rejected_request_message_id: str = ""
    rejected_request_sequencing_event_id: int = 0
    rejected_request: Request | None = None
    failure: Failure | None = None


class WorkflowExecutionUpdateAdmitted(Message, frozen=True):
    """WORKFLOW_EXECUTION_UPDATE_ADMITTED (47)."""

    request: Request | None = None
    origin: UpdateAdmittedEventOrigin = UpdateAdmittedEventOrigin.UNSPECIFIED
