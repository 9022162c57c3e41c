"""Our module for `SCENARIO_SDK`: the names that the recorded scenarios use, over our own engine.

`SCENARIO_PORTS` chooses the ports: ``memory`` (the default) or ``postgres`` (Django's store and
a Celery worker in this process). A scenario that asks for what does not exist yet raises
`LaterError`.
"""

import asyncio
import importlib
import os
import sys
import uuid
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from wfcore import activity, client, common, exceptions, worker, workflow
from wfcore.exceptions import RPCError
from wfcore.protocol.common import FieldMask, TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import (
    ResetReapplyExcludeType,
    TaskQueueKind,
    WorkflowIdConflictPolicy,
    WorkflowTaskFailedCause,
)
from wfcore.protocol.failures import Failure
from wfcore.protocol.metadata import WorkflowTaskCompletedMetadata
from wfcore.protocol.rpc import activity_operations as operations
from wfcore.protocol.rpc import workflow_tasks as task_rpc
from wfcore.protocol.rpc import workflows as rpc
from wfcore.protocol.rpc.info import ActivityOptions, OnConflictOptions

__all__ = [
    "LATER_MODULES",
    "RPCError",
    "Servers",
    "activity",
    "answer_task",
    "cancel_with_reason",
    "client",
    "common",
    "connect",
    "create_endpoint",
    "exceptions",
    "fail_task",
    "is_activity",
    "is_workflow",
    "make_worker",
    "pause",
    "pause_activity",
    "pending_activities",
    "poll_task",
    "reset",
    "reset_activity",
    "service",
    "signal_with_request_id",
    "start_attached",
    "start_with_callback",
    "start_with_request_id",
    "unpause",
    "unpause_activity",
    "update_activity_options",
    "update_priority",
    "worker",
    "workflow",
]

#: scenario modules that name what does not exist yet
LATER_MODULES: tuple[str, ...] = ()

NAMESPACE = "default"
CLIENT = "client-1"
WORKER = "worker-1"

_ports = importlib.import_module(
    "tests.conformance.ports_" + os.environ.get("SCENARIO_PORTS", "memory")
)
Servers = _ports.Servers
#: the scenarios name the module of `RPCError`
service = exceptions


class LaterError(Exception):
    """The scenario needs a feature that does not exist yet."""


async def connect(address: str) -> client.Client:
    return _ports.connect(address, namespace=NAMESPACE, identity=CLIENT)


def make_worker(
    connection, queue, *, workflows=(), activities=(), cached=True, identity=WORKER, **options
):
    """A worker without guards: the scenarios share gates with the driver that runs beside it."""
    if not cached:
        options["max_cached_workflows"] = 0
    return _ports.make_worker(
        connection, queue, workflows=workflows, activities=activities, identity=identity, **options
    )


def is_workflow(value) -> bool:
    return isinstance(value, type) and workflow.WorkflowDefinition.from_class(value) is not None


def is_activity(value) -> bool:
    return callable(value) and activity.Definition.from_callable(value) is not None


def _execution(handle) -> WorkflowExecution:
    return WorkflowExecution(workflow_id=handle.id)


async def _call(method, request):
    """The service is synchronous; the driver's loop must not wait for it."""
    return await asyncio.to_thread(method, request)


def _later(what: str):
    async def refuse(*args, **kwargs):
        raise LaterError(what)

    return refuse


pause = _later("workflow pause")
unpause = _later("workflow pause")
update_priority = _later("option updates")
start_with_callback = _later("completion callbacks")
create_endpoint = _later("Nexus")


async def reset(
    connection, handle, event_id, reason="try again", *, run=True, exclude=(), request_id=""
) -> str:
    """Start a new run from the workflow task that finished with `event_id`; gives its run id."""
    run_id = handle.run_id or handle.result_run_id or handle.first_execution_run_id
    request = rpc.ResetWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_execution=WorkflowExecution(
            workflow_id=handle.id, run_id=(run_id or "") if run else ""
        ),
        reason=reason,
        identity=CLIENT,
        workflow_task_finish_event_id=event_id,
        request_id=request_id or str(uuid.uuid4()),
        reset_reapply_exclude_types=tuple(ResetReapplyExcludeType[name] for name in exclude),
    )
    answer = await _call(connection.service.reset_workflow_execution, request)
    return answer.run_id


def _start_request(
    workflow_id, type_, queue, request_id, **fields
) -> rpc.StartWorkflowExecutionRequest:
    return rpc.StartWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_id=workflow_id,
        workflow_type=WorkflowType(name=type_),
        task_queue=TaskQueue(name=queue),
        identity=CLIENT,
        request_id=request_id or str(uuid.uuid4()),
        **fields,
    )


