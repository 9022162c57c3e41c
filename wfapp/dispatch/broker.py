"""A broker connection of our own that never holds up its user for more than two seconds.

Views publish through it after their commit. So sockets time out after a second, nothing is tried
twice, and after a failure nobody tries again for five seconds: what was not sent stands in the
database, and the ticker sends it.
"""

import contextlib
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from celery import Celery
from kombu import Connection, Producer
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

SOCKET_TIMEOUT = timedelta(seconds=1)
OPEN_AFTER_FAILURE = timedelta(seconds=5)
#: One for publishing, one for each reader that waits.
MAX_REDIS_CONNECTIONS = 1000


class BrokerAwayError(Exception):
    """The broker doesn't answer, or didn't a moment ago."""


class Circuit:
    """Lets nobody through for a while after a failure."""

    def __init__(
        self,
        open_for: timedelta = OPEN_AFTER_FAILURE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_for = open_for.total_seconds()
        self._clock = clock
        self._open_until = 0.0

    @property
    def is_open(self) -> bool:
        return self._clock() < self._open_until

    def failed(self) -> None:
        """Open it."""
        self._open_until = self._clock() + self._open_for

    def worked(self) -> None:
        """Close it."""
        self._open_until = 0.0


class BrokerLink:
    """One connection per process: made at first use, used by one thread at a time, not by forks."""

    def __init__(
        self,
        app: Celery,
        *,
        timeout: timedelta = SOCKET_TIMEOUT,
        circuit: Circuit | None = None,
    ) -> None:
        self._app = app
        self._timeout_seconds = timeout.total_seconds()
        self._lock = threading.Lock()
        self._made: _Made | None = None
        self._away = False
        self.circuit = circuit or Circuit()
        _links.add(self)

    @property
    def is_redis(self) -> bool:
        """Whether the broker is a Redis, whose keys and channels we may use too."""
        connection = self._app.connection_for_write()
        return connection.transport.driver_type == "redis"

    @contextlib.contextmanager
    def producer(self) -> Iterator[Producer]:
        """The producer, connected, for the length of the block.

        Raises:
            BrokerAwayError: the circuit is open, or the broker doesn't answer.
        """
        with self._only_one(), self._failing():
            yield self._connected().producer

    @contextlib.contextmanager
    def redis(self) -> Iterator[Any]:
        """A Redis client on connections of its own, for calls of any thread.

        Raises:
            BrokerAwayError: the circuit is open, or Redis doesn't answer.
        """
        with self._failing():
            with self._only_one():
                client = self._connected().redis
            yield client

    def close(self) -> None:
        """Let go of the connection; the next use makes another."""
        with self._lock:
            self._release(self._made)

    def forget(self) -> None:
        """After a fork: the connection belongs to the parent, and its lock may be held for ever."""
        self._lock = threading.Lock()
        self._made = None
        self.circuit.worked()

    @contextlib.contextmanager
    def _only_one(self) -> Iterator[None]:
        if self.circuit.is_open:
            raise BrokerAwayError("not tried: the broker failed a moment ago")
        if not self._lock.acquire(timeout=self._timeout_seconds):
            raise BrokerAwayError("another thread waits for the broker")
        try:
            if self.circuit.is_open:
                raise BrokerAwayError("not tried: the broker failed a moment ago")
            yield
        finally:
            self._lock.release()

    def _connected(self) -> "_Made":
        if self._made is None:
            self._made = self._make()
        return self._made

    def _make(self) -> "_Made":
        seconds = self._timeout_seconds
        configured = self._app.connection_for_write()
        driver = configured.transport.driver_type
        options = {**(configured.transport_options or {}), **_bounds(driver, seconds)}
        connection = configured.clone(connect_timeout=seconds, transport_options=options)
        # Without `timeout` kombu sleeps two seconds and tries again.
        connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=1)
        channel: Any = connection.channel()  # not `default_channel`, which tries for ever
        client = None
        if driver == "redis":
            with channel.conn_or_acquire() as client:
                pass  # the client outlives the block: its pool is the channel's
        return _Made(
            connection=connection,
            producer=self._app.amqp.Producer(channel, auto_declare=False),
            redis=client,
        )

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        made = self._made
        try:
            yield
        except _errors(self._app) as error:
            self._failed(error, made or self._made)
            raise BrokerAwayError(str(error)) from error
        self._away = False
        self.circuit.worked()

    def _failed(self, error: BaseException, made: "_Made | None") -> None:
        if not self._away:  # once for each outage
            logger.warning(
                "the broker is away; what is not announced now stays in the database: %s",
                error,
                extra={"action": "broker_away"},
            )
        self._away = True
        self.circuit.failed()
        self._release(made)

    def _release(self, made: "_Made | None") -> None:
        """Close `made`, unless another thread has replaced it already."""
        if made is None:
            return
        if self._made is made:
            self._made = None
        with contextlib.suppress(Exception):  # a broken connection may refuse to be closed
            made.connection.collect(socket_timeout=self._timeout_seconds)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Made:
    connection: Connection
    producer: Producer
    redis: Any


def _errors(app: Celery) -> tuple[type[BaseException], ...]:
    transport = app.connection_for_write().transport
    return (
        OperationalError,
        OSError,
        *transport.connection_errors,
        *transport.channel_errors,
    )


def _bounds(driver: str, seconds: float) -> dict[str, Any]:
    """What each transport calls its time limits."""
    if driver == "redis":
        return {
            "socket_timeout": seconds,
            "socket_connect_timeout": seconds,
            "retry_on_timeout": False,
            "max_connections": MAX_REDIS_CONNECTIONS,
        }
    if driver == "amqp":
        return {"read_timeout": seconds, "write_timeout": seconds}
    return {}


_links: "weakref.WeakSet[BrokerLink]" = weakref.WeakSet()


def _forget_all() -> None:
    for link in _links:
        link.forget()


os.register_at_fork(after_in_child=_forget_all)
