"""The paths of the API, each with its operations: Temporal's names, ours behind them."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

import msgspec
from django.db import connections

from wfapp.api import links
from wfapp.api.operations import Call, Operation
from wfapp.api.permissions import OPERATE, VIEW, VIEW_PAYLOADS
from wfapp.api.views import RpcView
from wfapp.conf import config
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import EventType
from wfcore.protocol.events import History
from wfcore.protocol.metadata import Link
from wfcore.protocol.rpc.cluster import (
    DescribeNamespaceRequest,
    DescribeNamespaceResponse,
    GetClusterInfoRequest,
    GetClusterInfoResponse,
    GetSystemInfoRequest,
    GetSystemInfoResponse,
    ListNamespacesRequest,
    ListNamespacesResponse,
)
from wfcore.protocol.rpc.workflows import (
    CountWorkflowExecutionsRequest,
    CountWorkflowExecutionsResponse,
    DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryResponse,
    GetWorkflowExecutionHistoryReverseRequest,
    GetWorkflowExecutionHistoryReverseResponse,
    ListWorkflowExecutionsRequest,
    ListWorkflowExecutionsResponse,
    QueryWorkflowRequest,
    QueryWorkflowResponse,
    RequestCancelWorkflowExecutionRequest,
    RequestCancelWorkflowExecutionResponse,
    ResetWorkflowExecutionRequest,
    ResetWorkflowExecutionResponse,
    SignalWithStartWorkflowExecutionRequest,
    SignalWithStartWorkflowExecutionResponse,
    SignalWorkflowExecutionRequest,
    SignalWorkflowExecutionResponse,
    StartWorkflowExecutionRequest,
    StartWorkflowExecutionResponse,
    TerminateWorkflowExecutionRequest,
    TerminateWorkflowExecutionResponse,
)

#: How long a query waits for a worker's answer.
QUERY_TIMEOUT = timedelta(seconds=10)
#: Clients that don't want to see a workflow task which is stored on success only.
_PLAIN_CLIENTS = ("temporal-cli", "temporal-ui")
#: How an answer shows a time that was never set.
_NO_TIME = "0001-01-01T00:00:00Z"

_NAMESPACE = {"namespace": ("namespace",)}
_EXECUTION = {**_NAMESPACE, "workflowId": ("execution", "workflow_id")}
_TARGET = {**_NAMESPACE, "workflowId": ("workflow_execution", "workflow_id")}
_START = {**_NAMESPACE, "workflowId": ("workflow_id",)}


def _numbered(history: History | None) -> History:
    """Events with a task id, which in Temporal's server is a number that rises with the event's."""
    events = history.events if history is not None else ()
    return History(
        events=tuple(
            msgspec.structs.replace(event, task_id=event.task_id or event.event_id)
            for event in events
        )
    )


# ---- runs


def _start(call: Call) -> StartWorkflowExecutionResponse:
    answer: StartWorkflowExecutionResponse = call.perform()
    link = links.started(call.request.namespace, call.request.workflow_id, answer.run_id)
    task = answer.eager_workflow_task
    if task is not None:
        task = msgspec.structs.replace(task, history=_numbered(task.history))
    return msgspec.structs.replace(answer, link=link, eager_workflow_task=task)


def _show_missing_end(body: dict[str, Any]) -> None:
    extended = body.get("workflowExtendedInfo")
    if extended is not None:
        extended.setdefault("runExpirationTime", _NO_TIME)


class Workflows(RpcView):
    """Runs of a namespace."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "GET": Operation(
            name="ListWorkflowExecutions",
            summary="A page of runs, newest first.",
            request=ListWorkflowExecutionsRequest,
            response=ListWorkflowExecutionsResponse,
            run=lambda call: call.service.list_workflow_executions(call.request),
            permissions=(VIEW,),
            path_fields=_NAMESPACE,
        ),
    }


