"""Events of activities."""

from datetime import timedelta

from wfcore.protocol.common import ActivityType, Priority, RetryPolicy, TaskQueue
from wfcore.protocol.enums import ActivityTaskFailedCause, RetryState
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Int32, Message
from wfcore.protocol.metadata import WorkerVersionStamp
from wfcore.protocol.payloads import Header, Payloads


class ActivityTaskScheduled(Message, frozen=True):
    """ACTIVITY_TASK_SCHEDULED (10)."""

    activity_id: str = ""
    activity_type: ActivityType | None = None
    task_queue: TaskQueue | None = None
    header: Header | None = None
    input: Payloads | None = None
    schedule_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    workflow_task_completed_event_id: int = 0
    retry_policy: RetryPolicy | None = None
    use_workflow_build_id: bool = False  # deprecated
    priority: Priority | None = None


class ActivityTaskStarted(Message, frozen=True):
    """ACTIVITY_TASK_STARTED (11)."""

    scheduled_event_id: int = 0
    identity: str = ""
    request_id: str = ""
    attempt: Int32 = 0
    last_failure: Failure | None = None
    worker_version: WorkerVersionStamp | None = None  # deprecated
    build_id_redirect_counter: int = 0  # deprecated


class ActivityTaskCompleted(Message, frozen=True):
    """ACTIVITY_TASK_COMPLETED (12)."""

    result: Payloads | None = None
    scheduled_event_id: int = 0
    started_event_id: int = 0
    identity: str = ""
    worker_version: WorkerVersionStamp | None = None  # deprecated


class ActivityTaskFailed(Message, frozen=True):
    """ACTIVITY_TASK_FAILED (13)."""

    failure: Failure | None = None
    scheduled_event_id: int = 0
    started_event_id: int = 0
    identity: str = ""
    retry_state: RetryState = RetryState.UNSPECIFIED
    worker_version: WorkerVersionStamp | None = None  # deprecated
    cause: ActivityTaskFailedCause = ActivityTaskFailedCause.UNSPECIFIED


class ActivityTaskTimedOut(Message, frozen=True):
    """ACTIVITY_TASK_TIMED_OUT (14)."""

    failure: Failure | None = None
    scheduled_event_id: int = 0
    started_event_id: int = 0
    retry_state: RetryState = RetryState.UNSPECIFIED


class ActivityTaskCancelRequested(Message, frozen=True):
    """ACTIVITY_TASK_CANCEL_REQUESTED (15)."""

    scheduled_event_id: int = 0
    workflow_task_completed_event_id: int = 0


class ActivityTaskCanceled(Message, frozen=True):
    """ACTIVITY_TASK_CANCELED (16)."""

    details: Payloads | None = None
    latest_cancel_requested_event_id: int = 0
    scheduled_event_id: int = 0
    started_event_id: int = 0
    identity: str = ""
    worker_version: WorkerVersionStamp | None = None  # deprecated


class ActivityPropertiesModifiedExternally(Message, frozen=True):
    """ACTIVITY_PROPERTIES_MODIFIED_EXTERNALLY (45)."""

    scheduled_event_id: int = 0
    new_retry_policy: RetryPolicy | None = None
