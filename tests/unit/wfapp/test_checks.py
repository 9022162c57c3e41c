import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from django.conf import settings as django_settings
from django.core.checks import CheckMessage
from django.db import connections
from django.db.backends.postgresql.psycopg_any import IsolationLevel

from settings.databases import sqlite
from wfapp import checks

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"
POSTGRES = {"ENGINE": "django.db.backends.postgresql", "NAME": "workflows"}


@pytest.fixture
def database(settings: Any) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Makes an alias of an entry and lets the workflows be stored there."""

    def use(entry: dict[str, Any]) -> None:
        django_settings.DATABASES["checked"] = entry
        connections.configure_settings(django_settings.DATABASES)
        settings.WORKFLOWS = {"DATABASE": "checked"}

    yield use
    if "checked" in django_settings.DATABASES:
        del django_settings.DATABASES["checked"]
        if hasattr(connections._connections, "checked"):
            del connections["checked"]


@pytest.fixture
def celery() -> Iterator[Callable[..., None]]:
    """Sets options of the Celery app."""
    before: dict[str, Any] = {}

    def configure(**values: Any) -> None:
        before.update({name: current_app.conf[name] for name in values})
        current_app.conf.update(values)

    yield configure
    current_app.conf.update(before)


def ids(found: list[CheckMessage]) -> list[str | None]:
    assert all(message.hint for message in found), "a check must say what to do"
    return [message.id for message in found]


def test_nothing_is_wrong_with_the_project() -> None:
    every = (checks.check_setting, checks.check_database, checks.check_celery)
    assert [ids(check(None)) for check in every] == [[], [], []]
    assert ids(checks.check_requests(None) + checks.check_deployment(None)) == []


def test_an_unknown_key_is_an_error(settings: Any) -> None:
    settings.WORKFLOWS = {"DATABASES": "default", "LEASE": 3}
    assert ids(checks.check_setting(None)) == ["wfapp.E001", "wfapp.E002"]
    # What hangs on the setting keeps silent rather than say it again.
    assert checks.check_database(None) == []
    assert checks.check_requests(None) == []


def test_a_converter_must_be_there(settings: Any) -> None:
    settings.WORKFLOWS = {"DATA_CONVERTER": "nowhere.converter", "PAYLOAD_CODEC": "nowhere.Codec"}
    assert ids(checks.check_setting(None)) == ["wfapp.E002", "wfapp.E002"]


def test_ids_must_fit_into_their_columns(settings: Any) -> None:
    settings.WORKFLOWS = {"LIMITS": {"ID_BYTES": 1_001}}
    assert ids(checks.check_setting(None)) == ["wfapp.E002"]


def test_the_alias_must_be_known(settings: Any) -> None:
    settings.WORKFLOWS = {"DATABASE": "elsewhere"}
    assert ids(checks.check_database(None)) == ["wfapp.E003"]


def test_another_database_than_postgresql_and_sqlite_is_refused(
    database: Callable[[dict[str, Any]], None],
) -> None:
    database({"ENGINE": "django.db.backends.dummy"})
    assert ids(checks.check_database(None)) == ["wfapp.E003"]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, []),
        ({"transaction_mode": None}, ["wfapp.E004"]),
        ({"transaction_mode": "deferred"}, ["wfapp.E004"]),
        ({"transaction_mode": "EXCLUSIVE"}, []),
        ({"init_command": ""}, ["wfapp.E005"]),
        ({"init_command": "PRAGMA foreign_keys=ON; PRAGMA journal_mode = wal"}, []),
        ({"timeout": 1}, ["wfapp.E005"]),
    ],
)
def test_options_of_sqlite(
    database: Callable[[dict[str, Any]], None], options: dict[str, Any], wanted: list[str]
) -> None:
    entry = sqlite("file.sqlite3")
    entry["OPTIONS"] |= options
    database(entry)
    assert ids(checks.check_database(None)) == wanted


@pytest.mark.parametrize(
    ("level", "wanted"),
    [
        (IsolationLevel.READ_COMMITTED, []),
        (int(IsolationLevel.READ_COMMITTED), []),
        (IsolationLevel.SERIALIZABLE, ["wfapp.E006"]),
        (IsolationLevel.REPEATABLE_READ, ["wfapp.E006"]),
    ],
)
def test_postgresql_is_read_committed(
    database: Callable[[dict[str, Any]], None], level: Any, wanted: list[str]
) -> None:
    database(POSTGRES | {"OPTIONS": {"isolation_level": level}})
    assert ids(checks.check_database(None)) == wanted


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"task_serializer": "pickle"}, ["wfapp.E007"]),
        ({"accept_content": ["yaml"]}, ["wfapp.E007"]),
        ({"accept_content": ["application/json"]}, []),
        ({"task_always_eager": True}, ["wfapp.W002"]),
    ],
)
def test_celery(celery: Callable[..., None], values: dict[str, Any], wanted: list[str]) -> None:
    celery(**values)
    assert ids(checks.check_celery(None)) == wanted


def test_requests_in_transactions_get_a_hint(database: Callable[[dict[str, Any]], None]) -> None:
    database(POSTGRES | {"ATOMIC_REQUESTS": True})
    assert ids(checks.check_requests(None)) == ["wfapp.W001"]


def test_deployment(
    database: Callable[[dict[str, Any]], None], celery: Callable[..., None]
) -> None:
    database(sqlite("file.sqlite3"))
    celery(accept_content=["json", "pickle"])
    assert ids(checks.check_deployment(None)) == ["wfapp.W003", "wfapp.W004"]


@pytest.mark.parametrize(
    ("options", "wanted"), [({}, ["wfapp.W005"]), ({"connect_timeout": 2}, [])]
)
def test_waiting_for_a_silent_server_is_bounded(
    database: Callable[[dict[str, Any]], None], options: dict[str, Any], wanted: list[str]
) -> None:
    database(POSTGRES | {"OPTIONS": options})
    assert ids(checks.check_deployment(None)) == wanted


def test_every_id_stands_in_the_reference() -> None:
    source = Path(checks.__file__).read_text()
    found = set(re.findall(r"wfapp\.[EW]\d{3}", source))
    assert found == set(re.findall(r"wfapp\.[EW]\d{3}", REFERENCE.read_text()))
