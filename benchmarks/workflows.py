"""The workloads and the big runs as workflows."""

import asyncio
from datetime import timedelta

from wfcore import workflow

with workflow.unsafe.imports_passed_through():
    from benchmarks.activities import step

LIMIT = timedelta(seconds=60)
#: activities of a round of a big history
PER_ROUND = 10


async def one(place: int) -> float:
    """A step; gives its time."""
    got, at = await workflow.execute_activity(step, place, start_to_close_timeout=LIMIT)
    if got != place:
        raise AssertionError(f"step {place} answered as {got}")
    return at


@workflow.defn(name="hello")
class Hello:
    """W1."""

    @workflow.run
    async def run(self) -> str:
        await one(0)
        return "hello"


@workflow.defn(name="seq")
class Seq:
    """W2."""

    @workflow.run
    async def run(self, length: int) -> tuple[int, float, float]:
        first = last = await one(0)
        for place in range(1, length):
            last = await one(place)
        return length, first, last


@workflow.defn(name="fan")
class Fan:
    """W3."""

    @workflow.run
    async def run(self, width: int) -> tuple[int, float, float]:
        before = await one(-1)
        members = await asyncio.gather(*(one(place) for place in range(width)))
        return len(members), before, await one(-2)


@workflow.defn(name="timer")
class Timer:
    """W4: seconds too late."""

    @workflow.run
    async def run(self, seconds: float) -> float:
        before = await one(0)
        await asyncio.sleep(seconds)
        return await one(1) - before - seconds


@workflow.defn(name="sleeper")
class Sleeper:
    """W7: holds nothing but a timer."""

    @workflow.run
    async def run(self, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "slept"


@workflow.defn(name="counter")
class Counter:
    """W5."""

    def __init__(self) -> None:
        self._total = 0
        self._count = 0

    @workflow.signal
    async def add(self, value: int) -> None:
        self._total += value
        self._count += 1

    @workflow.run
    async def run(self, expected: int) -> int:
        await workflow.wait_condition(lambda: self._count >= expected)
        return self._total


@workflow.defn(name="big_history")
class BigHistory:
    """Rounds of activities until the history has so many events."""

    @workflow.run
    async def run(self, events: int) -> int:
        done = 0
        while workflow.info().get_current_history_length() < events:
            await asyncio.gather(*(one(done + place) for place in range(PER_ROUND)))
            done += PER_ROUND
        return done


@workflow.defn(name="many_activities")
class ManyActivities:
    """All activities pending at once."""

    @workflow.run
    async def run(self, count: int) -> int:
        return len(await asyncio.gather(*map(one, range(count))))


@workflow.defn(name="small_child")
class SmallChild:
    """Waits once, so that all of them are open before the first ends."""

    @workflow.run
    async def run(self, place: int, wait_seconds: float) -> int:
        await workflow.sleep(timedelta(seconds=wait_seconds))
        return place


@workflow.defn(name="many_children")
class ManyChildren:
    """All children pending at once."""

    @workflow.run
    async def run(self, count: int, wait_seconds: float) -> int:
        children = await asyncio.gather(
            *(
                workflow.start_child_workflow(
                    SmallChild.run,
                    args=[place, wait_seconds],
                    id=f"{workflow.info().workflow_id}-{place}",
                )
                for place in range(count)
            )
        )
        results = await asyncio.gather(*children)
        if results != list(range(count)):
            raise AssertionError("the children's results are in another order")
        return len(results)
