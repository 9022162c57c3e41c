"""A run's beginning and end: start, start delay, signals, cancel requests, closing, chains."""

from datetime import timedelta

import pytest

from tests.support.histories import (
    NOON,
    Run,
    a_failure,
    a_run,
    blob,
    cancel_run,
    complete_run,
    continue_as_new,
    fail_run,
    record_marker,
    schedule_activity,
    seconds,
    start_request,
    start_timer,
    text,
    token_of,
    upsert_memo,
)
from wfcore.exceptions import (
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedCause,
    ResourceExhaustedError,
)
from wfcore.history.change import Change
from wfcore.history.effects import DispatchActivity, DispatchWorkflowTask
from wfcore.history.limits import Limits
from wfcore.history.requests import (
    Arrive,
    AttachStartRequest,
    ClaimTask,
    CompleteTask,
    RequestCancelRun,
    SignalRun,
    StartRun,
)
from wfcore.history.state import InboxItem
from wfcore.history.transition import Needs, apply, needs, start, waiting_item
from wfcore.protocol import events as ev
from wfcore.protocol.common import Priority, RetryPolicy, TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import ContinueAsNewInitiator, RetryState, TimeoutType
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause
from wfcore.protocol.failures import Failure, ServerFailureInfo
from wfcore.protocol.metadata import Callback, Link, LinkBatchJob, NexusCallback
from wfcore.protocol.payloads import Header, Memo, Payload, SearchAttributes

NOTE = text("n").payloads[0]


# ---- start


def test_event_one_says_who_the_run_is() -> None:
    run = a_run(input=text("order"), memo=Memo(fields={"owner": NOTE}), identity="shop")
    first = run.event(1)
    assert (first.workflow_type.name, first.workflow_id) == ("Order", "order-1")
    assert first.first_execution_run_id == first.original_execution_run_id == "run-0"
    assert (first.attempt, first.identity, first.input) == (1, "shop", text("order"))
    assert first.first_workflow_task_backoff == timedelta(0)
    assert first.workflow_task_timeout == seconds(10)
    assert (first.workflow_execution_timeout, first.workflow_run_timeout) == (None, None)
    assert (first.retry_policy, first.header) == (None, None)
    assert run.memo == Memo(fields={"owner": NOTE})
    assert run.state.volatile.create_request_id == "start-1"


@pytest.mark.parametrize(
    ("execution", "run", "task", "expected"),
    [
        (None, None, None, (None, None, 10)),
        (None, None, 300, (None, None, 120)),
        (30, None, None, (30, 30, 10)),
        (10, 60, None, (10, 10, 10)),
        (None, 5, None, (None, 5, 5)),
        (200 * 365 * 86400, None, None, (3_153_600_000, 3_153_600_000, 10)),
    ],
)
def test_timeouts_are_capped(
    execution: int | None,
    run: int | None,
    task: int | None,
    expected: tuple[int | None, int | None, int],
) -> None:
    first = a_run(
        workflow_execution_timeout=seconds(execution) if execution else None,
        workflow_run_timeout=seconds(run) if run else None,
        workflow_task_timeout=seconds(task) if task else None,
    ).event(1)
    seen = (
        first.workflow_execution_timeout,
        first.workflow_run_timeout,
        first.workflow_task_timeout,
    )
    assert seen == tuple(seconds(value) if value else None for value in expected)


def test_a_retry_policy_is_filled_in() -> None:
    assert a_run(retry_policy=RetryPolicy(maximum_attempts=3)).event(1).retry_policy == RetryPolicy(
        initial_interval=seconds(1),
        backoff_coefficient=2.0,
        maximum_interval=seconds(100),
        maximum_attempts=3,
    )


def test_the_signal_of_signal_with_start_comes_before_the_first_task() -> None:
    signal = SignalRun(signal_name="go", request_id="s")
    run = a_run(start_options={"signal": signal})
    assert run.kinds() == ["STARTED", "SIGNALED", "TASK_SCHEDULED"]


