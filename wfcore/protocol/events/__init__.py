"""What happened: the events of a run's history and the attributes of each kind."""

from datetime import datetime

from wfcore.protocol.enums import EventType
from wfcore.protocol.events.activity import (
    ActivityPropertiesModifiedExternally,
    ActivityTaskCanceled,
    ActivityTaskCancelRequested,
    ActivityTaskCompleted,
    ActivityTaskFailed,
    ActivityTaskScheduled,
    ActivityTaskStarted,
    ActivityTaskTimedOut,
)
from wfcore.protocol.events.child_workflow import (
    ChildWorkflowExecutionCanceled,
    ChildWorkflowExecutionCompleted,
    ChildWorkflowExecutionFailed,
    ChildWorkflowExecutionStarted,
    ChildWorkflowExecutionTerminated,
    ChildWorkflowExecutionTimedOut,
    StartChildWorkflowExecutionFailed,
    StartChildWorkflowExecutionInitiated,
)
from wfcore.protocol.events.external import (
    ExternalWorkflowExecutionCancelRequested,
    ExternalWorkflowExecutionSignaled,
    RequestCancelExternalWorkflowExecutionFailed,
    RequestCancelExternalWorkflowExecutionInitiated,
    SignalExternalWorkflowExecutionFailed,
    SignalExternalWorkflowExecutionInitiated,
)
from wfcore.protocol.events.marker import (
    MarkerRecorded,
    UpsertWorkflowSearchAttributes,
    WorkflowPropertiesModified,
    WorkflowPropertiesModifiedExternally,
)
from wfcore.protocol.events.nexus import (
    NexusOperationCanceled,
    NexusOperationCancelRequestCompleted,
    NexusOperationCancelRequested,
    NexusOperationCancelRequestFailed,
    NexusOperationCompleted,
    NexusOperationFailed,
    NexusOperationScheduled,
    NexusOperationStarted,
    NexusOperationTimedOut,
)
from wfcore.protocol.events.timer import (
    TimerCanceled,
    TimerFired,
    TimerStarted,
)
from wfcore.protocol.events.update import (
    WorkflowExecutionUpdateAccepted,
    WorkflowExecutionUpdateAdmitted,
    WorkflowExecutionUpdateCompleted,
    WorkflowExecutionUpdateRejected,
)
from wfcore.protocol.events.workflow import (
    WorkflowExecutionCanceled,
    WorkflowExecutionCancelRequested,
    WorkflowExecutionCompleted,
    WorkflowExecutionContinuedAsNew,
    WorkflowExecutionFailed,
    WorkflowExecutionOptionsUpdated,
    WorkflowExecutionPaused,
    WorkflowExecutionSignaled,
    WorkflowExecutionStarted,
    WorkflowExecutionTerminated,
    WorkflowExecutionTimedOut,
    WorkflowExecutionTimeSkippingTransitioned,
    WorkflowExecutionUnpaused,
    WorkflowUpdateOptionsUpdate,
)
from wfcore.protocol.events.workflow_task import (
    WorkflowTaskCompleted,
    WorkflowTaskFailed,
    WorkflowTaskScheduled,
    WorkflowTaskStarted,
    WorkflowTaskTimedOut,
)
from wfcore.protocol.message import Message
from wfcore.protocol.metadata import EventGroupMarker, Link, Principal
from wfcore.protocol.payloads import UserMetadata

_KINDS: tuple[type[Message], ...] = (
    WorkflowExecutionStarted,
    WorkflowExecutionCompleted,
    WorkflowExecutionFailed,
    WorkflowExecutionTimedOut,
    WorkflowTaskScheduled,
    WorkflowTaskStarted,
    WorkflowTaskCompleted,
    WorkflowTaskTimedOut,
    WorkflowTaskFailed,
    ActivityTaskScheduled,
    ActivityTaskStarted,
    ActivityTaskCompleted,
    ActivityTaskFailed,
    ActivityTaskTimedOut,
    ActivityTaskCancelRequested,
    ActivityTaskCanceled,
    TimerStarted,
    TimerFired,
    TimerCanceled,
    WorkflowExecutionCancelRequested,
    WorkflowExecutionCanceled,
    RequestCancelExternalWorkflowExecutionInitiated,
    RequestCancelExternalWorkflowExecutionFailed,
    ExternalWorkflowExecutionCancelRequested,
    MarkerRecorded,
    WorkflowExecutionSignaled,
    WorkflowExecutionTerminated,
    WorkflowExecutionContinuedAsNew,
    StartChildWorkflowExecutionInitiated,
    StartChildWorkflowExecutionFailed,
    ChildWorkflowExecutionStarted,
    ChildWorkflowExecutionCompleted,
    ChildWorkflowExecutionFailed,
    ChildWorkflowExecutionCanceled,
    ChildWorkflowExecutionTimedOut,
    ChildWorkflowExecutionTerminated,
    SignalExternalWorkflowExecutionInitiated,
    SignalExternalWorkflowExecutionFailed,
    ExternalWorkflowExecutionSignaled,
    UpsertWorkflowSearchAttributes,
    WorkflowExecutionUpdateAccepted,
    WorkflowExecutionUpdateRejected,
    WorkflowExecutionUpdateCompleted,
    WorkflowPropertiesModifiedExternally,
    ActivityPropertiesModifiedExternally,
    WorkflowPropertiesModified,
    WorkflowExecutionUpdateAdmitted,
    NexusOperationScheduled,
    NexusOperationStarted,
    NexusOperationCompleted,
    NexusOperationFailed,
    NexusOperationCanceled,
    NexusOperationTimedOut,
    NexusOperationCancelRequested,
    WorkflowExecutionOptionsUpdated,
    NexusOperationCancelRequestCompleted,
    NexusOperationCancelRequestFailed,
    WorkflowExecutionPaused,
    WorkflowExecutionUnpaused,
    WorkflowExecutionTimeSkippingTransitioned,
)
#: Attributes by kind of event.
ATTRIBUTES: dict[EventType, type[Message]] = {
    EventType.from_wire(cls.__name__): cls for cls in _KINDS
}
#: Kind of event by its attributes.
EVENT_TYPES: dict[type[Message], EventType] = {cls: kind for kind, cls in ATTRIBUTES.items()}

