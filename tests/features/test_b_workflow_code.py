"""B. The cycle of workflow tasks, as the code sees it: run by a worker, again and again."""

import asyncio
import time
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from tests.features import feature
from tests.features.worlds import World
from wfcore import activity, workflow

FAILED = "WORKFLOW_TASK_FAILED"
CAUSE = "WORKFLOW_TASK_FAILED_CAUSE_"
SHORT = {"start_to_close_timeout": timedelta(seconds=5)}

#: what code did, by its name; each test begins with none
done: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@activity.defn
def charge(amount: int) -> int:
    done["charge"] += 1
    return amount + 1


@activity.defn
def ship(amount: int) -> int:
    done["ship"] += 1
    return amount * 10


@workflow.defn
class Order:
    """Charges, waits for a signal, ships."""

    def __init__(self) -> None:
        self.ready = False
        self.amount = 0

    @workflow.run
    async def run(self, amount: int) -> int:
        done["run"] += 1
        self.amount = await workflow.execute_activity(charge, amount, **SHORT)
        await workflow.wait_condition(lambda: self.ready)
        return await workflow.execute_activity(ship, self.amount, **SHORT)

    @workflow.signal
    def go(self) -> None:
        self.ready = True

    @workflow.query
    def now_at(self) -> int:
        return self.amount


@feature("B1")
def test_B01_state_is_rebuilt_by_replay(world: World) -> None:
    worker = world.serve([Order], [charge, ship])
    run = world.start(Order.run, 1)
    world.settle()
    worker.forget()
    assert run.query(Order.now_at) == 2
    worker.forget()
    run.signal(Order.go)
    assert run.result() == 20
    assert (done["run"], done["charge"], done["ship"]) == (3, 1, 1)


class StoppedError(Exception):
    """The engine is gone."""


@feature("B2")
def test_B02_code_only_asks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*args: Any, **options: Any) -> Any:
        raise StoppedError

    run = world.start(Order.run, 1)
    with monkeypatch.context() as patch:
        patch.setattr(world.service, "respond_workflow_task_completed", stop)
        patch.setattr(world.service, "respond_workflow_task_failed", stop)
        world.serve([Order], [charge, ship])
        with pytest.raises(StoppedError):
            world.settle()
    assert done["run"] == 1
    assert run.kinds()[-1] == "WORKFLOW_TASK_STARTED"
    assert run.pending_activities == []
    assert done["charge"] == 0
    world.serve([Order], [charge, ship])
    world.advance(10)
    assert (done["run"], done["charge"]) == (2, 1)


@workflow.defn(name="Fragile")
class Broken:
    @workflow.run
    async def run(self) -> str:
        raise ValueError("a bug")


@workflow.defn(name="Fragile")
class Mended:
    @workflow.run
    async def run(self) -> str:
        return "well"


@feature("B10")
def test_B10_a_bug_fails_the_task_alone(world: World) -> None:
    world.serve([Broken])
    run = world.start("Fragile")
    world.settle()
    failed = run.history().only(FAILED)
    assert failed["cause"] == f"{CAUSE}WORKFLOW_WORKER_UNHANDLED_FAILURE"
    assert failed["failure"]["message"] == "a bug"
    assert failed["failure"]["applicationFailureInfo"]["type"] == "ValueError"
    assert run.status == "RUNNING"
    world.serve([Mended])
    assert run.result() == "well"


@activity.defn
def takes_two_seconds() -> str:
    time.sleep(2)  # a worker keeps its task alive by the real clock
    return "done"


@workflow.defn
class Local:
    @workflow.run
    async def run(self) -> str:
        return await workflow.execute_local_activity(takes_two_seconds, **SHORT)


@feature("B21")
def test_B21_a_long_local_activity_keeps_its_task_alive(world: World) -> None:
    """As a local activity of 30 s with tasks of 10 s, shortened."""
    world.serve([Local], [takes_two_seconds])
    run = world.start(Local.run, task_timeout=timedelta(seconds=1))
    assert run.result() == "done"
    history = run.history()
    triple = ["WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED", "WORKFLOW_TASK_COMPLETED"]
    assert history.kinds[1:7] == triple * 2
    tasks = len(history.of("WORKFLOW_TASK_COMPLETED"))
    assert history.kinds[1:-2] == triple * tasks
    assert history.kinds[-2:] == ["MARKER_RECORDED", "WORKFLOW_EXECUTION_COMPLETED"]


def _two_steps(first: Any, second: Any) -> type:
    @workflow.defn(name="Steps")
    class Steps:
        def __init__(self) -> None:
            self.ready = False

        @workflow.run
        async def run(self) -> None:
            await workflow.execute_activity(first, 1, **SHORT)
            await workflow.wait_condition(lambda: self.ready)
            await workflow.execute_activity(second, 1, **SHORT)

        @workflow.signal
        def go(self) -> None:
            self.ready = True

    return Steps


