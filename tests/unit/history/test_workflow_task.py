"""The cycle of workflow tasks: claims, failures, retries, timeouts, what waits meanwhile."""

from itertools import pairwise

import pytest

from tests.support.histories import (
    Run,
    a_failure,
    a_run,
    blob,
    complete_run,
    schedule_activity,
    seconds,
    start_timer,
    token_of,
)
from wfcore.exceptions import FailedPreconditionError, InvalidArgumentError, NotFoundError
from wfcore.history.effects import DispatchWorkflowTask, NotifyHistory
from wfcore.history.limits import Limits
from wfcore.history.machines.workflow_task import start_to_close
from wfcore.history.requests import ClaimTask, CompleteTask, FailTask, TaskLost
from wfcore.protocol.enums import SuggestContinueAsNewReason as Reason
from wfcore.protocol.enums import TimeoutType
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause
from wfcore.protocol.failures import Failure


def test_a_started_run_tells_workers_of_its_first_task() -> None:
    run = a_run()
    assert run.kinds() == ["STARTED", "TASK_SCHEDULED"]
    [message] = run.sent(DispatchWorkflowTask)
    assert (message.task_queue, message.scheduled_event_id, message.sent) == ("orders", 2, 0)


def test_a_claim_writes_started_with_the_size_so_far() -> None:
    run = a_run()
    size = run.state.recorded.history_bytes
    claim = run.wait(1).take_task("worker-7", owner="boot-9")
    started = run.event(3)
    assert (started.scheduled_event_id, started.identity) == (2, "worker-7")
    assert started.history_size_bytes == size == claim.history_bytes
    assert claim.owner == "boot-9"
    assert claim.started_at == run.now


def test_the_same_poll_gets_the_same_task_and_another_gets_none() -> None:
    run = a_run()
    first = run.apply(ClaimTask(request_id="poll-a", identity="worker"))
    again = run.apply(ClaimTask(request_id="poll-a", identity="worker"))
    other = run.apply(ClaimTask(request_id="poll-b", identity="worker"))
    assert again.claim == first.claim
    assert (first.repeated, again.repeated) == (False, True)
    assert other.claim is None
    assert run.kinds() == ["STARTED", "TASK_SCHEDULED", "TASK_STARTED"]


def test_a_run_without_a_task_gives_none() -> None:
    run = a_run()
    run.work(start_timer())
    assert run.apply(ClaimTask(request_id="poll")).claim is None


def test_a_closed_run_gives_no_task() -> None:
    run = a_run()
    run.work(complete_run())
    with pytest.raises(NotFoundError, match="workflow execution already completed"):
        run.apply(ClaimTask(request_id="poll"))


def test_the_time_of_started_is_never_before_the_last_event() -> None:
    run = a_run()
    run.wait(-5)
    claim = run.take_task()
    assert claim.started_at == run.events[1].event_time


def test_a_clock_that_goes_back_does_not_turn_a_retry_around() -> None:
    run = a_run()
    run.take_task()
    run.fail_task()
    run.wait(5).take_task()
    run.wait(-3).answer(start_timer())
    times = [event.event_time for event in run.events]
    assert times == sorted(times)


def test_a_fact_by_a_clock_that_was_ahead_moves_the_rest_along() -> None:
    run = a_run()
    run.take_task()
    run.wait(5).signal()
    run.wait(-4).answer(schedule_activity("a"))
    assert run.kinds(4)[-2:] == ["SIGNALED", "TASK_SCHEDULED"]
    assert run.events[-1].event_time == run.events[-2].event_time
    assert run.sent(DispatchWorkflowTask) != []
    assert run.row("a").due_at is not None


def test_an_answer_to_a_task_that_is_over_changes_nothing() -> None:
    run = a_run()
    claim = run.take_task()
    token = token_of(claim)
    run.answer(start_timer())
    before = run.kinds()
    for request in (
        CompleteTask(token=token),
        FailTask(token=token, cause=Cause.NON_DETERMINISTIC_ERROR),
    ):
        with pytest.raises(NotFoundError, match=r"^Workflow task not found\.$"):
            run.apply(request)
    assert run.kinds() == before


