"""C. Activities as the engine sees them: attempts are taken and answered by hand."""

from datetime import timedelta
from typing import Any

import pytest

from tests.features import asks, feature
from tests.features.worlds import Run, World, failure, read
from wfcore.exceptions import InvalidArgumentError, NotFoundError
from wfcore.protocol.enums import PendingActivityState

SCHEDULED = "ACTIVITY_TASK_SCHEDULED"
STARTED = "ACTIVITY_TASK_STARTED"
COMPLETED = "ACTIVITY_TASK_COMPLETED"
FAILED = "ACTIVITY_TASK_FAILED"
TIMED_OUT = "ACTIVITY_TASK_TIMED_OUT"
CANCELED = "ACTIVITY_TASK_CANCELED"
TASK = "WORKFLOW_TASK_SCHEDULED"


def with_activity(world: World, *given: Any, **options: Any) -> Run:
    """A run with one activity that nobody has taken."""
    run = world.start("Ships")
    world.answer_next(asks.activity("a", *given, **options))
    return run


def fail_often(world: World, times: int) -> list[float]:
    """Fail so many attempts; the seconds from each until the next could be taken."""
    waits = []
    for _ in range(times):
        world.fail_activity(world.take_activity())
        failed_at = world.now()
        world.wait(
            lambda: bool(world.store.unclaimed_activities("default", world.queue, world.now(), 1))
        )
        waits.append((world.now() - failed_at).total_seconds())
    return waits


@feature("C1")
def test_C01_one_task_for_one_activity(world: World) -> None:
    run = world.start("Ships")
    world.lose_messages()
    world.answer_next(asks.activity("a"))
    assert world.lose_messages() == 1
    (pending,) = run.pending_activities
    assert pending.state is PendingActivityState.SCHEDULED
    assert (pending.activity_id, pending.attempt) == ("a", 1)
    assert run.kinds()[-1] == SCHEDULED


@feature("C2")
def test_C02_a_running_attempt_has_no_event(world: World) -> None:
    run = with_activity(world)
    before = run.history()
    world.take_activity()
    (pending,) = run.pending_activities
    assert pending.state is PendingActivityState.STARTED
    assert run.history() == before
    assert before[-1].kind == SCHEDULED


@feature("C4")
def test_C04_success_is_three_events(world: World) -> None:
    run = with_activity(world)
    world.complete_activity(world.take_activity(), "done")
    started, completed, task = run.history()[-3:]
    assert [started.kind, completed.kind, task.kind] == [STARTED, COMPLETED, TASK]
    assert [started.id, completed.id, task.id] == [6, 7, 8]
    assert completed.values("result") == ["done"]
    assert (completed["scheduledEventId"], completed["startedEventId"]) == ("5", "6")


@feature("C5")
def test_C05_retries_leave_no_events(world: World) -> None:
    run = with_activity(world)
    fail_often(world, 2)
    assert run.kinds()[-1] == SCHEDULED
    world.complete_activity(world.take_activity())
    history = run.history()
    assert len(history.of(SCHEDULED)) == 1
    assert history.only(STARTED)["attempt"] == 3
    assert FAILED not in history.kinds


@feature("C6")
def test_C06_the_last_failure_is_kept(world: World) -> None:
    run = with_activity(world)
    for text in ("first", "second"):
        world.fail_activity(world.take_activity(), failure(text))
        (pending,) = run.pending_activities
        assert pending.last_failure.message == text
        world.advance(10)
    world.complete_activity(world.take_activity())
    assert run.history().only(STARTED)["lastFailure"]["message"] == "second"


@feature("C7")
def test_C07_the_default_policy(world: World) -> None:
    run = with_activity(world)
    policy = run.history().only(SCHEDULED)["retryPolicy"]
    assert policy["initialInterval"] == "1s"
    assert policy["backoffCoefficient"] == 2
    assert policy["maximumInterval"] == "100s"
    assert "maximumAttempts" not in policy
    waits = fail_often(world, 9)
    assert waits == [1, 2, 4, 8, 16, 32, 64, 100, 100]


@feature("C8")
def test_C08_maximum_attempts(world: World) -> None:
    run = with_activity(world, retry_policy=asks.retries(3))
    fail_often(world, 2)
    world.fail_activity(world.take_activity())
    world.advance(1000)
    assert not world.poll_activity().task_token
    history = run.history()
    assert history.only(STARTED)["attempt"] == 3
    assert history.only(FAILED)["retryState"] == "RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED"


@feature("C9")
def test_C09_maximum_interval(world: World) -> None:
    with_activity(world, retry_policy=asks.retries(first=1, cap=3))
    assert fail_often(world, 4) == [1, 2, 3, 3]


@feature("C10")
def test_C10_types_that_are_not_retried(world: World) -> None:
    run = with_activity(world, retry_policy=asks.retries(types=("Broke",)))
    world.fail_activity(world.take_activity(), failure(type="NotBroke"))
    world.advance(1)
    world.fail_activity(world.take_activity(), failure(type="Broke"))
    assert run.history().only(FAILED)["retryState"] == "RETRY_STATE_NON_RETRYABLE_FAILURE"


