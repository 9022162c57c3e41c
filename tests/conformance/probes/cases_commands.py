"""Bad and borderline commands: the answer to the worker, and what is left of it in the history."""

from typing import Any

from tests.conformance.probes.cases import CASES, case
from tests.support.probing import Answer, Probe
from tests.support.requests_json import (
    LONG,
    MIB,
    TOO_BIG,
    Json,
    activity,
    attribute,
    big,
    cancel_activity,
    cancel_external,
    cancel_timer,
    cancel_workflow,
    command,
    complete,
    continue_as_new,
    fail,
    marker,
    signal_external,
    start_child,
    timer,
    upsert_attributes,
    upsert_memo,
)

#: One answer to the first workflow task of a new run each.
COMMANDS: dict[str, list[Json]] = {
    "protocol message: empty id": [command("PROTOCOL_MESSAGE", {"messageId": ""})],
    "protocol message: unknown id": [command("PROTOCOL_MESSAGE", {"messageId": "nope"})],
    "activity: empty id": [activity("")],
    "activity: empty type": [activity("a", kind="")],
    "activity: id of 1,001 bytes": [activity(LONG)],
    "activity: type of 1,001 bytes": [activity("a", kind=LONG)],
    "activity: neither start-to-close nor schedule-to-close": [activity("a", start_to_close=0)],
    "activity: only schedule-to-start and heartbeat": [
        activity("a", start_to_close=0, scheduleToStartTimeout="5s", heartbeatTimeout="5s")
    ],
    "activity: negative start-to-close": [activity("a", start_to_close=-1)],
    "activity: negative schedule-to-close": [activity("a", scheduleToCloseTimeout="-1s")],
    "activity: negative schedule-to-start": [activity("a", scheduleToStartTimeout="-1s")],
    "activity: negative heartbeat": [activity("a", heartbeatTimeout="-1s")],
    "activity: retry policy coefficient 0.5": [
        activity("a", retryPolicy={"backoffCoefficient": 0.5})
    ],
    "activity: retry policy with negative attempts": [
        activity("a", retryPolicy={"maximumAttempts": -1})
    ],
    "activity: retry policy maximum interval below initial": [
        activity("a", retryPolicy={"initialInterval": "5s", "maximumInterval": "1s"})
    ],
    "activity: task queue of 1,001 bytes": [activity("a", queue=LONG)],
    "activity: reserved task queue prefix": [activity("a", queue="/_sys/x")],
    "activity: no task queue": [activity("a", queue=None)],
    "activity: empty task queue name": [activity("a", queue=None, taskQueue={"name": ""})],
    "activity: good": [activity("a")],
    "activity: negative priority key": [activity("a", priority={"priorityKey": -1})],
    "activity: fairness key of 65 bytes": [activity("a", priority={"fairnessKey": "k" * 65})],
    "activity: no attributes": [command("SCHEDULE_ACTIVITY_TASK")],
    "activity: two with one id": [activity("a"), activity("a")],
    "activity: good one, then a bad one": [activity("good"), activity("")],
    "activity: input above 2 MB": [activity("a", input=TOO_BIG)],
    "cancel activity: event id 0": [cancel_activity(0)],
    "cancel activity: negative event id": [cancel_activity(-1)],
    "cancel activity: unknown event id": [cancel_activity(99)],
    "cancel activity: id of an event that is no activity": [cancel_activity(1)],
    "timer: empty id": [timer("", 5)],
    "timer: id of 1,001 bytes": [timer(LONG, 5)],
    "timer: negative": [timer("t", -1)],
    "timer: zero": [timer("t", 0)],
    "timer: no duration": [command("START_TIMER", {"timerId": "t"})],
    "timer: 200 years": [timer("t", 6307200000)],
    "timer: two with one id": [timer("t", 5), timer("t", 5)],
    "timer: start, cancel, start again with one id": [
        timer("t", 5),
        cancel_timer("t"),
        timer("t", 5),
    ],
    "cancel timer: empty id": [cancel_timer("")],
    "cancel timer: unknown id": [cancel_timer("t")],
    "complete: result above 2 MB": [command("COMPLETE_WORKFLOW_EXECUTION", {"result": TOO_BIG})],
    "complete: no attributes": [command("COMPLETE_WORKFLOW_EXECUTION")],
    "complete: no result": [complete()],
    "fail: no failure": [command("FAIL_WORKFLOW_EXECUTION", {})],
    "fail: failure above 2 MB": [fail("x" * (2 * MIB + 1))],
    "cancel workflow without a cancel request": [cancel_workflow()],
    "a timer after a complete": [complete(), timer("t", 5)],
    "two completes": [complete(), complete()],
    "fail, then complete": [fail(), complete()],
    "timer, then complete": [timer("t", 5), complete()],
    "unknown command type (unspecified)": [{"commandType": "COMMAND_TYPE_UNSPECIFIED"}],
    "marker: empty name": [marker("")],
    "marker: name of 1,001 bytes": [marker(LONG)],
    "marker: details above 2 MB": [marker("m", details={"d": TOO_BIG})],
    "continue as new: type of 1,001 bytes": [continue_as_new(workflowType={"name": LONG})],
    "continue as new: negative run timeout": [continue_as_new(workflowRunTimeout="-1s")],
    "continue as new: negative task timeout": [continue_as_new(workflowTaskTimeout="-1s")],
    "continue as new: negative backoff": [continue_as_new(backoffStartInterval="-1s")],
    "continue as new: bad retry policy": [continue_as_new(retryPolicy={"backoffCoefficient": 0.5})],
    "continue as new: bad cron (not checked)": [continue_as_new(cronSchedule="nope")],
    "continue as new: input above 2 MB": [continue_as_new(input=TOO_BIG)],
    "continue as new: memo above 2 MB": [continue_as_new(memo={"fields": {"m": big(2 * MIB + 1)}})],
    "continue as new: reserved task queue": [continue_as_new(taskQueue={"name": "/_sys/x"})],
    "continue as new: unknown search attribute": [
        continue_as_new(searchAttributes={"indexedFields": {"NoSuch": attribute("Keyword", "x")}})
    ],
    "child: empty workflow id": [start_child("")],
    "child: empty type": [start_child("c", workflowType={"name": ""})],
    "child: id of 1,001 bytes": [start_child(LONG)],
    "child: negative execution timeout": [start_child("c", workflowExecutionTimeout="-1s")],
    "child: negative run timeout": [start_child("c", workflowRunTimeout="-1s")],
    "child: bad retry policy": [start_child("c", retryPolicy={"backoffCoefficient": 0.5})],
    "child: bad cron": [start_child("c", cronSchedule="nope")],
    "child: another namespace": [start_child("c", namespace="temporal-system")],
    "child: unknown namespace": [start_child("c", namespace="nowhere")],
    "child: unknown search attribute": [
        start_child("c", searchAttributes={"indexedFields": {"NoSuch": attribute("Keyword", "x")}})
    ],
    "child: input above 2 MB": [start_child("c", input=TOO_BIG)],
    "child: memo above 2 MB": [start_child("c", memo={"fields": {"m": big(2 * MIB + 1)}})],
    "child: reserved task queue": [start_child("c", taskQueue={"name": "/_sys/x"})],
    "child started and canceled in one task": [
        start_child("cc-same-task"),
        cancel_external("cc-same-task", childWorkflowOnly=True),
    ],
    "signal external: unknown namespace": [signal_external("w", namespace="nowhere")],
    "signal external: another namespace": [signal_external("w", namespace="temporal-system")],
    "signal external: empty workflow id": [signal_external("")],
    "signal external: empty signal name": [signal_external("w", "")],
    "signal external: signal name of 1,001 bytes (not checked)": [signal_external("w", LONG)],
    "signal external: run id is not a UUID": [signal_external("w", run_id="nope")],
    "signal external: no execution": [
        command("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION", {"signalName": "s"})
    ],
    "signal external: input above 2 MB": [signal_external("w", input=TOO_BIG)],
    "cancel external: unknown namespace": [cancel_external("w", namespace="nowhere")],
    "cancel external: another namespace": [cancel_external("w", namespace="temporal-system")],
    "cancel external: empty workflow id": [cancel_external("")],
    "cancel external: run id is not a UUID": [cancel_external("w", "nope")],
    "cancel external: id of 1,001 bytes": [cancel_external(LONG)],
    "upsert search attributes: none": [upsert_attributes()],
    "upsert search attributes: unknown name": [upsert_attributes(NoSuch=attribute("Keyword", "x"))],
    "upsert search attributes: system name": [
        upsert_attributes(WorkflowId=attribute("Keyword", "x"))
    ],
    "upsert search attributes: wrong type": [upsert_attributes(ProbeInt=attribute("Int", "abc"))],
    "upsert search attributes: value of 2,051 bytes": [
        upsert_attributes(ProbeKeyword=attribute("Keyword", "x" * 2049))
    ],
    "upsert search attributes: no attributes": [command("UPSERT_WORKFLOW_SEARCH_ATTRIBUTES")],
    "upsert memo: none": [upsert_memo()],
    "upsert memo: above 2 MB": [upsert_memo(m=big(2 * MIB + 1))],
    "user metadata: summary of 500 bytes on a timer": [
        timer("t", 5, userMetadata={"summary": big(500)})
    ],
    "user metadata: details of 30,000 bytes on a timer": [
        timer("t", 5, userMetadata={"details": big(30_000)})
    ],
}


