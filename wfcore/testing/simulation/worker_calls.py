"""What workers do: take tasks from messages or by polling, run them, answer in time, late or twice.

A worker may stop at any point; what it has taken it may hold as long as it likes.
"""

import random
from collections.abc import Callable
from dataclasses import replace

import msgspec

from wfcore.history.effects import DispatchActivity, DispatchWorkflowTask
from wfcore.history.requests import ClaimTask
from wfcore.protocol.common import TaskQueue
from wfcore.protocol.enums import QueryResultType
from wfcore.protocol.failures import Failure
from wfcore.protocol.metadata import WorkflowTaskCompletedMetadata
from wfcore.protocol.payloads import Payload, Payloads
from wfcore.protocol.rpc.activity_tasks import (
    PollActivityTaskQueueRequest,
    PollActivityTaskQueueResponse,
    RecordActivityTaskHeartbeatRequest,
    RespondActivityTaskCanceledRequest,
    RespondActivityTaskCompletedRequest,
    RespondActivityTaskFailedRequest,
)
from wfcore.protocol.rpc.info import (
    RespondWorkflowTaskCompletedRequestCapabilities,
    StickyExecutionAttributes,
)
from wfcore.protocol.rpc.workflow_tasks import (
    PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse,
    RespondQueryTaskCompletedRequest,
    RespondWorkflowTaskCompletedRequest,
    RespondWorkflowTaskFailedRequest,
)
from wfcore.protocol.updates import ProtocolMessage, Rejection
from wfcore.service import tokens
from wfcore.service.follow import Follow
from wfcore.service.ports import QueryTask
from wfcore.service.tokens import ActivityToken, WorkflowToken
from wfcore.testing.simulation import coded_tasks, update_words
from wfcore.testing.simulation.dispatcher import Work
from wfcore.testing.simulation.ledger import (
    ActivityAnswer,
    Outcome,
    TaskAnswer,
    Try,
    ask,
    heard,
    may_vanish,
    trying,
)
from wfcore.testing.simulation.processes import HeldActivity, HeldTask, Worker
from wfcore.testing.simulation.scripts import Answer, Script, failure
from wfcore.testing.simulation.world import ERRAND, NAMESPACE, QUEUE, World, text

#: The rules that Temporal's SDK follows, without which a replay compares less.
_SDK = WorkflowTaskCompletedMetadata(core_used_flags=(1, 2, 3))
#: What a worker forgets of what it has answered.
_OLD = 5


# ---- taking tasks


def work_on_message(world: World, worker: Worker, rng: random.Random) -> None:
    """A message names a workflow task or brings a question: claim it, and mostly answer."""
    work = world.dispatcher.take(rng, DispatchWorkflowTask, QueryTask)
    if work is not None:
        take_up(world, worker, rng, work)


def take_up(world: World, worker: Worker, rng: random.Random, work: Work) -> None:
    """Do what a message asks for."""
    match work:
        case QueryTask():
            _claim_query(world, worker, work)
        case DispatchWorkflowTask():
            _claim(world, worker, rng, work)
        case DispatchActivity():
            _claim_activity(world, worker, rng, work)


def work_on_query_message(world: World, worker: Worker, rng: random.Random) -> None:
    """A message brings a question."""
    work = world.dispatcher.take(rng, QueryTask)
    if work is not None:
        take_up(world, worker, rng, work)


def _claim_query(world: World, worker: Worker, work: QueryTask) -> None:
    world.asked("claim a query")
    question = ask(lambda: worker.service.claim_query(work))
    if question is not None and question.task_token:
        answer_query(world, worker, question)


def _claim(world: World, worker: Worker, rng: random.Random, work: DispatchWorkflowTask) -> None:
    identity, request_id = world.tag(worker.name), ""
    owner = worker.boot_id if rng.random() < 0.9 else ""
    if rng.random() < 0.3:
        request_id = f"claim of {identity}"
    for _ in range(2 if request_id else 1):
        world.asked("claim a workflow task")
        task = ask(
            lambda: worker.service.claim_workflow_task(
                work, identity=identity, owner=owner, request_id=request_id
            )
        )
        if task is not None:
            _take(world, worker, rng, task, identity)
            return


