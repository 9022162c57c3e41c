"""Updates run by real workers: what they answer, and that a refusal leaves nothing in memory."""

import asyncio
import dataclasses
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.support.waiting import wait_until
from tests.unit.worker.world import QUEUE, World, kinds
from wfcore import activity, workflow
from wfcore.client import WorkflowUpdateFailedError, WorkflowUpdateStage
from wfcore.converter import DataConverter, PayloadCodec
from wfcore.exceptions import ApplicationError
from wfcore.protocol.enums import EventType
from wfcore.protocol.events import (
    WorkflowExecutionUpdateAccepted,
    WorkflowExecutionUpdateCompleted,
)
from wfcore.protocol.payloads import Payload

SECONDS = timedelta(seconds=10)
made: list[str] = []

DONE = [
    EventType.WORKFLOW_TASK_SCHEDULED,
    EventType.WORKFLOW_TASK_STARTED,
    EventType.WORKFLOW_TASK_COMPLETED,
    EventType.WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
    EventType.WORKFLOW_EXECUTION_UPDATE_COMPLETED,
]


@activity.defn
def price(item: str) -> int:
    return len(item)


@workflow.defn
class Cart:
    """Takes items and tells the total; refuses what has no name."""

    def __init__(self) -> None:
        made.append("cart")
        self.total = 0
        self.is_done = False

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: self.is_done)
        return self.total

    @workflow.update
    async def add(self, item: str) -> int:
        self.total += await workflow.execute_activity(price, item, start_to_close_timeout=SECONDS)
        return self.total

    @workflow.update
    def put(self, total: int) -> int:
        self.total = total
        return total

    @put.validator
    def check(self, total: int) -> None:
        if total < 0:
            raise ApplicationError("below nothing", type="Negative")

    @workflow.signal
    def finish(self) -> None:
        self.is_done = True


@pytest.fixture
def world() -> World:
    made.clear()
    return World([Cart], [price])


async def _start(world: World, **options: Any) -> Any:
    return await world.client.start_workflow(Cart.run, id="cart-1", task_queue=QUEUE, **options)


async def _send(world: World, call: Any) -> Any:
    """Make a call and run what it brings; its result."""
    waiting = asyncio.create_task(call)

    def work() -> None:
        wait_until(lambda: waiting.done() or world.run_workflow_tasks() or world.run_activities())

    while not waiting.done():
        await asyncio.to_thread(work)
        await asyncio.sleep(0)
    return await waiting


async def test_a_live_instance_goes_on_with_an_update(world: World) -> None:
    handle = await _start(world)
    world.settle()
    assert await _send(world, handle.execute_update(Cart.put, 5)) == 5
    assert (await kinds(handle))[4:] == DONE
    await handle.signal(Cart.finish)
    world.settle()
    assert await handle.result() == 5
    assert made == ["cart"]


async def test_a_handler_that_waits_completes_in_a_later_task(world: World) -> None:
    handle = await _start(world)
    world.settle()
    update = await _send(
        world, handle.start_update(Cart.add, "book", wait_for_stage=WorkflowUpdateStage.ACCEPTED)
    )
    world.settle()
    assert await update.result() == 4
    assert (await kinds(handle))[8] is EventType.ACTIVITY_TASK_SCHEDULED


async def test_a_refusal_throws_the_instance_out_and_leaves_no_event(world: World) -> None:
    handle = await _start(world)
    world.settle()
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await _send(world, handle.execute_update(Cart.put, -1))
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "Negative"
    assert world.cache.statistics.size == 0
    assert len(await kinds(handle)) == 4
    assert await _send(world, handle.execute_update(Cart.put, 3)) == 3
    assert made == ["cart", "cart"]
    assert (await kinds(handle))[4:] == DONE


async def test_a_refusal_in_the_first_task_lets_the_start_wait_on(world: World) -> None:
    handle = await _start(world, start_delay=timedelta(seconds=60))
    with pytest.raises(WorkflowUpdateFailedError):
        await _send(world, handle.execute_update(Cart.put, -1))
    assert world.cache.statistics.size == 0
    assert await kinds(handle) == [EventType.WORKFLOW_EXECUTION_STARTED]
    world.pass_time(61)
    world.settle()
    assert (await kinds(handle))[-1] is EventType.WORKFLOW_TASK_COMPLETED


async def test_an_unknown_update_is_refused_with_what_is_known(world: World) -> None:
    handle = await _start(world)
    world.settle()
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await _send(world, handle.execute_update("unheard"))
    assert "known updates: [add put]" in str(caught.value.cause)


class Reverse(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [turned(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [turned(payload) for payload in payloads]


def turned(payload: Payload) -> Payload:
    return Payload(metadata=payload.metadata, data=payload.data[::-1])


async def test_a_codec_is_on_all_that_events_hold_of_an_update() -> None:
    converter = dataclasses.replace(DataConverter.default, payload_codec=Reverse())
    world = World([Cart], [price], data_converter=converter)
    handle = await _start(world)
    await asyncio.to_thread(world.settle)
    assert await _send(world, handle.execute_update(Cart.put, 123)) == 123
    accepted, completed = (event.attributes for event in (await handle.fetch_history()).events[7:])
    assert isinstance(accepted, WorkflowExecutionUpdateAccepted)
    assert accepted.accepted_request is not None
    assert accepted.accepted_request.input is not None
    assert accepted.accepted_request.input.args is not None
    assert accepted.accepted_request.input.args.payloads[0].data == b"321"
    assert isinstance(completed, WorkflowExecutionUpdateCompleted)
    assert completed.outcome is not None
    assert completed.outcome.success is not None
    assert completed.outcome.success.payloads[0].data == b"321"