#: Kinds that close a run; each run has at most one of them, always last.
CLOSING = frozenset(
    {
        EventType.WORKFLOW_EXECUTION_COMPLETED,
        EventType.WORKFLOW_EXECUTION_FAILED,
        EventType.WORKFLOW_EXECUTION_TIMED_OUT,
        EventType.WORKFLOW_EXECUTION_CANCELED,
        EventType.WORKFLOW_EXECUTION_TERMINATED,
        EventType.WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
    }
)
#: Kinds that a worker which does not know them may skip.
WORKER_MAY_IGNORE = frozenset(
    {
        EventType.WORKFLOW_EXECUTION_OPTIONS_UPDATED,
        EventType.WORKFLOW_EXECUTION_PAUSED,
        EventType.WORKFLOW_EXECUTION_UNPAUSED,
    }
)


class HistoryEvent(Message, frozen=True):
    """One event of a run. Ids count from 1 without gaps; the attributes' class tells the kind.

    `event_time` is when the thing happened, which for buffered and late-written events can lie
    before the time of the event in front.
    """

    event_id: int
    event_time: datetime
    attributes: Message
    version: int = 0
    task_id: int = 0
    worker_may_ignore: bool = False
    user_metadata: UserMetadata | None = None
    links: tuple[Link, ...] = ()
    principal: Principal | None = None
    event_group_markers: tuple[EventGroupMarker, ...] = ()

    @property
    def event_type(self) -> EventType:
        """The kind of this event."""
        return EVENT_TYPES[type(self.attributes)]


class History(Message, frozen=True):
    """A run's events, or a part of them, in order."""

    events: tuple[HistoryEvent, ...] = ()


__all__ = [
    "ATTRIBUTES",
    "CLOSING",
    "EVENT_TYPES",
    "WORKER_MAY_IGNORE",
    "ActivityPropertiesModifiedExternally",
    "ActivityTaskCancelRequested",
    "ActivityTaskCanceled",
    "ActivityTaskCompleted",
    "ActivityTaskFailed",
    "ActivityTaskScheduled",
    "ActivityTaskStarted",
    "ActivityTaskTimedOut",
    "ChildWorkflowExecutionCanceled",
    "ChildWorkflowExecutionCompleted",
    "ChildWorkflowExecutionFailed",
    "ChildWorkflowExecutionStarted",
    "ChildWorkflowExecutionTerminated",
    "ChildWorkflowExecutionTimedOut",
    "EventType",
    "ExternalWorkflowExecutionCancelRequested",
    "ExternalWorkflowExecutionSignaled",
    "History",
    "HistoryEvent",
    "MarkerRecorded",
    "NexusOperationCancelRequestCompleted",
    "NexusOperationCancelRequestFailed",
    "NexusOperationCancelRequested",
    "NexusOperationCanceled",
    "NexusOperationCompleted",
    "NexusOperationFailed",
    "NexusOperationScheduled",
    "NexusOperationStarted",
    "NexusOperationTimedOut",
    "RequestCancelExternalWorkflowExecutionFailed",
    "RequestCancelExternalWorkflowExecutionInitiated",
    "SignalExternalWorkflowExecutionFailed",
    "SignalExternalWorkflowExecutionInitiated",
    "StartChildWorkflowExecutionFailed",
    "StartChildWorkflowExecutionInitiated",
    "TimerCanceled",
    "TimerFired",
    "TimerStarted",
    "UpsertWorkflowSearchAttributes",
    "WorkflowExecutionCancelRequested",
    "WorkflowExecutionCanceled",
    "WorkflowExecutionCompleted",
    "WorkflowExecutionContinuedAsNew",
    "WorkflowExecutionFailed",
    "WorkflowExecutionOptionsUpdated",
    "WorkflowExecutionPaused",
    "WorkflowExecutionSignaled",
    "WorkflowExecutionStarted",
    "WorkflowExecutionTerminated",
    "WorkflowExecutionTimeSkippingTransitioned",
    "WorkflowExecutionTimedOut",
    "WorkflowExecutionUnpaused",
    "WorkflowExecutionUpdateAccepted",
    "WorkflowExecutionUpdateAdmitted",
    "WorkflowExecutionUpdateCompleted",
    "WorkflowExecutionUpdateRejected",
    "WorkflowPropertiesModified",
    "WorkflowPropertiesModifiedExternally",
    "WorkflowTaskCompleted",
    "WorkflowTaskFailed",
    "WorkflowTaskScheduled",
    "WorkflowTaskStarted",
    "WorkflowTaskTimedOut",
    "WorkflowUpdateOptionsUpdate",
]
