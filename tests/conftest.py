"""Folders give markers; servers start when a test first asks for one, and end with the run.

Unit tests have no database: pytest-django blocks it. A test of another folder that asks for `db`,
or is marked `django_db`, gets a database on a private PostgreSQL, of its own for each worker of
pytest-xdist; one that asks for `redis_url` gets a Redis database. With --stack embedded, SQLite and
the broker within the process take their places.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tools.services import Services

SUITES = ("unit", "integration", "conformance", "simulation", "mutations", "features", "e2e")
SERVICES = pytest.StashKey[Services]()
TESTS = Path(__file__).parent

hypothesis.settings.register_profile("dev", deadline=None)
# A change must not fail for what another change would have failed for.
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--stack",
        choices=["server", "embedded"],
        default="server",
        help="PostgreSQL and Redis, or SQLite and the broker within the process",
    )


# --- servers ---------------------------------------------------------------------------------


def _services(config: pytest.Config) -> Services:
    """The run's servers. A worker of pytest-xdist attaches to those of the process it works for."""
    if SERVICES not in config.stash:
        directory = getattr(config, "workerinput", {}).get("services")
        config.stash[SERVICES] = (
            Services.attach(Path(directory)) if directory else Services.begin(durable=False)
        )
    return config.stash[SERVICES]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["services"] = str(_services(node.config).directory)


def pytest_unconfigure(config: pytest.Config) -> None:
    if SERVICES in config.stash:
        config.stash[SERVICES].stop()


@pytest.fixture(scope="session")
def stack(pytestconfig: pytest.Config) -> str:
    answer: str = pytestconfig.getoption("stack")
    return answer


@pytest.fixture(scope="session")
def services(pytestconfig: pytest.Config) -> Services:
    """The servers of this run, shared by its tests: to break some, begin your own."""
    return _services(pytestconfig)


@pytest.fixture(scope="session")
def database(
    request: pytest.FixtureRequest, stack: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Point Django at a server that runs, or at a SQLite file."""
    from django.conf import settings
    from django.db import connections

    from settings.databases import from_url, sqlite

    if stack == "embedded":
        file = str(tmp_path_factory.mktemp("database") / "test.sqlite3")
        entry = sqlite(file) | {"TEST": {"NAME": file}}
    else:
        url = request.getfixturevalue("services").database_url
        entry = from_url(url, connect_seconds=20)  # a busy machine answers late
    default = settings.DATABASES["default"]
    default.clear()
    default.update(entry)
    connections.configure_settings(settings.DATABASES)
    if hasattr(connections._connections, "default"):
        del connections["default"]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    database: None, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """pytest-django's hook: first the server, then the worker's own name on it."""


@pytest.fixture(scope="session")
def redis_url(request: pytest.FixtureRequest, stack: str) -> str:
    """A Redis database for this worker; `memory://` on the embedded stack."""
    if stack == "embedded":
        return "memory://"
    worker = getattr(request.config, "workerinput", {}).get("workerid", "gw0")
    url: str = request.getfixturevalue("services").redis_url
    return f"{url.removesuffix('/0')}/{worker.removeprefix('gw')}"


@pytest.fixture(scope="session")
def celery_broker(redis_url: str) -> None:
    """Point the project's Celery app at this worker's broker."""
    from settings.celery import app

    app.conf.broker_url = redis_url


@pytest.fixture(scope="session")
def project_environment(django_db_setup: None, redis_url: str) -> dict[str, str]:
    """What a process of the project needs to work on this worker's database and broker."""
    from django.conf import settings

    entry = settings.DATABASES["default"]
    if entry["ENGINE"].endswith("sqlite3"):
        url = f"sqlite:///{entry['NAME']}"
    else:
        url = "postgres://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format_map(entry)
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "settings.test",
        "DATABASE_URL": url,
        "REDIS_URL": redis_url,
    }


# --- folders and markers ---------------------------------------------------------------------


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(TESTS):
            suite = item.path.relative_to(TESTS).parts[0]
            if suite in SUITES:
                item.add_marker(suite)
        if item.get_closest_marker("unit") and item.get_closest_marker("django_db"):
            raise pytest.UsageError(
                f"{item.nodeid}: unit tests have no database; this one belongs in tests/integration"
            )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """In CI, a test that skips itself for want of a server or a program has failed."""
    report: Any = yield
    xfailed = hasattr(report, "wasxfail")
    if (
        report.skipped
        and not xfailed
        and os.environ.get("CI")
        and not item.get_closest_marker("unit")
    ):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI takes for a failure: {report.longrepr}"
    # What bytes of a file name became in a log can't be sent between xdist's processes.
    sections = getattr(report, "sections", [])
    report.sections = [(name, _printable(text)) for name, text in sections]
    return report


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