def test_after_the_close_a_failure_is_told_that_the_run_is_closed() -> None:
    run = a_run()
    token = token_of(run.take_task())
    run.terminate()
    with pytest.raises(NotFoundError, match="already completed"):
        run.apply(FailTask(token=token, cause=Cause.NON_DETERMINISTIC_ERROR))
    with pytest.raises(NotFoundError, match="Workflow task not found"):
        run.apply(CompleteTask(token=token))


def test_a_failure_is_stored_once_and_the_retry_is_only_shown() -> None:
    run = a_run()
    run.take_task()
    run.fail_task()
    assert run.kinds(4) == ["TASK_FAILED"]
    assert run.event(4).cause is Cause.WORKFLOW_WORKER_UNHANDLED_FAILURE
    assert run.shown()[4:] == ["TASK_SCHEDULED"]
    claim = run.take_task()
    assert (claim.attempt, claim.scheduled_event_id, claim.started_event_id) == (2, 5, 6)
    assert run.shown()[4:] == ["TASK_SCHEDULED", "TASK_STARTED"]
    assert [event.event_id for event in run.tail()] == [5, 6]
    assert run.tail()[1].attributes.identity == ""  # type: ignore[attr-defined]
    run.fail_task()
    assert run.kinds(4) == ["TASK_FAILED"], "the second failure writes nothing"


def test_the_attempt_that_succeeds_is_written_whole() -> None:
    run = a_run()
    for _ in range(2):
        run.take_task()
        run.wait(1).fail_task()
    scheduled_at = run.now
    claim = run.wait(1).take_task()
    run.wait(1).answer(start_timer())
    assert run.kinds(5) == ["TASK_SCHEDULED", "TASK_STARTED", "TASK_COMPLETED", "TIMER_STARTED"]
    assert run.event(5).attempt == 3
    assert run.events[4].event_time == scheduled_at
    assert run.events[5].event_time == claim.started_at
    assert run.event(6).request_id == claim.request_id
    assert (run.event(7).scheduled_event_id, run.event(7).started_event_id) == (5, 6)


def test_an_event_makes_a_scheduled_retry_a_first_attempt_when_it_is_taken() -> None:
    run = a_run()
    run.take_task()
    run.fail_task()
    run.signal()
    assert run.shown()[3:] == ["TASK_FAILED", "SIGNALED"], "the retry is not shown any more"
    assert run.state.volatile.task is not None
    assert run.state.volatile.task.attempt == 2
    claim = run.wait(1).take_task()
    assert run.kinds(5) == ["SIGNALED", "TASK_SCHEDULED", "TASK_STARTED"]
    assert (claim.attempt, claim.scheduled_event_id) == (1, 6)
    run.fail_task()
    assert run.kinds(8) == ["TASK_FAILED"], "a first attempt is stored again"
    assert run.take_task().attempt == 2


def test_an_event_during_a_started_retry_waits_and_its_failure_is_not_stored() -> None:
    run = a_run()
    run.take_task()
    run.fail_task()
    run.take_task()
    run.signal()
    assert run.kinds(4) == ["TASK_FAILED"]
    run.fail_task()
    assert run.kinds(5) == ["SIGNALED", "TASK_SCHEDULED"]
    assert run.take_task().attempt == 1


def test_an_event_during_a_started_retry_follows_its_success() -> None:
    run = a_run()
    run.take_task()
    run.fail_task()
    run.take_task()
    run.signal()
    run.answer(start_timer())
    assert run.kinds(5) == [
        "TASK_SCHEDULED",
        "TASK_STARTED",
        "TASK_COMPLETED",
        "TIMER_STARTED",
        "SIGNALED",
        "TASK_SCHEDULED",
    ]


def test_a_task_that_takes_too_long_times_out_and_comes_again() -> None:
    run = a_run()
    claim = run.take_task()
    assert run.last.next_deadline == run.now + seconds(10)
    run.tick(9.9)
    assert run.state.task_started
    run.tick(0.1)
    assert run.kinds(4) == ["TASK_TIMED_OUT"]
    assert run.event(4).timeout_type is TimeoutType.START_TO_CLOSE
    assert (run.event(4).scheduled_event_id, run.event(4).started_event_id) == (2, 3)
    [message] = run.sent(DispatchWorkflowTask)
    assert message.attempt == 2
    with pytest.raises(NotFoundError):
        run.apply(CompleteTask(token=token_of(claim)))


