"""Starts that come twice, at once, or meet an open transaction."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.probing import Probe, Refusal
from tests.support.requests_json import complete
from wfcore.service import starting
from wfcore.service.host import Arrivals
from wfcore.service.ids import RandomIds
from wfcore.service.ports import CurrentRunChangedError
from wfcore.testing.memory_ports import SimulatedClock

USE_EXISTING = {"workflowIdConflictPolicy": "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING"}
TERMINATE = {"workflowIdConflictPolicy": "WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING"}
both = pytest.mark.parametrize("arrivals", list(Arrivals))


def signal_with_start(probe: Probe, workflow_id: str, **fields: Any) -> Any:
    request = {
        "workflowId": workflow_id,
        "workflowType": {"name": "wf"},
        "taskQueue": {"name": probe.queue},
        "signalName": "s",
        **fields,
    }
    return probe.call("signal_with_start_workflow_execution", request)


def test_the_same_request_finds_its_run_open_and_closed() -> None:
    probe = Probe()
    workflow_id, run_id = probe.run(requestId="r")
    again = probe.start(workflow_id, requestId="r")
    assert (again.run_id, again.started, again.status.name) == (run_id, True, "RUNNING")
    again = probe.start(workflow_id, requestId="r", **TERMINATE)
    assert (again.run_id, again.started) == (run_id, True)
    assert len(probe.events(workflow_id)) == 2
    probe.step(complete())
    policy = {"workflowIdReusePolicy": "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE"}
    again = probe.start(workflow_id, requestId="r", **policy)
    assert (again.run_id, again.started, again.status.name) == (run_id, True, "COMPLETED")


@both
def test_a_repeated_signal_with_start_adds_nothing(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id = probe.workflow_id()
    first = signal_with_start(probe, workflow_id, requestId="r")
    second = signal_with_start(probe, workflow_id, requestId="r")
    assert (first.started, second.started) == (True, False)
    assert first.run_id == second.run_id
    assert probe.types(workflow_id) == [
        "WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    plain = probe.start(workflow_id, requestId="r")
    assert (plain.started, plain.run_id) == (True, first.run_id)


@both
def test_signal_with_start_ends_a_start_delay(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, _ = probe.run(workflowStartDelay="60s")
    probe.signal(workflow_id)
    assert "WORKFLOW_TASK_SCHEDULED" not in probe.types(workflow_id)
    signal_with_start(probe, workflow_id)
    assert probe.types(workflow_id)[-1] == "WORKFLOW_TASK_SCHEDULED"


@both
def test_a_request_can_be_attached_to_the_open_run(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, run_id = probe.idle()
    options = {"onConflictOptions": {"attachRequestId": True}}
    found = probe.start(workflow_id, requestId="attached", **USE_EXISTING, **options)
    assert (found.run_id, found.started) == (run_id, False)
    assert probe.types(workflow_id)[4:] == ["WORKFLOW_EXECUTION_OPTIONS_UPDATED"]
    again = probe.start(workflow_id, requestId="attached")
    assert (again.run_id, again.started) == (run_id, False)
    infos = probe.describe(workflow_id).workflow_extended_info.request_id_infos
    assert infos["attached"].event_id == 5


def test_an_attachment_during_a_task_follows_it() -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    task = probe.poll()
    options = {"onConflictOptions": {"attachRequestId": True}}
    probe.start(workflow_id, requestId="attached", **USE_EXISTING, **options)
    probe.answer(task)
    # whatever waited for a task brings another one
    assert probe.types(workflow_id)[4:] == [
        "WORKFLOW_EXECUTION_OPTIONS_UPDATED",
        "WORKFLOW_TASK_SCHEDULED",
    ]


def test_a_replaced_run_is_ended_with_what_waited_for_it() -> None:
    probe = Probe()
    workflow_id, first = probe.run()
    probe.poll()
    probe.signal(workflow_id)
    second = probe.start(workflow_id, **TERMINATE)
    assert probe.types(workflow_id, first)[3:] == [
        "WORKFLOW_TASK_FAILED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_EXECUTION_TERMINATED",
    ]
    ended = probe.attributes(workflow_id, "WORKFLOW_EXECUTION_TERMINATED", first)
    assert ended.reason == "TerminateIfRunning WorkflowIdReusePolicy"
    assert ended.identity == "history-service"
    text = f'"terminated by new runID: {second.run_id}"'.encode()
    assert ended.details.payloads[0].data == text
    started = probe.attributes(workflow_id, "WORKFLOW_EXECUTION_STARTED", second.run_id)
    assert started.first_execution_run_id == second.run_id
    assert started.continued_execution_run_id == ""


def test_an_existing_run_that_closes_meanwhile_is_followed_by_a_new_one() -> None:
    probe = Probe()
    workflow_id, first = probe.run()
    task = probe.poll()
    put = probe.store.put_inbox
    todo = [lambda: probe.answer(task, complete())]

    def late(*given: Any, **named: Any) -> Any:
        if todo:
            todo.pop()()
        return put(*given, **named)

    probe.store.put_inbox = late  # type: ignore[method-assign]
    found = signal_with_start(probe, workflow_id)
    assert found.started
    assert found.run_id != first
    assert probe.types(workflow_id)[:2] == [
        "WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_EXECUTION_SIGNALED",
    ]


def test_of_many_starts_at_once_one_starts() -> None:
    probe = Probe(clock=SimulatedClock(real_time=True), ids=RandomIds())
    ids = [probe.workflow_id() for _ in range(10)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(probe.start, ids * 8))
    started = [answer for answer in answers if not isinstance(answer, Refusal)]
    refused = [answer for answer in answers if isinstance(answer, Refusal)]
    assert len(started) == 10
    assert {answer["code"] for answer in refused} == {"ALREADY_EXISTS"}


def test_of_many_replacements_at_once_the_last_is_open() -> None:
    probe = Probe(clock=SimulatedClock(real_time=True), ids=RandomIds())
    workflow_id, _ = probe.run()
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: probe.start(workflow_id, **TERMINATE), range(12)))
    runs = {answer.run_id for answer in answers}
    assert len(runs) == 12
    open_runs = [run for run in runs if probe.status(workflow_id, run).name == "RUNNING"]
    assert open_runs == [probe.describe(workflow_id).workflow_execution_info.execution.run_id]


def test_a_start_waits_for_another_open_transaction_as_long_as_the_host_says() -> None:
    probe = Probe()
    probe.service.host = replace(probe.service.host, start_wait=timedelta(milliseconds=100))
    workflow_id = probe.workflow_id()
    begun, done = threading.Event(), threading.Event()

    def hold() -> None:
        with probe.store.callers_transaction():
            probe.run(workflow_id)
            begun.set()
            done.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    assert begun.wait(10)
    request = {
        "workflowId": workflow_id,
        "workflowType": {"name": "wf"},
        "taskQueue": {"name": probe.queue},
    }
    refused = probe.call("start_workflow_execution", request)
    done.set()
    holder.join(10)
    assert refused["code"] == "UNAVAILABLE"
    assert "did not end within 0.1 s" in refused["message"]
    assert probe.call("start_workflow_execution", request)["code"] == "ALREADY_EXISTS"


def test_a_start_gives_up_when_others_always_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = Probe()

    def beaten(*_given: Any) -> None:
        raise CurrentRunChangedError("too late")

    monkeypatch.setattr(starting, "_begin_in", beaten)
    assert probe.start()["code"] == "UNAVAILABLE"


def test_a_cron_run_waits_for_its_time() -> None:
    probe = Probe()
    workflow_id, _ = probe.run(cronSchedule="@every 60s")
    assert probe.types(workflow_id) == ["WORKFLOW_EXECUTION_STARTED"]
    probe.advance(60)
    assert probe.types(workflow_id)[1:] == ["WORKFLOW_TASK_SCHEDULED"]
