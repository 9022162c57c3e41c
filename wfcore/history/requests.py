"""What the outside asks of a run, and what it is told. Requests are complete: every id, name and
number that a transition needs and can't derive comes with them, so that it repeats itself.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from wfcore.exceptions import RPCError
from wfcore.history.activity_orders import OperateActivities
from wfcore.history.state import (
    DeliveryKind,
    InboxItem,
    MutableState,
    PendingActivity,
    TaskClaim,
)
from wfcore.protocol.commands import Command
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import VersioningBehavior, WorkflowTaskFailedCause
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message
from wfcore.protocol.metadata import (
    Callback,
    Link,
    MeteringMetadata,
    WorkerVersionStamp,
    WorkflowTaskCompletedMetadata,
)
from wfcore.protocol.payloads import Header, Payloads
from wfcore.protocol.rpc.workflows import StartWorkflowExecutionRequest
from wfcore.protocol.updates import ProtocolMessage
from wfcore.protocol.updates import Request as UpdateRequest

#: Identity of what the engine does by itself, as Temporal's server writes it.
ENGINE_IDENTITY = "history-service"


@dataclass(frozen=True, kw_only=True, slots=True)
class SignalRun:
    """A signal. Its request id was checked for repetition by the service (`seen_request`)."""

    signal_name: str
    input: Payloads | None = None
    identity: str = ""
    header: Header | None = None
    request_id: str = ""
    external_workflow_execution: WorkflowExecution | None = None
    links: tuple[Link, ...] = ()
    #: of signal-with-start: ends a start delay
    ends_delay: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class AdmitUpdate:
    """An update, which waits for a worker's word. One whose id the run knows changes nothing."""

    update_id: str
    request: UpdateRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimTask:
    """A worker takes the outstanding workflow task; `request_id` names the poll."""

    request_id: str
    identity: str = ""
    #: boot id of the worker process; empty for a poll without a lease
    owner: str = ""

    def holds(self, state: MutableState) -> bool:
        """Whether this claim was made, and stands."""
        task = state.volatile.task
        started = state.is_open and task is not None and task.started_at is not None
        return started and task is not None and task.request_id == self.request_id