def test_what_waited_is_written_behind_a_timeout() -> None:
    run = a_run()
    run.take_task()
    run.wait(1).signal()
    run.tick(9)
    assert run.kinds(4) == ["TASK_TIMED_OUT", "SIGNALED", "TASK_SCHEDULED"]
    assert run.take_task().attempt == 1


def test_a_dead_workers_task_is_timed_out_at_once_and_operators_are_told() -> None:
    run = a_run()
    run.take_task(owner="boot-1")
    run.apply(TaskLost(owner="boot-2"))
    assert run.state.task_started, "another worker's death is none of its business"
    run.apply(TaskLost(owner="boot-1"))
    assert run.kinds(4) == ["TASK_TIMED_OUT"]
    [entry] = run.journal
    assert (entry.kind, entry.attempt) == ("attempt_lost", 1)
    run.apply(TaskLost(owner="boot-1"))
    assert run.kinds(4) == ["TASK_TIMED_OUT"]


def test_a_claim_without_a_lease_is_never_lost() -> None:
    run = a_run()
    run.take_task(owner="")
    run.apply(TaskLost(owner=""))
    assert run.state.task_started


def test_the_timeout_grows_from_the_fourth_attempt_on() -> None:
    run = a_run()
    timeouts = []
    for _ in range(12):
        claim = run.take_task()
        timeouts.append(claim.start_to_close_timeout)
        run.fail_task()
    assert timeouts[:3] == [seconds(10)] * 3
    for number, timeout in enumerate(timeouts[3:]):
        growth = min(seconds(5) * 2**number, seconds(600))
        assert seconds(10) + growth * 0.8 <= timeout <= seconds(10) + growth
    shares = [(timeouts[3 + number] - seconds(10)) / (5 * 2**number) for number in range(3)]
    assert len(set(shares)) == 3, "each attempt has a jitter of its own"


def test_the_jitter_of_an_attempt_repeats_itself() -> None:
    one, same = a_run(), a_run()
    other = a_run(start_options={})
    other.state.recorded.run_id = "another"
    limits = Limits()
    first = start_to_close(one.state.recorded, 5, limits)
    assert first == start_to_close(same.state.recorded, 5, limits)
    assert first != start_to_close(other.state.recorded, 5, limits)


def test_an_unclaimed_task_is_announced_again_with_growing_pauses() -> None:
    run = a_run()
    pauses = []
    last = run.now
    for expected in range(1, 9):
        due = run.last.next_deadline
        assert due is not None
        run.tick((due - run.now).total_seconds())
        [message] = run.sent(DispatchWorkflowTask)
        assert message.sent == expected
        pauses.append((run.now - last).total_seconds())
        last = run.now
    assert pauses == [10, 20, 40, 80, 160, 320, 600, 600]
    assert run.kinds() == ["STARTED", "TASK_SCHEDULED"]
    run.take_task()
    run.fail_task()
    [message] = run.sent(DispatchWorkflowTask)
    assert message.sent == 0, "a claim begins anew"


def test_nothing_is_announced_before_its_time() -> None:
    run = a_run()
    run.tick(9.9)
    assert run.sent(DispatchWorkflowTask) != []
    run.effects = []
    run.tick(0)
    assert run.effects == []


def test_five_problems_in_a_row_are_reported_and_a_success_takes_that_back() -> None:
    run = a_run()
    for number in range(5):
        run.take_task()
        run.fail_task()
        assert bool(run.reported_problems) is (number == 4)
    assert run.reported_problems == (
        "category=WorkflowTaskFailed",
        "cause=WorkflowTaskFailedCauseWorkflowWorkerUnhandledFailure",
    )
    assert run.state.volatile.task_problems == 5
    run.work(start_timer())
    assert run.reported_problems == ()
    assert run.state.volatile.task_problems == 0


def test_timeouts_count_as_problems_too() -> None:
    run = a_run()
    for _ in range(5):
        run.take_task()
        due = run.last.next_deadline
        assert due is not None
        run.tick((due - run.now).total_seconds())
    assert run.reported_problems[0] == "category=WorkflowTaskTimedOut"


def test_a_failure_above_the_limit_is_shortened() -> None:
    run = a_run(Limits(blob_bytes=4000))
    run.take_task()
    run.fail_task(failure=Failure(message="x" * 6000))
    failure = run.event(4).failure
    assert failure.message == "Failure exceeds size limit."
    assert failure.server_failure_info is not None
    assert 3000 < len(failure.cause.message) < 4000


