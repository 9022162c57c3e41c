"""Database entries with the options that the engine relies on.

SQLite begins each transaction as a writer (IMMEDIATE), keeps a write-ahead log and waits for locks;
PostgreSQL keeps its connections and asks whether they live before it uses them again.
"""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ

SQLITE_LOCK_WAIT_SECONDS = 20
CONNECTION_AGE_SECONDS = 600
POOL_MAX_CONNECTIONS = 20


def sqlite(name: Path | str) -> dict[str, Any]:
    """SQLite in one file. `synchronous` stays FULL: what is committed survives a power cut."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": name,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": SQLITE_LOCK_WAIT_SECONDS,
            "init_command": "PRAGMA journal_mode=WAL",
        },
    }


def from_url(url: str, *, pool: bool = False) -> dict[str, Any]:
    """The database that a URL names.

    With `pool`, threads and greenlets share the connections of a process: right under ASGI and
    gevent, slow under Celery's prefork, whose parent closes the pool around each task.
    """
    parsed: dict[str, Any] = environ.Env.db_url_config(url)
    if urlsplit(url).scheme == "sqlite":
        return sqlite(parsed["NAME"])
    if pool:
        # The two exclude each other; Django refuses both at once.
        options = {**parsed.get("OPTIONS", {}), "pool": {"max_size": POOL_MAX_CONNECTIONS}}
        return {**parsed, "OPTIONS": options, "CONN_MAX_AGE": 0}
    return {**parsed, "CONN_MAX_AGE": CONNECTION_AGE_SECONDS, "CONN_HEALTH_CHECKS": True}
