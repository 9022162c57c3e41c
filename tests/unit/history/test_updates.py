"""Updates: admitted without an event, accepted and completed by events, refused without a trace."""

from datetime import timedelta

import pytest

from tests.support.histories import (
    Run,
    a_failure,
    a_run,
    acceptance,
    blob,
    cancel_run,
    complete_run,
    continue_as_new,
    fail_run,
    place,
    rejection,
    response,
    seconds,
    start_timer,
    text,
    update_request,
)
from wfcore.exceptions import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedCause,
    ResourceExhaustedError,
    WorkflowNotReadyError,
)
from wfcore.history.effects import DispatchWorkflowTask, NotifyHistory, NotifyUpdate
from wfcore.history.limits import Limits
from wfcore.history.machines.update import LAST_VERSION
from wfcore.history.requests import AdmitUpdate, ClaimTask, TaskLost
from wfcore.protocol.common import RetryPolicy
from wfcore.protocol.enums import TimeoutType
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause
from wfcore.protocol.failures import Failure
from wfcore.protocol.updates import Outcome, ProtocolMessage, Request, Response

WRITTEN = ["TASK_SCHEDULED", "TASK_STARTED", "TASK_COMPLETED"]
ENDED = [*WRITTEN, "UPDATE_ACCEPTED", "UPDATE_COMPLETED"]


def an_idle_run(limits: Limits | None = None, **start: object) -> Run:
    """Its history ends at event 4."""
    run = a_run(limits or Limits(), **start)
    run.work()
    return run.wait(1)


def accept(run: Run, update_id: str = "u") -> Run:
    """Have an update accepted, and not more."""
    run.update(update_id).take_task()
    message = acceptance(update_id)
    run.answer(place(message), messages=(message,))
    return run


def finish(run: Run, update_id: str = "u") -> Run:
    """Have a delivered update accepted and completed."""
    messages = (acceptance(update_id), response(update_id))
    run.answer(*map(place, messages), messages=messages)
    return run


# ---- the plain course


def test_an_update_of_an_idle_run_makes_a_task_that_is_not_stored() -> None:
    run = an_idle_run().update()
    assert run.kinds(5) == []
    [message] = run.sent(DispatchWorkflowTask)
    assert message.scheduled_event_id == 5
    assert not run.sent(NotifyHistory)
    run.take_task()
    assert run.kinds(5) == []
    assert run.shown()[4:] == ["TASK_SCHEDULED", "TASK_STARTED"]


def test_it_comes_with_the_task_and_counts_after_the_event_before_started() -> None:
    run = an_idle_run().update("u-1")
    run.take_task()
    [message] = run.delivered()
    assert message == ProtocolMessage(
        id="u-1/request", protocol_instance_id="u-1", event_id=5, body=update_request("u-1")
    )


def test_accepted_and_completed_it_is_written_behind_its_task() -> None:
    run = an_idle_run().update()
    claim = run.wait(2).take_task()
    finish(run.wait(1))
    assert run.kinds(5) == ENDED
    scheduled, started, completed = run.events[4:7]
    assert scheduled.event_time == claim.scheduled_at
    assert started.event_time == claim.started_at
    assert started.attributes.scheduled_event_id == 5
    assert completed.event_time == run.now
    accepted = run.event(8)
    assert accepted.protocol_instance_id == "u"
    assert accepted.accepted_request_message_id == "u/request"
    assert accepted.accepted_request == update_request()
    ended = run.event(9)
    assert ended.accepted_event_id == 8
    assert ended.meta.update_id == "u"
    assert ended.outcome == Outcome(success=text("done"))
    assert run.state.volatile.task is None


def test_messages_stand_at_their_commands_and_the_others_behind_all() -> None:
    run = an_idle_run().update("a").update("b")
    run.take_task()
    messages = (acceptance("a"), response("a"), acceptance("b"))
    run.answer(
        place(messages[0]), start_timer(), place(messages[1]), start_timer("t2"), messages=messages
    )
    assert run.kinds(8) == [
        "UPDATE_ACCEPTED",
        "TIMER_STARTED",
        "UPDATE_COMPLETED",
        "TIMER_STARTED",
        "UPDATE_ACCEPTED",
    ]