def _effect(probe: Probe, workflow_id: str, run_id: str) -> Json:
    """What follows the STARTED event of the first workflow task."""
    events = probe.events(workflow_id, run_id)[3:]
    effect: Json = {"events_after_the_start": [e.event_type.name for e in events][:8]}
    for event in events:
        attributes: Any = event.attributes
        if event.event_type.name == "WORKFLOW_TASK_FAILED":
            effect["cause"] = attributes.cause.name
            effect["failure_message"] = probe.normal(attributes.failure.message)
            server = attributes.failure.server_failure_info
            effect["failure_kind"] = ["serverFailureInfo"] if server is not None else []
            effect["identity"] = attributes.identity
        if event.event_type.name == "WORKFLOW_EXECUTION_TERMINATED":
            effect["terminated_reason"] = probe.normal(attributes.reason)
            effect["terminated_identity"] = attributes.identity
    return effect


def answer_and_effect(probe: Probe, condition: str) -> tuple[Answer, Json]:
    """The answer to the commands of a condition, and their effect."""
    workflow_id, run_id = probe.run()
    answer = probe.step(*COMMANDS[condition])
    return answer, _effect(probe, workflow_id, run_id)


# ---- attempts after the first, and tokens that are over

COMPLETED = "workflow task completed"


@case(COMPLETED, "same token again after the task was failed")
def _token_of_failed(probe: Probe) -> Answer:
    probe.run()
    task = probe.poll()
    probe.answer(task, timer("ok", 5), timer("", 5))
    return probe.answer(task, timer("x", 5))


