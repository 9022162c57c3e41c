"""Updates of a run. Repeating an update with its id is how it is polled, as in Temporal's API."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from wfapp.api import links
from wfapp.api.operations import Call, Operation
from wfapp.api.permissions import OPERATE
from wfapp.api.views import RpcView
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import EventType
from wfcore.protocol.rpc.updates import (
    UpdateWorkflowExecutionRequest,
    UpdateWorkflowExecutionResponse,
)
from wfcore.protocol.updates import UpdateRef


def _update(call: Call) -> UpdateWorkflowExecutionResponse:
    answer: UpdateWorkflowExecutionResponse = call.perform()
    run = (answer.update_ref or UpdateRef()).workflow_execution or WorkflowExecution()
    namespace = call.request.namespace
    if answer.outcome is not None and answer.outcome.failure is not None:
        # also for one that was accepted and failed, as there
        link = links.refused(namespace, run, "Update rejected")
    else:
        link = links.requested(
            namespace,
            run,
            call.request.request.request_id,
            EventType.WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
        )
    return msgspec.structs.replace(answer, link=link)


class WorkflowUpdate(RpcView):
    """Updates of a run."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "POST": Operation(
            name="UpdateWorkflowExecution",
            summary="Send an update, or find the one of this id, and wait for its stage.",
            request=UpdateWorkflowExecutionRequest,
            response=UpdateWorkflowExecutionResponse,
            run=_update,
            permissions=(OPERATE,),
            path_fields={
                "namespace": ("namespace",),
                "workflowId": ("workflow_execution", "workflow_id"),
                "updateName": ("request", "input", "name"),
            },
        ),
    }