def test_a_message_that_was_too_large_to_send_ends_the_run() -> None:
    run = a_run()
    run.take_task()
    run.fail_task(Cause.GRPC_MESSAGE_TOO_LARGE)
    assert run.kinds(4) == ["TASK_FAILED", "TERMINATED"]
    assert run.event(4).cause is Cause.FORCE_CLOSE_COMMAND
    assert (run.event(5).reason, run.event(5).identity) == (
        "GrpcMessageTooLarge",
        "history-service",
    )


# ---- what waits while a task is started


def test_the_order_behind_an_answer_is_commands_then_facts_then_closing_events() -> None:
    run = a_run()
    run.work(schedule_activity("a"), start_timer("t", 1))
    run.signal("s1")
    run.take_task()
    run.take_activity("a")
    run.wait(0.1).complete_activity("a")
    completed_at = run.now
    run.wait(0.1).signal("s2")
    run.wait(2).answer(schedule_activity("b"))
    assert run.kinds(10) == [
        "TASK_COMPLETED",
        "ACTIVITY_TASK_SCHEDULED",
        "ACTIVITY_TASK_STARTED",
        "SIGNALED",
        "TIMER_FIRED",
        "ACTIVITY_TASK_COMPLETED",
        "TASK_SCHEDULED",
    ]
    assert run.event(15).started_event_id == 12
    assert run.events[14].event_time == completed_at
    assert run.inbox == []


def test_a_timer_that_came_due_fires_between_the_facts_around_it() -> None:
    run = a_run()
    run.work(start_timer("t", 3))
    run.signal("first")
    run.take_task()
    run.wait(2).signal("before")
    run.wait(2).signal("behind")
    run.answer()
    assert run.kinds(10) == ["SIGNALED", "TIMER_FIRED", "SIGNALED", "TASK_SCHEDULED"]
    assert run.events[10].event_time == run.events[4].event_time + seconds(3)


def test_what_is_written_while_a_task_is_only_scheduled_comes_before_its_start() -> None:
    run = a_run()
    run.signal("one").signal("two")
    run.take_task()
    assert run.kinds() == ["STARTED", "TASK_SCHEDULED", "SIGNALED", "SIGNALED", "TASK_STARTED"]


@pytest.mark.parametrize("kind", ["signal", "cancel", "activity", "timer"])
def test_a_close_command_does_not_pass_by_what_waits(kind: str) -> None:
    run = a_run()
    run.work(schedule_activity("a"), start_timer("t", 1), force_create_new_workflow_task=True)
    run.take_activity("a")
    run.take_task()
    match kind:
        case "signal":
            run.signal()
        case "cancel":
            run.request_cancel()
        case "activity":
            run.complete_activity("a")
        case "timer":
            run.wait(2)
    with pytest.raises(InvalidArgumentError, match=r"^UnhandledCommand$"):
        run.answer(complete_run())
    kinds = run.kinds(9)
    assert kinds[0] == "TASK_FAILED"
    assert kinds[-1] == "TASK_SCHEDULED"
    assert len(kinds) > 2
    failed = run.event(9)
    assert failed.cause is Cause.UNHANDLED_COMMAND
    assert failed.failure.message == "UnhandledCommand"
    assert run.take_task().attempt == 1
    run.answer(complete_run())
    assert run.kinds()[-1] == "COMPLETED"


def test_a_timer_of_the_same_answer_does_not_hold_the_close_up() -> None:
    run = a_run()
    run.take_task()
    run.answer(start_timer("t", 0), complete_run())
    assert run.kinds(4) == ["TASK_COMPLETED", "TIMER_STARTED", "COMPLETED"]


def test_a_full_inbox_fails_the_task_and_the_next_is_a_second_attempt() -> None:
    run = a_run(Limits(buffered_events=4))
    run.take_task()
    for number in range(5):
        run.signal_without_lock(f"s{number}")
        run.deliver()
    assert run.kinds(4) == ["TASK_FAILED", *["SIGNALED"] * 5]
    assert run.event(4).cause is Cause.FORCE_CLOSE_COMMAND
    assert (run.event(4).identity, run.event(4).failure) == ("history-service", None)
    assert run.shown()[9:] == ["TASK_SCHEDULED"]
    assert run.take_task().attempt == 2


