"""Hooks around a client's calls, and the records that they get."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from wfcore.client._async_activities import (
    CompleteAsyncActivityInput,
    FailAsyncActivityInput,
    HeartbeatAsyncActivityInput,
    ReportCancellationAsyncActivityInput,
)
from wfcore.client._executions import WorkflowExecutionCount, WorkflowExecutionDescription
from wfcore.client._history import WorkflowHistoryEventFilterType
from wfcore.common import (
    Priority,
    QueryRejectCondition,
    RetryPolicy,
    SearchAttributes,
    TypedSearchAttributes,
    VersioningOverride,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from wfcore.protocol.payloads import Payload
from wfcore.protocol.rpc.workflows import StartWorkflowExecutionResponse

if TYPE_CHECKING:
    from wfcore.client._handles import WorkflowHandle
    from wfcore.client._iterators import (
        WorkflowExecutionAsyncIterator,
        WorkflowHistoryEventAsyncIterator,
    )
    from wfcore.client._updates import WorkflowUpdateHandle, WorkflowUpdateStage


@dataclass
class StartWorkflowInput:
    """For `OutboundInterceptor.start_workflow`."""

    workflow: str
    args: Sequence[Any]
    id: str
    task_queue: str
    execution_timeout: timedelta | None
    run_timeout: timedelta | None
    task_timeout: timedelta | None
    id_reuse_policy: WorkflowIDReusePolicy
    id_conflict_policy: WorkflowIDConflictPolicy
    retry_policy: RetryPolicy | None
    cron_schedule: str
    memo: Mapping[str, Any] | None
    search_attributes: SearchAttributes | TypedSearchAttributes | None
    start_delay: timedelta | None
    headers: Mapping[str, Payload]
    start_signal: str | None
    start_signal_args: Sequence[Any]
    static_summary: str | None
    static_details: str | None
    ret_type: Any
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None
    request_eager_start: bool
    priority: Priority
    versioning_override: VersioningOverride | None = None


@dataclass
class CancelWorkflowInput:
    """For `OutboundInterceptor.cancel_workflow`."""

    id: str
    run_id: str | None
    first_execution_run_id: str | None
    reason: str
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None


@dataclass
class DescribeWorkflowInput:
    """For `OutboundInterceptor.describe_workflow`."""

    id: str
    run_id: str | None
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None


@dataclass
class FetchWorkflowHistoryEventsInput:
    """For `OutboundInterceptor.fetch_workflow_history_events`."""

    id: str
    run_id: str | None
    page_size: int | None
    next_page_token: bytes | None
    wait_new_event: bool
    event_filter_type: WorkflowHistoryEventFilterType
    skip_archival: bool
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None


@dataclass
class ListWorkflowsInput:
    """For `OutboundInterceptor.list_workflows`."""

    query: str | None
    page_size: int
    next_page_token: bytes | None
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None
    limit: int | None


@dataclass
class CountWorkflowsInput:
    """For `OutboundInterceptor.count_workflows`."""

    query: str | None
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None


@dataclass
class QueryWorkflowInput:
    """For `OutboundInterceptor.query_workflow`."""

    id: str
    run_id: str | None
    query: str
    args: Sequence[Any]
    reject_condition: QueryRejectCondition | None
    headers: Mapping[str, Payload]
    ret_type: Any
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None


@dataclass
class SignalWorkflowInput:
    """For `OutboundInterceptor.signal_workflow`."""

    id: str
    run_id: str | None
    signal: str
    args: Sequence[Any]
    headers: Mapping[str, Payload]
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None


@dataclass
class TerminateWorkflowInput:
    """For `OutboundInterceptor.terminate_workflow`."""

    id: str
    run_id: str | None
    first_execution_run_id: str | None
    args: Sequence[Any]
    reason: str | None
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None


@dataclass
class StartWorkflowUpdateInput:
    """For `OutboundInterceptor.start_workflow_update`."""

    id: str
    run_id: str | None
    first_execution_run_id: str | None
    update_id: str | None
    update: str
    args: Sequence[Any]
    wait_for_stage: WorkflowUpdateStage
    headers: Mapping[str, Payload]
    ret_type: Any
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None


@dataclass
class UpdateWithStartUpdateWorkflowInput:
    """The update of `OutboundInterceptor.start_update_with_start_workflow`."""

    update_id: str | None
    update: str
    args: Sequence[Any]
    wait_for_stage: WorkflowUpdateStage
    headers: Mapping[str, Payload]
    ret_type: Any


@dataclass
class UpdateWithStartStartWorkflowInput:
    """The start of `OutboundInterceptor.start_update_with_start_workflow`."""

    workflow: str
    args: Sequence[Any]
    id: str
    task_queue: str
    execution_timeout: timedelta | None
    run_timeout: timedelta | None
    task_timeout: timedelta | None
    id_reuse_policy: WorkflowIDReusePolicy
    id_conflict_policy: WorkflowIDConflictPolicy
    retry_policy: RetryPolicy | None
    cron_schedule: str
    memo: Mapping[str, Any] | None
    search_attributes: SearchAttributes | TypedSearchAttributes | None
    start_delay: timedelta | None
    headers: Mapping[str, Payload]
    static_summary: str | None
    static_details: str | None
    ret_type: Any
    priority: Priority
    versioning_override: VersioningOverride | None = None


@dataclass
class StartWorkflowUpdateWithStartInput:
    """For `OutboundInterceptor.start_update_with_start_workflow`."""

    start_workflow_input: UpdateWithStartStartWorkflowInput
    update_workflow_input: UpdateWithStartUpdateWorkflowInput
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None
    _on_start: Callable[[StartWorkflowExecutionResponse], None]
    _on_start_error: Callable[[BaseException], None]


class Interceptor:
    """What a client is given to hook into its calls.

    One that derives from `wfcore.worker.Interceptor` too hooks into the workers that are made with
    this client.
    """

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        """Wrap the interceptor of the client's calls."""
        return next


