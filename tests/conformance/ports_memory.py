"""The engine in memory for the scenarios: a store, a ticker thread and workers of threads."""

import asyncio
import dataclasses
import threading
from datetime import timedelta

from wfcore.client import Client
from wfcore.history.limits import DEFAULT_LIMITS, Limits
from wfcore.protocol.enums import IndexedValueType
from wfcore.service.ids import RandomIds
from wfcore.service.workflow_service import WorkflowService
from wfcore.testing.clocks import SimulatedClock
from wfcore.testing.memory_dispatcher import MemoryDispatcher
from wfcore.testing.memory_ports import MemoryStore
from wfcore.worker import UnsandboxedWorkflowRunner, Worker

#: what the recording's servers had registered
ATTRIBUTES = {
    "Colour": IndexedValueType.KEYWORD,
    "Size": IndexedValueType.INT,
    "Weight": IndexedValueType.DOUBLE,
    "Ready": IndexedValueType.BOOL,
    "Due": IndexedValueType.DATETIME,
    "Tags": IndexedValueType.KEYWORD_LIST,
    "Note": IndexedValueType.TEXT,
}
#: limits by the profile that a scenario was recorded with
PROFILES: dict[str, Limits] = {
    "default": dataclasses.replace(DEFAULT_LIMITS, search_attributes=ATTRIBUTES),
    "limits": dataclasses.replace(
        DEFAULT_LIMITS,
        search_attributes=ATTRIBUTES,
        history_events=40,
        history_events_warn=30,
        history_events_suggest=12,
        pending_activities=2,
        blob_bytes=4_000,
        memo_bytes=3_000,
        signals=5,
        buffered_events=4,
    ),
}


class Engine:
    """One engine with its ticker."""

    def __init__(self, limits: Limits) -> None:
        clock = SimulatedClock(real_time=True)
        self.store = MemoryStore(clock)
        self.dispatcher = MemoryDispatcher(clock)
        self.service = WorkflowService(self.store, self.dispatcher, RandomIds(), limits=limits)
        self._stop = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="ticker", daemon=True)
        self._ticker.start()

    def _tick(self) -> None:
        while not self._stop.wait(0.01):
            self.service.sweep()

    def stop(self) -> None:
        self._stop.set()
        self._ticker.join()


_engines: dict[str, Engine] = {}


class Servers:
    """One engine per profile, made when first needed; the place of the recording's servers."""

    def __init__(self, *unused: object) -> None:
        pass

    async def address(self, profile: str) -> str:
        if profile not in _engines:
            _engines[profile] = Engine(PROFILES[profile])
        return profile

    def stop(self) -> None:
        for engine in _engines.values():
            engine.stop()
        _engines.clear()


def connect(address: str, *, namespace: str, identity: str) -> Client:
    return Client(_engines[address].service, namespace=namespace, identity=identity)


def make_worker(connection, queue, **options) -> Worker:
    return Worker(
        connection, task_queue=queue, workflow_runner=UnsandboxedWorkflowRunner(), **options
    )


async def poll_task(connection, request):
    """Wait for a task for 20 s, as a long poll does."""
    return await asyncio.to_thread(
        connection.service.poll_workflow_task_queue, request, timeout=timedelta(seconds=20)
    )
