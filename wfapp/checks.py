"""System checks: what would lose work or confuse people later is said at start, with what to do.

No check asks a database or a broker: `manage.py check` works without them. Deploy checks run with
``check --deploy``.

=========  ========================================================================================
id         what is wrong
=========  ========================================================================================
wfapp.E001 `WORKFLOWS` has a key that doesn't exist
wfapp.E002 a key of `WORKFLOWS` has a value that can't be used
wfapp.E003 the database alias is not in `DATABASES`, or is neither PostgreSQL nor SQLite
wfapp.E004 SQLite doesn't begin transactions as a writer
wfapp.E005 SQLite has no write-ahead log, or waits too short for a lock
wfapp.E006 PostgreSQL is used at another isolation level than READ COMMITTED
wfapp.E007 Celery doesn't serialise tasks as JSON, or doesn't accept JSON
wfapp.W001 ATOMIC_REQUESTS is on for the workflows' database
wfapp.W002 CELERY_TASK_ALWAYS_EAGER is on
wfapp.W003 (deploy) SQLite holds the workflows
wfapp.W004 (deploy) Celery accepts pickle
wfapp.W005 (deploy) PostgreSQL is waited for without a bound when it doesn't answer
=========  ========================================================================================
"""

from collections.abc import Iterator, Sequence
from typing import Any

from celery import current_app
from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.module_loading import import_string

from wfapp import conf
from wfapp.models.columns import NAME_LENGTH

#: The shortest wait for SQLite's one writer: other threads' commits wait for the disk.
SQLITE_WAIT_SECONDS = 5
_PICKLE = ("pickle", "application/x-python-serialize")
_JSON = ("json", "application/json")

Apps = Sequence[AppConfig] | None


@register(Tags.compatibility)
def check_setting(app_configs: Apps, **_: Any) -> list[CheckMessage]:
    """`WORKFLOWS`: its keys and their values."""
    value = getattr(settings, conf.SETTING, {})
    found: list[CheckMessage] = [
        Error(problem.text, hint=problem.hint, id=f"wfapp.{'E001' if problem.unknown else 'E002'}")
        for problem in conf.problems(value)
    ]
    return found or [*_too_long(), *_unimportable()]


def _too_long() -> Iterator[CheckMessage]:
    limit = conf.config().limits.id_bytes
    if limit > NAME_LENGTH:
        yield Error(
            f"WORKFLOWS['LIMITS'] has 'ID_BYTES': {limit}, columns have room for {NAME_LENGTH}.",
            hint=f"Set it to {NAME_LENGTH} or less.",
            id="wfapp.E002",
        )


def _unimportable() -> Iterator[CheckMessage]:
    wanted = conf.config()
    for key in ("DATA_CONVERTER", "PAYLOAD_CODEC"):
        path = getattr(wanted, key.lower())
        if not path:
            continue
        try:
            import_string(path)
        except ImportError as error:
            yield Error(
                f"WORKFLOWS[{key!r}] names {path!r}, which can't be imported: {error}",
                hint="Give the dotted path of an object in an installed package.",
                id="wfapp.E002",
            )


@register(Tags.compatibility)
def check_database(app_configs: Apps, **_: Any) -> list[CheckMessage]:
    """The alias that holds the workflows, and its options."""
    alias = _alias()
    if alias is None:
        return []
    if alias not in settings.DATABASES:
        text = f"WORKFLOWS['DATABASE'] is {alias!r}, which is not in DATABASES."
        hint = f"Known aliases: {', '.join(settings.DATABASES)}."
        return [Error(text, hint=hint, id="wfapp.E003")]
    connection = connections[alias]
    if connection.vendor == "sqlite":
        return list(_sqlite_options(alias, connection.settings_dict))
    if connection.vendor == "postgresql":
        return list(_postgres_options(alias, connection))
    return [
        Error(
            f"Workflows are stored in PostgreSQL or SQLite, but database {alias!r} is "
            f"{connection.display_name}.",
            hint="Set WORKFLOWS['DATABASE'] to the alias of such a database.",
            id="wfapp.E003",
        )
    ]


def _sqlite_options(alias: str, entry: dict[str, Any]) -> Iterator[CheckMessage]:
    options = entry.get("OPTIONS", {})
    place = f"DATABASES[{alias!r}]['OPTIONS']"
    if str(options.get("transaction_mode", "")).upper() not in ("IMMEDIATE", "EXCLUSIVE"):
        yield Error(
            f"Transactions of SQLite database {alias!r} begin as readers, so that one that comes "
            "to write fails with 'database is locked'.",
            hint=f"Set {place}['transaction_mode'] = 'IMMEDIATE'.",
            id="wfapp.E004",
        )
    if "journal_mode=wal" not in str(options.get("init_command", "")).lower().replace(" ", ""):
        yield Error(
            f"SQLite database {alias!r} is not opened with a write-ahead log, so that readers and "
            "the writer block each other.",
            hint=f"Set {place}['init_command'] = 'PRAGMA journal_mode=WAL'.",
            id="wfapp.E005",
        )
    if float(options.get("timeout", SQLITE_WAIT_SECONDS)) < SQLITE_WAIT_SECONDS:
        yield Error(
            f"Transactions of SQLite database {alias!r} wait only {options['timeout']} s for the "
            "one that writes.",
            hint=f"Set {place}['timeout'] = 20.",
            id="wfapp.E005",
        )


