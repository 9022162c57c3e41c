"""Delays of any kind become recorded timers."""

import asyncio
from datetime import timedelta

import pytest

from tests.support.live_run import LiveRun, asked
from wfcore import workflow
from wfcore.protocol import commands


@workflow.defn
class Naps:
    @workflow.run
    async def run(self) -> float:
        begin = workflow.time()
        await asyncio.sleep(5)
        await workflow.sleep(timedelta(milliseconds=1500), summary="a short nap")
        return workflow.time() - begin


def test_sleep_starts_a_timer_and_time_moves_with_the_tasks() -> None:
    run = LiveRun(Naps)
    (first,) = run.work()
    assert first.attributes == commands.StartTimer(
        timer_id="1", start_to_fire_timeout=timedelta(seconds=5)
    )
    run.fire("1")
    (second,) = run.work()
    assert second.attributes == commands.StartTimer(
        timer_id="2", start_to_fire_timeout=timedelta(seconds=1.5)
    )
    assert second.user_metadata is not None
    assert second.user_metadata.summary is not None
    assert second.user_metadata.summary.data == b'"a short nap"'
    run.fire("2")
    run.work()
    started = [e.event_time for e in run.history if e.event_type.name == "WORKFLOW_TASK_STARTED"]
    assert run.result() == (started[-1] - started[0]).total_seconds()


def test_sleeping_for_nothing_starts_no_timer() -> None:
    @workflow.defn
    class Yields:
        @workflow.run
        async def run(self) -> None:
            await asyncio.sleep(0)

    assert asked(LiveRun(Yields).work()) == ["COMPLETE_WORKFLOW_EXECUTION"]


def test_a_negative_delay_fails_the_task() -> None:
    @workflow.defn
    class Backwards:
        @workflow.run
        async def run(self) -> None:
            await workflow.sleep(-1)

    assert "negative" in str(LiveRun(Backwards).fail().error)


def test_a_timer_cancelled_before_it_was_sent_uses_up_its_number_only() -> None:
    @workflow.defn
    class ChangesItsMind:
        @workflow.run
        async def run(self) -> None:
            task = asyncio.create_task(asyncio.sleep(100))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.sleep(1)

    (command,) = LiveRun(ChangesItsMind).work()
    assert command.attributes == commands.StartTimer(
        timer_id="2", start_to_fire_timeout=timedelta(seconds=1)
    )


@workflow.defn
class Waiting:
    """Waits for a signal, ten seconds at most."""

    def __init__(self) -> None:
        self.go = False

    @workflow.run
    async def run(self, how: str) -> str:
        try:
            if how == "wait_condition":
                await workflow.wait_condition(lambda: self.go, timeout=10, timeout_summary="limit")
            elif how == "timeout":
                async with asyncio.timeout(10):
                    await workflow.wait_condition(lambda: self.go)
            else:
                await asyncio.wait_for(workflow.wait_condition(lambda: self.go), 10)
        except TimeoutError:
            return "timed out"
        return "released"

    @workflow.signal
    def release(self) -> None:
        self.go = True


@pytest.mark.parametrize("how", ["wait_condition", "timeout", "wait_for"])
def test_a_limited_wait_ends_by_its_timer(how: str) -> None:
    run = LiveRun(Waiting, how)
    assert asked(run.work()) == ["START_TIMER"]
    run.fire("1")
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == "timed out"


@pytest.mark.parametrize("how", ["wait_condition", "timeout", "wait_for"])
def test_a_limited_wait_that_succeeds_cancels_its_timer(how: str) -> None:
    run = LiveRun(Waiting, how)
    run.work()
    run.signal("release")
    assert asked(run.work()) == ["CANCEL_TIMER", "COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == "released"


@pytest.mark.parametrize("how", ["wait_condition", "timeout", "wait_for"])
def test_a_timer_that_has_fired_is_not_cancelled(how: str) -> None:
    """Signals come first, so the wait succeeds; but the firing stands in the history."""
    run = LiveRun(Waiting, how)
    run.work()
    run.fire("1")
    run.signal("release")
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == "released"


def test_the_summary_is_the_waits_timers_alone() -> None:
    @workflow.defn
    class TwoTimers:
        @workflow.run
        async def run(self) -> None:
            try:
                await workflow.wait_condition(lambda: False, timeout=1, timeout_summary="first")
            except TimeoutError:
                await asyncio.sleep(1)

    run = LiveRun(TwoTimers)
    (first,) = run.work()
    assert first.user_metadata is not None
    run.fire("1")
    (second,) = run.work()
    assert second.user_metadata is None
