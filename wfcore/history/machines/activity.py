"""Activities. Decisions about one pending activity look at its row alone, so that claims,
heartbeats and retries never touch the run; the run learns of it by the `InboxItem` that ends it.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from wfcore.exceptions import InvalidArgumentError, NotFoundError
from wfcore.history.effects import DispatchActivity, Effect, Journal, WakeTicker
from wfcore.history.limits import DEFAULT_LIMITS, Limits
from wfcore.history.retries import (
    LONGEST_WAIT,
    backoff,
    decide,
    is_retryable,
    timeout_name,
)
from wfcore.history.sizes import payloads_bytes, shorten_failure
from wfcore.history.state import ActivityState, InboxItem, PendingActivity
from wfcore.protocol import events
from wfcore.protocol.enums import RetryState, TimeoutType
from wfcore.protocol.failures import Failure, ServerFailureInfo, TimeoutFailureInfo
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Payload, Payloads

_ZERO = timedelta(0)
_SERVER = "Server"
#: What the server says to whoever answers for an attempt that is over.
ATTEMPT_OVER = "invalid activityID or activity already timed out or invoking workflow is completed"
_TOO_LATE = (
    "Not enough time to schedule next retry before activity ScheduleToClose timeout, "
    "giving up retrying"
)
#: Details of an activity that was cancelled before anyone took it.
NOT_STARTED = Payloads(
    payloads=(Payload(metadata={"encoding": b"json/plain"}, data=b'"ACTIVITY_ID_NOT_STARTED"'),)
)

#: Timeouts after which no attempt follows, whatever the policy.
_FINAL_TIMEOUTS = (TimeoutType.SCHEDULE_TO_START, TimeoutType.SCHEDULE_TO_CLOSE)
#: Events that end an activity.
CLOSING = (
    events.ActivityTaskCompleted,
    events.ActivityTaskFailed,
    events.ActivityTaskTimedOut,
    events.ActivityTaskCanceled,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What becomes of a pending activity: another row, or the fact that ends it.

    Store `row` with `Store.replace_activity`; hand `item` on with `put_inbox(replaces=old)` while a
    workflow task is started, else with `Arrive(item=item, closes=old)`.
    """

    row: PendingActivity | None = None
    item: InboxItem | None = None
    effects: tuple[Effect, ...] = ()
    journal: tuple[Journal, ...] = ()
    #: for the answer of a heartbeat
    cancel_requested: bool = False
    paused: bool = False
    reset: bool = False


# ---- what workers and clients report


def claim(
    row: PendingActivity, now: datetime, *, request_id: str, identity: str = "", owner: str = ""
) -> Decision | None:
    """A worker takes the attempt. The same poll again gets the row as it is.

    None: the attempt runs already or may not start yet.
    """
    if row.state is ActivityState.STARTED:
        repeated = request_id and row.request_id == request_id
        return Decision(row=row) if repeated else None
    if row.claimable_at is None or row.claimable_at > now:
        return None
    now = _not_before(row, now)
    return Decision(row=started(row, now, request_id=request_id, identity=identity, owner=owner))


def check_attempt(
    row: PendingActivity | None, attempt: int | None = None, claim: str = ""
) -> PendingActivity:
    """The row of a started attempt; `attempt` and `claim` are those of a task token, None and empty
    when it is named by id.

    Raises:
        NotFoundError: it is over, another one runs, or none does.
    """
    if (
        row is None
        or row.state is not ActivityState.STARTED
        or attempt not in (None, row.attempt)
        or claim not in ("", row.request_id)
    ):
        raise NotFoundError(ATTEMPT_OVER)
    return row


def heartbeat(
    row: PendingActivity, now: datetime, details: Payloads | None, limits: Limits = DEFAULT_LIMITS
) -> Decision:
    """The attempt is alive. The stamp stays. Details above the limit fail the activity."""
    now = _not_before(row, now)
    if payloads_bytes(details) > limits.blob_bytes:
        failure = _server_failure("Heartbeat details exceed size limit.")
        ended = _attempt_failed(row, now, failure, row.identity, limits)
        return replace(ended, cancel_requested=True)
    beaten = with_due_at(
        msgspec.structs.replace(row, last_heartbeat_at=now, heartbeat_details=details)
    )
    return Decision(
        row=beaten,
        cancel_requested=row.cancel_requested_event_id > 0,
        paused=row.pause is not None,
        reset=row.reset_requested,
    )