def test_with_a_delay_the_first_task_waits_behind_that_signal() -> None:
    signal = SignalRun(signal_name="go", request_id="s")
    run = a_run(start_options={"signal": signal}, workflow_start_delay=seconds(2))
    assert run.kinds() == ["STARTED", "SIGNALED"]
    run.tick(2)
    assert run.kinds() == ["STARTED", "SIGNALED", "TASK_SCHEDULED"]


def test_an_eager_start_hands_the_first_task_out() -> None:
    claim = ClaimTask(request_id="eager", identity="client")
    run = a_run(start_options={"eager_claim": claim})
    assert run.kinds() == ["STARTED", "TASK_SCHEDULED", "TASK_STARTED"]
    assert run.event(1).eager_execution_accepted is True
    assert run.event(3).history_size_bytes == 0
    assert run.sent(DispatchWorkflowTask) == []
    run.claim = run.state.volatile.task
    run.answer(complete_run())
    assert run.kinds()[-1] == "COMPLETED"


def test_an_eager_start_with_a_delay_is_no_eager_start() -> None:
    claim = ClaimTask(request_id="eager", identity="client")
    run = a_run(start_options={"eager_claim": claim}, workflow_start_delay=seconds(2))
    assert run.kinds() == ["STARTED"]
    assert run.event(1).eager_execution_accepted is False


def test_links_and_metadata_stand_at_the_event() -> None:
    link = Link(batch_job=LinkBatchJob(job_id="j"))
    run = a_run(links=(link,))
    assert run.events[0].links == (link,)
    run.signal("note", links=(link,))
    assert run.events[-1].links == (link,)


def test_a_child_knows_its_parent_and_waits_for_it() -> None:
    parent = WorkflowExecution(workflow_id="parent", run_id="p-1")
    change = start(
        NOON,
        StartRun(
            run_id="c-1",
            request=start_request(header=Header(), identity=""),
            parent_namespace="default",
            parent=parent,
            parent_initiated_event_id=5,
            root=parent,
            waits_for_parent=True,
        ),
    )
    first = change.events[0].attributes
    assert [event.event_type.name for event in change.events] == ["WORKFLOW_EXECUTION_STARTED"]
    assert (first.parent_workflow_execution, first.parent_initiated_event_id) == (parent, 5)  # type: ignore[attr-defined]
    assert first.workflow_run_timeout == timedelta(0)  # type: ignore[attr-defined]
    assert first.header == Header()  # type: ignore[attr-defined]
    assert change.next_deadline == NOON + seconds(10), "it asks when the parent's word is late"


# ---- start delay


def test_a_delayed_run_exists_at_once_and_works_later() -> None:
    run = a_run(workflow_start_delay=seconds(60))
    assert run.kinds() == ["STARTED"]
    assert run.state.recorded.execution_time == NOON + seconds(60)
    assert run.last.next_deadline == NOON + seconds(60)
    run.tick(59)
    assert run.kinds() == ["STARTED"]
    run.tick(1)
    assert run.kinds() == ["STARTED", "TASK_SCHEDULED"]


def test_another_wait_than_the_delay_may_be_given() -> None:
    run = a_run(start_options={"first_workflow_task_backoff": seconds(3)})
    assert run.event(1).first_workflow_task_backoff == seconds(3)
    assert run.kinds() == ["STARTED"]


def test_a_plain_signal_does_not_end_the_delay() -> None:
    run = a_run(workflow_start_delay=seconds(60))
    run.signal()
    assert run.kinds() == ["STARTED", "SIGNALED"]


def test_signal_with_start_on_an_existing_run_ends_the_delay() -> None:
    run = a_run(workflow_start_delay=seconds(60))
    run.signal(ends_delay=True)
    assert run.kinds() == ["STARTED", "SIGNALED", "TASK_SCHEDULED"]
    run.work()
    run.tick(60)
    assert run.kinds()[-1] == "TASK_COMPLETED", "the end of the delay is a no-op then"


def test_a_cancel_request_ends_the_delay() -> None:
    run = a_run(workflow_start_delay=seconds(60))
    run.request_cancel()
    assert run.kinds() == ["STARTED", "CANCEL_REQUESTED", "TASK_SCHEDULED"]


