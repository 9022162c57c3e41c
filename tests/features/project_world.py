"""The world of the project's own parts: Django's store, and Celery's messages taken one by one."""

from contextlib import ExitStack
from datetime import timedelta
from typing import Any

from tests.features.worlds import WORKER, Worker, World, wait_history, wait_update
from wfapp import wiring
from wfapp.dispatch import messages
from wfapp.dispatch.claims import new_boot_id
from wfapp.dispatch.dispatcher import CeleryDispatcher
from wfapp.dispatch.notices import LocalNotices
from wfapp.dispatch.publisher import Backlog, Publisher
from wfapp.dispatch.running import TaskWorker
from wfapp.store import DjangoStore
from wfcore.converter import DataConverter
from wfcore.history.limits import Limits
from wfcore.protocol.rpc.info import WorkflowQueryResult
from wfcore.service.ports import RunKey
from wfcore.testing.clocks import SimulatedClock
from wfcore.worker import Registry


class DjangoWorld(World):
    """Django's store and Celery's messages."""

    mode = "postgres"

    def __init__(self, name: str, limits: Limits, alias: str) -> None:

        super().__init__(name)
        self.clock = SimulatedClock()
        self.store = DjangoStore(alias, clock=self.clock.now)
        self._stack = ExitStack()
        self._stack.enter_context(wiring.replaced(store=self.store))
        self.app = wiring.get_celery_app()
        self.names = wiring.get_queue_names()
        self._connect(_celery_dispatcher(self), limits)
        self._stack.enter_context(
            wiring.replaced(store=self.store, dispatcher=self.dispatcher, service=self.service)
        )
        self._broker = self._stack.enter_context(self.app.connection_for_read())
        self._channel = self._broker.channel()

    def close(self) -> None:
        for queue in self.workers:
            self.lose_messages(queue)
        super().close()
        self._stack.close()

    def _make_worker(
        self, queue: str, registry: Registry, cache: int, options: dict[str, Any]
    ) -> Worker:
        return _DjangoWorker(self, queue, registry, cache, options)

    def take_message(self, queue: str) -> Any:
        """The Celery task and its arguments."""
        for name in (self.names.workflows(queue), self.names.activities(queue)):
            found = self.app.amqp.queues.new_missing(name).bind(self._channel).get(no_ack=True)
            if found is not None:
                _, arguments, _ = found.decode()
                return found.headers["task"], arguments
        return None


def _celery_dispatcher(world: DjangoWorld) -> Any:

    class Dispatcher(CeleryDispatcher):
        def wait_history(
            self, key: RunKey, next_event_id: int, timeout: timedelta, closed: bool = False
        ) -> None:
            del closed
            wait_history(world, key, next_event_id, timeout)

        def wait_update(
            self, key: RunKey, update_id: str, version: int, timeout: timedelta
        ) -> None:
            wait_update(world, key, update_id, version, timeout)

        def wait_answer(self, query_id: str, timeout: timedelta) -> WorkflowQueryResult | None:
            world.work_until(lambda: query_id in notices._replies, timeout)
            return super().wait_answer(query_id, timedelta())

    notices = LocalNotices()
    publisher = Publisher(world.app, wiring._get_link())
    dispatcher = Dispatcher(
        publisher=publisher,
        names=world.names,
        notices=notices,
        store=world.store,
        celery_task=lambda name: None,
        serving=lambda queue: queue in world.workers,
        resting=lambda: None,
    )
    # what it knows of a queue's length ages with the world's time
    dispatcher._backlog = Backlog(publisher, lambda: world.now().timestamp())
    return dispatcher


class _DjangoWorker(Worker):
    def __init__(
        self,
        world: DjangoWorld,
        queue: str,
        registry: Registry,
        cache: int,
        options: dict[str, Any],
    ) -> None:

        super().__init__(world, queue, registry)
        self.boot_id = boot_id = new_boot_id()
        identity = options.pop("identity", WORKER)

        self._tasks = TaskWorker(
            service=world.service,
            dispatcher=world.dispatcher,
            registry=registry,
            converter=DataConverter.default,
            alias=world.store.alias,
            identity=lambda: identity,
            owner=lambda: boot_id,
            draining=lambda: False,
            sends_itself=lambda name: False,
            serves=lambda task_queue: task_queue == queue,
            client=lambda namespace: world.connect(namespace=namespace),
            cache_size=cache,
            **options,
        )

    def forget(self) -> None:
        self._tasks.forget()

    def run(self, message: Any) -> None:

        task, fields = message
        runs = {
            messages.WORKFLOW_TASK: self._tasks.workflow_task,
            messages.ACTIVITY: self._tasks.activity,
            messages.QUERY: self._tasks.query,
        }
        runs[task](fields)
