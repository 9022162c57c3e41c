"""The workflows and activities behind the recorded exchanges.

Register all of them on the task queue ``http-conformance``. To run them on another engine with the
same authoring API, change the import line and nothing else.
"""

import asyncio
from datetime import timedelta
from typing import Any

from wfcore import activity, workflow
from wfcore.common import RetryPolicy
from wfcore.exceptions import ApplicationError

TASK_QUEUE = "http-conformance"


@activity.defn
async def greet(name: str) -> str:
    return f"Hello, {name}!"


@activity.defn
async def outside() -> Any:
    """Finished by whoever knows its id."""
    activity.raise_complete_async()


@activity.defn
async def broken() -> Any:
    raise ApplicationError("out of order", {"part": 7}, type="Broken")


@workflow.defn
class Hello:
    @workflow.run
    async def run(self, name: str) -> str:
        return f"Hello, {name}!"


@workflow.defn
class HelloActivity:
    @workflow.run
    async def run(self, name: str) -> str:
        return await workflow.execute_activity(
            greet,
            name,
            activity_id="greet",
            start_to_close_timeout=timedelta(seconds=30),
            retry_policy=RetryPolicy(maximum_attempts=3),
        )


@workflow.defn
class Echo:
    @workflow.run
    async def run(self, value: Any = None) -> Any:
        return value


@workflow.defn
class Fails:
    @workflow.run
    async def run(self) -> None:
        raise ApplicationError("no luck", "detail", 2, type="NoLuck", non_retryable=True)


@workflow.defn
class Door:
    """Stays open until told to shut; answers signals, queries and updates."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.shut = False
        self.released = False

    @workflow.run
    async def run(self) -> list[Any]:
        try:
            await workflow.wait_condition(lambda: self.shut)
        except asyncio.CancelledError:
            self.values.append("cancelled")
            raise
        return self.values

    @workflow.signal
    def put(self, value: Any = None) -> None:
        self.values.append(value)

    @workflow.signal
    def release(self) -> None:
        self.released = True

    @workflow.signal
    def close(self) -> None:
        self.shut = True

    @workflow.query
    def seen(self) -> list[Any]:
        return self.values

    @workflow.query
    def nth(self, n: int) -> Any:
        return self.values[n]

    @workflow.update
    def add(self, n: int) -> int:
        self.values.append(n)
        return len(self.values)

    @add.validator
    def check_add(self, n: int) -> None:
        if n < 0:
            raise ApplicationError("must not be negative", type="Negative")

    @workflow.update
    async def add_later(self, n: int) -> int:
        await workflow.wait_condition(lambda: self.released)
        self.values.append(n)
        return len(self.values)

    @workflow.update
    def add_badly(self) -> None:
        raise ApplicationError("jammed", type="Jammed")


@workflow.defn
class Outside:
    """One activity that somebody outside finishes, known by its id."""

    @workflow.run
    async def run(self) -> Any:
        return await workflow.execute_activity(
            outside,
            activity_id="job",
            start_to_close_timeout=timedelta(hours=1),
            heartbeat_timeout=timedelta(minutes=30),
            retry_policy=RetryPolicy(maximum_attempts=1),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )


@workflow.defn
class Retrying:
    """One activity that fails and then waits an hour for its second attempt."""

    @workflow.run
    async def run(self) -> Any:
        return await workflow.execute_activity(
            broken,
            activity_id="job",
            start_to_close_timeout=timedelta(hours=1),
            retry_policy=RetryPolicy(initial_interval=timedelta(hours=1), maximum_attempts=5),
        )


WORKFLOWS = [Hello, HelloActivity, Echo, Fails, Door, Outside, Retrying]
ACTIVITIES = [greet, outside, broken]