def test_a_later_task_may_complete_what_was_accepted() -> None:
    run = accept(an_idle_run())
    assert run.updates["u"].request is None
    run.signal().take_task()
    message = response()
    run.answer(place(message), messages=(message,))
    assert run.kinds(9) == ["SIGNALED", *WRITTEN, "UPDATE_COMPLETED"]
    assert run.event(-1).accepted_event_id == 8
    assert run.updates["u"].completed_event_id == 13


def test_a_failure_is_an_outcome_and_the_run_goes_on() -> None:
    run = an_idle_run().update()
    run.take_task()
    outcome = Outcome(failure=a_failure("Unlucky"))
    messages = (acceptance(), response(outcome=outcome))
    run.answer(*map(place, messages), messages=messages)
    assert run.event(-1).outcome == outcome
    assert run.state.is_open


def test_each_step_of_an_update_is_told_with_a_higher_version() -> None:
    run = an_idle_run().update()
    [admitted] = run.sent(NotifyUpdate)
    run.take_task()
    finish(run)
    accepted, completed = run.sent(NotifyUpdate)
    assert admitted.version < accepted.version < completed.version
    assert completed.version == run.updates["u"].version
    assert {effect.update_id for effect in (admitted, accepted, completed)} == {"u"}


# ---- tasks that wait or run


def test_a_task_that_waits_takes_it_along() -> None:
    run = a_run().update()
    assert run.kinds() == ["STARTED", "TASK_SCHEDULED"]
    run.take_task()
    assert [message.event_id for message in run.delivered()] == [2]
    finish(run)
    assert run.kinds(3) == ["TASK_STARTED", "TASK_COMPLETED", "UPDATE_ACCEPTED", "UPDATE_COMPLETED"]


def test_one_that_came_during_a_task_gets_a_speculative_one() -> None:
    run = a_run()
    run.take_task()
    run.update()
    assert run.delivered() == ()
    run.answer()
    assert run.kinds(3) == ["TASK_STARTED", "TASK_COMPLETED"]
    run.take_task()
    finish(run)
    assert run.kinds(5) == ENDED


def test_the_answering_worker_may_take_the_speculative_task_at_once() -> None:
    run = a_run()
    run.take_task()
    run.update().answer(next_claim=ClaimTask(request_id="next"))
    assert run.claim is not None
    assert run.claim.is_speculative
    assert len(run.delivered()) == 1
    assert run.kinds()[-1] == "TASK_COMPLETED"


def test_a_fact_makes_a_waiting_speculative_task_one_like_any_other() -> None:
    run = an_idle_run().update().wait(1).signal()
    assert run.kinds(5) == ["TASK_SCHEDULED", "SIGNALED"]
    assert run.event(5).attempt == 1
    run.take_task()
    assert [message.event_id for message in run.delivered()] == [6]
    run.answer(messages=(rejection(),))
    assert run.kinds(7) == ["TASK_STARTED", "TASK_COMPLETED"]


def test_a_timer_that_fires_makes_it_one_too() -> None:
    run = a_run()
    run.work(start_timer(after=3))
    run.wait(1).update().tick(2)
    assert run.kinds(6) == ["TASK_SCHEDULED", "TIMER_FIRED"]


def test_a_second_update_joins_the_speculative_task_that_waits() -> None:
    run = an_idle_run().update("a").update("b")
    assert not run.sent(DispatchWorkflowTask)
    run.take_task()
    assert [message.protocol_instance_id for message in run.delivered()] == ["a", "b"]


def test_a_speculative_task_that_nobody_takes_becomes_one_that_waits() -> None:
    run = an_idle_run().update()
    scheduled_at = run.now
    assert run.last.next_deadline == run.now + seconds(5)
    run.tick(4)
    assert run.kinds(5) == []
    run.tick(1)
    assert run.kinds(5) == ["TASK_SCHEDULED", "TASK_TIMED_OUT", "TASK_SCHEDULED"]
    assert run.events[4].event_time == scheduled_at
    assert run.event(6).timeout_type is TimeoutType.SCHEDULE_TO_START
    assert (run.event(6).scheduled_event_id, run.event(6).started_event_id) == (5, 0)
    assert run.event(7).attempt == 1
    assert len(run.sent(DispatchWorkflowTask)) == 1
    run.tick(60).take_task()
    assert [message.event_id for message in run.delivered()] == [7]
    finish(run)


