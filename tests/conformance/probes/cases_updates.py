"""Updates: what is refused, and what becomes of those that wait."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.conformance.probes.cases import Case, add, case
from tests.conformance.probes.cases_commands import COMPLETED
from tests.conformance.probes.cases_requests import WHERE
from tests.support.probing import Answer, Probe, Refusal
from tests.support.requests_json import (
    LONG,
    UUID,
    Json,
    accepted,
    answered,
    big,
    complete,
    continue_as_new,
    fail,
    refused,
    timer,
    values,
)

BIG = {"payloads": [big(6_000)]}

# ---- where to

for _condition, _where in WHERE.items():

    def _update(probe: Probe, where: Any = _where, condition: str = _condition) -> Answer:
        workflow_id, run_id = where(probe)
        space = {"namespace": "nowhere"} if condition == "unknown namespace" else {}
        return probe.update(workflow_id, "u", run_id=run_id, **space)

    def _poll(probe: Probe, where: Any = _where, condition: str = _condition) -> Answer:
        workflow_id, run_id = where(probe)
        space = {"namespace": "nowhere"} if condition == "unknown namespace" else {}
        target = {"workflowId": workflow_id, "runId": run_id}
        ref = {"workflowExecution": target, "updateId": "u"}
        return probe.call("poll_workflow_execution_update", {"updateRef": ref, **space})

    add("update", _condition, _update)
    add("poll update", _condition, _poll)

for _status in ("COMPLETED", "FAILED", "CANCELED", "TERMINATED", "TIMED_OUT"):
    for _with in (False, True):

        def _to_closed(probe: Probe, status: str = _status, with_run: bool = _with) -> Answer:
            workflow_id, run_id = probe.closed(status)
            return probe.update(workflow_id, "u", run_id=run_id if with_run else "")

        add("update", f"closed as {_status}, {'with' if _with else 'without'} run id", _to_closed)


@case("update", "new id, closed run")
def _new_id(probe: Probe) -> Answer:
    workflow_id, _ = probe.idle()
    probe.update(workflow_id, "u", partial(probe.say, accepted, answered))
    probe.terminate(workflow_id)
    return probe.update(workflow_id, "v")


@case("poll update", "unknown update id")
def _unknown_update(probe: Probe) -> Answer:
    return probe.poll_update(probe.idle()[0], "nope")


# ---- what it says


def _sent(**fields: Any) -> Case:
    return lambda probe: probe.update(probe.idle()[0], "u", timeout=5, **fields)


def _request(meta: Json | None, asked: Json | None) -> Case:
    parts = {"meta": meta, "input": asked}
    return _sent(request={name: part for name, part in parts.items() if part is not None})


add("update", "first_execution_run_id of another chain", _sent(firstExecutionRunId=UUID))
add("update", "empty name", _sent(name=""))
add("update", "name of 1,001 bytes", _sent(name=LONG))
add("update", "wait stage ADMITTED", _sent(stage="ADMITTED"))
add("update", "no input", _request({"updateId": "u"}, None))
add("update", "no request", _request(None, None))
add("update", "update id of 1,001 bytes", _request({"updateId": LONG}, {"name": "u"}))


# ---- tasks that fail


def _failing(probe: Probe, failures: int) -> Answer:
    workflow_id, _ = probe.idle()
    later: list[Answer] = []

    def fail_tasks() -> None:
        for _ in range(failures):
            probe.fail_task(probe.poll())
        later.append(probe.update(workflow_id, "late"))

    probe.update(workflow_id, "early", fail_tasks)
    return later[0]


add("update", "the workflow's task is at attempt 3", lambda probe: _failing(probe, 2))
add("update", "the workflow's task is at attempt 4", lambda probe: _failing(probe, 3))


def _while_waiting(probe: Probe, *meanwhile: Callable[[], Any], **fields: Any) -> Answer:
    """An update of an idle run, and what happens while it waits."""
    return probe.update(probe.idle()[0], "u", *meanwhile, **fields)


@case("update", "admitted, then the task failed by a bad command")
def _bad_command(probe: Probe) -> Answer:
    return _while_waiting(probe, lambda: probe.step(timer("", 1)))


@case("update", "a close command failed with UNHANDLED_COMMAND, the next task is started")
def _closing(probe: Probe) -> Answer:
    workflow_id, _ = probe.run()
    task = probe.poll()
    probe.signal(workflow_id)
    probe.answer(task, complete())
    probe.poll()
    return probe.update(workflow_id, "u")


# ---- the end of the run


@case("update", "admitted, then the run closed (complete)")
def _completed(probe: Probe) -> Answer:
    return _while_waiting(probe, lambda: probe.step(complete()))


@case("update", "admitted, then the run closed (fail)")
def _failed(probe: Probe) -> Answer:
    return _while_waiting(probe, lambda: probe.step(fail()))


@case("update", "admitted, then the run closed (terminate)")
def _terminated(probe: Probe) -> Answer:
    workflow_id, _ = probe.idle()
    return probe.update(workflow_id, "u", lambda: probe.terminate(workflow_id))


@case("update", "admitted while a task is started that closes the workflow")
def _closed_meanwhile(probe: Probe) -> Answer:
    workflow_id, _ = probe.run()
    task = probe.poll()
    return probe.update(workflow_id, "u", lambda: probe.answer(task, complete()))


@case("update", "admitted, then the run continued as new")
def _continued(probe: Probe) -> Answer:
    return _while_waiting(probe, lambda: probe.step(continue_as_new()))


@case("update", "admitted, then the run failed and a retry follows")
def _retried(probe: Probe) -> Answer:
    workflow_id, _ = probe.idle(retryPolicy={"initialInterval": "1s"})
    return probe.update(workflow_id, "u", lambda: probe.step(fail()))


def _accepted_then_continued(probe: Probe) -> tuple[str, str]:
    workflow_id, run_id = probe.idle()
    probe.update(workflow_id, "acc", partial(probe.say, accepted), stage="ACCEPTED")
    probe.signal(workflow_id)
    probe.step(continue_as_new())
    return workflow_id, run_id


@case("update", "old run id of a continued chain, new update id")
def _old_run(probe: Probe) -> Answer:
    workflow_id, run_id = _accepted_then_continued(probe)
    return probe.update(workflow_id, "new", run_id=run_id)


@case(
    "poll update",
    "accepted id asked without run id after continue-as-new (new run does not know it)",
)
def _new_run(probe: Probe) -> Answer:
    return probe.poll_update(_accepted_then_continued(probe)[0], "acc")


# ---- limits


@case("update", "ten updates in flight already")
def _in_flight(probe: Probe) -> Answer:
    workflow_id, _ = probe.idle()
    for number in range(10):
        probe.update(workflow_id, f"u{number}", timeout=0)
    return probe.update(workflow_id, "u10")


@case("update", "ten accepted, not completed")
def _ten_accepted(probe: Probe) -> Answer:
    workflow_id, _ = probe.idle()
    for number in range(10):
        say = partial(probe.say, accepted)
        probe.update(workflow_id, f"u{number}", say, stage="ACCEPTED")
    return probe.update(workflow_id, "u10")


@case("update", "total limit (4 here) used up")
def _total(probe: Probe) -> Answer:
    workflow_id, _ = probe.idle()
    for number in range(3):
        probe.update(workflow_id, f"no{number}", partial(probe.say, refused))
    for number in range(4):
        probe.update(workflow_id, f"yes{number}", partial(probe.say, accepted, answered))
    return probe.update(workflow_id, "more")


def _too_big(probe: Probe, **said: Any) -> tuple[Answer, Answer]:
    """What the caller and the worker are told when a message about an update is too big."""
    answers: list[Answer] = []
    workflow_id, _ = probe.idle()
    words = [accepted, partial(answered, **said)] if said else [accepted]
    asked = {"name": "u", "args": values(1) if said else BIG}
    told = probe.update(
        workflow_id,
        "u",
        lambda: answers.append(probe.say(*words)),
        request={"meta": {"updateId": "u"}, "input": asked},
    )
    assert probe.status(workflow_id).name == "TERMINATED"
    assert probe.types(workflow_id)[4:] == [
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_FAILED",
        "WORKFLOW_EXECUTION_TERMINATED",
    ]
    return told, answers[0]


add(
    "update",
    "arguments above the blob limit, accepted by the worker",
    lambda probe: _too_big(probe)[0],
)
add(
    COMPLETED,
    "accepts an update whose arguments are above the blob limit",
    lambda probe: _too_big(probe)[1],
)
add(
    "update",
    "the worker's result is above the blob limit",
    lambda probe: _too_big(probe, success=BIG)[0],
)
add(
    COMPLETED,
    "update result above the blob limit",
    lambda probe: _too_big(probe, success=BIG)[1],
)

# ---- update-with-start


def _operations(*kinds: str) -> Case:
    """Operations of these kinds, all for the same workflow."""

    def make(probe: Probe) -> Answer:
        workflow_id = probe.workflow_id()
        start = {
            "namespace": "default",
            "workflowId": workflow_id,
            "workflowType": {"name": "wf"},
            "taskQueue": {"name": probe.queue},
        }
        update = {
            "namespace": "default",
            "workflowExecution": {"workflowId": workflow_id},
            "request": {"meta": {"updateId": "u"}, "input": {"name": "u"}},
        }
        made = {"start": {"startWorkflow": start}, "update": {"updateWorkflow": update}}
        answer = probe.call(
            "execute_multi_operation", {"operations": [made[kind] for kind in kinds]}
        )
        _no_run(probe, workflow_id)
        return answer

    return make


def _changed(start: Json | None = None, update: Json | None = None) -> Case:
    """Both operations, one of which has something that is refused."""

    def make(probe: Probe) -> Answer:
        workflow_id = probe.workflow_id()
        begun = {"workflowId": workflow_id, **(start or {})}
        changed = dict(update or {})
        if "runId" in changed:
            changed["workflowExecution"] = {
                "workflowId": workflow_id,
                "runId": changed.pop("runId"),
            }
        answer = probe.update_with_start(start=begun, update=changed)
        _no_run(probe, workflow_id)
        return answer

    return make


def _no_run(probe: Probe, workflow_id: str) -> None:
    found = probe.describe(workflow_id)
    assert isinstance(found, Refusal)
    assert found["code"] == "NOT_FOUND"


_WITH_START = "update-with-start"
add(_WITH_START, "no operation", _operations())
add(_WITH_START, "only a start", _operations("start"))
add(_WITH_START, "update before start", _operations("update", "start"))
add(_WITH_START, "two starts", _operations("start", "start"))
add(_WITH_START, "three operations", _operations("start", "update", "update"))
add(
    _WITH_START,
    "another workflow id in the update",
    _changed(update={"workflowExecution": {"workflowId": "another"}}),
)
add(_WITH_START, "cron", _changed({"cronSchedule": "@hourly"}))
add(_WITH_START, "start delay", _changed({"workflowStartDelay": "5s"}))
add(_WITH_START, "eager start", _changed({"requestEagerExecution": True}))
add(_WITH_START, "run id in the update", _changed(update={"runId": UUID}))
add(
    _WITH_START,
    "first execution run id in the update",
    _changed(update={"firstExecutionRunId": UUID}),
)
add(
    _WITH_START,
    "update without a name",
    _changed(update={"request": {"meta": {"updateId": "u"}, "input": {}}}),
)
add(_WITH_START, "start without a type", _changed({"workflowType": {}}))