def test_the_run_timeout_counts_from_the_end_of_the_delay_and_the_chains_does_not() -> None:
    run = a_run(workflow_start_delay=seconds(5), workflow_run_timeout=seconds(3))
    run.tick(7.9)
    assert run.state.is_open
    run.tick(0.1)
    assert run.kinds()[-1] == "TIMED_OUT"
    chain = a_run(workflow_start_delay=seconds(5), workflow_execution_timeout=seconds(3))
    chain.tick(3)
    assert chain.kinds() == ["STARTED", "TIMED_OUT"]


# ---- signals, cancel requests, attached starts


def test_a_signal_wakes_an_idle_run_once() -> None:
    run = a_run()
    run.work(start_timer("t", 60))
    run.signal("one", input=text("1"), header=Header())
    run.signal("two")
    assert run.kinds(6) == ["SIGNALED", "TASK_SCHEDULED", "SIGNALED"]
    assert (run.event(6).signal_name, run.event(6).input, run.event(6).header) == (
        "one",
        text("1"),
        None,
    )
    assert run.state.recorded.signal_count == 2


def test_a_closed_run_takes_no_signal() -> None:
    run = a_run()
    run.work(complete_run())
    with pytest.raises(NotFoundError, match=r"^workflow execution already completed$"):
        run.signal()
    with pytest.raises(NotFoundError, match="already completed"):
        waiting_item(run.state, run.now, SignalRun(signal_name="s"))


def test_too_many_signals_are_refused() -> None:
    run = a_run(Limits(signals=2))
    run.signal().signal()
    with pytest.raises(InvalidArgumentError, match="exceeded workflow execution limit for signal"):
        run.signal()
    run.take_task()
    other = a_run(Limits(signals=2))
    other.take_task()
    other.signal_without_lock()
    other.signal_without_lock()
    with pytest.raises(InvalidArgumentError, match="exceeded workflow execution limit"):
        other.signal_without_lock()


def closing_run() -> Run:
    """One whose close command met a signal, with the next task started."""
    run = a_run()
    run.take_task()
    run.signal()
    with pytest.raises(InvalidArgumentError, match="UnhandledCommand"):
        run.answer(complete_run())
    return run


def test_signals_are_refused_while_a_run_that_tries_to_close_works() -> None:
    run = closing_run()
    run.signal("accepted while the task is only scheduled")
    run.take_task()
    with pytest.raises(ResourceExhaustedError) as refusal:
        run.signal()
    assert str(refusal.value) == (
        "workflow operation can not be applied because workflow is closing"
    )
    assert refusal.value.resource_cause is ResourceExhaustedCause.BUSY_WORKFLOW
    with pytest.raises(ResourceExhaustedError):
        run.signal_without_lock()
    run.answer(complete_run())
    assert run.kinds()[-1] == "COMPLETED"


@pytest.mark.parametrize("end", ["completes", "fails"])
def test_the_end_of_that_task_lets_signals_in_again(end: str) -> None:
    run = closing_run()
    run.take_task()
    if end == "completes":
        run.answer(start_timer("t", 60), force_create_new_workflow_task=True)
    else:
        run.fail_task()
    run.take_task()
    run.signal()
    assert len(run.inbox) == 1


def test_a_cancel_request_is_taken_even_then_and_holds_the_close_up_again() -> None:
    run = closing_run()
    run.take_task()
    run.request_cancel()
    with pytest.raises(InvalidArgumentError, match="UnhandledCommand"):
        run.answer(complete_run())


def test_a_cancel_is_requested_once() -> None:
    run = a_run()
    run.work(start_timer("t", 60))
    run.request_cancel("customer left")
    assert run.kinds(6) == ["CANCEL_REQUESTED", "TASK_SCHEDULED"]
    assert (run.event(6).cause, run.event(6).identity) == ("customer left", "client")
    assert run.state.recorded.cancel_reason == "customer left"
    run.request_cancel()
    assert len(run.events) == 7


def test_a_second_cancel_request_that_waits_makes_no_event() -> None:
    run = a_run()
    run.take_task()
    run.request_cancel()
    run.request_cancel()
    assert len(run.inbox) == 2
    run.answer()
    assert run.kinds(4) == ["TASK_COMPLETED", "CANCEL_REQUESTED", "TASK_SCHEDULED"]
    assert run.inbox == []


