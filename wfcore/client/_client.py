"""The client: starts workflows, finds them, and gives handles to talk to them."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Concatenate, Required, Self, TypedDict, Unpack, overload

from wfcore.client._async_activities import AsyncActivityHandle, AsyncActivityIDReference
from wfcore.client._calls import Calls, ThreadCalls
from wfcore.client._executions import WorkflowExecutionCount
from wfcore.client._handles import WorkflowHandle
from wfcore.client._host import connect_host
from wfcore.client._impl import ClientImpl
from wfcore.client._interceptor import (
    CountWorkflowsInput,
    Interceptor,
    ListWorkflowsInput,
    OutboundInterceptor,
    StartWorkflowInput,
)
from wfcore.client._iterators import WorkflowExecutionAsyncIterator
from wfcore.client._update_with_start import ClientUpdates
from wfcore.client._updates import ReturnType, SelfType
from wfcore.common import (
    UNSET,
    HeaderCodecBehavior,
    Priority,
    QueryRejectCondition,
    RetryPolicy,
    SearchAttributes,
    TypedSearchAttributes,
    VersioningOverride,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
    arg_or_args,
)
from wfcore.converter import DataConverter
from wfcore.service.workflow_service import WorkflowService
from wfcore.workflow import (
    MethodAsyncNoParam,
    MethodAsyncSingleParam,
    MultiParamSpec,
    ParamType,
    WorkflowDefinition,
)


class ClientConfig(TypedDict, total=False):
    """The settings of a client, as `Client.config` gives them and `Client` takes them."""

    service_client: Required[WorkflowService]
    namespace: Required[str]
    data_converter: Required[DataConverter]
    interceptors: Required[Sequence[Interceptor]]
    default_workflow_query_reject_condition: Required[QueryRejectCondition | None]
    header_codec_behavior: Required[HeaderCodecBehavior]
    identity: str | None


class StartOptions(TypedDict, total=False):
    """The keyword arguments of a start whose workflow is given by its run method."""

    id: Required[str]
    task_queue: Required[str]
    execution_timeout: timedelta | None
    run_timeout: timedelta | None
    task_timeout: timedelta | None
    id_reuse_policy: WorkflowIDReusePolicy
    id_conflict_policy: WorkflowIDConflictPolicy
    retry_policy: RetryPolicy | None
    cron_schedule: str
    memo: Mapping[str, Any] | None
    search_attributes: SearchAttributes | TypedSearchAttributes | None
    static_summary: str | None
    static_details: str | None
    start_delay: timedelta | None
    start_signal: str | None
    start_signal_args: Sequence[Any]
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None
    request_eager_start: bool
    priority: Priority
    versioning_override: VersioningOverride | None


class StartOptionsWithArgs(StartOptions, total=False):
    """The keyword arguments of a start whose workflow takes several arguments."""

    args: Required[Sequence[Any]]


class AnyStartOptions(StartOptions, total=False):
    """The keyword arguments of a start whose workflow is given by its name."""

    args: Sequence[Any]
    result_type: Any


def default_identity() -> str:
    """Process and host, as histories show who did something."""
    return f"{os.getpid()}@{socket.gethostname()}"


class Client(ClientUpdates):
    """Starts workflows and talks to them; used by any number of coroutines.

    Args:
        service_client: the service; `connect` finds that of this process.
        data_converter: how arguments and results are stored; workers need the same.
        interceptors: hooks around the calls; those that are a worker's too go to its workers.
        identity: who acts, in histories; by default process and host.
        calls: how the service is called, by default in threads.

    Example:
        ``handle = await client.start_workflow(Order.run, 5, id="order-5", task_queue="shop")``
    """

    def __init__(
        self,
        service_client: WorkflowService,
        *,
        namespace: str = "default",
        data_converter: DataConverter = DataConverter.default,
        plugins: Sequence[Any] = (),
        interceptors: Sequence[Interceptor] = (),
        default_workflow_query_reject_condition: QueryRejectCondition | None = None,
        header_codec_behavior: HeaderCodecBehavior = HeaderCodecBehavior.NO_CODEC,
        identity: str | None = None,
        calls: Calls | None = None,
    ) -> None:
        _refuse_plugins(plugins)
        self.service = service_client
        self.namespace = namespace
        self.data_converter = data_converter
        self.interceptors = interceptors
        self.default_workflow_query_reject_condition = default_workflow_query_reject_condition
        self.header_codec_behavior = header_codec_behavior
        self.identity = identity or default_identity()
        self.calls = calls or ThreadCalls()
        self.outbound: OutboundInterceptor = ClientImpl(self)
        for interceptor in reversed(interceptors):
            self.outbound = interceptor.intercept_client(self.outbound)

    @classmethod
    async def connect(
        cls,
        target_host: str,
        *,
        namespace: str = "default",
        data_converter: DataConverter = DataConverter.default,
        plugins: Sequence[Any] = (),
        interceptors: Sequence[Interceptor] = (),
        default_workflow_query_reject_condition: QueryRejectCondition | None = None,
        header_codec_behavior: HeaderCodecBehavior = HeaderCodecBehavior.NO_CODEC,
        identity: str | None = None,
        **connection: Any,
    ) -> Self:
        """A client of the host that has registered itself in this process.

        Args:
            target_host: which of the host's services, such as a database's alias.
            connection: settings of Temporal's gRPC connection (`tls`, `api_key`,
                `retry_config`, ...); there is no such connection, so they have no effect.

        Raises:
            HostNotRegisteredError: there is no host.
            TypeError: a setting is unknown.
        """
        unknown = connection.keys() - _CONNECTION_SETTINGS
        if unknown:
            raise TypeError(f"unknown settings: {', '.join(sorted(unknown))}")
        return cls(
            connect_host(target_host),
            namespace=namespace,
            data_converter=data_converter,
            plugins=plugins,
            interceptors=interceptors,
            default_workflow_query_reject_condition=default_workflow_query_reject_condition,
            header_codec_behavior=header_codec_behavior,
            identity=identity,
        )

    def config(self, *, active_config: bool = False) -> ClientConfig:
        """The settings, with which another client can be made."""
        del active_config  # plugins, which could change them, are refused
        return ClientConfig(
            service_client=self.service,
            namespace=self.namespace,
            data_converter=self.data_converter,
            interceptors=self.interceptors,
            default_workflow_query_reject_condition=self.default_workflow_query_reject_condition,
            header_codec_behavior=self.header_codec_behavior,
            identity=self.identity,
        )

    @property
    def service_client(self) -> WorkflowService:
        """The service."""
        return self.service

    @property
    def workflow_service(self) -> WorkflowService:
        """The service, for calls that the client doesn't have."""
        return self.service

    # --- starting ---

    @overload
    async def start_workflow(
        self,
        workflow: MethodAsyncNoParam[SelfType, ReturnType],
        **options: Unpack[StartOptions],
    ) -> WorkflowHandle[SelfType, ReturnType]: ...

    @overload
    async def start_workflow(
        self,
        workflow: MethodAsyncSingleParam[SelfType, ParamType, ReturnType],
        arg: ParamType,
        **options: Unpack[StartOptions],
    ) -> WorkflowHandle[SelfType, ReturnType]: ...

    @overload
    async def start_workflow(
        self,
        workflow: Callable[Concatenate[SelfType, MultiParamSpec], Awaitable[ReturnType]],
        **options: Unpack[StartOptionsWithArgs],
    ) -> WorkflowHandle[SelfType, ReturnType]: ...

    @overload
    async def start_workflow(
        self,
        workflow: str,
        arg: Any = UNSET,
        **options: Unpack[AnyStartOptions],
    ) -> WorkflowHandle[Any, Any]: ...

    async def start_workflow(
        self,
        workflow: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        id: str,  # noqa: A002 - Temporal's name
        task_queue: str,
        result_type: Any = None,
        execution_timeout: timedelta | None = None,
        run_timeout: timedelta | None = None,
        task_timeout: timedelta | None = None,
        id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.UNSPECIFIED,
        retry_policy: RetryPolicy | None = None,
        cron_schedule: str = "",
        memo: Mapping[str, Any] | None = None,
        search_attributes: SearchAttributes | TypedSearchAttributes | None = None,
        static_summary: str | None = None,
        static_details: str | None = None,
        start_delay: timedelta | None = None,
        start_signal: str | None = None,
        start_signal_args: Sequence[Any] = (),
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
        request_eager_start: bool = False,
        priority: Priority = Priority.default,
        versioning_override: VersioningOverride | None = None,
        stack_level: int = 2,
    ) -> WorkflowHandle[Any, Any]:
        """Start a workflow, or signal it and start it if it isn't running.

        Args:
            workflow: the run method of its class, or the name of its type.
            arg: its only argument; for several give `args`.
            id: unique among the open workflows of the namespace; use what your business knows.
            task_queue: the queue whose workers run it.
            result_type: of the result, when the workflow is given by name.
            execution_timeout: of the whole chain of runs; `run_timeout` of each run,
                `task_timeout` of each workflow task.
            id_reuse_policy: whether the id of a closed workflow may be used again.
            id_conflict_policy: what to do when a workflow of this id is open.
            retry_policy: the workflow as a whole is retried only if one is given.
            memo: values that are shown but not indexed.
            search_attributes: values that are indexed.
            start_delay: how long to wait before the first workflow task.
            start_signal: a signal that is there before the code starts; with it an open workflow
                of this id gets the signal and no second one is started.
            request_eager_start: a worker in this process that has room for it gets the first
                workflow task with the answer; without one it is a start like any other.

        Raises:
            WorkflowAlreadyStartedError: the policies don't allow another run of this id.
            RPCError: the service refused it for another reason.
            ValueError: both `arg` and `args` are given, or the retry policy isn't valid.
        """
        del stack_level  # a warning's place; there is none to give
        name, hint = WorkflowDefinition.name_and_result_type(workflow)
        return await self.outbound.start_workflow(
            StartWorkflowInput(
                workflow=name,
                args=arg_or_args(arg, args),
                id=id,
                task_queue=task_queue,
                execution_timeout=execution_timeout,
                run_timeout=run_timeout,
                task_timeout=task_timeout,
                id_reuse_policy=id_reuse_policy,
                id_conflict_policy=id_conflict_policy,
                retry_policy=retry_policy,
                cron_schedule=cron_schedule,
                memo=memo,
                search_attributes=search_attributes,
                start_delay=start_delay,
                headers={},
                start_signal=start_signal,
                start_signal_args=start_signal_args,
                static_summary=static_summary,
                static_details=static_details,
                ret_type=result_type or hint,
                rpc_metadata=rpc_metadata,
                rpc_timeout=rpc_timeout,
                request_eager_start=request_eager_start,
                priority=priority,
                versioning_override=versioning_override,
            )
        )

    @overload
    async def execute_workflow(
        self,
        workflow: MethodAsyncNoParam[SelfType, ReturnType],
        **options: Unpack[StartOptions],
    ) -> ReturnType: ...

    @overload
    async def execute_workflow(
        self,
        workflow: MethodAsyncSingleParam[SelfType, ParamType, ReturnType],
        arg: ParamType,
        **options: Unpack[StartOptions],
    ) -> ReturnType: ...

    @overload
    async def execute_workflow(
        self,
        workflow: Callable[Concatenate[SelfType, MultiParamSpec], Awaitable[ReturnType]],
        **options: Unpack[StartOptionsWithArgs],
    ) -> ReturnType: ...

    @overload
    async def execute_workflow(
        self,
        workflow: str,
        arg: Any = UNSET,
        **options: Unpack[AnyStartOptions],
    ) -> Any: ...

    async def execute_workflow(
        self,
        workflow: str | Callable[..., Any],
        arg: Any = UNSET,
        **options: Any,
    ) -> Any:
        """Start a workflow and wait for its result: `start_workflow`, then `result`.

        Raises:
            WorkflowFailureError: it did not complete.
            WorkflowAlreadyStartedError: the policies don't allow another run of this id.
        """
        handle: WorkflowHandle[Any, Any] = await self.start_workflow(workflow, arg, **options)
        return await handle.result()

    # --- finding ---

    def get_workflow_handle(
        self,
        workflow_id: str,
        *,
        run_id: str | None = None,
        first_execution_run_id: str | None = None,
        result_type: Any = None,
    ) -> WorkflowHandle[Any, Any]:
        """A handle for a workflow; whether there is one shows with the first call."""
        return WorkflowHandle(
            self,
            workflow_id,
            run_id=run_id,
            result_run_id=run_id,
            first_execution_run_id=first_execution_run_id,
            result_type=result_type,
        )

    def get_workflow_handle_for(
        self,
        workflow: Callable[Concatenate[SelfType, MultiParamSpec], Awaitable[ReturnType]],
        workflow_id: str,
        *,
        run_id: str | None = None,
        first_execution_run_id: str | None = None,
    ) -> WorkflowHandle[SelfType, ReturnType]:
        """A handle whose calls and result have the types of this workflow's class."""
        definition = WorkflowDefinition.must_from_run_fn(workflow)
        return self.get_workflow_handle(
            workflow_id,
            run_id=run_id,
            first_execution_run_id=first_execution_run_id,
            result_type=definition.ret_type,
        )

    @overload
    def get_async_activity_handle(
        self, *, workflow_id: str, run_id: str | None, activity_id: str
    ) -> AsyncActivityHandle: ...

    @overload
    def get_async_activity_handle(self, *, task_token: bytes) -> AsyncActivityHandle: ...

    @overload
    def get_async_activity_handle(
        self, *, activity_id: str, run_id: str | None = None
    ) -> AsyncActivityHandle: ...

    def get_async_activity_handle(
        self,
        *,
        workflow_id: str | None = None,
        run_id: str | None = None,
        activity_id: str | None = None,
        task_token: bytes | None = None,
    ) -> AsyncActivityHandle:
        """A handle with which to complete an activity from outside, or keep it alive.

        Args:
            workflow_id: with `activity_id`, names the activity of a workflow; `run_id` the run, by
                default the current one.
            task_token: names one attempt; it is in ``activity.info()``.

        Raises:
            ValueError: neither is given, or both.
        """
        if task_token is not None:
            if workflow_id is not None or run_id is not None or activity_id is not None:
                raise ValueError("Task token cannot be present with other IDs")
            return AsyncActivityHandle(self, task_token)
        if activity_id is None:
            raise ValueError(
                "Give a task token, or workflow_id, run_id (None: the current one) and activity_id"
            )
        return AsyncActivityHandle(
            self,
            AsyncActivityIDReference(
                workflow_id=workflow_id, run_id=run_id, activity_id=activity_id
            ),
        )

    def list_workflows(
        self,
        query: str | None = None,
        *,
        limit: int | None = None,
        page_size: int = 1000,
        next_page_token: bytes | None = None,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> WorkflowExecutionAsyncIterator:
        """Runs that a query finds, newest first; all without one."""
        return self.outbound.list_workflows(
            ListWorkflowsInput(
                query=query,
                page_size=page_size,
                next_page_token=next_page_token,
                rpc_metadata=rpc_metadata,
                rpc_timeout=rpc_timeout,
                limit=limit,
            )
        )

    async def count_workflows(
        self,
        query: str | None = None,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> WorkflowExecutionCount:
        """How many runs a query finds, in groups if it has GROUP BY."""
        return await self.outbound.count_workflows(
            CountWorkflowsInput(query=query, rpc_metadata=rpc_metadata, rpc_timeout=rpc_timeout)
        )


def _refuse_plugins(plugins: Sequence[Any]) -> None:
    if plugins:
        raise ValueError(
            "plugins are not supported: give the client what the plugin would set, such as "
            "data_converter and interceptors"
        )


#: What Temporal's client takes for its connection.
_CONNECTION_SETTINGS = frozenset(
    {
        "api_key",
        "connect_timeout",
        "dns_load_balancing_config",
        "grpc_compression",
        "http_connect_proxy_config",
        "keep_alive_config",
        "lazy",
        "payload_limits",
        "retry_config",
        "rpc_metadata",
        "runtime",
        "tls",
    }
)
