"""Children and other workflows as the state machine sees them: asked for, answered, closed."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.histories import (
    NOON,
    Run,
    a_failure,
    a_run,
    cancel_external,
    complete_run,
    continue_as_new,
    fail_run,
    seconds,
    signal_external,
    start_child,
    start_request,
    text,
)
from wfcore.exceptions import InvalidArgumentError
from wfcore.history.effects import CarryOut, WakeTicker
from wfcore.history.limits import DEFAULT_LIMITS, Limits
from wfcore.history.machines import child, external
from wfcore.history.requests import (
    BeginTasks,
    Due,
    RequestCancelRun,
    StartRun,
    TerminateRun,
)
from wfcore.history.state import DeliveryKind as Kind
from wfcore.history.transition import start
from wfcore.protocol import events as ev
from wfcore.protocol.common import Priority, RetryPolicy, TaskQueue, WorkflowExecution
from wfcore.protocol.enums import ParentClosePolicy, RetryState, WorkflowIdReusePolicy
from wfcore.protocol.enums import SignalExternalWorkflowExecutionFailedCause as SignalFailed
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.payloads import Header, Memo, Payload

PARENT = WorkflowExecution(workflow_id="order-1", run_id="run-0")


def a_child(limits: Limits = DEFAULT_LIMITS, **request: Any) -> Run:
    """A run that waits for its parent."""
    order = StartRun(
        run_id="child-run",
        request=start_request(workflow_id="child-1", **request),
        parent_namespace="default",
        parent_namespace_id="ns-1",
        parent=PARENT,
        parent_initiated_event_id=5,
        root=PARENT,
        waits_for_parent=True,
    )
    return Run(start(NOON, order, limits), limits)


def begun(run: Run) -> list[tuple[int, ...]]:
    return [tuple(event_id for event_id, _ in effect.deliveries) for effect in run.sent(CarryOut)]


def kinds(run: Run) -> list[Kind]:
    return [each.kind for each in run.state.volatile.deliveries.values()]


# ---- a parent


def test_a_child_is_asked_for_and_begun_at_once() -> None:
    run = a_run()
    run.work(start_child(namespace="default"), namespace_id="ns-1")
    asked = run.event(5)
    assert (asked.namespace, asked.namespace_id) == ("default", "ns-1")
    assert asked.task_queue.name == "orders", "the parent's queue"
    assert asked.parent_close_policy is ParentClosePolicy.TERMINATE
    assert asked.workflow_id_reuse_policy is WorkflowIdReusePolicy.ALLOW_DUPLICATE
    assert (asked.workflow_execution_timeout, asked.workflow_run_timeout) == (None, timedelta(0))
    assert asked.workflow_task_timeout == seconds(10)
    assert begun(run) == [(5,)]
    assert run.last.next_deadline == NOON + seconds(10), "begun again if nothing is heard"


def test_options_of_a_child_are_completed_and_capped() -> None:
    run = a_run(priority=Priority(priority_key=2, fairness_key="f"))
    run.work(
        start_child(
            task_queue=TaskQueue(name="other"),
            workflow_execution_timeout=seconds(60),
            workflow_run_timeout=seconds(90),
            workflow_task_timeout=seconds(300),
            retry_policy=RetryPolicy(maximum_attempts=2),
            memo=Memo(),
            header=Header(),
            priority=Priority(fairness_key="g"),
        )
    )
    asked = run.event(5)
    assert (asked.workflow_run_timeout, asked.workflow_task_timeout) == (seconds(60), seconds(60))
    assert asked.retry_policy.initial_interval == seconds(1)
    assert (asked.memo, asked.header) == (None, Header())
    assert asked.priority == Priority(fairness_key="g"), "as it was asked for"
    request = child.start_request(run.state.recorded, run.events[4])
    assert request.priority == Priority(priority_key=2, fairness_key="g"), "inherited"
    assert request.request_id == "run-0:5"
    assert request == child.start_request(run.state.recorded, run.events[4])


def test_the_start_is_recorded_once_and_wakes_the_parent() -> None:
    run = a_run()
    run.work(start_child(header=Header(fields={"a": Payload(data=b"1")})))
    assert run.child_starts().acknowledged == (5,)
    assert run.kinds(6) == ["CHILD_STARTED", "TASK_SCHEDULED"]
    known = run.state.recorded.children[5]
    assert (known.started_event_id, known.run_id) == (6, "child-run")
    assert run.event(6).header == run.event(5).header
    assert kinds(run) == []
    assert run.child_starts().acknowledged == ()
    assert len(run.events) == 7


def test_a_refused_start_ends_the_child() -> None:
    run = a_run()
    run.work(start_child())
    run.child_is_refused()
    assert run.kinds(6) == ["START_CHILD_FAILED", "TASK_SCHEDULED"]
    assert run.state.recorded.children == {}


def test_an_answer_during_a_task_waits_for_its_end() -> None:
    run = a_run()
    run.work(start_child(), signal_external(), cancel_external())
    run.signal().take_task()
    answer = run.child_starts(5)
    assert len(answer.to_inbox) == 1
    run.acknowledge(Kind.SIGNAL, 6, external.signaled(run.state.recorded, run.events[5]))
    run.acknowledge(
        Kind.CANCEL, 7, external.cancel_not_requested(run.state.recorded, run.events[6])
    )
    assert kinds(run) == [], "what is known to be done is not done again"
    assert len(run.events) == 10
    run.answer()
    assert run.kinds(11) == [
        "TASK_COMPLETED",
        "CHILD_STARTED",
        "EXTERNAL_SIGNALED",
        "REQUEST_CANCEL_EXTERNAL_FAILED",
        "TASK_SCHEDULED",
    ]
    assert run.state.recorded.children[5].started_event_id == 12


def a_closed_child(*commands: Any, **request: Any) -> Run:
    closing = a_child(**request)
    closing.apply(BeginTasks())
    if commands:
        closing.work(*commands)
    else:
        closing.terminate()
    return closing


def test_the_childs_end_is_recorded_with_what_it_brought() -> None:
    for closing, kind, fields in (
        (a_closed_child(complete_run(text("r"))), ev.ChildWorkflowExecutionCompleted, ("result",)),
        (
            a_closed_child(fail_run(a_failure())),
            ev.ChildWorkflowExecutionFailed,
            ("failure", "retry_state"),
        ),
        (a_closed_child(), ev.ChildWorkflowExecutionTerminated, ()),
    ):
        run = a_run()
        run.work(start_child())
        run.child_starts()
        run.child_ends(closing, 5)
        told = run.event(8)
        assert type(told) is kind
        assert (told.initiated_event_id, told.started_event_id) == (5, 6)
        assert (told.namespace, told.namespace_id) == ("default", "ns-1")
        assert told.workflow_execution == WorkflowExecution(
            workflow_id="child-1", run_id="child-run"
        )
        for field in fields:
            assert getattr(told, field) == getattr(closing.event(-1), field)
        assert run.state.recorded.children == {}
        before = len(run.events)
        run.child_ends(closing, 5)
        assert len(run.events) == before, "told before"


def test_an_end_that_overtakes_the_start_brings_it_along() -> None:
    run = a_run()
    run.work(start_child())
    run.child_ends(a_closed_child(), run_id="child-run")
    assert run.kinds(6) == ["CHILD_STARTED", "CHILD_TERMINATED", "TASK_SCHEDULED"]
    assert run.event(7).started_event_id == 6
    run.child_starts(5)
    assert len(run.events) == 8
    assert kinds(run) == []


def test_of_reports_that_come_twice_during_a_task_one_is_written() -> None:
    run = a_run()
    run.work(start_child())
    run.signal().take_task()
    closing = a_closed_child()
    run.child_ends(closing, run_id="child-run")
    run.child_ends(closing, run_id="child-run")
    run.child_starts(5)
    run.signal("after")
    run.answer()
    assert run.kinds(9) == [
        "TASK_COMPLETED",
        "CHILD_STARTED",
        "SIGNALED",
        "CHILD_TERMINATED",
        "TASK_SCHEDULED",
    ]
    assert run.event(12).started_event_id == 10
    assert run.inbox == []


def test_a_start_that_is_told_behind_a_waiting_end_is_no_news() -> None:
    run = a_run()
    run.work(start_child())
    begun, closing = child.started(run.events[4], "child-run"), a_closed_child()
    run.put(child.report(closing.state.recorded, closing.events[-1], begun, run.now))
    run.child_starts(5)
    assert run.kinds(6) == ["CHILD_STARTED", "CHILD_TERMINATED", "TASK_SCHEDULED"]


@pytest.mark.parametrize("refused_first", [True, False])
def test_a_child_that_has_ended_was_not_refused(refused_first: bool) -> None:
    """Its workflow id was taken by others before its start was tried once more."""
    run = a_run()
    run.work(start_child())
    run.signal().take_task()
    if refused_first:
        run.child_is_refused(5)
    run.child_ends(a_closed_child(), 5, run_id="child-run")
    if not refused_first:
        run.child_is_refused(5)
    run.answer()
    assert run.kinds(9) == ["TASK_COMPLETED", "CHILD_STARTED", "CHILD_TERMINATED", "TASK_SCHEDULED"]


def test_a_start_that_waits_behind_the_end_is_not_written_twice() -> None:
    run = a_run()
    run.work(start_child())
    run.signal().take_task()
    run.child_ends(a_closed_child(), run_id="child-run")
    run.answer()
    assert run.kinds(9) == ["TASK_COMPLETED", "CHILD_STARTED", "CHILD_TERMINATED", "TASK_SCHEDULED"]
    run.child_starts(5)
    assert len(run.events) == 12


# ---- signals and cancel requests


def test_a_signal_names_its_sender() -> None:
    run = a_run()
    run.work(signal_external(input=text("x")))
    request = external.signal_of(run.state.recorded, run.events[4])
    assert request.request_id == "run-0:5"
    assert request.external_workflow_execution == PARENT
    assert (request.identity, request.signal_name) == ("history-service", "note")
    assert request.input == text("x")
    cause = SignalFailed.SIGNAL_COUNT_LIMIT_EXCEEDED
    fact = external.not_signaled(run.state.recorded, run.events[4], cause)
    run.acknowledge(Kind.SIGNAL, 5, fact)
    assert run.kinds(6) == ["SIGNAL_EXTERNAL_FAILED", "TASK_SCHEDULED"]
    assert (run.event(6).cause, run.event(6).namespace) == (cause, "default")
    assert run.state.recorded.external_signals == {}


def test_a_cancel_request_names_event_and_reason() -> None:
    run = a_run()
    run.work(cancel_external(reason="enough", run_id="11111111-2222-4333-8444-555555555555"))
    request = external.cancel_of(run.state.recorded, run.events[4])
    assert request == RequestCancelRun(
        identity="history-service",
        reason="enough",
        external_initiated_event_id=5,
        external_workflow_execution=PARENT,
    )
    run.acknowledge(Kind.CANCEL, 5, external.cancel_requested(run.state.recorded, run.events[4]))
    assert run.kinds(6) == ["EXTERNAL_CANCEL_REQUESTED", "TASK_SCHEDULED"]
    assert run.state.recorded.external_cancels == {}


@pytest.mark.parametrize(
    ("commands", "limit"),
    [
        ([start_child(f"c-{n}") for n in range(3)], {"pending_children": 2}),
        ([signal_external()] * 3, {"pending_signals": 2}),
        ([cancel_external()] * 3, {"pending_cancels": 2}),
    ],
)
def test_only_so_many_may_wait(commands: list[Any], limit: dict[str, int]) -> None:
    run = a_run(Limits(**limit))
    run.take_task()
    with pytest.raises(InvalidArgumentError, match=r"has reached the per-workflow limit of 2"):
        run.answer(*commands)
    assert run.state.recorded.children == {}
    assert kinds(run) == []


# ---- again and again, until it is acknowledged


def test_what_is_not_acknowledged_is_begun_again_ever_more_slowly() -> None:
    run = a_run()
    run.work(start_child())
    waits, before = [], run.now
    for _ in range(9):
        due = run.last.next_deadline
        assert due is not None
        waits.append((due - before).total_seconds())
        run.now = before = due
        run.apply(Due())
        assert begun(run) == [(5,)]
    assert waits == [10, 20, 40, 80, 160, 320, 600, 600, 600]
    assert [entry.kind for entry in run.journal] == ["undelivered"]
    run.child_starts(5)
    assert run.last.next_deadline == run.state.volatile.task.dispatch_due  # type: ignore[union-attr]


def test_many_are_begun_a_few_at_a_time() -> None:
    run = a_run(Limits(deliveries_at_once=3))
    run.work(*(start_child(f"c-{n}") for n in range(7)))
    assert begun(run) == [(5, 6, 7)]
    assert run.sent(WakeTicker)[-1].at == run.now
    run.apply(Due())
    assert begun(run) == [(8, 9, 10)]
    run.signal()
    assert begun(run) == [], "only a sweep goes on with what others have left"
    run.apply(Due())
    assert begun(run) == [(11,)]
    run.apply(Due())
    assert begun(run) == []


def test_a_started_task_does_not_stop_deliveries() -> None:
    run = a_run()
    run.work(start_child())
    run.signal().take_task()
    run.wait(10).apply(Due())
    assert begun(run) == [(5,)]


# ---- closing


def test_a_run_that_closes_wants_nothing_more_of_others() -> None:
    run = a_run()
    run.work(start_child(), signal_external(), cancel_external(), complete_run())
    assert kinds(run) == []
    assert begun(run) == []
    assert run.last.next_deadline is None
    assert run.child_starts(5).acknowledged == ()
    assert run.kinds()[-1] == "COMPLETED"
    recorded = run.state.recorded
    assert (list(recorded.children), recorded.external_signals) == ([5], {})


@pytest.mark.parametrize("how", ["complete", "fail", "terminate", "time out", "continue"])
def test_every_close_reaches_the_children_that_have_started(how: str) -> None:
    run = a_run(workflow_run_timeout=seconds(60))
    policies = [
        ParentClosePolicy.TERMINATE,
        ParentClosePolicy.REQUEST_CANCEL,
        ParentClosePolicy.ABANDON,
        ParentClosePolicy.TERMINATE,
    ]
    run.work(*(start_child(f"c-{n}", parent_close_policy=p) for n, p in enumerate(policies)))
    for event_id in (5, 6, 7):
        run.child_starts(event_id, f"run-{event_id}")
    match how:
        case "complete":
            run.work(complete_run())
        case "fail":
            run.work(fail_run())
        case "continue":
            run.work(continue_as_new())
        case "terminate":
            run.terminate()
        case "time out":
            run.wait(60).apply(Due())
    assert not run.state.is_open
    assert list(run.state.volatile.deliveries) == [5, 6], "not the abandoned, not the one to come"
    assert set(kinds(run)) == {Kind.CLOSE_CHILD}
    assert begun(run) == [(5, 6)]
    run.acknowledge(Kind.START_CHILD, 5, None)
    assert list(run.state.volatile.deliveries) == [5, 6], "a late answer to something else"
    run.acknowledge(Kind.CLOSE_CHILD, 5, None)
    run.acknowledge(Kind.CLOSE_CHILD, 6, None)
    assert run.last.next_deadline is None


def test_a_start_that_waits_at_a_forced_close_counts_as_started() -> None:
    run = a_run()
    run.work(start_child())
    run.signal().take_task()
    run.child_starts(5)
    run.terminate()
    assert run.kinds(9) == ["TASK_FAILED", "CHILD_STARTED", "TERMINATED"]
    assert list(run.state.volatile.deliveries) == [5]


# ---- a child


def test_a_child_works_when_its_parent_knows_of_it() -> None:
    run = a_child()
    run.signal()
    run.request_cancel()
    assert run.kinds() == ["STARTED", "SIGNALED", "CANCEL_REQUESTED"]
    run.apply(BeginTasks())
    assert run.kinds(4) == ["TASK_SCHEDULED"]
    assert kinds(run) == []
    run.apply(BeginTasks())
    assert len(run.events) == 4


def test_a_child_that_hears_nothing_asks() -> None:
    run = a_child()
    assert kinds(run) == [Kind.ASK_PARENT]
    assert begun(run) == []
    run.wait(10).apply(Due())
    assert begun(run) == [(1,)]
    assert run.kinds() == ["STARTED"]


def test_a_cron_child_waits_for_its_time_too() -> None:
    run = a_child(cron_schedule="0 * * * *")
    run.wait(5).apply(BeginTasks())
    assert run.kinds() == ["STARTED"]
    run.tick(3595)
    assert run.kinds(2) == ["TASK_SCHEDULED"]
    early = a_child(cron_schedule="0 * * * *")
    early.request_cancel()
    assert early.kinds() == ["STARTED", "CANCEL_REQUESTED"]
    early.apply(BeginTasks())
    assert early.kinds(3) == ["TASK_SCHEDULED"]


def test_a_child_tells_its_parent_of_its_end() -> None:
    run = a_child()
    run.apply(BeginTasks())
    run.work(complete_run())
    assert run.state.volatile.deliveries.keys() == {5}
    assert kinds(run) == [Kind.REPORT]
    assert begun(run) == [(5,)]
    assert run.last.next_deadline == run.now + seconds(10)
    run.wait(10).apply(Due())
    assert begun(run) == [(5,)], "a closed run is swept until its parent knows"
    run.acknowledge(Kind.REPORT, 5, None)
    assert run.last.next_deadline is None


def test_only_the_last_run_of_a_child_tells() -> None:
    run = a_child(retry_policy=RetryPolicy(maximum_attempts=2))
    run.apply(BeginTasks())
    run.work(fail_run())
    assert run.state.recorded.status is Status.FAILED
    assert kinds(run) == []
    following = run.next_run
    assert following is not None
    assert following.state.recorded.parent == PARENT
    assert following.kinds() == ["STARTED"]
    following.now = NOON + seconds(1)
    following.apply(Due())
    following.work(fail_run())
    assert following.event(-1).retry_state is RetryState.MAXIMUM_ATTEMPTS_REACHED
    assert kinds(following) == [Kind.REPORT]


def test_a_child_that_is_retried_before_its_parent_knows_waits_still() -> None:
    run = a_child(retry_policy=RetryPolicy(), workflow_run_timeout=seconds(5))
    run.tick(5)
    assert run.kinds() == ["STARTED", "TIMED_OUT"]
    following = run.next_run
    assert following is not None
    assert following.state.volatile.waits_for_parent
    assert kinds(following) == [Kind.ASK_PARENT]


def test_a_child_that_ends_before_its_parent_knows_tells_all_the_same() -> None:
    run = a_child()
    run.apply(TerminateRun(reason="by hand"))
    assert kinds(run) == [Kind.REPORT]
