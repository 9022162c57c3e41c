"""Requests and answers of the calls that start, steer and read workflows."""

from datetime import timedelta

from wfcore.protocol.common import (
    FieldMask,
    Priority,
    RetryPolicy,
    TaskQueue,
    WorkflowExecution,
    WorkflowType,
)
from wfcore.protocol.enums import (
    HistoryEventFilterType,
    QueryRejectCondition,
    ResetReapplyExcludeType,
    ResetReapplyType,
    WorkflowExecutionStatus,
    WorkflowIdConflictPolicy,
    WorkflowIdReusePolicy,
)
from wfcore.protocol.events import History
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Int32, Message
from wfcore.protocol.metadata import (
    Callback,
    Link,
    PropagatedSerializationContext,
    TimeSkippingConfig,
    VersioningOverride,
)
from wfcore.protocol.payloads import Header, Memo, Payloads, SearchAttributes, UserMetadata
from wfcore.protocol.rpc.info import (
    CallbackInfo,
    CountWorkflowExecutionsResponseAggregationGroup,
    OnConflictOptions,
    PendingActivityInfo,
    PendingChildExecutionInfo,
    PendingNexusOperationInfo,
    PendingWorkflowTaskInfo,
    QueryRejected,
    WorkerDeploymentOptions,
    WorkflowExecutionConfig,
    WorkflowExecutionExtendedInfo,
    WorkflowExecutionInfo,
    WorkflowQuery,
)
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse


class StartWorkflowExecutionRequest(Message, frozen=True):
    """Start workflow execution request."""

    namespace: str = ""
    workflow_id: str = ""
    workflow_type: WorkflowType | None = None
    task_queue: TaskQueue | None = None
    input: Payloads | None = None
    workflow_execution_timeout: timedelta | None = None
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta | None = None
    identity: str = ""
    request_id: str = ""
    workflow_id_reuse_policy: WorkflowIdReusePolicy = WorkflowIdReusePolicy.UNSPECIFIED
    workflow_id_conflict_policy: WorkflowIdConflictPolicy = WorkflowIdConflictPolicy.UNSPECIFIED
    retry_policy: RetryPolicy | None = None
    cron_schedule: str = ""
    memo: Memo | None = None
    search_attributes: SearchAttributes | None = None
    header: Header | None = None
    request_eager_execution: bool = False
    continued_failure: Failure | None = None
    last_completion_result: Payloads | None = None
    workflow_start_delay: timedelta | None = None
    completion_callbacks: tuple[Callback, ...] = ()
    user_metadata: UserMetadata | None = None
    links: tuple[Link, ...] = ()
    versioning_override: VersioningOverride | None = None
    on_conflict_options: OnConflictOptions | None = None
    priority: Priority | None = None
    eager_worker_deployment_options: WorkerDeploymentOptions | None = None
    time_skipping_config: TimeSkippingConfig | None = None
    propagated_nexus_serialization_context: PropagatedSerializationContext | None = None


class StartWorkflowExecutionResponse(Message, frozen=True):
    """Start workflow execution response."""

    run_id: str = ""
    first_execution_run_id: str = ""
    started: bool = False
    status: WorkflowExecutionStatus = WorkflowExecutionStatus.UNSPECIFIED
    eager_workflow_task: PollWorkflowTaskQueueResponse | None = None
    link: Link | None = None


class SignalWorkflowExecutionRequest(Message, frozen=True):
    """Signal workflow execution request."""

    namespace: str = ""
    workflow_execution: WorkflowExecution | None = None
    signal_name: str = ""
    input: Payloads | None = None
    identity: str = ""
    request_id: str = ""
    control: str = ""  # deprecated
    header: Header | None = None
    links: tuple[Link, ...] = ()


class SignalWorkflowExecutionResponse(Message, frozen=True):
    """Signal workflow execution response."""

    link: Link | None = None


class SignalWithStartWorkflowExecutionRequest(Message, frozen=True):
    """Signal with start workflow execution request."""

    namespace: str = ""
    workflow_id: str = ""
    workflow_type: WorkflowType | None = None
    task_queue: TaskQueue | None = None
    input: Payloads | None = None
    workflow_execution_timeout: timedelta | None = None
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta | None = None
    identity: str = ""
    request_id: str = ""
    workflow_id_reuse_policy: WorkflowIdReusePolicy = WorkflowIdReusePolicy.UNSPECIFIED
    workflow_id_conflict_policy: WorkflowIdConflictPolicy = WorkflowIdConflictPolicy.UNSPECIFIED
    signal_name: str = ""
    signal_input: Payloads | None = None
    control: str = ""  # deprecated
    retry_policy: RetryPolicy | None = None
    cron_schedule: str = ""
    memo: Memo | None = None
    search_attributes: SearchAttributes | None = None
    header: Header | None = None
    workflow_start_delay: timedelta | None = None
    user_metadata: UserMetadata | None = None
    links: tuple[Link, ...] = ()
    versioning_override: VersioningOverride | None = None
    priority: Priority | None = None
    time_skipping_config: TimeSkippingConfig | None = None


class SignalWithStartWorkflowExecutionResponse(Message, frozen=True):
    """Signal with start workflow execution response."""

    run_id: str = ""
    first_execution_run_id: str = ""
    started: bool = False
    signal_link: Link | None = None


