"""A second alias for each database: what the store does must not lean on "default".

The tables are made once and emptied after each test, without a transaction around the test, so that
threads with connections of their own see what is committed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

POSTGRES, SQLITE = "wf_postgres", "wf_sqlite"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The embedded stack has no PostgreSQL: its tests are not there, rather than skipped."""
    if config.getoption("stack") != "embedded":
        return
    gone = [item for item in items if "postgres" in _databases(item)]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if item not in gone]


def _databases(item: pytest.Item) -> set[str]:
    if not item.path.is_relative_to(Path(__file__).parent):
        return set()
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return {*getattr(item, "fixturenames", ()), parameters.get("alias", "")}


@pytest.fixture(scope="session")
def postgres_alias(request: pytest.FixtureRequest, unblocked: None) -> Iterator[str]:
    """A database of this worker's own on the private server."""
    import psycopg

    from settings.databases import from_url

    url = request.getfixturevalue("services").database_url
    worker = getattr(request.config, "workerinput", {}).get("workerid", "gw0")
    name = f"store_{worker}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    add_alias(POSTGRES, from_url(url) | {"NAME": name})
    yield POSTGRES
    close(POSTGRES)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def sqlite_alias(tmp_path_factory: pytest.TempPathFactory, unblocked: None) -> Iterator[str]:
    """A file of this worker's own."""
    from settings.databases import sqlite

    file: Path = tmp_path_factory.mktemp("store") / "store.sqlite3"
    add_alias(SQLITE, sqlite(file))
    yield SQLITE
    close(SQLITE)


@pytest.fixture(scope="session")
def unblocked(django_db_blocker: Any) -> Iterator[None]:
    """These tests empty their databases themselves."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture
def postgres(postgres_alias: str, unblocked: None) -> Iterator[str]:
    """The alias of an empty PostgreSQL database."""
    yield postgres_alias
    empty(postgres_alias)


@pytest.fixture
def sqlite(sqlite_alias: str, unblocked: None) -> Iterator[str]:
    """The alias of an empty SQLite database."""
    yield sqlite_alias
    empty(sqlite_alias)


@pytest.fixture(params=["postgres", "sqlite"])
def alias(request: pytest.FixtureRequest) -> str:
    """Each database in turn."""
    name: str = request.getfixturevalue(request.param)
    return name


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
    from django.apps import apps
    from django.db import connections

    from wfapp.models import Namespace

    with connections[alias].cursor() as cursor:
        for model in apps.get_app_config("wfapp").get_models():
            if model is not Namespace:
                cursor.execute(f"DELETE FROM {model._meta.db_table}")  # noqa: S608 - our own tables
