"""Each test of a row runs in two worlds, in memory and on the project's own parts (`worlds.py`).

`@feature("A1")` ties a test to its row. The tables of a world are empty when a test begins.
"""

import dataclasses
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.features.memory_world import MemoryWorld
from tests.features.worlds import ATTRIBUTES, World
from tests.support import databases
from wfcore.history.limits import DEFAULT_LIMITS

MODES = ("memory", "postgres")
ALIAS = "wf_features"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Reports, also those of other processes and in JUnit's XML, name the row and the mode."""
    for mark in item.iter_markers("feature"):
        item.user_properties.append(("feature", mark.args[0]))
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if "mode" in parameters:
        item.user_properties.append(("mode", parameters["mode"]))


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """The ports."""
    found: str = request.param
    return found


@pytest.fixture
def limits() -> dict[str, Any]:
    """Limits of the engine other than the usual ones; a test parametrizes this."""
    return {}


@pytest.fixture
def world(request: pytest.FixtureRequest, mode: str, limits: dict[str, Any]) -> Iterator[World]:
    """An engine of the test's own, in which nothing happens but by the test.

    In the end the histories that the test has made are looked at (row O6).
    """
    name = f"{request.node.originalname.removeprefix('test_')[:40]}-{uuid.uuid4().hex[:8]}"
    bounds = dataclasses.replace(DEFAULT_LIMITS, **{"search_attributes": ATTRIBUTES, **limits})
    if mode == "memory":
        with closing(MemoryWorld(name, bounds)) as world:
            yield world
            world.check_histories()
        return
    alias = request.getfixturevalue("project")
    from tests.features.project_world import DjangoWorld

    with closing(DjangoWorld(name, bounds, alias)) as world:
        yield world
        world.check_histories()


@pytest.fixture
def project(
    features_alias: str, celery_broker: None, django_db_blocker: Any, settings: Any
) -> Iterator[str]:
    """The project's database and broker; the database's alias."""
    from wfapp.store.namespaces import make_default_namespace

    settings.WORKFLOWS = {"DATABASE": features_alias}
    with django_db_blocker.unblock():
        make_default_namespace(using=features_alias)
        yield features_alias
        databases.empty(features_alias)


@pytest.fixture(scope="session")
def features_alias(
    request: pytest.FixtureRequest,
    stack: str,
    django_db_blocker: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """A database of this process's own."""
    with django_db_blocker.unblock():
        if stack == "embedded":
            file = tmp_path_factory.mktemp("features") / "features.sqlite3"
            with databases.sqlite_alias(ALIAS, file) as alias:
                yield alias
            return
        url = request.getfixturevalue("services").database_url
        worker = getattr(request.config, "workerinput", {}).get("workerid", "gw0")
        with databases.postgres_alias(ALIAS, f"features_{worker}", url) as alias:
            yield alias