@feature("B22")
def test_B22_changed_code_disagrees_with_the_history(world: World) -> None:
    world.serve([_two_steps(charge, ship)], [charge, ship])
    run = world.start("Steps")
    world.settle()
    world.serve([_two_steps(ship, charge)], [charge, ship])
    run.signal("go")
    world.settle()
    failed = run.history().only(FAILED)
    assert failed["cause"] == f"{CAUSE}NON_DETERMINISTIC_ERROR"
    message = failed["failure"]["message"]
    assert "charge" in message
    assert "ship" in message
    assert "5" in message  # the event that scheduled the activity
    assert run.status == "RUNNING"
    world.serve([_two_steps(charge, ship)], [charge, ship])
    assert run.result() is None


@workflow.defn
class Draws:
    def __init__(self) -> None:
        self.drawn: list[Any] = []

    @workflow.run
    async def run(self) -> list[Any]:
        self._draw()
        await workflow.sleep(3600)
        self._draw()
        return self.drawn

    def _draw(self) -> None:
        self.drawn.append(
            [
                workflow.now().isoformat(),
                workflow.time(),
                workflow.random().random(),
                str(workflow.uuid4()),
            ]
        )

    @workflow.query
    def so_far(self) -> list[Any]:
        return self.drawn


@feature("B23")
def test_B23_time_and_chance_repeat_themselves(world: World) -> None:
    worker = world.serve([Draws])
    run = world.start(Draws.run)
    world.settle()
    first = run.query(Draws.so_far)
    world.advance(1800)
    worker.forget()
    assert run.query(Draws.so_far) == first
    drawn = run.result()
    assert drawn[0] == first[0]
    claims = run.history().of("WORKFLOW_TASK_STARTED")
    assert [each[0] for each in drawn] == [claim.time.isoformat() for claim in claims]
    other = world.start(Draws.run).result()
    assert other[0][2:] != drawn[0][2:]
    assert drawn[0][2:] != drawn[1][2:]


@workflow.defn
class Blocks:
    @workflow.run
    async def run(self) -> None:
        if not done["blocks"]:
            done["blocks"] += 1
            while True:
                done["turns"] += 1


@feature("B24")
def test_B24_code_that_blocks_fails_its_task(world: World) -> None:
    world.serve([Blocks])
    run = world.start(Blocks.run)
    began = time.monotonic()
    assert world.step()
    assert 1.5 < time.monotonic() - began < 20
    failed = run.history().only(FAILED)
    assert "deadlock" in failed["failure"]["message"].lower()
    assert run.status == "RUNNING"
    assert run.result() is None


@workflow.defn
class Sleeps:
    @workflow.run
    async def run(self) -> None:
        time.sleep(1)  # noqa: ASYNC251 - what must not be done


@feature("B24")
def test_B24_a_blocking_sleep_is_refused(world: World) -> None:
    world.serve([Sleeps])
    run = world.start(Sleeps.run)
    world.settle()
    assert "sleep" in run.history().only(FAILED)["failure"]["message"]


@workflow.defn
class Account:
    """Adds up in handlers that give others a turn; none may meet another in between."""

    def __init__(self) -> None:
        self.balance = 0
        self.inside = 0
        self.met = False

    @workflow.run
    async def run(self, goal: int) -> tuple[int, bool]:
        await workflow.wait_condition(lambda: self.balance >= goal)
        return self.balance, self.met

    @workflow.signal
    def add(self, amount: int) -> None:
        self.inside += 1
        self.met = self.met or self.inside > 1
        self.balance = self.balance + amount
        self.inside -= 1


@feature("B25")
def test_B25_state_belongs_to_one_run(world: World) -> None:
    world.serve([Account])
    first, second = world.start(Account.run, 6), world.start(Account.run, 60)
    for number in (1, 2, 3):
        first.signal(Account.add, number)
        second.signal(Account.add, number * 10)
    assert first.result() == (6, False)
    assert second.result() == (60, False)


@feature("B25")
def test_B25_one_task_of_a_run_at_a_time(world: World) -> None:
    run = world.start(Account.run, 1)
    task = world.poll()
    run.signal(Account.add, 1)
    assert not world.poll().task_token
    world.answer(task)
    assert world.poll().task_token


@feature("B26")
def test_B26_the_function_runs_often_its_effects_once(world: World) -> None:
    world.serve([Order], [charge, ship], cached=False)
    runs = [world.start(Order.run, number) for number in range(3)]
    world.settle()
    for run in runs:
        run.signal(Order.go)
    assert [run.result() for run in runs] == [10, 20, 30]
    assert (done["charge"], done["ship"]) == (3, 3)
    assert done["run"] == sum(len(run.history().of("WORKFLOW_TASK_COMPLETED")) for run in runs)
    assert done["run"] == 12
    assert [run.kinds().count("WORKFLOW_EXECUTION_COMPLETED") for run in runs] == [1, 1, 1]


@workflow.defn
class Gathers:
    @workflow.run
    async def run(self) -> list[int]:
        calls = [workflow.execute_activity(charge, number, **SHORT) for number in range(3)]
        return list(await asyncio.gather(*calls))


@feature("B24")
def test_B24_awaitables_may_be_combined(world: World) -> None:
    world.serve([Gathers], [charge])
    assert world.start(Gathers.run).result() == [1, 2, 3]