def _postgres_options(alias: str, connection: BaseDatabaseWrapper) -> Iterator[CheckMessage]:
    # Its numbers are those of the driver that is installed.
    from django.db.backends.postgresql.psycopg_any import IsolationLevel  # noqa: PLC0415

    level = connection.settings_dict["OPTIONS"].get(
        "isolation_level", IsolationLevel.READ_COMMITTED
    )
    if level != IsolationLevel.READ_COMMITTED:
        yield Error(
            f"PostgreSQL database {alias!r} is used at another isolation level than READ "
            "COMMITTED: what a transaction reads after it has waited for a lock would be older "
            "than the lock.",
            hint=f"Leave DATABASES[{alias!r}]['OPTIONS']['isolation_level'] out, or give the "
            "workflows an alias of their own by WORKFLOWS['DATABASE'].",
            id="wfapp.E006",
        )


@register(Tags.compatibility)
def check_celery(app_configs: Apps, **_: Any) -> list[CheckMessage]:
    """What Celery does with our messages."""
    found: list[CheckMessage] = []
    celery = current_app.conf
    if celery.task_serializer not in _JSON or not set(_JSON) & set(celery.accept_content):
        found.append(
            Error(
                "Celery must write and accept tasks as JSON; task_serializer is "
                f"{celery.task_serializer!r}, accept_content is {list(celery.accept_content)!r}.",
                hint="Leave CELERY_TASK_SERIALIZER and CELERY_ACCEPT_CONTENT out, or set them to "
                "'json' and ['json'].",
                id="wfapp.E007",
            )
        )
    if celery.task_always_eager:
        found.append(
            CheckWarning(
                "CELERY_TASK_ALWAYS_EAGER is on: starts are recorded, and no worker hears of them.",
                hint="In tests use wfapp.testing.WorkflowEnvironment, which runs workflows "
                "without a worker and moves time; elsewhere turn the setting off.",
                id="wfapp.W002",
            )
        )
    return found


@register(Tags.compatibility)
def check_requests(app_configs: Apps, **_: Any) -> list[CheckMessage]:
    """Views that run in a transaction."""
    alias = _alias()
    entry = settings.DATABASES.get(alias or DEFAULT_DB_ALIAS, {})
    if alias is None or not entry.get("ATOMIC_REQUESTS"):
        return []
    return [
        CheckWarning(
            f"ATOMIC_REQUESTS is on for database {alias!r}: views that start a workflow commit it "
            "with their data, but views that wait for a workflow's result, update or query raise "
            "WaitInsideTransactionError.",
            hint="Mark views that wait with django.db.transaction.non_atomic_requests; then "
            "silence this by SILENCED_SYSTEM_CHECKS = ['wfapp.W001'].",
            id="wfapp.W001",
        )
    ]


@register(Tags.compatibility, deploy=True)
def check_deployment(app_configs: Apps, **_: Any) -> list[CheckMessage]:
    """What is fine on a laptop only."""
    found: list[CheckMessage] = []
    alias = _alias()
    if alias in settings.DATABASES and connections[alias].vendor == "sqlite":
        found.append(
            CheckWarning(
                f"Workflows are stored in SQLite database {alias!r}: only workers of this machine "
                "reach it, and one transaction writes at a time.",
                hint="Use PostgreSQL where there are several workers.",
                id="wfapp.W003",
            )
        )
    if alias in settings.DATABASES and connections[alias].vendor == "postgresql":
        found += _unbounded_connecting(alias, connections[alias].settings_dict["OPTIONS"])
    if set(_PICKLE) & set(current_app.conf.accept_content):
        found.append(
            CheckWarning(
                "Celery accepts pickle: whoever can write to the broker can run code in workers.",
                hint="Set CELERY_ACCEPT_CONTENT = ['json'].",
                id="wfapp.W004",
            )
        )
    return found


def _unbounded_connecting(alias: str, options: dict[str, Any]) -> Iterator[CheckMessage]:
    if options.get("connect_timeout") or options.get("service"):
        return
    yield CheckWarning(
        f"PostgreSQL database {alias!r} is connected to without a time limit: while its server "
        "doesn't answer, views, beat and stopping workers wait for minutes.",
        hint=f"Set DATABASES[{alias!r}]['OPTIONS']['connect_timeout'] = 2.",
        id="wfapp.W005",
    )


def _alias() -> str | None:
    """The alias that the setting names; None if the setting is wrong, which E001 and E002 say."""
    try:
        return conf.config().database
    except ImproperlyConfigured:
        return None