async def start_with_request_id(connection, workflow_id, type_, queue, request_id):
    """Gives (run id, started)."""
    answer = await _call(
        connection.service.start_workflow_execution,
        _start_request(workflow_id, type_, queue, request_id),
    )
    return answer.run_id, answer.started


async def start_attached(connection, workflow_id, type_, queue, callback=""):
    """Start under USE_EXISTING and attach request id and links to the run that is open."""
    if callback:
        raise LaterError("completion callbacks")
    answer = await _call(
        connection.service.start_workflow_execution,
        _start_request(
            workflow_id,
            type_,
            queue,
            "",
            workflow_id_conflict_policy=WorkflowIdConflictPolicy.USE_EXISTING,
            on_conflict_options=OnConflictOptions(attach_request_id=True, attach_links=True),
        ),
    )
    return answer.run_id, answer.started


async def signal_with_request_id(connection, handle, name, request_id) -> None:
    await _call(
        connection.service.signal_workflow_execution,
        rpc.SignalWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_execution=_execution(handle),
            signal_name=name,
            identity=CLIENT,
            request_id=request_id,
        ),
    )


async def cancel_with_reason(connection, handle, reason) -> None:
    await _call(
        connection.service.request_cancel_workflow_execution,
        rpc.RequestCancelWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_execution=_execution(handle),
            identity=CLIENT,
            reason=reason,
            request_id=str(uuid.uuid4()),
        ),
    )


async def poll_task(connection, queue, sticky_of=""):
    """Take one workflow task by hand, as a worker would."""
    if sticky_of:
        raise LaterError("sticky queues")
    return await _ports.poll_task(
        connection,
        task_rpc.PollWorkflowTaskQueueRequest(
            namespace=NAMESPACE,
            task_queue=TaskQueue(name=queue, kind=TaskQueueKind.NORMAL),
            identity=WORKER,
        ),
    )


async def answer_task(
    connection, task, *messages, sticky="", sticky_timeout=1, force_new=False
) -> None:
    """Complete a task taken by hand with the given commands."""
    if sticky:
        raise LaterError("sticky queues")
    await _call(
        connection.service.respond_workflow_task_completed,
        task_rpc.RespondWorkflowTaskCompletedRequest(
            namespace=NAMESPACE,
            task_token=task.task_token,
            commands=messages,
            identity=WORKER,
            force_create_new_workflow_task=force_new,
            sdk_metadata=WorkflowTaskCompletedMetadata(
                core_used_flags=(1, 2, 3), lang_used_flags=(1,)
            ),
        ),
    )


async def fail_task(connection, task, message) -> None:
    await _call(
        connection.service.respond_workflow_task_failed,
        task_rpc.RespondWorkflowTaskFailedRequest(
            namespace=NAMESPACE,
            task_token=task.task_token,
            identity=WORKER,
            cause=WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE,
            failure=Failure(message=message),
        ),
    )


def _operation(kind, handle, activity_id, **fields):
    return kind(
        namespace=NAMESPACE,
        execution=_execution(handle),
        identity=CLIENT,
        id=activity_id,
        **fields,
    )


async def pause_activity(connection, handle, activity_id) -> None:
    request = _operation(operations.PauseActivityRequest, handle, activity_id, reason="hold it")
    await _call(connection.service.pause_activity, request)


async def unpause_activity(connection, handle, activity_id, **options) -> None:
    request = _operation(operations.UnpauseActivityRequest, handle, activity_id, **options)
    await _call(connection.service.unpause_activity, request)


async def reset_activity(connection, handle, activity_id, **options) -> None:
    request = _operation(operations.ResetActivityRequest, handle, activity_id, **options)
    await _call(connection.service.reset_activity, request)


async def update_activity_options(connection, handle, activity_id, *, start_to_close) -> None:
    request = _operation(
        operations.UpdateActivityOptionsRequest,
        handle,
        activity_id,
        activity_options=ActivityOptions(start_to_close_timeout=timedelta(seconds=start_to_close)),
        update_mask=FieldMask(paths=("start_to_close_timeout",)),
    )
    await _call(connection.service.update_activity_options, request)


async def pending_activities(connection, handle) -> list:
    answer = await _call(
        connection.service.describe_workflow_execution,
        rpc.DescribeWorkflowExecutionRequest(namespace=NAMESPACE, execution=_execution(handle)),
    )
    return list(answer.pending_activities)
