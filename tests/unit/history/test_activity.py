"""Activities: decisions about one pending row, and what they become in the run's history."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.histories import (
    NOON,
    Run,
    a_failure,
    a_run,
    blob,
    cancel_activity,
    complete_run,
    one_attempt,
    schedule_activity,
    seconds,
    start_timer,
    text,
)
from wfcore.exceptions import InvalidArgumentError, NotFoundError
from wfcore.history.effects import DispatchActivity, WakeTicker
from wfcore.history.limits import Limits
from wfcore.history.machines import activity
from wfcore.history.requests import Arrive
from wfcore.history.state import ActivityState
from wfcore.protocol import events as ev
from wfcore.protocol.common import Priority, RetryPolicy
from wfcore.protocol.enums import RetryState, TimeoutType
from wfcore.protocol.failures import Failure, ServerFailureInfo

TOO_LATE = (
    "Not enough time to schedule next retry before activity ScheduleToClose timeout, "
    "giving up retrying"
)


def with_activity(limits: Limits | None = None, **options: Any) -> Run:
    """A run that has scheduled activity "a" (event 5) and waits for it."""
    run = a_run(limits or Limits())
    run.work(schedule_activity("a", **options))
    return run


def running(limits: Limits | None = None, **options: Any) -> Run:
    """The same, with its first attempt taken."""
    run = with_activity(limits, **options)
    run.take_activity("a")
    return run


def tick_at(run: Run, at: float) -> Run:
    """Sweep at that many seconds after noon."""
    return run.tick((NOON + seconds(at) - run.now).total_seconds())


# ---- life


def test_scheduling_announces_the_attempt_and_keeps_a_row() -> None:
    run = with_activity()
    [message] = run.sent(DispatchActivity)
    assert (message.scheduled_event_id, message.attempt, message.sent) == (5, 1, 0)
    assert (message.task_queue, message.activity_type) == ("orders", "charge")
    row = run.row("a")
    assert (row.state, row.attempt, row.sent) == (ActivityState.SCHEDULED, 1, 1)
    assert row.due_at == row.dispatch_due == NOON + seconds(10)
    assert run.sent(WakeTicker) == [WakeTicker(at=NOON + seconds(10))]


def test_a_start_leaves_no_event_until_the_end() -> None:
    run = running()
    assert run.kinds()[-1] == "ACTIVITY_TASK_SCHEDULED"
    assert run.row("a").state is ActivityState.STARTED
    run.wait(2).complete_activity("a", text("paid"))
    assert run.kinds(6) == ["ACTIVITY_TASK_STARTED", "ACTIVITY_TASK_COMPLETED", "TASK_SCHEDULED"]
    started, completed = run.event(6), run.event(7)
    assert (started.attempt, started.identity, started.last_failure) == (1, "worker", None)
    assert run.events[5].event_time == NOON
    assert (completed.scheduled_event_id, completed.started_event_id) == (5, 6)
    assert completed.result == text("paid")
    assert run.activities == {}


def test_claims_follow_the_poll_and_the_clock() -> None:
    run = with_activity()
    row = run.row("a")
    taken = activity.claim(row, run.now, request_id="p1", identity="w", owner="boot")
    assert taken is not None
    assert taken.row is not None
    assert (taken.row.stamp, taken.row.owner) == (row.stamp + 1, "boot")
    again = activity.claim(taken.row, run.now, request_id="p1")
    assert again is not None
    assert again.row == taken.row
    assert activity.claim(taken.row, run.now, request_id="p2") is None
    early = activity.claim(row, row.attempt_scheduled_at - seconds(1), request_id="p3")
    assert early is None


def test_an_unclaimed_attempt_is_announced_again_and_keeps_its_stamp() -> None:
    run = with_activity()
    pauses = []
    for _ in range(4):
        row = run.row("a")
        assert row.due_at is not None
        pauses.append((row.due_at - run.now).total_seconds())
        decision = activity.due(row, row.due_at)
        assert decision is not None
        assert decision.row is not None
        assert decision.row.stamp == row.stamp
        run.now = row.due_at
        run.settle(row, decision)
        assert run.sent(DispatchActivity) != []
    assert pauses == [10, 20, 40, 80]
    assert activity.due(run.row("a"), run.now) is None


def test_only_the_running_attempt_may_answer() -> None:
    run = with_activity()
    row = run.row("a")
    for bad in (None, row):
        with pytest.raises(NotFoundError, match="invalid activityID or activity already timed out"):
            activity.check_attempt(bad)
    run.take_activity("a")
    row = run.row("a")
    assert activity.check_attempt(row) == activity.check_attempt(row, 1) == row
    with pytest.raises(NotFoundError):
        activity.check_attempt(row, 2)


def test_a_late_end_of_a_closed_activity_is_refused() -> None:
    run = running()
    row = run.row("a")
    item = activity.complete(row, run.now, None).item
    assert item is not None
    run.complete_activity("a")
    with pytest.raises(NotFoundError):
        run.apply(Arrive(item=item, closes=row))


def test_an_end_at_a_closed_run_is_refused() -> None:
    run = running()
    row = run.row("a")
    run.terminate()
    item = activity.complete(row, run.now, None).item
    assert item is not None
    with pytest.raises(NotFoundError, match="workflow execution already completed"):
        run.apply(Arrive(item=item, closes=row))


def test_an_activity_completed_by_id_before_anyone_took_it_gets_a_start_made_up() -> None:
    run = with_activity()
    row = run.row("a")
    run.settle(row, activity.complete(row, run.now, None, "outside"))
    started = run.event(6)
    assert (started.identity, started.request_id, started.attempt) == ("outside", "", 1)
    assert run.event(7).started_event_id == 6
    nameless = with_activity()
    row = nameless.row("a")
    nameless.settle(row, activity.complete(row, nameless.now, None))
    assert nameless.kinds(6)[:2] == ["ACTIVITY_TASK_STARTED", "ACTIVITY_TASK_COMPLETED"]


def test_an_id_may_be_used_again_once_its_activity_has_ended() -> None:
    run = running()
    run.complete_activity("a")
    run.work(schedule_activity("a"))
    assert run.kinds()[-1] == "ACTIVITY_TASK_SCHEDULED"


def test_an_id_may_be_used_again_while_the_end_of_its_activity_waits() -> None:
    run = running()
    run.signal()
    run.take_task()
    run.complete_activity("a")
    run.answer(schedule_activity("a"))
    assert list(run.state.recorded.open_activities.values()) == ["a"]


def test_a_taken_activity_comes_with_the_answer_when_it_was_asked_for() -> None:
    run = a_run()
    run.take_task()
    answer = run.answer(
        schedule_activity("a", request_eager_execution=True),
        schedule_activity("b"),
        activity_request_id="eager-1",
        owner="boot-7",
    )
    [taken] = answer.activities
    assert (taken.activity_id, taken.request_id, taken.owner) == ("a", "eager-1", "boot-7")
    assert run.row("a") == taken
    assert [message.scheduled_event_id for message in run.sent(DispatchActivity)] == [6]
    run.complete_activity("a")
    assert run.kinds()[-3:-1] == ["ACTIVITY_TASK_STARTED", "ACTIVITY_TASK_COMPLETED"]


def test_eager_activities_can_be_switched_off() -> None:
    run = a_run(Limits(eager_activities=False))
    answer = run.work(schedule_activity("a", request_eager_execution=True))
    assert answer.activities == []
    assert run.sent(DispatchActivity) != []


def test_unset_parts_of_a_priority_are_the_workflows() -> None:
    run = a_run(priority=Priority(priority_key=2, fairness_key="tenant"))
    run.work(
        schedule_activity("a", priority=Priority(priority_key=1)),
        schedule_activity("b"),
    )
    assert run.event(5).priority == Priority(priority_key=1, fairness_key="tenant")
    assert run.row("b").priority == Priority(priority_key=2, fairness_key="tenant")


# ---- retries


def test_retries_write_nothing_and_the_last_attempt_tells_of_the_one_before() -> None:
    run = running()
    for number in (1, 2):
        run.fail_activity("a", a_failure(message=f"attempt {number}"))
        row = run.row("a")
        assert (row.state, row.attempt) == (ActivityState.SCHEDULED, number + 1)
        assert row.attempt_scheduled_at == run.now + seconds(2 ** (number - 1))
        assert row.last_worker_identity == "worker"
        assert run.kinds()[-1] == "ACTIVITY_TASK_SCHEDULED"
        run.tick(2 ** (number - 1))
        assert run.sent(DispatchActivity) != []
        run.take_activity("a")
    run.complete_activity("a")
    assert run.event(6).attempt == 3
    assert run.event(6).last_failure.message == "attempt 2"


def test_a_backing_off_attempt_can_not_be_taken_and_is_announced_at_its_time() -> None:
    run = running()
    run.fail_activity("a")
    assert run.sent(DispatchActivity) == []
    assert run.sent(WakeTicker) == [WakeTicker(at=run.now + seconds(1))]
    row = run.row("a")
    assert activity.claim(row, run.now, request_id="p") is None
    assert row.due_at == run.now + seconds(1)


@pytest.mark.parametrize(
    ("policy", "waits"),
    [
        (RetryPolicy(), [1, 2, 4, 8, 16, 32, 64, 100, 100]),
        (RetryPolicy(initial_interval=seconds(0.05), backoff_coefficient=10), [0.05, 0.5, 5, 5]),
        (RetryPolicy(maximum_interval=seconds(3)), [1, 2, 3, 3]),
        (RetryPolicy(initial_interval=seconds(0.6), backoff_coefficient=1), [0.6, 0.6, 0.6]),
    ],
)
def test_waits_grow_by_the_policy(policy: RetryPolicy, waits: list[float]) -> None:
    run = running(retry_policy=policy)
    seen = []
    for _ in waits:
        run.fail_activity("a")
        row = run.row("a")
        seen.append((row.attempt_scheduled_at - run.now).total_seconds())
        run.now = row.attempt_scheduled_at
        run.take_activity("a")
    assert seen == waits


@pytest.mark.parametrize(
    ("options", "failure", "state"),
    [
        ({"retry_policy": one_attempt()}, a_failure(), RetryState.MAXIMUM_ATTEMPTS_REACHED),
        ({}, a_failure(non_retryable=True), RetryState.NON_RETRYABLE_FAILURE),
        (
            {"retry_policy": RetryPolicy(non_retryable_error_types=("Broken",))},
            a_failure(),
            RetryState.NON_RETRYABLE_FAILURE,
        ),
        ({"schedule_to_close_timeout": seconds(0.5)}, a_failure(), RetryState.TIMEOUT),
        ({}, a_failure(next_retry_delay=timedelta(0)), RetryState.TIMEOUT),
        (
            {"schedule_to_close_timeout": seconds(5)},
            a_failure(next_retry_delay=seconds(6)),
            RetryState.TIMEOUT,
        ),
        (
            {"retry_policy": one_attempt()},
            a_failure(next_retry_delay=seconds(1)),
            RetryState.MAXIMUM_ATTEMPTS_REACHED,
        ),
    ],
)
def test_a_failure_that_ends_the_activity_says_why(
    options: dict[str, Any], failure: Failure, state: RetryState
) -> None:
    run = running(**options)
    run.fail_activity("a", failure)
    assert run.kinds(6) == ["ACTIVITY_TASK_STARTED", "ACTIVITY_TASK_FAILED", "TASK_SCHEDULED"]
    assert run.event(7).retry_state is state
    assert run.event(7).failure == failure
    assert run.event(7).identity == "worker"


def test_types_are_matched_exactly_and_causes_do_not_count() -> None:
    policy = RetryPolicy(non_retryable_error_types=("broken",))
    run = running(retry_policy=policy)
    cause = a_failure("broken", non_retryable=True)
    failure = a_failure("Broken")
    run.fail_activity("a", Failure(**{**_fields(failure), "cause": cause}))
    assert run.row("a").attempt == 2


def _fields(failure: Failure) -> dict[str, Any]:
    return {name: getattr(failure, name) for name in failure.__struct_fields__}


@pytest.mark.parametrize(("delay", "wait"), [(seconds(7), 7), (-seconds(1), 0)])
def test_a_delay_that_the_failure_asks_for_is_taken_as_it_is(delay: timedelta, wait: int) -> None:
    run = running(retry_policy=RetryPolicy(maximum_interval=seconds(3)))
    run.fail_activity("a", a_failure(next_retry_delay=delay))
    row = run.row("a")
    assert row.attempt_scheduled_at == run.now + seconds(wait)
    assert bool(run.sent(DispatchActivity)) is (wait == 0)


def test_a_failure_of_no_kind_is_retried_and_other_kinds_are_refused() -> None:
    run = running()
    row = run.row("a")
    nothing = activity.fail(row, run.now, None)
    assert nothing.row is not None
    assert (nothing.row.attempt, nothing.row.last_failure) == (2, None)
    with pytest.raises(InvalidArgumentError, match=r"^Failure must have ApplicationFailureInfo\.$"):
        activity.fail(row, run.now, Failure(server_failure_info=ServerFailureInfo()))


def test_a_kept_failure_is_cut_at_four_kilobytes() -> None:
    run = running()
    run.fail_activity("a", a_failure(message="x" * 6000))
    kept = run.row("a").last_failure
    assert kept is not None
    assert kept.message == "Failure exceeds size limit."
    assert kept.server_failure_info == ServerFailureInfo()
    assert kept.cause is not None
    assert 4000 < len(kept.cause.message) < 4096
    assert kept.cause.application_failure_info is not None
    assert kept.cause.application_failure_info.type == "Broken"
    small = running()
    small.fail_activity("a", a_failure(message="x" * 3000))
    assert small.row("a").last_failure == a_failure(message="x" * 3000)


def test_a_final_failure_above_the_blob_limit_is_shortened_too() -> None:
    limits = Limits(blob_bytes=5000)
    run = running(limits)
    row = run.row("a")
    decision = activity.fail(row, run.now, a_failure(message="x" * 6000), limits=limits)
    run.settle(row, decision)
    failed = run.event(7)
    assert failed.failure.message == "Failure exceeds size limit."
    assert failed.retry_state is RetryState.NON_RETRYABLE_FAILURE


def test_a_result_above_the_limit_fails_the_activity_for_good() -> None:
    limits = Limits(blob_bytes=1000)
    run = running(limits)
    row = run.row("a")
    run.settle(row, activity.complete(row, run.now, blob(2000), "worker", limits))
    failed = run.event(7)
    assert failed.failure == Failure(
        message="Complete result exceeds size limit.",
        server_failure_info=ServerFailureInfo(non_retryable=True),
    )
    assert failed.retry_state is RetryState.NON_RETRYABLE_FAILURE


# ---- heartbeats


def test_a_heartbeat_moves_the_clock_and_keeps_the_stamp() -> None:
    run = running(heartbeat_timeout=seconds(2), start_to_close_timeout=seconds(60))
    row = run.row("a")
    assert row.due_at == NOON + seconds(2)
    run.wait(1.5)
    decision = activity.heartbeat(row, run.now, text("half"))
    assert decision.row is not None
    assert decision.row.stamp == row.stamp
    assert decision.row.due_at == NOON + seconds(3.5)
    assert decision.row.heartbeat_details == text("half")
    assert decision.cancel_requested is False
    assert activity.due(decision.row, NOON + seconds(3)) is None


def test_details_survive_to_the_next_attempt() -> None:
    run = running()
    row = run.row("a")
    run.settle(row, activity.heartbeat(row, run.now, text("half")))
    run.fail_activity("a")
    assert run.row("a").heartbeat_details == text("half")
    run.tick(1)
    run.take_activity("a")
    row = run.row("a")
    ended = activity.fail(row, run.now, a_failure(), last_heartbeat_details=text("more"))
    assert ended.row is not None
    assert ended.row.heartbeat_details == text("more")


def test_details_above_the_limit_fail_the_activity() -> None:
    limits = Limits(blob_bytes=1000)
    run = running(limits)
    row = run.row("a")
    decision = activity.heartbeat(row, run.now, blob(2000), limits)
    assert decision.cancel_requested is True
    run.settle(row, decision)
    assert run.event(7).failure.message == "Heartbeat details exceed size limit."
    assert run.event(7).retry_state is RetryState.NON_RETRYABLE_FAILURE
    with_failure = activity.fail(
        row, run.now, a_failure(), last_heartbeat_details=blob(2000), limits=limits
    )
    assert with_failure.item is not None
    assert isinstance(with_failure.item.attributes, ev.ActivityTaskFailed)


# ---- timeouts


@pytest.mark.parametrize(
    ("given", "run_timeout", "expected"),
    [
        ({"schedule_to_close_timeout": 20}, None, (20, 20, 20, 0)),
        ({"start_to_close_timeout": 5}, None, (0, 0, 5, 0)),
        ({"start_to_close_timeout": 5}, 60, (60, 60, 5, 0)),
        ({"start_to_close_timeout": 90}, 60, (60, 60, 60, 0)),
        (
            {
                "schedule_to_close_timeout": 20,
                "schedule_to_start_timeout": 30,
                "start_to_close_timeout": 40,
            },
            None,
            (20, 20, 20, 0),
        ),
        ({"schedule_to_close_timeout": 20, "start_to_close_timeout": 5}, None, (20, 20, 5, 0)),
        ({"schedule_to_close_timeout": 100}, 60, (60, 60, 60, 0)),
        ({"start_to_close_timeout": 5, "schedule_to_start_timeout": 3}, None, (0, 3, 5, 0)),
        ({"start_to_close_timeout": 5, "heartbeat_timeout": 20}, None, (0, 0, 5, 5)),
    ],
)
def test_timeouts_are_filled_in_and_capped(
    given: dict[str, int], run_timeout: int | None, expected: tuple[int, int, int, int]
) -> None:
    run = a_run(workflow_run_timeout=seconds(run_timeout) if run_timeout else None)
    timeouts = {"start_to_close_timeout": None} | {
        name: seconds(value) for name, value in given.items()
    }
    run.work(schedule_activity("a", **timeouts))
    event = run.event(5)
    assert (
        event.schedule_to_close_timeout,
        event.schedule_to_start_timeout,
        event.start_to_close_timeout,
        event.heartbeat_timeout,
    ) == tuple(map(seconds, expected))


def test_a_policy_is_always_there() -> None:
    run = with_activity()
    assert run.event(5).retry_policy == RetryPolicy(
        initial_interval=seconds(1), backoff_coefficient=2.0, maximum_interval=seconds(100)
    )


def timed_out(run: Run, event_id: int = -2) -> ev.ActivityTaskTimedOut:
    event = run.event(event_id)
    assert isinstance(event, ev.ActivityTaskTimedOut), run.kinds()
    return event


def test_an_activity_that_nobody_takes_in_time_ends_without_a_start() -> None:
    run = with_activity(schedule_to_start_timeout=seconds(3))
    tick_at(run, 3)
    assert run.kinds(6) == ["ACTIVITY_TASK_TIMED_OUT", "TASK_SCHEDULED"]
    ended = timed_out(run)
    assert (ended.started_event_id, ended.retry_state) == (0, RetryState.TIMEOUT)
    assert ended.failure is not None
    assert (ended.failure.message, ended.failure.source) == (
        "activity ScheduleToStart timeout",
        "Server",
    )


def test_with_schedule_to_close_alone_it_ends_by_schedule_to_start() -> None:
    run = with_activity(schedule_to_close_timeout=seconds(2), start_to_close_timeout=None)
    tick_at(run, 2)
    failure = timed_out(run).failure
    assert failure is not None
    assert failure.timeout_failure_info is not None
    assert failure.timeout_failure_info.timeout_type is TimeoutType.SCHEDULE_TO_START


def test_an_attempt_that_takes_too_long_is_retried_and_kept_bare() -> None:
    run = running(start_to_close_timeout=seconds(4))
    row = run.row("a")
    run.settle(row, activity.heartbeat(row, run.now, text("h1")))
    tick_at(run, 4)
    row = run.row("a")
    assert (row.attempt, row.heartbeat_details) == (2, text("h1"))
    kept = row.last_failure
    assert kept is not None
    assert kept.message == "activity StartToClose timeout"
    assert kept.timeout_failure_info is not None
    assert kept.timeout_failure_info.last_heartbeat_details is None


def test_the_last_timeout_carries_details_and_the_failure_before() -> None:
    run = running(start_to_close_timeout=seconds(4), retry_policy=RetryPolicy(maximum_attempts=2))
    row = run.row("a")
    run.settle(row, activity.heartbeat(row, run.now, text("h1")))
    tick_at(run, 4)
    tick_at(run, 5)
    run.take_activity("a")
    tick_at(run, 9)
    ended = timed_out(run)
    assert ended.retry_state is RetryState.MAXIMUM_ATTEMPTS_REACHED
    assert ended.failure is not None
    assert ended.failure.cause is not None
    assert ended.failure.cause.message == "activity StartToClose timeout"
    assert ended.failure.timeout_failure_info is not None
    assert ended.failure.timeout_failure_info.last_heartbeat_details == text("h1")
    assert run.event(6).attempt == 2


def test_a_missing_heartbeat_fails_the_attempt() -> None:
    run = running(
        heartbeat_timeout=seconds(1), start_to_close_timeout=seconds(60), retry_policy=one_attempt()
    )
    tick_at(run, 1)
    failure = timed_out(run).failure
    assert failure is not None
    assert failure.message == "activity Heartbeat timeout"


def test_a_running_attempt_that_reaches_the_end_of_all_time_ends_the_activity() -> None:
    run = running(schedule_to_close_timeout=seconds(6), start_to_close_timeout=seconds(60))
    tick_at(run, 6)
    assert run.kinds(6) == ["ACTIVITY_TASK_STARTED", "ACTIVITY_TASK_TIMED_OUT", "TASK_SCHEDULED"]
    ended = timed_out(run)
    assert ended.retry_state is RetryState.TIMEOUT
    assert ended.failure is not None
    assert ended.failure.message == TOO_LATE


def test_a_timed_out_attempt_whose_retry_would_come_too_late_ends_the_activity_at_once() -> None:
    run = running(schedule_to_close_timeout=seconds(3), start_to_close_timeout=seconds(2.5))
    tick_at(run, 2.5)
    ended = timed_out(run)
    assert ended.failure is not None
    assert (ended.failure.message, ended.failure.cause) == (TOO_LATE, None)
    assert ended.retry_state is RetryState.TIMEOUT


def test_waiting_for_a_later_attempt_until_the_end_tells_of_the_last_failure() -> None:
    run = running(schedule_to_close_timeout=seconds(6))
    run.fail_activity("a", a_failure(message="first"))
    run.tick(1)
    tick_at(run, 6)
    assert run.kinds(6) == ["ACTIVITY_TASK_TIMED_OUT", "TASK_SCHEDULED"]
    ended = timed_out(run)
    assert ended.failure is not None
    assert ended.failure.cause is not None
    assert ended.failure.cause.message == "first"
    assert ended.started_event_id == 0


def test_for_a_retry_the_queue_time_counts_from_the_end_of_the_backoff() -> None:
    run = running(
        schedule_to_start_timeout=seconds(2),
        retry_policy=RetryPolicy(initial_interval=seconds(1.5)),
    )
    run.fail_activity("a", a_failure(message="first"))
    tick_at(run, 1.5)
    tick_at(run, 3.4)
    assert run.activities
    tick_at(run, 3.5)
    failure = timed_out(run).failure
    assert failure is not None
    assert failure.cause is not None
    assert (failure.message, failure.cause.message) == ("activity ScheduleToStart timeout", "first")


# ---- death


def test_a_lost_worker_costs_an_attempt() -> None:
    run = running()
    run.lose_worker("a")
    row = run.row("a")
    assert (row.attempt, row.owner) == (2, "")
    assert row.last_failure is not None
    assert row.last_failure.message == "worker lost: boot-1 is gone"
    assert row.last_failure.timeout_failure_info is not None
    assert row.last_failure.timeout_failure_info.timeout_type is TimeoutType.HEARTBEAT
    [entry] = run.journal
    assert (entry.kind, entry.attempt, entry.scheduled_event_id) == ("attempt_lost", 1, 5)


def test_with_one_attempt_a_lost_worker_ends_the_activity_and_nothing_runs_again() -> None:
    run = running(retry_policy=one_attempt())
    run.lose_worker("a")
    ended = timed_out(run)
    assert ended.retry_state is RetryState.MAXIMUM_ATTEMPTS_REACHED
    assert ended.failure is not None
    assert ended.failure.message == "worker lost: boot-1 is gone"
    assert run.activities == {}


def test_a_lost_worker_that_leaves_no_time_for_another_attempt_is_named_as_the_cause() -> None:
    run = running(schedule_to_close_timeout=seconds(0.9))
    run.lose_worker("a")
    failure = timed_out(run).failure
    assert failure is not None
    assert failure.cause is not None
    assert failure.message == TOO_LATE
    assert failure.cause.message == "worker lost: boot-1 is gone"


def test_a_clock_that_goes_back_does_not_turn_an_attempt_around() -> None:
    run = running()
    run.wait(-5).lose_worker("a")
    row = run.row("a")
    assert row.attempt_scheduled_at == NOON + seconds(1)
    assert row.last_attempt_completed_at == NOON
    ended = activity.complete(row, NOON - seconds(3), None).item
    assert ended is not None
    assert ended.event_time == row.last_attempt_completed_at


def test_an_attempt_that_nobody_runs_can_not_be_lost() -> None:
    run = with_activity()
    assert activity.lost(run.row("a"), run.now, "gone") is None


# ---- cancellation


def cancelled(run: Run) -> Run:
    """The workflow asks for the cancellation of activity 5."""
    run.signal()
    run.work(cancel_activity(5))
    return run


def test_a_running_activity_learns_of_its_cancellation_by_heartbeat() -> None:
    run = cancelled(running())
    assert run.kinds()[-1] == "ACTIVITY_TASK_CANCEL_REQUESTED"
    row = run.row("a")
    assert activity.heartbeat(row, run.now, None).cancel_requested is True
    run.report_canceled("a")
    ended = run.event(-2)
    assert isinstance(ended, ev.ActivityTaskCanceled)
    assert ended.latest_cancel_requested_event_id == row.cancel_requested_event_id
    assert ended.started_event_id == len(run.events) - 2


def test_a_heartbeat_decided_before_can_not_take_the_request_away() -> None:
    run = running()
    before = run.row("a")
    beaten = activity.heartbeat(before, run.now, None).row
    assert beaten is not None
    cancelled(run)
    assert run.row("a").stamp == beaten.stamp + 1


@pytest.mark.parametrize("backing_off", [False, True])
def test_one_that_nobody_has_taken_ends_at_once(backing_off: bool) -> None:
    run = with_activity()
    if backing_off:
        run.take_activity("a")
        run.fail_activity("a")
    cancelled(run)
    kinds = ["ACTIVITY_TASK_CANCEL_REQUESTED", "ACTIVITY_TASK_CANCELED", "TASK_SCHEDULED"]
    assert run.kinds()[-3:] == kinds
    ended = run.event(-2)
    assert ended.details == text("ACTIVITY_ID_NOT_STARTED")
    assert (ended.started_event_id, ended.identity) == (0, "worker")
    assert run.activities == {}


def test_scheduled_and_cancelled_in_one_task_leaves_no_row() -> None:
    run = a_run()
    run.work(schedule_activity("a"), cancel_activity(5), start_timer())
    assert run.kinds(5) == [
        "ACTIVITY_TASK_SCHEDULED",
        "ACTIVITY_TASK_CANCEL_REQUESTED",
        "TIMER_STARTED",
        "ACTIVITY_TASK_CANCELED",
        "TASK_SCHEDULED",
    ]
    assert run.activities == {}
    assert run.sent(DispatchActivity) == []


def test_a_close_behind_it_drops_the_end_that_nobody_will_see() -> None:
    run = with_activity()
    run.signal()
    run.work(cancel_activity(5), complete_run())
    assert run.kinds()[-2:] == ["ACTIVITY_TASK_CANCEL_REQUESTED", "COMPLETED"]


def test_the_end_still_waits_when_its_cancellation_is_asked_for() -> None:
    run = running()
    run.signal()
    run.take_task()
    run.complete_activity("a")
    run.answer(cancel_activity(5))
    assert run.kinds(8) == [
        "TASK_STARTED",
        "TASK_COMPLETED",
        "ACTIVITY_TASK_CANCEL_REQUESTED",
        "ACTIVITY_TASK_STARTED",
        "ACTIVITY_TASK_COMPLETED",
        "TASK_SCHEDULED",
    ]


@pytest.mark.parametrize("again", ["second request", "closed"])
def test_a_cancellation_that_makes_no_sense_fails_the_task(again: str) -> None:
    run = running()
    if again == "closed":
        run.complete_activity("a")
    else:
        cancelled(run)
    run.signal()
    run.take_task()
    with pytest.raises(InvalidArgumentError) as refusal:
        run.answer(cancel_activity(5))
    assert str(refusal.value) == (
        "BadRequestCancelActivityAttributes: invalid history builder state for action: "
        "add-activitytask-cancel-requested-event, ScheduledEventID: 5"
    )


def test_asking_twice_in_one_answer_for_one_that_nobody_took_is_an_event_only() -> None:
    run = with_activity()
    run.signal()
    run.work(cancel_activity(5), cancel_activity(5))
    assert run.kinds()[-4:] == [
        "ACTIVITY_TASK_CANCEL_REQUESTED",
        "ACTIVITY_TASK_CANCEL_REQUESTED",
        "ACTIVITY_TASK_CANCELED",
        "TASK_SCHEDULED",
    ]


@pytest.mark.parametrize("end", ["fails", "times out", "worker lost"])
def test_after_a_cancel_request_no_attempt_follows(end: str) -> None:
    run = cancelled(running(start_to_close_timeout=seconds(4)))
    match end:
        case "fails":
            run.fail_activity("a")
        case "times out":
            tick_at(run, 4)
        case "worker lost":
            run.lose_worker("a")
    assert run.event(-2).retry_state is RetryState.CANCEL_REQUESTED
    assert run.activities == {}


def test_a_cancellation_that_nobody_asked_for_is_refused() -> None:
    run = running()
    with pytest.raises(InvalidArgumentError, match="unable to mark activity as canceled"):
        activity.cancel(run.row("a"), run.now, None)


def test_a_cancel_command_must_find_its_activity_loaded() -> None:
    run = with_activity()
    run.signal()
    run.take_task()
    run.activities = {}
    with pytest.raises(LookupError, match=r"transition\.needs"):
        run.answer(cancel_activity(5))