def test_to_cancel_a_closed_run_is_no_error() -> None:
    run = a_run()
    run.work(complete_run())
    run.request_cancel()
    assert run.kinds()[-1] == "COMPLETED"
    assert waiting_item(run.state, run.now, RequestCancelRun()) is None


def test_nothing_waits_for_a_run_that_was_asked_before() -> None:
    run = a_run()
    run.request_cancel()
    run.take_task()
    assert waiting_item(run.state, run.now, RequestCancelRun()) is None


def test_an_attached_start_request_makes_an_event_and_no_task() -> None:
    run = a_run()
    run.work(start_timer("t", 60))
    callback = Callback(nexus=NexusCallback(url="http://localhost/"))
    answer = run.apply(AttachStartRequest(request_id="other", completion_callbacks=(callback,)))
    assert run.kinds(6) == ["OPTIONS_UPDATED"]
    assert (answer.event_id, run.events[-1].worker_may_ignore) == (6, True)
    assert run.state.volatile.attached_request_ids == {"other": 6}
    assert run.state.recorded.completion_callbacks == (callback,)


def test_one_that_waited_is_known_by_the_id_it_got() -> None:
    run = a_run()
    run.take_task()
    request = AttachStartRequest(request_id="other")
    item = waiting_item(run.state, run.now, request)
    assert item is not None
    run.put(item)
    run.answer()
    assert run.kinds(5) == ["OPTIONS_UPDATED", "TASK_SCHEDULED"]
    assert run.state.volatile.attached_request_ids == {"other": 5}


def test_a_start_request_is_attached_once() -> None:
    run = a_run()
    request = AttachStartRequest(request_id="other")
    run.take_task()
    for _ in range(2):  # the second finds the first in the inbox, where nobody looks
        item = waiting_item(run.state, run.now, request)
        assert item is not None
        run.put(item)
    run.answer(start_timer("t", 60))
    run.apply(request)
    run.take_task()
    assert waiting_item(run.state, run.now, request) is None
    run.answer()
    assert run.kinds().count("OPTIONS_UPDATED") == 1
    assert run.inbox == []


def test_links_alone_are_attached_without_an_id() -> None:
    run = a_run()
    run.apply(AttachStartRequest(links=(Link(batch_job=LinkBatchJob(job_id="j")),)))
    run.apply(AttachStartRequest(links=(Link(batch_job=LinkBatchJob(job_id="k")),)))
    assert run.kinds()[-2:] == ["OPTIONS_UPDATED", "OPTIONS_UPDATED"]
    assert run.state.volatile.attached_request_ids == {}


# ---- notes


def test_a_marker_belongs_to_the_worker() -> None:
    run = a_run()
    run.work(record_marker("core_patch", details={"data": text("x")}))
    assert (run.event(5).marker_name, run.event(5).details) == ("core_patch", {"data": text("x")})


def test_memo_changes_by_key_and_an_empty_value_takes_one_away() -> None:
    run = a_run(memo=Memo(fields={"keep": NOTE, "go": NOTE}))
    new = text("new").payloads[0]
    null = Payload(metadata={"encoding": b"binary/null"})
    run.work(upsert_memo(go=null, extra=new), upsert_memo(more=new))
    assert run.memo == Memo(fields={"keep": NOTE, "extra": new, "more": new})
    assert run.event(5).upserted_memo == Memo(fields={"go": null, "extra": new})
    assert run.kinds()[-1] == "WORKFLOW_PROPERTIES_MODIFIED", "no task follows"


# ---- timers


def test_a_timer_fires_at_its_time_and_wakes_the_run() -> None:
    run = a_run()
    run.work(start_timer("t", 5))
    assert run.last.next_deadline == NOON + seconds(5)
    run.tick(5.5)
    assert run.kinds(6) == ["TIMER_FIRED", "TASK_SCHEDULED"]
    assert run.event(6).started_event_id == 5
    assert run.events[5].event_time == NOON + seconds(5)
    assert run.state.recorded.timers == {}


