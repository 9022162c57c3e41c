"""The loop: what asyncio offers inside a workflow, and what it refuses."""

import asyncio
import contextlib
import gc
import logging
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.live_run import LiveRun, asked
from wfcore import workflow
from wfcore.exceptions import RestrictedWorkflowAccessError
from wfcore.replay.loop import WorkflowLoop


@workflow.defn
class Orders:
    """Notes in which order things run."""

    @workflow.run
    async def run(self) -> list[str]:
        log: list[str] = []
        loop = asyncio.get_running_loop()

        async def note(name: str) -> None:
            log.append(f"{name} 1")
            await asyncio.sleep(0)
            log.append(f"{name} 2")

        loop.call_soon(log.append, "soon")
        tasks = [asyncio.create_task(note(name)) for name in "ab"]
        log.append("main")
        await asyncio.gather(*tasks)
        return log


def test_callbacks_run_in_the_order_in_which_they_became_ready() -> None:
    run = LiveRun(Orders)
    run.work()
    assert run.result() == ["main", "soon", "a 1", "b 1", "a 2", "b 2"]


@workflow.defn
class Tools:
    """Uses asyncio's own tools."""

    def __init__(self) -> None:
        self.log: list[str] = []

    @workflow.run
    async def run(self, tool: str) -> list[str]:
        await getattr(self, tool)()
        return self.log

    async def queue(self) -> None:
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=1)

        async def produce() -> None:
            for number in range(3):
                await queue.put(number)

        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            for _ in range(3):
                self.log.append(str(await queue.get()))

    async def lock(self) -> None:
        lock = asyncio.Lock()

        async def hold(name: str) -> None:
            async with lock:
                self.log.append(f"{name} in")
                await asyncio.sleep(0)
                self.log.append(f"{name} out")

        await asyncio.gather(hold("a"), hold("b"))

    async def event_and_semaphore(self) -> None:
        event, semaphore = asyncio.Event(), asyncio.Semaphore(1)

        async def wait() -> None:
            await event.wait()
            async with semaphore:
                self.log.append("woken")

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        event.set()
        await task

    async def as_completed(self) -> None:
        async def after(turns: int) -> str:
            for _ in range(turns):
                await asyncio.sleep(0)
            return str(turns)

        for next_one in workflow.as_completed([after(3), after(1), after(2)]):
            self.log.append(await next_one)

    async def wait(self) -> None:
        async def after(turns: int) -> str:
            for _ in range(turns):
                await asyncio.sleep(0)
            return str(turns)

        tasks = [asyncio.create_task(after(turns)) for turns in (6, 1, 9)]
        done, pending = await workflow.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        self.log += [f"done {task.result()}" for task in done]
        self.log += [f"left {len(pending)}"]
        for task in pending:
            task.cancel()


@pytest.mark.parametrize(
    ("tool", "log"),
    [
        ("queue", ["0", "1", "2"]),
        ("lock", ["a in", "a out", "b in", "b out"]),
        ("event_and_semaphore", ["woken"]),
        ("as_completed", ["1", "2", "3"]),
        ("wait", ["done 1", "left 2"]),
    ],
)
def test_tools_of_asyncio_work(tool: str, log: list[str]) -> None:
    run = LiveRun(Tools, tool)
    run.work()
    assert run.result() == log


@workflow.defn
class Group:
    """One branch fails; the group cancels the others, each of which notes it by a timer."""

    @workflow.run
    async def run(self, count: int) -> str:
        async def branch(number: int) -> None:
            try:
                await workflow.wait_condition(lambda: False)
            except asyncio.CancelledError:
                asyncio.get_running_loop().call_later(100 + number, int)
                raise

        async def failing() -> None:
            await asyncio.sleep(0)
            raise ValueError("one branch fails")

        try:
            async with asyncio.TaskGroup() as group:
                for number in range(count):
                    group.create_task(branch(number))
                group.create_task(failing())
        except* ValueError:
            pass
        await workflow.wait_condition(lambda: False)
        return "never"


def test_a_task_group_cancels_its_tasks_in_the_same_order_on_each_replay() -> None:
    def delays() -> list[Any]:
        commands = LiveRun(Group, 40, checks_replay=False).work()
        return [command.attributes.start_to_fire_timeout for command in commands]  # type: ignore[union-attr]

    first = delays()
    assert len(first) == 40
    keep_addresses_busy = [object() for _ in range(1000)]
    assert all(delays() == first for _ in range(5)), len(keep_addresses_busy)


