"""O. What holds whatever happens."""

import asyncio
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.features import asks, feature
from tests.features.histories import History, faults
from tests.features.worlds import Run, World, do
from wfcore import activity, workflow
from wfcore.common import RetryPolicy
from wfcore.worker import Replayer

FIRED = "TIMER_FIRED"


@activity.defn
def double(number: int) -> int:
    return number * 2


@workflow.defn
class Works:
    """Two activities with a pause between, and a signal to end it."""

    def __init__(self) -> None:
        self.more = 0

    @workflow.run
    async def run(self, number: int) -> int:
        found = await self._double(number)
        await workflow.sleep(30)
        await workflow.wait_condition(lambda: bool(self.more))
        return await self._double(found) + self.more

    async def _double(self, number: int) -> int:
        return await workflow.execute_activity(
            double,
            number,
            start_to_close_timeout=timedelta(seconds=5),
            retry_policy=RetryPolicy(maximum_interval=timedelta(seconds=1)),
        )

    @workflow.signal
    def add(self, more: int) -> None:
        self.more = more


def started(world: World, count: int) -> list[Run]:
    """Runs that have what they need to end."""
    runs = [world.start(Works.run, number) for number in range(count)]
    for run in runs:
        run.signal(Works.add, 1)
    return runs


def check_ended(runs: list[Run]) -> None:
    """They have ended as their code says, with histories that their code accepts."""
    replayer = Replayer(workflows=[Works])
    for number, run in enumerate(runs):
        assert run.result() == number * 4 + 1
        assert faults(run.history(), run.status) == []
        assert run.kinds().count("ACTIVITY_TASK_COMPLETED") == 2
        asyncio.run(replayer.replay_workflow(do(run.handle.fetch_history())))


@feature("O1")
def test_O01_a_timer_of_a_year(world: World) -> None:
    run = world.start("Ships")
    began = world.now()
    year = timedelta(days=365)
    world.answer_next(asks.timer(year.total_seconds()))
    assert run.history().only("TIMER_STARTED")["startToFireTimeout"] == "31536000s"
    assert world.store.next_due() == began + year
    world.advance(year - timedelta(seconds=1))
    assert FIRED not in run.kinds()
    world.advance(1)
    assert run.history().only(FIRED).time == began + year
    world.answer_next(asks.complete())
    assert run.status == "COMPLETED"


class KilledError(BaseException):
    """A process is gone, in the middle of what it did."""


def _dies(call: Callable[..., Any], dice: random.Random, deaths: list[str]) -> Callable[..., Any]:
    """The call, at which the process may die before or after the engine has heard it."""

    def called(*args: Any, **options: Any) -> Any:
        fate = dice.random()
        if fate < 0.2:
            deaths.append("before")
            raise KilledError
        answer = call(*args, **options)
        if fate > 0.9:
            deaths.append("after")
            raise KilledError
        return answer

    return called


