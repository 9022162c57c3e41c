"""Events of workflow tasks."""

from datetime import timedelta

from wfcore.protocol.common import TaskQueue
from wfcore.protocol.enums import (
    SuggestContinueAsNewReason,
    TimeoutType,
    VersioningBehavior,
    WorkflowTaskFailedCause,
)
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Int32, Message
from wfcore.protocol.metadata import (
    Deployment,
    MeteringMetadata,
    WorkerDeploymentVersion,
    WorkerVersionStamp,
    WorkflowTaskCompletedMetadata,
)


class WorkflowTaskScheduled(Message, frozen=True):
    """WORKFLOW_TASK_SCHEDULED (5)."""

    task_queue: TaskQueue | None = None
    start_to_close_timeout: timedelta | None = None
    attempt: Int32 = 0


class WorkflowTaskStarted(Message, frozen=True):
    """WORKFLOW_TASK_STARTED (6)."""

    scheduled_event_id: int = 0
    identity: str = ""
    request_id: str = ""
    suggest_continue_as_new: bool = False
    suggest_continue_as_new_reasons: tuple[SuggestContinueAsNewReason, ...] = ()
    target_worker_deployment_version_changed: bool = False
    history_size_bytes: int = 0
    worker_version: WorkerVersionStamp | None = None  # deprecated
    build_id_redirect_counter: int = 0  # deprecated


class WorkflowTaskCompleted(Message, frozen=True):
    """WORKFLOW_TASK_COMPLETED (7)."""

    scheduled_event_id: int = 0
    started_event_id: int = 0
    identity: str = ""
    binary_checksum: str = ""  # deprecated
    worker_version: WorkerVersionStamp | None = None  # deprecated
    sdk_metadata: WorkflowTaskCompletedMetadata | None = None
    metering_metadata: MeteringMetadata | None = None
    deployment: Deployment | None = None  # deprecated
    versioning_behavior: VersioningBehavior = VersioningBehavior.UNSPECIFIED
    worker_deployment_version: str = ""  # deprecated
    worker_deployment_name: str = ""
    deployment_version: WorkerDeploymentVersion | None = None


class WorkflowTaskTimedOut(Message, frozen=True):
    """WORKFLOW_TASK_TIMED_OUT (8)."""

    scheduled_event_id: int = 0
    started_event_id: int = 0
    timeout_type: TimeoutType = TimeoutType.UNSPECIFIED


class WorkflowTaskFailed(Message, frozen=True):
    """WORKFLOW_TASK_FAILED (9)."""

    scheduled_event_id: int = 0
    started_event_id: int = 0
    cause: WorkflowTaskFailedCause = WorkflowTaskFailedCause.UNSPECIFIED
    failure: Failure | None = None
    identity: str = ""
    base_run_id: str = ""
    new_run_id: str = ""
    fork_event_version: int = 0
    binary_checksum: str = ""  # deprecated
    worker_version: WorkerVersionStamp | None = None  # deprecated
