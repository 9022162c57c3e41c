"""Workflow tasks: a worker claims one, gets the history, and answers.

The claim decides who runs a task: a message or a poll only hints at it, so a claim that comes too
late gets an empty answer, and an answer whose claim is over is refused.
"""

from dataclasses import replace
from datetime import timedelta

from wfcore.exceptions import NotFoundError, RPCError
from wfcore.history import transition
from wfcore.history.machines import update
from wfcore.history.rebuild import visible_tail
from wfcore.history.requests import Answer, ClaimTask, CompleteTask, FailTask, TaskToken
from wfcore.history.state import MutableState, TaskClaim
from wfcore.history.updates import Update
from wfcore.protocol.commands import CLOSING
from wfcore.protocol.common import TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import TaskQueueKind
from wfcore.protocol.events import History
from wfcore.protocol.rpc.workflow_tasks import (
    PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse,
    RespondWorkflowTaskCompletedRequest,
    RespondWorkflowTaskCompletedResponse,
    RespondWorkflowTaskFailedRequest,
    RespondWorkflowTaskFailedResponse,
)
from wfcore.service import activity_tasks, querying, tokens, validation
from wfcore.service.follow import Follow
from wfcore.service.host import Host
from wfcore.service.polling import POLL_TRIES, check_poll
from wfcore.service.ports import RunKey, SnapshotTooNewError
from wfcore.service.tokens import ActivityToken, WorkflowToken
from wfcore.service.transacting import load_change, repeatedly, save

_TASK_NOT_FOUND = "Workflow task not found."
#: More than any process holds.
_MOST_CLAIMS = 1000


def poll(
    host: Host,
    request: PollWorkflowTaskQueueRequest,
    *,
    owner: str = "",
    timeout: timedelta | None = None,
) -> PollWorkflowTaskQueueResponse:
    """A query or a workflow task that waits in a queue, or an empty answer; never waits itself.

    `timeout` is how long the caller is ready to wait for an answer, if that is limited.
    """
    queue = check_poll(host, request.namespace, request.task_queue, request.identity, timeout)
    host.dispatcher.note_worker(request.namespace, queue)
    question = host.dispatcher.take_query(request.namespace, queue)
    if question is not None:
        return querying.hand_out(host, question)
    for key in host.store.unclaimed_workflow_tasks(request.namespace, queue, POLL_TRIES):
        task = claim(host, key, identity=request.identity, owner=owner)
        if task.task_token:
            return task
    return PollWorkflowTaskQueueResponse()


def claim(
    host: Host,
    key: RunKey,
    *,
    identity: str = "",
    owner: str = "",
    request_id: str = "",
    after_event_id: int = 0,
) -> PollWorkflowTaskQueueResponse:
    """Take a run's workflow task, if it waits. The answer is empty when it is gone or taken.

    `request_id` names the attempt to claim: the same one gets the same task again. With
    `after_event_id` only later events come along, for a worker that holds the rest.
    """
    order = ClaimTask(
        request_id=request_id or host.ids.request_id(), identity=identity, owner=owner
    )

    def once() -> tuple[MutableState, TaskClaim, dict[str, Update]] | None:
        with host.store.transaction(key.namespace, key.workflow_id) as tx:
            state = tx.load(key.run_id)
            task = state.volatile.task if state is not None and state.is_open else None
            if state is None or task is None:
                return None
            if task.started_at is not None and task.request_id != order.request_id:
                return None
            change = load_change(tx, state, order)
            answer = transition.apply(change, order, host.limits)
            if not answer.repeated:
                save(host, tx, change)
            if answer.claim is None:
                return None
            return change.state, answer.claim, change.updates

    try:
        taken = repeatedly(once)
    except (NotFoundError, SnapshotTooNewError):
        return PollWorkflowTaskQueueResponse()
    return _task(host, key, *taken, after_event_id) if taken else PollWorkflowTaskQueueResponse()


def hand_out(host: Host, activity_token: bytes, follow: Follow | None) -> None:
    """Fill in the task that was claimed together with an activity's end, if one was."""
    if follow is None:
        return
    token = tokens.decode(activity_token, ActivityToken)
    key = RunKey(namespace=token.namespace, workflow_id=token.workflow_id, run_id=token.run_id)
    if (taken := follow.taken) is not None:
        after = follow.known_event_id(key.run_id)
        follow.task = _task(host, key, taken.state, taken.claim, taken.updates, after)
    elif follow.is_repeated:
        follow.task = _again(host, key, follow.claim)


