"""Update-with-start: a run is found or started, and gets an update.

A run that is started has the update from its first workflow task on; one that is found gets it in a
transaction of its own. So the start may stay without the update, as in Temporal.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from wfcore.exceptions import (
    AbortedError,
    MultiOperationExecutionError,
    NotFoundError,
    RPCError,
    RPCStatusCode,
    UnavailableError,
)
from wfcore.history.machines.update import is_known
from wfcore.history.requests import AdmitUpdate
from wfcore.protocol.enums import UpdateWorkflowExecutionLifecycleStage as Stage
from wfcore.protocol.rpc.updates import (
    ExecuteMultiOperationRequest,
    ExecuteMultiOperationResponse,
    ExecuteMultiOperationResponseResponse,
    UpdateWorkflowExecutionRequest,
)
from wfcore.protocol.rpc.workflows import (
    StartWorkflowExecutionRequest,
    StartWorkflowExecutionResponse,
)
from wfcore.service import starting, updating, validation
from wfcore.service.host import Host
from wfcore.service.ports import RunKey
from wfcore.service.starting import Begun
from wfcore.service.validation import fail

#: How often a start begins anew when the run that it found is closed by the time of the update.
TRIES = 2

_FAILED = "Update-with-Start could not be executed."
_ABORTED: Mapping[str, Any] = {
    "code": int(RPCStatusCode.ABORTED),
    "message": "Operation was aborted.",
    "details": [
        {"@type": "type.googleapis.com/temporal.api.failure.v1.MultiOperationExecutionAborted"}
    ],
}


def execute(
    host: Host, request: ExecuteMultiOperationRequest, timeout: timedelta | None = None
) -> ExecuteMultiOperationResponse:
    """Start a workflow, or take the open one, and send it an update; wait as for an update.

    Raises:
        WaitInsideTransactionError: a worker would not see what the caller's transaction wrote.
        InvalidArgumentError: the operations are not a start and an update.
        MultiOperationExecutionError: one of them failed, so that the other was given up.
    """
    updating.refuse_to_wait(host, "execute_multi_operation")
    validation.namespace(host, request.namespace)
    start, update = _operations(request)
    try:
        _check_start(start, request.namespace)
        plan = starting.plan(host, start)
    except RPCError as error:
        raise _start_failed(error) from error
    try:
        _check_update(update, start, request.namespace)
        order, stage = updating.checked(host, update)
    except RPCError as error:
        raise _update_failed(error) from error
    begun = _begin(host, plan, order)
    key = RunKey(namespace=request.namespace, workflow_id=start.workflow_id, run_id=begun.run_id)
    return _response(host, key, begun, order, stage, timeout)


def _operations(
    request: ExecuteMultiOperationRequest,
) -> tuple[StartWorkflowExecutionRequest, UpdateWorkflowExecutionRequest]:
    """The two that there must be."""
    match request.operations:
        case (first, second) if first.start_workflow and second.update_workflow:
            return first.start_workflow, second.update_workflow
    raise fail("Operations have to be exactly [Start, Update].")


def _check_start(start: StartWorkflowExecutionRequest, namespace: str) -> None:
    _check_namespace(start.namespace, namespace)
    if start.cron_schedule:
        raise fail("CronSchedule is not allowed.")
    if start.request_eager_execution:
        raise fail("RequestEagerExecution is not supported.")
    if start.workflow_start_delay:
        raise fail("WorkflowStartDelay is not supported.")


def _check_update(
    update: UpdateWorkflowExecutionRequest, start: StartWorkflowExecutionRequest, namespace: str
) -> None:
    _check_namespace(update.namespace, namespace)
    target = validation.execution(update.workflow_execution)
    if target.run_id:
        raise fail("RunId is not allowed.")
    if update.first_execution_run_id:
        raise fail("FirstExecutionRunId is not allowed.")
    if target.workflow_id != start.workflow_id:
        raise fail("WorkflowId is not consistent with previous operation(s).")


def _check_namespace(given: str, namespace: str) -> None:
    if given != namespace:
        raise fail("Operation namespace did not match request's namespace.")


def _begin(host: Host, plan: starting.Plan, order: AdmitUpdate) -> Begun:
    """The run that has the update."""
    for _ in range(TRIES):
        try:
            begun = _with_update(host, plan, order) or starting.begin(host, plan.with_update(order))
        except RPCError as error:
            raise _start_failed(error) from error
        if begun.is_made:
            return begun
        if not validation.is_open(begun.status):
            # the same request made it before, so that it makes no other
            raise _start_failed(UnavailableError("Workflow was not started: StartDeduped"))
        request = plan.request
        key = RunKey(
            namespace=request.namespace, workflow_id=request.workflow_id, run_id=begun.run_id
        )
        try:
            updating.admit(host, key, order)
        except NotFoundError:
            continue  # it closed meanwhile
        except RPCError as error:
            raise _update_failed(error) from error
        return begun
    raise _update_failed(
        AbortedError("the workflow closed while the update was sent; repeat the call")
    )


def _with_update(host: Host, plan: starting.Plan, order: AdmitUpdate) -> Begun | None:
    """The open run that knows the update, whatever the policies say."""
    request = plan.request
    state = host.store.read_state(request.namespace, request.workflow_id)
    if state is None or not state.is_open:
        return None
    key = RunKey(
        namespace=request.namespace,
        workflow_id=request.workflow_id,
        run_id=state.recorded.run_id,
    )
    if not is_known(state, host.store.read_update(key, order.update_id), order.update_id):
        return None
    return Begun(
        run_id=key.run_id,
        first_execution_run_id=state.recorded.first_execution_run_id,
        started=False,
        status=state.recorded.status,
    )


def _response(
    host: Host,
    key: RunKey,
    begun: Begun,
    order: AdmitUpdate,
    stage: Stage,
    timeout: timedelta | None,
) -> ExecuteMultiOperationResponse:
    try:
        answer = updating.answer(host, key, order.update_id, stage, timeout)
    except RPCError as error:
        raise _update_failed(error) from error
    started = StartWorkflowExecutionResponse(
        run_id=begun.run_id,
        # as of the server: left out when the run was there, also by the same request
        first_execution_run_id=begun.first_execution_run_id if begun.is_made else "",
        started=begun.is_made,
        status=begun.status,
    )
    return ExecuteMultiOperationResponse(
        responses=(
            ExecuteMultiOperationResponseResponse(start_workflow=started),
            ExecuteMultiOperationResponseResponse(update_workflow=answer),
        )
    )


def _start_failed(error: RPCError) -> MultiOperationExecutionError:
    return MultiOperationExecutionError(_FAILED, error.status, [_status(error), _ABORTED], error)


def _update_failed(error: RPCError) -> MultiOperationExecutionError:
    return MultiOperationExecutionError(_FAILED, error.status, [_ABORTED, _status(error)], error)


def _status(error: RPCError) -> dict[str, Any]:
    status = error.grpc_status
    written: dict[str, Any] = {"code": status.code, "message": status.message}
    if status.details:
        written["details"] = [dict(detail) for detail in status.details]
    return written
