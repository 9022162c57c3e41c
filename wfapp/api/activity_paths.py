"""Paths of activities: completed from outside, and steered while they are pending.

Temporal has two families: one names the activity in the path, the older one in the body.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from wfapp.api.operations import Call, Operation
from wfapp.api.permissions import OPERATE
from wfapp.api.views import RpcView
from wfcore.protocol.message import Message
from wfcore.protocol.rpc import activity_executions as executions
from wfcore.protocol.rpc import activity_operations as operations
from wfcore.protocol.rpc import activity_tasks as tasks

_NAMESPACE = {"namespace": ("namespace",)}
_ACTIVITY = {**_NAMESPACE, "workflowId": ("workflow_id",), "activityId": ("activity_id",)}


def _post(
    name: str, summary: str, kinds: tuple[type[Message], type[Message]], path_fields: Any
) -> Mapping[str, Operation]:
    request, response = kinds
    return {
        "POST": Operation(
            name=name,
            summary=summary,
            request=request,
            response=response,
            run=Call.perform,
            permissions=(OPERATE,),
            path_fields=path_fields,
        )
    }


# ---- completed from outside, by id


class ActivityComplete(RpcView):
    """The end of an activity that somebody outside has done."""

    operations: ClassVar[Mapping[str, Operation]] = _post(
        "RespondActivityTaskCompletedById",
        "Complete an activity, also one that no worker has taken.",
        (
            tasks.RespondActivityTaskCompletedByIdRequest,
            tasks.RespondActivityTaskCompletedByIdResponse,
        ),
        _ACTIVITY,
    )


class ActivityFail(RpcView):
    """A failure of the attempt that runs."""

    operations: ClassVar[Mapping[str, Operation]] = _post(
        "RespondActivityTaskFailedById",
        "Fail the attempt that runs; its retry policy says what follows.",
        (tasks.RespondActivityTaskFailedByIdRequest, tasks.RespondActivityTaskFailedByIdResponse),
        _ACTIVITY,
    )


class ActivityResolveAsCanceled(RpcView):
    """The end of an activity that was asked to cancel itself."""

    operations: ClassVar[Mapping[str, Operation]] = _post(
        "RespondActivityTaskCanceledById",
        "End an activity as cancelled, which must have been asked for.",
        (
            tasks.RespondActivityTaskCanceledByIdRequest,
            tasks.RespondActivityTaskCanceledByIdResponse,
        ),
        _ACTIVITY,
    )


class ActivityHeartbeat(RpcView):
    """A sign of life of the attempt that runs; none of the audit log's business."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "POST": Operation(
            name="RecordActivityTaskHeartbeatById",
            summary="Say that the attempt is alive; the answer says whether it should stop.",
            request=tasks.RecordActivityTaskHeartbeatByIdRequest,
            response=tasks.RecordActivityTaskHeartbeatByIdResponse,
            run=lambda call: call.service.record_activity_task_heartbeat_by_id(call.request),
            permissions=(OPERATE,),
            path_fields=_ACTIVITY,
        )
    }


# ---- completed from outside, by the token of the attempt


class ActivityCompleteByToken(RpcView):
    """The end of an activity, by the token that its attempt was given."""

    operations: ClassVar[Mapping[str, Operation]] = _post(
        "RespondActivityTaskCompleted",
        "Complete the activity whose attempt has this token.",
        (tasks.RespondActivityTaskCompletedRequest, tasks.RespondActivityTaskCompletedResponse),
        _NAMESPACE,
    )


class ActivityFailByToken(RpcView):
    """A failure of the attempt that has the token."""

    operations: ClassVar[Mapping[str, Operation]] = _post(
        "RespondActivityTaskFailed",
        "Fail the attempt that has this token; its retry policy says what follows.",
        (tasks.RespondActivityTaskFailedRequest, tasks.RespondActivityTaskFailedResponse),
        _NAMESPACE,
    )


