"""Runs of a cron schedule: when they wait, what follows them, what they take over."""

from datetime import timedelta

from tests.support.histories import (
    NOON,
    Run,
    a_failure,
    a_run,
    cancel_run,
    complete_run,
    continue_as_new,
    fail_run,
    seconds,
    text,
    upsert_memo,
)
from wfcore.history.requests import CompleteTask, Due, TaskToken
from wfcore.history.transition import needs
from wfcore.protocol.common import RetryPolicy
from wfcore.protocol.enums import ContinueAsNewInitiator, RetryState, TimeoutType
from wfcore.protocol.metadata import Callback, NexusCallback
from wfcore.protocol.payloads import Memo, Payload

NOTE = Payload(data=b"1")
HOURLY = "0 * * * *"


def waiting(run: Run) -> timedelta:
    wait: timedelta = run.event(1).first_workflow_task_backoff
    return wait


def following(run: Run) -> Run:
    assert run.next_run is not None
    return run.next_run


def test_the_first_run_waits_for_its_time() -> None:
    run = a_run(cron_schedule="30 * * * *")
    assert (run.kinds(), waiting(run)) == (["STARTED"], seconds(1800))
    assert run.event(1).initiator is ContinueAsNewInitiator.CRON_SCHEDULE
    assert run.last.next_deadline == NOON + seconds(1800)
    run.signal()
    assert run.kinds() == ["STARTED", "SIGNALED"]
    run.tick(1800)
    assert run.kinds(3) == ["TASK_SCHEDULED"]


def test_a_cancel_request_does_not_wait() -> None:
    run = a_run(cron_schedule=HOURLY)
    run.request_cancel()
    assert run.kinds(2) == ["CANCEL_REQUESTED", "TASK_SCHEDULED"]
    run.work(cancel_run())
    assert run.next_run is None
    assert run.event(-1).workflow_task_completed_event_id


def test_a_completed_run_hands_its_result_on() -> None:
    run = a_run(
        cron_schedule=HOURLY,
        memo=Memo(fields={"a": NOTE}),
        input=text("in"),
        workflow_run_timeout=seconds(600),
        completion_callbacks=(Callback(nexus=NexusCallback(url="http://x")),),
    )
    run.tick(3600)
    run.wait(90)
    run.work(upsert_memo(b=NOTE), complete_run(text("one")), next_run_id="run-2")
    assert run.event(-1).new_execution_run_id == "run-2"
    again = following(run)
    first = again.event(1)
    assert first.initiator is ContinueAsNewInitiator.CRON_SCHEDULE
    assert first.last_completion_result == text("one")
    assert (first.continued_failure, first.attempt, first.identity) == (None, 1, "")
    assert (first.continued_execution_run_id, first.first_execution_run_id) == ("run-0", "run-0")
    assert (first.input, first.workflow_run_timeout) == (text("in"), seconds(600))
    assert again.memo == Memo(fields={"a": NOTE}), "what was upserted is lost"
    assert first.completion_callbacks == ()
    assert waiting(again) == seconds(3510)
    assert again.kinds() == ["STARTED"]


def test_times_that_were_missed_are_left_out() -> None:
    run = a_run(cron_schedule=HOURLY)
    run.tick(3600)
    run.wait(2.5 * 3600)
    run.work(complete_run())
    assert waiting(following(run)) == seconds(1800)


def test_a_failed_run_hands_on_its_failure_and_the_result_before() -> None:
    run = a_run(cron_schedule=HOURLY, last_completion_result=text("zero"))
    run.tick(3600)
    run.work(fail_run(a_failure("Broken")))
    assert run.event(-1).retry_state is RetryState.RETRY_POLICY_NOT_SET
    first = following(run).event(1)
    assert first.continued_failure == a_failure("Broken")
    assert first.last_completion_result == text("zero")
    again = following(run)
    again.now = again.state.recorded.execution_time
    again.apply(Due())
    again.work(complete_run(text("one")))
    assert following(again).event(1).continued_failure is None
    assert following(again).event(1).last_completion_result == text("one")


