"""Raising cancellation into the thread of a sync activity, but not into a block it shields.

Python delivers such an exception between two bytecodes; a call into C code is not interrupted. It
is delivered at most once, and never after `call` has ended. A greenlet is no thread of Python's, so
that on gevent code hears of its cancellation only when it asks.
"""

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from wfcore.exceptions import CancelledError


class ThreadCancellation:
    """Cancels one call of a function.

    Args:
        kind: what is raised in it.
    """

    def __init__(self, kind: type[BaseException] = CancelledError) -> None:
        self._kind = kind
        self._lock = threading.Lock()
        self._thread_id: int | None = None
        self._wanted = False
        self._delivered = False
        self._is_unsettled = False
        self._shields = 0

    def cancel(self) -> None:
        """Raise the exception in the function, as soon as no shield holds it off."""
        with self._lock:
            self._wanted = True
            self._deliver()

    def call(self, fn: Callable[..., Any], args: Sequence[Any]) -> Any:
        """Call a function, which may be cancelled until it returns.

        Raises:
            CancelledError: it was cancelled; also if that had happened before.
        """
        # The exception can come while the inner block ends and skip what stands there. It comes
        # only once, so then the outer one is left in peace.
        try:
            try:
                self._start()
                return fn(*args)
            finally:
                self._stop()
        finally:
            self._stop()

    @contextmanager
    def shield(self) -> Iterator[None]:
        """Hold a cancellation off; what came meanwhile is raised at the end of the outermost one.

        Raises:
            CancelledError: it was cancelled inside.
        """
        with self._lock:
            self._shields += 1
        try:
            yield
        finally:
            with self._lock:
                self._shields -= 1
                raise_now = self._is_due()
                self._delivered = self._delivered or raise_now
            if raise_now:
                raise self._kind

    def _is_due(self) -> bool:
        in_call = self._thread_id is not None
        return self._wanted and in_call and not self._delivered and not self._shields

    def _deliver(self) -> None:
        if self._is_due():
            self._delivered = self._is_unsettled = True
            self._is_unsettled = _raise_in(self._thread_id, self._kind)

    def _start(self) -> None:
        with self._lock:
            self._thread_id = threading.get_ident()
            self._deliver()

    def _stop(self) -> None:
        """Make sure that nothing is delivered any more; it may come while this runs."""
        while True:
            try:
                with self._lock:
                    self._thread_id = None
                if self._is_unsettled:
                    _take_pending()
                    self._is_unsettled = False
            except self._kind:  # the function has ended, so it means nothing any more
                continue
            return


class _Pending(BaseException):
    """Takes the place of an exception that may or may not have been delivered."""


def _take_pending() -> None:
    """Leave no exception pending for this thread.

    Setting none would do that too, but leaves CPython's flag up that one is pending, which slows
    every thread and makes a traced one loop for ever (seen with 3.11).
    """
    try:
        while _raise_in(threading.get_ident(), _Pending):
            pass
    except _Pending:
        return


def _raise_in(thread_id: int | None, kind: type[BaseException]) -> bool:
    """Whether there is such a thread, in which the exception is raised soon."""
    found: int = ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread_id or 0), ctypes.py_object(kind)
    )
    return bool(found)
