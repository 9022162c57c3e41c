"""Activity tasks: a worker claims an attempt, keeps it alive, and answers.

Claims, heartbeats and retries replace the activity's row alone; the run learns of an activity when
it ends. An answer to an attempt that is over is refused and changes nothing.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from wfcore.exceptions import AbortedError, NotFoundError
from wfcore.history.effects import DispatchActivity, Journal
from wfcore.history.machines import activity
from wfcore.history.machines.activity import Decision
from wfcore.history.requests import Arrive
from wfcore.history.state import ActivityState, PendingActivity
from wfcore.protocol.common import ActivityType, WorkflowExecution, WorkflowType
from wfcore.protocol.events import ActivityTaskScheduled
from wfcore.protocol.rpc.activity_tasks import (
    PollActivityTaskQueueRequest,
    PollActivityTaskQueueResponse,
    RecordActivityTaskHeartbeatRequest,
    RecordActivityTaskHeartbeatResponse,
    RespondActivityTaskCanceledRequest,
    RespondActivityTaskCanceledResponse,
    RespondActivityTaskCompletedRequest,
    RespondActivityTaskCompletedResponse,
    RespondActivityTaskFailedRequest,
    RespondActivityTaskFailedResponse,
)
from wfcore.service import tokens, validation
from wfcore.service.arriving import Outcome, arrive
from wfcore.service.follow import Follow
from wfcore.service.host import Host
from wfcore.service.polling import POLL_TRIES, check_poll
from wfcore.service.ports import RunKey
from wfcore.service.tokens import ActivityToken
from wfcore.service.transacting import TRIES

Decide = Callable[[PendingActivity, datetime], Decision]


def poll(
    host: Host,
    request: PollActivityTaskQueueRequest,
    *,
    owner: str = "",
    timeout: timedelta | None = None,
) -> PollActivityTaskQueueResponse:
    """An attempt that waits in a queue, or an empty answer; never waits itself."""
    queue = check_poll(host, request.namespace, request.task_queue, request.identity, timeout)
    now = host.store.now()
    for row in host.store.unclaimed_activities(request.namespace, queue, now, POLL_TRIES):
        found = _claim_row(host, row, now, request.identity, owner, host.ids.request_id())
        if found.task_token:
            return found
    return PollActivityTaskQueueResponse()


def claim(
    host: Host,
    message: DispatchActivity,
    *,
    identity: str = "",
    owner: str = "",
    request_id: str = "",
) -> PollActivityTaskQueueResponse:
    """Take the attempt that a message names, if it waits. The answer is empty when it is gone,
    taken, or another attempt is due by now.

    `request_id` names the claim: the same one gets the same attempt again.
    """
    key = RunKey(
        namespace=message.namespace, workflow_id=message.workflow_id, run_id=message.run_id
    )
    row = host.store.read_activity(key, message.scheduled_event_id)
    if row is None or row.attempt != message.attempt:
        return PollActivityTaskQueueResponse()
    request_id = request_id or host.ids.request_id()
    return _claim_row(host, row, host.store.now(), identity, owner, request_id)


def _claim_row(
    host: Host, row: PendingActivity, now: datetime, identity: str, owner: str, request_id: str
) -> PollActivityTaskQueueResponse:
    # Temporal gives the activity to whoever comes first, also if the run is about to cancel it.
    head = host.store.head(row.namespace, row.workflow_id, row.run_id)
    decision = activity.claim(row, now, request_id=request_id, identity=identity, owner=owner)
    if decision is None or decision.row is None:
        return PollActivityTaskQueueResponse()
    if decision.row is not row and (
        (head is not None and head.cancel_unseen) or not _replace(host, row, decision)
    ):
        return PollActivityTaskQueueResponse()
    host.recent.claimed(decision.row)
    return task(host, decision.row, head.workflow_type if head is not None else "")


def announce_again(host: Host, key: RunKey) -> None:
    """Announce the activities that were held back until the run's code had seen that it is to
    cancel, and that it let live.
    """
    now = host.store.now()
    waiting = [
        activity.dispatch(row)
        for row in host.store.read_activities(key)
        if row.state == ActivityState.SCHEDULED and row.attempt_scheduled_at <= now
    ]
    if waiting:
        host.dispatcher.dispatch(waiting)


def task(host: Host, row: PendingActivity, workflow_type: str) -> PollActivityTaskQueueResponse:
    """What a worker gets for a claimed attempt."""
    key = _key(row)
    event_id = row.scheduled_event_id
    events = host.recent.events(key.run_id, event_id, event_id)
    if events is None:
        events = host.store.read_events(key, first=event_id, last=event_id)
    scheduled = events[0].attributes if events else None
    if not isinstance(scheduled, ActivityTaskScheduled):
        raise NotFoundError(f"event {event_id} of run {row.run_id} schedules no activity")
    token = ActivityToken(
        namespace=row.namespace,
        workflow_id=row.workflow_id,
        run_id=row.run_id,
        scheduled_event_id=event_id,
        attempt=row.attempt,
        claim=row.request_id,
    )
    return PollActivityTaskQueueResponse(
        task_token=tokens.encode(token),
        workflow_namespace=row.namespace,
        workflow_type=WorkflowType(name=workflow_type),
        workflow_execution=WorkflowExecution(workflow_id=row.workflow_id, run_id=row.run_id),
        activity_type=ActivityType(name=row.activity_type),
        activity_id=row.activity_id,
        header=scheduled.header,
        input=scheduled.input,
        heartbeat_details=row.heartbeat_details,
        scheduled_time=row.scheduled_at,
        current_attempt_scheduled_time=row.attempt_scheduled_at,
        started_time=row.started_at,
        attempt=row.attempt,
        # those of the event, as on Temporal's server, whatever options were changed since
        schedule_to_close_timeout=scheduled.schedule_to_close_timeout,
        start_to_close_timeout=scheduled.start_to_close_timeout,
        heartbeat_timeout=scheduled.heartbeat_timeout,
        retry_policy=scheduled.retry_policy,
        priority=row.priority,
    )


# ---- answers


def heartbeat(
    host: Host, request: RecordActivityTaskHeartbeatRequest
) -> RecordActivityTaskHeartbeatResponse:
    """The attempt is alive; the answer says whether it should stop."""
    token = _token(host, request.task_token, request.namespace)
    decision = _decide(
        host,
        token,
        lambda row, now: activity.heartbeat(row, now, request.details, host.limits),
    )
    return RecordActivityTaskHeartbeatResponse(
        cancel_requested=decision.cancel_requested,
        activity_paused=decision.paused,
        activity_reset=decision.reset,
    )


def complete(
    host: Host, request: RespondActivityTaskCompletedRequest, *, follow: Follow | None = None
) -> RespondActivityTaskCompletedResponse:
    """The activity succeeded."""
    token = _token(host, request.task_token, request.namespace)
    _decide(
        host,
        token,
        lambda row, now: activity.complete(row, now, request.result, request.identity, host.limits),
        late="result",
        follow=follow,
        claimed=host.recent.take_claimed(token.run_id, token.scheduled_event_id, token.attempt),
    )
    return RespondActivityTaskCompletedResponse()


def fail(
    host: Host, request: RespondActivityTaskFailedRequest, *, follow: Follow | None = None
) -> RespondActivityTaskFailedResponse:
    """The attempt failed; its retry policy says what follows."""
    token = _token(host, request.task_token, request.namespace)
    _decide(
        host,
        token,
        lambda row, now: activity.fail(
            row,
            now,
            request.failure,
            request.identity,
            request.last_heartbeat_details,
            host.limits,
        ),
        late="failure",
        follow=follow,
    )
    return RespondActivityTaskFailedResponse()


def cancel(
    host: Host, request: RespondActivityTaskCanceledRequest, *, follow: Follow | None = None
) -> RespondActivityTaskCanceledResponse:
    """The attempt ended because it was asked to."""
    token = _token(host, request.task_token, request.namespace)
    _decide(
        host,
        token,
        lambda row, now: activity.cancel(row, now, request.details, request.identity),
        late="cancellation",
        follow=follow,
    )
    return RespondActivityTaskCanceledResponse()


def _token(host: Host, task_token: bytes, namespace: str) -> ActivityToken:
    token = tokens.decode(task_token, ActivityToken)
    validation.namespace(host, namespace or token.namespace)
    if namespace not in ("", token.namespace):
        raise validation.fail("Operation requested with a token from a different namespace.")
    return token


def _decide(
    host: Host,
    token: ActivityToken,
    take: Decide,
    *,
    late: str = "",
    follow: Follow | None = None,
    claimed: PendingActivity | None = None,
) -> Decision:
    """Decide about the attempt that a token names.

    `late` names what is journalled when the attempt is over. `claimed` is the row as it was when
    this process took the attempt, for decisions that don't look at what a heartbeat changes.
    """
    rows = [claimed] if claimed is not None else []
    key = RunKey(namespace=token.namespace, workflow_id=token.workflow_id, run_id=token.run_id)

    def find() -> PendingActivity:
        return rows.pop() if rows else _attempt(host, key, token)

    try:
        return decide(host, find, take, follow)
    except NotFoundError:
        if follow is not None and _has_followed(host, key, follow):
            return Decision()
        if late:
            _journal_late(host, token, late)
        raise


def _has_followed(host: Host, key: RunKey, follow: Follow) -> bool:
    """Whether an earlier call was taken and its answer lost: its claim names what it led to."""
    state = host.store.read_state(key.namespace, key.workflow_id, key.run_id)
    follow.is_repeated = state is not None and follow.claim.holds(state)
    return follow.is_repeated


def decide(
    host: Host,
    find: Callable[[], PendingActivity],
    take: Decide,
    follow: Follow | None = None,
) -> Decision:
    """Find an activity, decide, and carry the decision out; anew when the row changed meanwhile."""
    for _ in range(TRIES):
        row = find()
        decision = take(row, host.store.now())
        if carry_out(host, row, decision, follow=follow):
            return decision
    raise AbortedError("the activity changes too fast; repeat the call")


def _attempt(host: Host, key: RunKey, token: ActivityToken) -> PendingActivity:
    """The attempt that a token names.

    Raises:
        NotFoundError: it is over, or its run is.
    """
    row = host.store.read_activity(key, token.scheduled_event_id)
    if row is None:
        head = host.store.head(key.namespace, key.workflow_id, key.run_id)
        if head is None:
            raise validation.not_found(key.workflow_id, key.run_id)
        if not validation.is_open(head.status):
            raise validation.completed()
    return activity.check_attempt(row, token.attempt, token.claim)


def carry_out(
    host: Host,
    row: PendingActivity,
    decision: Decision,
    *,
    wait: timedelta | None = None,
    follow: Follow | None = None,
) -> bool:
    """Store what was decided about a row; False when the row changed meanwhile."""
    if decision.item is not None:
        fact = Arrive(item=decision.item, closes=row)
        outcome = arrive(host, _key(row), fact, wait=wait, follow=follow)
        if outcome is Outcome.CLOSED:
            raise validation.completed()
        if outcome is Outcome.STALE:
            return False
        if decision.journal:
            host.store.write_journal(decision.journal)
        if decision.effects:
            host.dispatcher.dispatch(decision.effects)
        return True
    return decision.row is None or _replace(host, row, decision)


def _replace(host: Host, row: PendingActivity, decision: Decision) -> bool:
    if decision.row is None or not host.store.replace_activity(row, decision.row, decision.journal):
        return False
    if decision.effects:
        effects = decision.effects
        host.store.on_commit(lambda: host.dispatcher.dispatch(effects))
    return True


def _journal_late(host: Host, token: ActivityToken, what: str) -> None:
    """An answer that nobody waits for: the work was done, and perhaps done again."""
    key = RunKey(namespace=token.namespace, workflow_id=token.workflow_id, run_id=token.run_id)
    if host.store.head(key.namespace, key.workflow_id, key.run_id) is None:
        return
    entry = Journal(
        namespace=key.namespace,
        workflow_id=key.workflow_id,
        run_id=key.run_id,
        at=host.store.now(),
        kind="late_result",
        text=f"a {what} of attempt {token.attempt} came after that attempt was over",
        scheduled_event_id=token.scheduled_event_id,
        attempt=token.attempt,
    )
    host.store.write_journal((entry,))


def _key(row: PendingActivity) -> RunKey:
    return RunKey(namespace=row.namespace, workflow_id=row.workflow_id, run_id=row.run_id)
