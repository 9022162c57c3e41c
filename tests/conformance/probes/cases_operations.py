"""Operations on pending activities: pause, unpause, reset, other options."""

from typing import Any

from tests.conformance.probes.cases import add, add_each, case
from tests.conformance.probes.cases_requests import WHERE
from tests.support.probing import Answer, Probe
from tests.support.requests_json import Json

SLOW = {"retryPolicy": {"initialInterval": "60s"}}
NINE: Json = {"updateMask": "startToCloseTimeout", "activityOptions": {"startToCloseTimeout": "9s"}}
#: request -> call, what it needs besides the activity's name
OPERATIONS: dict[str, tuple[str, Json]] = {
    "pause activity": ("pause_activity", {}),
    "unpause activity": ("unpause_activity", {}),
    "reset activity": ("reset_activity", {}),
    "update activity options": ("update_activity_options", NINE),
}
NAMED: list[tuple[str, Json]] = [
    ("unknown activity id", {"id": "zz"}),
    ("unknown activity type", {"type": "zz"}),
    ("no activity named", {}),
]

for _name, (_method, _rest) in OPERATIONS.items():
    for _condition, _where in WHERE.items():

        def _address(
            probe: Probe,
            method: str = _method,
            rest: Json = _rest,
            where: Any = _where,
            condition: str = _condition,
        ) -> Answer:
            workflow_id, run_id = where(probe)
            space = {"namespace": "nowhere"} if condition == "unknown namespace" else {}
            return probe.operate(method, workflow_id, run_id, id="a", **rest, **space)

        add(_name, _condition, _address)

    add(
        _name,
        "open execution without such an activity, not paused",
        lambda probe, method=_method, rest=_rest: probe.operate(
            method, probe.idle()[0], id="a", **rest
        ),
    )

    def _named(probe: Probe, names: Json, method: str = _method) -> Answer:
        return probe.operate(method, probe.with_activity()[0], **names)

    if not _rest:
        add_each(_name, NAMED, _named)


def _paused(probe: Probe) -> str:
    workflow_id, _ = probe.with_activity(**SLOW)
    probe.operate("pause_activity", workflow_id, id="a", requestId="r1")
    assert probe.describe(workflow_id).pending_activities[0].state.name == "PAUSED"
    assert not probe.poll_activity().task_token
    return workflow_id


def _in_backoff(probe: Probe) -> str:
    workflow_id, _ = probe.with_activity(**SLOW)
    probe.answer_activity("failed", probe.poll_activity())
    return workflow_id


@case("pause activity", "scheduled")
def _pause(probe: Probe) -> Answer:
    return probe.operate("pause_activity", probe.with_activity()[0], id="a", requestId="r1")


@case("pause activity", "paused, same request id")
def _pause_again(probe: Probe) -> Answer:
    return probe.operate("pause_activity", _paused(probe), id="a", requestId="r1")


@case("pause activity", "paused, another request id")
def _pause_otherwise(probe: Probe) -> Answer:
    return probe.operate("pause_activity", _paused(probe), id="a", requestId="r2")


@case("pause activity", "by type, in backoff")
def _pause_type(probe: Probe) -> Answer:
    return probe.operate("pause_activity", _in_backoff(probe), type="act")


@case("unpause activity", "paused")
def _unpause(probe: Probe) -> Answer:
    answer = probe.operate("unpause_activity", _paused(probe), id="a")
    assert probe.poll_activity().attempt == 1
    return answer


@case("unpause activity", "not paused")
def _unpause_again(probe: Probe) -> Answer:
    return probe.operate("unpause_activity", probe.with_activity()[0], id="a")


def _options(probe: Probe, fields: Json) -> Answer:
    return probe.operate("update_activity_options", probe.with_activity()[0], **fields)


def _changed(path: str, **options: Any) -> Json:
    return {"id": "a", "updateMask": path, "activityOptions": options}


add_each(
    "update activity options",
    [
        (
            "negative start-to-close",
            _changed("startToCloseTimeout", startToCloseTimeout="-1s"),
        ),
        (
            "bad retry coefficient",
            _changed("retryPolicy.backoffCoefficient", retryPolicy={"backoffCoefficient": 0.1}),
        ),
        ("unknown field in the mask", _changed("nonsense")),
        ("no mask", {"id": "a", "activityOptions": {"startToCloseTimeout": "9s"}}),
        ("no activity named", NINE),
        ("restore original and a mask", {"id": "a", "restoreOriginal": True, **NINE}),
        ("unknown activity", {"id": "zz", **NINE}),
        ("unknown type", {"type": "zz", **NINE}),
        ("empty task queue", _changed("taskQueue.name", taskQueue={"name": ""})),
    ],
    _options,
)


def _reset_while_two_runs(probe: Probe, how: str) -> Answer:
    workflow_id, _ = probe.with_activity(retryPolicy={"initialInterval": "0.5s"})
    probe.answer_activity("failed", probe.poll_activity())
    probe.advance(0.5)
    second = probe.poll_activity()
    assert second.attempt == 2
    probe.operate("reset_activity", workflow_id, id="a")
    assert probe.describe(workflow_id).pending_activities[0].attempt == 1
    return probe.answer_activity(how, second)


for _request, _how in (
    ("heartbeat", "heartbeat"),
    ("activity completed", "completed"),
    ("activity failed", "failed"),
):
    add(
        _request,
        "reset while attempt 2 is running (token of attempt 2)",
        lambda probe, how=_how: _reset_while_two_runs(probe, how),
    )
