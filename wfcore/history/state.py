"""The state of one run: all that is needed to decide what may happen next, no user data.

`Recorded` follows from the events alone (`rebuild` proves it); `Volatile` is listed field by field,
and a rebuild loses it, as in Temporal. Pending activities are values of their own, outside of the
state, since claims, heartbeats and retries must not touch the run.
"""

from datetime import datetime, timedelta
from enum import IntEnum

import msgspec

from wfcore.history.updates import AdmittedUpdate
from wfcore.protocol.common import Priority, RetryPolicy, WorkflowExecution
from wfcore.protocol.enums import (
    ContinueAsNewInitiator,
    ParentClosePolicy,
    PendingActivityState,
    SuggestContinueAsNewReason,
)
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message
from wfcore.protocol.metadata import Callback, Link
from wfcore.protocol.payloads import Payloads, UserMetadata

#: Written with every snapshot. A worker that meets a newer one claims nothing, so that two releases
#: run side by side.
SNAPSHOT_FORMAT = 1


class _State(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """Mutable while one transition works on it."""


class Timer(Message, frozen=True, kw_only=True):
    """An open timer."""

    started_event_id: int
    fire_at: datetime


class ScheduledTask(Message, frozen=True, kw_only=True):
    """The outstanding workflow task as the history knows it (attempt 1, stored)."""

    scheduled_event_id: int
    scheduled_at: datetime
    started_event_id: int = 0
    started_at: datetime | None = None
    request_id: str = ""
    identity: str = ""
    attempt: int = 1


class Child(Message, frozen=True, kw_only=True):
    """A child workflow that is not known to have ended."""

    workflow_id: str
    workflow_type: str
    parent_close_policy: ParentClosePolicy
    #: id of CHILD_WORKFLOW_EXECUTION_STARTED and the child's first run, once that is written
    started_event_id: int = 0
    run_id: str = ""


class BuildPoint(Message, frozen=True, kw_only=True):
    """Where a build of the worker's code first completed a workflow task."""

    build_id: str
    completed_event_id: int
    completed_at: datetime


class Recorded(_State, kw_only=True):
    """What follows from the events alone."""

    # who the run is; fixed by event 1
    namespace: str
    workflow_id: str
    run_id: str
    workflow_type: str
    task_queue: str
    first_execution_run_id: str
    original_execution_run_id: str
    continued_execution_run_id: str = ""
    initiator: ContinueAsNewInitiator = ContinueAsNewInitiator.UNSPECIFIED
    attempt: int = 1
    parent_namespace: str = ""
    parent_namespace_id: str = ""
    parent: WorkflowExecution | None = None
    parent_initiated_event_id: int = 0
    root: WorkflowExecution | None = None
    completion_callbacks: tuple[Callback, ...] = ()
    retry_policy: RetryPolicy | None = None
    cron_schedule: str = ""
    priority: Priority | None = None
    start_time: datetime
    #: end of the wait before the first workflow task; the start time without one
    execution_time: datetime
    workflow_task_timeout: timedelta
    execution_timeout: timedelta | None = None
    run_timeout: timedelta | None = None
    #: absolute end of the chain; a run's own end is execution_time + run_timeout
    expiration_time: datetime | None = None

    #: when a reset made this run: its timeouts count from then
    reset_at: datetime | None = None

    # where it stands
    status: Status = Status.RUNNING
    close_time: datetime | None = None
    new_execution_run_id: str = ""
    next_event_id: int = 1
    last_event_time: datetime
    history_bytes: int = 0
    #: STARTED and COMPLETED event of the last completed workflow task
    previous_started_event_id: int = 0
    last_completed_event_id: int = 0
    #: builds that have completed workflow tasks, in order of their first one; the last few
    build_points: tuple[BuildPoint, ...] = ()
    first_task_scheduled: bool = False
    task: ScheduledTask | None = None
    timers: dict[str, Timer] = {}
    #: activity ids of open activities by scheduled event id, in order
    open_activities: dict[int, str] = {}
    #: by the event that initiated them; of a closed run, those that were open then
    children: dict[int, Child] = {}
    #: workflow ids of signals and cancel requests without an answer, by the initiating event
    external_signals: dict[int, str] = {}
    external_cancels: dict[int, str] = {}
    signal_count: int = 0
    #: updates accepted so far, and event ids of the acceptance of those that have not ended
    update_count: int = 0
    open_updates: dict[str, int] = {}
    cancel_requested: bool = False
    cancel_requested_event_id: int = 0
    cancel_reason: str = ""


class TaskClaim(Message, frozen=True, kw_only=True):
    """The outstanding workflow task as the engine knows it, stored or transient."""

    #: id of the SCHEDULED event, or the id that it would get
    scheduled_event_id: int
    scheduled_at: datetime
    #: when the chain of heartbeats (forced new tasks) began
    original_scheduled_at: datetime
    attempt: int = 1
    start_to_close_timeout: timedelta
    #: SCHEDULED (and STARTED, if claimed) are events already; else they are written if the task
    #: leads to something
    stored: bool = True
    #: ids of the updates that came with it
    updates: tuple[str, ...] = ()
    #: speculative and unclaimed: by when a worker must have taken it
    schedule_to_start_due: datetime | None = None
    #: claimed: the rest is fixed then, since workflow code sees it
    started_event_id: int = 0
    started_at: datetime | None = None
    request_id: str = ""
    identity: str = ""
    #: boot id of the worker process that holds the claim; empty for a poll without a lease
    owner: str = ""
    history_bytes: int = 0
    suggest_reasons: tuple[SuggestContinueAsNewReason, ...] = ()
    #: unclaimed: by when the sent message must have led to a claim, and how often it was sent
    dispatch_due: datetime | None = None
    sent: int = 0

    @property
    def suggest_continue_as_new(self) -> bool:
        """Whether the worker is told that the history has become long."""
        return bool(self.suggest_reasons)

    @property
    def is_speculative(self) -> bool:
        """Whether it was made to deliver updates only, so that it may leave no trace."""
        return not self.stored and self.attempt == 1


class DeliveryKind(IntEnum):
    """What a run has to do to another workflow id."""

    START_CHILD = 1
    SIGNAL = 2
    CANCEL = 3
    #: apply the parent close policy to a child
    CLOSE_CHILD = 4
    #: tell the parent how this run, the last of its chain, has ended
    REPORT = 5
    #: ask the parent whether it has recorded this run's start
    ASK_PARENT = 6


class Delivery(Message, frozen=True, kw_only=True):
    """Something to do to another workflow id, until that is known to be done.

    It is carried out by a transaction on that id, which knows it again by its request id; a second
    one, on this run, takes it away and writes what came of it.
    """

    kind: DeliveryKind
    #: when to do it, or to do it again
    due_at: datetime
    #: how often it was begun
    attempts: int = 0


class Volatile(_State, kw_only=True):
    """What a rebuild loses."""

    task: TaskClaim | None = None
    #: by the event they belong to: the initiating one, event 1 or the closing event
    deliveries: dict[int, Delivery] = {}
    #: failures and timeouts of workflow tasks in a row, and the last of them as
    #: TemporalReportedProblems names it
    task_problems: int = 0
    last_problem: tuple[str, ...] = ()
    last_problem_at: datetime | None = None
    #: the first workflow task waits until the parent has recorded this run's start
    waits_for_parent: bool = False
    #: updates that wait for a worker's word, by id in order of admission, and how many there were
    updates: dict[str, AdmittedUpdate] = {}
    admissions: int = 0
    #: until when the rows of refused updates tell their answers, by id
    answered_updates: dict[str, datetime] = {}
    #: a close command met buffered events: signals are refused while the next task is started
    closing: bool = False
    #: request id of the start that made this run; made up for a run that follows another one
    create_request_id: str = ""
    #: event ids by request id of start requests attached to this run
    attached_request_ids: dict[str, int] = {}
    #: the run that a reset of this one has made
    reset_run_id: str = ""
    #: transitions so far, shown as StateTransitionCount
    state_transitions: int = 0
    #: errors of the ticker with this run, for its back-off
    sweep_errors: int = 0


class MutableState(_State, kw_only=True):
    """A run between two transitions."""

    recorded: Recorded
    volatile: Volatile
    format: int = SNAPSHOT_FORMAT

    @property
    def is_open(self) -> bool:
        """Whether the run may still change."""
        return self.recorded.status in (Status.RUNNING, Status.PAUSED)

    @property
    def task_started(self) -> bool:
        """Whether a workflow task is claimed, so that facts must wait in the inbox."""
        return self.volatile.task is not None and self.volatile.task.started_at is not None

    @property
    def cancel_unseen(self) -> bool:
        """Whether the run's code is about to learn, by a first attempt, that it is to cancel."""
        task, recorded = self.volatile.task, self.recorded
        return (
            self.is_open
            and task is not None
            and task.attempt == 1
            and recorded.cancel_requested_event_id > recorded.previous_started_event_id
        )


class ActivityState(IntEnum):
    """Where a pending activity stands; both values also exist in the database."""

    SCHEDULED = PendingActivityState.SCHEDULED
    STARTED = PendingActivityState.STARTED


class ActivityPause(Message, frozen=True, kw_only=True):
    """Who paused an activity, and why."""

    at: datetime
    identity: str = ""
    reason: str = ""
    #: the same request again changes nothing
    request_id: str = ""


class PendingActivity(Message, frozen=True, kw_only=True):
    """An open activity. Replaced as a whole, if its `stamp` is still the one that was read."""

    namespace: str
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    activity_id: str
    activity_type: str
    task_queue: str
    #: time of its SCHEDULED event: schedule-to-close counts from here
    scheduled_at: datetime
    schedule_to_close_timeout: timedelta
    schedule_to_start_timeout: timedelta
    start_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy
    priority: Priority | None = None
    #: id of ACTIVITY_TASK_CANCEL_REQUESTED, 0 without
    cancel_requested_event_id: int = 0

    # volatile part
    stamp: int = 1
    state: ActivityState = ActivityState.SCHEDULED
    attempt: int = 1
    #: when this attempt may start: the schedule-to-start clock begins here
    attempt_scheduled_at: datetime
    started_at: datetime | None = None
    request_id: str = ""
    identity: str = ""
    owner: str = ""
    last_heartbeat_at: datetime | None = None
    heartbeat_details: Payloads | None = None
    last_failure: Failure | None = None
    last_attempt_completed_at: datetime | None = None
    last_worker_identity: str = ""
    #: unclaimed: by when the sent message must have led to a claim, and how often it was sent
    dispatch_due: datetime | None = None
    sent: int = 0
    #: earliest time at which the ticker must look at it; None when nothing can come due
    due_at: datetime | None = None
    #: while it stands nobody takes an attempt, and no timeout ends one
    pause: ActivityPause | None = None
    #: the running attempt is told that the activity was reset; the next one, if so, gets no
    #: heartbeat details
    reset_requested: bool = False
    resets_heartbeat: bool = False

    @property
    def claimable_at(self) -> datetime | None:
        """From when on a worker may take the attempt; None while none may."""
        waits = self.state is ActivityState.SCHEDULED and self.pause is None
        return self.attempt_scheduled_at if waits else None


class InboxItem(Message, frozen=True, kw_only=True):
    """A fact that arrived while a workflow task was started; it becomes events when that ends.

    `attributes` are those of the event; ids that it refers to are filled in then. An activity's
    closing event brings its STARTED event along.
    """

    event_time: datetime
    attributes: Message
    user_metadata: UserMetadata | None = None
    links: tuple[Link, ...] = ()
    started: Message | None = None
    started_at: datetime | None = None
    #: row id given by the store: the order of arrival
    item_id: int = 0