def poll(world: World, worker: Worker, rng: random.Random) -> None:
    """Ask for a workflow task or a question."""
    identity = world.tag(worker.name)
    request = PollWorkflowTaskQueueRequest(
        namespace=NAMESPACE, task_queue=TaskQueue(name=QUEUE), identity=identity
    )
    world.asked("poll for a workflow task")
    task = ask(lambda: worker.service.poll_workflow_task_queue(request, owner=worker.boot_id))
    if task is not None:
        _take(world, worker, rng, task, identity)


def _take(
    world: World,
    worker: Worker,
    rng: random.Random,
    task: PollWorkflowTaskQueueResponse,
    identity: str,
) -> None:
    if not task.task_token:
        return
    if task.query is not None:
        answer_query(world, worker, task)
        return
    _check_task(world, task)
    worker.tasks.append(HeldTask(task=task, identity=identity))
    if rng.random() < 0.6:
        answer(world, worker, rng)


def _check_task(world: World, task: PollWorkflowTaskQueueResponse) -> None:
    """A task comes with its history, which ends with its own STARTED event."""
    events = task.history.events if task.history is not None else ()
    token = tokens.decode(task.task_token, WorkflowToken)
    ids = [event.event_id for event in events]
    if not ids or ids[-1] != token.started_event_id or ids != list(range(ids[0], ids[-1] + 1)):
        world.watch.report.fail(
            "a task comes with its history", f"{ids} for a task that is {token.started_event_id}"
        )


# ---- answering workflow tasks


def answer(world: World, worker: Worker, rng: random.Random) -> None:
    """Answer a task that is held, and those that come back with the answer."""
    held = worker.tasks.pop(rng.randrange(len(worker.tasks)))
    if _is_coded(held.task):
        if worker.is_coding:
            worker.tasks.append(held)
        else:
            _remember(worker, held)
            coded_tasks.run(world, worker, held)
        return
    _remember(worker, held)
    _script(world, worker, rng, held)


def answer_again(world: World, worker: Worker, rng: random.Random) -> None:
    """Answer a task once more, otherwise perhaps: the first answer counts, if it was taken."""
    held = rng.choice(worker.old_tasks)
    if not _is_coded(held.task):
        _script(world, worker, rng, held)
    elif not worker.is_coding:
        coded_tasks.run(world, worker, held)


def _is_coded(task: PollWorkflowTaskQueueResponse) -> bool:
    return task.workflow_type is not None and task.workflow_type.name == ERRAND


def _remember(worker: Worker, held: HeldTask) -> None:
    worker.old_tasks.append(held)
    del worker.old_tasks[:-_OLD]


def _script(world: World, worker: Worker, rng: random.Random, held: HeldTask) -> None:
    events = held.task.history.events if held.task.history is not None else ()
    if events and events[0].event_id != 1:
        run = world.run(coded_tasks.key_of(held.task))
        events = (*(run.events[: events[0].event_id - 1] if run is not None else ()), *events)
    script = Script(
        events,
        rng,
        world.tag("answer"),
        QUEUE,
        known=sorted({run.key.workflow_id for run in world.runs()}),
        is_sociable=world.profile.is_sociable,
    )
    decided = script.end() if world.is_ending else script.go_on()
    said = update_words.words(held.task.messages, events, rng)
    if said and not world.is_ending and rng.random() < 0.4:
        decided = Answer(return_new_task=decided.return_new_task, is_sticky=decided.is_sticky)
    if decided.cause is not None:
        _fail(world, worker, held, decided)
    else:
        _complete(world, worker, rng, held, decided, said)