def test_what_waits_is_written_before_an_answer_that_is_too_big_ends_the_run() -> None:
    run = a_run()
    run.take_task()
    run.signal()
    with pytest.raises(InvalidArgumentError, match="exceeds size limit"):
        run.answer(schedule_activity(input=blob(3_000_000)))
    assert run.kinds(4) == ["TASK_FAILED", "SIGNALED", "TERMINATED"]
    assert run.inbox == []


def test_an_inbox_of_many_bytes_is_full_too() -> None:
    run = a_run(Limits(buffered_bytes=3000))
    run.take_task()
    run.signal("one", input=blob(1000))
    run.deliver()
    assert run.state.task_started
    run.signal("two", input=blob(2000))
    run.deliver()
    assert run.kinds(4) == ["TASK_FAILED", "SIGNALED", "SIGNALED"]


def test_late_arrivals_are_taken_in_by_whoever_comes_next() -> None:
    run = a_run()
    run.take_task()
    run.signal_without_lock("late")
    run.inbox, kept = [], run.inbox
    run.answer(start_timer())
    run.inbox = kept
    assert run.kinds()[-1] == "TIMER_STARTED"
    run.deliver()
    assert run.kinds()[-2:] == ["SIGNALED", "TASK_SCHEDULED"]
    assert run.inbox == []


def test_arrivals_at_a_closed_run_are_dropped_and_operators_are_told() -> None:
    run = a_run()
    run.take_task()
    run.signal_without_lock("late")
    run.inbox, kept = [], run.inbox
    run.answer(complete_run())
    run.inbox = kept
    run.deliver()
    assert run.inbox == []
    assert run.kinds()[-1] == "COMPLETED"
    assert [entry.kind for entry in run.journal] == ["late_arrival"]


# ---- the next task in the answer, and forced tasks


def test_the_next_task_comes_in_the_answer_when_there_is_one() -> None:
    run = a_run()
    run.take_task()
    run.signal()
    answer = run.answer(next_claim=ClaimTask(request_id="inline", identity="worker"))
    assert run.kinds(4) == ["TASK_COMPLETED", "SIGNALED", "TASK_SCHEDULED", "TASK_STARTED"]
    assert answer.claim is not None
    assert answer.claim.request_id == "inline"
    assert run.sent(DispatchWorkflowTask) == [], "nobody else need be told"


def test_no_task_comes_in_the_answer_when_nothing_happened() -> None:
    run = a_run()
    run.take_task()
    answer = run.answer(start_timer(), next_claim=ClaimTask(request_id="inline", identity="worker"))
    assert answer.claim is None


def test_a_forced_task_follows_an_empty_answer() -> None:
    run = a_run()
    run.work(force_create_new_workflow_task=True)
    assert run.kinds(4) == ["TASK_COMPLETED", "TASK_SCHEDULED"]


def test_a_chain_of_empty_answers_ends_after_half_an_hour() -> None:
    run = a_run()
    run.work(force_create_new_workflow_task=True)
    beaten = run.now
    while run.now - beaten < seconds(1799):
        run.wait(8)
        run.work(force_create_new_workflow_task=True)
    run.wait(8)
    run.take_task()
    with pytest.raises(NotFoundError, match=r"^workflow task heartbeat timeout$"):
        run.answer(force_create_new_workflow_task=True)
    assert run.kinds()[-1] == "TASK_TIMED_OUT"
    assert run.state.volatile.task is not None
    assert run.state.volatile.task.attempt == 2


def paused_run() -> Run:
    """A run that was paused while a task was started."""
    run = a_run()
    run.work(start_timer("t", 60), force_create_new_workflow_task=True)
    run.take_task()
    run.state.recorded.status = Status.PAUSED
    run.is_bent = True
    return run


def test_a_paused_run_takes_an_answer_but_makes_no_task() -> None:
    run = paused_run()
    with pytest.raises(FailedPreconditionError, match="Workflow is paused"):
        run.answer(force_create_new_workflow_task=True)
    run.signal()
    run.answer()
    assert run.kinds()[-2:] == ["TASK_COMPLETED", "SIGNALED"]
    run.tick(60)
    assert run.kinds()[-1] == "TIMER_FIRED"
    assert run.apply(ClaimTask(request_id="poll")).claim is None


