"""On replay the code must ask for what is recorded; what differs is named with event and line."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from tests.support.live_run import LiveRun
from wfcore import workflow
from wfcore.exceptions import HistoryMismatchError, NondeterminismError
from wfcore.protocol import commands, events
from wfcore.protocol.common import ActivityType
from wfcore.protocol.enums import WorkflowTaskFailedCause
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.metadata import WorkflowTaskCompletedMetadata
from wfcore.replay.instance import replay_history
from wfcore.workflow import WorkflowDefinition

TEN = timedelta(seconds=10)


@workflow.defn
class Recorded:
    """What the histories below come from."""

    @workflow.run
    async def run(self) -> str:
        await workflow.execute_activity("charge", start_to_close_timeout=TEN)
        await workflow.sleep(1)
        return "done"


def recorded() -> list[HistoryEvent]:
    run = LiveRun(Recorded)
    run.work()
    run.complete_activity("1")
    run.work()
    run.fire("1")
    run.work()
    return run.history


def mismatch(workflow_class: type, history: list[HistoryEvent]) -> HistoryMismatchError:
    error = replay_history(WorkflowDefinition.must_from_class(workflow_class), history)
    assert isinstance(error, HistoryMismatchError), error
    return error


def changed(body: Callable[[], Any]) -> type:
    """A workflow with this body."""

    @workflow.defn
    class Changed:
        @workflow.run
        async def run(self) -> str:
            return await body()  # type: ignore[no-any-return]

    return Changed


def test_the_same_code_agrees() -> None:
    assert replay_history(WorkflowDefinition.must_from_class(Recorded), recorded()) is None


def test_another_kind_of_command_is_named_with_its_line() -> None:
    async def body() -> str:
        await workflow.sleep(7)
        return "done"

    error = mismatch(changed(body), recorded())
    assert error.event_id == 5
    assert error.event_type == "ACTIVITY_TASK_SCHEDULED"
    assert error.command == "START_TIMER, timer id '1'"
    assert re.search(r"test_matching\.py:\d+ in .*body$", error.location)
    text = str(error)
    assert (
        "the history has event 5 (ACTIVITY_TASK_SCHEDULED, type 'charge', activity id '1')" in text
    )
    assert "the code asked for START_TIMER, timer id '1' at " in text
    for advice in ("workflow.patched()", "deploy the old code again", "reset it"):
        assert advice in text


def test_another_activity_type_is_refused_by_the_flag_of_the_history() -> None:
    async def body() -> str:
        await workflow.execute_activity("refund", start_to_close_timeout=TEN)
        await workflow.sleep(1)
        return "done"

    history = recorded()
    assert "type 'refund'" in mismatch(changed(body), history).command

    def without_flags(event: HistoryEvent) -> HistoryEvent:
        if not isinstance(event.attributes, events.WorkflowTaskCompleted):
            return event
        old = msgspec.structs.replace(
            event.attributes, sdk_metadata=WorkflowTaskCompletedMetadata()
        )
        return msgspec.structs.replace(event, attributes=old)

    old_history = [without_flags(event) for event in history]
    assert replay_history(WorkflowDefinition.must_from_class(changed(body)), old_history) is None


def test_arguments_and_limits_may_change() -> None:
    async def body() -> str:
        await workflow.execute_activity("charge", "more", schedule_to_close_timeout=TEN)
        await workflow.sleep(99)
        return "other"

    assert replay_history(WorkflowDefinition.must_from_class(changed(body)), recorded()) is None


def test_a_missing_command_names_the_event() -> None:
    async def body() -> str:
        await workflow.wait_condition(lambda: False)
        return "never"

    error = mismatch(changed(body), recorded())
    assert (error.event_id, error.command) == (5, "")
    assert "the code asked for nothing more" in str(error)


def test_a_command_too_many_names_the_event_behind() -> None:
    async def body() -> str:
        workflow.start_activity("charge", start_to_close_timeout=TEN)
        workflow.start_activity("extra", start_to_close_timeout=TEN)
        await workflow.wait_condition(lambda: False)
        return "never"

    error = mismatch(changed(body), recorded())
    assert error.event_id == 6
    assert "'extra'" in error.command
    assert "the history has no such event before event 6 (ACTIVITY_TASK_STARTED" in str(error)


def test_a_history_that_is_cut_within_an_answer_is_no_mismatch() -> None:
    async def body() -> str:
        workflow.start_activity("charge", start_to_close_timeout=TEN)
        workflow.start_activity("extra", start_to_close_timeout=TEN)
        await workflow.wait_condition(lambda: False)
        return "never"

    definition = WorkflowDefinition.must_from_class(changed(body))
    assert replay_history(definition, recorded()[:5]) is None


def test_an_early_end_is_a_mismatch_at_the_run_method() -> None:
    async def body() -> str:
        return "at once"

    error = mismatch(changed(body), recorded())
    assert error.command == "COMPLETE_WORKFLOW_EXECUTION"
    assert error.location.endswith("Changed.run")


def test_a_failure_is_located_where_it_was_raised() -> None:
    async def failing() -> str:
        raise TimeoutError("too late")

    error = mismatch(changed(failing), recorded())
    assert error.command == "FAIL_WORKFLOW_EXECUTION"
    assert "failing" in error.location


def test_a_live_task_fails_with_the_cause_of_its_own() -> None:
    run = LiveRun(Recorded)
    run.work()
    scheduled = run.event_of(events.ActivityTaskScheduled)
    run.history[scheduled.event_id - 1] = msgspec.structs.replace(
        scheduled,
        attributes=msgspec.structs.replace(
            scheduled.attributes, activity_type=ActivityType(name="other")
        ),
    )
    run.complete_activity("1")
    result = run.fail()
    assert result.cause is WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR
    assert result.commands == ()
    assert result.failure is not None
    assert "event 5" in result.failure.message


def test_a_mismatch_fails_the_workflow_where_that_is_wanted() -> None:
    run = LiveRun(Recorded, failure_exception_types=[NondeterminismError], checks_replay=False)
    run.work()
    scheduled = run.event_of(events.ActivityTaskScheduled)
    run.history[scheduled.event_id - 1] = msgspec.structs.replace(
        scheduled, attributes=events.TimerStarted(timer_id="1")
    )
    result = run.instance.activate(run.begin_task())
    assert result.cause is None
    assert [type(command.attributes) for command in result.commands] == [
        commands.FailWorkflowExecution
    ]
