"""Who ends an activity takes the workflow task that follows, by the same commit."""

from typing import Any

import msgspec
import pytest

from tests.support.probing import Probe
from tests.support.requests_json import activity
from wfcore.exceptions import NotFoundError
from wfcore.history.effects import DispatchWorkflowTask, Effect
from wfcore.history.requests import ClaimTask
from wfcore.protocol.json_form import from_json
from wfcore.protocol.rpc import activity_tasks
from wfcore.protocol.rpc.workflow_tasks import RespondWorkflowTaskCompletedRequest
from wfcore.service.follow import Follow
from wfcore.service.host import Arrivals
from wfcore.service.ports import RunKey

both = pytest.mark.parametrize("arrivals", list(Arrivals))


def follow(serves: bool = True, known: int = 0) -> Follow:
    return Follow(
        claim=ClaimTask(request_id="claim-1", identity="me", owner="boot"),
        serves=lambda task_queue: serves,
        known_event_id=lambda run_id: known,
    )


def complete(probe: Probe, task: Any, wanted: Follow) -> Any:
    request = activity_tasks.RespondActivityTaskCompletedRequest(
        namespace="default", task_token=task.task_token, identity="me"
    )
    return probe.service.respond_activity_task_completed(request, follow=wanted)


def announced(effects: list[Effect]) -> int:
    return sum(isinstance(effect, DispatchWorkflowTask) for effect in effects)


@both
def test_the_task_comes_with_the_answer_and_nobody_is_told_of_it(arrivals: Arrivals) -> None:
    effects: list[Effect] = []
    probe = Probe(arrivals=arrivals, on_dispatch=effects.append)
    workflow_id, _ = probe.with_activity()
    running = probe.poll_activity()
    effects.clear()
    wanted = follow()
    complete(probe, running, wanted)

    assert wanted.task is not None
    ids = [event.event_id for event in wanted.task.history.events]
    assert ids == list(range(1, wanted.task.started_event_id + 1))
    assert probe.types(workflow_id)[-4:] == [
        "ACTIVITY_TASK_STARTED",
        "ACTIVITY_TASK_COMPLETED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
    ]
    assert announced(effects) == 0
    assert not probe.poll().task_token, "it is taken"
    probe.answer(wanted.task)
    assert probe.types(workflow_id)[-1] == "WORKFLOW_TASK_COMPLETED"


@both
def test_a_worker_that_holds_the_run_gets_what_is_new(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    probe.with_activity()
    wanted = follow(known=5)
    complete(probe, probe.poll_activity(), wanted)
    assert wanted.task is not None
    assert wanted.task.history.events[0].event_id == 6


@both
def test_a_worker_of_other_queues_leaves_the_task_to_others(arrivals: Arrivals) -> None:
    effects: list[Effect] = []
    probe = Probe(arrivals=arrivals, on_dispatch=effects.append)
    probe.with_activity()
    running = probe.poll_activity()
    effects.clear()
    wanted = follow(serves=False)
    complete(probe, running, wanted)
    assert wanted.task is None
    assert announced(effects) == 1
    assert probe.poll().task_token


@both
def test_while_a_task_is_started_there_is_none_to_take(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, _ = probe.with_activity()
    running = probe.poll_activity()
    probe.signal(workflow_id)
    started = probe.poll()
    wanted = follow()
    complete(probe, running, wanted)
    assert wanted.task is None
    probe.answer(started)
    assert "ACTIVITY_TASK_COMPLETED" in probe.types(workflow_id)
    assert probe.poll().task_token


@both
def test_a_task_that_waits_already_is_left_to_who_was_told_of_it(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, _ = probe.with_activity()
    running = probe.poll_activity()
    probe.signal(workflow_id)
    wanted = follow()
    complete(probe, running, wanted)
    assert wanted.task is None
    assert probe.poll().task_token


@both
def test_a_call_whose_answer_was_lost_gets_the_task_again(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, run_id = probe.with_activity()
    running = probe.poll_activity()
    first, again = follow(), follow()
    complete(probe, running, first)
    complete(probe, running, again)
    assert first.task is not None
    assert again.task is not None
    assert again.task.task_token == first.task.task_token
    assert probe.types(workflow_id).count("ACTIVITY_TASK_COMPLETED") == 1
    key = RunKey(namespace="default", workflow_id=workflow_id, run_id=run_id)
    assert probe.store.read_journal(key) == [], "nothing came late"


def test_a_late_answer_is_none_that_was_lost() -> None:
    probe = Probe()
    workflow_id, run_id = probe.with_activity()
    running = probe.poll_activity()
    complete(probe, running, follow())
    other = Follow(claim=ClaimTask(request_id="claim-2"), serves=lambda task_queue: True)
    with pytest.raises(NotFoundError):
        complete(probe, running, other)
    key = RunKey(namespace="default", workflow_id=workflow_id, run_id=run_id)
    assert [entry.kind for entry in probe.store.read_journal(key)] == ["late_result"]


def answer(probe: Probe, task: Any, claim_id: str, *commands: Any) -> Any:
    request = from_json(
        RespondWorkflowTaskCompletedRequest,
        {
            "namespace": "default",
            "commands": list(commands),
            "returnNewWorkflowTask": True,
            "forceCreateNewWorkflowTask": True,
        },
    )
    request = msgspec.structs.replace(request, task_token=task.task_token)
    return probe.service.respond_workflow_task_completed(request, owner="boot", claim_id=claim_id)


def test_a_workflow_task_whose_answer_was_lost_gets_what_it_claimed_again() -> None:
    probe = Probe()
    probe.run()
    task = probe.poll()
    eager = activity("a", requestEagerExecution=True)
    first = answer(probe, task, "claims-1", eager)
    again = answer(probe, task, "claims-1", eager)
    assert [each.activity_id for each in first.activity_tasks] == ["a"]
    assert again.activity_tasks == first.activity_tasks
    assert again.workflow_task.task_token == first.workflow_task.task_token
    with pytest.raises(NotFoundError, match="Workflow task not found"):
        answer(probe, task, "claims-2", eager)


def test_a_description_shows_no_activity_of_a_later_moment() -> None:
    probe = Probe()
    workflow_id, run_id = probe.run()
    before = probe.store.read_state("default", workflow_id, run_id)
    probe.step(activity("a"))
    assert len(probe.describe(workflow_id).pending_activities) == 1
    probe.store.read_state = lambda *_given: before  # type: ignore[method-assign]
    assert probe.describe(workflow_id).pending_activities == ()
