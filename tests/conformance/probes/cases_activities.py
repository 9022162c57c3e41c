"""Answers of activity workers."""

from typing import Any

from tests.conformance.probes.cases import add, add_each, case
from tests.support.probing import Answer, Probe
from tests.support.requests_json import (
    MIB,
    Json,
    activity,
    big,
    cancel_activity,
    failure,
    values,
)

HOWS = {
    "completed": "activity completed",
    "failed": "activity failed",
    "canceled": "activity canceled",
    "heartbeat": "heartbeat",
}
AFTER_COMPLETION = {"completed": "second time by token"}

for _how, _request in HOWS.items():

    def _after_completion(probe: Probe, how: str = _how) -> Answer:
        workflow_id, _ = probe.with_activity()
        task = probe.poll_activity()
        probe.answer_activity("completed", task, result=values("x"))
        assert probe.types(workflow_id)[5:] == [
            "ACTIVITY_TASK_STARTED",
            "ACTIVITY_TASK_COMPLETED",
            "WORKFLOW_TASK_SCHEDULED",
        ]
        return probe.answer_activity(how, task)

    add(_request, AFTER_COMPLETION.get(_how, "after it completed"), _after_completion)

    def _terminated(probe: Probe, how: str = _how) -> Answer:
        workflow_id, _ = probe.with_activity()
        task = probe.poll_activity()
        probe.terminate(workflow_id)
        return probe.answer_activity(how, task)

    add(_request, "workflow terminated", _terminated)


@case("activity completed", "attempt timed out (start-to-close), activity closed")
def _timed_out(probe: Probe) -> Answer:
    workflow_id, _ = probe.with_activity(start_to_close=1, retryPolicy={"maximumAttempts": 1})
    task = probe.poll_activity()
    probe.advance(1.5)
    assert "ACTIVITY_TASK_TIMED_OUT" in probe.types(workflow_id)
    return probe.answer_activity("completed", task)


def _of_old_attempt(probe: Probe, how: str) -> Answer:
    probe.with_activity(
        start_to_close=1, retryPolicy={"maximumAttempts": 2, "initialInterval": "0.2s"}
    )
    task = probe.poll_activity()
    probe.answer_activity("heartbeat", task, details=values("h1"))
    probe.advance(1.5)
    second = probe.poll_activity()
    assert second.attempt == 2
    assert second.heartbeat_details.payloads[0].data == b'"h1"'
    return probe.answer_activity(how, task)


add(
    "activity completed",
    "token of attempt 1 while attempt 2 is running",
    lambda probe: _of_old_attempt(probe, "completed"),
)
add(
    "heartbeat",
    "token of attempt 1 while attempt 2 is running",
    lambda probe: _of_old_attempt(probe, "heartbeat"),
)


def _fail_with(probe: Probe, reported: Json) -> Answer:
    probe.with_activity()
    return probe.answer_activity("failed", probe.poll_activity(), failure=reported)


def _info(name: str, **content: Any) -> tuple[str, Json]:
    given = {"message": "x", name: content}
    return f"failure without application failure info: {sorted(given)}", given


add_each(
    "activity failed",
    [
        ("failure without application failure info: ['message']", {"message": "x"}),
        ("failure without application failure info: []", {}),
        _info("serverFailureInfo"),
        _info("canceledFailureInfo"),
        _info("terminatedFailureInfo"),
        _info("timeoutFailureInfo", timeoutType=1),
        _info("childWorkflowExecutionFailureInfo"),
        _info("activityFailureInfo"),
    ],
    _fail_with,
)


@case("activity failed", "no failure at all")
def _no_failure(probe: Probe) -> Answer:
    workflow_id, _ = probe.with_activity()
    answer = probe.answer_activity("failed", probe.poll_activity(), failure=None)
    assert probe.describe(workflow_id).pending_activities[0].attempt == 2
    return answer


@case("activity canceled", "no cancel was requested")
def _not_asked(probe: Probe) -> Answer:
    probe.with_activity()
    return probe.answer_activity("canceled", probe.poll_activity())


# ---- sizes

TWO_MIB = {"payloads": [big(2 * MIB + 1)]}


@case("activity completed", "result above 2 MB")
def _big_result(probe: Probe) -> Answer:
    workflow_id, _ = probe.with_activity()
    answer = probe.answer_activity("completed", probe.poll_activity(), result=TWO_MIB)
    closed = probe.attributes(workflow_id, "ACTIVITY_TASK_FAILED")
    assert closed.failure.message == "Complete result exceeds size limit."
    return answer


@case("heartbeat", "details above 2 MB")
def _big_details(probe: Probe) -> Answer:
    workflow_id, _ = probe.with_activity(heartbeatTimeout="10s")
    answer = probe.answer_activity("heartbeat", probe.poll_activity(), details=TWO_MIB)
    assert answer.cancel_requested
    closed = probe.attributes(workflow_id, "ACTIVITY_TASK_FAILED")
    assert closed.failure.message == "Heartbeat details exceed size limit."
    return answer


@case("activity failed", "failure above 2 MB")
def _big_failure(probe: Probe) -> Answer:
    workflow_id, _ = probe.with_activity(retryPolicy={"maximumAttempts": 1})
    reported = failure("x" * (2 * MIB + 1))
    answer = probe.answer_activity("failed", probe.poll_activity(), failure=reported)
    closed = probe.attributes(workflow_id, "ACTIVITY_TASK_FAILED")
    assert closed.failure.message == "Failure exceeds size limit."
    return answer


# ---- commands about activities that are over


@case("workflow task completed", "cancel of an activity that is closed already")
def _cancel_closed(probe: Probe) -> Answer:
    workflow_id, _ = probe.with_activity()
    probe.signal(workflow_id)
    probe.step(cancel_activity(5))
    assert probe.types(workflow_id)[8:] == [
        "WORKFLOW_TASK_COMPLETED",
        "ACTIVITY_TASK_CANCEL_REQUESTED",
        "ACTIVITY_TASK_CANCELED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    return probe.step(cancel_activity(5))


@case("workflow task completed", "second cancel of a started activity")
def _cancel_twice(probe: Probe) -> Answer:
    workflow_id, _ = probe.with_activity()
    task = probe.poll_activity()
    assert not probe.answer_activity("heartbeat", task).cancel_requested
    probe.signal(workflow_id)
    probe.step(cancel_activity(5))
    assert probe.answer_activity("heartbeat", task).cancel_requested
    probe.signal(workflow_id)
    answer = probe.step(cancel_activity(5))
    failed = probe.attributes(workflow_id, "WORKFLOW_TASK_FAILED")
    assert failed.cause.name == "BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES"
    return answer


@case("workflow task completed", "more pending activities than allowed (3 here)")
def _too_many(probe: Probe) -> Answer:
    probe.run()
    return probe.step(*(activity(f"a{number}", probe.queue) for number in range(4)))
