"""J. Timers, markers, and code that changes while runs are open."""

import asyncio
from datetime import timedelta

from tests.features import asks, feature
from tests.features.histories import decoded
from tests.features.worlds import Run, World, do, values
from wfcore import activity, workflow
from wfcore.client import WorkflowHistory
from wfcore.exceptions import NondeterminismError
from wfcore.protocol import commands
from wfcore.worker import Replayer

STARTED = "TIMER_STARTED"
FIRED = "TIMER_FIRED"
CANCELED = "TIMER_CANCELED"
MARKER = "MARKER_RECORDED"
ANSWERED = "WORKFLOW_TASK_COMPLETED"
TASK = "WORKFLOW_TASK_SCHEDULED"


def cancel_timer(timer_id: str = "t") -> commands.CancelTimer:
    return commands.CancelTimer(timer_id=timer_id)


def exported(run: Run) -> WorkflowHistory:
    """The history of a run, read from its export as from a file."""
    text = do(run.handle.fetch_history()).to_json()
    return WorkflowHistory.from_json(run.id, text)


def replayed(run: Run, *code: type) -> Exception | None:
    """Why this code doesn't fit the run's history; None if it does."""
    result = asyncio.run(
        Replayer(workflows=code).replay_workflow(exported(run), raise_on_replay_failure=False)
    )
    return result.replay_failure


@workflow.defn
class Sleeps:
    @workflow.run
    async def run(self, seconds: float) -> float:
        began = workflow.now()
        await workflow.sleep(seconds)
        return (workflow.now() - began).total_seconds()


@feature("J1")
def test_J01_a_timer_outlives_its_worker(world: World) -> None:
    began = world.now()
    worker = world.serve([Sleeps])
    run = world.start(Sleeps.run, 3600)
    world.settle()
    worker.stop()
    world.lose_messages()
    world.advance(600)
    world.serve([Sleeps])
    assert run.result() == 3600
    history = run.history()
    started, fired = history.only(STARTED), history.only(FIRED)
    assert started["startToFireTimeout"] == "3600s"
    assert fired["startedEventId"] == str(started.id)
    assert fired["timerId"] == started["timerId"]
    assert fired.time == began + timedelta(hours=1)
    assert history[fired.id].kind == TASK


@feature("J2")
def test_J02_a_cancelled_timer(world: World) -> None:
    run = world.start("Ships")
    world.answer_next(asks.timer(60))
    run.signal("go")
    world.answer_next(cancel_timer())
    answered, canceled = run.history()[-2:]
    assert (answered.kind, canceled.kind) == (ANSWERED, CANCELED)
    assert canceled["timerId"] == "t"
    assert canceled["startedEventId"] == str(run.history().only(STARTED).id)
    before = run.history()
    world.advance(3600)
    assert run.history() == before


@feature("J3")
def test_J03_a_timer_cancelled_as_it_fires(world: World) -> None:
    run = world.start("Ships")
    world.answer_next(asks.timer(5))
    run.signal("go")
    task = world.poll()
    world.advance(6)
    world.answer(task, cancel_timer())
    assert run.kinds()[-2:] == [ANSWERED, CANCELED]
    world.advance(3600)
    assert FIRED not in run.kinds()
    assert run.pending_task is None


@feature("J4")
def test_J04_a_timer_of_no_time(world: World) -> None:
    run = world.start("Ships")
    world.answer_next(asks.timer(0))
    world.advance(0)
    history = run.history()
    assert history.kinds[-3:] == [STARTED, FIRED, TASK]
    assert history[-1].time - history[-3].time <= timedelta(seconds=1)


@feature("J5")
def test_J05_many_timers_fire_in_order(world: World) -> None:
    run = world.start("Ships")
    delays = [(index * 37) % 100 + 1 for index in range(100)]
    assert delays != sorted(delays)
    wanted = [asks.timer(delay, f"t{delay}") for delay in delays]
    began = world.now()
    world.answer_next(*wanted)
    for _ in range(101):
        world.advance(1)
    fired = run.history().of(FIRED)
    assert [event["timerId"] for event in fired] == [f"t{delay}" for delay in sorted(delays)]
    assert [event.time - began for event in fired] == [
        timedelta(seconds=delay) for delay in sorted(delays)
    ]


@feature("J5")
def test_J05_many_that_come_due_together(world: World) -> None:
    """The engine was away meanwhile: the earliest still is the first."""
    run = world.start("Ships")
    delays = [(index * 37) % 100 + 1 for index in range(100)]
    world.answer_next(*(asks.timer(delay, f"t{delay}") for delay in delays))
    world.clock.move_to(world.now() + timedelta(hours=1))
    while world.service.sweep().more:
        pass
    fired = [event["timerId"] for event in run.history().of(FIRED)]
    assert fired == [f"t{delay}" for delay in sorted(delays)]
    assert run.kinds().count(TASK) == 2