def _second_attempt(probe: Probe, *commands: Json) -> Answer:
    workflow_id, _ = probe.run()
    probe.step(timer("", 5))
    task = probe.poll()
    assert task.attempt == 2
    assert [event.event_type.name for event in task.history.events] == [
        *probe.types(workflow_id),
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
    ]
    answer = probe.answer(task, *commands)
    pending = probe.describe(workflow_id).pending_workflow_task
    assert pending.state.name == "STARTED"
    assert probe.types(workflow_id)[-1] == "WORKFLOW_TASK_FAILED"
    assert not isinstance(probe.answer(task, timer("good", 5)), dict)
    return answer


CASES[COMPLETED, "bad command on attempt 2"] = lambda probe: _second_attempt(probe, timer("", 5))
CASES[COMPLETED, "input above 2 MB on attempt 2"] = lambda probe: _second_attempt(
    probe, activity("big", input=TOO_BIG)
)


def _timed_out(probe: Probe) -> Any:
    workflow_id, _ = probe.run(workflowTaskTimeout="1s")
    task = probe.poll()
    probe.advance(1.5)
    assert probe.types(workflow_id)[-1] == "WORKFLOW_TASK_TIMED_OUT"
    return task


@case(COMPLETED, "task has timed out")
def _complete_timed_out(probe: Probe) -> Answer:
    return probe.answer(_timed_out(probe), complete())


@case("workflow task failed", "task has timed out")
def _fail_timed_out(probe: Probe) -> Answer:
    return probe.fail_task(_timed_out(probe))


@case(COMPLETED, "token of attempt 1 while attempt 2 is started")
def _stale_attempt(probe: Probe) -> Answer:
    task = _timed_out(probe)
    assert probe.poll().attempt == 2
    return probe.answer(task, complete())


def _run_closed(probe: Probe) -> tuple[Any, Answer]:
    _timed_out(probe)
    task = probe.poll()
    return task, probe.answer(task, complete())


@case(COMPLETED, "good answer")
def _good(probe: Probe) -> Answer:
    return _run_closed(probe)[1]


@case(COMPLETED, "repeated after success, run closed")
def _repeated_closed(probe: Probe) -> Answer:
    return probe.answer(_run_closed(probe)[0], complete())


@case("workflow task failed", "run closed")
def _fail_closed(probe: Probe) -> Answer:
    return probe.fail_task(_run_closed(probe)[0])


@case(COMPLETED, "repeated after success, run open")
def _repeated_open(probe: Probe) -> Answer:
    probe.run()
    task = probe.poll()
    probe.answer(task, timer("t", 60))
    return probe.answer(task, timer("t", 60))


@case(COMPLETED, "empty token")
def _empty_token(probe: Probe) -> Answer:
    return probe.answer(None, token=b"")


@case(COMPLETED, "token of rubbish")
def _rubbish_token(probe: Probe) -> Answer:
    return probe.answer(None, token=b"rubbish")


@case(COMPLETED, "run was terminated meanwhile")
def _terminated_meanwhile(probe: Probe) -> Answer:
    workflow_id, _ = probe.run()
    task = probe.poll()
    probe.terminate(workflow_id)
    return probe.answer(task, complete())


# ---- children, signals and cancel requests that are pending


