"""Messages and polls are hints: the claim decides, the first wins, an answer needs its claim."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import msgspec
import pytest

from tests.support.probing import Probe, Refusal
from tests.support.requests_json import activity, marker, timer
from wfcore.exceptions import InvalidArgumentError
from wfcore.history.change import Change
from wfcore.history.effects import DispatchActivity, DispatchWorkflowTask, Effect
from wfcore.history.state import SNAPSHOT_FORMAT
from wfcore.protocol.rpc.activity_tasks import PollActivityTaskQueueResponse
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse
from wfcore.service import tokens
from wfcore.service.ports import RunKey
from wfcore.service.tokens import ActivityToken, QueryToken, WorkflowToken

NOTHING = PollWorkflowTaskQueueResponse()
NO_ACTIVITY = PollActivityTaskQueueResponse()


@pytest.fixture
def sent() -> list[Effect]:
    return []


@pytest.fixture
def probe(sent: list[Effect]) -> Probe:
    return Probe(on_dispatch=sent.append)


def message(sent: list[Effect], kind: type[Effect]) -> Effect:
    return [effect for effect in sent if isinstance(effect, kind)][-1]


def key_of(workflow_id: str, run_id: str) -> RunKey:
    return RunKey(namespace="default", workflow_id=workflow_id, run_id=run_id)


def test_a_message_leads_to_its_task_once(probe: Probe, sent: list[Effect]) -> None:
    workflow_id, run_id = probe.run()
    told = message(sent, DispatchWorkflowTask)
    assert isinstance(told, DispatchWorkflowTask)
    task = probe.service.claim_workflow_task(told, identity="w", owner="boot")
    assert task.workflow_execution is not None
    assert task.workflow_execution.run_id == run_id
    assert [event.event_id for event in task.history.events] == [1, 2, 3]
    assert probe.service.claim_workflow_task(told) == NOTHING
    assert probe.poll() == NOTHING
    started = probe.attributes(workflow_id, "WORKFLOW_TASK_STARTED")
    assert started.identity == "w"
    assert probe.store.claims_of("boot", 5)[0] == [key_of(workflow_id, run_id)]


def test_the_same_claim_gets_the_same_task_again(probe: Probe) -> None:
    key = key_of(*probe.run())
    first = probe.service.claim_workflow_task(key, request_id="poll-1")
    assert probe.service.claim_workflow_task(key, request_id="poll-1") == first
    assert probe.service.claim_workflow_task(key, request_id="poll-2") == NOTHING
    assert probe.types(key.workflow_id).count("WORKFLOW_TASK_STARTED") == 1


def test_of_many_claims_at_once_one_wins(probe: Probe) -> None:
    keys = [key_of(*probe.run()) for _ in range(20)]
    with ThreadPoolExecutor(4) as threads:
        tasks = list(threads.map(probe.service.claim_workflow_task, keys * 4))
    assert len([task for task in tasks if task.task_token]) == 20


def test_there_is_nothing_to_claim_of_idle_closed_and_unknown_runs(probe: Probe) -> None:
    idle = key_of(*probe.idle())
    closed = key_of(*probe.closed("COMPLETED"))
    unknown = key_of("unknown", idle.run_id)
    for key in (idle, closed, unknown):
        assert probe.service.claim_workflow_task(key) == NOTHING


def test_a_newer_release_keeps_its_runs(probe: Probe) -> None:
    key = key_of(*probe.run())
    with probe.store.transaction("default", key.workflow_id) as tx:
        state = tx.load(key.run_id)
        assert state is not None
        state.format = SNAPSHOT_FORMAT + 1
        tx.save(Change(state=state, now=tx.now))
    assert probe.service.claim_workflow_task(key) == NOTHING


def test_a_worker_that_holds_the_run_gets_new_events_only(probe: Probe) -> None:
    key = key_of(*probe.idle())
    probe.signal(key.workflow_id)
    task = probe.service.claim_workflow_task(key, after_event_id=4)
    assert [event.event_id for event in task.history.events] == [5, 6, 7]
    assert task.previous_started_event_id == 3


@pytest.mark.parametrize(("sticky", "first"), [(True, 4), (False, 1)])
def test_the_next_task_comes_with_the_answer(probe: Probe, sticky: bool, first: int) -> None:
    workflow_id, _ = probe.run()
    task = probe.poll()
    probe.signal(workflow_id)
    fields = {"returnNewWorkflowTask": True}
    if sticky:
        fields["stickyAttributes"] = {"workerTaskQueue": {"name": "mine"}}
    answer = probe.answer(task, timer("t", 60), **fields)
    following = answer.workflow_task
    assert following.task_token
    assert following.history.events[0].event_id == first
    assert following.history.events[-1].event_type.name == "WORKFLOW_TASK_STARTED"
    assert probe.answer(following, **fields).workflow_task is None


def test_a_transient_task_comes_with_events_that_are_not_stored(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    probe.fail_task(probe.poll())
    task = probe.poll()
    assert task.attempt == 2
    assert [event.event_id for event in task.history.events] == [1, 2, 3, 4, 5, 6]
    assert len(probe.events(workflow_id)) == 4
    probe.answer(task, marker())
    stored = probe.events(workflow_id)
    assert [event.event_type.name for event in stored[4:]] == [
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        "MARKER_RECORDED",
    ]
    scheduled, started = task.history.events[4:]
    assert scheduled == stored[4]
    # as from the server, the worker's identity is shown once it is stored
    shown = msgspec.structs.replace(started.attributes, identity="probe-worker")
    assert msgspec.structs.replace(started, attributes=shown) == stored[5]


def test_an_activity_message_leads_to_its_attempt_once(probe: Probe, sent: list[Effect]) -> None:
    workflow_id, _ = probe.with_activity()
    told = message(sent, DispatchActivity)
    assert isinstance(told, DispatchActivity)
    task = probe.service.claim_activity(told, identity="w", owner="boot", request_id="r")
    assert task.workflow_type is not None
    assert (task.activity_id, task.attempt, task.workflow_type.name) == ("a", 1, "wf")
    assert probe.service.claim_activity(told, request_id="r") == task
    assert probe.service.claim_activity(told, request_id="other") == NO_ACTIVITY
    assert probe.poll_activity() == NO_ACTIVITY
    probe.answer_activity("failed", task)
    assert probe.service.claim_activity(told) == NO_ACTIVITY
    assert probe.poll_activity() == NO_ACTIVITY
    probe.advance(1)
    again = message(sent, DispatchActivity)
    assert isinstance(again, DispatchActivity)
    assert probe.service.claim_activity(again).attempt == 2
    probe.terminate(workflow_id)
    assert probe.service.claim_activity(again) == NO_ACTIVITY


def test_eager_activities_come_with_the_answer(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    eager = activity("a", probe.queue, requestEagerExecution=True)
    answer = probe.answer(probe.poll(), eager)
    (task,) = answer.activity_tasks
    assert (task.activity_id, task.workflow_type.name) == ("a", "wf")
    assert probe.poll_activity() == NO_ACTIVITY
    assert not isinstance(probe.answer_activity("completed", task), Refusal)
    assert "ACTIVITY_TASK_COMPLETED" in probe.types(workflow_id)


def test_a_token_names_its_claim() -> None:
    workflow = WorkflowToken(
        namespace="n",
        workflow_id="w",
        run_id="r",
        scheduled_event_id=2,
        started_event_id=3,
        attempt=1,
        started_at=datetime(2030, 1, 1, tzinfo=UTC),
    )
    of_activity = ActivityToken(
        namespace="n", workflow_id="w", run_id="r", scheduled_event_id=5, attempt=2
    )
    question = QueryToken(namespace="n", query_id="q")
    assert tokens.decode(tokens.encode(workflow), WorkflowToken) == workflow
    assert tokens.decode(tokens.encode(of_activity), ActivityToken) == of_activity
    assert tokens.decode(tokens.encode(question), QueryToken) == question
    with pytest.raises(InvalidArgumentError, match="Error deserializing task token"):
        tokens.decode(tokens.encode(of_activity), WorkflowToken)
    with pytest.raises(InvalidArgumentError, match="Task token not set on request"):
        tokens.decode(b"", QueryToken)


def test_a_token_of_another_namespace_is_refused(probe: Probe) -> None:
    probe.run()
    task = probe.poll()
    assert probe.answer(task, namespace="nowhere")["code"] == "NOT_FOUND"
    assert probe.answer(task, namespace="")  # the token has it
