"""The world in memory."""

from collections import deque
from datetime import timedelta
from typing import Any

from tests.features.worlds import WORKER, Worker, World, wait_history, wait_update
from wfcore.converter import DataConverter
from wfcore.history.effects import DispatchActivity, DispatchWorkflowTask, Effect
from wfcore.history.limits import Limits
from wfcore.protocol.rpc.info import WorkflowQueryResult
from wfcore.service.ports import QueryTask, RunKey
from wfcore.testing.clocks import SimulatedClock
from wfcore.testing.memory_dispatcher import MemoryDispatcher
from wfcore.testing.memory_ports import MemoryStore
from wfcore.worker import ActivityTaskRunner, InstanceCache, Registry, WorkflowTaskRunner


class MemoryWorld(World):
    """The ports in memory."""

    mode = "memory"

    def __init__(self, name: str, limits: Limits) -> None:
        super().__init__(name)
        self.clock = SimulatedClock()
        self.store = MemoryStore(self.clock)
        self._messages: dict[str, deque[Any]] = {}
        self._connect(_MemoryDispatcher(self), limits)

    def _make_worker(
        self, queue: str, registry: Registry, cache: int, options: dict[str, Any]
    ) -> Worker:
        return _MemoryWorker(self, queue, registry, cache, options)

    def put_message(self, message: Any) -> None:
        """A message for the worker of a task queue."""
        self._messages.setdefault(message.task_queue, deque()).append(message)

    def take_message(self, queue: str) -> Any:
        waiting = self._messages.get(queue)
        return waiting.popleft() if waiting else None


class _MemoryDispatcher(MemoryDispatcher):
    def __init__(self, world: MemoryWorld) -> None:
        super().__init__(world.clock, self._announce)
        self._world = world

    def _announce(self, effect: Effect) -> None:
        if isinstance(effect, DispatchWorkflowTask | DispatchActivity):
            self._world.put_message(effect)

    def wait_history(
        self, key: RunKey, next_event_id: int, timeout: timedelta, closed: bool = False
    ) -> None:
        del closed
        wait_history(self._world, key, next_event_id, timeout)

    def wait_update(self, key: RunKey, update_id: str, version: int, timeout: timedelta) -> None:
        wait_update(self._world, key, update_id, version, timeout)

    def dispatch_query(self, task: QueryTask) -> None:
        super().dispatch_query(task)
        self._world.put_message(task)

    def wait_answer(self, query_id: str, timeout: timedelta) -> WorkflowQueryResult | None:
        self._world.work_until(lambda: self._answers.get(query_id) is not None, timeout)
        return super().wait_answer(query_id, timedelta())

    def worker_seen(self, namespace: str, task_queue: str) -> bool:
        return task_queue in self._world.workers


class _MemoryWorker(Worker):
    def __init__(
        self,
        world: MemoryWorld,
        queue: str,
        registry: Registry,
        cache: int,
        options: dict[str, Any],
    ) -> None:
        super().__init__(world, queue, registry)
        self._identity = options.pop("identity", WORKER)
        self._interceptors = options.pop("interceptors", ())
        self._instances = InstanceCache(cache)
        self._workflows = WorkflowTaskRunner(
            world.service,
            registry,
            DataConverter.default,
            self._identity,
            self._instances,
            interceptors=self._interceptors,
            **options,
        )
        self._activities = ActivityTaskRunner(
            world.service,
            registry,
            DataConverter.default,
            self._identity,
            world.client,
            self._interceptors,
            task_queue=queue,
        )

    def forget(self) -> None:
        self._instances.clear()

    def run(self, message: Any) -> None:
        service = self.world.service
        if isinstance(message, DispatchActivity):
            attempt = service.claim_activity(message, identity=self._identity)
            if attempt.task_token:
                self._activities.run(attempt)
            return
        if isinstance(message, QueryTask):
            task = service.claim_query(message)
        else:
            known = self._workflows.known_event_id(message.run_id)
            task = service.claim_workflow_task(
                message, identity=self._identity, after_event_id=known
            )
        if task.task_token:
            self._workflows.run(task)
