"""Activities that a workflow calls: commands out, results in, cancellation by type."""

import asyncio
from datetime import timedelta

import pytest

from tests.support.live_run import LiveRun, asked
from wfcore import activity, workflow
from wfcore.exceptions import ActivityError
from wfcore.protocol import commands
from wfcore.workflow import ActivityCancellationType

TEN = timedelta(seconds=10)


@activity.defn
async def greet(name: str) -> str:
    return f"Hello, {name}!"


@activity.defn
async def add(first: int, second: int) -> int:
    return first + second


@workflow.defn
class Greeting:
    @workflow.run
    async def run(self, name: str) -> str:
        return await workflow.execute_activity(greet, name, start_to_close_timeout=TEN)


def test_an_activity_is_scheduled_and_its_result_returned() -> None:
    run = LiveRun(Greeting, "Ann")

    (command,) = run.work()
    attributes = command.attributes
    assert isinstance(attributes, commands.ScheduleActivityTask)
    assert attributes.activity_id == "1"
    assert attributes.activity_type is not None
    assert attributes.activity_type.name == "greet"
    assert attributes.task_queue is not None
    assert attributes.task_queue.name == "queue"
    assert attributes.start_to_close_timeout == TEN

    run.complete_activity("1", "Hello, Ann!")
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == "Hello, Ann!"


def test_an_activity_without_a_limit_is_refused() -> None:
    @workflow.defn
    class Unlimited:
        @workflow.run
        async def run(self) -> None:
            await workflow.execute_activity(greet, "Ann")

    result = LiveRun(Unlimited).fail()
    assert isinstance(result.error, ValueError)
    assert "start_to_close_timeout" in str(result.error)


@workflow.defn
class ThreeAtOnce:
    @workflow.run
    async def run(self) -> list[int]:
        return list(
            await asyncio.gather(
                *(
                    workflow.execute_activity(add, args=[i, i], start_to_close_timeout=TEN)
                    for i in (1, 2, 3)
                )
            )
        )


def test_results_may_come_in_any_order() -> None:
    run = LiveRun(ThreeAtOnce)
    assert asked(run.work()) == ["SCHEDULE_ACTIVITY_TASK"] * 3
    run.complete_activity("3", 6)
    assert run.work() == []
    run.complete_activity("2", 4)
    run.complete_activity("1", 2)
    run.work()
    assert run.result() == [2, 4, 6]


@workflow.defn
class Careful:
    """Says what an activity's error looks like."""

    @workflow.run
    async def run(self) -> str:
        try:
            await workflow.execute_activity("anything", start_to_close_timeout=TEN)
        except ActivityError as error:
            cause = error.cause
            return f"{error.message}/{error.activity_type}/{error.activity_id}/{cause!r}"
        return "?"


def test_a_failure_is_wrapped_with_the_facts_of_the_call() -> None:
    run = LiveRun(Careful)
    run.work()
    run.fail_activity("1", "no luck", "Unlucky")
    run.work()
    assert run.result().startswith("Activity task failed/anything/1/ApplicationError(")


def test_a_timeout_is_wrapped_too() -> None:
    run = LiveRun(Careful)
    run.work()
    run.time_out_activity("1")
    run.work()
    assert run.result().startswith("Activity task timed out/anything/1/TimeoutError(")


def test_an_uncaught_failure_fails_the_workflow_with_its_causes() -> None:
    run = LiveRun(Greeting, "Ann")
    run.work()
    run.fail_activity("1", "no luck", "Unlucky")
    assert asked(run.work()) == ["FAIL_WORKFLOW_EXECUTION"]
    failure = run.failure()
    assert failure.message == "Activity task failed"
    assert failure.cause is not None
    assert failure.cause.message == "no luck"