def test_a_claim_fires_what_has_come_due_before_it_starts() -> None:
    run = a_run()
    run.work(start_timer("t", 5))
    run.wait(4).signal()
    run.wait(2).take_task()
    assert run.kinds(6) == ["SIGNALED", "TASK_SCHEDULED", "TIMER_FIRED", "TASK_STARTED"]


def test_while_a_task_is_started_timers_wait_and_the_ticker_does_not() -> None:
    run = a_run()
    run.work(start_timer("t", 2), force_create_new_workflow_task=True)
    run.take_task()
    assert run.last.next_deadline == run.now + seconds(10)
    run.tick(3)
    assert "TIMER_FIRED" not in run.kinds()


# ---- closing


@pytest.mark.parametrize(
    ("command", "status", "kind"),
    [
        (complete_run(text("done")), Status.COMPLETED, "COMPLETED"),
        (fail_run(), Status.FAILED, "FAILED"),
        (cancel_run(), Status.CANCELED, "CANCELED"),
        (continue_as_new(), Status.CONTINUED_AS_NEW, "CONTINUED_AS_NEW"),
    ],
)
def test_each_close_command_has_its_status(command: object, status: Status, kind: str) -> None:
    run = a_run()
    run.work(schedule_activity("a"), start_timer("t", 60))
    run.signal()
    run.take_task()
    run.answer(command)  # type: ignore[arg-type]
    recorded = run.state.recorded
    assert run.kinds()[-1] == kind
    assert (recorded.status, recorded.close_time) == (status, run.now)
    assert run.event(-1).workflow_task_completed_event_id == len(run.events) - 1
    assert (recorded.timers, recorded.open_activities) == ({}, {})
    assert run.last.closed
    assert run.last.next_deadline is None


def test_activities_of_the_answer_that_closes_are_not_handed_out() -> None:
    run = a_run()
    answer = run.work(
        schedule_activity("a"),
        schedule_activity("b", request_eager_execution=True),
        complete_run(),
    )
    assert run.kinds(5) == ["ACTIVITY_TASK_SCHEDULED", "ACTIVITY_TASK_SCHEDULED", "COMPLETED"]
    assert run.sent(DispatchActivity) == []
    assert answer.activities == []


def test_without_a_policy_a_failed_run_is_not_retried() -> None:
    run = a_run()
    run.work(fail_run())
    assert run.event(-1).retry_state is RetryState.RETRY_POLICY_NOT_SET
    assert run.next_run is None


def test_termination_of_an_idle_run_is_one_event() -> None:
    run = a_run()
    run.work(start_timer("t", 60))
    run.terminate("enough")
    assert run.kinds(6) == ["TERMINATED"]
    assert (run.event(6).reason, run.event(6).identity) == ("enough", "client")


def test_termination_without_a_reason_gets_one() -> None:
    run = a_run()
    run.terminate("")
    assert run.event(-1).reason == "terminated by user via frontend"


def test_termination_fails_a_started_task_and_writes_what_waits() -> None:
    run = a_run()
    run.take_task()
    run.signal()
    run.terminate()
    assert run.kinds(4) == ["TASK_FAILED", "SIGNALED", "TERMINATED"]
    assert run.event(4).cause is Cause.FORCE_CLOSE_COMMAND
    assert (run.event(4).identity, run.event(4).failure) == ("history-service", None)


def test_termination_leaves_a_started_retry_out_of_the_history() -> None:
    run = a_run()
    run.take_task()
    run.fail_task()
    run.take_task()
    run.terminate()
    assert run.kinds(4) == ["TASK_FAILED", "TERMINATED"]
    assert run.tail() == []


def test_a_closed_run_can_not_be_terminated() -> None:
    run = a_run()
    run.terminate()
    with pytest.raises(NotFoundError, match="already completed"):
        run.terminate()


def test_the_run_timeout_needs_no_worker() -> None:
    run = a_run(workflow_run_timeout=seconds(20))
    run.work(start_timer("t", 60))
    run.tick(20)
    assert run.kinds(6) == ["TIMED_OUT"]
    assert run.event(6).retry_state is RetryState.RETRY_POLICY_NOT_SET


