"""Pause, unpause, reset and new options of one activity that workflow and activity id name.

What they do is that of `activity_operations`. An activity without a workflow, which Temporal has
besides, doesn't exist here.
"""

from wfcore.exceptions import NotFoundError
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.rpc.activity_executions import (
    PauseActivityExecutionRequest,
    PauseActivityExecutionResponse,
    ResetActivityExecutionRequest,
    ResetActivityExecutionResponse,
    UnpauseActivityExecutionRequest,
    UnpauseActivityExecutionResponse,
    UpdateActivityExecutionOptionsRequest,
    UpdateActivityExecutionOptionsResponse,
)
from wfcore.protocol.rpc.activity_operations import (
    PauseActivityRequest,
    ResetActivityRequest,
    UnpauseActivityRequest,
    UpdateActivityOptionsRequest,
)
from wfcore.service import activity_operations, validation
from wfcore.service.host import Host

Request = (
    PauseActivityExecutionRequest
    | UnpauseActivityExecutionRequest
    | ResetActivityExecutionRequest
    | UpdateActivityExecutionOptionsRequest
)


def pause(host: Host, request: PauseActivityExecutionRequest) -> PauseActivityExecutionResponse:
    """As `activity_operations.pause`."""
    order = PauseActivityRequest(
        namespace=request.namespace,
        execution=_execution(host, request),
        identity=request.identity,
        id=request.activity_id,
        reason=request.reason,
        request_id=request.request_id,
    )
    activity_operations.pause(host, order)
    return PauseActivityExecutionResponse()


def unpause(
    host: Host, request: UnpauseActivityExecutionRequest
) -> UnpauseActivityExecutionResponse:
    """As `activity_operations.unpause`; attempts and heartbeat stay."""
    order = UnpauseActivityRequest(
        namespace=request.namespace,
        execution=_execution(host, request),
        identity=request.identity,
        id=request.activity_id,
        jitter=request.jitter,
    )
    activity_operations.unpause(host, order)
    return UnpauseActivityExecutionResponse()


def reset(host: Host, request: ResetActivityExecutionRequest) -> ResetActivityExecutionResponse:
    """As `activity_operations.reset`."""
    order = ResetActivityRequest(
        namespace=request.namespace,
        execution=_execution(host, request),
        identity=request.identity,
        id=request.activity_id,
        reset_heartbeat=request.reset_heartbeat,
        keep_paused=request.keep_paused,
        jitter=request.jitter,
        restore_original_options=request.restore_original_options,
    )
    activity_operations.reset(host, order)
    return ResetActivityExecutionResponse()


def update_options(
    host: Host, request: UpdateActivityExecutionOptionsRequest
) -> UpdateActivityExecutionOptionsResponse:
    """As `activity_operations.update_options`."""
    order = UpdateActivityOptionsRequest(
        namespace=request.namespace,
        execution=_execution(host, request),
        identity=request.identity,
        activity_options=request.activity_options,
        update_mask=request.update_mask,
        id=request.activity_id,
        restore_original=request.restore_original,
    )
    answer = activity_operations.update_options(host, order)
    return UpdateActivityExecutionOptionsResponse(activity_options=answer.activity_options)


def _execution(host: Host, request: Request) -> WorkflowExecution:
    """The run whose activity is meant.

    Raises:
        InvalidArgumentError, NotFoundError: the request names none.
    """
    validation.namespace(host, request.namespace)
    if not request.activity_id:
        raise validation.fail("ActivityId is not set on request.")
    if not request.workflow_id:
        raise NotFoundError(f"activity not found for ID: {request.activity_id}")
    return WorkflowExecution(workflow_id=request.workflow_id, run_id=request.run_id)
