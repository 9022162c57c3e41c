"""What workflow code asks for at the end of a workflow task."""

from datetime import timedelta

from wfcore.protocol.common import (
    ActivityType,
    Priority,
    RetryPolicy,
    TaskQueue,
    WorkflowExecution,
    WorkflowType,
)
from wfcore.protocol.enums import (
    CommandType,
    ContinueAsNewInitiator,
    ContinueAsNewVersioningBehavior,
    ParentClosePolicy,
    WorkflowIdReusePolicy,
)
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message
from wfcore.protocol.metadata import EventGroupMarker, VersioningOverride
from wfcore.protocol.payloads import (
    Header,
    Memo,
    Payload,
    Payloads,
    SearchAttributes,
    UserMetadata,
)


class ScheduleActivityTask(Message, frozen=True):
    """SCHEDULE_ACTIVITY_TASK."""

    activity_id: str = ""
    activity_type: ActivityType | None = None
    task_queue: TaskQueue | None = None
    header: Header | None = None
    input: Payloads | None = None
    schedule_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    retry_policy: RetryPolicy | None = None
    request_eager_execution: bool = False
    use_workflow_build_id: bool = False
    priority: Priority | None = None


class RequestCancelActivityTask(Message, frozen=True):
    """REQUEST_CANCEL_ACTIVITY_TASK."""

    scheduled_event_id: int = 0


class StartTimer(Message, frozen=True):
    """START_TIMER."""

    timer_id: str = ""
    start_to_fire_timeout: timedelta | None = None


class CompleteWorkflowExecution(Message, frozen=True):
    """COMPLETE_WORKFLOW_EXECUTION."""

    result: Payloads | None = None


class FailWorkflowExecution(Message, frozen=True):
    """FAIL_WORKFLOW_EXECUTION."""

    failure: Failure | None = None


class CancelTimer(Message, frozen=True):
    """CANCEL_TIMER."""

    timer_id: str = ""


class CancelWorkflowExecution(Message, frozen=True):
    """CANCEL_WORKFLOW_EXECUTION."""

    details: Payloads | None = None


class RequestCancelExternalWorkflowExecution(Message, frozen=True):
    """REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION."""

    namespace: str = ""  # deprecated
    workflow_id: str = ""
    run_id: str = ""
    control: str = ""  # deprecated
    child_workflow_only: bool = False
    reason: str = ""


class SignalExternalWorkflowExecution(Message, frozen=True):
    """SIGNAL_EXTERNAL_WORKFLOW_EXECUTION."""

    namespace: str = ""  # deprecated
    execution: WorkflowExecution | None = None
    signal_name: str = ""
    input: Payloads | None = None
    control: str = ""  # deprecated
    child_workflow_only: bool = False
    header: Header | None = None


class UpsertWorkflowSearchAttributes(Message, frozen=True):
    """UPSERT_WORKFLOW_SEARCH_ATTRIBUTES."""

    search_attributes: SearchAttributes | None = None


class ModifyWorkflowProperties(Message, frozen=True):
    """MODIFY_WORKFLOW_PROPERTIES."""

    upserted_memo: Memo | None = None


class RecordMarker(Message, frozen=True):
    """RECORD_MARKER."""

    marker_name: str = ""
    details: dict[str, Payloads] = {}
    header: Header | None = None
    failure: Failure | None = None


class ContinueAsNewWorkflowExecution(Message, frozen=True):
    """CONTINUE_AS_NEW_WORKFLOW_EXECUTION."""

    workflow_type: WorkflowType | None = None
    task_queue: TaskQueue | None = None
    input: Payloads | None = None
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta | None = None
    backoff_start_interval: timedelta | None = None
    retry_policy: RetryPolicy | None = None
    initiator: ContinueAsNewInitiator = ContinueAsNewInitiator.UNSPECIFIED
    failure: Failure | None = None
    last_completion_result: Payloads | None = None
    cron_schedule: str = ""
    header: Header | None = None
    memo: Memo | None = None
    search_attributes: SearchAttributes | None = None
    inherit_build_id: bool = False  # deprecated
    initial_versioning_behavior: ContinueAsNewVersioningBehavior = (
        ContinueAsNewVersioningBehavior.UNSPECIFIED
    )


