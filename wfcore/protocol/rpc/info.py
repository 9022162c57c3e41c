"""What describe, list and count tell about runs, queues and namespaces."""

from datetime import datetime, timedelta

from wfcore.protocol.common import (
    ActivityType,
    Priority,
    RetryPolicy,
    TaskQueue,
    WorkflowExecution,
    WorkflowType,
)
from wfcore.protocol.enums import (
    ArchivalState,
    CallbackState,
    ContinueAsNewVersioningBehavior,
    EventType,
    NamespaceState,
    NexusOperationCancellationState,
    ParentClosePolicy,
    PendingActivityState,
    PendingNexusOperationState,
    PendingWorkflowTaskState,
    QueryResultType,
    ReplicationState,
    Severity,
    VersioningBehavior,
    WorkerVersioningMode,
    WorkflowExecutionStatus,
)
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Int32, Message
from wfcore.protocol.metadata import (
    Callback,
    Deployment,
    PropagatedSerializationContext,
    ResetPoints,
    VersioningOverride,
    WorkerDeploymentVersion,
    WorkerVersionStamp,
)
from wfcore.protocol.payloads import Header, Memo, Payload, Payloads, SearchAttributes, UserMetadata


class OnConflictOptions(Message, frozen=True):
    """On conflict options."""

    attach_request_id: bool = False
    attach_completion_callbacks: bool = False
    attach_links: bool = False


class WorkerDeploymentOptions(Message, frozen=True):
    """Worker deployment options."""

    deployment_name: str = ""
    build_id: str = ""
    worker_versioning_mode: WorkerVersioningMode = WorkerVersioningMode.UNSPECIFIED


class WorkflowQuery(Message, frozen=True):
    """Workflow query."""

    query_type: str = ""
    query_args: Payloads | None = None
    header: Header | None = None


class WorkflowExecutionConfig(Message, frozen=True):
    """Workflow execution config."""

    task_queue: TaskQueue | None = None
    workflow_execution_timeout: timedelta | None = None
    workflow_run_timeout: timedelta | None = None
    default_workflow_task_timeout: timedelta | None = None
    user_metadata: UserMetadata | None = None


class DeploymentTransition(Message, frozen=True):
    """Deployment transition."""

    deployment: Deployment | None = None


class DeploymentVersionTransition(Message, frozen=True):
    """Deployment version transition."""

    version: str = ""  # deprecated
    deployment_version: WorkerDeploymentVersion | None = None


class WorkflowExecutionVersioningInfo(Message, frozen=True):
    """Workflow execution versioning info."""

    behavior: VersioningBehavior = VersioningBehavior.UNSPECIFIED
    deployment: Deployment | None = None  # deprecated
    version: str = ""  # deprecated
    deployment_version: WorkerDeploymentVersion | None = None
    versioning_override: VersioningOverride | None = None
    deployment_transition: DeploymentTransition | None = None  # deprecated
    version_transition: DeploymentVersionTransition | None = None
    revision_number: int = 0
    continue_as_new_initial_versioning_behavior: ContinueAsNewVersioningBehavior = (
        ContinueAsNewVersioningBehavior.UNSPECIFIED
    )


class WorkflowExecutionInfo(Message, frozen=True):
    """Workflow execution info."""

    execution: WorkflowExecution | None = None
    type: WorkflowType | None = None
    start_time: datetime | None = None
    close_time: datetime | None = None
    status: WorkflowExecutionStatus = WorkflowExecutionStatus.UNSPECIFIED
    history_length: int = 0
    parent_namespace_id: str = ""
    parent_execution: WorkflowExecution | None = None
    execution_time: datetime | None = None
    memo: Memo | None = None
    search_attributes: SearchAttributes | None = None
    auto_reset_points: ResetPoints | None = None
    task_queue: str = ""
    state_transition_count: int = 0
    history_size_bytes: int = 0
    most_recent_worker_version_stamp: WorkerVersionStamp | None = None  # deprecated
    execution_duration: timedelta | None = None
    root_execution: WorkflowExecution | None = None
    assigned_build_id: str = ""  # deprecated
    inherited_build_id: str = ""  # deprecated
    first_run_id: str = ""
    versioning_info: WorkflowExecutionVersioningInfo | None = None
    worker_deployment_name: str = ""
    priority: Priority | None = None
    external_payload_size_bytes: int = 0
    external_payload_count: int = 0


