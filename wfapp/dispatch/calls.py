"""How the client of Django code makes its calls: in which thread, and how long it tries.

A call inside a caller's transaction is made in its thread and once; any other outlives an outage of
the database, and a run that is just ending.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from functools import partial
from time import monotonic, sleep
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

from wfapp.conf import config
from wfapp.dispatch.connections import surviving
from wfapp.store import DjangoStore
from wfcore.client import run_inline
from wfcore.exceptions import (
    AbortedError,
    DeadlineExceededError,
    MultiOperationExecutionError,
    ResourceExhaustedCause,
    ResourceExhaustedError,
    RPCError,
)

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
T = TypeVar("T")

#: How long a call outside of a transaction waits for a run that is ending.
PATIENCE = timedelta(seconds=10)
_FIRST_WAIT_SECONDS = 0.05
_LAST_WAIT_SECONDS = 1.0


class InlineCalls:
    """Calls in the calling thread and its transaction."""

    def __init__(self, store: DjangoStore, deadline: float | None = None) -> None:
        self._store = store
        self._deadline = deadline

    async def make(
        self,
        method: Callable[[_Request], _Response],
        request: _Request,
        *,
        time_limit: timedelta | None = None,
        waits: bool = False,
    ) -> _Response:
        """See `wfcore.client.Calls.make`; only a call that waits can be given up."""
        call = partial(method, request)
        if not self._store.inside_callers_transaction():
            patience = config().database_wait
            lasting = partial(surviving, call, alias=self._store.alias, patience=patience)
            call = partial(_once_free, lasting)
        seconds = _left(self._deadline, time_limit)
        if seconds is None or not waits:
            return call()
        try:
            return in_thread(call).result(max(seconds, 0.0))
        except TimeoutError:
            raise DeadlineExceededError("Timeout expired") from None


class AsyncCalls:
    """Calls of coroutines: short ones in Django's thread for sync code, waits in their own."""

    def __init__(self, store: Callable[[], DjangoStore], deadline: float | None = None) -> None:
        self._store = store
        self._deadline = deadline

    async def make(
        self,
        method: Callable[[_Request], _Response],
        request: _Request,
        *,
        time_limit: timedelta | None = None,
        waits: bool = False,
    ) -> _Response:
        """See `wfcore.client.Calls.make`."""
        seconds = _left(self._deadline, time_limit)
        call = partial(InlineCalls(self._store()).make, method, request)
        if not waits:
            return await sync_to_async(lambda: run_inline(call()))()
        waiting = in_thread(lambda: run_inline(call()))
        return await _awaited(waiting, seconds)


def deadline_in(timeout: timedelta | None) -> float | None:
    """The moment at which calls are given up, for `InlineCalls` and `AsyncCalls`."""
    return monotonic() + timeout.total_seconds() if timeout is not None else None


def in_thread(call: Callable[[], T]) -> "Future[T]":
    """Call in a thread with database connections of its own, which end with it."""
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()  # who gives up waiting doesn't cancel it

    def run() -> None:
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - raised where the outcome is asked for
            outcome.set_exception(error)
        else:
            outcome.set_result(result)
        finally:
            connections.close_all()

    threading.Thread(target=run, name="wfapp-call", daemon=True).start()
    return outcome


def _once_free(call: Callable[[], T]) -> T:
    """Call; and again while the run is ending, since another may follow that takes the call."""
    end, wait = monotonic() + PATIENCE.total_seconds(), _FIRST_WAIT_SECONDS
    while True:
        try:
            return call()
        except RPCError as error:
            if not _is_busy(error) or monotonic() > end:
                raise
        sleep(wait)
        wait = min(2 * wait, _LAST_WAIT_SECONDS)


def _is_busy(error: RPCError) -> bool:
    failed = error.failed if isinstance(error, MultiOperationExecutionError) else error
    if isinstance(failed, ResourceExhaustedError):
        return failed.resource_cause is ResourceExhaustedCause.BUSY_WORKFLOW
    return isinstance(failed, AbortedError)


async def _awaited(waiting: "Future[T]", seconds: float | None) -> T:
    import asyncio  # noqa: PLC0415 - here alone; sync users never need it

    try:
        async with asyncio.timeout(seconds):
            return await asyncio.wrap_future(waiting)
    except TimeoutError:
        raise DeadlineExceededError("Timeout expired") from None


def _left(deadline: float | None, time_limit: timedelta | None) -> float | None:
    """Seconds that a call may take."""
    bounds = [] if time_limit is None else [time_limit.total_seconds()]
    if deadline is not None:
        bounds.append(deadline - monotonic())
    return min(bounds) if bounds else None