@feature("O2")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_O02_processes_die_at_any_moment(
    world: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    dice = random.Random(seed)
    deaths: list[str] = []
    runs = started(world, 8)
    with monkeypatch.context() as patch:
        for name in ("respond_workflow_task_completed", "respond_activity_task_completed"):
            patch.setattr(world.service, name, _dies(getattr(world.service, name), dice, deaths))
        world.serve([Works], [double])
        for _ in range(150):
            happens = dice.random()
            if happens < 0.05:
                world.lose_messages()  # the broker
            elif happens < 0.1:
                world.clock.move_to(world.now() + timedelta(seconds=60))  # nobody sweeps
            else:
                try:
                    if happens < 0.3:
                        world.advance(dice.choice([0.5, 2, 10]))
                    else:
                        world.step()
                except KilledError:
                    world.serve([Works], [double])
    assert {"before", "after"} <= set(deaths)
    world.serve([Works], [double])
    check_ended(runs)


@feature("O3")
def test_O03_runs_do_not_wait_for_each_other(world: World) -> None:
    runs = [world.start("Ships") for _ in range(50)]
    tasks = [world.poll() for _ in runs]
    assert len({task.workflow_execution.run_id for task in tasks}) == 50
    assert not world.poll().task_token  # one run has one task at a time
    for task in reversed(tasks):
        world.answer(task, asks.complete())
    assert {run.status for run in runs} == {"COMPLETED"}


@feature("O4")
def test_O04_a_definition_is_code(world: World) -> None:
    @workflow.defn(name="Greeting")
    class AnyName:
        @workflow.run
        async def whatever(self, name: str) -> str:
            return f"Hello, {name}"

    world.serve([AnyName])
    assert world.start("Greeting", "Ada").result() == "Hello, Ada"
    by_method = world.start(AnyName.whatever, "Bea")
    assert by_method.result() == "Hello, Bea"
    assert by_method.history()[0]["workflowType"]["name"] == "Greeting"


@feature("O5")
def test_O05_events_never_change(world: World) -> None:
    world.serve([Works], [double])
    run = world.start(Works.run, 3)
    seen: list[History] = [run.history()]

    def look() -> None:
        seen.append(run.history())

    while world.step():
        look()
    for seconds in (10, 30):
        world.advance(seconds)
        look()
    run.signal(Works.add, 1)
    look()
    while world.step():
        look()
    assert run.result() == 13
    look()
    assert len({len(history) for history in seen}) > 5
    whole = seen[-1].exported["events"]
    for history in seen:
        events = history.exported["events"]
        assert events == whole[: len(events)]


@feature("O6")
def test_O06_the_order_of_events(world: World) -> None:
    """Here of some runs that end in several ways; after each test, of all that it has made."""
    world.serve([Works], [double])
    done, stopped, opened = (world.start(Works.run, number) for number in range(3))
    world.advance(40)
    done.signal(Works.add, 1)
    stopped.terminate()
    assert done.result() == 1
    for run, end in ((done, "COMPLETED"), (stopped, "TERMINATED"), (opened, "RUNNING")):
        assert run.status == end
    assert world.check_histories() == 3
    whole = done.history()
    for spoiled in ([*whole][1:], [*whole][:-1], [*whole, whole[0]]):
        damaged = History({"events": [event.raw for event in spoiled]})
        assert faults(damaged, "COMPLETED")


@feature("O7")
def test_O07_a_broker_may_forget_all(world: World) -> None:
    runs = started(world, 5)
    assert world.lose_messages() > 0
    world.serve([Works], [double])
    world.advance(15)  # tasks of workflows have come back
    for run in runs:
        assert "ACTIVITY_TASK_COMPLETED" in run.kinds()
    world.workers[world.queue].stop()
    world.advance(40)  # the timers have fired, and nobody is there
    assert world.lose_messages() > 0
    world.serve([Works], [double])
    began = world.now()
    check_ended(runs)
    assert world.now() - began < timedelta(minutes=2)


@feature("O7")
def test_O07_activities_come_back(world: World) -> None:
    run = world.start("Ships")
    world.lose_messages()
    world.answer_next(asks.activity("a", 4, seconds=3600))
    assert world.lose_messages() == 1
    world.advance(15)
    assert world.lose_messages() == 1
    assert run.pending_activities[0].attempt == 1


@feature("O8")
def test_O08_the_ticker_may_be_away(world: World) -> None:
    world.serve([Works], [double])
    run = world.start("Ships", queue="by hand")
    delays = [5, 3, 9, 1]
    began = world.now()
    task = world.poll("by hand")
    world.answer(task, *(asks.timer(delay, f"t{delay}") for delay in delays))
    others = started(world, 3)
    world.settle()
    world.clock.move_to(began + timedelta(minutes=1))  # nobody sweeps
    assert FIRED not in run.kinds()
    while world.service.sweep().more:
        pass
    fired = run.history().of(FIRED)
    assert [event["timerId"] for event in fired] == ["t1", "t3", "t5", "t9"]
    check_ended(others)