class ActivityOptions(Message, frozen=True):
    """Activity options."""

    task_queue: TaskQueue | None = None
    schedule_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    retry_policy: RetryPolicy | None = None
    priority: Priority | None = None
    start_delay: timedelta | None = None


class PendingActivityInfoPauseInfoManual(Message, frozen=True):
    """Pending activity info pause info manual."""

    identity: str = ""
    reason: str = ""


class PendingActivityInfoPauseInfoRule(Message, frozen=True):
    """Pending activity info pause info rule."""

    rule_id: str = ""
    identity: str = ""
    reason: str = ""


class PendingActivityInfoPauseInfo(Message, frozen=True):
    """Pending activity info pause info."""

    pause_time: datetime | None = None
    manual: PendingActivityInfoPauseInfoManual | None = None
    rule: PendingActivityInfoPauseInfoRule | None = None


class PendingActivityInfo(Message, frozen=True):
    """Pending activity info."""

    activity_id: str = ""
    activity_type: ActivityType | None = None
    state: PendingActivityState = PendingActivityState.UNSPECIFIED
    heartbeat_details: Payloads | None = None
    last_heartbeat_time: datetime | None = None
    last_started_time: datetime | None = None
    attempt: Int32 = 0
    maximum_attempts: Int32 = 0
    scheduled_time: datetime | None = None
    expiration_time: datetime | None = None
    last_failure: Failure | None = None
    last_worker_identity: str = ""
    last_independently_assigned_build_id: str = ""  # deprecated
    last_worker_version_stamp: WorkerVersionStamp | None = None  # deprecated
    current_retry_interval: timedelta | None = None
    last_attempt_complete_time: datetime | None = None
    next_attempt_schedule_time: datetime | None = None
    paused: bool = False
    last_deployment: Deployment | None = None  # deprecated
    last_worker_deployment_version: str = ""  # deprecated
    last_deployment_version: WorkerDeploymentVersion | None = None
    priority: Priority | None = None
    pause_info: PendingActivityInfoPauseInfo | None = None
    activity_options: ActivityOptions | None = None


class PendingChildExecutionInfo(Message, frozen=True):
    """Pending child execution info."""

    workflow_id: str = ""
    run_id: str = ""
    workflow_type_name: str = ""
    initiated_id: int = 0
    parent_close_policy: ParentClosePolicy = ParentClosePolicy.UNSPECIFIED


class PendingWorkflowTaskInfo(Message, frozen=True):
    """Pending workflow task info."""

    state: PendingWorkflowTaskState = PendingWorkflowTaskState.UNSPECIFIED
    scheduled_time: datetime | None = None
    original_scheduled_time: datetime | None = None
    started_time: datetime | None = None
    attempt: Int32 = 0


class CallbackInfoUpdateWorkflowExecutionCompleted(Message, frozen=True):
    """Callback info update workflow execution completed."""

    update_id: str = ""


class CallbackInfoWorkflowClosed(Message, frozen=True):
    """Callback info workflow closed."""


class CallbackInfoTrigger(Message, frozen=True):
    """Callback info trigger."""

    workflow_closed: CallbackInfoWorkflowClosed | None = None
    update_workflow_execution_completed: CallbackInfoUpdateWorkflowExecutionCompleted | None = None


