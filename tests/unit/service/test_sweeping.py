"""The ticker's part: what is due is done, what fails backs off, what the dead held is lost."""

import logging
import threading
import time
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from tests.support.probing import Probe
from tests.support.requests_json import activity, timer
from wfcore.history import transition
from wfcore.history.effects import DispatchActivity, DispatchWorkflowTask, Effect
from wfcore.history.requests import Due
from wfcore.service.ports import RunKey


def key_of(workflow_id: str, run_id: str) -> RunKey:
    return RunKey(namespace="default", workflow_id=workflow_id, run_id=run_id)


def later(probe: Probe, seconds: float) -> None:
    """Let time pass without a ticker."""
    probe.clock.advance(timedelta(seconds=seconds))


def test_nothing_due_is_nothing_done() -> None:
    probe = Probe()
    report = probe.service.sweep()
    assert (report.runs, report.activities, report.inboxes, report.failed) == (0, 0, 0, 0)
    assert (report.more, report.next_due) == (False, None)


def test_timers_fire_when_they_are_due() -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    probe.step(timer("a", 5), timer("b", 10))
    later(probe, 4)
    assert probe.service.sweep().runs == 0
    assert "TIMER_FIRED" not in probe.types(workflow_id)
    later(probe, 1)
    report = probe.service.sweep()
    assert report.runs == 1
    assert probe.types(workflow_id)[6:] == ["TIMER_FIRED", "WORKFLOW_TASK_SCHEDULED"]
    assert report.next_due is not None


def test_a_batch_is_bounded_and_says_that_there_is_more() -> None:
    probe = Probe()
    for _ in range(5):
        probe.run()
        probe.step(timer("t", 1))
    later(probe, 2)
    reports = [probe.service.sweep(limit=2) for _ in range(4)]
    assert [report.runs for report in reports] == [2, 2, 1, 0]
    assert [report.more for report in reports] == [True, True, False, False]


def test_a_run_is_closed_when_its_time_is_over() -> None:
    probe = Probe()
    workflow_id, _ = probe.run(workflowRunTimeout="3s")
    later(probe, 3)
    probe.service.sweep()
    assert probe.status(workflow_id).name == "TIMED_OUT"
    assert probe.store.next_due() is None


def test_activities_time_out_and_retry_by_themselves() -> None:
    probe = Probe()
    workflow_id, _ = probe.with_activity(start_to_close=5, retryPolicy={"maximumAttempts": 2})
    probe.poll_activity()
    later(probe, 5)
    assert probe.service.sweep().activities == 1
    (info,) = probe.describe(workflow_id).pending_activities
    assert (info.attempt, info.state.name) == (2, "SCHEDULED")
    later(probe, 1)
    probe.service.sweep()
    assert probe.poll_activity().attempt == 2
    later(probe, 5)
    probe.service.sweep()
    assert probe.types(workflow_id)[5:] == [
        "ACTIVITY_TASK_STARTED",
        "ACTIVITY_TASK_TIMED_OUT",
        "WORKFLOW_TASK_SCHEDULED",
    ]


def test_messages_that_led_to_no_claim_are_sent_again_and_less_often() -> None:
    times: list[float] = []

    def note(effect: Effect) -> None:
        if isinstance(effect, DispatchWorkflowTask):
            times.append((probe.clock.now() - start).total_seconds())

    probe = Probe(on_dispatch=note)
    start = probe.clock.now()
    probe.run()
    probe.advance(200)
    assert times == [0, 10, 30, 70, 150]
    probe.advance(4000)
    gaps = [after - before for before, after in pairwise(times[6:])]
    assert set(gaps) == {600}


def test_messages_of_activities_are_sent_again() -> None:
    sent: list[Effect] = []
    probe = Probe(on_dispatch=sent.append)
    probe.with_activity()
    probe.advance(35)
    told = [effect for effect in sent if isinstance(effect, DispatchActivity)]
    assert [effect.sent for effect in told] == [0, 1, 2]
    probe.poll_activity()
    probe.advance(5)
    assert len([effect for effect in sent if isinstance(effect, DispatchActivity)]) == 3


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Workflow ids whose deadlines can't be worked on."""
    ids: set[str] = set()
    apply = transition.apply

    def breaks(change: Any, request: Any, *rest: Any) -> Any:
        if isinstance(request, Due) and change.state.recorded.workflow_id in ids:
            raise RuntimeError("a state that nobody expected")
        return apply(change, request, *rest)

    monkeypatch.setattr(transition, "apply", breaks)
    return ids


