"""B. The cycle of workflow tasks, as the engine sees it: tasks are taken and answered by hand."""

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from tests.features import asks, feature
from tests.features.worlds import World
from wfcore.exceptions import InvalidArgumentError, NotFoundError
from wfcore.protocol import commands
from wfcore.protocol.common import WorkflowExecution, WorkflowType

SCHEDULED = "WORKFLOW_TASK_SCHEDULED"
CLAIMED = "WORKFLOW_TASK_STARTED"
ANSWERED = "WORKFLOW_TASK_COMPLETED"
FAILED = "WORKFLOW_TASK_FAILED"
TIMED_OUT = "WORKFLOW_TASK_TIMED_OUT"
CAUSE = "WORKFLOW_TASK_FAILED_CAUSE_"


@feature("B3")
def test_B03_commands_become_events_in_order(world: World) -> None:
    run = world.start("Ships")
    world.answer_next(
        asks.activity("pick"), asks.activity("pack"), asks.timer(5), asks.activity("send")
    )
    history = run.history()
    assert history.kinds[3:] == [
        ANSWERED,
        "ACTIVITY_TASK_SCHEDULED",
        "ACTIVITY_TASK_SCHEDULED",
        "TIMER_STARTED",
        "ACTIVITY_TASK_SCHEDULED",
    ]
    assert [event.id for event in history[4:]] == [5, 6, 7, 8]
    assert [event["activityId"] or event["timerId"] for event in history[4:]] == [
        "pick",
        "pack",
        "t",
        "send",
    ]
    assert {event["workflowTaskCompletedEventId"] for event in history[4:]} == {"4"}


class CrashError(Exception):
    """The process dies here."""


@feature("B4")
def test_B04_an_answer_is_one_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run = world.start("Ships")
    task = world.poll()
    before = run.history()
    kind = type(world.store.transaction("default", "any"))
    save = kind.save

    def crash(transaction: Any, change: Any) -> None:
        save(transaction, change)
        raise CrashError

    with monkeypatch.context() as patch:
        patch.setattr(kind, "save", crash)
        with pytest.raises(CrashError):
            world.answer(task, asks.activity("pick"), asks.timer(5))
    assert run.history() == before
    assert run.pending_activities == []
    assert not world.poll_activity().task_token
    world.answer(task, asks.activity("pick"), asks.timer(5))
    assert len(run.history()) == 6


def _signal(world: World, run: Any) -> None:
    run.signal("go")


def _cancel(world: World, run: Any) -> None:
    run.cancel()


def _timer(world: World, run: Any) -> None:
    world.advance(5)


def _activity(world: World, run: Any) -> None:
    world.complete_activity(world.take_activity())


def _child_ends(world: World, run: Any) -> None:
    world.run("child").terminate()


def _external_signal(world: World, run: Any) -> None:
    world.run("other").signal("go")
    other = world.poll(f"{world.queue}-other")
    target = WorkflowExecution(workflow_id=run.id)
    world.answer(
        other, commands.SignalExternalWorkflowExecution(execution=target, signal_name="go")
    )


@feature("B5")
@pytest.mark.parametrize(
    "trigger", [_signal, _cancel, _timer, _activity, _child_ends, _external_signal]
)
def test_B05_what_schedules_a_task(world: World, trigger: Callable[[World, Any], None]) -> None:
    world.start("Other", id="other", queue=f"{world.queue}-other")
    world.answer_next(queue=f"{world.queue}-other")
    run = world.start("Ships")
    child = commands.StartChildWorkflowExecution(
        workflow_id="child", workflow_type=WorkflowType(name="Child")
    )
    world.answer_next(asks.activity(), asks.timer(5), child)
    while (task := world.poll()).task_token:  # the child's start is told, and the child runs
        world.answer(task)
    before = run.history()
    assert before[-1].kind == ANSWERED
    trigger(world, run)
    after = run.history()
    assert len(after.of(SCHEDULED)) == len(before.of(SCHEDULED)) + 1
    assert after[-1].kind == SCHEDULED


@feature("B6")
def test_B06_one_task_brings_all_that_happened(world: World) -> None:
    run = world.start("Ships")
    for number in range(5):
        run.signal("go", number)
    assert len(run.history().of(SCHEDULED)) == 1
    task = world.answer_next()
    signals = [event for event in task.history.events if event.event_type.name.endswith("SIGNALED")]
    assert len(signals) == 5
    assert not world.poll().task_token


@feature("B7")
def test_B07_a_lost_worker_costs_ten_seconds(world: World) -> None:
    run = world.start("Ships")
    began = world.now()
    assert world.poll().task_token
    world.advance(9.9)
    assert TIMED_OUT not in run.kinds()
    world.advance(0.1)
    history = run.history()
    timed_out = history.only(TIMED_OUT)
    assert timed_out["timeoutType"] == "TIMEOUT_TYPE_START_TO_CLOSE"
    assert timed_out.time == began + timedelta(seconds=10)
    assert history[-1].kind == SCHEDULED
    assert world.poll().attempt == 2