def test_a_start_delay_ends_and_a_refused_update_brings_it_back() -> None:
    run = a_run(workflow_start_delay=timedelta(seconds=60))
    run.update().take_task()
    assert run.kinds() == ["STARTED"]
    assert [message.event_id for message in run.delivered()] == [2]
    run.answer(messages=(rejection(),))
    assert run.kinds() == ["STARTED"]
    run.tick(60)
    assert run.kinds() == ["STARTED", "TASK_SCHEDULED"]


def test_a_start_delay_that_ends_meanwhile_makes_the_task_one_like_any_other() -> None:
    run = a_run(workflow_start_delay=timedelta(seconds=3))
    run.wait(1).update().tick(2)
    assert run.kinds() == ["STARTED", "TASK_SCHEDULED"]
    assert len(run.sent(DispatchWorkflowTask)) == 0
    run.take_task()
    finish(run)


# ---- refused


def test_a_refused_update_leaves_no_trace() -> None:
    run = an_idle_run().update()
    before = run.state.recorded.next_event_id
    run.take_task()
    answer = run.answer(messages=(rejection(),))
    assert answer.reset_event_id == 3
    assert run.kinds(5) == []
    assert run.state.recorded.next_event_id == before
    assert run.state.volatile.task is None
    assert run.last.next_deadline is None
    row = run.updates["u"]
    assert row.rejection == a_failure("Rejected", "no")
    [told] = run.sent(NotifyUpdate)
    assert told.version == row.version


def test_a_refused_id_may_be_tried_again() -> None:
    run = an_idle_run().update()
    run.take_task()
    run.answer(messages=(rejection(),))
    first = run.updates["u"]
    run.update()
    assert run.updates["u"].version > first.version
    run.take_task()
    finish(run)
    assert run.kinds(5) == ENDED


def test_the_answer_is_forgotten_after_a_while() -> None:
    run = an_idle_run()
    for update_id in ("a", "b"):
        run.update(update_id).take_task()
        run.answer(messages=(rejection(update_id),))
        run.wait(40)
    run.update("c")
    assert set(run.updates) == {"b", "c"}


def test_no_more_answers_are_kept_than_the_limit_says() -> None:
    run = an_idle_run(Limits(update_answers=2))
    for number in range(5):
        run.update(f"u{number}").take_task()
        run.answer(messages=(rejection(f"u{number}"),))
    run.update("last")
    assert set(run.updates) == {"u3", "u4", "last"}


def test_a_refusal_beside_other_work_leaves_the_tasks_events_only() -> None:
    run = an_idle_run().signal().update()
    run.take_task()
    run.answer(messages=(rejection(),))
    assert run.kinds(5) == ["SIGNALED", *WRITTEN]


def test_a_refusal_with_a_command_is_written() -> None:
    run = an_idle_run().update()
    run.take_task()
    answer = run.answer(start_timer(), messages=(rejection(),))
    assert run.kinds(5) == [*WRITTEN, "TIMER_STARTED"]
    assert answer.reset_event_id == 0


def test_a_signal_during_the_task_makes_it_written() -> None:
    run = an_idle_run().update()
    run.take_task()
    run.signal().answer(messages=(rejection(),))
    assert run.kinds(5) == [*WRITTEN, "SIGNALED", "TASK_SCHEDULED"]


def test_a_timer_that_came_due_during_the_task_makes_it_written() -> None:
    run = a_run()
    run.work(start_timer(after=3))
    run.wait(1).update().take_task()
    run.wait(3).answer(messages=(rejection(),))
    assert run.kinds(6) == [*WRITTEN, "TIMER_FIRED", "TASK_SCHEDULED"]


@pytest.mark.parametrize(("timers", "written"), [(10, False), (11, True)])
def test_a_task_that_showed_many_events_is_written(timers: int, written: bool) -> None:
    run = a_run()
    run.work(*(start_timer(f"t{number}", 600) for number in range(timers)))
    before = len(run.events)
    run.update().take_task()
    run.answer(messages=(rejection(),), can_forget_events=True)
    assert (len(run.events) > before) is written


def test_a_worker_that_can_forget_nothing_has_every_event_written() -> None:
    run = a_run()
    run.work(start_timer(after=600))
    run.update().take_task()
    run.answer(messages=(rejection(),))
    assert run.kinds(6) == WRITTEN


def test_what_the_worker_ignores_is_refused() -> None:
    run = an_idle_run().update("a").update("b")
    run.take_task()
    finish(run, "a")
    refused = run.updates["b"].rejection
    assert refused is not None
    assert refused.application_failure_info is not None
    assert refused.application_failure_info.type == "UnprocessedUpdate"
    run.update("c").take_task()
    run.answer(can_forget_events=True)
    assert run.kinds(5) == ENDED
    assert run.updates["c"].rejection == refused


