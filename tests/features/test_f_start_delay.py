"""F. Start delay."""

from datetime import timedelta
from typing import Any

import pytest

from tests.features import asks, feature
from tests.features.worlds import Run, World
from wfcore import workflow
from wfcore.exceptions import InvalidArgumentError

STARTED = "WORKFLOW_EXECUTION_STARTED"
SIGNALED = "WORKFLOW_EXECUTION_SIGNALED"
TASK = "WORKFLOW_TASK_SCHEDULED"


def delayed(world: World, *given: Any, seconds: float = 5, **options: Any) -> Run:
    """A run whose first task waits."""
    return world.start("Waits", *given, start_delay=timedelta(seconds=seconds), **options)


@workflow.defn
class Waits:
    def __init__(self) -> None:
        self.count = 0

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.update
    def add(self, number: int) -> int:
        self.count += number
        return self.count


@feature("F1")
def test_F01_the_first_task_waits(world: World) -> None:
    run = delayed(world)
    assert run.kinds() == [STARTED]
    assert run.history()[0]["firstWorkflowTaskBackoff"] == "5s"
    world.advance(60)
    started, task = run.history()
    assert (started.kind, task.kind) == (STARTED, TASK)
    assert task.time == started.time + timedelta(seconds=5)
    assert run.describe().execution_time == task.time


@feature("F2")
def test_F02_a_signal_does_not_interrupt(world: World) -> None:
    run = delayed(world)
    world.advance(1)
    run.signal("go")
    assert run.kinds() == [STARTED, SIGNALED]
    world.advance(3.9)
    assert run.kinds() == [STARTED, SIGNALED]
    world.advance(0.1)
    assert run.kinds() == [STARTED, SIGNALED, TASK]


@feature("F3")
def test_F03_signal_with_start_does(world: World) -> None:
    run = delayed(world)
    world.advance(1)
    world.start("Waits", id=run.id, start_signal="go")
    assert run.kinds() == [STARTED, SIGNALED, TASK]
    _, signaled, task = run.history()
    assert task.time == signaled.time == world.now()


@feature("F4")
def test_F04_an_update_does(world: World) -> None:
    began = world.now()
    run = delayed(world, seconds=3600)
    world.serve([Waits])
    assert run.update(Waits.add, 2) == 2
    assert world.now() < began + timedelta(seconds=60)
    assert run.kinds()[:2] == [STARTED, TASK]


@feature("F5")
def test_F05_only_the_first_run_waits(world: World) -> None:
    first = delayed(world)
    world.advance(6)
    world.advance(1)
    world.answer_next(asks.go_on())
    second = first.next()
    assert second.history()[0]["firstWorkflowTaskBackoff"] in (None, "0s")
    assert second.kinds() == [STARTED, TASK]


@feature("F6")
def test_F06_not_with_cron(world: World) -> None:
    with pytest.raises(InvalidArgumentError):
        delayed(world, cron_schedule="* * * * *")
    assert world.runs() == []


@feature("F7")
def test_F07_the_run_timeout_begins_after_it(world: World) -> None:
    began = world.now()
    run = delayed(world, run_timeout=timedelta(seconds=3))
    whole = delayed(world, execution_timeout=timedelta(seconds=7))
    world.advance(60)
    assert run.status == whole.status == "TIMED_OUT"
    assert run.history()[-1].time == began + timedelta(seconds=8)
    assert whole.history()[-1].time == began + timedelta(seconds=7)


@feature("F8")
def test_F08_a_cancel_request_ends_it(world: World) -> None:
    began = world.now()
    run = delayed(world)
    world.advance(1)
    run.cancel()
    assert run.kinds() == [STARTED, "WORKFLOW_EXECUTION_CANCEL_REQUESTED", TASK]
    world.serve([Waits])
    world.settle()
    assert run.status == "CANCELED"
    assert world.now() == began + timedelta(seconds=1)