def test_a_run_that_times_out_is_followed() -> None:
    run = a_run(cron_schedule=HOURLY, workflow_run_timeout=seconds(60))
    run.tick(3600)
    run.tick(60)
    assert run.kinds()[-1] == "TIMED_OUT"
    assert run.event(-1).retry_state is RetryState.RETRY_POLICY_NOT_SET
    failure = following(run).event(1).continued_failure
    assert failure.timeout_failure_info.timeout_type is TimeoutType.START_TO_CLOSE
    assert waiting(following(run)) == seconds(3540)


def test_the_end_of_the_chain_ends_the_schedule() -> None:
    run = a_run(cron_schedule=HOURLY, workflow_execution_timeout=seconds(1800))
    run.tick(1800)
    assert run.kinds() == ["STARTED", "TIMED_OUT"]
    assert run.event(-1).retry_state is RetryState.TIMEOUT
    assert run.next_run is None
    terminated = a_run(cron_schedule=HOURLY)
    terminated.terminate()
    assert terminated.next_run is None


def test_retries_come_before_the_next_time() -> None:
    run = a_run(cron_schedule=HOURLY, retry_policy=RetryPolicy(maximum_attempts=2))
    run.tick(3600)
    run.work(fail_run())
    assert run.event(-1).retry_state is RetryState.IN_PROGRESS
    second = following(run)
    assert second.event(1).initiator is ContinueAsNewInitiator.RETRY
    assert (second.event(1).attempt, waiting(second)) == (2, seconds(1))
    second.tick(1)
    second.work(fail_run())
    assert second.event(-1).retry_state is RetryState.MAXIMUM_ATTEMPTS_REACHED
    third = following(second)
    assert third.event(1).initiator is ContinueAsNewInitiator.CRON_SCHEDULE
    assert third.event(1).attempt == 1
    assert third.state.recorded.execution_time == NOON + seconds(7200)


def test_continue_as_new_keeps_only_a_schedule_that_it_names() -> None:
    run = a_run(cron_schedule=HOURLY)
    run.tick(3600)
    run.work(continue_as_new())
    assert following(run).event(1).cron_schedule == ""
    named = a_run(cron_schedule=HOURLY)
    named.tick(3601)
    named.work(continue_as_new(cron_schedule=HOURLY))
    again = following(named)
    assert again.event(1).initiator is ContinueAsNewInitiator.WORKFLOW
    assert again.kinds() == ["STARTED", "TASK_SCHEDULED"], "at once, not at the next time"
    again.work(complete_run())
    assert waiting(following(again)) == seconds(3599)


def test_runs_that_continue_at_once_stay_a_second_apart() -> None:
    run = a_run()
    run.tick(0.2)
    run.work(continue_as_new())
    second = following(run)
    assert waiting(second) == seconds(0.8)
    second.tick(0.8)
    second.work(continue_as_new())
    assert waiting(following(second)) == seconds(1), "it waited, so it has only begun"


def test_a_text_that_is_no_schedule_is_stored_and_leads_nowhere() -> None:
    run = a_run()
    run.work(continue_as_new(cron_schedule="nope"))
    again = following(run)
    assert again.event(1).cron_schedule == "nope"
    again.tick(1)
    again.work(complete_run())
    assert again.event(-1).new_execution_run_id == ""
    assert again.next_run is None


def test_event_one_is_asked_for_when_another_run_may_follow() -> None:
    run = a_run(cron_schedule=HOURLY, workflow_run_timeout=seconds(60))
    token = TaskToken(scheduled_event_id=2, started_event_id=3, attempt=1)
    for command, expected in ((complete_run(), True), (fail_run(), True), (cancel_run(), False)):
        order = CompleteTask(token=token, commands=(command,))
        assert needs(run.state, order).start_event is expected
    assert needs(run.state, Due(), NOON + seconds(3660)).start_event
    assert not needs(run.state, Due(), NOON + seconds(3659)).start_event
    assert not needs(a_run().state, CompleteTask(token=token, commands=(fail_run(),))).start_event
