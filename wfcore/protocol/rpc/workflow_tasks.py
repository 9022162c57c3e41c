"""Requests and answers by which a worker takes and answers workflow tasks."""

from datetime import datetime

from wfcore.protocol.commands import Command
from wfcore.protocol.common import TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import QueryResultType, VersioningBehavior, WorkflowTaskFailedCause
from wfcore.protocol.events import History
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Int32, Message
from wfcore.protocol.metadata import (
    Deployment,
    MeteringMetadata,
    WorkerVersionStamp,
    WorkflowTaskCompletedMetadata,
)
from wfcore.protocol.payloads import Payloads
from wfcore.protocol.rpc.activity_tasks import PollActivityTaskQueueResponse
from wfcore.protocol.rpc.info import (
    RespondWorkflowTaskCompletedRequestCapabilities,
    StickyExecutionAttributes,
    WorkerDeploymentOptions,
    WorkerVersionCapabilities,
    WorkflowQuery,
    WorkflowQueryResult,
)
from wfcore.protocol.updates import ProtocolMessage


class PollWorkflowTaskQueueResponse(Message, frozen=True):
    """Poll workflow task queue response."""

    task_token: bytes = b""
    workflow_execution: WorkflowExecution | None = None
    workflow_type: WorkflowType | None = None
    previous_started_event_id: int = 0
    started_event_id: int = 0
    attempt: Int32 = 0
    backlog_count_hint: int = 0
    history: History | None = None
    next_page_token: bytes = b""
    query: WorkflowQuery | None = None
    workflow_execution_task_queue: TaskQueue | None = None
    scheduled_time: datetime | None = None
    started_time: datetime | None = None
    queries: dict[str, WorkflowQuery] = {}
    messages: tuple[ProtocolMessage, ...] = ()


class PollWorkflowTaskQueueRequest(Message, frozen=True):
    """Poll workflow task queue request."""

    namespace: str = ""
    task_queue: TaskQueue | None = None
    identity: str = ""
    worker_instance_key: str = ""
    worker_control_task_queue: str = ""
    binary_checksum: str = ""  # deprecated
    worker_version_capabilities: WorkerVersionCapabilities | None = None  # deprecated
    deployment_options: WorkerDeploymentOptions | None = None


class RespondWorkflowTaskCompletedRequest(Message, frozen=True):
    """Respond workflow task completed request."""

    task_token: bytes = b""
    commands: tuple[Command, ...] = ()
    messages: tuple[ProtocolMessage, ...] = ()
    identity: str = ""
    sticky_attributes: StickyExecutionAttributes | None = None
    return_new_workflow_task: bool = False
    force_create_new_workflow_task: bool = False
    binary_checksum: str = ""  # deprecated
    query_results: dict[str, WorkflowQueryResult] = {}
    namespace: str = ""
    resource_id: str = ""
    worker_version_stamp: WorkerVersionStamp | None = None  # deprecated
    sdk_metadata: WorkflowTaskCompletedMetadata | None = None
    metering_metadata: MeteringMetadata | None = None
    capabilities: RespondWorkflowTaskCompletedRequestCapabilities | None = None
    deployment: Deployment | None = None  # deprecated
    versioning_behavior: VersioningBehavior = VersioningBehavior.UNSPECIFIED
    deployment_options: WorkerDeploymentOptions | None = None
    worker_instance_key: str = ""
    worker_control_task_queue: str = ""
    page_number: Int32 = 0
    intermediate_page: bool = False


class RespondWorkflowTaskCompletedResponse(Message, frozen=True):
    """Respond workflow task completed response."""

    workflow_task: PollWorkflowTaskQueueResponse | None = None
    activity_tasks: tuple[PollActivityTaskQueueResponse, ...] = ()
    reset_history_event_id: int = 0


class RespondWorkflowTaskFailedRequest(Message, frozen=True):
    """Respond workflow task failed request."""

    task_token: bytes = b""
    cause: WorkflowTaskFailedCause = WorkflowTaskFailedCause.UNSPECIFIED
    failure: Failure | None = None
    identity: str = ""
    binary_checksum: str = ""  # deprecated
    namespace: str = ""
    resource_id: str = ""
    messages: tuple[ProtocolMessage, ...] = ()
    worker_version: WorkerVersionStamp | None = None  # deprecated
    deployment: Deployment | None = None  # deprecated
    deployment_options: WorkerDeploymentOptions | None = None


class RespondWorkflowTaskFailedResponse(Message, frozen=True):
    """Respond workflow task failed response."""


class RespondQueryTaskCompletedRequest(Message, frozen=True):
    """Respond query task completed request."""

    task_token: bytes = b""
    completed_type: QueryResultType = QueryResultType.UNSPECIFIED
    query_result: Payloads | None = None
    error_message: str = ""
    namespace: str = ""
    failure: Failure | None = None
    cause: WorkflowTaskFailedCause = WorkflowTaskFailedCause.UNSPECIFIED


class RespondQueryTaskCompletedResponse(Message, frozen=True):
    """Respond query task completed response."""
