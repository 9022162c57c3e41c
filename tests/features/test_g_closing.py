"""G. Statuses, and the ways in which a run ends."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.features import asks, feature
from tests.features.worlds import Run, World
from wfcore import activity, workflow
from wfcore.client import WorkflowFailureError
from wfcore.exceptions import CancelledError, NotFoundError, TerminatedError

ANSWERED = "WORKFLOW_TASK_COMPLETED"
REQUESTED = "WORKFLOW_EXECUTION_CANCEL_REQUESTED"
CANCELED = "WORKFLOW_EXECUTION_CANCELED"
TERMINATED = "WORKFLOW_EXECUTION_TERMINATED"
SHORT = {"start_to_close_timeout": timedelta(seconds=5)}

cleaned: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_cleaned() -> None:
    cleaned.clear()


@activity.defn
def clean_up(what: str) -> str:
    cleaned.append(what)
    return what


@workflow.defn
class Waits:
    """Waits for a signal, and cleans up when it is cancelled."""

    def __init__(self) -> None:
        self.ended = ""

    @workflow.run
    async def run(self, answer: str) -> str:
        try:
            await workflow.wait_condition(lambda: bool(self.ended))
        except asyncio.CancelledError:
            if answer == "ignore":
                return "ignored"
            if answer == "clean up":
                await workflow.execute_activity(clean_up, "all", **SHORT)
            raise
        return self.ended

    @workflow.signal
    def end(self, how: str) -> None:
        self.ended = how


@feature("G1")
def test_G01_closed_is_final(world: World) -> None:
    world.serve([Waits])
    run = world.start(Waits.run, "")
    assert run.status == "RUNNING"
    run.signal(Waits.end, "well")
    assert run.result() == "well"
    before = run.history()
    for call in (lambda: run.signal(Waits.end, "late"), run.terminate):
        with pytest.raises(NotFoundError):
            call()
    run.cancel()  # says nothing, and does nothing
    assert run.history() == before


def _complete(world: World, run: Run) -> None:
    world.answer_next(asks.complete())


def _fail(world: World, run: Run) -> None:
    world.answer_next(asks.fail())


def _cancel(world: World, run: Run) -> None:
    run.cancel()
    world.answer_next(asks.cancel())


def _terminate(world: World, run: Run) -> None:
    run.terminate()


def _continue(world: World, run: Run) -> None:
    world.answer_next(asks.go_on())


def _time_out(world: World, run: Run) -> None:
    world.advance(60)


@feature("G2")
@pytest.mark.parametrize(
    ("end", "status"),
    [
        (_complete, "COMPLETED"),
        (_fail, "FAILED"),
        (_cancel, "CANCELED"),
        (_terminate, "TERMINATED"),
        (_continue, "CONTINUED_AS_NEW"),
        (_time_out, "TIMED_OUT"),
    ],
)
def test_G02_closed_statuses(world: World, end: Callable[[World, Run], None], status: str) -> None:
    run = world.start("Ships", run_timeout=timedelta(seconds=30))
    end(world, run)
    assert run.status == status
    described = run.describe()
    assert described.close_time == run.history()[-1].time
    assert described.history_length == len(run.history())


@feature("G3")
def test_G03_an_open_status(world: World) -> None:
    run = world.start("Ships")
    assert run.status == "RUNNING"
    world.fail(world.poll())
    assert run.status == "RUNNING"
    assert run.describe().close_time is None


@feature("G4")
def test_G04_completion(world: World) -> None:
    run = world.start("Ships")
    world.answer_next(asks.complete("done"))
    answered, completed = run.history()[-2:]
    assert (answered.kind, completed.kind) == (ANSWERED, "WORKFLOW_EXECUTION_COMPLETED")
    assert completed.values("result") == ["done"]
    assert completed["workflowTaskCompletedEventId"] == str(answered.id)


@feature("G5")
def test_G05_the_result_is_waited_for(world: World) -> None:
    @workflow.defn(name="Sleeps")
    class Sleeps:
        @workflow.run
        async def run(self) -> str:
            await workflow.sleep(3600)
            return "rested"

    world.serve([Sleeps])
    run = world.start("Sleeps")
    assert run.status == "RUNNING"
    assert run.result() == "rested"  # asked for before it was there
    assert run.result() == "rested"


@feature("G6")
def test_G06_the_workflow_decides_on_a_cancellation(world: World) -> None:
    run = world.start("Ships")
    world.answer_next()
    run.cancel()
    assert run.kinds()[-2:] == [REQUESTED, "WORKFLOW_TASK_SCHEDULED"]
    assert run.status == "RUNNING"
    world.answer_next()
    assert run.status == "RUNNING"
    run.signal("go")
    world.answer_next(asks.cancel())
    assert run.kinds()[-2:] == [ANSWERED, CANCELED]
    assert run.status == "CANCELED"


@feature("G7")
def test_G07_a_second_request(world: World) -> None:
    run = world.start("Ships")
    run.cancel()
    before = run.history()
    run.cancel()
    assert run.history() == before
    assert before.kinds.count(REQUESTED) == 1


@feature("G8")
def test_G08_code_may_ignore_it(world: World) -> None:
    world.serve([Waits])
    run = world.start(Waits.run, "ignore")
    world.settle()
    run.cancel()
    assert run.result() == "ignored"
    assert run.status == "COMPLETED"
    assert REQUESTED in run.kinds()


@feature("G9")
def test_G09_code_may_clean_up(world: World) -> None:
    world.serve([Waits], [clean_up])
    run = world.start(Waits.run, "clean up")
    world.settle()
    run.cancel()
    with pytest.raises(WorkflowFailureError) as caught:
        run.result()
    assert isinstance(caught.value.cause, CancelledError)
    kinds = run.kinds()
    assert kinds.index(REQUESTED) < kinds.index("ACTIVITY_TASK_COMPLETED")
    assert kinds[-1] == CANCELED
    assert cleaned == ["all"]


@feature("G10")
def test_G10_termination(world: World) -> None:
    world.serve([Waits], [clean_up])
    run = world.start(Waits.run, "clean up")
    world.settle()
    before = run.history()
    run.terminate("by hand", 7, reason="stuck")
    world.settle()
    history = run.history()
    assert history.kinds == [*before.kinds, TERMINATED]
    assert history[-1]["reason"] == "stuck"
    assert history[-1].values("details") == ["by hand", 7]
    assert cleaned == []
    with pytest.raises(WorkflowFailureError) as caught:
        run.result()
    assert isinstance(caught.value.cause, TerminatedError)


@feature("G11")
def test_G11_terminated_during_a_task(world: World) -> None:
    run = world.start("Ships")
    task = world.poll()
    run.signal("kept")
    run.terminate(reason="stuck")
    failed, signaled, end = run.history()[-3:]
    assert [failed.kind, signaled.kind, end.kind] == [
        "WORKFLOW_TASK_FAILED",
        "WORKFLOW_EXECUTION_SIGNALED",
        TERMINATED,
    ]
    assert failed["cause"] == "WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND"
    with pytest.raises(NotFoundError):
        world.answer(task, asks.complete())


@feature("G16")
def test_G16_state_transitions_are_counted(world: World) -> None:
    counts: list[Any] = []
    run = world.start("Ships")

    def note() -> None:
        found = run.describe().raw_description.workflow_execution_info
        counts.append(found.state_transition_count)

    note()
    world.answer_next(asks.activity("a"))
    note()
    world.complete_activity(world.take_activity())
    world.answer_next(asks.activity("b"))
    world.complete_activity(world.take_activity())
    world.answer_next(asks.complete())
    note()
    assert counts[0] == 1
    assert counts == sorted(counts)
    assert counts[-1] == 9
