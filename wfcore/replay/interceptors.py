"""Hooks around a workflow: inbound before its code is called, outbound before it calls out.

A hook gets a record of the call and passes it on to the next one; the last is the engine itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NoReturn

from wfcore.common import (
    Priority,
    RetryPolicy,
    SearchAttributes,
    TypedSearchAttributes,
    VersioningOverride,
    WorkflowIDReusePolicy,
)
from wfcore.protocol.payloads import Payload
from wfcore.workflow import (
    ActivityCancellationType,
    ActivityHandle,
    ChildWorkflowCancellationType,
    ChildWorkflowHandle,
    ContinueAsNewVersioningBehavior,
    EventGroup,
    Info,
    ParentClosePolicy,
    VersioningIntent,
)


@dataclass(frozen=True)
class WorkflowInterceptorClassInput:
    """What a worker's interceptor gets when it is asked for its workflow interceptor's class.

    Functions put into `unsafe_extern_functions` are given by `workflow.extern_functions()`.
    """

    unsafe_extern_functions: MutableMapping[str, Callable[..., Any]]


@dataclass
class ExecuteWorkflowInput:
    """A call of the workflow's run method, which is unbound."""

    type: type
    run_fn: Callable[..., Awaitable[Any]]
    args: Sequence[Any]
    headers: Mapping[str, Payload]


@dataclass
class HandleSignalInput:
    """A signal."""

    signal: str
    args: Sequence[Any]
    headers: Mapping[str, Payload]


@dataclass
class HandleQueryInput:
    """A query."""

    id: str
    query: str
    args: Sequence[Any]
    headers: Mapping[str, Payload]


@dataclass
class HandleUpdateInput:
    """An update, for its validator and for its handler."""

    id: str
    update: str
    args: Sequence[Any]
    headers: Mapping[str, Payload]


@dataclass
class StartActivityInput:
    """A call of `workflow.start_activity` or `execute_activity`."""

    activity: str
    args: Sequence[Any]
    activity_id: str | None
    task_queue: str | None
    schedule_to_close_timeout: timedelta | None
    schedule_to_start_timeout: timedelta | None
    start_to_close_timeout: timedelta | None
    heartbeat_timeout: timedelta | None
    retry_policy: RetryPolicy | None
    cancellation_type: ActivityCancellationType
    headers: Mapping[str, Payload]
    disable_eager_execution: bool
    versioning_intent: VersioningIntent | None
    summary: str | None
    priority: Priority
    arg_types: Sequence[Any] | None
    ret_type: Any
    event_groups: Sequence[EventGroup] | None = field(default=None, kw_only=True)


@dataclass
class StartLocalActivityInput:
    """A call of `workflow.start_local_activity` or `execute_local_activity`."""

    activity: str
    args: Sequence[Any]
    activity_id: str | None
    schedule_to_close_timeout: timedelta | None
    schedule_to_start_timeout: timedelta | None
    start_to_close_timeout: timedelta | None
    retry_policy: RetryPolicy | None
    local_retry_threshold: timedelta | None
    cancellation_type: ActivityCancellationType
    headers: Mapping[str, Payload]
    summary: str | None
    event_groups: Sequence[EventGroup] | None = None
    arg_types: Sequence[Any] | None = None
    ret_type: Any = None


@dataclass
class StartChildWorkflowInput:
    """A call of `workflow.start_child_workflow` or `execute_child_workflow`."""

    workflow: str
    args: Sequence[Any]
    id: str
    task_queue: str | None
    cancellation_type: ChildWorkflowCancellationType
    parent_close_policy: ParentClosePolicy
    execution_timeout: timedelta | None
    run_timeout: timedelta | None
    task_timeout: timedelta | None
    id_reuse_policy: WorkflowIDReusePolicy
    retry_policy: RetryPolicy | None
    cron_schedule: str
    memo: Mapping[str, Any] | None
    search_attributes: SearchAttributes | TypedSearchAttributes | None
    headers: Mapping[str, Payload]
    versioning_intent: VersioningIntent | None
    static_summary: str | None
    static_details: str | None
    priority: Priority
    arg_types: Sequence[Any] | None
    ret_type: Any
    versioning_override: VersioningOverride | None = field(default=None, kw_only=True)
    event_groups: Sequence[EventGroup] | None = field(default=None, kw_only=True)


