"""In a caller's transaction: a start joins it, messages take effect with it, nothing waits."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

from tests.support.probing import Probe, Refusal
from tests.support.requests_json import complete
from wfcore.exceptions import WaitInsideTransactionError
from wfcore.protocol.rpc.workflow_tasks import RespondWorkflowTaskCompletedRequest
from wfcore.service.host import Arrivals
from wfcore.service.ports import RunKey

both = pytest.mark.parametrize("arrivals", list(Arrivals))


class CallersError(Exception):
    """What the caller's own code raises."""


@contextmanager
def rolled_back(probe: Probe) -> Iterator[None]:
    """A block that fails at its end."""
    with suppress(CallersError), probe.store.callers_transaction():
        yield
        raise CallersError


@both
def test_a_start_exists_if_and_only_if_the_block_commits(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    with probe.store.callers_transaction():
        kept, run_id = probe.run()
    assert probe.status(kept, run_id).name == "RUNNING"
    lost = probe.workflow_id()
    with rolled_back(probe):
        probe.run(lost)
    assert probe.describe(lost)["code"] == "NOT_FOUND"
    assert probe.poll().workflow_execution.workflow_id == kept
    assert not probe.poll().task_token


def test_a_refused_start_does_not_break_the_block() -> None:
    probe = Probe()
    taken, _ = probe.run()
    with probe.store.callers_transaction():
        refused = probe.start(taken)
        other, _ = probe.run()
    assert refused["code"] == "ALREADY_EXISTS"
    assert probe.status(other).name == "RUNNING"


def test_work_is_announced_after_the_block() -> None:
    probe = Probe()
    seen: list[str] = []
    dispatch = probe.dispatcher.dispatch
    probe.dispatcher.dispatch = lambda effects: (  # type: ignore[method-assign]
        seen.extend(type(effect).__name__ for effect in effects),
        dispatch(effects),
    )[1]
    with probe.store.callers_transaction():
        probe.run()
        assert seen == []
    assert "DispatchWorkflowTask" in seen


@both
def test_a_signal_is_appended_after_the_commit(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, _ = probe.idle()
    with probe.store.callers_transaction():
        probe.signal(workflow_id, "s1")
        probe.cancel(workflow_id)
        assert len(probe.types(workflow_id)) == 4
    assert probe.types(workflow_id)[4:] == [
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_EXECUTION_CANCEL_REQUESTED",
        "WORKFLOW_TASK_SCHEDULED",
    ]


@both
def test_a_signal_of_a_block_that_fails_never_was(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, run_id = probe.idle()
    with rolled_back(probe):
        probe.signal(workflow_id, requestId="r")
    assert len(probe.types(workflow_id)) == 4
    probe.signal(workflow_id, requestId="r")
    assert probe.types(workflow_id)[4] == "WORKFLOW_EXECUTION_SIGNALED"
    key = RunKey(namespace="default", workflow_id=workflow_id, run_id=run_id)
    assert probe.store.read_inbox(key) == []


@both
def test_a_signal_can_go_to_a_run_of_the_same_block(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    with probe.store.callers_transaction():
        workflow_id, _ = probe.run()
        probe.signal(workflow_id)
        probe.signal(workflow_id, requestId="twice")
        probe.signal(workflow_id, requestId="twice")
    assert probe.types(workflow_id) == [
        "WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_EXECUTION_SIGNALED",
    ]


def test_a_signal_during_a_started_task_waits_for_its_end() -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    task = probe.poll()
    with probe.store.callers_transaction():
        probe.signal(workflow_id)
    assert probe.types(workflow_id)[-1] == "WORKFLOW_TASK_STARTED"
    probe.answer(task)
    assert "WORKFLOW_EXECUTION_SIGNALED" in probe.types(workflow_id)


def test_a_run_that_closes_before_the_commit_drops_the_signal_and_says_so() -> None:
    probe = Probe()
    workflow_id, run_id = probe.run()
    task = probe.poll()
    with probe.store.callers_transaction():
        probe.signal(workflow_id)
        closing = Thread(target=lambda: probe.answer(task, complete()))
        closing.start()
        closing.join(10)
    key = RunKey(namespace="default", workflow_id=workflow_id, run_id=run_id)
    assert probe.status(workflow_id).name == "COMPLETED"
    assert [entry.kind for entry in probe.store.read_journal(key)] == ["late_arrival"]
    assert probe.store.read_inbox(key) == []


def test_a_delivery_that_fails_leaves_the_row_to_the_ticker(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    opened = probe.store.transaction
    with probe.store.callers_transaction():
        probe.signal(workflow_id)

        def broken(*given: object, **named: object) -> object:
            raise ConnectionError("database gone")

        monkeypatch.setattr(probe.store, "transaction", broken)
    monkeypatch.setattr(probe.store, "transaction", opened)
    assert "delivery after commit failed" in caplog.text
    assert len(probe.types(workflow_id)) == 4
    probe.advance(6)
    report = probe.service.sweep()
    assert (report.inboxes, report.failed) == (1, 0)
    assert probe.types(workflow_id)[4] == "WORKFLOW_EXECUTION_SIGNALED"


def test_messages_to_nobody_are_refused_at_once() -> None:
    probe = Probe()
    closed, _ = probe.closed("COMPLETED")
    with probe.store.callers_transaction():
        assert probe.signal("unknown")["code"] == "NOT_FOUND"
        assert probe.signal(closed)["message"] == "workflow execution already completed"
        assert not isinstance(probe.cancel(closed), Refusal)


@both
def test_signal_with_start_joins_or_signals(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id = probe.workflow_id()
    request = {
        "workflowId": workflow_id,
        "workflowType": {"name": "wf"},
        "taskQueue": {"name": probe.queue},
        "signalName": "s",
    }
    with probe.store.callers_transaction():
        first = probe.call("signal_with_start_workflow_execution", request)
        second = probe.call("signal_with_start_workflow_execution", request)
    assert (first.started, second.started) == (True, False)
    assert probe.types(workflow_id) == [
        "WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_EXECUTION_SIGNALED",
    ]


def test_a_start_may_replace_an_open_run_in_the_block() -> None:
    probe = Probe()
    workflow_id, first = probe.run()
    policy = {"workflowIdConflictPolicy": "WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING"}
    with rolled_back(probe):
        probe.start(workflow_id, **policy)
    assert probe.status(workflow_id).name == "RUNNING"
    with probe.store.callers_transaction():
        second = probe.start(workflow_id, **policy).run_id
    assert probe.status(workflow_id, first).name == "TERMINATED"
    assert probe.status(workflow_id, second).name == "RUNNING"


def test_a_termination_takes_effect_with_the_block() -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    with rolled_back(probe):
        probe.terminate(workflow_id)
    assert probe.status(workflow_id).name == "RUNNING"
    with probe.store.callers_transaction():
        probe.terminate(workflow_id)
    assert probe.status(workflow_id).name == "TERMINATED"


def test_an_activity_may_end_with_the_callers_data() -> None:
    probe = Probe()
    workflow_id, _ = probe.with_activity()
    running = probe.poll_activity()
    with rolled_back(probe):
        probe.answer_activity("completed", running)
    assert probe.types(workflow_id)[-1] == "ACTIVITY_TASK_SCHEDULED"
    with probe.store.callers_transaction():
        probe.answer_activity("completed", running)
        assert probe.types(workflow_id)[-1] == "ACTIVITY_TASK_SCHEDULED"
    assert probe.types(workflow_id)[5:] == [
        "ACTIVITY_TASK_STARTED",
        "ACTIVITY_TASK_COMPLETED",
        "WORKFLOW_TASK_SCHEDULED",
    ]


def test_calls_that_wait_are_refused() -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    with probe.store.callers_transaction():
        with pytest.raises(WaitInsideTransactionError, match="ATOMIC_REQUESTS"):
            probe.query(workflow_id)
        with pytest.raises(WaitInsideTransactionError, match="wait_new_event"):
            probe.call(
                "get_workflow_execution_history",
                {"execution": {"workflowId": workflow_id}, "waitNewEvent": True},
            )


def test_a_worker_may_answer_inside_a_block() -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    task = probe.poll()
    with probe.store.callers_transaction():
        answer = RespondWorkflowTaskCompletedRequest(task_token=task.task_token)
        probe.service.respond_workflow_task_completed(answer)
    assert probe.types(workflow_id)[-1] == "WORKFLOW_TASK_COMPLETED"