@dataclass(frozen=True, kw_only=True, slots=True)
class StartRun:
    """A run that a client or a parent starts.

    `request` has been validated (ids, names, policies, sizes); timeouts are capped and the retry
    policy is filled in by `start`.
    """

    run_id: str
    request: StartWorkflowExecutionRequest
    #: the signal of signal-with-start
    signal: SignalRun | None = None
    #: the update of update-with-start
    update: AdmitUpdate | None = None
    #: wait before the first workflow task; None: the request's start delay
    first_workflow_task_backoff: timedelta | None = None
    #: the first workflow task is claimed in the same transaction, for the caller's own worker;
    #: passed over when there is a backoff
    eager_claim: ClaimTask | None = None

    # a child
    parent_namespace: str = ""
    parent_namespace_id: str = ""
    parent: WorkflowExecution | None = None
    parent_initiated_event_id: int = 0
    root: WorkflowExecution | None = None
    #: the first workflow task waits until the parent has recorded the start
    waits_for_parent: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestCancelRun:
    """A cancel request; a second one changes nothing."""

    identity: str = ""
    reason: str = ""
    external_initiated_event_id: int = 0
    external_workflow_execution: WorkflowExecution | None = None
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TerminateRun:
    """End the run at once."""

    reason: str = ""
    details: Payloads | None = None
    identity: str = ""
    links: tuple[Link, ...] = ()
    #: the run that a reset puts in its place, and whether that takes over its children
    reset_run_id: str = ""
    keeps_children: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class AttachStartRequest:
    """A start with USE_EXISTING found this run open and has `on_conflict_options`."""

    request_id: str = ""
    completion_callbacks: tuple[Callback, ...] = ()
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskToken:
    """The claim that an answer belongs to; all parts must still hold."""

    scheduled_event_id: int
    started_event_id: int
    attempt: int
    started_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CompleteTask:
    """A worker's answer to a workflow task.

    `next_run_id` is used when the answer makes another run, `next_claim` when a task follows and
    the worker takes it at once (`return_new_workflow_task`).
    """

    token: TaskToken
    commands: tuple[Command, ...] = ()
    messages: tuple[ProtocolMessage, ...] = ()
    identity: str = ""
    next_run_id: str = ""
    force_create_new_workflow_task: bool = False
    #: the worker can forget events that it was shown
    can_forget_events: bool = False
    next_claim: ClaimTask | None = None
    sdk_metadata: WorkflowTaskCompletedMetadata | None = None
    metering_metadata: MeteringMetadata | None = None
    binary_checksum: str = ""
    worker_version: WorkerVersionStamp | None = None
    versioning_behavior: VersioningBehavior = VersioningBehavior.UNSPECIFIED
    #: request id and boot id for activities that this answer schedules and takes (eager)
    activity_request_id: str = ""
    owner: str = ""
    #: of the run's namespace, for events that name it
    namespace_id: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FailTask:
    """A worker reports that a workflow task failed."""

    token: TaskToken
    cause: WorkflowTaskFailedCause
    failure: Failure | None = None
    identity: str = ""
    binary_checksum: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskLost:
    """The process that held the claim is dead; as if the task had timed out now.

    A claim by another owner, or none, makes this a no-op.
    """

    owner: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrive:
    """A fact for an open run, from `machines.activity` or `machines.child`; `closes` is the
    activity that it ends.
    """

    item: InboxItem
    closes: PendingActivity | None = None
    #: takes the workflow task that the fact makes ready
    next_claim: "ClaimTask | None" = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivered:
    """One thing that a run had to do to another workflow id is done."""

    kind: DeliveryKind
    event_id: int
    #: what the history says of it, if anything
    fact: Message | None = None
    #: the attempt that found so, where a later one may find otherwise; None: it is so for good
    attempt: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Acknowledge:
    """Deliveries are done. What was acknowledged before, or dropped since, changes nothing."""

    done: tuple[Delivered, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class BeginTasks:
    """The parent has recorded that this run, its child, exists: its first workflow task may come.

    A run that doesn't wait for that is not changed.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliverInbox:
    """Take in what waits in the inbox (`Change.inbox`).

    With a workflow task started, nothing happens unless the buffer's limit is exceeded, which fails
    the task. On a closed run the rows are dropped and journalled.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Due:
    """Do what has come due: timers, timeouts, end of a start delay, a message to send again, things
    to do to other workflow ids.
    """

    next_run_id: str = ""


Request = (
    SignalRun
    | AdmitUpdate
    | RequestCancelRun
    | TerminateRun
    | AttachStartRequest
    | ClaimTask
    | CompleteTask
    | FailTask
    | TaskLost
    | Arrive
    | Acknowledge
    | BeginTasks
    | DeliverInbox
    | Due
    | OperateActivities
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a transition says besides what it changed.

    `error` is to be raised after the change has been saved: what it says has been recorded.
    `waiting` means that a workflow task is started and nothing changed: leave the transaction and
    store this with `Store.put_inbox`.
    """

    error: RPCError | None = None
    waiting: InboxItem | None = None
    #: facts to store with `Store.put_inbox` in the same transaction as the change
    to_inbox: list[InboxItem] = field(default_factory=list)
    #: event ids of the deliveries that `Acknowledge` took away
    acknowledged: tuple[int, ...] = ()
    #: the claimed workflow task: of `ClaimTask`, or the one that follows a `CompleteTask`
    claim: TaskClaim | None = None
    #: the claim was made before by the same poll
    repeated: bool = False
    #: eager activities, claimed for the worker that answered
    activities: list[PendingActivity] = field(default_factory=list)
    #: those that `OperateActivities` means, as they are now
    selected: list[PendingActivity] = field(default_factory=list)
    #: event that stands for the request, 0 without one
    event_id: int = 0
    #: the task was the first to see that the run is to cancel, and left it open
    saw_cancel: bool = False
    #: the task left no trace: the worker goes back to this event (0: it did leave one)
    reset_event_id: int = 0