class WorkflowCount(RpcView):
    """How many runs a namespace has."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "GET": Operation(
            name="CountWorkflowExecutions",
            summary="How many runs match, by status if the query groups by it.",
            request=CountWorkflowExecutionsRequest,
            response=CountWorkflowExecutionsResponse,
            run=lambda call: call.service.count_workflow_executions(call.request),
            permissions=(VIEW,),
            path_fields=_NAMESPACE,
        ),
    }


class Workflow(RpcView):
    """One workflow id."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "GET": Operation(
            name="DescribeWorkflowExecution",
            summary="All that is known of a run besides its history.",
            request=DescribeWorkflowExecutionRequest,
            response=DescribeWorkflowExecutionResponse,
            run=lambda call: call.service.describe_workflow_execution(call.request),
            permissions=(VIEW,),
            path_fields=_EXECUTION,
            finish=_show_missing_end,
        ),
        "POST": Operation(
            name="StartWorkflowExecution",
            summary="Start a run.",
            request=StartWorkflowExecutionRequest,
            response=StartWorkflowExecutionResponse,
            run=_start,
            permissions=(OPERATE,),
            path_fields=_START,
        ),
    }


# ---- histories


def _history(call: Call) -> GetWorkflowExecutionHistoryResponse:
    found = call.service.get_workflow_execution_history(
        call.request, show_transient=call.client not in _PLAIN_CLIENTS
    )
    return msgspec.structs.replace(found, history=_numbered(found.history))


def _history_reverse(call: Call) -> GetWorkflowExecutionHistoryReverseResponse:
    found = call.service.get_workflow_execution_history_reverse(call.request)
    return msgspec.structs.replace(found, history=_numbered(found.history))


class WorkflowHistory(RpcView):
    """The history of a run."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "GET": Operation(
            name="GetWorkflowExecutionHistory",
            summary="A page of a history, oldest event first; waits for new events if asked to.",
            request=GetWorkflowExecutionHistoryRequest,
            response=GetWorkflowExecutionHistoryResponse,
            run=_history,
            permissions=(VIEW,),
            path_fields=_EXECUTION,
        ),
    }


class WorkflowHistoryReverse(RpcView):
    """The history of a run from its end."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "GET": Operation(
            name="GetWorkflowExecutionHistoryReverse",
            summary="A page of a history, newest event first.",
            request=GetWorkflowExecutionHistoryReverseRequest,
            response=GetWorkflowExecutionHistoryReverseResponse,
            run=_history_reverse,
            permissions=(VIEW,),
            path_fields=_EXECUTION,
        ),
    }


# ---- steering


def _signal(call: Call) -> SignalWorkflowExecutionResponse:
    request = call.request
    target = request.workflow_execution or WorkflowExecution()
    head = call.service.host.store.head(request.namespace, target.workflow_id, target.run_id)
    answer: SignalWorkflowExecutionResponse = call.perform()
    run_id = target.run_id or (head.key.run_id if head is not None else "")
    return msgspec.structs.replace(
        answer,
        link=_to_signal(request, target.workflow_id, run_id),
    )


def _signal_with_start(call: Call) -> SignalWithStartWorkflowExecutionResponse:
    request = call.request
    if not request.request_id:  # the link names it
        request = msgspec.structs.replace(request, request_id=call.service.host.ids.request_id())
    answer: SignalWithStartWorkflowExecutionResponse = call.perform(request)
    return msgspec.structs.replace(
        answer, signal_link=_to_signal(request, request.workflow_id, answer.run_id)
    )


def _to_signal(request: Any, workflow_id: str, run_id: str) -> Link:
    return links.requested(
        request.namespace,
        WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        request.request_id,
        EventType.WORKFLOW_EXECUTION_SIGNALED,
    )


class WorkflowSignal(RpcView):
    """Signals to a run."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "POST": Operation(
            name="SignalWorkflowExecution",
            summary="Send a signal to an open run.",
            request=SignalWorkflowExecutionRequest,
            response=SignalWorkflowExecutionResponse,
            run=_signal,
            permissions=(OPERATE,),
            path_fields={**_TARGET, "signalName": ("signal_name",)},
        ),
    }


class WorkflowSignalWithStart(RpcView):
    """A signal to a run that is started if none is open."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "POST": Operation(
            name="SignalWithStartWorkflowExecution",
            summary="Send a signal, and start a run to take it if none is open.",
            request=SignalWithStartWorkflowExecutionRequest,
            response=SignalWithStartWorkflowExecutionResponse,
            run=_signal_with_start,
            permissions=(OPERATE,),
            path_fields={**_START, "signalName": ("signal_name",)},
        ),
    }


