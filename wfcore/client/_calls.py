"""How a coroutine makes a call of the service, which blocks its thread.

Calls that end soon go through asyncio's own threads. Calls that wait get a daemon thread each, so
that neither a full pool delays others nor a wait delays the end of the process.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from typing import Any, Protocol, TypeVar

from wfcore.exceptions import DeadlineExceededError, RPCError, RPCStatusCode

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_T = TypeVar("_T")

#: What fails so may not fail the next time.
PASSING = (
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.ABORTED,
)
_FIRST_WAIT_SECONDS = 0.1
_GROWTH = 1.5
_LONGEST_WAIT_SECONDS = 5.0
_GIVE_UP_SECONDS = 10.0
#: So many calls wait at once in a process; each holds a thread and what the host keeps for it.
_WAITERS = 64


class Calls(Protocol):
    """Makes calls of the service for coroutines."""

    async def make(
        self,
        method: Callable[[_Request], _Response],
        request: _Request,
        *,
        time_limit: timedelta | None = None,
        waits: bool = False,
    ) -> _Response:
        """Make one; `waits` says that the service may hold it until something happens.

        Raises:
            DeadlineExceededError: it didn't end within `time_limit`; it may still take effect.
            RPCError: the service refused it.
        """


class ThreadCalls:
    """Calls in threads. What fails in passing is repeated for ten seconds.

    Repeating does no harm: a request that makes or changes something carries an id of its own.
    """

    def __init__(self) -> None:
        self._waiters = threading.BoundedSemaphore(_WAITERS)

    async def make(
        self,
        method: Callable[[_Request], _Response],
        request: _Request,
        *,
        time_limit: timedelta | None = None,
        waits: bool = False,
    ) -> _Response:
        """See `Calls.make`."""
        try:
            async with asyncio.timeout(time_limit.total_seconds() if time_limit else None):
                return await self._repeated(method, request, waits)
        except TimeoutError as err:
            raise DeadlineExceededError("Timeout expired") from err

    async def _repeated(
        self, method: Callable[[_Request], _Response], request: _Request, waits: bool
    ) -> _Response:
        loop = asyncio.get_running_loop()
        give_up = loop.time() + _GIVE_UP_SECONDS
        wait_seconds = _FIRST_WAIT_SECONDS
        while True:
            try:
                if waits:
                    return await _in_daemon(self._waiters, method, request)
                return await asyncio.to_thread(method, request)
            except RPCError as err:
                if err.status not in PASSING:
                    raise
                if loop.time() + wait_seconds > give_up:
                    raise
            await asyncio.sleep(wait_seconds)
            wait_seconds = min(wait_seconds * _GROWTH, _LONGEST_WAIT_SECONDS)


class InlineCalls:
    """Calls in the calling thread, for synchronous code that drives coroutines by `run_inline`.

    So a start joins the transaction that this thread has open.
    """

    async def make(
        self,
        method: Callable[[_Request], _Response],
        request: _Request,
        *,
        time_limit: timedelta | None = None,
        waits: bool = False,
    ) -> _Response:
        """See `Calls.make`; the service's own limits hold, `time_limit` has no effect."""
        del time_limit, waits
        return method(request)


def run_inline(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine that never really waits, as a client's with `InlineCalls`.

    Raises:
        RuntimeError: it did wait, as a codec or an interceptor that does I/O makes it.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: _T = end.value
        return result
    coroutine.close()
    raise RuntimeError(
        "a payload codec or an interceptor waits for I/O, so this call needs an event loop: "
        "await the asynchronous client instead"
    )


async def _in_daemon(
    waiters: threading.BoundedSemaphore,
    method: Callable[[_Request], _Response],
    request: _Request,
) -> _Response:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Response] = loop.create_future()
    context = contextvars.copy_context()

    def call() -> None:
        with waiters:
            try:
                result = context.run(method, request)
            except BaseException as err:  # noqa: BLE001 - it is raised in the coroutine
                _tell(loop, future, partial(future.set_exception, err))
            else:
                _tell(loop, future, partial(future.set_result, result))

    threading.Thread(target=call, name="wfcore-wait", daemon=True).start()
    return await future


def _tell(
    loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Any]", tell: Callable[[], object]
) -> None:
    def unless_given_up() -> None:
        if not future.done():
            tell()

    try:
        loop.call_soon_threadsafe(unless_given_up)
    except RuntimeError:
        return  # the loop was closed meanwhile, so nobody waits
