"""Answers from outside to activities that are named by workflow and activity id."""

from typing import Any

from tests.conformance.probes.cases import add, case
from tests.conformance.probes.cases_requests import WHERE
from tests.support.probing import Answer, Probe
from tests.support.requests_json import UUID

BY_ID = {
    "complete activity by id": "completed",
    "fail activity by id": "failed",
    "cancel activity by id": "canceled",
    "heartbeat by id": "heartbeat",
}
SLOW = {"retryPolicy": {"initialInterval": "60s"}}

for _name, _how in BY_ID.items():
    for _condition, _where in WHERE.items():

        def _address(
            probe: Probe, how: str = _how, where: Any = _where, condition: str = _condition
        ) -> Answer:
            workflow_id, run_id = where(probe)
            space = {"namespace": "nowhere"} if condition == "unknown namespace" else {}
            return probe.answer_by_id(how, workflow_id, run_id=run_id, **space)

        add(_name, _condition, _address)

    add(
        _name,
        "open execution without such an activity, not paused",
        lambda probe, how=_how: probe.answer_by_id(how, probe.idle()[0]),
    )

    def _not_started(probe: Probe, how: str = _how) -> Answer:
        return probe.answer_by_id(how, probe.with_activity()[0])

    add(_name, "not started", _not_started)


@case("complete activity by id", "empty activity id")
def _no_id(probe: Probe) -> Answer:
    return probe.answer_by_id("completed", probe.with_activity()[0], "")


@case("complete activity by id", "activity closed")
def _closed_activity(probe: Probe) -> Answer:
    workflow_id, _ = probe.with_activity()
    probe.answer_activity("completed", probe.poll_activity())
    return probe.answer_by_id("completed", workflow_id)


@case("complete activity by id", "unknown activity id")
def _unknown_id(probe: Probe) -> Answer:
    return probe.answer_by_id("completed", probe.with_activity()[0], "zz")


@case("complete activity by id", "workflow closed")
def _closed_workflow(probe: Probe) -> Answer:
    workflow_id, _ = probe.with_activity()
    probe.terminate(workflow_id)
    return probe.answer_by_id("completed", workflow_id)


def _in_backoff(probe: Probe, how: str) -> Answer:
    workflow_id, _ = probe.with_activity(**SLOW)
    probe.answer_activity("failed", probe.poll_activity())
    return probe.answer_by_id(how, workflow_id)


add("complete activity by id", "in backoff", lambda probe: _in_backoff(probe, "completed"))
add("fail activity by id", "in backoff", lambda probe: _in_backoff(probe, "failed"))


def _started(probe: Probe, how: str) -> Answer:
    workflow_id, _ = probe.with_activity()
    probe.poll_activity()
    return probe.answer_by_id(how, workflow_id)


add("heartbeat by id", "started", lambda probe: _started(probe, "heartbeat"))
add("fail activity by id", "started", lambda probe: _started(probe, "failed"))
add(
    "cancel activity by id",
    "started, no cancel requested",
    lambda probe: _started(probe, "canceled"),
)


@case("fail activity by id", "started, with a wrong run id")
def _wrong_run(probe: Probe) -> Answer:
    workflow_id, _ = probe.with_activity()
    probe.poll_activity()
    return probe.answer_by_id("failed", workflow_id, run_id=UUID)