# ruff: noqa: A002 - the parameters below have Temporal's names
class OutboundInterceptor:
    """Around a client's calls; by default everything goes to the next one."""

    def __init__(self, next: OutboundInterceptor) -> None:
        self.next = next

    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        """For `Client.start_workflow`."""
        return await self.next.start_workflow(input)

    async def cancel_workflow(self, input: CancelWorkflowInput) -> None:
        """For `WorkflowHandle.cancel`."""
        await self.next.cancel_workflow(input)

    async def describe_workflow(self, input: DescribeWorkflowInput) -> WorkflowExecutionDescription:
        """For `WorkflowHandle.describe`."""
        return await self.next.describe_workflow(input)

    def fetch_workflow_history_events(
        self, input: FetchWorkflowHistoryEventsInput
    ) -> WorkflowHistoryEventAsyncIterator:
        """For `WorkflowHandle.fetch_history_events`, which `result` uses too."""
        return self.next.fetch_workflow_history_events(input)

    def list_workflows(self, input: ListWorkflowsInput) -> WorkflowExecutionAsyncIterator:
        """For `Client.list_workflows`."""
        return self.next.list_workflows(input)

    async def count_workflows(self, input: CountWorkflowsInput) -> WorkflowExecutionCount:
        """For `Client.count_workflows`."""
        return await self.next.count_workflows(input)

    async def query_workflow(self, input: QueryWorkflowInput) -> Any:
        """For `WorkflowHandle.query`."""
        return await self.next.query_workflow(input)

    async def signal_workflow(self, input: SignalWorkflowInput) -> None:
        """For `WorkflowHandle.signal`."""
        await self.next.signal_workflow(input)

    async def terminate_workflow(self, input: TerminateWorkflowInput) -> None:
        """For `WorkflowHandle.terminate`."""
        await self.next.terminate_workflow(input)

    async def start_workflow_update(
        self, input: StartWorkflowUpdateInput
    ) -> WorkflowUpdateHandle[Any]:
        """For `WorkflowHandle.start_update` and `execute_update`."""
        return await self.next.start_workflow_update(input)

    async def start_update_with_start_workflow(
        self, input: StartWorkflowUpdateWithStartInput
    ) -> WorkflowUpdateHandle[Any]:
        """For `Client.start_update_with_start_workflow` and the one that waits for its result."""
        return await self.next.start_update_with_start_workflow(input)

    async def heartbeat_async_activity(self, input: HeartbeatAsyncActivityInput) -> None:
        """For `AsyncActivityHandle.heartbeat`."""
        await self.next.heartbeat_async_activity(input)

    async def complete_async_activity(self, input: CompleteAsyncActivityInput) -> None:
        """For `AsyncActivityHandle.complete`."""
        await self.next.complete_async_activity(input)

    async def fail_async_activity(self, input: FailAsyncActivityInput) -> None:
        """For `AsyncActivityHandle.fail`."""
        await self.next.fail_async_activity(input)

    async def report_cancellation_async_activity(
        self, input: ReportCancellationAsyncActivityInput
    ) -> None:
        """For `AsyncActivityHandle.report_cancellation`."""
        await self.next.report_cancellation_async_activity(input)