@workflow.defn
class Cancelling:
    """A signal cancels an activity; the result says what the code saw, and the signal's text."""

    def __init__(self) -> None:
        self.stop = False

    @workflow.run
    async def run(self, kind: int, at_once: bool) -> str:
        handle = workflow.start_activity(
            "slow",
            start_to_close_timeout=TEN,
            cancellation_type=ActivityCancellationType(kind),
        )
        if not at_once:
            await workflow.wait_condition(lambda: self.stop)
        handle.cancel()
        try:
            return str(await handle)
        except ActivityError as error:
            return f"{error.message}: {type(error.cause).__name__}"

    @workflow.signal
    def halt(self) -> None:
        self.stop = True


CANCELLED = "Activity cancelled: CancelledError"


def test_try_cancel_asks_and_goes_on_at_once() -> None:
    run = LiveRun(Cancelling, int(ActivityCancellationType.TRY_CANCEL), False)
    run.work()
    run.signal("halt")
    assert asked(run.work()) == ["REQUEST_CANCEL_ACTIVITY_TASK", "COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == CANCELLED


def test_wait_asks_once_and_takes_what_the_activity_says() -> None:
    run = LiveRun(Cancelling, int(ActivityCancellationType.WAIT_CANCELLATION_COMPLETED), False)
    run.work()
    run.signal("halt")
    assert asked(run.work()) == ["REQUEST_CANCEL_ACTIVITY_TASK"]
    run.complete_activity("1", "finished anyway")
    run.work()
    assert run.result() == "finished anyway"


def test_wait_ends_as_cancelled_when_the_activity_does() -> None:
    run = LiveRun(Cancelling, int(ActivityCancellationType.WAIT_CANCELLATION_COMPLETED), False)
    run.work()
    run.signal("halt")
    run.work()
    run.cancel_activity("1")
    run.work()
    assert run.result() == CANCELLED


def test_abandon_goes_on_without_a_command() -> None:
    run = LiveRun(Cancelling, int(ActivityCancellationType.ABANDON), False)
    run.work()
    run.signal("halt")
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == CANCELLED


@pytest.mark.parametrize("kind", [0, 1])
def test_cancelled_before_it_was_sent_it_leaves_no_trace(kind: int) -> None:
    run = LiveRun(Cancelling, kind, True)
    # The handle never ran, so awaiting it raises asyncio's own error, as for any task.
    assert asked(run.work()) == ["FAIL_WORKFLOW_EXECUTION"]
    assert run.failure().canceled_failure_info is not None


def test_cancelled_once_it_runs_but_before_it_was_sent_it_ends_as_cancelled() -> None:
    @workflow.defn
    class Hasty:
        @workflow.run
        async def run(self) -> str:
            handle = workflow.start_activity("slow", start_to_close_timeout=TEN)
            await asyncio.sleep(0)
            handle.cancel()
            try:
                await handle
            except ActivityError as error:
                return f"{error.message}: {type(error.cause).__name__}"
            return "?"

    run = LiveRun(Hasty)
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == CANCELLED


@workflow.defn
class RacingWithCancel:
    """Cancelled while an activity runs; goes on if the cancellation gets lost."""

    @workflow.run
    async def run(self) -> str:
        for _ in range(2):
            await workflow.execute_activity("step", start_to_close_timeout=TEN)
        return "done"


def test_a_cancel_that_meets_a_result_is_not_lost() -> None:
    run = LiveRun(RacingWithCancel)
    run.work()
    run.complete_activity("1")
    run.request_cancel()
    assert asked(run.work()) == ["CANCEL_WORKFLOW_EXECUTION"]
    assert run.last.lang_flags == ()  # recorded by the first task


def test_ids_count_on_when_the_code_names_one_itself() -> None:
    @workflow.defn
    class Naming:
        @workflow.run
        async def run(self) -> None:
            for name in (None, "mine", None):
                workflow.start_activity("a", start_to_close_timeout=TEN, activity_id=name)
            await workflow.wait_condition(lambda: False)

    commands_ = LiveRun(Naming).work()
    assert [command.attributes.activity_id for command in commands_] == ["1", "mine", "3"]  # type: ignore[union-attr]
