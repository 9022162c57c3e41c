"""One event loop for each process, in a thread of its own, shared by all that waits.

Async activities, interceptors and codecs run there; threads hand it coroutines and block. A forked
child starts with none and makes its own.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

_T = TypeVar("_T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def shared_loop() -> asyncio.AbstractEventLoop:
    """The process's loop; started with the first call."""
    global _loop  # noqa: PLW0603 - there is one for each process
    with _lock:
        if _loop is None:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="wfcore-async", daemon=True)
            thread.start()
            _loop = loop
        return _loop


def run_blocking(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run on the shared loop and wait for the result; never call it on that loop's own thread."""
    return asyncio.run_coroutine_threadsafe(coroutine, shared_loop()).result()


async def in_daemon_thread(call: Callable[[], _T]) -> _T:
    """The result of a call that may block for long; its thread doesn't keep the process alive."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def tell(outcome: Callable[[], object]) -> None:
        if not future.done():
            outcome()

    def run() -> None:
        outcome: Callable[[], object]
        try:
            outcome = partial(future.set_result, call())
        except BaseException as err:  # noqa: BLE001 - it is raised in the coroutine
            outcome = partial(future.set_exception, err)
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, outcome)

    threading.Thread(target=run, name="wfcore-worker", daemon=True).start()
    return await future


def _forget() -> None:
    global _lock, _loop  # noqa: PLW0603 - the child has neither the thread nor a sound lock
    _lock = threading.Lock()
    _loop = None


os.register_at_fork(after_in_child=_forget)
