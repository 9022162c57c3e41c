"""The calls that people make, each with its name in the audit log and what is kept of it.

Kept are names, never user data. A name is never changed: what was written stays readable.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from wfcore.exceptions import InvalidArgumentError
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.message import Message
from wfcore.protocol.rpc import activity_executions as executions
from wfcore.protocol.rpc import activity_operations as operations
from wfcore.protocol.rpc import activity_tasks as tasks
from wfcore.protocol.rpc import updates, workflows
from wfcore.service.tokens import ActivityToken, decode
from wfcore.service.workflow_service import WorkflowService as Service


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What is acted on; empty parts are not known."""

    namespace: str = ""
    workflow_id: str = ""
    run_id: str = ""


def _by_id(request: Any) -> Target:
    return Target(
        namespace=request.namespace,
        workflow_id=request.workflow_id,
        run_id=getattr(request, "run_id", ""),
    )


def _by_execution(field: str, request: Any) -> Target:
    named = getattr(request, field) or WorkflowExecution()
    return Target(namespace=request.namespace, workflow_id=named.workflow_id, run_id=named.run_id)


def _by_token(request: Any) -> Target:
    token = _token(request)
    if token is None:  # the service refuses it
        return Target(namespace=request.namespace)
    return Target(namespace=token.namespace, workflow_id=token.workflow_id, run_id=token.run_id)


def _by_start(request: updates.ExecuteMultiOperationRequest) -> Target:
    starts = [each.start_workflow for each in request.operations if each.start_workflow]
    return Target(namespace=request.namespace, workflow_id=starts[0].workflow_id if starts else "")


def _nothing(_request: Any) -> Mapping[str, Any]:
    return {}


def _signal(request: Any) -> Mapping[str, Any]:
    return {"signal": request.signal_name}


def _update(request: updates.UpdateWorkflowExecutionRequest) -> Mapping[str, Any]:
    asked = request.request
    if asked is None or asked.input is None or asked.meta is None:  # the service refuses it
        return {}
    return {"update": asked.input.name, "updateId": asked.meta.update_id}


def _update_with_start(request: updates.ExecuteMultiOperationRequest) -> Mapping[str, Any]:
    sent = [each.update_workflow for each in request.operations if each.update_workflow]
    return _update(sent[0]) if sent else {}


def _reset(request: workflows.ResetWorkflowExecutionRequest) -> Mapping[str, Any]:
    excluded = [each.name for each in request.reset_reapply_exclude_types]
    told = {"eventId": request.workflow_task_finish_event_id, "reapplyExclude": excluded}
    return {name: value for name, value in told.items() if value}


def _activity(request: Any) -> Mapping[str, Any]:
    """Which activity is meant, and what an order says besides."""
    mask = getattr(request, "update_mask", None)
    told = {
        "activityId": getattr(request, "activity_id", "") or getattr(request, "id", ""),
        "activityType": getattr(request, "type", ""),
        "updateMask": ",".join(mask.paths) if mask is not None else "",
    }
    flags = [
        field.encode_name
        for field in msgspec.structs.fields(request)
        if getattr(request, field.name) is True
    ]
    return {name: value for name, value in told.items() if value} | dict.fromkeys(flags, True)


def _attempt(request: Any) -> Mapping[str, Any]:
    token = _token(request)
    if token is None:
        return {}
    return {"scheduledEventId": token.scheduled_event_id, "attempt": token.attempt}


def _token(request: Any) -> ActivityToken | None:
    try:
        return decode(request.task_token, ActivityToken)
    except InvalidArgumentError:
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """A call of the service that people make."""

    name: str
    call: Callable[..., Any]
    target: Callable[[Any], Target] = _by_id
    #: what is kept besides
    facts: Callable[[Any], Mapping[str, Any]] = _nothing


_RUN = partial(_by_execution, "workflow_execution")
_PARENT = partial(_by_execution, "execution")

#: By the kind of the request.
ACTIONS: Mapping[type[Message], Action] = {
    workflows.StartWorkflowExecutionRequest: Action(
        name="start", call=Service.start_workflow_execution
    ),
    workflows.SignalWorkflowExecutionRequest: Action(
        name="signal", call=Service.signal_workflow_execution, target=_RUN, facts=_signal
    ),
    workflows.SignalWithStartWorkflowExecutionRequest: Action(
        name="signal_with_start", call=Service.signal_with_start_workflow_execution, facts=_signal
    ),
    workflows.RequestCancelWorkflowExecutionRequest: Action(
        name="cancel", call=Service.request_cancel_workflow_execution, target=_RUN
    ),
    workflows.TerminateWorkflowExecutionRequest: Action(
        name="terminate", call=Service.terminate_workflow_execution, target=_RUN
    ),
    workflows.ResetWorkflowExecutionRequest: Action(
        name="reset", call=Service.reset_workflow_execution, target=_RUN, facts=_reset
    ),
    updates.UpdateWorkflowExecutionRequest: Action(
        name="update", call=Service.update_workflow_execution, target=_RUN, facts=_update
    ),
    updates.ExecuteMultiOperationRequest: Action(
        name="update_with_start",
        call=Service.execute_multi_operation,
        target=_by_start,
        facts=_update_with_start,
    ),
    operations.PauseActivityRequest: Action(
        name="pause_activity", call=Service.pause_activity, target=_PARENT, facts=_activity
    ),
    operations.UnpauseActivityRequest: Action(
        name="unpause_activity", call=Service.unpause_activity, target=_PARENT, facts=_activity
    ),
    operations.ResetActivityRequest: Action(
        name="reset_activity", call=Service.reset_activity, target=_PARENT, facts=_activity
    ),
    operations.UpdateActivityOptionsRequest: Action(
        name="update_activity_options",
        call=Service.update_activity_options,
        target=_PARENT,
        facts=_activity,
    ),
    executions.PauseActivityExecutionRequest: Action(
        name="pause_activity", call=Service.pause_activity_execution, facts=_activity
    ),
    executions.UnpauseActivityExecutionRequest: Action(
        name="unpause_activity", call=Service.unpause_activity_execution, facts=_activity
    ),
    executions.ResetActivityExecutionRequest: Action(
        name="reset_activity", call=Service.reset_activity_execution, facts=_activity
    ),
    executions.UpdateActivityExecutionOptionsRequest: Action(
        name="update_activity_options",
        call=Service.update_activity_execution_options,
        facts=_activity,
    ),
    tasks.RespondActivityTaskCompletedByIdRequest: Action(
        name="complete_activity",
        call=Service.respond_activity_task_completed_by_id,
        facts=_activity,
    ),
    tasks.RespondActivityTaskFailedByIdRequest: Action(
        name="fail_activity", call=Service.respond_activity_task_failed_by_id, facts=_activity
    ),
    tasks.RespondActivityTaskCanceledByIdRequest: Action(
        name="cancel_activity", call=Service.respond_activity_task_canceled_by_id, facts=_activity
    ),
    tasks.RespondActivityTaskCompletedRequest: Action(
        name="complete_activity",
        call=Service.respond_activity_task_completed,
        target=_by_token,
        facts=_attempt,
    ),
    tasks.RespondActivityTaskFailedRequest: Action(
        name="fail_activity",
        call=Service.respond_activity_task_failed,
        target=_by_token,
        facts=_attempt,
    ),
    tasks.RespondActivityTaskCanceledRequest: Action(
        name="cancel_activity",
        call=Service.respond_activity_task_canceled,
        target=_by_token,
        facts=_attempt,
    ),
}