def test_the_run_timeout_fails_a_started_task() -> None:
    run = a_run(workflow_run_timeout=seconds(4))
    run.take_task()
    run.signal()
    run.tick(4)
    assert run.kinds(4) == ["TASK_FAILED", "SIGNALED", "TIMED_OUT"]


def test_the_execution_timeout_ends_the_chain() -> None:
    policy = RetryPolicy(maximum_attempts=9)
    run = a_run(workflow_execution_timeout=seconds(5), retry_policy=policy)
    run.tick(5)
    assert run.event(-1).retry_state is RetryState.TIMEOUT
    assert run.next_run is None


# ---- retry


def test_a_failed_run_is_repeated_by_another_after_a_wait() -> None:
    run = a_run(
        retry_policy=RetryPolicy(maximum_attempts=3),
        workflow_execution_timeout=seconds(600),
        input=text("order"),
        memo=Memo(fields={"owner": NOTE}),
        priority=Priority(priority_key=2),
    )
    run.wait(2).work(upsert_memo(more=NOTE), fail_run(a_failure(message="boom")))
    closed = run.event(-1)
    assert closed.retry_state is RetryState.IN_PROGRESS
    follower = run.next_run
    assert follower is not None
    first = follower.event(1)
    assert follower.state.recorded.run_id == closed.new_execution_run_id
    assert (first.attempt, first.initiator) == (2, ContinueAsNewInitiator.RETRY)
    assert first.continued_execution_run_id == first.first_execution_run_id == "run-0"
    assert first.original_execution_run_id == closed.new_execution_run_id
    assert first.continued_failure.message == "boom"
    assert first.first_workflow_task_backoff == seconds(1)
    assert (first.input, first.memo) == (text("order"), Memo(fields={"owner": NOTE}))
    assert first.workflow_execution_expiration_time == NOON + seconds(600)
    assert (first.identity, first.priority) == ("", Priority(priority_key=2))
    assert follower.kinds() == ["STARTED"]
    assert follower.state.volatile.create_request_id == ""
    follower.tick(1)
    assert follower.kinds() == ["STARTED", "TASK_SCHEDULED"]
    follower.work(fail_run())
    third = follower.next_run
    assert third is not None
    assert third.event(1).first_workflow_task_backoff == seconds(2)
    third.tick(2)
    third.work(fail_run())
    assert third.event(-1).retry_state is RetryState.MAXIMUM_ATTEMPTS_REACHED
    assert third.next_run is None


@pytest.mark.parametrize(
    ("failure", "state"),
    [
        (a_failure(non_retryable=True), RetryState.NON_RETRYABLE_FAILURE),
        (a_failure("Listed"), RetryState.NON_RETRYABLE_FAILURE),
        (
            Failure(server_failure_info=ServerFailureInfo(non_retryable=True)),
            RetryState.NON_RETRYABLE_FAILURE,
        ),
        (Failure(server_failure_info=ServerFailureInfo()), RetryState.IN_PROGRESS),
        (Failure(message="of no kind"), RetryState.IN_PROGRESS),
    ],
)
def test_some_failures_are_not_retried(failure: Failure, state: RetryState) -> None:
    policy = RetryPolicy(non_retryable_error_types=("Listed",))
    run = a_run(retry_policy=policy)
    run.work(fail_run(failure))
    assert run.event(-1).retry_state is state


@pytest.mark.parametrize(("delay", "wait"), [(2, 2), (7, 3), (0, 3), (-1, 3)])
def test_the_delay_of_a_runs_failure_is_cut_to_the_longest_interval(delay: int, wait: int) -> None:
    run = a_run(retry_policy=RetryPolicy(maximum_interval=seconds(3)))
    run.work(fail_run(a_failure(next_retry_delay=seconds(delay))))
    assert run.next_run is not None
    assert run.next_run.event(1).first_workflow_task_backoff == seconds(wait)


def test_a_retry_behind_the_end_of_the_chain_is_not_made() -> None:
    run = a_run(
        retry_policy=RetryPolicy(initial_interval=seconds(20)),
        workflow_execution_timeout=seconds(5),
    )
    run.work(fail_run())
    assert run.event(-1).retry_state is RetryState.TIMEOUT
    assert run.next_run is None