def test_unnamed_tasks_have_the_same_names_on_each_replay() -> None:
    @workflow.defn
    class Names:
        @workflow.run
        async def run(self) -> list[str]:
            async def name() -> str:
                task = asyncio.current_task()
                assert task is not None
                return task.get_name()

            return list(
                await asyncio.gather(name(), name(), asyncio.create_task(name(), name="mine"))
            )

    results = []
    for _ in range(2):
        run = LiveRun(Names)
        run.work()
        results.append(run.result())
    assert results[0] == results[1]
    assert results[0][2] == "mine"


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda loop: loop.run_in_executor(None, int), "execute_activity"),
        (lambda loop: loop.create_connection(None), "Do I/O in an activity"),
        (lambda loop: loop.call_soon_threadsafe(int), "send it a signal"),
        (lambda loop: loop.run_until_complete(None), "await the coroutine"),
        (lambda loop: loop.subprocess_exec(None), "activity"),
        (lambda loop: loop.add_signal_handler(2, int), "workflow.signal"),
    ],
)
def test_what_is_not_deterministic_is_refused_with_advice(
    call: Callable[[Any], object], advice: str
) -> None:
    @workflow.defn
    class Refused:
        @workflow.run
        async def run(self) -> None:
            call(asyncio.get_running_loop())

    result = LiveRun(Refused).fail()
    assert isinstance(result.error, RestrictedWorkflowAccessError)
    assert advice in str(result.error)


def test_every_method_of_asyncios_loop_is_there_or_refused() -> None:
    missing = [
        name
        for name in dir(asyncio.AbstractEventLoop)
        if not name.startswith("__")
        and getattr(WorkflowLoop, name) is getattr(asyncio.AbstractEventLoop, name)
    ]
    assert missing == []


def test_to_thread_is_refused() -> None:
    @workflow.defn
    class Threads:
        @workflow.run
        async def run(self) -> None:
            await asyncio.to_thread(int)

    assert isinstance(LiveRun(Threads).fail().error, RestrictedWorkflowAccessError)


@workflow.defn
class CleansUp:
    """Its clean-up code asks for more."""

    done: list[str] = []  # noqa: RUF012 - looked at from outside

    @workflow.run
    async def run(self) -> None:
        try:
            await workflow.wait_condition(lambda: False)
        except asyncio.CancelledError:
            self.done.append("cancelled")
            raise
        finally:
            self.done.append("finally")
            with contextlib.suppress(Exception):
                await workflow.sleep(1)
            self.done.append("after sleep")


def test_eviction_closes_coroutines_and_records_nothing(caplog: pytest.LogCaptureFixture) -> None:
    CleansUp.done.clear()
    run = LiveRun(CleansUp, checks_replay=False)
    assert run.work() == []
    run.instance.evict()
    assert CleansUp.done == ["finally"]
    assert caplog.records == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_eviction_gives_up_on_code_that_swallows_everything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @workflow.defn
    class Stubborn:
        @workflow.run
        async def run(self) -> None:
            task = asyncio.create_task(self.go_on())
            with contextlib.suppress(BaseException):
                await task
            await self.go_on()

        async def go_on(self) -> None:
            while True:
                with contextlib.suppress(BaseException):
                    await workflow.sleep(1)

    run = LiveRun(Stubborn, checks_replay=False)
    run.work()
    run.instance.evict()
    assert [record.action for record in caplog.records] == ["eviction_failed"]  # type: ignore[attr-defined]
    del run
    gc.collect()


def test_scopes_are_left_when_a_run_is_evicted() -> None:
    @workflow.defn
    class Scoped:
        @workflow.run
        async def run(self) -> None:
            with workflow.create_event_group("g").scope(), workflow.unsafe.sandbox_unrestricted():
                await workflow.wait_condition(lambda: False)

    run = LiveRun(Scoped, checks_replay=False)
    run.work()
    run.instance.evict()


def test_what_nobody_awaits_is_logged_once_and_not_on_replay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @workflow.defn
    class Forgets:
        @workflow.run
        async def run(self) -> None:
            def broken() -> None:
                raise ValueError("in a callback")

            asyncio.get_running_loop().call_soon(broken)
            await asyncio.sleep(1)

    with caplog.at_level(logging.ERROR):
        LiveRun(Forgets).work()
    (record,) = caplog.records
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "in a callback"


def test_an_exception_handler_of_the_code_gets_errors() -> None:
    @workflow.defn
    class Handles:
        @workflow.run
        async def run(self) -> list[str]:
            seen: list[str] = []
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: seen.append(str(context["exception"])))

            def broken() -> None:
                raise ValueError("in a callback")

            loop.call_soon(broken)
            await asyncio.sleep(0)
            return seen

    run = LiveRun(Handles)
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == ["in a callback"]


def test_the_callers_own_loop_is_running_again_afterwards() -> None:
    async def outer() -> bool:
        before = asyncio.get_running_loop()
        LiveRun(Orders).work()
        return asyncio.get_running_loop() is before

    assert asyncio.run(outer())