@feature("C11")
def test_C11_failures_that_are_final(world: World) -> None:
    run = with_activity(world)
    world.fail_activity(world.take_activity(), failure(final=True))
    history = run.history()
    assert history.only(FAILED)["retryState"] == "RETRY_STATE_NON_RETRYABLE_FAILURE"
    assert history.only(STARTED)["attempt"] == 1


@feature("C12")
def test_C12_the_next_delay_by_the_failure(world: World) -> None:
    with_activity(world, retry_policy=asks.retries(first=1, cap=3))
    world.fail_activity(world.take_activity(), failure(delay=7))
    world.advance(6.9)
    assert not world.poll_activity().task_token
    world.advance(0.1)
    assert world.take_activity().attempt == 2


@feature("C14")
def test_C14_start_to_close(world: World) -> None:
    run = with_activity(world, seconds=5, retry_policy=asks.retries(2))
    world.take_activity()
    world.advance(6)
    assert world.take_activity().attempt == 2
    world.advance(5)
    history = run.history()
    assert history.only(STARTED)["attempt"] == 2
    timed_out = history.only(TIMED_OUT)
    reason = timed_out["failure"]["timeoutFailureInfo"]
    assert reason["timeoutType"] == "TIMEOUT_TYPE_START_TO_CLOSE"
    assert timed_out["retryState"] == "RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED"


@feature("C15")
def test_C15_schedule_to_close(world: World) -> None:
    run = with_activity(world, schedule_to_close_timeout=timedelta(seconds=10))
    began = world.now()
    fail_often(world, 3)  # after 0, 1 and 3 s; the next one after 7
    world.fail_activity(world.take_activity())
    history = run.history()
    assert history[-1].time <= began + timedelta(seconds=10)
    failed = history.only(FAILED)
    assert failed["retryState"] == "RETRY_STATE_TIMEOUT"
    assert failed["failure"]["message"] == "no"


@feature("C15")
def test_C15_a_running_attempt_reaches_schedule_to_close(world: World) -> None:
    run = with_activity(world, schedule_to_close_timeout=timedelta(seconds=10))
    began = world.now()
    world.take_activity()
    world.advance(60)
    timed_out = run.history().only(TIMED_OUT)
    assert timed_out.time == began + timedelta(seconds=10)
    reason = timed_out["failure"]["timeoutFailureInfo"]
    assert reason["timeoutType"] == "TIMEOUT_TYPE_SCHEDULE_TO_CLOSE"


@feature("C16")
def test_C16_schedule_to_start(world: World) -> None:
    run = with_activity(world, schedule_to_start_timeout=timedelta(seconds=5))
    world.advance(60)
    history = run.history()
    timed_out = history.only(TIMED_OUT)
    reason = timed_out["failure"]["timeoutFailureInfo"]
    assert reason["timeoutType"] == "TIMEOUT_TYPE_SCHEDULE_TO_START"
    assert timed_out["startedEventId"] in (None, "0")
    assert timed_out["retryState"] == "RETRY_STATE_TIMEOUT"
    assert STARTED not in history.kinds


@feature("C17")
def test_C17_heartbeats(world: World) -> None:
    beats = {"heartbeat_timeout": timedelta(seconds=5)}
    run = with_activity(world, retry_policy=asks.retries(2), **beats)
    attempt = world.take_activity()
    for _ in range(3):
        world.advance(4)
        world.beat(attempt)
    world.advance(4.9)
    (pending,) = run.pending_activities
    assert (pending.attempt, pending.state) == (1, PendingActivityState.STARTED)
    world.advance(1.1)
    assert world.take_activity().attempt == 2
    world.advance(5)
    reason = run.history().only(TIMED_OUT)["failure"]["timeoutFailureInfo"]
    assert reason["timeoutType"] == "TIMEOUT_TYPE_HEARTBEAT"


@feature("C18")
def test_C18_what_is_not_given(world: World) -> None:
    run = world.start("Ships", run_timeout=timedelta(seconds=60))
    world.answer_next(
        asks.activity("a", seconds=5),
        asks.activity("b", schedule_to_close_timeout=timedelta(seconds=30)),
        asks.activity("c", seconds=90, heartbeat_timeout=timedelta(seconds=80)),
    )
    first, second, third = run.history().of(SCHEDULED)

    def times(event: Any) -> list[str]:
        return [
            event[f"{name}Timeout"]
            for name in ("scheduleToClose", "scheduleToStart", "startToClose")
        ]

    assert times(first) == ["60s", "60s", "5s"]
    assert times(second) == ["30s", "30s", "30s"]
    assert [*times(third), third["heartbeatTimeout"]] == ["60s", "60s", "60s", "60s"]