class RequestCancelWorkflowExecutionRequest(Message, frozen=True):
    """Request cancel workflow execution request."""

    namespace: str = ""
    workflow_execution: WorkflowExecution | None = None
    identity: str = ""
    request_id: str = ""
    first_execution_run_id: str = ""
    reason: str = ""
    links: tuple[Link, ...] = ()


class RequestCancelWorkflowExecutionResponse(Message, frozen=True):
    """Request cancel workflow execution response."""


class TerminateWorkflowExecutionRequest(Message, frozen=True):
    """Terminate workflow execution request."""

    namespace: str = ""
    workflow_execution: WorkflowExecution | None = None
    reason: str = ""
    details: Payloads | None = None
    identity: str = ""
    first_execution_run_id: str = ""
    links: tuple[Link, ...] = ()


class TerminateWorkflowExecutionResponse(Message, frozen=True):
    """Terminate workflow execution response."""


class PostResetOperationSignalWorkflow(Message, frozen=True):
    """A signal to a run that a reset has made."""

    signal_name: str = ""
    input: Payloads | None = None
    header: Header | None = None
    links: tuple[Link, ...] = ()


class PostResetOperationUpdateWorkflowOptions(Message, frozen=True):
    """Other options for a run that a reset has made."""

    update_mask: FieldMask | None = None


class PostResetOperation(Message, frozen=True):
    """What is done to a run that a reset has made; none of it is supported."""

    signal_workflow: PostResetOperationSignalWorkflow | None = None
    update_workflow_options: PostResetOperationUpdateWorkflowOptions | None = None


class ResetWorkflowExecutionRequest(Message, frozen=True):
    """Reset workflow execution request."""

    namespace: str = ""
    workflow_execution: WorkflowExecution | None = None
    reason: str = ""
    workflow_task_finish_event_id: int = 0
    request_id: str = ""
    reset_reapply_type: ResetReapplyType = ResetReapplyType.UNSPECIFIED
    reset_reapply_exclude_types: tuple[ResetReapplyExcludeType, ...] = ()
    post_reset_operations: tuple[PostResetOperation, ...] = ()
    identity: str = ""


class ResetWorkflowExecutionResponse(Message, frozen=True):
    """Reset workflow execution response."""

    run_id: str = ""


class DescribeWorkflowExecutionRequest(Message, frozen=True):
    """Describe workflow execution request."""

    namespace: str = ""
    execution: WorkflowExecution | None = None


class DescribeWorkflowExecutionResponse(Message, frozen=True):
    """Describe workflow execution response."""

    execution_config: WorkflowExecutionConfig | None = None
    workflow_execution_info: WorkflowExecutionInfo | None = None
    pending_activities: tuple[PendingActivityInfo, ...] = ()
    pending_children: tuple[PendingChildExecutionInfo, ...] = ()
    pending_workflow_task: PendingWorkflowTaskInfo | None = None
    callbacks: tuple[CallbackInfo, ...] = ()
    pending_nexus_operations: tuple[PendingNexusOperationInfo, ...] = ()
    workflow_extended_info: WorkflowExecutionExtendedInfo | None = None


class GetWorkflowExecutionHistoryRequest(Message, frozen=True):
    """Get workflow execution history request."""

    namespace: str = ""
    execution: WorkflowExecution | None = None
    maximum_page_size: Int32 = 0
    next_page_token: bytes = b""
    wait_new_event: bool = False
    history_event_filter_type: HistoryEventFilterType = HistoryEventFilterType.UNSPECIFIED
    skip_archival: bool = False


class GetWorkflowExecutionHistoryResponse(Message, frozen=True):
    """Get workflow execution history response."""

    history: History | None = None
    next_page_token: bytes = b""
    archived: bool = False
    propagated_nexus_serialization_context: PropagatedSerializationContext | None = None


class GetWorkflowExecutionHistoryReverseRequest(Message, frozen=True):
    """Get workflow execution history reverse request."""

    namespace: str = ""
    execution: WorkflowExecution | None = None
    maximum_page_size: Int32 = 0
    next_page_token: bytes = b""


class GetWorkflowExecutionHistoryReverseResponse(Message, frozen=True):
    """Get workflow execution history reverse response."""

    history: History | None = None
    next_page_token: bytes = b""


class ListWorkflowExecutionsRequest(Message, frozen=True):
    """List workflow executions request."""

    namespace: str = ""
    page_size: Int32 = 0
    next_page_token: bytes = b""
    query: str = ""


class ListWorkflowExecutionsResponse(Message, frozen=True):
    """List workflow executions response."""

    executions: tuple[WorkflowExecutionInfo, ...] = ()
    next_page_token: bytes = b""


class CountWorkflowExecutionsRequest(Message, frozen=True):
    """Count workflow executions request."""

    namespace: str = ""
    query: str = ""


class CountWorkflowExecutionsResponse(Message, frozen=True):
    """Count workflow executions response."""

    count: int = 0
    groups: tuple[CountWorkflowExecutionsResponseAggregationGroup, ...] = ()


class QueryWorkflowRequest(Message, frozen=True):
    """Query workflow request."""

    namespace: str = ""
    execution: WorkflowExecution | None = None
    query: WorkflowQuery | None = None
    query_reject_condition: QueryRejectCondition = QueryRejectCondition.UNSPECIFIED


class QueryWorkflowResponse(Message, frozen=True):
    """Query workflow response."""

    query_result: Payloads | None = None
    query_rejected: QueryRejected | None = None
    link: Link | None = None
