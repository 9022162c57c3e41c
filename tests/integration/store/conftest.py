"""A second alias for each database: what the store does must not lean on "default".

The tables are made once and emptied after each test, without a transaction around the test, so that
threads with connections of their own see what is committed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import databases

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
    url = request.getfixturevalue("services").database_url
    worker = getattr(request.config, "workerinput", {}).get("workerid", "gw0")
    with databases.postgres_alias(POSTGRES, f"store_{worker}", url) as alias:
        yield alias


@pytest.fixture(scope="session")
def sqlite_alias(tmp_path_factory: pytest.TempPathFactory, unblocked: None) -> Iterator[str]:
    """A file of this worker's own."""
    file: Path = tmp_path_factory.mktemp("store") / "store.sqlite3"
    with databases.sqlite_alias(SQLITE, file) as alias:
        yield alias


@pytest.fixture(scope="session")
def unblocked(django_db_blocker: Any) -> Iterator[None]:
    """These tests empty their databases themselves."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture
def postgres(postgres_alias: str, unblocked: None) -> Iterator[str]:
    """The alias of an empty PostgreSQL database."""
    yield postgres_alias
    databases.empty(postgres_alias)


@pytest.fixture
def sqlite(sqlite_alias: str, unblocked: None) -> Iterator[str]:
    """The alias of an empty SQLite database."""
    yield sqlite_alias
    databases.empty(sqlite_alias)


@pytest.fixture(params=["postgres", "sqlite"])
def alias(request: pytest.FixtureRequest) -> str:
    """Each database in turn."""
    name: str = request.getfixturevalue(request.param)
    return name