def complete(
    row: PendingActivity,
    now: datetime,
    result: Payloads | None,
    identity: str = "",
    limits: Limits = DEFAULT_LIMITS,
) -> Decision:
    """The activity succeeded; also one that nobody took (by id), whose start is made up."""
    now = _not_before(row, now)
    if payloads_bytes(result) > limits.blob_bytes:
        failure = _server_failure("Complete result exceeds size limit.")
        return _attempt_failed(row, now, failure, identity, limits)
    attributes = events.ActivityTaskCompleted(
        result=result, scheduled_event_id=row.scheduled_event_id, identity=identity
    )
    return Decision(item=_ended(row, now, attributes, answered_by=identity))


def fail(
    row: PendingActivity,
    now: datetime,
    failure: Failure | None,
    identity: str = "",
    last_heartbeat_details: Payloads | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Decision:
    """The attempt failed: another one, or the end.

    Raises:
        InvalidArgumentError: the failure is no ApplicationFailure.
    """
    if failure is not None and failure.application_failure_info is None:
        raise InvalidArgumentError("Failure must have ApplicationFailureInfo.")
    if last_heartbeat_details is not None:
        if payloads_bytes(last_heartbeat_details) > limits.blob_bytes:
            failure = _server_failure("Heartbeat details exceed size limit.")
        else:
            row = msgspec.structs.replace(row, heartbeat_details=last_heartbeat_details)
    failure = shorten_failure(failure, limits.blob_bytes, non_retryable=True)
    return _attempt_failed(row, _not_before(row, now), failure, identity, limits)


def cancel(
    row: PendingActivity, now: datetime, details: Payloads | None, identity: str = ""
) -> Decision:
    """The attempt reports that it was cancelled.

    Raises:
        InvalidArgumentError: nobody asked for its cancellation.
    """
    if not row.cancel_requested_event_id:
        raise InvalidArgumentError(
            "unable to mark activity as canceled without activity being request canceled first"
        )
    return Decision(item=canceled(row, _not_before(row, now), details, identity))


# ---- what time and death do


def due(row: PendingActivity, now: datetime, limits: Limits = DEFAULT_LIMITS) -> Decision | None:
    """Timeouts, the end of a backoff, a message to send again. None: nothing is due."""
    timeouts = [(at, kind) for at, kind in _timeouts(row) if at <= now]
    if timeouts:
        # on a tie the server's order counts, which is that of the numbers
        _, kind = min(timeouts)
        return _timed_out(row, now, _timeout_failure(kind), limits)
    if row.claimable_at is not None and row.dispatch_due and row.dispatch_due <= now:
        return Decision(row=announced(row, now, limits), effects=(dispatch(row),))
    return None


def lost(
    row: PendingActivity, now: datetime, why: str, limits: Limits = DEFAULT_LIMITS
) -> Decision | None:
    """The process that ran the attempt is dead: it counts as one, failed by a TimeoutFailure of
    type HEARTBEAT, "worker lost: " and `why`. None: no attempt runs.
    """
    if row.state is not ActivityState.STARTED:
        return None
    now = _not_before(row, now)
    failure = Failure(
        message=f"worker lost: {why}",
        source=_SERVER,
        timeout_failure_info=TimeoutFailureInfo(timeout_type=TimeoutType.HEARTBEAT),
    )
    entry = Journal(
        namespace=row.namespace,
        workflow_id=row.workflow_id,
        run_id=row.run_id,
        at=now,
        kind="attempt_lost",
        text=failure.message,
        scheduled_event_id=row.scheduled_event_id,
        attempt=row.attempt,
        identity=row.identity,
    )
    ended = _timed_out(row, now, failure, limits)
    return replace(ended, journal=(entry,))


# ---- rows


def started(
    row: PendingActivity, now: datetime, *, request_id: str, identity: str, owner: str
) -> PendingActivity:
    """The row of an attempt that a worker has taken."""
    return with_due_at(
        msgspec.structs.replace(
            row,
            stamp=row.stamp + 1,
            state=ActivityState.STARTED,
            started_at=now,
            request_id=request_id,
            identity=identity,
            owner=owner,
            last_worker_identity=identity,
            dispatch_due=None,
            sent=0,
        )
    )


def cancel_requested(row: PendingActivity, event_id: int) -> PendingActivity:
    """The row of a started attempt that shall be cancelled. The stamp rises, so that a heartbeat
    decided before can't take the request away.
    """
    return msgspec.structs.replace(row, stamp=row.stamp + 1, cancel_requested_event_id=event_id)


def waits_unannounced(row: PendingActivity, now: datetime) -> bool:
    """Whether an attempt may start and no message was sent yet."""
    return row.claimable_at is not None and not row.sent and row.claimable_at <= now


def announced(row: PendingActivity, now: datetime, limits: Limits) -> PendingActivity:
    """The row after its message has been sent once more; its standing is the same."""
    sent = row.sent + 1
    return with_due_at(
        msgspec.structs.replace(row, sent=sent, dispatch_due=now + limits.resend_after(sent))
    )


def dispatch(row: PendingActivity) -> DispatchActivity:
    """The message by which workers learn of an attempt."""
    return DispatchActivity(
        namespace=row.namespace,
        workflow_id=row.workflow_id,
        run_id=row.run_id,
        task_queue=row.task_queue,
        scheduled_event_id=row.scheduled_event_id,
        activity_type=row.activity_type,
        attempt=row.attempt,
        stamp=row.stamp,
        sent=row.sent,
    )


def canceled(
    row: PendingActivity, now: datetime, details: Payloads | None, identity: str
) -> InboxItem:
    """The fact that the activity ended as cancelled."""
    attributes = events.ActivityTaskCanceled(
        details=details,
        latest_cancel_requested_event_id=row.cancel_requested_event_id,
        scheduled_event_id=row.scheduled_event_id,
        identity=identity,
    )
    return _ended(row, now, attributes)


# ---- how an attempt ends


def _attempt_failed(
    row: PendingActivity, now: datetime, failure: Failure | None, identity: str, limits: Limits
) -> Decision:
    state, wait = _decide(row, now, failure)
    if state is RetryState.IN_PROGRESS:
        return _retry(row, now, failure, wait, limits)
    attributes = events.ActivityTaskFailed(
        failure=failure,
        scheduled_event_id=row.scheduled_event_id,
        identity=identity,
        retry_state=state,
    )
    return Decision(item=_ended(row, now, attributes, answered_by=identity))


def _timed_out(row: PendingActivity, now: datetime, failure: Failure, limits: Limits) -> Decision:
    state, wait = _decide(row, now, failure)
    if state is RetryState.IN_PROGRESS:
        return _retry(row, now, failure, wait, limits)
    cause = row.last_failure
    kind = _kind(failure)
    if state is RetryState.TIMEOUT and kind is not TimeoutType.SCHEDULE_TO_START:
        # no attempt fits before the end: reported as that end
        if failure.message != _timeout_failure(kind).message:
            cause = failure
        failure = _timeout_failure(TimeoutType.SCHEDULE_TO_CLOSE)
        kind = TimeoutType.SCHEDULE_TO_CLOSE
    failure = msgspec.structs.replace(
        failure,
        cause=cause,
        timeout_failure_info=TimeoutFailureInfo(
            timeout_type=kind, last_heartbeat_details=row.heartbeat_details
        ),
    )
    attributes = events.ActivityTaskTimedOut(
        failure=failure, scheduled_event_id=row.scheduled_event_id, retry_state=state
    )
    return Decision(item=_ended(row, now, attributes))


def _decide(
    row: PendingActivity, now: datetime, failure: Failure | None
) -> tuple[RetryState, timedelta]:
    """Whether another attempt follows, and after what wait."""
    if row.cancel_requested_event_id:
        return RetryState.CANCEL_REQUESTED, _ZERO
    if failure is not None and _kind(failure) in _FINAL_TIMEOUTS:
        return RetryState.TIMEOUT, _ZERO
    policy = row.retry_policy
    wait = backoff(policy, row.attempt)
    application = failure.application_failure_info if failure is not None else None
    delay = application.next_retry_delay if application is not None else None
    if delay is not None:
        wait = min(max(delay, _ZERO), LONGEST_WAIT)
    if row.pause is not None and is_retryable(failure, policy):
        return RetryState.IN_PROGRESS, wait  # it waits for the end of the pause, and is made then
    deadline = _schedule_to_close_at(row)
    state = decide(policy, row.attempt, failure, wait, now, deadline)
    if state is RetryState.IN_PROGRESS and delay == _ZERO:
        return RetryState.TIMEOUT, _ZERO  # an explicit zero means: not again
    return state, wait


def _retry(
    row: PendingActivity, now: datetime, failure: Failure | None, wait: timedelta, limits: Limits
) -> Decision:
    at = now + wait
    if row.resets_heartbeat:
        row = msgspec.structs.replace(row, heartbeat_details=None, last_heartbeat_at=None)
    row = msgspec.structs.replace(
        row,
        stamp=row.stamp + 1,
        state=ActivityState.SCHEDULED,
        attempt=row.attempt + 1,
        attempt_scheduled_at=at,
        started_at=None,
        request_id="",
        identity="",
        owner="",
        last_failure=shorten_failure(failure, limits.kept_failure_bytes, non_retryable=False),
        last_attempt_completed_at=now,
        last_worker_identity=row.identity,
        dispatch_due=at,
        sent=0,
        reset_requested=False,
        resets_heartbeat=False,
    )
    if not wait and row.pause is None:
        return Decision(row=announced(row, now, limits), effects=(dispatch(row),))
    row = with_due_at(row)
    return Decision(row=row, effects=(WakeTicker(at=row.due_at),) if row.due_at else ())


def _ended(
    row: PendingActivity, now: datetime, attributes: Message, *, answered_by: str | None = None
) -> InboxItem:
    """The fact that ends the activity, with the STARTED event of its last attempt.

    An answer for an attempt that nobody had taken makes up the start.
    """
    taken = row.state is ActivityState.STARTED
    if not taken and answered_by is None:
        return InboxItem(event_time=now, attributes=attributes)
    return InboxItem(
        event_time=now,
        attributes=attributes,
        started=events.ActivityTaskStarted(
            scheduled_event_id=row.scheduled_event_id,
            identity=row.identity if taken else answered_by or "",
            request_id=row.request_id,
            attempt=row.attempt,
            last_failure=row.last_failure,
        ),
        started_at=row.started_at if taken else now,
    )


# ---- clocks


def _not_before(row: PendingActivity, now: datetime) -> datetime:
    """The time of a decision: a clock that went back must not turn the activity's life around."""
    return max(now, row.started_at or row.last_attempt_completed_at or row.scheduled_at)


def _timeouts(row: PendingActivity) -> list[tuple[datetime, TimeoutType]]:
    """When which timeout ends the attempt or the activity; none does while it is paused."""
    if row.pause is not None:
        return []
    clocks: list[tuple[datetime, TimeoutType]] = []
    end = _schedule_to_close_at(row)
    if end is not None:
        clocks.append((end, TimeoutType.SCHEDULE_TO_CLOSE))
    if row.started_at is None:
        if row.schedule_to_start_timeout:
            at = row.attempt_scheduled_at + row.schedule_to_start_timeout
            clocks.append((at, TimeoutType.SCHEDULE_TO_START))
        return clocks
    if row.start_to_close_timeout:
        clocks.append((row.started_at + row.start_to_close_timeout, TimeoutType.START_TO_CLOSE))
    if row.heartbeat_timeout:
        alive = max(row.last_heartbeat_at or row.started_at, row.started_at)
        clocks.append((alive + row.heartbeat_timeout, TimeoutType.HEARTBEAT))
    return clocks


def _schedule_to_close_at(row: PendingActivity) -> datetime | None:
    if not row.schedule_to_close_timeout:
        return None
    return row.scheduled_at + row.schedule_to_close_timeout


def with_due_at(row: PendingActivity) -> PendingActivity:
    """The row with the time at which the ticker must look at it."""
    clocks = [at for at, _ in _timeouts(row)]
    if row.claimable_at is not None and row.dispatch_due is not None:
        clocks.append(row.dispatch_due)
    return msgspec.structs.replace(row, due_at=min(clocks, default=None))


# ---- failures


def _timeout_failure(kind: TimeoutType) -> Failure:
    message = f"activity {timeout_name(kind)} timeout"
    if kind is TimeoutType.SCHEDULE_TO_CLOSE:
        message = _TOO_LATE
    return Failure(
        message=message,
        source=_SERVER,
        timeout_failure_info=TimeoutFailureInfo(timeout_type=kind),
    )


def _kind(failure: Failure) -> TimeoutType:
    info = failure.timeout_failure_info
    return info.timeout_type if info is not None else TimeoutType.UNSPECIFIED


def _server_failure(message: str) -> Failure:
    return Failure(message=message, server_failure_info=ServerFailureInfo(non_retryable=True))
