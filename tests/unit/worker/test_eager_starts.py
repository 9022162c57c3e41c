"""A worker in the caller's process takes the first task of a run with the answer to its start."""

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest

from wfcore import workflow
from wfcore.client import Client, WorkflowExecutionStatus
from wfcore.common import WorkflowIDReusePolicy
from wfcore.exceptions import WorkflowAlreadyStartedError
from wfcore.protocol.common import TaskQueue, WorkflowType
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse
from wfcore.protocol.rpc.workflows import StartWorkflowExecutionRequest
from wfcore.service.local_workers import LocalWorkers
from wfcore.service.workflow_service import WorkflowService
from wfcore.testing.clocks import SequentialIds, SimulatedClock
from wfcore.testing.memory_dispatcher import MemoryDispatcher
from wfcore.testing.memory_ports import MemoryStore
from wfcore.worker import UnsandboxedWorkflowRunner, Worker

QUEUE = "shop"


@workflow.defn
class Greets:
    @workflow.run
    async def run(self, name: str = "you") -> str:
        return f"hello {name}"


@pytest.fixture
def client() -> Client:
    clock = SimulatedClock(real_time=True)
    service = WorkflowService(MemoryStore(clock), MemoryDispatcher(clock), SequentialIds())
    return Client(service, identity="client")


def _worker(client: Client, **options: Any) -> Worker:
    options = {"task_queue": QUEUE, "identity": "worker", **options}
    runner = UnsandboxedWorkflowRunner()
    return Worker(client, workflows=[Greets], workflow_runner=runner, **options)


async def _start(client: Client, **options: Any) -> tuple[list[HistoryEvent], str]:
    """Start one eagerly; its history as it was then, and its result."""
    options = {"id": "a", "task_queue": QUEUE, "request_eager_start": True, **options}
    handle = await client.start_workflow(Greets.run, "Ann", **options)
    result = await handle.result()
    return list((await handle.fetch_history()).events), result


def _started_by(events: list[HistoryEvent]) -> tuple[bool, str]:
    first, third = events[0].attributes, events[2].attributes
    return first.eager_execution_accepted, third.identity  # type: ignore[attr-defined]


async def test_the_worker_gets_the_task_with_the_start(client: Client) -> None:
    async with _worker(client):
        events, result = await _start(client)
    assert (_started_by(events), result) == ((True, "client"), "hello Ann")
    completed = events[3].attributes
    assert completed.identity == "worker"  # type: ignore[attr-defined]


async def test_without_asking_it_is_polled_for(client: Client) -> None:
    async with _worker(client):
        events, _ = await _start(client, request_eager_start=False)
    assert _started_by(events) == (False, "worker")


async def test_a_worker_of_another_queue_is_not_asked(client: Client) -> None:
    async with _worker(client, task_queue="other"):
        await client.start_workflow(
            Greets.run, "Ann", id="a", task_queue=QUEUE, request_eager_start=True
        )
    async with _worker(client):
        events = (await client.get_workflow_handle("a").fetch_history()).events
    assert not events[0].attributes.eager_execution_accepted  # type: ignore[attr-defined]


async def test_a_start_without_a_worker_is_like_any_other(client: Client) -> None:
    await client.start_workflow(
        Greets.run, "Ann", id="a", task_queue=QUEUE, request_eager_start=True
    )
    async with _worker(client):
        assert await client.get_workflow_handle("a").result() == "hello Ann"


async def test_a_worker_without_room_is_not_asked(client: Client) -> None:
    async with _worker(client, max_concurrent_workflow_tasks=1):
        place = client.service.local_workers.reserve("default", QUEUE)
        with place or nullcontext():  # without one the worker's poll took the room
            await client.start_workflow(
                Greets.run, "Ann", id="a", task_queue=QUEUE, request_eager_start=True
            )
        handle = client.get_workflow_handle("a")
        await handle.result()
    assert _started_by(list((await handle.fetch_history()).events)) == (False, "worker")


async def test_room_is_given_back_when_the_start_brings_no_task(client: Client) -> None:
    never = WorkflowIDReusePolicy.REJECT_DUPLICATE
    async with _worker(client, max_concurrent_workflow_tasks=2):
        await _start(client)
        for _ in range(3):
            with pytest.raises(WorkflowAlreadyStartedError):
                await _start(client, id_reuse_policy=never)
        for workflow_id in ("b", "c"):
            events, _ = await _start(client, id=workflow_id)
            assert _started_by(events) == (True, "client")


async def test_a_worker_that_has_ended_is_not_asked(client: Client) -> None:
    async with _worker(client):
        assert client.service.local_workers.reserve("elsewhere", QUEUE) is None
        place = client.service.local_workers.reserve("default", QUEUE)
        assert place is not None
        with place:
            pass
    assert client.service.local_workers.reserve("default", QUEUE) is None


async def test_a_worker_waits_for_the_start_that_it_keeps_room_for(client: Client) -> None:
    worker = _worker(client)
    async with worker:
        place = client.service.local_workers.reserve("default", QUEUE)
        assert place is not None
        ending = asyncio.create_task(worker.shutdown())
        request = StartWorkflowExecutionRequest(
            namespace="default",
            workflow_id="a",
            workflow_type=WorkflowType(name="Greets"),
            task_queue=TaskQueue(name=QUEUE),
            request_eager_execution=True,
        )
        started = client.service.start_workflow_execution(request)
        assert started.eager_workflow_task is not None
        with place:
            place.fill(started.eager_workflow_task)
        await ending
    description = await client.get_workflow_handle("a").describe()
    assert description.status is not WorkflowExecutionStatus.RUNNING


class Room:
    """A worker with room for so many tasks."""

    def __init__(self, free: int) -> None:
        self.free = free
        self.tasks: list[PollWorkflowTaskQueueResponse] = []

    def reserve_workflow_task(self) -> bool:
        if self.free == 0:
            return False
        self.free -= 1
        return True

    def run_workflow_task(self, task: PollWorkflowTaskQueueResponse) -> None:
        self.tasks.append(task)

    def give_back_workflow_task(self) -> None:
        self.free += 1


def test_of_several_workers_one_with_room_is_taken() -> None:
    workers, full, free = LocalWorkers(), Room(0), Room(1)
    for room in (full, free):
        workers.add("default", QUEUE, room)
    place = workers.reserve("default", QUEUE)
    assert place is not None
    assert workers.reserve("default", QUEUE) is None
    task = PollWorkflowTaskQueueResponse(task_token=b"t")
    with place:
        place.fill(task)
        place.fill(task)
    assert (full.tasks, free.tasks, free.free) == ([], [task], 0)


def test_a_worker_that_was_removed_is_not_taken() -> None:
    workers, room = LocalWorkers(), Room(1)
    workers.add("default", QUEUE, room)
    workers.remove("default", QUEUE, room)
    workers.remove("default", QUEUE, room)
    assert workers.reserve("default", QUEUE) is None
    assert room.free == 1