def test_a_command_ends_the_chain_of_empty_answers() -> None:
    run = a_run()
    for _ in range(3):
        run.wait(700)
        run.work(start_timer(run.new_id("t"), 100_000), force_create_new_workflow_task=True)
    assert run.kinds()[-1] == "TASK_SCHEDULED"


# ---- long histories


def test_the_worker_is_told_when_the_history_has_become_long() -> None:
    run = a_run(Limits(history_events_suggest=12))
    flags = []
    for _ in range(4):
        claim = run.take_task()
        flags.append((claim.started_event_id, claim.suggest_continue_as_new))
        run.answer(force_create_new_workflow_task=True)
    assert flags == [(3, False), (6, False), (9, False), (12, True)]
    assert run.event(12).suggest_continue_as_new_reasons == (Reason.TOO_MANY_HISTORY_EVENTS,)


def test_the_worker_is_told_when_the_history_has_become_big() -> None:
    run = a_run(Limits(history_bytes_suggest=600))
    assert run.take_task().suggest_reasons == ()
    run.answer(force_create_new_workflow_task=True)
    run.signal("big", input=blob(600))
    assert run.take_task().suggest_reasons == (Reason.HISTORY_SIZE_TOO_LARGE,)


def test_operators_are_told_once_that_a_history_grows_long() -> None:
    run = a_run(Limits(history_events_warn=4, history_bytes_warn=2000))
    for _ in range(4):
        run.signal()
    run.signal("big", input=blob(2000)).signal()
    assert [entry.text for entry in run.journal] == [
        "the history has more than 4 events; continue as new",
        "the history has more than 2,000 bytes; continue as new",
    ]
    assert {entry.kind for entry in run.journal} == {"soft_limit"}


def test_the_event_that_crosses_the_limit_is_kept_and_the_next_ends_the_run() -> None:
    run = a_run(Limits(history_events=6))
    for _ in range(5):
        run.signal()
    assert len(run.events) == 7
    with pytest.raises(InvalidArgumentError, match=r"^Workflow history count exceeds limit\.$"):
        run.signal()
    assert run.kinds()[-2:] == ["SIGNALED", "TERMINATED"]
    assert len(run.events) == 8
    closed = run.event(-1)
    assert closed.reason == "Workflow history count exceeds limit."
    assert closed.identity == "history-service"


def test_a_history_of_too_many_bytes_ends_the_run() -> None:
    run = a_run(Limits(history_bytes=3000))
    run.signal("big", input=blob(3000))
    with pytest.raises(InvalidArgumentError, match=r"^Workflow history size exceeds limit\.$"):
        run.signal()
    assert run.kinds()[-2:] == ["SIGNALED", "TERMINATED"]


def test_an_answer_that_makes_the_history_too_long_is_undone_and_ends_the_run() -> None:
    run = a_run(Limits(history_events=5))
    run.take_task()
    with pytest.raises(InvalidArgumentError, match="count exceeds"):
        run.answer(*(schedule_activity(str(number)) for number in range(8)))
    assert run.kinds(4) == ["TASK_FAILED", "TERMINATED"]
    assert run.activities == {}


def test_an_answer_that_closes_the_run_may_cross_the_limit() -> None:
    run = a_run(Limits(history_events=3))
    run.work(start_timer("a"), start_timer("b"), start_timer("c"), complete_run())
    assert run.kinds()[-1] == "COMPLETED"


def test_readers_are_told_how_far_the_history_has_grown() -> None:
    run = a_run()
    run.take_task()
    [notice] = run.sent(NotifyHistory)
    assert (notice.next_event_id, notice.closed) == (4, False)
    run.answer(complete_run())
    [notice] = run.sent(NotifyHistory)
    assert (notice.next_event_id, notice.closed) == (6, True)


def test_transitions_are_counted_but_not_those_that_did_nothing() -> None:
    run = a_run()
    counts = [run.state.volatile.state_transitions]
    run.take_task()
    counts.append(run.state.volatile.state_transitions)
    run.deliver()
    counts.append(run.state.volatile.state_transitions)
    run.fail_task(failure=a_failure())
    run.take_task()
    counts.append(run.state.volatile.state_transitions)
    assert [after - before for before, after in pairwise(counts)] == [1, 0, 2]
