"""Local activities: handed to the worker inside the task, recorded as markers, not run again."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

from tests.support.live_run import LiveRun, asked, payloads
from wfcore import workflow
from wfcore.exceptions import ActivityError, ApplicationError
from wfcore.protocol import events
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.replay.local_activities import LocalActivityOutcome
from wfcore.workflow import ActivityCancellationType

TEN = timedelta(seconds=10)


@workflow.defn
class Local:
    @workflow.run
    async def run(self) -> list[Any]:
        before = workflow.now()
        one = await workflow.execute_local_activity("near", "x", start_to_close_timeout=TEN)
        after = workflow.now()
        two = await workflow.execute_activity("far", start_to_close_timeout=TEN)
        return [one, two, (after - before).total_seconds()]


def test_a_local_activity_runs_inside_the_task() -> None:
    run = LiveRun(Local)
    task = run.begin_task()
    result = run.instance.activate(task)
    assert result.commands == ()
    (activity,) = result.local_activities
    assert (activity.number, activity.activity_id, activity.attempt) == (1, "1", 1)
    assert activity.input == payloads("x")

    result = run.end_local(task, activity, "done")
    assert result.local_activities == ()
    assert asked(run.finish(result)) == ["RECORD_MARKER", "SCHEDULE_ACTIVITY_TASK"]
    scheduled: Any = run.event_of(events.ActivityTaskScheduled).attributes
    assert scheduled.activity_id == "2"  # the numbers count local ones too
    run.complete_activity("2", "back")
    run.work()
    # The time goes on to the end of the local activity.
    assert run.result() == ["done", "back", 0.02]


def test_two_are_told_in_the_order_in_which_they_ended() -> None:
    @workflow.defn
    class Two:
        @workflow.run
        async def run(self) -> list[str]:
            log: list[str] = []

            async def one(name: str) -> None:
                await workflow.execute_local_activity(name, start_to_close_timeout=TEN)
                log.append(name)

            await asyncio.gather(one("a"), one("b"))
            return log

    run = LiveRun(Two)
    task = run.begin_task()
    first, second = run.instance.activate(task).local_activities
    result = run.end_local(task, second, None)
    assert [activity.number for activity in result.local_activities] == [1]
    result = run.end_local(task, first, None)
    assert asked(run.finish(result)) == [
        "RECORD_MARKER",
        "RECORD_MARKER",
        "COMPLETE_WORKFLOW_EXECUTION",
    ]
    assert run.result() == ["b", "a"]


@workflow.defn
class Careful:
    @workflow.run
    async def run(self) -> str:
        try:
            await workflow.execute_local_activity("near", start_to_close_timeout=TEN)
        except ActivityError:
            return "wrapped"
        except ApplicationError as error:
            return f"bare {error.type}"
        return "done"


def failed(run: LiveRun, task: Any, number: int, attempt: int, backoff: timedelta | None) -> Any:
    now: datetime = run.history[-1].event_time
    return run.instance.resolve_local_activity(
        task,
        LocalActivityOutcome(
            number=number,
            attempt=attempt,
            complete_time=now,
            original_schedule_time=now,
            failure=Failure(
                message="no", application_failure_info=ApplicationFailureInfo(type="Bad")
            ),
            backoff=backoff,
        ),
    )


def test_a_failure_is_not_wrapped() -> None:
    run = LiveRun(Careful)
    task = run.begin_task()
    run.instance.activate(task)
    run.finish(failed(run, task, 1, 1, None))
    assert run.result() == "bare Bad"


def test_a_long_backoff_becomes_a_timer_and_a_new_number() -> None:
    run = LiveRun(Careful)
    task = run.begin_task()
    run.instance.activate(task)
    result = failed(run, task, 1, 1, timedelta(seconds=90))
    assert asked(run.finish(result)) == ["RECORD_MARKER", "START_TIMER"]
    run.fire("1")
    task = run.begin_task()
    (again,) = run.instance.activate(task).local_activities
    assert (again.number, again.activity_id, again.attempt) == (2, "2", 2)
    assert again.original_schedule_time is not None
    run.finish(run.end_local(task, again, None))
    assert run.result() == "done"


def test_a_task_may_be_answered_before_the_end_and_another_goes_on() -> None:
    run = LiveRun(Careful)
    task = run.begin_task()
    (activity,) = run.instance.activate(task).local_activities
    run.commit(run.last)  # answered with nothing but the wish for another task
    task = run.begin_task()
    result = run.instance.activate(task)
    assert [still.number for still in result.local_activities] == [activity.number]
    run.finish(run.end_local(task, activity, None))
    assert run.result() == "done"


def test_a_lost_worker_runs_it_again() -> None:
    run = LiveRun(Careful)
    run.instance.activate(run.begin_task())
    run.commit(run.last)
    run.evict()
    task = run.begin_task()
    (activity,) = run.instance.activate(task).local_activities
    run.finish(run.end_local(task, activity, None))
    assert run.result() == "done"


@workflow.defn
class Cancels:
    def __init__(self) -> None:
        self.stop = False

    @workflow.run
    async def run(self, kind: int) -> str:
        handle = workflow.start_local_activity(
            "near", start_to_close_timeout=TEN, cancellation_type=ActivityCancellationType(kind)
        )
        await workflow.wait_condition(lambda: self.stop)
        handle.cancel()
        try:
            return str(await handle)
        except ActivityError as error:
            return f"{error.message}: {type(error.cause).__name__}"

    @workflow.signal
    def halt(self) -> None:
        self.stop = True


def test_cancelled_it_is_over_at_once() -> None:
    run = LiveRun(Cancels, int(ActivityCancellationType.TRY_CANCEL))
    run.instance.activate(run.begin_task())
    run.commit(run.last)
    run.signal("halt")
    result = run.instance.activate(run.begin_task())
    assert result.local_activities == ()
    assert asked(run.finish(result)) == ["RECORD_MARKER", "COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == "Local Activity cancelled: CancelledError"


def test_cancelled_it_may_be_waited_for() -> None:
    run = LiveRun(Cancels, int(ActivityCancellationType.WAIT_CANCELLATION_COMPLETED))
    run.instance.activate(run.begin_task())
    run.commit(run.last)
    run.signal("halt")
    task = run.begin_task()
    (activity,) = run.instance.activate(task).local_activities
    assert activity.is_cancel_requested
    run.finish(run.end_local(task, activity, "finished anyway"))
    assert run.result() == "finished anyway"
