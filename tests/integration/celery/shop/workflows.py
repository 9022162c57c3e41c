"""Workflows of the tests."""

import asyncio
from datetime import timedelta
from typing import Any

from wfcore import workflow
from wfcore.common import RetryPolicy
from wfcore.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from tests.integration.celery.shop import activities, tasks
    from tests.integration.celery.shop.cases import (
        CleansUp,
        Deployed,
        Overdue,
        Polls,
        SleepsThenWorks,
        Summing,
    )
    from wfapp.dispatch.celery_tasks import call

__all__ = ["CleansUp", "Deployed", "Overdue", "Polls", "SleepsThenWorks", "Summing"]

MINUTE = timedelta(minutes=1)


@workflow.defn
class Hello:
    @workflow.run
    async def run(self, name: str) -> str:
        return await workflow.execute_activity(
            activities.greet, name, start_to_close_timeout=MINUTE
        )


@workflow.defn
class Sleeper:
    @workflow.run
    async def run(self, seconds: float) -> float:
        begun = workflow.now()
        await workflow.sleep(seconds)
        return (workflow.now() - begun).total_seconds()


@workflow.defn
class Echo:
    """Its activity signals it."""

    def __init__(self) -> None:
        self._got = 0

    @workflow.signal
    def add(self, value: int) -> None:
        self._got += value

    @workflow.run
    async def run(self) -> tuple[str, int]:
        namespace = await workflow.execute_activity(
            activities.add_to_own_workflow, 7, start_to_close_timeout=MINUTE
        )
        return namespace, self._got


@workflow.defn
class Counter:
    """Adds up what signals bring, until it is told to finish."""

    def __init__(self) -> None:
        self._sum = 0
        self._finished = False
        self._goes_on = False

    @workflow.signal
    def add(self, value: int) -> None:
        self._sum += value

    @workflow.signal
    def finish(self) -> None:
        self._finished = True

    @workflow.update
    def put(self, value: int) -> int:
        self._sum = value
        return self._sum

    @put.validator
    def check(self, value: int) -> None:
        if value < 0:
            raise ApplicationError("below nothing", type="Negative")

    @workflow.update
    async def add_later(self, value: int, seconds: float) -> int:
        await asyncio.sleep(seconds)
        self._sum += value
        return self._sum

    @workflow.update
    async def go_on(self) -> None:
        """Ends this run; another follows."""
        self._goes_on = True

    @workflow.query
    def total(self) -> int:
        return self._sum

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: self._finished or self._goes_on)
        if self._goes_on:
            workflow.continue_as_new()
        return self._sum


@workflow.defn
class Work:
    """One activity that takes a while; `attempts` bounds its attempts."""

    @workflow.run
    async def run(self, what: str, seconds: float, attempts: int = 0) -> str:
        return await workflow.execute_activity(
            activities.work,
            args=[what, seconds],
            start_to_close_timeout=MINUTE,
            retry_policy=RetryPolicy(
                initial_interval=timedelta(milliseconds=100), maximum_attempts=attempts
            ),
        )


@workflow.defn
class Retried:
    @workflow.run
    async def run(self, what: str, failures: int) -> int:
        return await workflow.execute_activity(
            activities.flaky,
            args=[what, failures],
            start_to_close_timeout=MINUTE,
            retry_policy=RetryPolicy(
                initial_interval=timedelta(milliseconds=100), backoff_coefficient=1.0
            ),
        )


@workflow.defn
class Fan:
    """Many activities side by side."""

    @workflow.run
    async def run(self, what: str, count: int, seconds: float) -> int:
        done = await asyncio.gather(
            *(
                workflow.execute_activity(
                    activities.work,
                    args=[f"{what}-{number}", seconds],
                    start_to_close_timeout=MINUTE,
                )
                for number in range(count)
            )
        )
        return len(done)


@workflow.defn
class Busy:
    """A workflow task that takes a while before its first await: a claim that can be killed."""

    @workflow.run
    async def run(self, what: str, seconds: float) -> str:
        with workflow.unsafe.sandbox_unrestricted():
            activities.ledger.begin_outside(f"{what} task")
            activities.ledger.sleep(seconds)
        return await workflow.execute_activity(
            activities.greet, what, start_to_close_timeout=MINUTE
        )


@workflow.defn
class Booking:
    @workflow.run
    async def run(self, what: str, seconds: float) -> str:
        return await workflow.execute_activity(
            activities.book, args=[what, seconds], start_to_close_timeout=MINUTE
        )


@workflow.defn
class Shared:
    """Celery tasks as activities, by object or by name."""

    @workflow.run
    async def run(self, task: str, what: str, more: list[Any]) -> Any:
        by_object = {"shop.receipt": tasks.receipt, "shop.unsteady": tasks.unsteady}
        return await workflow.execute_activity(
            by_object.get(task, task),
            args=[what, *more],
            start_to_close_timeout=MINUTE,
        )


@workflow.defn
class SharedWithKeywords:
    @workflow.run
    async def run(self, what: str) -> Any:
        return await workflow.execute_activity(
            "shop.receipt", call([what], {"copies": 3}), start_to_close_timeout=MINUTE
        )


@workflow.defn
class Sessions:
    @workflow.run
    async def run(self) -> int:
        return await workflow.execute_activity(
            activities.connections_in_transaction, start_to_close_timeout=MINUTE
        )


@workflow.defn
class FindOrder:
    @workflow.run
    async def run(self, what: str) -> int:
        return await workflow.execute_activity(
            activities.find_order, what, start_to_close_timeout=MINUTE
        )


@workflow.defn
class BrokenStatement:
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(
            activities.broken_statement,
            start_to_close_timeout=MINUTE,
            retry_policy=RetryPolicy(maximum_attempts=2),
        )