@feature("C19")
def test_C19_no_timeout(world: World) -> None:
    run = world.start("Ships")
    with pytest.raises(InvalidArgumentError):
        world.answer_next(asks.activity(start_to_close_timeout=None))
    cause = run.history().only("WORKFLOW_TASK_FAILED")["cause"]
    assert cause == "WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES"


@feature("C20")
def test_C20_the_next_attempt_gets_the_details(world: World) -> None:
    run = with_activity(world)
    attempt = world.take_activity()
    world.beat(attempt, "at 10")
    world.beat(attempt, "at 20")
    world.fail_activity(attempt)
    world.advance(1)
    again = world.take_activity()
    assert read(again.heartbeat_details) == ["at 20"]
    (pending,) = run.pending_activities
    assert read(pending.heartbeat_details) == ["at 20"]


def cancelled(world: World, **options: Any) -> tuple[Run, Any]:
    """A run that has asked its activity to end, and the attempt that was running."""
    run = with_activity(world, **options)
    attempt = world.take_activity()
    run.signal("stop")
    world.answer_next(asks.cancel_activity(5))
    return run, attempt


@feature("C22")
def test_C22_a_heartbeat_tells_of_the_cancellation(world: World) -> None:
    run = with_activity(world)
    attempt = world.take_activity()
    assert not world.beat(attempt).cancel_requested
    with pytest.raises(InvalidArgumentError):
        world.cancel_activity(attempt)
    run.signal("stop")
    world.answer_next(asks.cancel_activity(5))
    assert world.beat(attempt).cancel_requested
    world.cancel_activity(attempt, "cleaned up")
    canceled = run.history().only(CANCELED)
    assert canceled.values("details") == ["cleaned up"]
    assert canceled["latestCancelRequestedEventId"] == "10"
    assert run.history()[9].kind == "ACTIVITY_TASK_CANCEL_REQUESTED"


@feature("C23")
def test_C23_cancelled_before_it_started(world: World) -> None:
    run = with_activity(world)
    run.signal("stop")
    world.answer_next(asks.cancel_activity(5))
    history = run.history()
    assert history.kinds[-3:] == ["ACTIVITY_TASK_CANCEL_REQUESTED", CANCELED, TASK]
    assert history.only(CANCELED).values("details") == ["ACTIVITY_ID_NOT_STARTED"]
    assert STARTED not in history.kinds
    assert not world.poll_activity().task_token


@feature("C24")
def test_C24_a_cancellation_ends_the_retries(world: World) -> None:
    run, attempt = cancelled(world)
    world.fail_activity(attempt)
    failed = run.history().only(FAILED)
    assert failed["retryState"] == "RETRY_STATE_CANCEL_REQUESTED"
    assert run.history().only(STARTED)["attempt"] == 1


@feature("C28")
def test_C28_a_second_answer(world: World) -> None:
    run = with_activity(world)
    attempt = world.take_activity()
    world.complete_activity(attempt)
    before = run.history()
    with pytest.raises(NotFoundError):
        world.complete_activity(attempt)
    assert run.history() == before
    assert len(before.of(COMPLETED)) == 1


@feature("C29")
def test_C29_an_answer_of_an_old_attempt(world: World) -> None:
    run = with_activity(world, seconds=5)
    old = world.take_activity()
    world.advance(6)
    new = world.take_activity()
    for late in (world.complete_activity, world.fail_activity, world.beat):
        with pytest.raises(NotFoundError):
            late(old)
    world.complete_activity(new)
    assert run.history().only(STARTED)["attempt"] == 2


@feature("C35")
def test_C35_an_activity_comes_with_the_answer(world: World) -> None:
    run = world.start("Ships")
    world.lose_messages()
    task = world.poll()
    answer = world.answer(
        task, asks.activity("a", request_eager_execution=True), asks.activity("b")
    )
    (attempt,) = answer.activity_tasks
    assert (attempt.activity_id, attempt.attempt) == ("a", 1)
    assert world.lose_messages() == 1  # that of b
    assert world.take_activity().activity_id == "b"
    assert not world.poll_activity().task_token
    world.complete_activity(attempt)
    assert run.history().only(COMPLETED)["scheduledEventId"] == "5"


@feature("C37")
def test_C37_at_least_once(world: World) -> None:
    effects = []
    run = with_activity(world, seconds=5)
    effects.append(world.take_activity().attempt)  # and then its worker is killed
    world.advance(6)
    attempt = world.take_activity()
    effects.append(attempt.attempt)
    world.complete_activity(attempt)
    assert effects == [1, 2]
    assert len(run.history().of(COMPLETED)) == 1


@feature("C39")
def test_C39_a_result_that_is_too_large(world: World) -> None:
    run = with_activity(world)
    world.complete_activity(world.take_activity(), "x" * 3_000_000)
    history = run.history()
    failed = history.only(FAILED)
    assert failed["failure"]["message"] == "Complete result exceeds size limit."
    assert failed["retryState"] == "RETRY_STATE_NON_RETRYABLE_FAILURE"
    assert history.only(STARTED)["attempt"] == 1