class ActivityResolveAsCanceledByToken(RpcView):
    """The end of an activity that was asked to cancel itself, by the token of its attempt."""

    operations: ClassVar[Mapping[str, Operation]] = _post(
        "RespondActivityTaskCanceled",
        "End the activity whose attempt has this token as cancelled.",
        (tasks.RespondActivityTaskCanceledRequest, tasks.RespondActivityTaskCanceledResponse),
        _NAMESPACE,
    )


class ActivityHeartbeatByToken(RpcView):
    """A sign of life of the attempt that has the token."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "POST": Operation(
            name="RecordActivityTaskHeartbeat",
            summary="Say that the attempt is alive; the answer says whether it should stop.",
            request=tasks.RecordActivityTaskHeartbeatRequest,
            response=tasks.RecordActivityTaskHeartbeatResponse,
            run=lambda call: call.service.record_activity_task_heartbeat(call.request),
            permissions=(OPERATE,),
            path_fields=_NAMESPACE,
        )
    }


# ---- steered, named in the path


class ActivityPause(RpcView):
    """Pausing an activity."""

    operations: ClassVar[Mapping[str, Operation]] = _post(
        "PauseActivityExecution",
        "Keep attempts from beginning; one that runs goes on and is told by its heartbeat.",
        (executions.PauseActivityExecutionRequest, executions.PauseActivityExecutionResponse),
        _ACTIVITY,
    )


class ActivityUnpause(RpcView):
    """Letting a paused activity go on."""

    operations: ClassVar[Mapping[str, Operation]] = _post(
        "UnpauseActivityExecution",
        "Let attempts begin again, at once.",
        (executions.UnpauseActivityExecutionRequest, executions.UnpauseActivityExecutionResponse),
        _ACTIVITY,
    )


class ActivityReset(RpcView):
    """Beginning with the first attempt again."""

    operations: ClassVar[Mapping[str, Operation]] = _post(
        "ResetActivityExecution",
        "Begin with the first attempt again, at once.",
        (executions.ResetActivityExecutionRequest, executions.ResetActivityExecutionResponse),
        _ACTIVITY,
    )


class ActivityUpdateOptions(RpcView):
    """Other timeouts, another queue, another retry policy."""

    operations: ClassVar[Mapping[str, Operation]] = _post(
        "UpdateActivityExecutionOptions",
        "Change the options that the mask names, or restore the original ones.",
        (
            executions.UpdateActivityExecutionOptionsRequest,
            executions.UpdateActivityExecutionOptionsResponse,
        ),
        _ACTIVITY,
    )


# ---- steered, named in the body


class ActivitiesPause(RpcView):
    """Pausing the activities of a run that the body names."""

    operations: ClassVar[Mapping[str, Operation]] = _post(
        "PauseActivity",
        "Pause activities by id or by type.",
        (operations.PauseActivityRequest, operations.PauseActivityResponse),
        _NAMESPACE,
    )


class ActivitiesUnpause(RpcView):
    """Letting the activities go on that the body names."""

    operations: ClassVar[Mapping[str, Operation]] = _post(
        "UnpauseActivity",
        "Unpause activities by id, by type, or all of a run.",
        (operations.UnpauseActivityRequest, operations.UnpauseActivityResponse),
        _NAMESPACE,
    )


class ActivitiesReset(RpcView):
    """Beginning anew with the activities that the body names."""

    operations: ClassVar[Mapping[str, Operation]] = _post(
        "ResetActivity",
        "Reset activities by id, by type, or all of a run.",
        (operations.ResetActivityRequest, operations.ResetActivityResponse),
        _NAMESPACE,
    )


class ActivitiesUpdateOptions(RpcView):
    """Other options for the activities that the body names."""

    operations: ClassVar[Mapping[str, Operation]] = _post(
        "UpdateActivityOptions",
        "Change options of activities by id, by type, or of all of a run.",
        (operations.UpdateActivityOptionsRequest, operations.UpdateActivityOptionsResponse),
        _NAMESPACE,
    )
