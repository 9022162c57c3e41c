"""Taking tasks of a queue: only into a free slot, so that what is claimed runs at once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Generic, TypeVar

from wfcore.exceptions import (
    AbortedError,
    DeadlineExceededError,
    ResourceExhaustedError,
    UnavailableError,
)

_T = TypeVar("_T")
_log = logging.getLogger(__name__)

_PASSING = (AbortedError, DeadlineExceededError, ResourceExhaustedError, UnavailableError)
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0


class Announcements:
    """Tells all pollers of a queue that something may wait there."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    @property
    def count(self) -> int:
        """How many there were."""
        return self._count

    def announce(self) -> None:
        """Wake who waits."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait(self, known: int, timeout_seconds: float) -> None:
        """Wait for more than the known ones."""
        with self._changed:
            self._changed.wait_for(lambda: self._count > known, timeout_seconds)


class Slots:
    """So many tasks at once."""

    def __init__(self, size: int) -> None:
        self._changed = threading.Condition()
        self.size = self._free = size

    def take(self, timeout_seconds: float) -> bool:
        """Take one; False if none became free in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._free > 0, timeout_seconds):
                return False
            self._free -= 1
            return True

    def give_back(self) -> None:
        with self._changed:
            self._free += 1
            self._changed.notify_all()

    def wait_all_free(self, timeout_seconds: float | None) -> bool:
        """Wait until nothing runs; whether nothing does at the end."""
        with self._changed:
            return self._changed.wait_for(lambda: self._free == self.size, timeout_seconds)


class Poller(Generic[_T]):
    """Polls for tasks of one kind, in a thread, until it is told to stop.

    Args:
        poll: asks for a task without waiting; None if there is none.
        run: runs one; what it raises is logged, since its outcome is reported by itself.
        executor_for: where a task runs.
        per_second: how many tasks start in a second at most.
        longest_wait_seconds: how often to look for tasks that nobody announced.
    """

    def __init__(
        self,
        *,
        poll: Callable[[], _T | None],
        run: Callable[[_T], None],
        executor_for: Callable[[_T], Executor],
        slots: Slots,
        announcements: Announcements,
        stopping: threading.Event,
        per_second: float | None = None,
        longest_wait_seconds: float = 1.0,
    ) -> None:
        self._poll = poll
        self._run = run
        self._executor_for = executor_for
        self._slots = slots
        self._announcements = announcements
        self._stopping = stopping
        self._spacing_seconds = 1 / per_second if per_second else 0.0
        self._longest_wait_seconds = longest_wait_seconds
        self._next_start = 0.0
        self._pause_seconds = _FIRST_PAUSE_SECONDS

    def take_tasks(self) -> None:
        """Take tasks until told to stop.

        Raises:
            Exception: the service fails for good.
        """
        try:
            while not self._stopping.is_set():
                if self._slots.take(self._longest_wait_seconds) and not self._take_one_safely():
                    self._slots.give_back()
        finally:
            self._stopping.set()  # an error ends the other pollers too
            self._announcements.announce()

    def _take_one_safely(self) -> bool:
        try:
            return self._take_one()
        except BaseException:
            self._slots.give_back()
            raise

    def _take_one(self) -> bool:
        """Start a task, or wait for one to come; whether one was started."""
        if self._spacing_seconds:
            self._stopping.wait(max(self._next_start - time.monotonic(), 0))
        known = self._announcements.count
        try:
            task = None if self._stopping.is_set() else self._poll()
        except _PASSING as err:
            _log.warning("polling failed, trying again: %s", err, extra={"action": "poll_failed"})
            self._stopping.wait(self._pause_seconds)
            self._pause_seconds = min(self._pause_seconds * 2, _LONGEST_PAUSE_SECONDS)
            return False
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        if task is None:
            if not self._stopping.is_set():
                self._announcements.wait(known, self._longest_wait_seconds)
            return False
        self._next_start = time.monotonic() + self._spacing_seconds
        self.start(task)
        return True

    def start(self, task: _T) -> None:
        """Run a task for which a slot was taken."""
        self._executor_for(task).submit(self._run_in_slot, task)

    def _run_in_slot(self, task: _T) -> None:
        try:
            self._run(task)
        except BaseException:
            _log.exception("a task ended unexpectedly", extra={"action": "task_failed"})
            raise
        finally:
            self._slots.give_back()
