"""Requests and answers by which a worker takes and answers activity tasks."""

from datetime import datetime, timedelta

from wfcore.protocol.common import (
    ActivityType,
    Priority,
    RetryPolicy,
    TaskQueue,
    WorkflowExecution,
    WorkflowType,
)
from wfcore.protocol.enums import ActivityTaskFailedCause
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Int32, Message
from wfcore.protocol.metadata import Deployment, PropagatedSerializationContext, WorkerVersionStamp
from wfcore.protocol.payloads import Header, Payloads
from wfcore.protocol.rpc.info import (
    TaskQueueMetadata,
    WorkerDeploymentOptions,
    WorkerVersionCapabilities,
)


class PollActivityTaskQueueResponse(Message, frozen=True):
    """Poll activity task queue response."""

    task_token: bytes = b""
    workflow_namespace: str = ""
    workflow_type: WorkflowType | None = None
    workflow_execution: WorkflowExecution | None = None
    activity_type: ActivityType | None = None
    activity_id: str = ""
    header: Header | None = None
    input: Payloads | None = None
    heartbeat_details: Payloads | None = None
    scheduled_time: datetime | None = None
    current_attempt_scheduled_time: datetime | None = None
    started_time: datetime | None = None
    attempt: Int32 = 0
    schedule_to_close_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    retry_policy: RetryPolicy | None = None
    priority: Priority | None = None
    activity_run_id: str = ""
    propagated_nexus_serialization_context: PropagatedSerializationContext | None = None


class PollActivityTaskQueueRequest(Message, frozen=True):
    """Poll activity task queue request."""

    namespace: str = ""
    task_queue: TaskQueue | None = None
    identity: str = ""
    worker_instance_key: str = ""
    worker_control_task_queue: str = ""
    task_queue_metadata: TaskQueueMetadata | None = None
    worker_version_capabilities: WorkerVersionCapabilities | None = None  # deprecated
    deployment_options: WorkerDeploymentOptions | None = None


class RecordActivityTaskHeartbeatRequest(Message, frozen=True):
    """Record activity task heartbeat request."""

    task_token: bytes = b""
    details: Payloads | None = None
    identity: str = ""
    namespace: str = ""
    resource_id: str = ""


class RecordActivityTaskHeartbeatResponse(Message, frozen=True):
    """Record activity task heartbeat response."""

    cancel_requested: bool = False
    activity_paused: bool = False
    activity_reset: bool = False


class RespondActivityTaskCompletedRequest(Message, frozen=True):
    """Respond activity task completed request."""

    task_token: bytes = b""
    result: Payloads | None = None
    identity: str = ""
    namespace: str = ""
    resource_id: str = ""
    worker_version: WorkerVersionStamp | None = None  # deprecated
    deployment: Deployment | None = None  # deprecated
    deployment_options: WorkerDeploymentOptions | None = None


class RespondActivityTaskCompletedResponse(Message, frozen=True):
    """Respond activity task completed response."""


class RespondActivityTaskFailedRequest(Message, frozen=True):
    """Respond activity task failed request."""

    task_token: bytes = b""
    failure: Failure | None = None
    identity: str = ""
    namespace: str = ""
    resource_id: str = ""
    last_heartbeat_details: Payloads | None = None
    worker_version: WorkerVersionStamp | None = None  # deprecated
    deployment: Deployment | None = None  # deprecated
    deployment_options: WorkerDeploymentOptions | None = None
    cause: ActivityTaskFailedCause = ActivityTaskFailedCause.UNSPECIFIED


class RespondActivityTaskFailedResponse(Message, frozen=True):
    """Respond activity task failed response."""

    failures: tuple[Failure, ...] = ()


class RespondActivityTaskCanceledRequest(Message, frozen=True):
    """Respond activity task canceled request."""

    task_token: bytes = b""
    details: Payloads | None = None
    identity: str = ""
    namespace: str = ""
    resource_id: str = ""
    worker_version: WorkerVersionStamp | None = None  # deprecated
    deployment: Deployment | None = None  # deprecated
    deployment_options: WorkerDeploymentOptions | None = None


class RespondActivityTaskCanceledResponse(Message, frozen=True):
    """Respond activity task canceled response."""


class RecordActivityTaskHeartbeatByIdRequest(Message, frozen=True):
    """Record activity task heartbeat by id request."""

    namespace: str = ""
    workflow_id: str = ""
    run_id: str = ""
    activity_id: str = ""
    details: Payloads | None = None
    identity: str = ""
    resource_id: str = ""


class RecordActivityTaskHeartbeatByIdResponse(Message, frozen=True):
    """Record activity task heartbeat by id response."""

    cancel_requested: bool = False
    activity_paused: bool = False
    activity_reset: bool = False


class RespondActivityTaskCompletedByIdRequest(Message, frozen=True):
    """Respond activity task completed by id request."""

    namespace: str = ""
    workflow_id: str = ""
    run_id: str = ""
    activity_id: str = ""
    result: Payloads | None = None
    identity: str = ""
    resource_id: str = ""


class RespondActivityTaskCompletedByIdResponse(Message, frozen=True):
    """Respond activity task completed by id response."""


class RespondActivityTaskFailedByIdRequest(Message, frozen=True):
    """Respond activity task failed by id request."""

    namespace: str = ""
    workflow_id: str = ""
    run_id: str = ""
    activity_id: str = ""
    failure: Failure | None = None
    identity: str = ""
    last_heartbeat_details: Payloads | None = None
    resource_id: str = ""
    cause: ActivityTaskFailedCause = ActivityTaskFailedCause.UNSPECIFIED


class RespondActivityTaskFailedByIdResponse(Message, frozen=True):
    """Respond activity task failed by id response."""

    failures: tuple[Failure, ...] = ()


class RespondActivityTaskCanceledByIdRequest(Message, frozen=True):
    """Respond activity task canceled by id request."""

    namespace: str = ""
    workflow_id: str = ""
    run_id: str = ""
    activity_id: str = ""
    details: Payloads | None = None
    identity: str = ""
    deployment_options: WorkerDeploymentOptions | None = None
    resource_id: str = ""


class RespondActivityTaskCanceledByIdResponse(Message, frozen=True):
    """Respond activity task canceled by id response."""
