"""Where PostgreSQL and SQLite differ. SQL elsewhere is written once, with these pieces in it.

PostgreSQL locks rows; SQLite has one writer, so that a transaction that began IMMEDIATE holds
everything. PostgreSQL's clock is the truth on PostgreSQL, the host's on SQLite.
"""

import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

#: PostgreSQL: the lock was not had within lock_timeout; deadlock; a host's stricter isolation lost.
_BUSY_STATES = frozenset({"55P03", "40P01", "40001"})
#: A table or a column is not there.
_UNMIGRATED_STATES = frozenset({"42P01", "42703"})
_UNMIGRATED_TEXTS = ("no such table", "no such column", "has no column named")
_BUSY_TEXTS = ("database is locked", "database table is locked", "database schema is locked")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """Pieces of SQL, and how values are handed over."""

    postgres: bool
    #: microseconds since 1970 by the database's clock; NULL where the host's counts
    clock: str
    #: at the end of a SELECT
    for_update: str
    #: bounds the waits of this statement and of its transaction's rest; a value of no interest
    bound: str
    #: the same in the WHERE of a statement on one table: true. A condition without columns is
    #: looked at before any row is, so that the bound holds when the row is locked.
    bounded: str

    def uuid(self, value: uuid.UUID) -> Any:
        """A run id as a parameter."""
        return value if self.postgres else value.hex

    def values(self, row: list[Any]) -> list[Any]:
        """A row as parameters."""
        if self.postgres:
            return row
        return [item.hex if isinstance(item, uuid.UUID) else item for item in row]

    def typed(self, kind: str) -> str:
        """A placeholder in a list of values, where PostgreSQL can't see what column it is for."""
        return f"%s::{kind}" if self.postgres else "%s"


_POSTGRES = Dialect(
    postgres=True,
    clock="(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
    for_update=" FOR UPDATE",
    bound="set_config('lock_timeout', %s, true)",
    bounded=" AND (SELECT set_config('lock_timeout', %s, true)) IS NOT NULL",
)
_SQLITE = Dialect(postgres=False, clock="NULL", for_update="", bound="%s", bounded=" AND %s <> ''")


def dialect_of(connection: BaseDatabaseWrapper) -> Dialect:
    """The pieces for a connection.

    Raises:
        NotImplementedError: the store knows PostgreSQL and SQLite.
    """
    if connection.vendor == "postgresql":
        return _POSTGRES
    if connection.vendor == "sqlite":
        return _SQLITE
    raise NotImplementedError(
        f"workflows are stored in PostgreSQL or SQLite, not in {connection.vendor}; set "
        "WORKFLOWS['DATABASE'] to the alias of such a database"
    )


def milliseconds(wait: timedelta) -> str:
    """A bound for locks as PostgreSQL reads it; 0 would mean none."""
    return str(max(wait // timedelta(milliseconds=1), 1))


def is_unmigrated(error: Exception) -> bool:
    """Whether the tables are not those of this release."""
    if not isinstance(error, DatabaseError):
        return False
    if getattr(error.__cause__, "sqlstate", None) in _UNMIGRATED_STATES:
        return True
    return any(each in str(error) for each in _UNMIGRATED_TEXTS)


def is_busy(error: DatabaseError) -> bool:
    """Whether another transaction was in the way, so that repeating may help."""
    if getattr(error.__cause__, "sqlstate", None) in _BUSY_STATES:
        return True
    text = str(error)
    return any(each in text for each in _BUSY_TEXTS)