class StartChildWorkflowExecution(Message, frozen=True):
    """START_CHILD_WORKFLOW_EXECUTION."""

    namespace: str = ""  # deprecated
    workflow_id: str = ""
    workflow_type: WorkflowType | None = None
    task_queue: TaskQueue | None = None
    input: Payloads | None = None
    workflow_execution_timeout: timedelta | None = None
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta | None = None
    parent_close_policy: ParentClosePolicy = ParentClosePolicy.UNSPECIFIED
    control: str = ""
    workflow_id_reuse_policy: WorkflowIdReusePolicy = WorkflowIdReusePolicy.UNSPECIFIED
    retry_policy: RetryPolicy | None = None
    cron_schedule: str = ""
    header: Header | None = None
    memo: Memo | None = None
    search_attributes: SearchAttributes | None = None
    inherit_build_id: bool = False  # deprecated
    priority: Priority | None = None
    versioning_override: VersioningOverride | None = None


class ProtocolMessage(Message, frozen=True):
    """PROTOCOL_MESSAGE."""

    message_id: str = ""


class ScheduleNexusOperation(Message, frozen=True):
    """SCHEDULE_NEXUS_OPERATION."""

    endpoint: str = ""
    service: str = ""
    operation: str = ""
    input: Payload | None = None
    schedule_to_close_timeout: timedelta | None = None
    nexus_header: dict[str, str] = {}
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None


class RequestCancelNexusOperation(Message, frozen=True):
    """REQUEST_CANCEL_NEXUS_OPERATION."""

    scheduled_event_id: int = 0


_KINDS: tuple[type[Message], ...] = (
    ScheduleActivityTask,
    StartTimer,
    CompleteWorkflowExecution,
    FailWorkflowExecution,
    RequestCancelActivityTask,
    CancelTimer,
    CancelWorkflowExecution,
    RequestCancelExternalWorkflowExecution,
    RecordMarker,
    ContinueAsNewWorkflowExecution,
    StartChildWorkflowExecution,
    SignalExternalWorkflowExecution,
    UpsertWorkflowSearchAttributes,
    ProtocolMessage,
    ModifyWorkflowProperties,
    ScheduleNexusOperation,
    RequestCancelNexusOperation,
)
#: Attributes by kind of command.
ATTRIBUTES: dict[CommandType, type[Message]] = {
    CommandType.from_wire(cls.__name__): cls for cls in _KINDS
}
#: Kind of command by its attributes.
COMMAND_TYPES: dict[type[Message], CommandType] = {cls: kind for kind, cls in ATTRIBUTES.items()}
#: Commands that end a run; a response holds at most one, as its last.
CLOSING = frozenset(
    {
        CommandType.COMPLETE_WORKFLOW_EXECUTION,
        CommandType.FAIL_WORKFLOW_EXECUTION,
        CommandType.CANCEL_WORKFLOW_EXECUTION,
        CommandType.CONTINUE_AS_NEW_WORKFLOW_EXECUTION,
    }
)


class Command(Message, frozen=True):
    """One wish of workflow code; metadata and group markers are copied to the event it becomes.

    `attributes` is None when a worker sent a command without its attribute message, which the
    engine answers by failing the workflow task; `command_type` then still says which it was.
    """

    command_type: CommandType
    attributes: Message | None = None
    user_metadata: UserMetadata | None = None
    event_group_markers: tuple[EventGroupMarker, ...] = ()

    @classmethod
    def of(cls, attributes: Message, user_metadata: UserMetadata | None = None) -> "Command":
        """The command that these attributes belong to."""
        return cls(
            command_type=COMMAND_TYPES[type(attributes)],
            attributes=attributes,
            user_metadata=user_metadata,
        )