class CallbackInfo(Message, frozen=True):
    """Callback info."""

    callback: Callback | None = None
    trigger: CallbackInfoTrigger | None = None
    registration_time: datetime | None = None
    state: CallbackState = CallbackState.UNSPECIFIED
    attempt: Int32 = 0
    last_attempt_complete_time: datetime | None = None
    last_attempt_failure: Failure | None = None
    next_attempt_schedule_time: datetime | None = None
    blocked_reason: str = ""
    request_id: str = ""


class NexusOperationCancellationInfo(Message, frozen=True):
    """Nexus operation cancellation info."""

    requested_time: datetime | None = None
    state: NexusOperationCancellationState = NexusOperationCancellationState.UNSPECIFIED
    attempt: Int32 = 0
    last_attempt_complete_time: datetime | None = None
    last_attempt_failure: Failure | None = None
    next_attempt_schedule_time: datetime | None = None
    blocked_reason: str = ""


class PendingNexusOperationInfo(Message, frozen=True):
    """Pending nexus operation info."""

    endpoint: str = ""
    service: str = ""
    operation: str = ""
    operation_id: str = ""  # deprecated
    schedule_to_close_timeout: timedelta | None = None
    scheduled_time: datetime | None = None
    state: PendingNexusOperationState = PendingNexusOperationState.UNSPECIFIED
    attempt: Int32 = 0
    last_attempt_complete_time: datetime | None = None
    last_attempt_failure: Failure | None = None
    next_attempt_schedule_time: datetime | None = None
    cancellation_info: NexusOperationCancellationInfo | None = None
    scheduled_event_id: int = 0
    blocked_reason: str = ""
    operation_token: str = ""
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None


class RequestIdInfo(Message, frozen=True):
    """Request id info."""

    event_type: EventType = EventType.UNSPECIFIED
    event_id: int = 0
    buffered: bool = False


class WorkflowExecutionPauseInfo(Message, frozen=True):
    """Workflow execution pause info."""

    identity: str = ""
    paused_time: datetime | None = None
    reason: str = ""


class WorkflowExecutionExtendedInfo(Message, frozen=True):
    """Workflow execution extended info."""

    execution_expiration_time: datetime | None = None
    run_expiration_time: datetime | None = None
    cancel_requested: bool = False
    last_reset_time: datetime | None = None
    original_start_time: datetime | None = None
    reset_run_id: str = ""
    request_id_infos: dict[str, RequestIdInfo] = {}
    pause_info: WorkflowExecutionPauseInfo | None = None
    propagated_nexus_serialization_context: PropagatedSerializationContext | None = None


class CountWorkflowExecutionsResponseAggregationGroup(Message, frozen=True):
    """Count workflow executions response aggregation group."""

    group_values: tuple[Payload, ...] = ()
    count: int = 0


class QueryRejected(Message, frozen=True):
    """Query rejected."""

    status: WorkflowExecutionStatus = WorkflowExecutionStatus.UNSPECIFIED


class WorkerVersionCapabilities(Message, frozen=True):
    """Worker version capabilities."""

    build_id: str = ""
    use_versioning: bool = False
    deployment_series_name: str = ""


class StickyExecutionAttributes(Message, frozen=True):
    """Sticky execution attributes."""

    worker_task_queue: TaskQueue | None = None
    schedule_to_start_timeout: timedelta | None = None


class WorkflowQueryResult(Message, frozen=True):
    """Workflow query result."""

    result_type: QueryResultType = QueryResultType.UNSPECIFIED
    answer: Payloads | None = None
    error_message: str = ""
    failure: Failure | None = None


class RespondWorkflowTaskCompletedRequestCapabilities(Message, frozen=True):
    """Respond workflow task completed request capabilities."""

    discard_speculative_workflow_task_with_events: bool = False


class TaskQueueMetadata(Message, frozen=True):
    """Task queue metadata."""

    max_tasks_per_second: float | None = None