@dataclass
class SignalChildWorkflowInput:
    """A signal to a child, by its handle."""

    signal: str
    args: Sequence[Any]
    child_workflow_id: str
    headers: Mapping[str, Payload]
    event_groups: Sequence[EventGroup] | None = None


@dataclass
class SignalExternalWorkflowInput:
    """A signal to another workflow, by its handle."""

    signal: str
    args: Sequence[Any]
    namespace: str
    workflow_id: str
    workflow_run_id: str | None
    headers: Mapping[str, Payload]
    event_groups: Sequence[EventGroup] | None = None


@dataclass
class ContinueAsNewInput:
    """A call of `workflow.continue_as_new`."""

    workflow: str | None
    args: Sequence[Any]
    task_queue: str | None
    run_timeout: timedelta | None
    task_timeout: timedelta | None
    backoff_start_interval: timedelta | None
    retry_policy: RetryPolicy | None
    memo: Mapping[str, Any] | None
    search_attributes: SearchAttributes | TypedSearchAttributes | None
    headers: Mapping[str, Payload]
    versioning_intent: VersioningIntent | None
    initial_versioning_behavior: ContinueAsNewVersioningBehavior | None
    event_groups: Sequence[EventGroup] | None = None
    arg_types: Sequence[Any] | None = None


class WorkflowInboundInterceptor:
    """Around the calls of a workflow's methods; one object for each run."""

    def __init__(self, next: WorkflowInboundInterceptor) -> None:  # noqa: A002 - Temporal's name
        self.next = next

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        """Called once; give the next one `outbound`, or an object of your own around it."""
        self.next.init(outbound)

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002
        """Around the run method."""
        return await self.next.execute_workflow(input)

    async def handle_signal(self, input: HandleSignalInput) -> None:  # noqa: A002
        """Around a signal's handler."""
        return await self.next.handle_signal(input)

    async def handle_query(self, input: HandleQueryInput) -> Any:  # noqa: A002
        """Around a query's handler."""
        return await self.next.handle_query(input)

    def handle_update_validator(self, input: HandleUpdateInput) -> None:  # noqa: A002
        """Around an update's validator."""
        self.next.handle_update_validator(input)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:  # noqa: A002
        """Around an update's handler."""
        return await self.next.handle_update_handler(input)


class WorkflowOutboundInterceptor:
    """Around what a workflow calls; made by an inbound interceptor's `init`."""

    def __init__(self, next: WorkflowOutboundInterceptor) -> None:  # noqa: A002 - Temporal's name
        self.next = next

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:  # noqa: A002
        """Around `workflow.continue_as_new`."""
        self.next.continue_as_new(input)

    def info(self) -> Info:
        """Around `workflow.info`."""
        return self.next.info()

    async def signal_child_workflow(self, input: SignalChildWorkflowInput) -> None:  # noqa: A002
        """Around a signal to a child."""
        return await self.next.signal_child_workflow(input)

    async def signal_external_workflow(
        self,
        input: SignalExternalWorkflowInput,  # noqa: A002
    ) -> None:
        """Around a signal to another workflow."""
        return await self.next.signal_external_workflow(input)

    def start_activity(self, input: StartActivityInput) -> ActivityHandle[Any]:  # noqa: A002
        """Around the start of an activity."""
        return self.next.start_activity(input)

    async def start_child_workflow(
        self,
        input: StartChildWorkflowInput,  # noqa: A002
    ) -> ChildWorkflowHandle[Any, Any]:
        """Around the start of a child."""
        return await self.next.start_child_workflow(input)

    def start_local_activity(
        self,
        input: StartLocalActivityInput,  # noqa: A002
    ) -> ActivityHandle[Any]:
        """Around the start of a local activity."""
        return self.next.start_local_activity(input)
