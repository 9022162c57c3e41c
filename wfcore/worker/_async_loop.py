"""One event loop for each process, in a thread of its own, shared by all that waits.

Async activities, interceptors and codecs run there; threads hand it coroutines and block. A forked
child starts with none and makes its own.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
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


def _forget() -> None:
    global _lock, _loop  # noqa: PLW0603 - the child has neither the thread nor a sound lock
    _lock = threading.Lock()
    _loop = None


os.register_at_fork(after_in_child=_forget)
