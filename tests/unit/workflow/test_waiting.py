"""`wait` and `as_completed` keep the order of their input."""

import asyncio
from typing import Any

import pytest

from tests.support.live_run import LiveRun, asked
from wfcore import workflow


async def after(turns: int) -> int:
    for _ in range(turns):
        await asyncio.sleep(0)
    return turns


@workflow.defn
class Waits:
    @workflow.run
    async def run(self, how: str) -> Any:
        tasks = [asyncio.create_task(after(turns)) for turns in (3, 1, 2)]
        if how == "all":
            done, pending = await workflow.wait(tasks)
            return [[task.result() for task in done], len(pending)]
        if how == "timeout":
            never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            finished, left = await workflow.wait([*tasks, never], timeout=5)
            return [len(finished), left == [never]]
        if how == "as_completed":
            return [await task for task in workflow.as_completed(tasks)]
        if how == "as_completed late":
            never = asyncio.get_running_loop().create_future()
            found: list[Any] = []
            for waiting in workflow.as_completed([*tasks, never], timeout=5):
                try:
                    found.append(await waiting)
                except TimeoutError:
                    found.append("late")
            return found
        await workflow.wait([])
        return None


@pytest.mark.parametrize(("how", "result"), [("all", [[3, 1, 2], 0]), ("as_completed", [1, 2, 3])])
def test_what_ends_in_the_same_task(how: str, result: Any) -> None:
    run = LiveRun(Waits, how)
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == result


@pytest.mark.parametrize(
    ("how", "result"), [("timeout", [3, True]), ("as_completed late", [1, 2, 3, "late"])]
)
def test_a_timeout_is_a_timer(how: str, result: Any) -> None:
    run = LiveRun(Waits, how)
    assert asked(run.work()) == ["START_TIMER"]
    run.fire("1")
    run.work()
    assert run.result() == result


def test_waiting_for_nothing_is_refused() -> None:
    assert "must not be empty" in str(LiveRun(Waits, "nothing").fail().error)


async def test_wrong_arguments_are_refused() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    with pytest.raises(TypeError, match="iterable of Tasks/Futures"):
        await workflow.wait(future)  # type: ignore[type-var]
    with pytest.raises(TypeError, match="iterable of futures"):
        next(workflow.as_completed(future))
    coro = after(1)
    with pytest.raises(TypeError, match="coroutines is forbidden"):
        await workflow.wait([coro])  # type: ignore[type-var]
    coro.close()