def test_one_that_came_during_the_task_is_not_taken_for_ignored() -> None:
    run = an_idle_run().update("a")
    run.take_task()
    run.update("b").answer(messages=(rejection("a"),))
    assert set(run.state.volatile.updates) == {"b"}
    run.take_task()
    assert [message.protocol_instance_id for message in run.delivered()] == ["b"]
    assert run.kinds(5) == []


def test_a_heartbeat_is_written_and_refuses_nothing() -> None:
    run = an_idle_run().update()
    run.take_task()
    run.answer(force_create_new_workflow_task=True)
    assert run.kinds(5) == [*WRITTEN, "TASK_SCHEDULED"]
    assert set(run.state.volatile.updates) == {"u"}


def test_a_stale_token_does_not_fit_a_later_task_with_the_same_ids() -> None:
    run = an_idle_run().update("a")
    old = run.take_task()
    run.answer(messages=(rejection("a"),))
    run.wait(1).update("b").take_task()
    run.claim = old
    with pytest.raises(NotFoundError, match="Workflow task not found"):
        run.answer(messages=(rejection("b"),))


# ---- tasks that fail


def test_a_speculative_task_that_fails_is_written_and_the_update_comes_again() -> None:
    run = an_idle_run().update()
    run.take_task()
    run.fail_task()
    assert run.kinds(5) == ["TASK_SCHEDULED", "TASK_STARTED", "TASK_FAILED"]
    claim = run.take_task()
    assert claim.attempt == 2
    assert [message.event_id for message in run.delivered()] == [8]
    finish(run)
    assert run.kinds(8) == ENDED


def test_one_that_times_out_is_written_too() -> None:
    run = an_idle_run().update()
    run.take_task()
    run.tick(10)
    assert run.kinds(5) == ["TASK_SCHEDULED", "TASK_STARTED", "TASK_TIMED_OUT"]
    assert run.take_task().attempt == 2


def test_one_whose_worker_died_is_written_too() -> None:
    run = an_idle_run().update()
    run.take_task(owner="boot-1")
    run.apply(TaskLost(owner="boot-1"))
    assert run.kinds(5) == ["TASK_SCHEDULED", "TASK_STARTED", "TASK_TIMED_OUT"]


def test_a_bad_command_ends_the_wait_for_what_waits() -> None:
    run = an_idle_run().update()
    run.take_task()
    with pytest.raises(InvalidArgumentError, match=r"TimerId is not set"):
        run.answer(start_timer(""), messages=(rejection(),))
    assert run.kinds(5) == ["TASK_SCHEDULED", "TASK_STARTED", "TASK_FAILED"]
    assert run.updates["u"].is_aborted
    assert run.sent(NotifyUpdate)


def test_a_bad_command_of_a_later_attempt_does_so_too_and_changes_nothing_else() -> None:
    run = an_idle_run().update()
    run.take_task()
    run.fail_task()
    claim = run.take_task()
    with pytest.raises(InvalidArgumentError, match=r"TimerId is not set"):
        run.answer(start_timer(""))
    assert run.updates["u"].is_aborted
    assert run.state.volatile.task == claim
    assert run.kinds(8) == []


def test_an_accepted_update_outlives_a_bad_command() -> None:
    run = accept(an_idle_run()).signal()
    run.take_task()
    with pytest.raises(InvalidArgumentError):
        run.answer(start_timer(""))
    run.take_task()
    message = response()
    run.answer(place(message), messages=(message,))
    assert run.kinds()[-1] == "UPDATE_COMPLETED"


def test_an_unhandled_command_lets_updates_wait() -> None:
    run = a_run()
    run.take_task()
    run.signal().update()
    with pytest.raises(InvalidArgumentError, match="UnhandledCommand"):
        run.answer(complete_run())
    run.take_task()
    assert len(run.delivered()) == 1