@workflow.defn
class Hopes:
    """Waits ten seconds for a signal."""

    def __init__(self) -> None:
        self.came = False

    @workflow.run
    async def run(self) -> str:
        try:
            await workflow.wait_condition(lambda: self.came, timeout=10)
        except TimeoutError:
            return "too late"
        await workflow.sleep(1)
        return "in time"

    @workflow.signal
    def come(self) -> None:
        self.came = True


@feature("J6")
def test_J06_a_condition_comes_true_in_time(world: World) -> None:
    world.serve([Hopes])
    run = world.start(Hopes.run)
    world.advance(5)
    run.signal(Hopes.come)
    assert run.result() == "in time"
    history = run.history()
    assert history.of(STARTED)[0]["startToFireTimeout"] == "10s"
    assert history.only(CANCELED)["timerId"] == history.of(STARTED)[0]["timerId"]


@feature("J6")
def test_J06_a_condition_that_never_comes_true(world: World) -> None:
    world.serve([Hopes])
    run = world.start(Hopes.run)
    assert run.result() == "too late"
    assert run.kinds().count(FIRED) == 1
    assert CANCELED not in run.kinds()


def _code(way: str) -> type:
    """The code of a workflow at one of its four ages."""

    @workflow.defn(name="Changes")
    class Changes:
        def __init__(self) -> None:
            self.ended = False

        @workflow.run
        async def run(self) -> str:
            found = "old"
            if way == "deprecated":
                workflow.deprecate_patch("better")
            if way in ("deprecated", "new") or (way == "patched" and workflow.patched("better")):
                found = "new"
                await workflow.sleep(1)
            await workflow.wait_condition(lambda: self.ended)
            return found

        @workflow.signal
        def end(self) -> None:
            self.ended = True

    return Changes


def changing(world: World, way: str) -> Run:
    """A run that began with code of this age."""
    world.serve([_code(way)])
    run = world.start("Changes")
    world.advance(5)
    return run


@feature("J7")
def test_J07_patched_code(world: World) -> None:
    old = changing(world, "old")
    new = changing(world, "patched")  # by now, this is the worker's code
    for run in (old, new):
        run.signal("end")
    assert (old.result(), new.result()) == ("old", "new")
    assert MARKER not in old.kinds()
    marker = new.history().only(MARKER)
    assert marker["markerName"] == "core_patch"
    described = new.describe()
    assert described.search_attributes["TemporalChangeVersion"] == ["better"]
    assert replayed(old, _code("patched")) is None
    assert replayed(new, _code("patched")) is None


@feature("J8")
def test_J08_a_deprecated_patch(world: World) -> None:
    patched, deprecated = changing(world, "patched"), changing(world, "deprecated")
    for run in (patched, deprecated):
        run.signal("end")
        assert run.result() == "new"
    detail = deprecated.history().only(MARKER)["details"]["patch-data"]
    assert detail != patched.history().only(MARKER)["details"]["patch-data"]
    assert replayed(patched, _code("deprecated")) is None
    assert replayed(deprecated, _code("deprecated")) is None
    assert replayed(deprecated, _code("new")) is None  # the call is gone
    assert isinstance(replayed(patched, _code("new")), NondeterminismError)


@feature("J9")
def test_J09_a_recorded_value_is_not_made_again(world: World) -> None:
    made: list[int] = []

    @activity.defn
    def number() -> int:
        made.append(len(made) + 1)
        return made[-1]

    @workflow.defn(name="Rolls")
    class Rolls:
        def __init__(self) -> None:
            self.rolled = 0
            self.ended = False

        @workflow.run
        async def run(self) -> int:
            self.rolled = await workflow.execute_local_activity(
                "number", start_to_close_timeout=timedelta(seconds=5)
            )
            await workflow.wait_condition(lambda: self.ended)
            return self.rolled

        @workflow.query
        def seen(self) -> int:
            return self.rolled

        @workflow.signal
        def end(self) -> None:
            self.ended = True

    worker = world.serve([Rolls], [number])
    run = world.start("Rolls")
    world.settle()
    marker = run.history().only(MARKER)
    assert marker["markerName"] == "core_local_activity"
    worker.forget()
    assert run.query("seen") == 1
    worker.forget()
    run.signal("end")
    assert run.result() == 1
    assert made == [1]


@feature("J9")
def test_J09_any_marker_is_kept(world: World) -> None:
    run = world.start("Ships")
    details = {"data": values(42)}
    world.answer_next(commands.RecordMarker(marker_name="SideEffect", details=details))
    marker = run.history().only(MARKER)
    assert marker["markerName"] == "SideEffect"
    assert decoded(marker["details"]["data"]) == [42]
    assert run.kinds()[-2:] == [ANSWERED, MARKER]


@feature("J11")
def test_J11_code_against_a_stored_history(world: World) -> None:
    run = changing(world, "old")
    run.signal("end")
    run.result()
    assert replayed(run, _code("old")) is None
    fault = replayed(run, _code("new"))
    assert isinstance(fault, NondeterminismError)
    assert "TIMER" in str(fault).upper()