def held(host: Host, key: RunKey, request_id: str) -> PollWorkflowTaskQueueResponse | None:
    """The task that a request claimed together with the start of its run, while it holds it."""
    state = host.store.read_state(key.namespace, key.workflow_id, key.run_id)
    if state is None or not state.is_open:
        return None
    task = state.volatile.task
    if task is None or task.started_at is None or task.request_id != request_id:
        return None
    return _task(host, key, state, task, {}, 0)


def complete(
    host: Host,
    request: RespondWorkflowTaskCompletedRequest,
    *,
    owner: str = "",
    claim_id: str = "",
) -> RespondWorkflowTaskCompletedResponse:
    """Carry out a worker's commands. A worker that offers sticky attributes keeps the run, so the
    task that it may get back at once carries new events only.

    `claim_id` names what is claimed along with the answer: a call that is repeated, since the
    answer to the first was lost, gets the same task and eager activities again.
    """
    token = tokens.decode(request.task_token, WorkflowToken)
    _check_namespace(host, token, request.namespace)
    for command in request.commands:
        named = getattr(command.attributes, "namespace", "")
        if named not in ("", token.namespace):
            validation.namespace(host, named)
    key = _key(token)
    next_claim = None
    if request.return_new_workflow_task:
        next_claim = ClaimTask(
            request_id=claim_id or host.ids.request_id(), identity=request.identity, owner=owner
        )
    eager_id = (claim_id or host.ids.request_id()) if _wants_activities(request) else ""
    order = CompleteTask(
        token=_claim_of(token),
        commands=request.commands,
        messages=request.messages,
        identity=request.identity,
        can_forget_events=request.capabilities is not None
        and request.capabilities.discard_speculative_workflow_task_with_events,
        force_create_new_workflow_task=request.force_create_new_workflow_task,
        next_claim=next_claim,
        sdk_metadata=request.sdk_metadata,
        metering_metadata=request.metering_metadata,
        binary_checksum=request.binary_checksum,
        worker_version=request.worker_version_stamp,
        versioning_behavior=request.versioning_behavior,
        activity_request_id=eager_id,
        owner=owner,
        namespace_id=validation.namespace(host, token.namespace).namespace_id,
    )
    try:
        state, answer, updates = _answer(host, key, order, closed_text=_TASK_NOT_FOUND)
    except NotFoundError:
        before = _claimed_before(host, key, order) if claim_id else None
        if before is None:
            raise
        return before
    for row in answer.activities:
        host.recent.claimed(row)
    if answer.saw_cancel:
        activity_tasks.announce_again(host, key)
    task = None
    if answer.claim is not None:
        known = answer.reset_event_id or token.started_event_id
        after = known if request.sticky_attributes is not None else 0
        task = _task(host, key, state, answer.claim, updates, after)
    return RespondWorkflowTaskCompletedResponse(
        workflow_task=task,
        activity_tasks=tuple(
            activity_tasks.task(host, row, state.recorded.workflow_type)
            for row in answer.activities
        ),
        reset_history_event_id=answer.reset_event_id,
    )


def fail(
    host: Host, request: RespondWorkflowTaskFailedRequest
) -> RespondWorkflowTaskFailedResponse:
    """A worker could not carry out a workflow task; another attempt follows."""
    token = tokens.decode(request.task_token, WorkflowToken)
    _check_namespace(host, token, request.namespace)
    order = FailTask(
        token=_claim_of(token),
        cause=request.cause,
        failure=request.failure,
        identity=request.identity,
        binary_checksum=request.binary_checksum,
    )
    _answer(host, _key(token), order, closed_text="workflow execution already completed")
    return RespondWorkflowTaskFailedResponse()


def _answer(
    host: Host, key: RunKey, order: CompleteTask | FailTask, *, closed_text: str
) -> tuple[MutableState, Answer, dict[str, Update]]:
    """Apply a worker's answer; an error that is recorded is raised after the commit."""

    def once() -> tuple[MutableState, Answer, dict[str, Update]]:
        with host.store.transaction(key.namespace, key.workflow_id) as tx:
            state = tx.load(key.run_id)
            if state is None:
                raise NotFoundError(_TASK_NOT_FOUND)
            if not state.is_open:
                raise NotFoundError(closed_text)
            asked = order
            if isinstance(order, CompleteTask) and _may_be_followed(order):
                asked = replace(order, next_run_id=host.ids.run_id(tx.now))
            change = load_change(tx, state, asked)
            answer = transition.apply(change, asked, host.limits)
            save(host, tx, change)
            return change.state, answer, change.updates

    state, answer, updates = repeatedly(once)
    error: RPCError | None = answer.error
    if error is not None:
        raise error
    return state, answer, updates