class WorkflowQueryView(RpcView):
    """Questions to a run."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "POST": Operation(
            name="QueryWorkflow",
            summary="Ask a run, open or closed; a worker answers.",
            request=QueryWorkflowRequest,
            response=QueryWorkflowResponse,
            run=lambda call: call.service.query_workflow(call.request, timeout=QUERY_TIMEOUT),
            permissions=(VIEW, VIEW_PAYLOADS),
            path_fields={**_EXECUTION, "queryType": ("query", "query_type")},
        ),
    }


class WorkflowCancel(RpcView):
    """Cancelling a run."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "POST": Operation(
            name="RequestCancelWorkflowExecution",
            summary="Ask a run to cancel itself; one that is closed stays as it is.",
            request=RequestCancelWorkflowExecutionRequest,
            response=RequestCancelWorkflowExecutionResponse,
            run=Call.perform,
            permissions=(OPERATE,),
            path_fields=_TARGET,
        ),
    }


class WorkflowTerminate(RpcView):
    """Ending a run."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "POST": Operation(
            name="TerminateWorkflowExecution",
            summary="End a run at once, without its code.",
            request=TerminateWorkflowExecutionRequest,
            response=TerminateWorkflowExecutionResponse,
            run=Call.perform,
            permissions=(OPERATE,),
            path_fields=_TARGET,
        ),
    }


class WorkflowReset(RpcView):
    """Beginning again from an earlier workflow task."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "POST": Operation(
            name="ResetWorkflowExecution",
            summary="Make a run that goes on from an earlier workflow task of this one.",
            request=ResetWorkflowExecutionRequest,
            response=ResetWorkflowExecutionResponse,
            run=Call.perform,
            permissions=(OPERATE,),
            path_fields=_TARGET,
        ),
    }


# ---- namespaces and the whole

#: Tools that are known to work with this API.
_SUPPORTED_CLIENTS = {"temporal-cli": "<2.0.0", "temporal-ui": "<3.0.0"}


def _cluster_info(call: Call) -> GetClusterInfoResponse:
    store = connections[config().database].vendor
    return msgspec.structs.replace(
        call.service.get_cluster_info(call.request),
        supported_clients=_SUPPORTED_CLIENTS,
        persistence_store=store,
        visibility_store=store,
        # Of several clusters, which there are not; a server without them shows these numbers.
        initial_failover_version=1,
        failover_version_increment=10,
    )


class Namespaces(RpcView):
    """All namespaces."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "GET": Operation(
            name="ListNamespaces",
            summary="A page of namespaces.",
            request=ListNamespacesRequest,
            response=ListNamespacesResponse,
            run=lambda call: call.service.list_namespaces(call.request),
            permissions=(VIEW,),
        ),
    }


class Namespace(RpcView):
    """One namespace."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "GET": Operation(
            name="DescribeNamespace",
            summary="What is known of a namespace.",
            request=DescribeNamespaceRequest,
            response=DescribeNamespaceResponse,
            run=lambda call: call.service.describe_namespace(call.request),
            permissions=(VIEW,),
            path_fields=_NAMESPACE,
        ),
    }


class SystemInfo(RpcView):
    """What the service can do."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "GET": Operation(
            name="GetSystemInfo",
            summary="Version, and what clients may rely on.",
            request=GetSystemInfoRequest,
            response=GetSystemInfoResponse,
            run=lambda call: call.service.get_system_info(call.request),
            permissions=(VIEW,),
        ),
    }


class ClusterInfo(RpcView):
    """Where the service runs."""

    operations: ClassVar[Mapping[str, Operation]] = {
        "GET": Operation(
            name="GetClusterInfo",
            summary="Version, clients and storage.",
            request=GetClusterInfoRequest,
            response=GetClusterInfoResponse,
            run=_cluster_info,
            permissions=(VIEW,),
        ),
    }
