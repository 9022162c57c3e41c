"""Statements on the one alias, inside or outside of a transaction, with errors that the core knows.

Nothing of a session is relied on or left behind, so that a pooler between transactions is safe: no
prepared statement, no session lock, and `lock_timeout` only until a transaction's end, or, inside a
caller's, until ours.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from django.db import (
    DatabaseError,
    DataError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connections,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from wfapp.models.columns import from_micros, shard_of
from wfapp.store.dialect import Dialect, dialect_of, is_busy, is_unmigrated, milliseconds
from wfcore.exceptions import (
    FailedPreconditionError,
    InvalidArgumentError,
    RPCError,
    UnavailableError,
)
from wfcore.service.ports import RunBusyError, RunKey

Params = Sequence[Any]
Statement = tuple[str, Params]
#: Between statements that go together.
TOGETHER = ";\n"
#: For how long a time that the database told is counted on with this process's monotonic clock.
_CLOCK_GOOD_FOR_NS = 5_000_000_000
#: What the core is told in its own words; a bug in a statement is none of it.
_ERRORS = (OperationalError, InterfaceError, DataError, ProgrammingError, UnicodeEncodeError)


class Database:
    """The alias that holds the workflows; threads share it and have a connection each.

    `clock` replaces the database's time, for tests.
    """

    def __init__(
        self,
        alias: str,
        *,
        lock_wait: timedelta,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.alias = alias
        self.lock_wait = lock_wait
        self.clock = clock
        #: the database's time as last told, and this process's monotonic clock then
        self._told_at: tuple[int, int] | None = None

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """This thread's or greenlet's connection."""
        return connections[self.alias]

    @property
    def dialect(self) -> Dialect:
        """How this database spells things."""
        return dialect_of(self.connection)

    @property
    def clock_sql(self) -> str:
        """Microseconds by the database's clock, or NULL where `time_of` doesn't look at them."""
        return "NULL" if self.clock is not None else self.dialect.clock

    def time_of(self, micros: int | None) -> datetime:
        """The time that a statement told by `clock_sql`, or the clock that counts instead."""
        if micros is not None:
            self._told_at = (micros, time.monotonic_ns())
            return from_micros(micros)
        return self.clock() if self.clock is not None else datetime.now(UTC)

    def now(self) -> datetime:
        """The store's clock.

        Every statement that locks a run tells the time; a fresh one is counted on here, since a
        question of its own would cost each claim and each heartbeat a round trip.
        """
        if self.clock is not None or not self.dialect.postgres:
            return self.time_of(None)
        if self._told_at is not None:
            micros, told_at = self._told_at
            passed = time.monotonic_ns() - told_at
            if passed < _CLOCK_GOOD_FOR_NS:
                return from_micros(micros + passed // 1_000)
        return self.time_of(self.read(f"SELECT {self.dialect.clock}")[0][0])

    # ---- parameters

    def run(self, key: RunKey) -> list[Any] | None:
        """Parameters of `statements.RUN`; None without a run id, so that there is no such run."""
        try:
            run_id = uuid.UUID(key.run_id)
        except ValueError:
            return None
        return [shard_of(key.namespace, key.workflow_id), self.dialect.uuid(run_id)]

    def workflow_id(self, key: RunKey) -> list[Any]:
        """Parameters of `statements.WORKFLOW_ID`."""
        return [shard_of(key.namespace, key.workflow_id), key.namespace, key.workflow_id]

    # ---- statements

    def read(self, sql: str, params: Params = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement that changes nothing.

        Outside of a transaction a connection that died while idle is replaced once.
        """
        try:
            return self._rows(sql, params)
        except _ERRORS as error:
            if _is_final(error) or self.joined or not self._replace_connection():
                self._raise(error)
        return self.fetch(sql, params)

    def fetch(self, sql: str, params: Params = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        with self.telling():
            return self._rows(sql, params)

    def write(self, sql: str, params: Params = ()) -> int:
        """Run a statement; gives the number of rows that it touched."""
        with self.telling(), self.connection.cursor() as cursor:
            cursor.execute(sql, params)
            count: int = cursor.rowcount
            return count

    def fetch_together(self, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        """The rows of several statements, each of which sees what is committed when it begins."""
        if not self._takes_several:
            return [self.fetch(sql, params) for sql, params in statements]
        with self.telling(), self.connection.cursor() as cursor:
            _execute_together(cursor, statements)
            found: list[list[tuple[Any, ...]]] = [cursor.fetchall()]
            while cursor.nextset():
                found.append(cursor.fetchall())
            return found

    def write_together(self, statements: Sequence[Statement]) -> list[int]:
        """Run statements one after the other; gives the number of rows that each touched.

        PostgreSQL gets them at once, which spares round trips under the run's lock.
        """
        if len(statements) < 2 or not self._takes_several:
            return [self.write(sql, params) for sql, params in statements]
        with self.telling(), self.connection.cursor() as cursor:
            _execute_together(cursor, statements)
            counts = [cursor.rowcount]
            while cursor.nextset():
                counts.append(cursor.rowcount)
            return counts

    @property
    def _takes_several(self) -> bool:
        """Whether one message may hold several statements: where the client fills in the values."""
        options = self.connection.settings_dict.get("OPTIONS") or {}
        return self.dialect.postgres and not options.get("server_side_binding")

    def _rows(self, sql: str, params: Params) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, params)
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Turn what the driver says into the core's errors.

        Raises:
            RunBusyError: another transaction was in the way.
            UnavailableError: the database can't be had; at a commit, the outcome is unknown.
            InvalidArgumentError: a value is none that the database holds.
            FailedPreconditionError: the tables are not there, or older than this release.
        """
        try:
            yield
        except _ERRORS as error:
            if not _is_final(error) and not self.joined:
                self._replace_connection()
            self._raise(error)

    def _raise(self, error: Exception) -> NoReturn:
        told = self._told(error)
        if told is None:
            raise error
        raise told from error

    def _told(self, error: Exception) -> RPCError | None:
        """The core's error; None for a statement that is wrong, which is our bug."""
        text = " ".join(str(error).split()).rstrip(".?")
        if isinstance(error, DataError | UnicodeEncodeError):
            return InvalidArgumentError(f"database {self.alias!r} can't hold a value: {text}")
        if is_unmigrated(error):
            return FailedPreconditionError(
                f"database {self.alias!r} has not the tables of this release: {text}. Run "
                f"manage.py migrate --database {self.alias}"
            )
        if isinstance(error, ProgrammingError):
            return None
        if isinstance(error, DatabaseError) and is_busy(error):
            return RunBusyError(f"another transaction is in the way: {text}")
        return UnavailableError(
            f"database {self.alias!r} can't be had: {text}. Repeat the call; if this lasts, see "
            f"whether its server runs and is the one that DATABASES[{self.alias!r}] names"
        )

    def _replace_connection(self) -> bool:
        """Close a connection that is dead, so that its next use opens a new one."""
        connection = self.connection
        if connection.connection is None:
            return True
        if connection.is_usable():
            return False
        connection.close()
        return True

    # ---- transactions

    @property
    def joined(self) -> bool:
        """Whether a transaction is open on this thread's connection, ours or a caller's."""
        connection = self.connection
        if connection.in_atomic_block:
            return True
        if connection.connection is None:
            return not connection.settings_dict["AUTOCOMMIT"]
        return not connection.autocommit

    @property
    def callers(self) -> bool:
        """Whether the calling code has a transaction open. A TestCase's own one is not its."""
        return _callers_block(self.connection) or (
            self.joined and not self.connection.in_atomic_block
        )

    def open_elsewhere(self) -> str:
        """Another alias on which the calling code has a transaction open; empty if none."""
        for connection in connections.all(initialized_only=True):
            if connection.alias != self.alias and _callers_block(connection):
                return connection.alias
        return ""

    def has_written(self) -> bool:
        """Whether the open transaction may have changed anything; True where that isn't known."""
        for wrapper in self.connection.execute_wrappers:
            if isinstance(wrapper, Writes):
                return wrapper.seen
        return True

    @contextmanager
    def unit(self, wait: timedelta | None = None) -> Iterator[str]:
        """A transaction, or a savepoint of the open one; gives the parameter for `bounded`.

        Leaving it by an error undoes what was done inside, and only that.
        """
        bound = milliseconds(wait or self.lock_wait)
        body = self._savepoint() if self.joined else self._outermost()
        with self._busy_timeout(wait), self.telling(), transaction.atomic(using=self.alias), body:
            yield bound

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        before = self._lock_timeout()
        yield
        if before:
            self._set_lock_timeout(before)

    @contextmanager
    def _outermost(self) -> Iterator[None]:
        """A transaction that only looked is rolled back: PostgreSQL's commit would wait for the
        disk, and hold the locks meanwhile, since locks are written to its log.
        """
        with self.watched() as writes:
            yield
        if not writes.seen and not self.connection.run_on_commit:
            transaction.set_rollback(True, using=self.alias)

    @contextmanager
    def watched(self) -> Iterator["Writes"]:
        """Tells whether anything is written in this block."""
        writes = Writes()
        with self.connection.execute_wrapper(writes):
            yield writes

    def _lock_timeout(self) -> str:
        """The caller's bound, which is given back; after an error the rollback does that."""
        if not self.dialect.postgres:
            return ""
        value: str = self.fetch("SELECT current_setting('lock_timeout')")[0][0]
        return value

    def _set_lock_timeout(self, value: str) -> None:
        self.fetch(f"SELECT {self.dialect.bound}", [value])

    @contextmanager
    def _busy_timeout(self, wait: timedelta | None) -> Iterator[None]:
        """SQLite waits for its one writer as the connection says, or for as long as we are told."""
        if wait is None or self.dialect.postgres or self.joined:
            yield
            return
        before = self.read("PRAGMA busy_timeout")[0][0]
        self.read(f"PRAGMA busy_timeout = {milliseconds(wait)}")
        try:
            yield
        finally:
            self.read(f"PRAGMA busy_timeout = {before:d}")

    def on_commit(self, call: Callable[[], None]) -> None:
        """Call after the open transaction commits, or at once; an error in it breaks nobody."""
        if self.joined:
            transaction.on_commit(call, using=self.alias, robust=True)
        else:
            call()


def _execute_together(cursor: Any, statements: Sequence[Statement]) -> None:
    text = TOGETHER.join(sql for sql, _ in statements)
    cursor.execute(text, [value for _, params in statements for value in params])


def _is_final(error: Exception) -> bool:
    """Whether another connection would say the same."""
    final = isinstance(error, ProgrammingError | DataError | UnicodeEncodeError)
    return final or is_unmigrated(error)


class Writes:
    """Whether a connection ran anything but SELECT; put around all its statements."""

    def __init__(self) -> None:
        self.seen = False

    def __call__(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        self.seen = self.seen or not sql.startswith("SELECT")
        return execute(sql, params, many, context)


def _callers_block(connection: BaseDatabaseWrapper) -> bool:
    """Whether code has an atomic() block open; that around each test of a TestCase doesn't count.

    Django tells the two apart by the same mark, for ``atomic(durable=True)``.
    """
    return any(not getattr(block, "_from_testcase", False) for block in connection.atomic_blocks)


class StorePart:
    """A part of the store; all parts of one share its database."""

    def __init__(self, database: Database) -> None:
        self._database = database