# ---- bad messages


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ((response("u"),), "received \\*update.Response message while in state Sent"),
        ((acceptance("u"), acceptance("u")), "absent message ID u/accept"),
        ((response("other"),), "update other wasn't found on the server"),
        ((acceptance("other"),), "update other wasn't found on the server"),
        (
            (ProtocolMessage(id="m", protocol_instance_id="u", body=Request()),),
            "unsupported message Request",
        ),
    ],
    ids=["answer before acceptance", "twice the same", "unknown answer", "unknown", "odd"],
)
def test_a_message_that_does_not_fit_fails_the_task(
    messages: tuple[ProtocolMessage, ...], text: str
) -> None:
    run = an_idle_run().update()
    run.take_task()
    with pytest.raises(InvalidArgumentError, match=f"^BadUpdateWorkflowExecutionMessage: .*{text}"):
        run.answer(*map(place, messages), messages=messages)
    assert run.kinds(5) == ["TASK_SCHEDULED", "TASK_STARTED", "TASK_FAILED"]
    assert run.event(-1).cause is Cause.BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE


def test_what_is_accepted_can_not_be_accepted_again() -> None:
    run = accept(an_idle_run()).signal()
    run.take_task()
    with pytest.raises(InvalidArgumentError, match=r"Acceptance message while in state Accepted"):
        run.answer(messages=(acceptance(),))


def test_an_answer_needs_an_outcome() -> None:
    run = accept(an_idle_run()).signal()
    run.take_task()
    message = ProtocolMessage(id="m", protocol_instance_id="u", body=Response())
    with pytest.raises(InvalidArgumentError, match="outcome is not set"):
        run.answer(messages=(message,))


def test_a_message_without_a_body_is_refused_whole() -> None:
    run = an_idle_run().update()
    claim = run.take_task()
    with pytest.raises(InvalidArgumentError, match=r"^nil message body$"):
        run.answer(messages=(ProtocolMessage(id="m", protocol_instance_id="u"),))
    assert run.state.volatile.task == claim
    assert set(run.state.volatile.updates) == {"u"}


@pytest.mark.parametrize(
    ("messages", "kind"),
    [
        ((acceptance(accepted_request=update_request(args=blob(5_001))),), "Acceptance"),
        ((acceptance(), response(outcome=Outcome(success=blob(5_001)))), "Response"),
        ((rejection(failure=Failure(message="x" * 5_001)),), "Rejection"),
    ],
    ids=["request", "result", "failure"],
)
def test_a_message_that_is_too_big_ends_the_run(
    messages: tuple[ProtocolMessage, ...], kind: str
) -> None:
    run = an_idle_run(Limits(blob_bytes=5_000)).update()
    run.take_task()
    with pytest.raises(InvalidArgumentError, match=f"update.v1.{kind} exceeds size limit"):
        run.answer(start_timer(), messages=messages)
    assert run.kinds(5) == ["TASK_SCHEDULED", "TASK_STARTED", "TASK_FAILED", "TERMINATED"]
    assert run.updates["u"].is_aborted


# ---- the same id, and limits


def test_an_id_that_waits_or_was_accepted_is_not_taken_twice() -> None:
    run = an_idle_run().update()
    waiting = run.updates["u"]
    run.update(args=text("other"))
    assert run.updates["u"] == waiting
    run.take_task()
    message = acceptance()
    run.answer(place(message), messages=(message,))
    run.update()
    assert run.updates["u"].accepted_event_id == 8
    run.signal().take_task()
    run.answer(messages=(response(),))
    events = len(run.events)
    run.update()
    assert len(run.events) == events
    assert run.state.volatile.task is None


def test_a_closed_run_knows_what_was_accepted_and_takes_nothing_new() -> None:
    run = accept(an_idle_run(), "known").terminate()
    run.update("known")
    with pytest.raises(NotFoundError, match=r"^workflow execution already completed$"):
        run.update("new")


def test_ten_may_be_in_flight_accepted_ones_count() -> None:
    run = accept(an_idle_run(), "first")
    for number in range(9):
        run.update(f"u{number}")
    with pytest.raises(ResourceExhaustedError, match=r"in-flight updates .* \(10\)") as caught:
        run.update("one more")
    assert caught.value.resource_cause is ResourceExhaustedCause.CONCURRENT_LIMIT
    run.update("first")
    run.take_task()
    run.answer(messages=tuple(rejection(f"u{number}") for number in range(9)))
    run.update("one more")


def test_the_total_counts_accepted_and_waiting_ones_and_no_refused_ones() -> None:
    run = an_idle_run(Limits(updates=2))
    run.update("no").take_task()
    run.answer(messages=(rejection("no"),))
    run.update("a").take_task()
    finish(run, "a")
    run.update("b")
    with pytest.raises(FailedPreconditionError, match=r"has been reached \(2\)"):
        run.update("c")
    run.update("a")