def _task(
    host: Host,
    key: RunKey,
    state: MutableState,
    claimed: TaskClaim,
    updates: dict[str, Update],
    after_event_id: int,
) -> PollWorkflowTaskQueueResponse:
    """What a worker gets. While its claim stands nothing else is written to the history."""
    recorded = state.recorded
    first, last = after_event_id + 1, recorded.next_event_id - 1
    events = host.recent.events(key.run_id, first, last)
    if events is None:
        events = list(host.store.read_events(key, first=first, last=last))
    if not claimed.stored:
        events += visible_tail(state)
    started_at = claimed.started_at or claimed.scheduled_at
    token = WorkflowToken(
        namespace=key.namespace,
        workflow_id=key.workflow_id,
        run_id=key.run_id,
        scheduled_event_id=claimed.scheduled_event_id,
        started_event_id=claimed.started_event_id,
        attempt=claimed.attempt,
        started_at=started_at,
    )
    return PollWorkflowTaskQueueResponse(
        task_token=tokens.encode(token),
        workflow_execution=WorkflowExecution(workflow_id=key.workflow_id, run_id=key.run_id),
        workflow_type=WorkflowType(name=recorded.workflow_type),
        previous_started_event_id=recorded.previous_started_event_id,
        started_event_id=claimed.started_event_id,
        attempt=claimed.attempt,
        history=History(events=tuple(events)),
        workflow_execution_task_queue=TaskQueue(
            name=recorded.task_queue, kind=TaskQueueKind.NORMAL
        ),
        scheduled_time=claimed.scheduled_at,
        started_time=claimed.started_at,
        messages=update.messages(claimed, updates),
    )


def _claimed_before(
    host: Host, key: RunKey, order: CompleteTask
) -> RespondWorkflowTaskCompletedResponse | None:
    """What an earlier call with this answer has claimed; None if it claimed nothing."""
    state = host.store.read_state(key.namespace, key.workflow_id, key.run_id)
    if state is None:
        return None
    task = None
    if order.next_claim is not None and order.next_claim.holds(state):
        task = _again(host, key, order.next_claim)
    rows = host.store.claims_of(order.owner, _MOST_CLAIMS)[1] if order.activity_request_id else ()
    activities = tuple(
        activity_tasks.task(host, row, state.recorded.workflow_type)
        for row in rows
        if row.run_id == key.run_id and row.request_id == order.activity_request_id
    )
    if task is None and not activities:
        return None
    return RespondWorkflowTaskCompletedResponse(workflow_task=task, activity_tasks=activities)


def _again(host: Host, key: RunKey, held: ClaimTask) -> PollWorkflowTaskQueueResponse | None:
    """The task that a claim holds, once more; None if it was lost meanwhile."""
    task = claim(host, key, identity=held.identity, owner=held.owner, request_id=held.request_id)
    return task if task.task_token else None


def _check_namespace(host: Host, token: WorkflowToken, namespace: str) -> None:
    """An answer may leave its namespace out; the token has it."""
    validation.namespace(host, namespace or token.namespace)
    if namespace not in ("", token.namespace):
        raise validation.fail("Operation requested with a token from a different namespace.")


def _key(token: WorkflowToken) -> RunKey:
    return RunKey(namespace=token.namespace, workflow_id=token.workflow_id, run_id=token.run_id)


def _claim_of(token: WorkflowToken) -> TaskToken:
    return TaskToken(
        scheduled_event_id=token.scheduled_event_id,
        started_event_id=token.started_event_id,
        attempt=token.attempt,
        started_at=token.started_at,
    )


def _may_be_followed(order: CompleteTask) -> bool:
    """Whether the answer closes the run, so that another may begin."""
    return bool(order.commands) and order.commands[-1].command_type in CLOSING


def _wants_activities(request: RespondWorkflowTaskCompletedRequest) -> bool:
    return any(
        getattr(command.attributes, "request_eager_execution", False)
        for command in request.commands
    )