def _complete(
    world: World,
    worker: Worker,
    rng: random.Random,
    held: HeldTask,
    decided: Answer,
    said: tuple[ProtocolMessage, ...] = (),
) -> None:
    token = tokens.decode(held.task.task_token, WorkflowToken)
    wish = TaskAnswer(
        tag=world.tag("task"),
        token=token,
        commands=len(decided.commands),
        may_vanish=may_vanish(len(decided.commands), said, forced=decided.force_new_task),
    )
    world.ledger.task_answers[wish.tag] = wish
    has_places = [
        word for word in said if not isinstance(word.body, Rejection) and rng.random() < 0.8
    ]
    request = RespondWorkflowTaskCompletedRequest(
        task_token=held.task.task_token,
        commands=update_words.placed(decided.commands, has_places, rng),
        messages=said,
        capabilities=RespondWorkflowTaskCompletedRequestCapabilities(
            discard_speculative_workflow_task_with_events=rng.random() < 0.7
        ),
        identity=held.identity,
        sticky_attributes=StickyExecutionAttributes() if decided.is_sticky else None,
        return_new_workflow_task=decided.return_new_task,
        force_create_new_workflow_task=decided.force_new_task,
        sdk_metadata=_SDK,
        binary_checksum=wish.tag,
        namespace=NAMESPACE,
    )
    claim_id = f"claims of {wish.tag}" if rng.random() < 0.5 else ""
    given = None
    for _ in range(2 if claim_id else 1):
        world.asked("complete a workflow task")
        attempt = Try(by=worker.name)
        given = heard(
            wish,
            attempt,
            lambda: worker.service.respond_workflow_task_completed(
                request, owner=worker.boot_id, claim_id=claim_id
            ),
        )
        if attempt.outcome is not Outcome.UNKNOWN:
            break
    if given is None:
        return
    for activity in given.activity_tasks:
        worker.activities.append(HeldActivity(task=activity, identity=held.identity))
    if given.workflow_task is not None:
        _take(world, worker, rng, given.workflow_task, held.identity)


def _fail(world: World, worker: Worker, held: HeldTask, decided: Answer) -> None:
    token = tokens.decode(held.task.task_token, WorkflowToken)
    wish = TaskAnswer(tag=world.tag("task"), token=token, is_failure=True)
    world.ledger.task_answers[wish.tag] = wish
    if decided.cause is None:
        raise ValueError("an answer without a cause is no failure")
    request = RespondWorkflowTaskFailedRequest(
        task_token=held.task.task_token,
        cause=decided.cause,
        failure=Failure(message="the script fails its task"),
        identity=held.identity,
        binary_checksum=wish.tag,
        namespace=NAMESPACE,
    )
    world.asked("fail a workflow task")
    with trying(wish, Try(by=worker.name)):
        worker.service.respond_workflow_task_failed(request)


def answer_query(world: World, worker: Worker, task: PollWorkflowTaskQueueResponse) -> None:
    """Say how many events there were to answer from; real code answers for itself."""
    if _is_coded(task):
        if not worker.is_coding:
            coded_tasks.run(world, worker, HeldTask(task=task, identity=worker.name))
        return
    events = task.history.events if task.history is not None else ()
    count = Payload(metadata={"encoding": b"json/plain"}, data=msgspec.json.encode(len(events)))
    request = RespondQueryTaskCompletedRequest(
        task_token=task.task_token,
        completed_type=QueryResultType.ANSWERED,
        query_result=Payloads(payloads=(count,)),
        namespace=NAMESPACE,
    )
    world.asked("answer a query")
    ask(lambda: worker.service.respond_query_task_completed(request))


# ---- activities


def work_on_activity_message(world: World, worker: Worker, rng: random.Random) -> None:
    """A message names an attempt: claim it, and perhaps end it."""
    work = world.dispatcher.take(rng, DispatchActivity)
    if work is not None:
        take_up(world, worker, rng, work)


def _claim_activity(
    world: World, worker: Worker, rng: random.Random, work: DispatchActivity
) -> None:
    identity, request_id = world.tag(worker.name), ""
    if rng.random() < 0.3:
        request_id = f"claim of {identity}"
    owner = worker.boot_id if rng.random() < 0.9 else ""
    for _ in range(2 if request_id else 1):
        world.asked("claim an activity")
        task = ask(
            lambda: worker.service.claim_activity(
                work, identity=identity, owner=owner, request_id=request_id
            )
        )
        if task is not None:
            _take_activity(world, worker, rng, task, identity)
            return


def poll_for_activity(world: World, worker: Worker, rng: random.Random) -> None:
    """Ask for an attempt."""
    identity = world.tag(worker.name)
    request = PollActivityTaskQueueRequest(
        namespace=NAMESPACE, task_queue=TaskQueue(name=QUEUE), identity=identity
    )
    world.asked("poll for an activity")
    task = ask(lambda: worker.service.poll_activity_task_queue(request, owner=worker.boot_id))
    if task is not None:
        _take_activity(world, worker, rng, task, identity)


