"""Events of the run itself: start, close, and requests to it."""

from datetime import datetime, timedelta

from wfcore.protocol.common import Priority, RetryPolicy, TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import (
    ContinueAsNewInitiator,
    ContinueAsNewVersioningBehavior,
    RetryState,
)
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Int32, Message
from wfcore.protocol.metadata import (
    Callback,
    InheritedAutoUpgradeInfo,
    PropagatedSerializationContext,
    ResetPoints,
    TimeSkippingConfig,
    TimeSkippingStatePropagation,
    VersioningOverride,
    WorkerDeploymentVersion,
    WorkerVersionStamp,
)
from wfcore.protocol.payloads import Header, Memo, Payloads, SearchAttributes


class DeclinedTargetVersionUpgrade(Message, frozen=True):
    """Declined target version upgrade."""

    deployment_version: WorkerDeploymentVersion | None = None
    revision_number: int = 0


class WorkflowExecutionStarted(Message, frozen=True):
    """WORKFLOW_EXECUTION_STARTED (1)."""

    workflow_type: WorkflowType | None = None
    parent_workflow_namespace: str = ""
    parent_workflow_namespace_id: str = ""
    parent_workflow_execution: WorkflowExecution | None = None
    parent_initiated_event_id: int = 0
    task_queue: TaskQueue | None = None
    input: Payloads | None = None
    workflow_execution_timeout: timedelta | None = None
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta | None = None
    continued_execution_run_id: str = ""
    initiator: ContinueAsNewInitiator = ContinueAsNewInitiator.UNSPECIFIED
    continued_failure: Failure | None = None
    last_completion_result: Payloads | None = None
    original_execution_run_id: str = ""
    identity: str = ""
    first_execution_run_id: str = ""
    retry_policy: RetryPolicy | None = None
    attempt: Int32 = 0
    workflow_execution_expiration_time: datetime | None = None
    cron_schedule: str = ""
    first_workflow_task_backoff: timedelta | None = None
    memo: Memo | None = None
    search_attributes: SearchAttributes | None = None
    prev_auto_reset_points: ResetPoints | None = None
    header: Header | None = None
    parent_initiated_event_version: int = 0
    workflow_id: str = ""
    source_version_stamp: WorkerVersionStamp | None = None  # deprecated
    completion_callbacks: tuple[Callback, ...] = ()
    root_workflow_execution: WorkflowExecution | None = None
    inherited_build_id: str = ""  # deprecated
    versioning_override: VersioningOverride | None = None
    parent_pinned_worker_deployment_version: str = ""  # deprecated
    priority: Priority | None = None
    inherited_pinned_version: WorkerDeploymentVersion | None = None
    inherited_auto_upgrade_info: InheritedAutoUpgradeInfo | None = None
    eager_execution_accepted: bool = False
    declined_target_version_upgrade: DeclinedTargetVersionUpgrade | None = None
    time_skipping_config: TimeSkippingConfig | None = None
    time_skipping_state_propagation: TimeSkippingStatePropagation | None = None
    propagated_nexus_serialization_context: PropagatedSerializationContext | None = None


class WorkflowExecutionCompleted(Message, frozen=True):
    """WORKFLOW_EXECUTION_COMPLETED (2)."""

    result: Payloads | None = None
    workflow_task_completed_event_id: int = 0
    new_execution_run_id: str = ""


class WorkflowExecutionFailed(Message, frozen=True):
    """WORKFLOW_EXECUTION_FAILED (3)."""

    failure: Failure | None = None
    retry_state: RetryState = RetryState.UNSPECIFIED
    workflow_task_completed_event_id: int = 0
    new_execution_run_id: str = ""


class WorkflowExecutionTimedOut(Message, frozen=True):
    """WORKFLOW_EXECUTION_TIMED_OUT (4)."""

    retry_state: RetryState = RetryState.UNSPECIFIED
    new_execution_run_id: str = ""


class WorkflowExecutionContinuedAsNew(Message, frozen=True):
    """WORKFLOW_EXECUTION_CONTINUED_AS_NEW (28)."""

    new_execution_run_id: str = ""
    workflow_type: WorkflowType | None = None
    task_queue: TaskQueue | None = None
    input: Payloads | None = None
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta | None = None
    workflow_task_completed_event_id: int = 0
    backoff_start_interval: timedelta | None = None
    initiator: ContinueAsNewInitiator = ContinueAsNewInitiator.UNSPECIFIED
    failure: Failure | None = None  # deprecated
    last_completion_result: Payloads | None = None
    header: Header | None = None
    memo: Memo | None = None
    search_attributes: SearchAttributes | None = None
    inherit_build_id: bool = False  # deprecated
    initial_versioning_behavior: ContinueAsNewVersioningBehavior = (
        ContinueAsNewVersioningBehavior.UNSPECIFIED
    )


class WorkflowExecutionCancelRequested(Message, frozen=True):
    """WORKFLOW_EXECUTION_CANCEL_REQUESTED (20)."""

    cause: str = ""
    external_initiated_event_id: int = 0
    external_workflow_execution: WorkflowExecution | None = None
    identity: str = ""


class WorkflowExecutionCanceled(Message, frozen=True):
    """WORKFLOW_EXECUTION_CANCELED (21)."""

    workflow_task_completed_event_id: int = 0
    details: Payloads | None = None


class WorkflowExecutionSignaled(Message, frozen=True):
    """WORKFLOW_EXECUTION_SIGNALED (26)."""

    signal_name: str = ""
    input: Payloads | None = None
    identity: str = ""
    header: Header | None = None
    skip_generate_workflow_task: bool = False  # deprecated
    external_workflow_execution: WorkflowExecution | None = None
    request_id: str = ""


class WorkflowExecutionTerminated(Message, frozen=True):
    """WORKFLOW_EXECUTION_TERMINATED (27)."""

    reason: str = ""
    details: Payloads | None = None
    identity: str = ""


class WorkflowUpdateOptionsUpdate(Message, frozen=True):
    """Workflow update options update."""

    update_id: str = ""
    attached_request_id: str = ""
    attached_completion_callbacks: tuple[Callback, ...] = ()


class WorkflowExecutionOptionsUpdated(Message, frozen=True):
    """WORKFLOW_EXECUTION_OPTIONS_UPDATED (55)."""

    versioning_override: VersioningOverride | None = None
    unset_versioning_override: bool = False
    attached_request_id: str = ""
    attached_completion_callbacks: tuple[Callback, ...] = ()
    identity: str = ""
    priority: Priority | None = None
    time_skipping_config: TimeSkippingConfig | None = None
    time_skipping_config_updated: bool = False
    workflow_update_options: tuple[WorkflowUpdateOptionsUpdate, ...] = ()


class WorkflowExecutionPaused(Message, frozen=True):
    """WORKFLOW_EXECUTION_PAUSED (58)."""

    identity: str = ""
    reason: str = ""
    request_id: str = ""


class WorkflowExecutionUnpaused(Message, frozen=True):
    """WORKFLOW_EXECUTION_UNPAUSED (59)."""

    identity: str = ""
    reason: str = ""
    request_id: str = ""


class WorkflowExecutionTimeSkippingTransitioned(Message, frozen=True):
    """WORKFLOW_EXECUTION_TIME_SKIPPING_TRANSITIONED (60)."""

    target_time: datetime | None = None
    disabled_after_fast_forward: bool = False
    wall_clock_time: datetime | None = None