def test_what_waits_has_a_limited_size() -> None:
    run = an_idle_run(Limits(updates_bytes=1_000))
    run.update("big", blob(2_000))
    with pytest.raises(ResourceExhaustedError, match="total payload size"):
        run.update("more", blob(10))


def test_a_run_whose_task_keeps_failing_takes_no_new_ones() -> None:
    run = an_idle_run().update("early")
    run.take_task()
    run.fail_task()
    run.update("still")
    run.take_task()
    run.fail_task()
    with pytest.raises(WorkflowNotReadyError, match="due to Workflow Task in failed state"):
        run.update("late")
    run.update("early")
    run.take_task()
    assert len(run.delivered()) == 2


def test_a_paused_run_takes_none() -> None:
    run = an_idle_run()
    run.state.recorded.status = Status.PAUSED
    run.is_bent = True
    with pytest.raises(FailedPreconditionError, match="Workflow is paused"):
        run.update()


# ---- the end of the run


def test_the_handler_may_end_with_the_run() -> None:
    run = an_idle_run().update()
    run.take_task()
    messages = (acceptance(), response())
    run.answer(*map(place, messages), complete_run(), messages=messages)
    assert run.kinds(8) == ["UPDATE_ACCEPTED", "UPDATE_COMPLETED", "COMPLETED"]


def test_a_refusal_counts_although_the_run_ends_with_it() -> None:
    run = an_idle_run().update()
    run.take_task()
    run.answer(complete_run(), messages=(rejection(),))
    assert run.updates["u"].rejection is not None


def test_a_refusal_may_have_a_command() -> None:
    run = an_idle_run().update("a").update("b")
    run.take_task()
    messages = (rejection("a"), acceptance("b"))
    run.answer(*map(place, messages), messages=messages)
    assert run.kinds(8) == ["UPDATE_ACCEPTED"]
    assert run.updates["a"].rejection is not None


def test_what_would_be_written_behind_the_end_is_dropped() -> None:
    run = accept(an_idle_run()).signal()
    run.take_task()
    run.answer(complete_run(), messages=(response(),))
    assert run.kinds()[-1] == "COMPLETED"
    assert run.updates["u"].completed_event_id == 0


def test_an_update_that_waits_does_not_keep_the_run_from_ending() -> None:
    run = a_run()
    run.take_task()
    run.update().answer(complete_run())
    assert run.kinds()[-1] == "COMPLETED"
    assert LAST_VERSION in [effect.version for effect in run.sent(NotifyUpdate)]


@pytest.mark.parametrize("command", [complete_run(), fail_run(), cancel_run(), continue_as_new()])
def test_who_waits_for_an_accepted_update_hears_of_the_end(command: object) -> None:
    run = accept(an_idle_run()).signal()
    run.take_task()
    run.answer(command)  # type: ignore[arg-type]
    assert [effect.update_id for effect in run.sent(NotifyUpdate)] == ["u"]


def test_a_retried_run_takes_no_updates_over() -> None:
    run = an_idle_run(retry_policy=RetryPolicy(initial_interval=seconds(1)))
    accept(run).signal()
    run.take_task()
    run.answer(fail_run())
    assert run.next_run is not None
    assert run.next_run.state.recorded.open_updates == {}
    assert run.next_run.state.recorded.update_count == 0


def test_an_end_by_force_writes_a_started_speculative_task_and_no_waiting_one() -> None:
    waiting = an_idle_run().update().terminate()
    assert waiting.kinds(5) == ["TERMINATED"]
    started = an_idle_run().update()
    started.take_task()
    started.terminate()
    assert started.kinds(5) == ["TASK_SCHEDULED", "TASK_STARTED", "TASK_FAILED", "TERMINATED"]
    assert started.event(-2).cause is Cause.FORCE_CLOSE_COMMAND


# ---- update-with-start


def test_a_run_may_begin_with_an_update() -> None:
    order = AdmitUpdate(update_id="u", request=update_request())
    run = a_run(start_options={"update": order})
    assert run.kinds() == ["STARTED", "TASK_SCHEDULED"]
    run.take_task()
    assert len(run.delivered()) == 1
    finish(run)
    assert run.kinds(3) == ["TASK_STARTED", "TASK_COMPLETED", "UPDATE_ACCEPTED", "UPDATE_COMPLETED"]