def _take_activity(
    world: World,
    worker: Worker,
    rng: random.Random,
    task: PollActivityTaskQueueResponse,
    identity: str,
) -> None:
    if not task.task_token:
        return
    worker.activities.append(HeldActivity(task=task, identity=identity))
    if rng.random() < 0.2:
        end_activity(world, worker, rng)


def heartbeat(world: World, worker: Worker, rng: random.Random) -> None:
    """Say that an attempt is alive; hear whether it shall stop."""
    place = rng.randrange(len(worker.activities))
    held = worker.activities[place]
    request = RecordActivityTaskHeartbeatRequest(
        task_token=held.task.task_token,
        details=text(world.tag("beat")) if rng.random() < 0.7 else None,
        identity=held.identity,
        namespace=NAMESPACE,
    )
    world.asked("heartbeat")
    told = ask(lambda: worker.service.record_activity_task_heartbeat(request))
    if told is not None and told.cancel_requested and held in worker.activities:
        place = worker.activities.index(held)
        worker.activities[place] = replace(held, cancel_requested=True)


def end_activity(world: World, worker: Worker, rng: random.Random) -> None:
    """Complete, fail or cancel an attempt that is held."""
    held = worker.activities.pop(rng.randrange(len(worker.activities)))
    worker.old_activities.append(held)
    del worker.old_activities[:-_OLD]
    _end_activity(world, worker, rng, held)


def end_activity_again(world: World, worker: Worker, rng: random.Random) -> None:
    """Once more, otherwise perhaps."""
    _end_activity(world, worker, rng, rng.choice(worker.old_activities))


def _end_activity(world: World, worker: Worker, rng: random.Random, held: HeldActivity) -> None:
    chance = rng.random()
    if world.is_ending:
        chance = 0.5
    if chance < (0.9 if held.cancel_requested else 0.44):
        kind = "cancel an activity"
    else:
        kind = "complete an activity" if chance < 0.6 else "fail an activity"
    token = tokens.decode(held.task.task_token, ActivityToken)
    wish = ActivityAnswer(tag=world.tag("end"), token=token, kind=kind)
    world.ledger.activity_answers[wish.tag] = wish
    respond = _respond(worker, held, wish, rng)
    follow = _follow(worker, held, wish.tag, rng)
    for _ in range(1 if follow is None else 2):
        world.asked(kind)
        attempt = Try(by=worker.name)
        with trying(wish, attempt):
            respond(follow)
        if attempt.outcome is not Outcome.UNKNOWN:
            break
    if follow is not None and follow.task is not None:
        _take(world, worker, rng, follow.task, follow.claim.identity)


def _respond(
    worker: Worker, held: HeldActivity, wish: ActivityAnswer, rng: random.Random
) -> Callable[[Follow | None], object]:
    """The call that tells an attempt's end; repeated, it says the same."""
    service, task_token = worker.service, held.task.task_token
    if wish.kind == "complete an activity":
        completed = RespondActivityTaskCompletedRequest(
            task_token=task_token, result=text(wish.tag), identity=held.identity
        )
        return lambda follow: service.respond_activity_task_completed(completed, follow=follow)
    if wish.kind == "fail an activity":
        failed = RespondActivityTaskFailedRequest(
            task_token=task_token,
            failure=failure(wish.tag, rng),
            identity=held.identity,
            last_heartbeat_details=text(wish.tag) if rng.random() < 0.2 else None,
        )
        return lambda follow: service.respond_activity_task_failed(failed, follow=follow)
    canceled = RespondActivityTaskCanceledRequest(
        task_token=task_token, details=text(wish.tag), identity=held.identity
    )
    return lambda follow: service.respond_activity_task_canceled(canceled, follow=follow)


def _follow(worker: Worker, held: HeldActivity, tag: str, rng: random.Random) -> Follow | None:
    """Mostly a worker would go on with the workflow task that follows. Its claim has the name of
    this call, which a repetition after a lost answer has too.
    """
    if rng.random() < 0.4:
        return None
    claim = ClaimTask(
        request_id=f"claim of {tag}",
        identity=f"{held.identity} and on",
        owner=worker.boot_id if rng.random() < 0.9 else "",
    )
    return Follow(claim=claim, serves=lambda task_queue: task_queue == QUEUE)
