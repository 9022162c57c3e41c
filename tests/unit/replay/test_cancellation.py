"""A cancel request reaches the main coroutine at its next await; what follows is up to it."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.support.live_run import LiveRun, asked
from wfcore import workflow
from wfcore.exceptions import ActivityError
from wfcore.protocol import events
from wfcore.protocol.common import WorkflowExecution
from wfcore.workflow import ActivityCancellationType

TEN = timedelta(seconds=10)


@workflow.defn
class Waits:
    """What it does about a cancel request is chosen by name."""

    @workflow.run
    async def run(self, how: str) -> str:
        try:
            await workflow.sleep(3600)
        except asyncio.CancelledError:
            if how == "clean up":
                await workflow.execute_activity("cleanup", start_to_close_timeout=TEN)
                raise
            if how == "go on":
                return f"went on: {workflow.cancellation_reason()}"
            raise
        return "slept"


def test_reraised_it_cancels_the_workflow_and_its_timer() -> None:
    run = LiveRun(Waits, "obey")
    run.work()
    run.request_cancel()
    assert asked(run.work()) == ["CANCEL_TIMER", "CANCEL_WORKFLOW_EXECUTION"]


def test_clean_up_code_may_call_activities() -> None:
    run = LiveRun(Waits, "clean up")
    run.work()
    run.request_cancel()
    assert asked(run.work()) == ["CANCEL_TIMER", "SCHEDULE_ACTIVITY_TASK"]
    run.complete_activity("1")
    assert asked(run.work()) == ["CANCEL_WORKFLOW_EXECUTION"]


def test_swallowed_it_is_over_and_its_reason_known() -> None:
    run = LiveRun(Waits, "go on")
    run.work()
    run.request_cancel("too expensive")
    assert asked(run.work()) == ["CANCEL_TIMER", "COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == "went on: too expensive"


def test_a_request_before_the_first_task_lets_the_code_begin() -> None:
    run = LiveRun(Waits, "go on")
    run.request_cancel()
    # The timer that the code started and cancelled at once leaves no trace.
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == "went on: "


@workflow.defn
class Shielded:
    """Finishes an activity although it is cancelled."""

    @workflow.run
    async def run(self) -> str:
        step = asyncio.create_task(
            workflow.execute_activity("step", start_to_close_timeout=TEN, result_type=str)
        )
        try:
            await asyncio.shield(step)
        except asyncio.CancelledError:
            return f"cancelled, but {await step}"
        return "?"


def test_what_is_shielded_goes_on() -> None:
    run = LiveRun(Shielded)
    run.work()
    run.request_cancel()
    assert run.work() == []
    run.complete_activity("1", "done")
    run.work()
    assert run.result() == "cancelled, but done"


@workflow.defn
class Calls:
    """Waits for an activity, by its cancellation type."""

    @workflow.run
    async def run(self, kind: int) -> None:
        await workflow.execute_activity(
            "slow",
            start_to_close_timeout=TEN,
            cancellation_type=ActivityCancellationType(kind),
        )


@pytest.mark.parametrize(
    ("kind", "commands"),
    [
        (ActivityCancellationType.TRY_CANCEL, ["REQUEST_CANCEL_ACTIVITY_TASK"]),
        (ActivityCancellationType.ABANDON, []),
    ],
)
def test_a_cancelled_activity_cancels_the_workflow_that_waits(
    kind: ActivityCancellationType, commands: list[str]
) -> None:
    run = LiveRun(Calls, int(kind))
    run.work()
    run.request_cancel()
    assert asked(run.work()) == [*commands, "CANCEL_WORKFLOW_EXECUTION"]


def test_a_workflow_that_waits_for_the_activitys_answer_is_cancelled_after_it() -> None:
    run = LiveRun(Calls, int(ActivityCancellationType.WAIT_CANCELLATION_COMPLETED))
    run.work()
    run.request_cancel()
    assert asked(run.work()) == ["REQUEST_CANCEL_ACTIVITY_TASK"]
    run.cancel_activity("1")
    assert asked(run.work()) == ["CANCEL_WORKFLOW_EXECUTION"]


def test_cancelled_error_without_a_request_fails_the_workflow() -> None:
    @workflow.defn
    class Gives:
        @workflow.run
        async def run(self) -> None:
            raise asyncio.CancelledError

    run = LiveRun(Gives)
    assert asked(run.work()) == ["FAIL_WORKFLOW_EXECUTION"]
    assert run.failure().canceled_failure_info is not None


def test_a_scope_is_a_task_and_is_cancelled_alone() -> None:
    @workflow.defn
    class Scopes:
        def __init__(self) -> None:
            self.stop = False

        @workflow.run
        async def run(self) -> list[str]:
            scope = asyncio.create_task(self.steps())
            await workflow.wait_condition(lambda: self.stop)
            scope.cancel()
            try:
                await scope
            except ActivityError as error:
                return [type(error.cause).__name__, str(workflow.cancellation_reason())]
            return []

        async def steps(self) -> None:
            await workflow.execute_activity("a", start_to_close_timeout=TEN)

        @workflow.signal
        def halt(self) -> None:
            self.stop = True

    run = LiveRun(Scopes)
    run.work()
    run.signal("halt")
    run.work()
    assert run.result() == ["CancelledError", "None"]


@workflow.defn
class Described:
    """Cancels what has a summary: each kind of operation that a history names a second time."""

    def __init__(self) -> None:
        self.stop = False

    @workflow.run
    async def run(self, kind: str) -> None:
        step = asyncio.ensure_future(await self.start(kind))
        await workflow.wait_condition(lambda: self.stop)
        step.cancel()
        await workflow.wait_condition(lambda: False)

    async def start(self, kind: str) -> asyncio.Future[Any]:
        if kind == "timer":
            return asyncio.create_task(workflow.sleep(60, summary="why"))
        if kind == "activity":
            return workflow.start_activity("a", start_to_close_timeout=TEN, summary="why")
        return await workflow.start_child_workflow(
            "Other", id="c", static_summary="why", static_details="and how"
        )

    @workflow.signal
    def halt(self) -> None:
        self.stop = True


@pytest.mark.parametrize("kind", ["timer", "activity", "child"])
def test_a_cancel_request_says_what_it_cancels_in_the_words_of_its_start(kind: str) -> None:
    run = LiveRun(Described, kind)
    (start,) = run.work()
    assert start.user_metadata is not None
    if kind == "child":
        run.add(
            events.ChildWorkflowExecutionStarted(
                initiated_event_id=run.event_of(
                    events.StartChildWorkflowExecutionInitiated
                ).event_id,
                workflow_execution=WorkflowExecution(workflow_id="c", run_id="r"),
            )
        )
        assert run.work() == []
    run.signal("halt")
    (cancel,) = run.work()
    assert "CANCEL" in cancel.command_type.name
    assert cancel.user_metadata == start.user_metadata
