"""Requests and answers of the calls that send updates and wait for them."""

from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import UpdateWorkflowExecutionLifecycleStage
from wfcore.protocol.message import Message
from wfcore.protocol.metadata import Link
from wfcore.protocol.rpc.workflows import (
    StartWorkflowExecutionRequest,
    StartWorkflowExecutionResponse,
)
from wfcore.protocol.updates import Outcome, Request, UpdateRef, WaitPolicy


class UpdateWorkflowExecutionRequest(Message, frozen=True):
    """Update workflow execution request."""

    namespace: str = ""
    workflow_execution: WorkflowExecution | None = None
    first_execution_run_id: str = ""
    wait_policy: WaitPolicy | None = None
    request: Request | None = None


class UpdateWorkflowExecutionResponse(Message, frozen=True):
    """Update workflow execution response."""

    update_ref: UpdateRef | None = None
    outcome: Outcome | None = None
    stage: UpdateWorkflowExecutionLifecycleStage = UpdateWorkflowExecutionLifecycleStage.UNSPECIFIED
    link: Link | None = None


class PollWorkflowExecutionUpdateRequest(Message, frozen=True):
    """Poll workflow execution update request."""

    namespace: str = ""
    update_ref: UpdateRef | None = None
    identity: str = ""
    wait_policy: WaitPolicy | None = None


class PollWorkflowExecutionUpdateResponse(Message, frozen=True):
    """Poll workflow execution update response."""

    outcome: Outcome | None = None
    stage: UpdateWorkflowExecutionLifecycleStage = UpdateWorkflowExecutionLifecycleStage.UNSPECIFIED
    update_ref: UpdateRef | None = None


class ExecuteMultiOperationRequestOperation(Message, frozen=True):
    """One of the operations: one of the two."""

    start_workflow: StartWorkflowExecutionRequest | None = None
    update_workflow: UpdateWorkflowExecutionRequest | None = None


class ExecuteMultiOperationRequest(Message, frozen=True):
    """Execute multi operation request."""

    namespace: str = ""
    operations: tuple[ExecuteMultiOperationRequestOperation, ...] = ()
    resource_id: str = ""


class ExecuteMultiOperationResponseResponse(Message, frozen=True):
    """The answer to one of the operations: one of the two."""

    start_workflow: StartWorkflowExecutionResponse | None = None
    update_workflow: UpdateWorkflowExecutionResponse | None = None


class ExecuteMultiOperationResponse(Message, frozen=True):
    """Execute multi operation response."""

    responses: tuple[ExecuteMultiOperationResponseResponse, ...] = ()
