"""The way into the state machine: a table of machines. Every transition goes through here.

`start` and `apply` leave a `Change` whose events, rows, effects and next deadline belong together.
A typed error raised by them means that nothing happened: the change is to be thrown away. An error
that stands in the answer is raised after the change has been saved.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from wfcore.exceptions import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from wfcore.history import buffer
from wfcore.history.activity_orders import OperateActivities
from wfcore.history.change import Change
from wfcore.history.deadlines import first_task_at, next_deadline, run_ends_at
from wfcore.history.faults import BadCommandError
from wfcore.history.limits import DEFAULT_LIMITS, Limits
from wfcore.history.machines import (
    activity,
    activity_operations,
    child,
    closing,
    delivery,
    signal,
    table,
    update,
    workflow,
    workflow_task,
)
from wfcore.history.outcome import finish
from wfcore.history.requests import (
    ENGINE_IDENTITY,
    Acknowledge,
    AdmitUpdate,
    Answer,
    Arrive,
    AttachStartRequest,
    BeginTasks,
    ClaimTask,
    CompleteTask,
    DeliverInbox,
    Due,
    FailTask,
    Request,
    RequestCancelRun,
    SignalRun,
    StartRun,
    TaskLost,
    TerminateRun,
)
from wfcore.history.sizes import shorten_failure
from wfcore.history.state import InboxItem, MutableState, TaskClaim
from wfcore.history.step import Step
from wfcore.protocol import commands, events
from wfcore.protocol.enums import CommandType
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause
from wfcore.protocol.failures import Failure, ServerFailureInfo

_CLOSED = "workflow execution already completed"
_NO_TASK = "Workflow task not found."


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """What a store must load for a transition besides state and inbox."""

    #: pending activities by scheduled event id, for `Change.activities`
    activities: tuple[int, ...] = ()
    #: updates by id, for `Change.updates`
    updates: tuple[str, ...] = ()
    #: event 1 of the run, for `Change.start_event`: the run may be followed by another one
    start_event: bool = False
    #: SCHEDULED events of activities by their ids, for `Change.scheduled_events`
    scheduled_events: tuple[int, ...] = ()
    #: the memo as it is now, for `Change.current_memo`
    memo: bool = False
    #: the search attributes as they are now, for `Change.current_search_attributes`
    search_attributes: bool = False


def needs(state: MutableState, request: Request, now: datetime | None = None) -> Needs:
    """What `apply` of this request looks at; without `now` a little more than that."""
    recorded = state.recorded
    match request:
        case CompleteTask():
            kinds = {command.command_type for command in request.commands}
            return Needs(
                activities=tuple(
                    command.attributes.scheduled_event_id
                    for command in request.commands
                    if isinstance(command.attributes, commands.RequestCancelActivityTask)
                    and command.attributes.scheduled_event_id in recorded.open_activities
                ),
                updates=_named_updates(state, request),
                start_event=_repeats_itself(state) and bool(kinds & _MAY_BE_REPEATED),
                memo=CommandType.MODIFY_WORKFLOW_PROPERTIES in kinds,
                search_attributes=CommandType.UPSERT_WORKFLOW_SEARCH_ATTRIBUTES in kinds,
            )
        case ClaimTask():
            return Needs(updates=tuple(state.volatile.updates))
        case AdmitUpdate():
            return Needs(updates=(request.update_id,))
        case Due():
            end = run_ends_at(recorded)
            ends = end is not None and (now is None or end <= now)
            return Needs(start_event=ends and _repeats_itself(state))
        case Arrive(closes=row, next_claim=claim):
            return Needs(
                activities=(row.scheduled_event_id,) if row is not None else (),
                updates=tuple(state.volatile.updates) if claim is not None else (),
            )
        case OperateActivities():
            every = tuple(recorded.open_activities)
            return Needs(
                activities=every,
                scheduled_events=every if request.order_restores else (),
                search_attributes=True,
            )
    return Needs()


def _named_updates(state: MutableState, request: CompleteTask) -> tuple[str, ...]:
    """Those that the answer speaks of, and those that the next task may bring."""
    spoken_of = (message.protocol_instance_id for message in request.messages)
    return tuple(dict.fromkeys((*spoken_of, *state.volatile.updates)))


#: Commands behind which the same start may follow, by retry or cron.
_MAY_BE_REPEATED = {
    CommandType.COMPLETE_WORKFLOW_EXECUTION,
    CommandType.FAIL_WORKFLOW_EXECUTION,
}


def _repeats_itself(state: MutableState) -> bool:
    return state.recorded.retry_policy is not None or bool(state.recorded.cron_schedule)


def start(now: datetime, request: StartRun, limits: Limits = DEFAULT_LIMITS) -> Change:
    """Make a run: STARTED, the signal or update that came with it, and WORKFLOW_TASK_SCHEDULED
    unless the first task must wait.
    """
    step = workflow.start(now, request, limits)
    finish(step)
    return step.change


def apply(change: Change, request: Request, limits: Limits = DEFAULT_LIMITS) -> Answer:
    """Do to a run what is asked, at `change.now`.

    While no workflow task is started, what waits in the inbox and what has come due is taken in
    first.

    Raises:
        NotFoundError: the run is closed, or the workflow task that is answered is over.
        InvalidArgumentError: the whole answer or request is refused.
        FailedPreconditionError: a paused run takes no such answer.
        ResourceExhaustedError: a signal while the run is about to close (BUSY_WORKFLOW), or too
            many updates in flight (CONCURRENT_LIMIT).
        WorkflowNotReadyError: an update while the workflow task keeps failing.
    """
    before = next_deadline(change.state)
    step = Step(change, limits)
    answer = _MACHINES[type(request)](step, request)
    if reason := _limit_exceeded(step):
        step.begin_anew()
        closing.give_up(step, reason)
        answer = Answer(error=InvalidArgumentError(reason))
    _note_growth(step)
    finish(step, before)
    return answer


def waiting_item(
    state: MutableState,
    now: datetime,
    request: SignalRun | RequestCancelRun | AttachStartRequest,
    limits: Limits = DEFAULT_LIMITS,
    waiting: int = 0,
) -> InboxItem | None:
    """What to store for a request while a workflow task is started, without the run's lock.

    `waiting` is the number of arrivals that wait already. None: there is nothing to record, since
    the run is closed, has been asked to cancel before, or has that start request attached.

    Raises:
        NotFoundError, InvalidArgumentError, ResourceExhaustedError: as `apply`.
    """
    if isinstance(request, RequestCancelRun):
        done = not state.is_open or state.recorded.cancel_requested
        return None if done else workflow.cancel_item(request, now)
    if not state.is_open:
        raise NotFoundError(_CLOSED)
    if isinstance(request, AttachStartRequest):
        done = request.request_id in state.volatile.attached_request_ids
        return None if done else workflow.attach_item(request, now)
    signal.check(state, limits, waiting)
    return signal.item(request, now)


# ---- workflow tasks


def _claim(step: Step, request: ClaimTask) -> Answer:
    _check_open(step)
    _catch_up(step)
    repeated = step.started_task is not None
    task = workflow_task.claim(step, request)
    return Answer(claim=task, repeated=repeated and task is not None)


def _complete(step: Step, request: CompleteTask) -> Answer:
    task = step.started_task
    if task is None or not step.is_open or not workflow_task.is_held(step, request.token):
        raise NotFoundError(_NO_TASK)
    table.check_sequence(request.commands)
    forced = request.force_create_new_workflow_task
    if forced and step.recorded.status is Status.PAUSED:
        raise FailedPreconditionError(
            "Workflow is paused and force create new workflow task is not allowed."
        )
    heartbeat = forced and not request.commands and not request.messages
    if heartbeat and step.now > task.original_scheduled_at + step.limits.workflow_task_heartbeat:
        workflow_task.time_out(step, task)
        return Answer(error=NotFoundError("workflow task heartbeat timeout"))
    saw_cancel = step.change.state.cancel_unseen
    step.answer = request
    step.next_run_id = request.next_run_id
    step.namespace_id = request.namespace_id
    update.listen(step, request)
    reset_event_id = 0
    try:
        if update.leaves_nothing(step, task, request):
            reset_event_id = step.recorded.previous_started_event_id
            workflow_task.succeed(step)
            update.take_rejections(step, request)
        else:
            _carry_out(step, task, request)
    except BadCommandError as fault:
        return _refuse(step, task, request, fault)
    if step.change.closed:
        return Answer()
    if not heartbeat:
        update.reject_unprocessed(step, task)
    flushed = buffer.flush(step, task.started_at)
    if forced or flushed or step.wants_task:
        chain = task.original_scheduled_at if heartbeat else None
        workflow_task.schedule(step, original_scheduled_at=chain)
    elif update.waiting(step):
        workflow_task.schedule(step, speculative=True)
    claim = workflow_task.claim(step, request.next_claim) if request.next_claim else None
    return Answer(
        claim=claim,
        activities=step.taken,
        reset_event_id=reset_event_id,
        saw_cancel=saw_cancel,
    )


def _carry_out(step: Step, task: TaskClaim, request: CompleteTask) -> None:
    workflow_task.write_out(step, task)
    completed = step.append(
        events.WorkflowTaskCompleted(
            scheduled_event_id=task.scheduled_event_id,
            started_event_id=task.started_event_id,
            identity=request.identity,
            binary_checksum=request.binary_checksum,
            worker_version=request.worker_version,
            sdk_metadata=request.sdk_metadata,
            metering_metadata=request.metering_metadata,
            versioning_behavior=request.versioning_behavior,
        )
    )
    workflow_task.succeed(step)
    update.take_rejections(step, request)
    for command in request.commands:
        table.carry_out(step, command, completed)
    if not step.change.closed:
        update.carry_out_rest(step)


def _refuse(step: Step, task: TaskClaim, request: CompleteTask, fault: BadCommandError) -> Answer:
    """An answer with a fault: nothing of it counts, and the task fails.

    From the second attempt on the answer is passed over, so that the task's timeout, which grows,
    slows the repetition down.
    """
    text = str(fault)
    unhandled = fault.cause is Cause.UNHANDLED_COMMAND
    step.begin_anew()
    if not unhandled:
        update.abort_all(step)
    if task.attempt > 1 and not unhandled:
        return Answer(error=InvalidArgumentError(text))
    workflow_task.fail(
        step,
        task,
        fault.cause,
        Failure(message=text, server_failure_info=ServerFailureInfo()),
        request.identity,
        binary_checksum=request.binary_checksum,
        last=fault.terminates,
    )
    if fault.terminates:
        closing.give_up(step, text)
    # while the next task runs, signals are refused, or they could keep the run open for ever
    step.volatile.closing = unhandled
    return Answer(error=InvalidArgumentError(text))


def _fail(step: Step, request: FailTask) -> Answer:
    _check_open(step)
    task = step.started_task
    if task is None or not workflow_task.is_held(step, request.token):
        raise NotFoundError(_NO_TASK)
    if request.cause is Cause.GRPC_MESSAGE_TOO_LARGE:
        closing.give_up(step, "GrpcMessageTooLarge")
        return Answer()
    failure = shorten_failure(request.failure, step.limits.blob_bytes, non_retryable=True)
    workflow_task.fail(
        step,
        task,
        request.cause,
        failure,
        request.identity,
        binary_checksum=request.binary_checksum,
    )
    return Answer()


def _lost(step: Step, request: TaskLost) -> Answer:
    task = step.started_task
    if step.is_open and task is not None and request.owner and task.owner == request.owner:
        step.note(
            "attempt_lost",
            f"the worker process {request.owner} died with a workflow task",
            identity=task.identity,
            scheduled_event_id=task.scheduled_event_id,
            attempt=task.attempt,
        )
        workflow_task.time_out(step, task)
    return Answer()


# ---- facts and requests from outside


def _signal(step: Step, request: SignalRun) -> Answer:
    _check_open(step)
    _catch_up(step)
    signal.check(step.change.state, step.limits)
    return _take_in(step, signal.item(request, step.now), at_once=request.ends_delay)


def _admit_update(step: Step, request: AdmitUpdate) -> Answer:
    state = step.change.state
    if update.is_known(state, step.change.updates.get(request.update_id), request.update_id):
        return Answer()
    _check_open(step)
    update.check(state, step.limits)
    _catch_up(step)
    update.admit(step, request)
    return Answer()


def _request_cancel(step: Step, request: RequestCancelRun) -> Answer:
    if not step.is_open:
        return Answer()
    _catch_up(step)
    if step.recorded.cancel_requested:
        return Answer()
    return _take_in(step, workflow.cancel_item(request, step.now))


def _attach(step: Step, request: AttachStartRequest) -> Answer:
    _check_open(step)
    _catch_up(step)
    if request.request_id in step.volatile.attached_request_ids:
        return Answer()
    return _take_in(step, workflow.attach_item(request, step.now))


def _arrive(step: Step, request: Arrive) -> Answer:
    _check_open(step)
    _catch_up(step)
    row = request.closes
    if row is not None and row.scheduled_event_id not in step.recorded.open_activities:
        raise NotFoundError(activity.ATTEMPT_OVER)
    if child.is_report(request.item) and (
        child.initiated_by(request.item) not in step.recorded.children
    ):
        return Answer()  # told before
    answer = _take_in(step, request.item)
    if row is not None and answer.waiting is None:
        step.change.activity_rows[row.scheduled_event_id] = None
    if request.next_claim is None or not step.announce:
        return answer
    return replace(answer, claim=workflow_task.claim(step, request.next_claim))


def _acknowledge(step: Step, request: Acknowledge) -> Answer:
    deliveries = step.volatile.deliveries
    done = [
        each
        for each in request.done
        if each.event_id in deliveries
        and deliveries[each.event_id].kind is each.kind
        and each.attempt in (None, deliveries[each.event_id].attempts)
    ]
    for each in done:
        del deliveries[each.event_id]
    acknowledged = tuple(each.event_id for each in done)
    if not step.is_open or all(each.fact is None for each in done):
        return Answer(acknowledged=acknowledged)
    _catch_up(step)
    facts = [
        InboxItem(event_time=step.now, attributes=each.fact)
        for each in done
        if each.fact is not None and child.is_news(step, each)
    ]
    if step.started_task is None:
        step.append_facts(facts)
        if facts:
            workflow_task.schedule(step)
        return Answer(acknowledged=acknowledged)
    return Answer(acknowledged=acknowledged, to_inbox=facts)


def _begin_tasks(step: Step, _request: BeginTasks) -> Answer:
    if step.is_open and step.volatile.waits_for_parent:
        workflow.begin_tasks(step)
    return Answer()


def _terminate(step: Step, request: TerminateRun) -> Answer:
    _check_open(step)
    answer = Answer(event_id=closing.terminate(step, request))
    if request.reset_run_id:
        step.volatile.reset_run_id = request.reset_run_id
        delivery.hand_over(step, keeps_children=request.keeps_children)
    return answer


def _deliver(step: Step, _request: DeliverInbox) -> Answer:
    if not step.is_open:
        buffer.drop(step)
        return Answer()
    task = step.started_task
    if task is None:
        _catch_up(step)
    elif buffer.overflows(step):
        cause = Cause.FORCE_CLOSE_COMMAND
        workflow_task.fail(step, task, cause, None, ENGINE_IDENTITY, overflow=True)
    return Answer()


def _due(step: Step, request: Due) -> Answer:
    step.takes_up = True
    step.next_run_id = request.next_run_id
    if step.is_open:
        _come_due(step)
    return Answer()


def _come_due(step: Step) -> None:
    if closing.has_timed_out(step):
        closing.time_out(step)
        return
    task = step.started_task
    if task is not None and task.started_at is not None:
        if task.started_at + task.start_to_close_timeout <= step.now:
            workflow_task.time_out(step, task)
        return
    _catch_up(step)
    task = step.volatile.task
    if task is None:
        return
    if task.schedule_to_start_due is not None and task.schedule_to_start_due <= step.now:
        workflow_task.not_taken(step, task)
    elif task.dispatch_due is not None and task.dispatch_due <= step.now:
        step.announce = True


def _operate(step: Step, request: OperateActivities) -> Answer:
    _check_open(step)
    return Answer(selected=activity_operations.operate(step, request))


# ---- shared


def _check_open(step: Step) -> None:
    if not step.is_open:
        raise NotFoundError(_CLOSED)


def _catch_up(step: Step) -> None:
    """Take in what waits and what has come due, unless a workflow task is started."""
    if step.started_task is not None:
        return
    facts = buffer.flush(step, step.recorded.last_event_time)
    first_task = first_task_at(step.change.state)
    if any(buffer.wakes(step, fact) for fact in facts) or (
        first_task is not None and first_task <= step.now
    ):
        workflow_task.schedule(step)


def _take_in(step: Step, item: InboxItem, *, at_once: bool = False) -> Answer:
    """Write a fact, or hand it back to wait while a workflow task is started."""
    if step.started_task is not None:
        return Answer(waiting=item)
    step.append_facts([item])
    event_id = step.recorded.next_event_id - 1
    if at_once or buffer.wakes(step, item):
        workflow_task.schedule(step)
    return Answer(event_id=event_id)


def _limit_exceeded(step: Step) -> str:
    """Why a run that is still open may not go on; empty when it may.

    As seen from the server: the event that crosses the limit is kept, the transition that would go
    beyond is undone and ends the run.
    """
    if not step.change.events or not step.is_open:
        return ""
    if step.recorded.next_event_id - 1 > step.limits.history_events + 1:
        return closing.HISTORY_COUNT_EXCEEDED
    if step.origin.recorded.history_bytes > step.limits.history_bytes:
        return closing.HISTORY_SIZE_EXCEEDED
    return ""


def _note_growth(step: Step) -> None:
    """Tell operators once when a history passes a limit that only warns."""
    before, now, limits = step.origin.recorded, step.recorded, step.limits
    for what, had, has, warn in (
        ("events", before.next_event_id - 1, now.next_event_id - 1, limits.history_events_warn),
        ("bytes", before.history_bytes, now.history_bytes, limits.history_bytes_warn),
    ):
        if had <= warn < has:
            step.note("soft_limit", f"the history has more than {warn:,} {what}; continue as new")


_MACHINES: dict[type[Any], Callable[[Step, Any], Answer]] = {
    ClaimTask: _claim,
    CompleteTask: _complete,
    FailTask: _fail,
    TaskLost: _lost,
    SignalRun: _signal,
    AdmitUpdate: _admit_update,
    RequestCancelRun: _request_cancel,
    AttachStartRequest: _attach,
    Arrive: _arrive,
    Acknowledge: _acknowledge,
    BeginTasks: _begin_tasks,
    TerminateRun: _terminate,
    DeliverInbox: _deliver,
    Due: _due,
    OperateActivities: _operate,
}