@feature("B8")
def test_B08_at_most_two_minutes(world: World) -> None:
    long = world.start("Ships", task_timeout=timedelta(seconds=300))
    assert long.history()[0]["workflowTaskTimeout"] == "120s"
    short = world.start(
        "Ships", task_timeout=timedelta(seconds=60), run_timeout=timedelta(seconds=20)
    )
    assert short.history()[0]["workflowTaskTimeout"] == "20s"
    assert world.start("Ships").history()[0]["workflowTaskTimeout"] == "10s"


@feature("B9")
def test_B09_a_late_answer_is_refused(world: World) -> None:
    run = world.start("Ships")
    late = world.poll()
    world.advance(10)
    before = run.history()
    with pytest.raises(NotFoundError):
        world.answer(late, asks.complete())
    assert run.history() == before
    assert run.status == "RUNNING"


@feature("B11")
def test_B11_repeated_failures_are_silent(world: World) -> None:
    run = world.start("Ships")
    for _ in range(5):
        world.fail(world.poll())
    history = run.history()
    assert len(history.of(FAILED)) == 1
    assert run.pending_task.attempt == 6


@feature("B12")
def test_B12_success_after_failures(world: World) -> None:
    run = world.start("Ships")
    for _ in range(3):
        world.fail(world.poll())
    world.answer_next(asks.complete())
    assert run.kinds()[4:] == [SCHEDULED, CLAIMED, ANSWERED, "WORKFLOW_EXECUTION_COMPLETED"]
    assert run.history()[4]["attempt"] == 4


@feature("B13")
def test_B13_hung_tasks_come_ever_later(world: World) -> None:
    world.start("Ships")
    claims = []
    for attempt in range(1, 9):
        task = world.poll()
        assert task.attempt == attempt
        claims.append(world.now())
        world.wait(lambda: world.store.unclaimed_workflow_tasks("default", world.queue, 1) != [])
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(claims)]
    assert gaps[:3] == [10, 10, 10]
    for place, extra in enumerate([5, 10, 20, 40]):
        assert 10 + 0.8 * extra <= gaps[3 + place] <= 10 + extra


@feature("B14")
def test_B14_a_run_that_fails_again_and_again_is_marked(world: World) -> None:
    run = world.start("Ships")

    def problems() -> Any:
        (found,) = world.runs()
        return found.search_attributes.get("TemporalReportedProblems")

    for _ in range(4):
        world.fail(world.poll())
    assert problems() is None
    world.fail(world.poll())
    assert problems() == [
        "category=WorkflowTaskFailed",
        "cause=WorkflowTaskFailedCauseWorkflowWorkerUnhandledFailure",
    ]
    assert run.describe().search_attributes.get("TemporalReportedProblems") == problems()
    world.answer_next(asks.timer(60))
    assert problems() is None


@feature("B17")
def test_B17_what_arrives_during_a_task_follows_it(world: World) -> None:
    run = world.start("Ships")
    task = world.poll()
    run.signal("go")
    assert run.kinds()[-1] == CLAIMED
    world.answer(task, asks.activity(), asks.timer(5))
    assert run.kinds()[3:] == [
        ANSWERED,
        "ACTIVITY_TASK_SCHEDULED",
        "TIMER_STARTED",
        "WORKFLOW_EXECUTION_SIGNALED",
        SCHEDULED,
    ]


@feature("B18")
def test_B18_ends_of_activities_come_last(world: World) -> None:
    run = world.start("Ships")
    world.answer_next(asks.activity())
    attempt = world.take_activity()
    run.signal("first")
    task = world.poll()
    world.complete_activity(attempt)
    run.signal("second")
    world.answer(task)
    assert run.kinds()[-5:] == [
        ANSWERED,
        "ACTIVITY_TASK_STARTED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "ACTIVITY_TASK_COMPLETED",
        SCHEDULED,
    ]


@feature("B19")
def test_B19_a_close_that_overlooks_a_signal(world: World) -> None:
    run = world.start("Ships")
    task = world.poll()
    run.signal("wait")
    with pytest.raises(InvalidArgumentError, match="UnhandledCommand"):
        world.answer(task, asks.complete())
    failed = run.history().only(FAILED)
    assert failed["cause"] == f"{CAUSE}UNHANDLED_COMMAND"
    assert run.kinds()[3:6] == [FAILED, "WORKFLOW_EXECUTION_SIGNALED", SCHEDULED]
    again = world.answer_next(asks.complete())
    assert again.history.events[4].event_type.name == "WORKFLOW_EXECUTION_SIGNALED"
    assert run.status == "COMPLETED"


@feature("B20")
def test_B20_a_bad_command_undoes_its_batch(world: World) -> None:
    run = world.start("Ships")
    with pytest.raises(InvalidArgumentError):
        world.answer_next(asks.timer(5), asks.activity("same"), asks.activity("same"))
    history = run.history()
    failed = history.only(FAILED)
    assert failed["cause"] == f"{CAUSE}SCHEDULE_ACTIVITY_DUPLICATE_ID"
    assert history.of("ACTIVITY_TASK_SCHEDULED") == []
    assert history.of("TIMER_STARTED") == []
    assert run.pending_activities == []
    assert run.status == "RUNNING"