class GetSystemInfoResponseCapabilities(Message, frozen=True):
    """Get system info response capabilities."""

    signal_and_query_header: bool = False
    internal_error_differentiation: bool = False
    activity_failure_include_heartbeat: bool = False
    supports_schedules: bool = False
    encoded_failure_attributes: bool = False
    build_id_based_versioning: bool = False
    upsert_memo: bool = False
    eager_workflow_start: bool = False
    sdk_metadata: bool = False
    count_group_by_execution_status: bool = False
    nexus: bool = False
    server_scaled_deployments: bool = False
    server_scaled_provider_cloud_run: bool = False


class Alert(Message, frozen=True):
    """Alert."""

    message: str = ""
    severity: Severity = Severity.UNSPECIFIED


class ReleaseInfo(Message, frozen=True):
    """Release info."""

    version: str = ""
    release_time: datetime | None = None
    notes: str = ""


class VersionInfo(Message, frozen=True):
    """Version info."""

    current: ReleaseInfo | None = None
    recommended: ReleaseInfo | None = None
    instructions: str = ""
    alerts: tuple[Alert, ...] = ()
    last_update_time: datetime | None = None


class NamespaceInfoCapabilities(Message, frozen=True):
    """Namespace info capabilities."""

    eager_workflow_start: bool = False
    sync_update: bool = False
    async_update: bool = False
    worker_heartbeats: bool = False
    reported_problems_search_attribute: bool = False
    workflow_pause: bool = False
    standalone_activities: bool = False
    worker_poll_complete_on_shutdown: bool = False
    worker_commands: bool = False
    standalone_nexus_operation: bool = False
    workflow_update_callbacks: bool = False
    workflow_task_completion_pagination: bool = False
    standalone_activity_start_delay: bool = False
    standalone_activity_batch_operations: bool = False
    standalone_activity_operator_commands: bool = False


class NamespaceInfoLimits(Message, frozen=True):
    """Namespace info limits."""

    blob_size_limit_error: int = 0
    memo_size_limit_error: int = 0
    workflow_task_completion_size_limit_error: int = 0


class NamespaceInfo(Message, frozen=True):
    """Namespace info."""

    name: str = ""
    state: NamespaceState = NamespaceState.UNSPECIFIED
    description: str = ""
    owner_email: str = ""
    data: dict[str, str] = {}
    id: str = ""
    capabilities: NamespaceInfoCapabilities | None = None
    limits: NamespaceInfoLimits | None = None
    supports_schedules: bool = False


class BadBinaryInfo(Message, frozen=True):
    """Bad binary info."""

    reason: str = ""
    operator: str = ""
    create_time: datetime | None = None


class BadBinaries(Message, frozen=True):
    """Bad binaries."""

    binaries: dict[str, BadBinaryInfo] = {}


class NamespaceConfig(Message, frozen=True):
    """Namespace config."""

    workflow_execution_retention_ttl: timedelta | None = None
    bad_binaries: BadBinaries | None = None
    history_archival_state: ArchivalState = ArchivalState.UNSPECIFIED
    history_archival_uri: str = ""
    visibility_archival_state: ArchivalState = ArchivalState.UNSPECIFIED
    visibility_archival_uri: str = ""
    custom_search_attribute_aliases: dict[str, str] = {}


class ClusterReplicationConfig(Message, frozen=True):
    """Cluster replication config."""

    cluster_name: str = ""
    replication_ramp_duration: timedelta | None = None


class NamespaceReplicationConfig(Message, frozen=True):
    """Namespace replication config."""

    active_cluster_name: str = ""
    clusters: tuple[ClusterReplicationConfig, ...] = ()
    state: ReplicationState = ReplicationState.UNSPECIFIED


class FailoverStatus(Message, frozen=True):
    """Failover status."""

    failover_time: datetime | None = None
    failover_version: int = 0


class NamespaceFilter(Message, frozen=True):
    """Namespace filter."""

    include_deleted: bool = False
