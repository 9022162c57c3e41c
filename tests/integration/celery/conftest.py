"""Real workers on servers of this package's own, which its tests may break.

The tests speak to the database under an alias of its own, the workers' processes call it "default":
nothing of the engine may lean on that name.
"""

import itertools
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connections

from tests.integration.celery.shop import ledger
from tests.support.waiting import wait_until
from tools.services import Postgres, Redis, Services
from tools.stack import WORKER_READY, Program, Stack

ALIAS = "celery_world"
#: with TEST_FULL=1 cases run as often as they were reported, which takes minutes more
FULL = os.environ.get("TEST_FULL", "") not in ("", "0")
#: shorter than the default, since tests wait for its end
LEASE_SECONDS = 3.0


@dataclass
class World:
    """Servers, and the project's processes on them."""

    services: Services
    stack: Stack

    @property
    def postgres(self) -> Postgres:
        assert isinstance(self.services.postgres, Postgres)
        return self.services.postgres

    @property
    def redis(self) -> Redis:
        assert isinstance(self.services.redis, Redis)
        return self.services.redis

    def rows(self, what: str) -> list[tuple[int, int, bool, float]]:
        """The ledger's entries."""
        return ledger.rows(what, ALIAS)

    def wait_begun(self, what: str, count: int = 1) -> list[tuple[int, int, bool, float]]:
        """Wait until a body has begun so often."""
        wait_until(lambda: len(self.rows(what)) >= count, what=f"{what} begun {count} times")
        return self.rows(what)

    def ask(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(sql, params)
            return cursor.fetchall()


@pytest.fixture(scope="package")
def world(
    stack: str, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    if stack == "embedded":
        pytest.skip("the embedded stack has no servers")
    from settings.celery import app
    from settings.databases import from_url
    from wfapp import conf, wiring

    with Services.begin(durable=False) as services, django_db_blocker.unblock():
        before = (app.conf.broker_url, settings.WORKFLOWS)
        settings.DATABASES[ALIAS] = from_url(services.database_url)
        connections.configure_settings(settings.DATABASES)
        app.conf.broker_url = services.redis_url
        settings.WORKFLOWS = {"DATABASE": ALIAS}
        conf.config.cache_clear()
        wiring.reset()
        environment = {
            "DJANGO_SETTINGS_MODULE": "tests.integration.celery.settings",
            "DATABASE_URL": services.database_url,
            "REDIS_URL": services.redis_url,
            "TEST_LEASE": str(LEASE_SECONDS),
        }
        directory: Path = tmp_path_factory.mktemp("celery")
        with Stack(directory, environment) as programs:
            call_command("migrate", database=ALIAS, verbosity=0)
            here = World(services, programs)
            with connections[ALIAS].cursor() as cursor:
                cursor.execute(ledger.CREATE)
            yield here
        connections[ALIAS].close()
        del settings.DATABASES[ALIAS]
        app.conf.broker_url, settings.WORKFLOWS = before
        conf.config.cache_clear()
        wiring.reset()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failure shows what the workers said, and where the runs stand."""
    report: Any = yield
    world = getattr(item, "funcargs", {}).get("world")
    if report.when == "call" and report.failed and world is not None:
        for program in world.stack.programs[-4:]:
            report.sections.append((f"log of {program.name}", program.output()[-6000:]))
        report.sections.append(("runs", "\n".join(map(str, _standing(world)))))
    return report


def _standing(world: World) -> list[Any]:
    try:
        return [
            *world.ask(
                "SELECT workflow_id, wakeup_at, unclaimed_at, task_started, owner, "
                "convert_from(snapshot, 'utf8') FROM wfapp_executionstate WHERE status = 1 "
                "ORDER BY run_id DESC LIMIT 5"
            ),
            *world.ask("SELECT convert_from(body, 'utf8') FROM wfapp_pendingactivity LIMIT 5"),
            *world.ask(
                "SELECT pid, state, now() - xact_start, left(query, 100) FROM pg_stat_activity "
                "WHERE datname = current_database()"
            ),
            *world.ask("SELECT clock_timestamp()"),
        ]
    except DatabaseError as error:
        return [error]


_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    """Names a workflow and what it writes down, used once."""
    return f"{uuid.uuid4().hex[:8]}-{next(_numbers)}"


class Workers:
    """Starts workers and waits until they take work."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._started: list[Program] = []

    def start(
        self,
        *,
        pool: str = "prefork",
        slots: int = 2,
        queues: Sequence[str] = (),
        extra: Sequence[str] = (),
        wait: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> Program:
        name = f"w{next(_numbers)}"
        # Not `Stack.worker`: Celery patches for gevent by the first --pool that it finds.
        arguments = [
            *("celery", "-A", "settings", "worker", f"--pool={pool}", f"--concurrency={slots}"),
            *(f"--hostname={name}@localhost", "--loglevel=INFO"),
            *("--without-gossip", "--without-mingle"),
            *((f"--queues={','.join(queues)}",) if queues else ()),
            *extra,
        ]
        program = self._in(env or {}, lambda: self._world.stack.start(name, *arguments))
        self._started.append(program)
        if wait:
            program.wait_for(WORKER_READY)
        return program

    def beat(self, *, env: Mapping[str, str] | None = None, extra: Sequence[str] = ()) -> Program:
        program = self._in(
            env or {}, lambda: self._world.stack.beat(f"beat{next(_numbers)}", extra=extra)
        )
        self._started.append(program)
        return program

    def _in(self, env: Mapping[str, str], start: Callable[[], Program]) -> Program:
        environment = self._world.stack.environment
        before = dict(environment)
        environment.update(env)
        try:
            return start()
        finally:
            environment.clear()
            environment.update(before)

    def end(self) -> None:
        """Kill them; their claims are lost with them."""
        for program in self._started:
            if program.is_running:
                program.kill()
        # What was killed in mid-work leaves claims; the next test's worker judges nobody yet.
        self._world.ask("DELETE FROM wfapp_workerprocess RETURNING 1")


@pytest.fixture
def workers(world: World) -> Iterator[Workers]:
    """Workers of one test."""
    own = Workers(world)
    yield own
    own.end()


@pytest.fixture(scope="module")
def worker(world: World) -> Iterator[Program]:
    """A worker that the tests of a module share."""
    shared = Workers(world)
    yield shared.start(slots=4)
    shared.end()


def in_group(program: Program) -> list[int]:
    """The process ids of a program's children."""
    group = program.pid
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and int(entry.name) != group:
                found.append(int(entry.name))
    return found


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
