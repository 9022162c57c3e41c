"""A compact history has a line for each thing, a full one for each value."""

from collections.abc import Callable

import pytest

from tests.support.probing import Probe
from tests.support.requests_json import (
    activity,
    cancel_timer,
    complete,
    fail,
    failure,
    marker,
    timer,
    values,
)
from wfapp.presentation.history_lines import compact, full


@pytest.fixture
def probe() -> Probe:
    return Probe()


def lines(probe: Probe, workflow_id: str) -> list[tuple[str, str, str, str, str]]:
    found = compact(probe.events(workflow_id))
    return [(line.what, line.name, line.state, line.took, line.detail) for line in found]


def test_an_activity_shares_a_line_from_its_begin_to_its_end(probe: Probe) -> None:
    workflow_id, _ = probe.run(input=values("Ann"))
    probe.step(activity("pay", probe.queue, kind="charge", input=values(5)))
    probe.advance(1)
    task = probe.poll_activity()
    probe.advance(2)
    probe.answer_activity("completed", task, result=values("receipt"))
    probe.step(complete("done"))
    assert lines(probe, workflow_id) == [
        ("workflow", "wf", "started", "", '"Ann"'),
        ("activity", "charge (pay)", "completed", "3 s", '5, "receipt"'),
        ("workflow", "", "completed", "", '"done"'),
    ]
    assert compact(probe.events(workflow_id))[1].event_ids == [5, 6, 7]


def test_an_activity_that_failed_tells_its_attempt_and_why(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    probe.step(
        activity("a", probe.queue, retryPolicy={"maximumAttempts": 2, "initialInterval": "1s"})
    )
    for _ in range(2):
        probe.answer_activity("failed", probe.poll_activity(), failure=failure("no luck", "Bad"))
        probe.advance(5)
    line = compact(probe.events(workflow_id))[1]
    assert line.is_failure
    assert (line.state, line.detail) == ("failed", "attempt 2, Bad: no luck")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (lambda probe: probe.advance(70), ("timer", "t (60 s)", "fired", "60 s", "")),
        (
            lambda probe: (probe.signal(probe.workflow_ids[-1]), probe.step(cancel_timer("t"))),
            ("timer", "t (60 s)", "canceled", "0 ms", ""),
        ),
        (lambda _: None, ("timer", "t (60 s)", "open", "", "")),
    ],
)
def test_a_timer(probe: Probe, steps: Callable[[Probe], object], expected: tuple[str, ...]) -> None:
    workflow_id, _ = probe.run()
    probe.step(timer("t", 60))
    steps(probe)
    assert lines(probe, workflow_id)[1] == expected


def test_signals_cancel_requests_and_markers_have_lines_of_their_own(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    probe.signal(workflow_id, "approve", input=values(True))
    probe.cancel(workflow_id, reason="too late")
    probe.step(marker("note"))
    assert lines(probe, workflow_id)[1:] == [
        ("signal", "approve", "received", "", "true"),
        ("cancel request", "", "received", "", "too late"),
        ("marker", "note", "recorded", "", ""),
    ]


def test_a_workflow_task_is_silent_unless_it_failed(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    probe.fail_task(probe.poll())
    probe.step(fail("broken"))
    assert lines(probe, workflow_id)[1:] == [
        ("workflow task", "", "failed", "", "MyError: task failed"),
        ("workflow", "", "failed", "", "MyError: broken"),
    ]


def test_a_page_that_begins_in_the_middle_shows_ends_as_they_are(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    probe.step(activity("a", probe.queue))
    probe.answer_activity("completed", probe.poll_activity(), result=values(1))
    found = compact(probe.events(workflow_id)[5:])
    assert [line.what for line in found] == ["ActivityTaskStarted", "ActivityTaskCompleted"]


def test_in_full_each_value_has_a_path(probe: Probe) -> None:
    workflow_id, _ = probe.run(
        input=values("Ann", {"b": 1}), memo={"fields": {"m": values(1)["payloads"][0]}}
    )
    event = full(probe.events(workflow_id))[0]
    assert event.name == "WorkflowExecutionStarted"
    found = dict(event.values)
    assert found["workflowType.name"] == "wf"
    assert found["input[0]"] == '"Ann"'
    assert found["input[1]"] == '{"b": 1}'
    assert found["memo.fields.m"] == "1"
    assert found["workflowTaskTimeout"] == "10s"
    assert "identity" not in found
