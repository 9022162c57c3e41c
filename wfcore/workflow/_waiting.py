"""Sleep, conditions, and asyncio's `wait` and `as_completed` in the order of their input."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from wfcore.workflow import _runtime
from wfcore.workflow._event_groups import EventGroup
from wfcore.workflow._types import AnyType

_FutureType = TypeVar("_FutureType", bound=asyncio.Future[Any])


def _seconds(duration: timedelta | float) -> float:
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


async def sleep(
    duration: timedelta | float,
    *,
    summary: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
) -> None:
    """Wait by a timer of the workflow, which survives restarts.

    Args:
        duration: how long; a number means seconds.
        summary: text for people about the timer.
        event_groups: groups of the timer's command.
    """
    await _runtime.current().sleep(_seconds(duration), summary, event_groups)


async def wait_condition(
    fn: Callable[[], bool],
    *,
    timeout: timedelta | float | None = None,  # noqa: ASYNC109 - Temporal's name
    timeout_summary: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
) -> None:
    """Wait until the function, which is asked whenever something has happened, says true.

    Args:
        fn: looks at the workflow's state; must not wait.
        timeout: the longest wait, in seconds if it is a number. It starts a timer, so a change
            from or to None is a change of the commands.
        timeout_summary: text for people about that timer.
        event_groups: groups of the timer's command.

    Raises:
        asyncio.TimeoutError: the time is over.
    """
    await _runtime.current().wait_condition(
        fn, None if timeout is None else _seconds(timeout), timeout_summary, event_groups
    )


async def wait(
    fs: Iterable[_FutureType],
    *,
    timeout: float | None = None,  # noqa: ASYNC109 - asyncio's name
    return_when: str = asyncio.ALL_COMPLETED,
) -> tuple[list[_FutureType], list[_FutureType]]:
    """`asyncio.wait`, which gives lists in the order of its input.

    Raises:
        TypeError: something else than tasks and futures was given.
        ValueError: nothing was given, or an unknown `return_when`.
    """
    if asyncio.isfuture(fs) or asyncio.iscoroutine(fs):
        raise TypeError(f"Expect an iterable of Tasks/Futures, not {type(fs).__name__}")
    futures = list(fs)
    if not futures:
        raise ValueError("Sequence of Tasks/Futures must not be empty.")
    if any(asyncio.iscoroutine(future) for future in futures):
        raise TypeError("Passing coroutines is forbidden, use tasks explicitly.")
    done, _ = await asyncio.wait(futures, timeout=timeout, return_when=return_when)
    return (
        [future for future in futures if future in done],
        [future for future in futures if future not in done],
    )


def as_completed(
    fs: Iterable[Awaitable[AnyType]], *, timeout: float | None = None
) -> Iterator[Awaitable[AnyType]]:
    """`asyncio.as_completed`, in a deterministic order.

    Raises:
        TypeError: a single awaitable was given instead of several.
    """
    if asyncio.isfuture(fs) or asyncio.iscoroutine(fs):
        raise TypeError(f"expect an iterable of futures, not {type(fs).__name__}")
    loop = asyncio.get_running_loop()
    waiting: list[asyncio.Future[AnyType]] = [asyncio.ensure_future(item, loop=loop) for item in fs]
    ended: asyncio.Queue[asyncio.Future[AnyType] | None] = asyncio.Queue()
    timer: asyncio.TimerHandle | None = None

    def on_end(future: asyncio.Future[AnyType]) -> None:
        if not waiting:
            return  # the time was over before
        waiting.remove(future)
        ended.put_nowait(future)
        if not waiting and timer is not None:
            timer.cancel()

    def on_timeout() -> None:
        for future in waiting:
            future.remove_done_callback(on_end)
            ended.put_nowait(None)
        waiting.clear()

    async def next_ended() -> AnyType:
        future = await ended.get()
        if future is None:
            raise TimeoutError
        return future.result()

    count = len(waiting)
    for future in list(waiting):
        future.add_done_callback(on_end)
    if waiting and timeout is not None:
        timer = loop.call_later(timeout, on_timeout)
    for _ in range(count):
        yield next_ended()