@case(COMPLETED, "child without a task queue")
def _child_without_a_queue(probe: Probe) -> Answer:
    workflow_id, _ = probe.run()
    answer = probe.step(start_child("c"))
    initiated = probe.attributes(workflow_id, "START_CHILD_WORKFLOW_EXECUTION_INITIATED")
    assert initiated.task_queue.name == probe.queue
    return answer


PENDING: dict[str, Any] = {
    "children": lambda number: start_child(f"c{number}", taskQueue={"name": "nobody"}),
    "external signals": lambda number: signal_external("nobody", f"s{number}"),
    "external cancels": lambda number: cancel_external(f"nobody{number}"),
}

for _name, _make in PENDING.items():

    def _too_many(probe: Probe, make: Any = _make) -> Answer:
        workflow_id, _ = probe.run()
        answer = probe.step(*map(make, range(4)))
        assert probe.types(workflow_id)[-1] == "WORKFLOW_TASK_FAILED"
        assert not isinstance(probe.step(*map(make, range(3))), dict)
        return answer

    CASES[COMPLETED, f"more pending {_name} than allowed (3 here)"] = _too_many


# ---- events that arrive while a task is started

CLOSING = {
    "complete": complete,
    "fail": fail,
    "cancel": cancel_workflow,
    "continue as new": continue_as_new,
}


def _in_flight(probe: Probe) -> tuple[str, Any]:
    """A run with a started task, and three facts that came during it."""
    workflow_id, _ = probe.run()
    probe.step(activity("a", probe.queue), timer("t", 2))
    running = probe.poll_activity()
    probe.signal(workflow_id, "s1")
    task = probe.poll()
    probe.answer_activity("completed", running)
    probe.signal(workflow_id, "s2")
    probe.advance(2.5)
    assert len(probe.events(workflow_id)) == 9
    return workflow_id, task


for _name, _make in CLOSING.items():

    def _close_over_buffer(probe: Probe, make: Any = _make) -> Answer:
        workflow_id, task = _in_flight(probe)
        answer = probe.answer(task, make())
        assert probe.types(workflow_id)[9:] == [
            "WORKFLOW_TASK_FAILED",
            "ACTIVITY_TASK_STARTED",
            "WORKFLOW_EXECUTION_SIGNALED",
            "TIMER_FIRED",
            "ACTIVITY_TASK_COMPLETED",
            "WORKFLOW_TASK_SCHEDULED",
        ]
        return answer

    CASES[COMPLETED, f"{_name} command with buffered events"] = _close_over_buffer


def _about_to_close(probe: Probe) -> str:
    """A close command met a buffered signal."""
    workflow_id, _ = probe.run()
    task = probe.poll()
    probe.signal(workflow_id)
    probe.answer(task, complete())
    return workflow_id


def _next_task_started(probe: Probe) -> str:
    workflow_id = _about_to_close(probe)
    assert probe.poll().attempt == 1
    return workflow_id


UNHANDLED = "a close command failed with UNHANDLED_COMMAND, the next task is started"


@case("signal", UNHANDLED)
def _signal_while_closing(probe: Probe) -> Answer:
    return probe.signal(_next_task_started(probe), "s3")


@case("cancel", UNHANDLED)
def _cancel_while_closing(probe: Probe) -> Answer:
    return probe.cancel(_next_task_started(probe))


@case("signal", "after UNHANDLED_COMMAND, the next task (attempt 1) is started")
def _signal_while_started(probe: Probe) -> Answer:
    return probe.signal(_next_task_started(probe), "third")


@case("signal", "after UNHANDLED_COMMAND, the next task is scheduled but not started")
def _signal_while_scheduled(probe: Probe) -> Answer:
    return probe.signal(_about_to_close(probe), "again")


@case(COMPLETED, "cancel of a timer that has fired (event in the history)")
def _cancel_fired(probe: Probe) -> Answer:
    workflow_id, _ = probe.run()
    probe.step(timer("g", 0))
    probe.advance(0.1)
    assert probe.types(workflow_id)[-2:] == ["TIMER_FIRED", "WORKFLOW_TASK_SCHEDULED"]
    return probe.step(cancel_timer("g"))


@case(COMPLETED, "the task was failed by a buffer overflow")
def _overflow(probe: Probe) -> Answer:
    workflow_id, _ = probe.run()
    task = probe.poll()
    for number in range(5):
        probe.signal(workflow_id, f"s{number}")
    assert probe.types(workflow_id)[3:] == [
        "WORKFLOW_TASK_FAILED",
        *["WORKFLOW_EXECUTION_SIGNALED"] * 5,
    ]
    failed = probe.attributes(workflow_id, "WORKFLOW_TASK_FAILED")
    assert failed.cause.name == "FORCE_CLOSE_COMMAND"
    return probe.answer(task, complete())
