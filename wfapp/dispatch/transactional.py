"""Transactional activities: what they write and that they are done commit together, exactly once.

The completion is stored in the transaction of the activity's own writes. If the attempt is over by
then (timed out, or done by another worker), the completion is refused and the writes are undone
with it. If the process dies, neither is there, and the next attempt begins anew.
"""

import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connections, transaction

from wfapp.dispatch.connections import is_lost
from wfcore import activity
from wfcore.exceptions import CompleteAsyncError, NotFoundError, UnavailableError

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

#: How often a body whose database connection broke begins anew within its attempt.
TRIES = 5


@dataclass
class Completion:
    """How the running attempt is completed from within its own code."""

    #: stores the result, joining the transaction that is open
    complete: Callable[[Any], None]
    alias: str
    #: the caller of the body wants its result, and will find `done`; else the body ends by an error
    gives_result: bool = False
    done: bool = False


_completion: ContextVar[Completion | None] = ContextVar("wfapp_completion", default=None)


def current_completion() -> Completion | None:
    """How the attempt that runs here can complete itself."""
    return _completion.get()


@contextmanager
def completing(completion: Completion) -> Iterator[None]:
    """Let a transactional activity within this block complete its attempt."""
    reset = _completion.set(completion)
    try:
        yield
    finally:
        _completion.reset(reset)


def transactional_activity(fn: Callable[P, R]) -> Callable[P, R]:
    """Run a sync activity in one transaction with its completion.

    Put it below ``@activity.defn`` or ``@shared_task``. The transaction is on the database that
    holds the workflows. Nothing outside of that database is undone by a rollback, so it is for code
    that writes rows, and it should be short: its locks are held until it ends. An activity that
    completes later (``raise_complete_async``) must do so from outside.

    Raises:
        TypeError: the function is a coroutine function; Django's transactions are for sync code.

    Example::

        @activity.defn
        @transactional_activity
        def book(order_id: int) -> str: ...
    """
    if inspect.iscoroutinefunction(fn):
        raise TypeError(f"{fn.__qualname__} is async: a transactional activity must be a sync one")

    @functools.wraps(fn)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        completion = _completion.get()
        if completion is None:  # called as a plain function
            with transaction.atomic():
                return fn(*args, **kwargs)
        result = _run(completion, lambda: fn(*args, **kwargs))
        completion.done = True
        if completion.gives_result:
            return result
        raise CompleteAsyncError

    return run


def _run(completion: Completion, body: Callable[[], R]) -> R:
    """The body and its completion, committed; anew when the connection breaks before that."""
    unknown = False
    for left in range(TRIES - 1, -1, -1):
        result: R | None = None
        try:
            with transaction.atomic(using=completion.alias):
                result = body()
                # The commit follows at once: a cancellation must not come between.
                with activity.shield_thread_cancel_exception():
                    completion.complete(result)
            return result
        except NotFoundError:
            if unknown:  # a commit whose outcome we missed has completed the attempt
                raise CompleteAsyncError from None
            raise
        except (OperationalError, InterfaceError, UnavailableError) as error:
            connection = connections[completion.alias]
            if not left or not is_lost(connection):
                raise
            connection.close()
            unknown = True
            logger.warning(
                "the connection broke in a transactional activity; it begins anew",
                extra={"action": "database_lost", "error": str(error)},
            )
    raise AssertionError("the loop ends by a return or an error")