def test_a_run_that_fails_is_journalled_and_stops_nobody(
    broken: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    probe = Probe()
    bad, bad_run = probe.run()
    probe.step(timer("t", 1))
    good, _ = probe.run()
    probe.step(timer("t", 1))
    broken.add(bad)
    later(probe, 2)
    with caplog.at_level(logging.ERROR):
        report = probe.service.sweep()
    assert (report.runs, report.failed) == (1, 1)
    assert "TIMER_FIRED" in probe.types(good)
    assert "TIMER_FIRED" not in probe.types(bad)
    assert "sweep failed" in caplog.text
    (entry,) = probe.store.read_journal(key_of(bad, bad_run))
    assert entry.kind == "sweep_failed"
    assert "RuntimeError: a state that nobody expected" in entry.text
    broken.clear()
    probe.service.sweep()
    assert "TIMER_FIRED" not in probe.types(bad)
    later(probe, 10)
    assert probe.service.sweep().failed == 0
    assert "TIMER_FIRED" in probe.types(bad)


def test_the_wait_of_a_failing_run_grows(broken: set[str]) -> None:
    probe = Probe()
    workflow_id, run_id = probe.run()
    probe.step(timer("t", 1))
    broken.add(workflow_id)
    later(probe, 2)
    times = []
    for _ in range(9):
        assert probe.service.sweep().failed == 1
        due = probe.store.next_due()
        assert due is not None
        times.append((due - probe.clock.now()).total_seconds())
        probe.clock.move_to(due)
    assert times == [10, 20, 40, 80, 160, 320, 600, 600, 600]
    entries = probe.store.read_journal(key_of(workflow_id, run_id))
    assert [entry.attempt for entry in entries] == list(range(1, 10))


def test_a_run_that_an_activity_takes_over_a_limit_has_ended_and_not_failed() -> None:
    probe = Probe("small")  # 40 events
    workflow_id, run_id = probe.run()
    probe.step(activity("a", probe.queue, retryPolicy={"maximumAttempts": 1}))
    running = probe.poll_activity()
    assert running.task_token
    for _ in range(34):
        probe.signal(workflow_id)
    assert len(probe.events(workflow_id)) == 40
    later(probe, 60)
    assert probe.service.sweep().failed == 0
    assert probe.types(workflow_id)[-1] == "WORKFLOW_EXECUTION_TERMINATED"
    kinds = [entry.kind for entry in probe.store.read_journal(key_of(workflow_id, run_id))]
    assert "sweep_failed" not in kinds


def test_a_busy_run_is_left_for_the_next_sweep() -> None:
    probe = Probe()
    workflow_id, run_id = probe.run()
    probe.step(timer("t", 1))
    later(probe, 2)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with probe.store.transaction("default", workflow_id) as tx:
            tx.load(run_id)
            held.set()
            done.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(10)
    report = probe.service.sweep()
    done.set()
    holder.join(10)
    assert (report.runs, report.failed) == (0, 1)
    assert probe.store.read_journal(key_of(workflow_id, run_id)) == []
    assert probe.service.sweep().runs == 1


def test_two_sweeps_at_once_fire_a_timer_once() -> None:
    probe = Probe()
    ids = []
    for _ in range(10):
        ids.append(probe.run()[0])
        probe.step(timer("t", 1))
    later(probe, 2)
    threads = [threading.Thread(target=probe.service.sweep) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [probe.types(one).count("TIMER_FIRED") for one in ids] == [1] * 10


def test_arrivals_that_nobody_delivered_are_taken_in_after_a_while() -> None:
    probe = Probe()
    workflow_id, run_id = probe.run()
    task = probe.poll()
    probe.signal(workflow_id)
    key = key_of(workflow_id, run_id)
    (item,) = probe.store.read_inbox(key)
    probe.answer(task)
    probe.step()
    probe.store.put_inbox(key, item)  # its sender died before the second look
    assert probe.service.sweep().inboxes == 0
    later(probe, 6)
    assert probe.service.sweep().inboxes == 1
    assert probe.types(workflow_id)[-2:] == [
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    assert probe.service.sweep().inboxes == 0


def test_arrivals_of_a_closed_run_are_dropped_and_journalled() -> None:
    probe = Probe()
    workflow_id, run_id = probe.run()
    task = probe.poll()
    probe.signal(workflow_id)
    key = key_of(workflow_id, run_id)
    (item,) = probe.store.read_inbox(key)
    probe.answer(task)
    probe.terminate(workflow_id)
    probe.store.put_inbox(key, item)
    later(probe, 6)
    assert probe.service.sweep().inboxes == 1
    assert probe.store.read_inbox(key) == []
    assert [entry.kind for entry in probe.store.read_journal(key)] == ["late_arrival"]


def test_a_dead_process_loses_its_workflow_tasks() -> None:
    probe = Probe()
    mine, run_id = probe.run()
    probe.service.claim_workflow_task(key_of(mine, run_id), owner="dead")
    other, other_run = probe.run()
    probe.service.claim_workflow_task(key_of(other, other_run), owner="alive")
    assert probe.service.lose_worker("dead", "heartbeat missing") == 1
    assert probe.types(mine)[-1] == "WORKFLOW_TASK_TIMED_OUT"
    assert probe.poll().workflow_execution.workflow_id == mine
    assert probe.types(other)[-1] == "WORKFLOW_TASK_STARTED"
    (entry,) = probe.store.read_journal(key_of(mine, run_id))
    assert entry.kind == "attempt_lost"
    assert probe.service.lose_worker("dead", "heartbeat missing") == 0


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_dead_process_loses_its_attempts(attempts: int) -> None:
    sent: list[Effect] = []
    probe = Probe(on_dispatch=sent.append)
    workflow_id, run_id = probe.with_activity(retryPolicy={"maximumAttempts": attempts})
    told = [effect for effect in sent if isinstance(effect, DispatchActivity)][-1]
    probe.service.claim_activity(told, owner="dead")
    assert probe.service.lose_worker("dead", "kill -9") == 1
    if attempts == 1:
        closed = probe.attributes(workflow_id, "ACTIVITY_TASK_TIMED_OUT")
        assert closed.failure.message == "worker lost: kill -9"
        assert closed.failure.timeout_failure_info.timeout_type.name == "HEARTBEAT"
    else:
        (info,) = probe.describe(workflow_id).pending_activities
        assert (info.attempt, info.last_failure.message) == (2, "worker lost: kill -9")
    kinds = [entry.kind for entry in probe.store.read_journal(key_of(workflow_id, run_id))]
    assert kinds == ["attempt_lost"]
    assert probe.service.lose_worker("dead", "kill -9") == 0


def test_a_process_without_a_name_loses_nothing() -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    probe.poll()
    assert probe.service.lose_worker("", "nobody") == 0
    assert probe.types(workflow_id)[-1] == "WORKFLOW_TASK_STARTED"


def test_no_kind_of_work_waits_long_for_a_run_that_another_transaction_holds() -> None:
    probe = Probe()
    waits, run_id = probe.with_activity(start_to_close=1, retryPolicy={"maximumAttempts": 1})
    task = probe.poll_activity()
    claimed, other_id = probe.run()
    order = probe.service.claim_workflow_task(key_of(claimed, other_id), owner="dead")
    assert task.task_token
    assert order.task_token
    later(probe, 2)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with (
            probe.store.callers_transaction(),
            probe.store.transaction("default", waits) as one,
            probe.store.transaction("default", claimed) as other,
        ):
            one.load(run_id)
            other.load(other_id)
            held.set()
            done.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(10)
    begun = time.monotonic()
    report = probe.service.sweep()
    assert probe.service.lose_worker("dead", "it died") == 1
    took = time.monotonic() - begun
    done.set()
    holder.join(10)
    assert (report.activities, report.failed) == (0, 1)
    assert took < 3
    assert probe.service.sweep().activities == 1
