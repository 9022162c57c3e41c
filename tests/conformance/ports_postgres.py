"""The project for the scenarios: Django's store on PostgreSQL, Redis, one Celery worker of threads.

The worker runs in this process, since scenarios hold code at gates; every queue has a registry of
its own, since class names repeat among the scenarios.
"""

import asyncio
import os
import time
from datetime import timedelta
from typing import Any

from tools.services import Services
from wfcore.client import Client, ThreadCalls
from wfcore.replay.cache import InstanceCache
from wfcore.worker import ActivityTaskRunner, Registry, WorkflowTaskRunner

#: What the recording's servers had registered.
ATTRIBUTES = {
    "Colour": "Keyword",
    "Size": "Int",
    "Weight": "Double",
    "Ready": "Bool",
    "Due": "Datetime",
    "Tags": "KeywordList",
    "Note": "Text",
}
#: More than any scenario runs at once: code that is held at a gate keeps its slot.
SLOTS = 48


class Project:
    """The project's parts, set up once in this process."""

    def __init__(self) -> None:
        self.services = Services.begin(durable=False)
        os.environ["DATABASE_URL"] = self.services.database_url
        os.environ["REDIS_URL"] = self.services.redis_url
        os.environ["DJANGO_SETTINGS_MODULE"] = "settings.test"
        import django
        from django.conf import settings

        settings.WORKFLOWS = {**settings.WORKFLOWS, "LIMITS": {"SEARCH_ATTRIBUTES": ATTRIBUTES}}
        django.setup()
        from django.core.management import call_command

        from settings.celery import app
        from wfapp import wiring

        call_command("migrate", verbosity=0)
        self.app = app
        self.wiring = wiring
        self.service = wiring.get_service()
        self.names = wiring.get_queue_names()
        self.router = wiring.part("worker", Router)
        self._worker = self._start_worker()

    def _start_worker(self):
        from celery.contrib.testing.worker import start_worker

        context = start_worker(
            self.app,
            pool="threads",
            concurrency=SLOTS,
            perform_ping_check=False,
            queues=["scenarios-idle"],
            loglevel="CRITICAL",
        )
        context.__enter__()
        return context

    def consume(self, queue: str, *, start: bool) -> None:
        """Let the worker take messages of a task queue, or stop it; returns when it does."""
        for name in (self.names.activities(queue), self.names.workflows(queue)):
            call = self.app.control.add_consumer if start else self.app.control.cancel_consumer
            for _ in range(50):
                if call(name, reply=True, timeout=5, limit=1):
                    break
                time.sleep(0.1)
            else:
                raise TimeoutError(f"the worker didn't answer for {name}")

    def stop(self) -> None:
        self._worker.__exit__(None, None, None)
        self.services.stop()


class Router:
    """In the place of the process's task worker: hands each message to the worker of its queue."""

    def __init__(self) -> None:
        self.workers: dict[str, Any] = {}

    def workflow_task(self, fields: dict[str, Any]) -> None:
        self.workers[messages().read_workflow_task(fields).effect.task_queue].workflow_task(fields)

    def query(self, fields: dict[str, Any]) -> None:
        self.workers[messages().read_query(fields).task_queue].query(fields)

    def activity(self, fields: dict[str, Any]) -> None:
        self.workers[messages().read_activity(fields).task_queue].activity(fields)

    def begin_shutdown(self) -> None:
        for worker in self.workers.values():
            worker.begin_shutdown()


def messages():
    from wfapp.dispatch import messages

    return messages


def make_task_worker(queue, registry, identity, runners):
    """A task worker of one queue, whose workflow code may block as the scenarios' does."""
    from wfapp import wiring
    from wfapp.dispatch.lifecycle import HOST
    from wfapp.dispatch.running import TaskWorker

    class QueueTaskWorker(TaskWorker):
        def _workflow_runner(self, *names: str) -> WorkflowTaskRunner:
            return runners[0]

        def _activity_runner(self, *names: str) -> ActivityTaskRunner:
            return runners[1]

    return QueueTaskWorker(
        service=wiring.get_service(),
        dispatcher=wiring.get_dispatcher(),
        registry=registry,
        converter=wiring.get_converter(),
        alias="default",
        identity=lambda: identity,
        owner=lambda: HOST.boot_id,
        draining=lambda: False,
        sends_itself=lambda name: False,
        serves=lambda task_queue: task_queue == queue,
    )


class Servers:
    """The project, set up when first needed; the place of the recording's servers."""

    project: Project | None = None

    def __init__(self, *unused: object) -> None:
        pass

    async def address(self, profile: str) -> str:
        if profile != "default":
            raise ValueError(f"no profile {profile}")
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


class QueueWorker:
    """What a scenario calls a worker: a queue that the Celery worker consumes."""

    def __init__(
        self,
        connection,
        queue,
        *,
        workflows,
        activities,
        identity,
        max_cached_workflows=1000,
        **options,
    ) -> None:
        registry = Registry()
        for workflow in workflows:
            registry.add_workflow(workflow)
        for activity in activities:
            registry.add_activity(activity)
        self.queue = queue
        common = (project().service, registry, connection.data_converter, identity)
        runners = (
            WorkflowTaskRunner(
                *common,
                InstanceCache(max_cached_workflows),
                namespace=connection.namespace,
                guarded=False,
                **options,
            ),
            ActivityTaskRunner(
                *common, connection, (), namespace=connection.namespace, task_queue=queue
            ),
        )
        self.task_worker = make_task_worker(queue, registry, identity, runners)

    async def __aenter__(self):
        project().router.workers[self.queue] = self.task_worker
        await asyncio.to_thread(project().consume, self.queue, start=True)
        return self

    async def __aexit__(self, *error) -> None:
        await asyncio.to_thread(project().consume, self.queue, start=False)


def make_worker(connection, queue, **options) -> QueueWorker:
    return QueueWorker(connection, queue, **options)


async def poll_task(connection, request):
    """Wait for a task for 20 s, as a long poll does."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        task = await asyncio.to_thread(
            connection.service.poll_workflow_task_queue, request, timeout=timedelta(seconds=3)
        )
        if task.task_token:
            break
    return task
