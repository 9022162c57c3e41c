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
#: A view waits no longer for a server that doesn't answer; libpq takes no less.
CONNECT_SECONDS = 2
#: A connection whose other side is gone ends by itself.
DEAD_PEER = {
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


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


def from_url(
    url: str, *, pool: bool = False, connect_seconds: int = CONNECT_SECONDS
) -> dict[str, Any]:
    """The database that a URL names; options that stand in the URL win.

    With `pool`, threads and greenlets share the connections of a process: right under ASGI and
    gevent, slow under Celery's prefork, whose parent closes the pool around each task.
    """
    parsed: dict[str, Any] = environ.Env.db_url_config(url)
    if urlsplit(url).scheme == "sqlite":
        return sqlite(parsed["NAME"])
    options = {"connect_timeout": connect_seconds, **DEAD_PEER, **parsed.get("OPTIONS", {})}
    if pool:
        # The two exclude each other; Django refuses both at once.
        options["pool"] = {"max_size": POOL_MAX_CONNECTIONS, "timeout": float(connect_seconds)}
        return {**parsed, "OPTIONS": options, "CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": True}
    return {
        **parsed,
        "OPTIONS": options,
        "CONN_MAX_AGE": CONNECTION_AGE_SECONDS,
        "CONN_HEALTH_CHECKS": True,
    }