def test_a_run_timeout_is_retried_as_a_timeout() -> None:
    run = a_run(retry_policy=RetryPolicy(), workflow_run_timeout=seconds(2))
    run.tick(2)
    assert run.event(-1).retry_state is RetryState.IN_PROGRESS
    assert run.next_run is not None
    failure = run.next_run.event(1).continued_failure
    assert (failure.message, failure.source) == ("workflow timeout", "Server")
    assert failure.timeout_failure_info.timeout_type is TimeoutType.START_TO_CLOSE


def test_a_listed_run_timeout_is_not_retried() -> None:
    policy = RetryPolicy(non_retryable_error_types=("TemporalTimeout:StartToClose",))
    run = a_run(retry_policy=policy, workflow_run_timeout=seconds(2))
    run.tick(2)
    assert run.event(-1).retry_state is RetryState.NON_RETRYABLE_FAILURE


@pytest.mark.parametrize("command", [complete_run(), cancel_run()], ids=["complete", "cancel"])
def test_only_a_failure_is_retried(command: object) -> None:
    run = a_run(retry_policy=RetryPolicy())
    run.work(command)  # type: ignore[arg-type]
    assert run.next_run is None


# ---- continue-as-new


def test_an_empty_command_keeps_what_is_the_runs_and_drops_what_is_the_codes() -> None:
    run = a_run(
        workflow_execution_timeout=seconds(600),
        workflow_run_timeout=seconds(50),
        workflow_task_timeout=seconds(7),
        retry_policy=RetryPolicy(),
        input=text("order"),
        memo=Memo(fields={"owner": NOTE}),
        search_attributes=SearchAttributes(indexed_fields={"Kind": NOTE}),
        header=Header(fields={"h": NOTE}),
        priority=Priority(priority_key=2),
    )
    run.wait(5).work(continue_as_new())
    closed = run.event(-1)
    assert (closed.workflow_type.name, closed.task_queue.name) == ("Order", "orders")
    assert (closed.workflow_run_timeout, closed.workflow_task_timeout) == (seconds(50), seconds(7))
    follower = run.next_run
    assert follower is not None
    first = follower.event(1)
    assert first.workflow_execution_expiration_time == NOON + seconds(600)
    assert first.workflow_execution_timeout == seconds(600)
    assert (first.input, first.memo, first.search_attributes, first.header) == (None,) * 4
    assert (first.retry_policy, first.cron_schedule) == (None, "")
    assert (first.attempt, first.initiator) == (1, ContinueAsNewInitiator.WORKFLOW)
    assert first.continued_execution_run_id == first.first_execution_run_id == "run-0"
    assert first.original_execution_run_id == closed.new_execution_run_id
    assert (first.priority, first.identity) == (Priority(priority_key=2), "")
    assert first.first_workflow_task_backoff is None
    assert follower.kinds() == ["STARTED", "TASK_SCHEDULED"]
    assert follower.events[0].event_time == run.events[-1].event_time
    assert follower.sent(DispatchWorkflowTask) != []


def test_given_values_are_taken() -> None:
    run = a_run()
    run.wait(5).work(
        continue_as_new(
            workflow_type=WorkflowType(name="Other"),
            task_queue=TaskQueue(name="others"),
            input=text("2"),
            workflow_run_timeout=seconds(40),
            workflow_task_timeout=seconds(60),
            backoff_start_interval=seconds(3),
            retry_policy=RetryPolicy(maximum_attempts=3),
            memo=Memo(fields={"m": NOTE}),
            header=Header(fields={"h": NOTE}),
            cron_schedule="not checked",
            inherit_build_id=True,
        )
    )
    closed = run.event(-1)
    assert (closed.backoff_start_interval, closed.initiator.value) == (None, 0)
    assert closed.inherit_build_id is True
    assert run.next_run is not None
    first = run.next_run.event(1)
    assert (first.workflow_type.name, first.task_queue.name) == ("Other", "others")
    assert (first.workflow_run_timeout, first.workflow_task_timeout) == (seconds(40), seconds(40))
    assert first.first_workflow_task_backoff == seconds(3)
    assert first.retry_policy.maximum_attempts == 3
    assert (first.memo, first.input) == (Memo(fields={"m": NOTE}), text("2"))
    assert run.next_run.kinds() == ["STARTED"]
    assert run.next_run.memo == Memo(fields={"m": NOTE})


