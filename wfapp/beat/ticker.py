"""The ticker's thread: it looks for due work, and sleeps until the next deadline or a hint.

Every worker has one and one per host is active, by a lock on a file that the system releases with
the process. Any number at once would do no harm: what is due is taken by whoever comes first.
"""

import fcntl
import hashlib
import logging
import os
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import IO, Protocol

from django.db import close_old_connections, connections

logger = logging.getLogger(__name__)

#: How often a ticker that found another one on its host tries to take its place.
STANDBY_SECONDS = 1.0


class Tick(Protocol):
    """One look for due work."""

    def tick(self) -> timedelta:
        """Do what is due, within a bound; how long nothing more will be. Never raises."""


class HostLock:
    """A file that one process of this host and user holds.

    A fork doesn't inherit it: a worker's child that outlives its parent would else keep all tickers
    of the host waiting. Where no such file can be opened, each process ticks, which does no harm.
    """

    def __init__(self, name: str, directory: Path | None = None) -> None:
        digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
        self._directory = directory
        self._name = f"wfapp-ticker-{os.getuid()}-{digest}.lock"
        self._file: IO[str] | None = None
        self._told = False
        _locks.add(self)

    def acquire(self) -> bool:
        """Take it, or find that it is taken."""
        if self._file is not None:
            return True
        try:
            folder = self._directory or Path(tempfile.gettempdir())
            file = (folder / self._name).open("a")
        except OSError as error:
            self._tell(error)
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Let go of it."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _tell(self, error: OSError) -> None:
        if not self._told:
            logger.warning(
                "no lock file can be opened; this process ticks whoever else does",
                extra={"action": "ticker_unlocked", "error": str(error)},
            )
        self._told = True


_locks: "weakref.WeakSet[HostLock]" = weakref.WeakSet()


def _release_all() -> None:
    # Closing a copy of the file leaves the parent's lock as it is.
    for lock in _locks:
        lock.release()


os.register_at_fork(after_in_child=_release_all)


class Ticker:
    """Ticks in a daemon thread.

    `wait_for_hint` returns True when a deadline came near, False after the time that it is given.
    """

    def __init__(
        self,
        tick: Callable[[], Tick],
        wait_for_hint: Callable[[timedelta], bool],
        lock: HostLock | None = None,
    ) -> None:
        self._tick = tick
        self._wait_for_hint = wait_for_hint
        self._lock = lock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wfapp-ticker", daemon=True)

    def start(self) -> None:
        """Begin to tick, now or when the host's lock becomes free."""
        self._thread.start()

    def stop(self) -> None:
        """End after the tick that runs now."""
        self._stopping.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                if self._lock is None or self._lock.acquire():
                    self._once()
                else:
                    self._stopping.wait(STANDBY_SECONDS)
        finally:
            connections.close_all()
            if self._lock:
                self._lock.release()

    def _once(self) -> None:
        try:
            close_old_connections()
            wait = self._tick().tick()
        except Exception:  # a thread that ended here would stop all timers
            logger.exception("tick failed", extra={"action": "tick_failed"})
            wait = timedelta(seconds=1)
        end = time.monotonic() + wait.total_seconds()
        while not self._stopping.is_set() and (left := end - time.monotonic()) > 0:
            if self._hinted(timedelta(seconds=left)):
                return

    def _hinted(self, timeout: timedelta) -> bool:
        try:
            return self._wait_for_hint(timeout)
        except Exception:  # without hints the ticker ticks by the clock
            logger.exception("hints lost", extra={"action": "hints_failed"})
            self._stopping.wait(timeout.total_seconds())
            return False
