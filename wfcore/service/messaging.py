"""Signals, cancel requests and terminations."""

from wfcore.exceptions import NotFoundError
from wfcore.history.requests import RequestCancelRun, SignalRun, TerminateRun
from wfcore.protocol.rpc.workflows import (
    RequestCancelWorkflowExecutionRequest,
    RequestCancelWorkflowExecutionResponse,
    SignalWorkflowExecutionRequest,
    SignalWorkflowExecutionResponse,
    TerminateWorkflowExecutionRequest,
    TerminateWorkflowExecutionResponse,
)
from wfcore.service import validation
from wfcore.service.arriving import Outcome, arrive
from wfcore.service.host import Host
from wfcore.service.ports import RunKey
from wfcore.service.transacting import TRIES, change_run

#: What stands in the event of a termination without a reason.
DEFAULT_TERMINATION_REASON = "terminated by user via frontend"


def signal(host: Host, request: SignalWorkflowExecutionRequest) -> SignalWorkflowExecutionResponse:
    """Record a signal; one with a request id that the run had already changes nothing."""
    validation.namespace(host, request.namespace)
    target = validation.execution(request.workflow_execution)
    if not request.signal_name:
        raise validation.fail("SignalName is not set on request.")
    validation.short(request.signal_name, "SignalName", host.limits)
    validation.short(request.request_id, "RequestId", host.limits)
    validation.blob(request.input, host.limits)
    validation.links(request.links)
    outcome = arrive(
        host,
        RunKey(namespace=request.namespace, workflow_id=target.workflow_id, run_id=target.run_id),
        SignalRun(
            signal_name=request.signal_name,
            input=request.input,
            identity=request.identity,
            header=request.header,
            request_id=request.request_id or host.ids.request_id(),
            links=request.links,
        ),
        request_id=request.request_id,
    )
    if outcome is Outcome.CLOSED:
        raise validation.completed()
    return SignalWorkflowExecutionResponse()


def request_cancel(
    host: Host, request: RequestCancelWorkflowExecutionRequest
) -> RequestCancelWorkflowExecutionResponse:
    """Ask a run to cancel itself; a second request, or one to a closed run, changes nothing."""
    validation.namespace(host, request.namespace)
    target = validation.execution(request.workflow_execution)
    validation.links(request.links)
    arrive(
        host,
        RunKey(namespace=request.namespace, workflow_id=target.workflow_id, run_id=target.run_id),
        RequestCancelRun(identity=request.identity, reason=request.reason, links=request.links),
        first_execution_run_id=request.first_execution_run_id,
    )
    return RequestCancelWorkflowExecutionResponse()


def terminate(
    host: Host, request: TerminateWorkflowExecutionRequest
) -> TerminateWorkflowExecutionResponse:
    """End a run at once. Inside a caller's transaction its lock is held to the caller's end."""
    validation.namespace(host, request.namespace)
    target = validation.execution(request.workflow_execution)
    validation.links(request.links)
    order = TerminateRun(
        reason=request.reason or DEFAULT_TERMINATION_REASON,
        details=request.details,
        identity=request.identity,
        links=request.links,
    )
    terminate_run(
        host,
        RunKey(namespace=request.namespace, workflow_id=target.workflow_id, run_id=target.run_id),
        order,
        first_execution_run_id=request.first_execution_run_id,
    )
    return TerminateWorkflowExecutionResponse()


def terminate_run(
    host: Host, target: RunKey, order: TerminateRun, *, first_execution_run_id: str = ""
) -> None:
    """End a run; an empty run id means the current one, and follows its chain.

    Raises:
        NotFoundError: there is no such run, it is closed, or not of the chain that is named.
    """
    seen = ""
    for _ in range(TRIES):
        head = host.store.head(target.namespace, target.workflow_id, target.run_id)
        if head is None:
            raise validation.not_found(target.workflow_id, target.run_id)
        if first_execution_run_id not in ("", head.first_execution_run_id):
            raise NotFoundError("workflow execution not found")
        if head.key.run_id == seen:
            break
        try:
            change_run(host, head.key, order, missing="workflow execution not found")
        except NotFoundError:
            # closed; without a run id the termination goes to the run that followed meanwhile
            if target.run_id:
                raise
            seen = head.key.run_id
        else:
            return
    raise validation.completed()
