"""Noticing workflow code that doesn't come back: it blocks, computes for long, or loops for ever.

One thread for each process looks at all running calls several times within the limit, so a call
costs next to nothing. A forked child starts with none and makes its own.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from wfcore.worker._thread_cancellation import ThreadCancellation

#: Temporal's limit for the activation of a workflow.
DEADLOCK_TIMEOUT = timedelta(seconds=2)
_LOOKS_PER_LIMIT = 8


class HungCodeInterrupt(asyncio.CancelledError):
    """Ends code that runs for too long; a cancellation, so that asyncio's tasks take it quietly."""


class WatchedCall:
    """A call that is given up when it takes too long.

    Exactly one of two things happens: the call ends in time, or `on_hang` is called in another
    thread, with the stack at which the code stands, and the code is interrupted as soon as Python
    lets it. A `WatchedCall` is made by the thread that makes the call.
    """

    def __init__(self, on_hang: Callable[[str], None]) -> None:
        self._on_hang = on_hang
        self._thread_id = threading.get_ident()
        self._thread = ThreadCancellation(HungCodeInterrupt)
        self._lock = threading.Lock()
        self._over = False

    def make(self, call: Callable[..., Any], args: Sequence[Any], limit: timedelta) -> Any:
        """The result of the call.

        Raises:
            HungCodeInterrupt: it was given up; `on_hang` has been called.
        """
        watched = _watch(self, limit.total_seconds())
        try:
            result = self._thread.call(call, args)
        finally:
            _forget(watched)
        if not self._decide():
            raise HungCodeInterrupt
        return result

    def _decide(self) -> bool:
        """Whether this is the first to say how the call ends."""
        with self._lock:
            first, self._over = not self._over, True
            return first

    def give_up(self) -> None:
        """It takes too long."""
        if self._decide():
            try:
                self._on_hang(_stack(self._thread_id))
            finally:
                self._thread.cancel()


def _stack(thread_id: int) -> str:
    frame = sys._current_frames().get(thread_id)  # noqa: SLF001 - documented, for debuggers
    return "".join(traceback.format_stack(frame)) if frame else ""


class _Watcher:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._calls: dict[int, tuple[float, WatchedCall]] = {}
        self._count = 0
        self._pause_seconds = DEADLOCK_TIMEOUT.total_seconds() / _LOOKS_PER_LIMIT
        self._idle = False
        self._thread: threading.Thread | None = None

    def add(self, call: WatchedCall, limit_seconds: float) -> int:
        with self._changed:
            self._count += 1
            self._calls[self._count] = (time.monotonic() + limit_seconds, call)
            pause_seconds = limit_seconds / _LOOKS_PER_LIMIT
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="wfcore-watchdog", daemon=True
                )
                self._thread.start()
            if self._idle or pause_seconds < self._pause_seconds:
                self._pause_seconds = pause_seconds
                self._changed.notify()
            return self._count

    def remove(self, number: int) -> None:
        with self._changed:
            self._calls.pop(number, None)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle = not self._calls
                self._changed.wait(None if self._idle else self._pause_seconds)
                now = time.monotonic()
                late = [number for number, (end, _) in self._calls.items() if end <= now]
                calls = [self._calls.pop(number)[1] for number in late]
            for call in calls:
                # In a thread of its own: it talks to the service, others must not wait for that.
                threading.Thread(target=call.give_up, name="wfcore-hung", daemon=True).start()


_lock = threading.Lock()
_watcher: _Watcher | None = None


def _watch(call: WatchedCall, limit_seconds: float) -> tuple[_Watcher, int]:
    global _watcher  # noqa: PLW0603 - there is one for each process
    with _lock:
        if _watcher is None:
            _watcher = _Watcher()
        watcher = _watcher
    return watcher, watcher.add(call, limit_seconds)


def _forget(watched: tuple[_Watcher, int]) -> None:
    watcher, number = watched
    watcher.remove(number)


def _after_fork() -> None:
    global _lock, _watcher  # noqa: PLW0603 - the child has neither the thread nor a sound lock
    _lock = threading.Lock()
    _watcher = None


os.register_at_fork(after_in_child=_after_fork)
