"""What ran, written down outside of the engine: a row when a body begins, its end when it ends."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import connection, connections

CREATE = """
    CREATE TABLE IF NOT EXISTS ledger (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        what text NOT NULL, attempt int NOT NULL, pid int NOT NULL,
        begun timestamptz NOT NULL DEFAULT clock_timestamp(), ended timestamptz
    )
"""


def begin(what: str, attempt: int = 1) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO ledger (what, attempt, pid) VALUES (%s, %s, %s) RETURNING id",
            [what, attempt, os.getpid()],
        )
        row: int = cursor.fetchone()[0]
        return row


def end(row: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ledger SET ended = clock_timestamp() WHERE id = %s", [row])


@contextmanager
def entry(what: str, attempt: int = 1) -> Iterator[None]:
    row = begin(what, attempt)
    yield
    end(row)


def rows(what: str, alias: str = "default") -> list[tuple[int, int, bool, float]]:
    """Attempt, process, whether it ended, and when it began, in order."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT attempt, pid, ended IS NOT NULL, extract(epoch FROM begun)::float8 "
            "FROM ledger WHERE what = %s ORDER BY id",
            [what],
        )
        return cursor.fetchall()


def sleep(seconds: float) -> None:
    """In pieces, so that a thread can be interrupted."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 0.05))


def begin_outside(what: str) -> None:
    """A row that a rollback of the caller leaves: written on a connection of its own."""
    settings = connection.get_connection_params()
    for key in ("cursor_factory", "context", "prepare_threshold"):
        settings.pop(key, None)
    with psycopg.connect(**settings, autocommit=True) as own:
        own.execute(
            "INSERT INTO ledger (what, attempt, pid) VALUES (%s, 1, %s)", [what, os.getpid()]
        )
