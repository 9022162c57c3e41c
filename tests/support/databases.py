"""Databases of a test's own beside "default": the engine must not lean on that name.

Their tables are made once and emptied after each test, without a transaction around the test, so
that threads with connections of their own see what is committed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def postgres_alias(alias: str, name: str, url: str) -> Iterator[str]:
    """A new database on a server, under an alias."""
    import psycopg

    from settings.databases import from_url

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    add_alias(alias, from_url(url) | {"NAME": name})
    yield alias
    close(alias)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def sqlite_alias(alias: str, file: Path) -> Iterator[str]:
    """A new file, under an alias."""
    from settings.databases import sqlite

    add_alias(alias, sqlite(file))
    yield alias
    close(alias)


def add_alias(alias: str, entry: dict[str, Any]) -> None:
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connections

    settings.DATABASES[alias] = entry
    connections.configure_settings(settings.DATABASES)
    call_command("migrate", "wfapp", database=alias, verbosity=0)


def close(alias: str) -> None:
    from django.conf import settings
    from django.db import connections

    connections[alias].close()
    del connections[alias]
    del settings.DATABASES[alias]


def empty(alias: str) -> None:
    """Delete what tests have written."""
    from django.apps import apps
    from django.db import connections

    from wfapp.models import Namespace

    with connections[alias].cursor() as cursor:
        for model in apps.get_app_config("wfapp").get_models():
            if model is not Namespace:
                cursor.execute(f"DELETE FROM {model._meta.db_table}")  # noqa: S608 - our own tables
