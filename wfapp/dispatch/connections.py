"""Database connections that outlive tasks, and tasks that outlive connections.

Celery closes Django's connections around each task. With ``CELERY_DB_REUSE_MAX`` it doesn't, and
then this module takes care of them: old and broken ones are closed before a task, one that was idle
is asked before it is used again, and what the engine itself writes is written again on a new
connection. So a restarted server costs nobody an attempt.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from celery import signals
from django.db import (
    InterfaceError,
    OperationalError,
    close_old_connections,
    connections,
)
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from wfcore.exceptions import StartContendedError, UnavailableError
from wfcore.service.ports import RunBusyError, SnapshotTooNewError

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: A connection that was idle for longer is asked whether it lives.
IDLE = timedelta(seconds=1)
#: How long the engine's own statements wait for a database that is away.
PATIENCE = timedelta(seconds=60)
#: How long they wait for a run that another transaction holds, besides the store's own wait.
BUSY_PATIENCE = timedelta(seconds=5)
_FIRST_WAIT_SECONDS = 0.05
_LAST_WAIT_SECONDS = 2.0


def keep_connections(pool: str) -> None:
    """Begin to look after the connections of this worker; `pool` is the kind of Celery's pool."""
    uid = "wfapp.dispatch.connections"
    signals.task_prerun.connect(_before_task, weak=False, dispatch_uid=uid)
    connection_created.connect(_watch_idle, weak=False, dispatch_uid=uid)
    if pool in ("gevent", "eventlet"):
        # Each task is a greenlet with connections of its own, which nobody would use again.
        signals.task_postrun.connect(_after_greenlet, weak=False, dispatch_uid=uid)


@contextmanager
def thread_connections() -> Iterator[None]:
    """The connections of a thread that runs no Celery task are looked after as if it ran one."""
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()


def surviving(call: Callable[[], T], *, alias: str, patience: timedelta = PATIENCE) -> T:
    """Call; and again, on a new connection, when that to the database was lost meanwhile.

    For calls that may be repeated. Inside a caller's transaction an error is an error.

    Raises:
        UnavailableError, OperationalError, InterfaceError: the database stayed away for longer
            than `patience`, or the error is of another kind.
    """
    begun = time.monotonic()
    wait = _FIRST_WAIT_SECONDS
    while True:
        try:
            return call()
        except (SnapshotTooNewError, StartContendedError):
            raise
        except (UnavailableError, OperationalError, InterfaceError) as error:
            connection = connections[alias]
            bound = min(patience, BUSY_PATIENCE) if isinstance(error, RunBusyError) else patience
            if connection.in_atomic_block or time.monotonic() - begun > bound.total_seconds():
                raise
            # The store has told locks from lost connections, and closed those, already.
            if not isinstance(error, UnavailableError) and not is_lost(connection):
                raise
            logger.warning(
                "the database can't be had; trying again",
                extra={"action": "database_lost", "error": str(error)},
            )
            if is_lost(connection):
                connection.close()
        time.sleep(wait)
        wait = min(2 * wait, _LAST_WAIT_SECONDS)


def leave_connection(alias: str) -> None:
    """Close this thread's connection, unless a transaction is open on it."""
    connection = connections[alias]
    if not connection.in_atomic_block:
        connection.close()


def is_lost(connection: BaseDatabaseWrapper) -> bool:
    """Whether a connection that gave an error is none any more."""
    return connection.connection is None or not connection.is_usable()


class Surviving:
    """An object whose methods are called with `surviving`."""

    def __init__(self, target: Any, *, alias: str) -> None:
        self._target = target
        self._alias = alias

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if name.startswith("_") or not callable(value):
            return value
        alias = self._alias

        def call(*args: Any, **kwargs: Any) -> Any:
            return surviving(lambda: value(*args, **kwargs), alias=alias)

        return call


def _before_task(sender: Any, **_: Any) -> None:
    if not sender.request.is_eager:
        close_old_connections()
        for connection in connections.all(initialized_only=True):
            check = connection.close_if_health_check_failed
            if isinstance(check, _IdleCheck) and check.was_used_just_now:
                connection.health_check_done = True  # type: ignore[attr-defined]  # unknown to stubs


def _after_greenlet(sender: Any, **_: Any) -> None:
    if not sender.request.is_eager:
        connections.close_all()


def _watch_idle(connection: BaseDatabaseWrapper, **_: Any) -> None:
    check = connection.close_if_health_check_failed
    if not isinstance(check, _IdleCheck):
        connection.close_if_health_check_failed = _IdleCheck(connection, check)  # type: ignore[method-assign]  # one instance, not the class


class _IdleCheck:
    """Django asks once a task whether a connection lives, and with a pool never; a long activity
    needs to know it after each pause.
    """

    def __init__(self, connection: Any, check: Callable[[], None]) -> None:
        self._connection = connection
        self._check = check
        self._raw = connection.connection
        self._used_at = time.monotonic()

    @property
    def was_used_just_now(self) -> bool:
        """So that to ask whether it lives would cost more than it is worth."""
        return time.monotonic() - self._used_at <= IDLE.total_seconds()

    def __call__(self) -> None:
        now = time.monotonic()
        raw = self._connection.connection
        if raw is not self._raw:
            # Being opened: a question would begin a transaction before autocommit is set.
            self._raw = raw
        elif self._was_idle(now) and is_lost(self._connection):
            self._connection.close()
            self._raw = None
        self._used_at = now
        self._check()

    def _was_idle(self, now: float) -> bool:
        """For a while, and not in the middle of a transaction, whose loss must be told."""
        connection = self._connection
        paused = now - self._used_at > IDLE.total_seconds()
        return paused and connection.autocommit and not connection.in_atomic_block
