"""Resets over the service in memory: what the new run has, does and hears."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.probing import Probe, Refusal
from tests.support.requests_json import (
    Json,
    accepted,
    activity,
    answered,
    cancel_activity,
    complete,
    continue_as_new,
    placed,
    signal_external,
    start_child,
    timer,
    upsert_attributes,
    upsert_memo,
    value,
)
from wfcore.history.rebuild import rebuild
from wfcore.service.host import Arrivals

both = pytest.mark.parametrize("arrivals", list(Arrivals))
ACCEPTED = "WORKFLOW_EXECUTION_UPDATE_ACCEPTED"
ADMITTED = "WORKFLOW_EXECUTION_UPDATE_ADMITTED"
FAILED = "WORKFLOW_TASK_FAILED"
SCHEDULED = "WORKFLOW_TASK_SCHEDULED"
TERMINATED = "WORKFLOW_EXECUTION_TERMINATED"


def reset(probe: Probe, workflow_id: str, event_id: int, run_id: str = "", **fields: Any) -> str:
    """Reset and give the new run; its state follows from its events."""
    answer = probe.call(
        "reset_workflow_execution",
        {
            "workflowExecution": {"workflowId": workflow_id, "runId": run_id},
            "workflowTaskFinishEventId": str(event_id),
            "requestId": probe.request_id(),
            "reason": "again",
            **fields,
        },
    )
    assert not isinstance(answer, Refusal), answer
    made: str = answer.run_id
    state = probe.store.read_state("default", workflow_id, made)
    assert state is not None
    events = probe.events(workflow_id, made)[: state.recorded.next_event_id - 1]
    again = rebuild(events, namespace="default", workflow_id=workflow_id, run_id=made)
    assert again == state.recorded
    return made


def names(probe: Probe, workflow_id: str, run_id: str = "", *, after: int) -> list[str]:
    return probe.types(workflow_id, run_id)[after:]


# ---- which run there is then


@both
def test_the_open_run_ends_and_the_new_one_begins_with_its_history(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, old = probe.idle()
    probe.signal(workflow_id, "s")
    new = reset(probe, workflow_id, 4)
    assert probe.types(workflow_id, old)[-1] == TERMINATED
    ended = probe.attributes(workflow_id, TERMINATED, old)
    assert (ended.identity, ended.reason) == ("history-resetter", "again")
    assert names(probe, workflow_id, new, after=3) == [
        FAILED,
        "WORKFLOW_EXECUTION_SIGNALED",
        SCHEDULED,
    ]
    assert probe.events(workflow_id, new)[:3] == probe.events(workflow_id, old)[:3]
    failed = probe.attributes(workflow_id, FAILED, new)
    assert (failed.base_run_id, failed.new_run_id) == (old, new)
    assert probe.describe(workflow_id).workflow_execution_info.execution.run_id == new
    probe.step(complete())
    assert probe.status(workflow_id).name == "COMPLETED"


def test_a_closed_run_is_reset_and_a_newer_open_one_ended() -> None:
    probe = Probe()
    workflow_id, first = probe.closed("COMPLETED")
    probe.run(workflow_id)
    before = probe.types(workflow_id, first)
    new = reset(probe, workflow_id, 4, first)
    assert probe.types(workflow_id, first) == before
    assert probe.describe(workflow_id, first).workflow_extended_info.reset_run_id == new
    probe.step(complete())
    assert probe.status(workflow_id, new).name == "COMPLETED"
    later = reset(probe, workflow_id, 4, first)
    assert probe.describe(workflow_id, first).workflow_extended_info.reset_run_id == later
    assert probe.describe(workflow_id).workflow_execution_info.execution.run_id == later


def test_a_reset_to_a_task_that_was_taken_and_not_answered_in_time() -> None:
    probe = Probe()
    workflow_id, _ = probe.run(workflowTaskTimeout="5s")
    assert probe.poll().task_token
    probe.advance(6)
    new = reset(probe, workflow_id, 4)
    assert names(probe, workflow_id, new, after=2) == ["WORKFLOW_TASK_STARTED", FAILED, SCHEDULED]


def test_a_reset_to_the_start_of_a_task_writes_its_own() -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    new = reset(probe, workflow_id, 3)
    assert names(probe, workflow_id, new, after=2) == ["WORKFLOW_TASK_STARTED", FAILED, SCHEDULED]
    probe.step(complete())
    assert probe.status(workflow_id).name == "COMPLETED"


def test_a_task_under_way_is_answered_too_late() -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    probe.signal(workflow_id)
    task = probe.poll()
    new = reset(probe, workflow_id, 4)
    assert probe.answer(task, complete())["code"] == "NOT_FOUND"
    assert probe.status(workflow_id, new).name == "RUNNING"


def test_a_start_that_is_repeated_finds_the_new_run() -> None:
    probe = Probe()
    workflow_id, _ = probe.run(requestId="start-1")
    probe.step()
    new = reset(probe, workflow_id, 4)
    again = probe.start(workflow_id, requestId="start-1")
    assert (again.run_id, again.started) == (new, True)


# ---- what is begun anew


def test_activities_are_begun_again_and_the_old_attempt_counts_for_nothing() -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    probe.step(activity("a", probe.queue), activity("b", probe.queue))
    old = [probe.poll_activity(), probe.poll_activity()]
    probe.signal(workflow_id)
    probe.step(cancel_activity(6))
    # both are pending at the second task
    new = reset(probe, workflow_id, 9)
    assert probe.answer_activity("completed", old[0])["code"] == "NOT_FOUND"
    pending = probe.describe(workflow_id).pending_activities
    assert [(each.activity_id, each.attempt, each.state.name) for each in pending] == [
        ("a", 1, "SCHEDULED"),
        ("b", 1, "SCHEDULED"),
    ]
    for _ in "ab":
        probe.answer_activity("completed", probe.poll_activity())
    assert probe.types(workflow_id, new).count("ACTIVITY_TASK_COMPLETED") == 2


def test_an_activity_that_is_to_cancel_is_told_again() -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    probe.step(activity("a", probe.queue))
    probe.poll_activity()
    probe.signal(workflow_id)
    probe.step(cancel_activity(5))
    probe.signal(workflow_id)
    probe.step()
    reset(probe, workflow_id, 13)
    task = probe.poll_activity()
    assert probe.answer_activity("heartbeat", task).cancel_requested


def test_timers_keep_their_time() -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    probe.step(timer("t", 100))
    probe.advance(60)
    probe.signal(workflow_id)
    probe.step()
    new = reset(probe, workflow_id, 9)
    probe.advance(39)
    assert "TIMER_FIRED" not in probe.types(workflow_id, new)
    probe.advance(2)
    assert "TIMER_FIRED" in probe.types(workflow_id, new)


def test_timeouts_count_from_the_reset() -> None:
    probe = Probe()
    workflow_id, _ = probe.run(workflowExecutionTimeout="200s", workflowRunTimeout="100s")
    probe.step()
    probe.advance(90)
    reset(probe, workflow_id, 4)
    info = probe.describe(workflow_id).workflow_extended_info
    assert info.run_expiration_time - info.last_reset_time == timedelta(seconds=100)
    probe.advance(99)
    assert probe.status(workflow_id).name == "RUNNING"
    probe.advance(2)
    assert probe.status(workflow_id).name == "TIMED_OUT"


def test_memo_and_search_attributes_are_those_of_the_point() -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    probe.step(upsert_memo(a=value(1)), upsert_attributes(ProbeKeyword=value("then")))
    probe.signal(workflow_id)
    probe.step(upsert_memo(a=value(2)), upsert_attributes(ProbeKeyword=value("later")))
    reset(probe, workflow_id, 10)
    info = probe.describe(workflow_id).workflow_execution_info
    assert {name: each.data for name, each in info.memo.fields.items()} == {"a": b"1"}
    assert info.search_attributes.indexed_fields["ProbeKeyword"].data == b'"then"'


# ---- what came after the point


def test_signals_come_again_once_and_a_cancel_request_does_not() -> None:
    probe = Probe()
    workflow_id, old = probe.idle()
    probe.signal(workflow_id, requestId="r-1")
    probe.cancel(workflow_id)
    new = reset(probe, workflow_id, 4, old)
    # the sender has not heard the first answer
    probe.signal(workflow_id, requestId="r-1")
    kinds = probe.types(workflow_id, new)
    assert kinds.count("WORKFLOW_EXECUTION_SIGNALED") == 1
    assert "WORKFLOW_EXECUTION_CANCEL_REQUESTED" not in kinds


@pytest.mark.parametrize(
    "fields",
    [
        {"resetReapplyExcludeTypes": ["RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL"]},
        {"resetReapplyType": "RESET_REAPPLY_TYPE_NONE"},
    ],
)
def test_signals_can_be_left_out(fields: Json) -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    probe.signal(workflow_id)
    new = reset(probe, workflow_id, 4, **fields)
    assert "WORKFLOW_EXECUTION_SIGNALED" not in probe.types(workflow_id, new)


def test_signals_to_runs_that_continued_it_come_again_too() -> None:
    probe = Probe()
    workflow_id, first = probe.idle()
    probe.signal(workflow_id, "one")
    probe.step(continue_as_new())
    probe.signal(workflow_id, "two")
    new = reset(probe, workflow_id, 4, first)
    told = [
        event.attributes.signal_name
        for event in probe.events(workflow_id, new)
        if event.event_type.name == "WORKFLOW_EXECUTION_SIGNALED"
    ]
    assert told == ["one", "two"]


# ---- updates

UPDATE: Json = {"id": "u/request", "protocolInstanceId": "u", "eventId": 5, "body": {}}


def test_an_update_that_was_accepted_later_comes_by_an_event_and_is_answered() -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    probe.update(workflow_id, "u", lambda: probe.say(accepted, answered))
    new = reset(probe, workflow_id, 4)
    assert names(probe, workflow_id, new, after=3) == [FAILED, ADMITTED, SCHEDULED]
    assert probe.attributes(workflow_id, ADMITTED, new).origin.name == "REAPPLY"
    task = probe.poll()
    assert not task.messages
    said = [accepted(UPDATE), answered(UPDATE)]
    del said[0]["body"]["acceptedRequest"]
    probe.answer(task, *(placed(word) for word in said), messages=said)
    assert names(probe, workflow_id, new, after=8) == [
        "WORKFLOW_EXECUTION_UPDATE_ACCEPTED",
        "WORKFLOW_EXECUTION_UPDATE_COMPLETED",
    ]
    assert probe.attributes(workflow_id, ACCEPTED, new).accepted_request is None
    assert probe.poll_update(workflow_id, "u").stage.name == "COMPLETED"
    again = probe.update(workflow_id, "u")
    assert again.outcome.success.payloads[0].data == b'"ok"'


def test_an_update_that_no_worker_answers_is_brought_once_more_by_no_task() -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    probe.update(workflow_id, "u", lambda: probe.say(accepted, answered))
    new = reset(probe, workflow_id, 4)
    probe.step()
    assert not probe.poll().task_token
    # and once more, with the event among the kept ones
    probe.signal(workflow_id)
    probe.step()
    later = reset(probe, workflow_id, 11)
    assert probe.types(workflow_id, new)[-1] == TERMINATED
    assert probe.types(workflow_id, later).count(ADMITTED) == 1
    state = probe.store.read_state("default", workflow_id, later)
    assert state is not None
    assert list(state.volatile.updates) == ["u"]


def test_an_update_of_before_the_point_keeps_its_answer() -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    probe.update(workflow_id, "u", lambda: probe.say(accepted, answered))
    probe.signal(workflow_id)
    probe.step()
    new = reset(probe, workflow_id, len(probe.types(workflow_id)))
    assert ADMITTED not in probe.types(workflow_id, new)
    assert probe.poll_update(workflow_id, "u").outcome.success.payloads[0].data == b'"ok"'


def test_updates_can_be_left_out() -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    probe.update(workflow_id, "u", lambda: probe.say(accepted, answered))
    excluded = ["RESET_REAPPLY_EXCLUDE_TYPE_UPDATE"]
    new = reset(probe, workflow_id, 4, resetReapplyExcludeTypes=excluded)
    assert ADMITTED not in probe.types(workflow_id, new)


# ---- children and others


def test_children_of_before_the_point_stay_and_tell_the_new_run() -> None:
    probe = Probe()
    parent, _ = probe.run()
    probe.step(start_child("c", taskQueue={"name": "other"}))
    probe.step()
    new = reset(probe, parent, 9)
    assert probe.status("c").name == "RUNNING"
    probe.answer(probe.poll("other"), complete("done"))
    assert names(probe, parent, new, after=8)[:3] == [
        FAILED,
        SCHEDULED,
        "CHILD_WORKFLOW_EXECUTION_COMPLETED",
    ]


def test_a_child_that_has_ended_since_is_told_of_again() -> None:
    probe = Probe()
    parent, _ = probe.run()
    probe.step(start_child("c", taskQueue={"name": "other"}))
    probe.step()
    probe.answer(probe.poll("other"), complete("done"))
    new = reset(probe, parent, 9)
    ended = probe.attributes(parent, "CHILD_WORKFLOW_EXECUTION_COMPLETED", new)
    assert probe.events(parent, new)[ended.started_event_id - 1].event_type.name == (
        "CHILD_WORKFLOW_EXECUTION_STARTED"
    )
    state = probe.store.read_state("default", parent, new)
    assert state is not None
    assert not state.recorded.children


def test_a_child_that_is_reset_tells_its_parent_of_its_new_run_alone() -> None:
    probe = Probe()
    parent, _ = probe.run()
    probe.step(start_child("c", taskQueue={"name": "other"}))
    probe.step()
    probe.answer(probe.poll("other"))
    reset(probe, "c", 4)
    assert "CHILD_WORKFLOW_EXECUTION_TERMINATED" not in probe.types(parent)
    probe.answer(probe.poll("other"), complete("done"))
    assert probe.types(parent).count("CHILD_WORKFLOW_EXECUTION_COMPLETED") == 1


def test_a_child_may_be_signaled_as_such_after_a_reset() -> None:
    probe = Probe()
    parent, _ = probe.run()
    probe.step(start_child("c", taskQueue={"name": "other"}))
    probe.step()
    new = reset(probe, parent, 9)
    probe.step(signal_external("c", childWorkflowOnly=True))
    assert "EXTERNAL_WORKFLOW_EXECUTION_SIGNALED" in probe.types(parent, new)
    assert "WORKFLOW_EXECUTION_SIGNALED" in probe.types("c")
