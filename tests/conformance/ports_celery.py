"""The project for the random programs: PostgreSQL, Redis, and Celery workers that are processes.

The driver is a client alone; what it needs to know of calls and waits it reads from a file.
"""

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any, Self

from tools.services import Services
from tools.stack import WORKER_READY, Stack
from wfcore.client import Client, ThreadCalls

SETTINGS = "tests.conformance.programs_project.settings"
WORKERS = ("worker-1", "worker-2")
#: The workers' pool, threads or prefork, and its slots: an activity that waits for a cancel request
#: or its timeout keeps one.
POOL = os.environ.get("PROGRAMS_POOL", "threads")
SLOTS = {"threads": 24, "prefork": 10}[POOL]


class Project:
    """The servers, the database's tables, and this process's side of the project."""

    def __init__(self) -> None:
        self.services = Services.begin(durable=False)
        environment = {**self.services.environment(), "DJANGO_SETTINGS_MODULE": SETTINGS}
        os.environ.update(environment)
        import django

        django.setup()
        from django.core.management import call_command

        from wfapp import wiring

        call_command("migrate", verbosity=0)
        self.service: Any = wiring.get_service()
        self._logs = tempfile.TemporaryDirectory(prefix="programs-logs-")
        self._stack = Stack(Path(self._logs.name), environment)
        self._stack.__enter__()

    def start_workers(self, queue: str) -> None:
        """Start the workers of a task queue; returns when they take work."""
        for name in WORKERS:
            self._stack.worker(name, slots=SLOTS, queues=[queue], extra=[f"--pool={POOL}"])
        for program in self._stack.programs:
            program.wait_for(WORKER_READY)

    def stop_workers(self) -> None:
        self._stack.stop()

    def stop(self) -> None:
        self._stack.stop()
        self.services.stop()
        self._logs.cleanup()


class Servers:
    """The project, set up when first needed."""

    project: Project | None = None

    def __init__(self, *unused: object) -> None:
        pass

    async def address(self, profile: str) -> str:
        if Servers.project is None:
            Servers.project = await asyncio.to_thread(Project)
        return profile

    def stop(self) -> None:
        if Servers.project is not None:
            Servers.project.stop()
            Servers.project = None


def project() -> Project:
    """The project that `Servers` has set up."""
    assert Servers.project is not None
    return Servers.project


def connect(address: str, *, namespace: str, identity: str) -> Client:
    return Client(project().service, namespace=namespace, identity=identity, calls=ThreadCalls())


class Workers:
    """Celery workers of one queue; what they run is defined by the project."""

    def __init__(self, queue: str) -> None:
        self._queue = queue

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(project().start_workers, self._queue)
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(project().stop_workers)


def make_worker(_connection: Client, queue: str, **_options: Any) -> Workers:
    return Workers(queue)