def test_an_explicit_zero_is_repeated() -> None:
    run = a_run()
    run.wait(5).work(continue_as_new(workflow_run_timeout=timedelta(0)))
    assert run.event(-1).workflow_run_timeout == timedelta(0)
    assert run.next_run is not None
    assert run.next_run.event(1).workflow_run_timeout == timedelta(0)
    assert run.next_run.state.recorded.run_timeout is None


@pytest.mark.parametrize(
    ("age", "given", "wait"), [(0.4, None, 0.6), (0.4, 0.3, 0.6), (0.4, 5, 5), (1, None, None)]
)
def test_a_run_of_less_than_a_second_is_followed_slowly(
    age: float, given: float | None, wait: float | None
) -> None:
    run = a_run()
    run.wait(age).work(
        continue_as_new(backoff_start_interval=seconds(given) if given is not None else None)
    )
    assert run.next_run is not None
    backoff = run.next_run.event(1).first_workflow_task_backoff
    assert backoff == (seconds(wait) if wait is not None else None)


def test_a_timed_out_chain_ends_in_its_second_run() -> None:
    run = a_run(workflow_execution_timeout=seconds(30))
    run.wait(20).work(continue_as_new())
    follower = run.next_run
    assert follower is not None
    follower.tick(9)
    assert follower.state.is_open
    follower.tick(1)
    assert follower.event(-1).retry_state is RetryState.TIMEOUT


def test_a_cancel_request_dies_with_its_run() -> None:
    run = a_run()
    run.request_cancel()
    run.wait(5).work(continue_as_new())
    assert run.next_run is not None
    assert run.next_run.state.recorded.cancel_requested is False


def test_callbacks_and_the_parent_go_along() -> None:
    parent = WorkflowExecution(workflow_id="parent", run_id="p-1")
    callback = Callback(nexus=NexusCallback(url="http://localhost/"))
    run = a_run(
        start_options={"parent": parent, "root": parent, "parent_initiated_event_id": 5},
        completion_callbacks=(callback,),
    )
    run.wait(5).work(continue_as_new())
    assert run.next_run is not None
    first = run.next_run.event(1)
    assert first.completion_callbacks == (callback,)
    assert first.parent_workflow_execution == first.root_workflow_execution == parent
    assert first.parent_initiated_event_id == 5


def test_a_late_signal_is_not_lost_by_continuing() -> None:
    run = a_run()
    run.take_task()
    run.signal("late")
    with pytest.raises(InvalidArgumentError, match="UnhandledCommand"):
        run.answer(continue_as_new())
    assert run.kinds(4) == ["TASK_FAILED", "SIGNALED", "TASK_SCHEDULED"]
    assert run.next_run is None


def test_a_retry_needs_the_event_that_it_repeats() -> None:
    run = a_run(retry_policy=RetryPolicy())
    claim = run.take_task()
    change = Change(state=run.state, now=run.now)
    with pytest.raises(LookupError, match=r"transition\.needs"):
        apply(change, CompleteTask(token=token_of(claim), commands=(fail_run(),), next_run_id="n"))


def test_a_fact_without_an_activity_is_appended() -> None:
    run = a_run()
    run.work()
    item = InboxItem(event_time=run.now, attributes=ev.MarkerRecorded(marker_name="m"))
    assert needs(run.state, Arrive(item=item)) == Needs()
    run.apply(Arrive(item=item))
    assert run.kinds()[-2:] == ["MARKER_RECORDED", "TASK_SCHEDULED"]


def test_a_run_that_follows_needs_an_id() -> None:
    run = a_run()
    run.take_task()
    with pytest.raises(LookupError, match="next_run_id"):
        run.answer(continue_as_new(), next_run_id="")


def test_input_is_measured_as_the_server_does() -> None:
    run = a_run(Limits(blob_bytes=1000))
    run.take_task()
    run.answer(schedule_activity("a", input=blob(950)))
    assert run.kinds()[-1] == "ACTIVITY_TASK_SCHEDULED"
