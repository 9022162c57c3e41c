"""Calls at a later time, from one waiting thread for each process and a few that do the calls.

The calls may block for a while (they talk to the service), so the waiting thread hands them on. A
forked child starts with none and makes its own.
"""

import heapq
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

_log = logging.getLogger(__name__)
_CALLERS = 4


class Alarm:
    """A call that is to come; cancelling it later than its time has no effect."""

    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at = at
        self.cancelled = False
        self._call = call

    def cancel(self) -> None:
        """Don't make the call."""
        self.cancelled = True

    def ring(self) -> None:
        """Make the call unless it was cancelled; an error is logged, since nobody waits for it."""
        if self.cancelled:
            return
        try:
            self._call()
        except Exception:  # noqa: BLE001 - nobody else would see it
            _log.exception("a delayed call failed", extra={"action": "alarm_failed"})


class Alarms(Protocol):
    """Makes calls later, by a clock that only goes forward."""

    def now(self) -> float:
        """Seconds since some moment."""

    def call_at(self, at: float, call: Callable[[], None]) -> Alarm:
        """Make the call at that time, or at once if it has passed; never in the calling thread."""


class ThreadAlarms:
    """Alarms by the real clock."""

    def __init__(self) -> None:
        self._wakeup = threading.Condition()
        self._heap: list[tuple[float, int, Alarm]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None
        self._callers = ThreadPoolExecutor(_CALLERS, thread_name_prefix="wfcore-alarm")

    def now(self) -> float:
        return time.monotonic()

    def call_at(self, at: float, call: Callable[[], None]) -> Alarm:
        alarm = Alarm(at, call)
        with self._wakeup:
            heapq.heappush(self._heap, (at, next(self._order), alarm))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="wfcore-alarms", daemon=True)
                self._thread.start()
            self._wakeup.notify()
        return alarm

    def _run(self) -> None:
        while True:
            alarm = self._next()
            try:
                self._callers.submit(alarm.ring)
            except RuntimeError:
                return  # the interpreter is ending

    def _next(self) -> Alarm:
        """Wait for the time of the nearest alarm that still counts, and take it."""
        with self._wakeup:
            while True:
                while self._heap and self._heap[0][2].cancelled:
                    heapq.heappop(self._heap)
                if not self._heap:
                    self._wakeup.wait()
                    continue
                wait_seconds = self._heap[0][0] - self.now()
                if wait_seconds <= 0:
                    return heapq.heappop(self._heap)[2]
                self._wakeup.wait(wait_seconds)


_lock = threading.Lock()
_shared: ThreadAlarms | None = None


def shared_alarms() -> ThreadAlarms:
    """The process's alarms."""
    global _shared  # noqa: PLW0603 - there is one for each process
    with _lock:
        if _shared is None:
            _shared = ThreadAlarms()
        return _shared


def _forget() -> None:
    global _lock, _shared  # noqa: PLW0603 - the child has neither the threads nor a sound lock
    _lock = threading.Lock()
    _shared = None


os.register_at_fork(after_in_child=_forget)
