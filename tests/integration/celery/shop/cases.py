"""Workflows of the reported cases (`test_cases.py`); what a build of the project is comes from
`TEST_BUILD`.
"""

import asyncio
import contextlib
import os
from datetime import timedelta

from wfcore import workflow
from wfcore.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from tests.integration.celery.shop import activities

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
BUILD = os.environ.get("TEST_BUILD", "1")


@workflow.defn
class CleansUp:
    """S07: an activity and a timer; cancelled, it says so in its memo."""

    @workflow.run
    async def run(self, what: str) -> None:
        try:
            await asyncio.gather(
                workflow.execute_activity(
                    activities.work, args=[what, 0.1], start_to_close_timeout=MINUTE
                ),
                workflow.sleep(HOUR),
            )
        except asyncio.CancelledError:
            workflow.upsert_memo({"cleaned": True})
            raise


@workflow.defn
class Deployed:
    """S13, S16: three activities; the second is gone from the second build on."""

    def __init__(self) -> None:
        self._state = "begun"

    @workflow.query
    def state(self) -> str:
        return self._state

    @workflow.run
    async def run(self, what: str) -> str:
        await self._do(f"{what}-A")
        self._state = "A is done"
        if BUILD == "1" or (BUILD == "2b" and not workflow.patched("without-b")):
            await workflow.execute_activity(
                activities.wait_outside, f"{what}-B", activity_id="B", start_to_close_timeout=HOUR
            )
            self._state = "B is done"
        await self._do(f"{what}-C")
        self._state = "C is done"
        return what

    async def _do(self, what: str) -> None:
        await workflow.execute_activity(
            activities.work, args=[what, 0.0], start_to_close_timeout=MINUTE
        )


@workflow.defn
class Summing:
    """S15: adds up numbers from signals, so many a run, and hands its sum on."""

    def __init__(self) -> None:
        self._values: list[int] = []

    @workflow.signal
    def add(self, value: int) -> None:
        self._values.append(value)

    @workflow.run
    async def run(
        self, left: int, per_run: int, total: int, order: list[int], waiting: list[int]
    ) -> list[int]:
        """`order` has the last number of each sender, `waiting` the values that the run before did
        not take; values are sender * 1_000_000 + number.
        """
        self._values[:0] = waiting
        wanted = min(per_run, left)
        await workflow.wait_condition(lambda: len(self._values) >= wanted)
        for value in self._values[:wanted]:
            sender, number = divmod(value, 1_000_000)
            if number != order[sender] + 1:
                return [-1, sender, order[sender], number]
            order[sender] = number
            total += number
        if left > wanted:
            rest = self._values[wanted:]
            workflow.continue_as_new(args=[left - wanted, per_run, total, order, rest])
        return [total]


@workflow.defn
class Polls:
    """S14: an activity, then ten seconds for a signal that seldom comes, over and over."""

    def __init__(self) -> None:
        self._woken = False

    @workflow.signal
    def wake(self) -> None:
        self._woken = True

    @workflow.run
    async def run(self, rounds: int, done: int, heeds: bool) -> int:
        while done < rounds:
            done = await workflow.execute_activity(
                activities.one_more, done, start_to_close_timeout=MINUTE
            )
            with contextlib.suppress(TimeoutError):
                await workflow.wait_condition(lambda: self._woken, timeout=timedelta(seconds=10))
            self._woken = False
            if heeds and workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(args=[rounds, done, heeds])
        return done


@workflow.defn
class Overdue:
    """S17: an activity whose first attempt is far too slow."""

    @workflow.run
    async def run(self, what: str, limit: float, first: float) -> list[str]:
        return await workflow.execute_activity(
            activities.pay,
            args=[what, first],
            start_to_close_timeout=timedelta(seconds=limit),
            retry_policy=RetryPolicy(initial_interval=timedelta(seconds=0.5)),
        )


@workflow.defn
class SleepsThenWorks:
    """S02: a wait, then an activity."""

    @workflow.run
    async def run(self, what: str, seconds: float) -> str:
        await workflow.sleep(seconds)
        return await workflow.execute_activity(
            activities.work, args=[what, 0.0], start_to_close_timeout=MINUTE
        )
