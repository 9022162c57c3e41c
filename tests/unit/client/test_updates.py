"""Updates through the client: sent, waited for, found again, and together with a start."""

import asyncio
import dataclasses
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.waiting import wait_until
from tests.unit.client.world import QUEUE, World, payloads
from wfcore import workflow
from wfcore.client import (
    Interceptor,
    OutboundInterceptor,
    StartWorkflowUpdateInput,
    StartWorkflowUpdateWithStartInput,
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateHandle,
    WorkflowUpdateRPCTimeoutOrCancelledError,
    WorkflowUpdateStage,
)
from wfcore.common import WorkflowIDConflictPolicy
from wfcore.converter import DataConverter
from wfcore.exceptions import (
    ApplicationError,
    NotFoundError,
    ResourceExhaustedCause,
    ResourceExhaustedError,
    WorkflowAlreadyStartedError,
)
from wfcore.protocol.commands import Command, ContinueAsNewWorkflowExecution, ProtocolMessage
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.protocol.payloads import Payload
from wfcore.protocol.rpc.workflow_tasks import (
    PollWorkflowTaskQueueResponse,
    RespondWorkflowTaskCompletedRequest,
)
from wfcore.protocol.updates import Acceptance, Outcome, Rejection, Request, Response
from wfcore.protocol.updates import ProtocolMessage as Message

STAGE = WorkflowUpdateStage
USE, FAIL = WorkflowIDConflictPolicy.USE_EXISTING, WorkflowIDConflictPolicy.FAIL
_converter = DataConverter.default.payload_converter


@dataclasses.dataclass
class Total:
    amount: int


@workflow.defn
class Cart:
    @workflow.run
    async def run(self, owner: str) -> None: ...

    @workflow.update
    async def add(self, amount: int) -> Total:
        return Total(amount)

    @workflow.update
    async def add_many(self, amount: int, count: int) -> Total:
        return Total(amount * count)

    @workflow.update
    def empty(self) -> None: ...


@pytest.fixture
def world() -> World:
    return World()


Say = Callable[[Message], list[Message]]


def accept(message: Message) -> list[Message]:
    body = Acceptance(accepted_request_message_id=message.id)
    return [Message(id="accept", protocol_instance_id=message.protocol_instance_id, body=body)]


def refuse(message: Message) -> list[Message]:
    failure = Failure(
        message="no", application_failure_info=ApplicationFailureInfo(type="Rejected")
    )
    body = Rejection(failure=failure)
    return [Message(id="refuse", protocol_instance_id=message.protocol_instance_id, body=body)]


def complete(message: Message) -> list[Message]:
    """With the first argument as the amount."""
    assert isinstance(message.body, Request)
    assert message.body.input is not None
    args = _converter.from_payloads_wrapper(message.body.input.args)
    value = {"amount": args[0]} if args else None
    body = Response(meta=message.body.meta, outcome=Outcome(success=payloads(value)))
    return [Message(id="complete", protocol_instance_id=message.protocol_instance_id, body=body)]


def both(message: Message) -> list[Message]:
    return accept(message) + complete(message)


def do(world: World, say: Say, task: PollWorkflowTaskQueueResponse) -> None:
    said = [word for message in task.messages for word in say(message)]
    placed = [word for word in said if not isinstance(word.body, Rejection)]
    world.service.respond_workflow_task_completed(
        RespondWorkflowTaskCompletedRequest(
            task_token=task.task_token,
            commands=tuple(Command.of(ProtocolMessage(message_id=word.id)) for word in placed),
            messages=tuple(said),
            identity="worker",
        )
    )


def work(world: World, say: Say) -> None:
    """Answer the next workflow task that brings updates, in a thread."""

    def wait_for_one() -> None:
        do(world, say, wait_until(world.poll_task))

    threading.Thread(target=wait_for_one, daemon=True).start()


async def _idle(world: World) -> Any:
    handle = await world.client.start_workflow(Cart.run, "ann", id="cart-1", task_queue=QUEUE)
    world.answer()
    return handle


# ---- sent and waited for


async def test_an_update_gives_its_result_in_the_type_of_its_method(world: World) -> None:
    handle = await _idle(world)
    work(world, both)
    assert await handle.execute_update(Cart.add, 5) == Total(5)


async def test_it_is_named_or_takes_several_arguments(world: World) -> None:
    handle = await _idle(world)
    work(world, both)
    assert await handle.execute_update("add", 7, result_type=Total) == Total(7)
    work(world, both)
    assert await handle.execute_update(Cart.add_many, args=[2, 3]) == Total(2)
    work(world, both)
    assert await handle.execute_update(Cart.empty) is None
    work(world, both)
    assert await handle.execute_update("add", 7) == {"amount": 7}


async def test_it_carries_who_sent_it_and_its_id(world: World) -> None:
    handle = await _idle(world)
    seen: list[Message] = []

    def look(message: Message) -> list[Message]:
        seen.append(message)
        return both(message)

    work(world, look)
    update = await handle.start_update(
        Cart.add, 5, id="u-1", wait_for_stage=WorkflowUpdateStage.COMPLETED
    )
    [message] = seen
    assert isinstance(message.body, Request)
    assert message.body.meta is not None
    assert (message.body.meta.update_id, message.body.meta.identity) == ("u-1", "tester")
    assert (update.id, update.workflow_id) == ("u-1", "cart-1")
    assert update.workflow_run_id == handle.result_run_id


async def test_acceptance_can_be_waited_for_and_the_result_later(world: World) -> None:
    handle = await _idle(world)
    seen: list[Message] = []

    def remember(message: Message) -> list[Message]:
        seen.append(message)
        return accept(message)

    work(world, remember)
    update = await handle.start_update(Cart.add, 5, wait_for_stage=STAGE.ACCEPTED)
    await handle.signal("go")
    do(world, lambda _: [], world.take_task())
    await handle.signal("go")
    task = world.take_task()
    world.service.respond_workflow_task_completed(
        RespondWorkflowTaskCompletedRequest(
            task_token=task.task_token, messages=tuple(complete(seen[0])), identity="worker"
        )
    )
    assert await update.result() == Total(5)


async def test_a_refused_update_tells_why(world: World) -> None:
    handle = await _idle(world)
    work(world, refuse)
    with pytest.raises(WorkflowUpdateFailedError, match="update failed") as caught:
        await handle.execute_update(Cart.add, -1)
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "Rejected"


async def test_a_refusal_is_known_without_another_call(world: World) -> None:
    handle = await _idle(world)
    work(world, refuse)
    update = await handle.start_update(Cart.add, -1, wait_for_stage=STAGE.ACCEPTED)
    with pytest.raises(WorkflowUpdateFailedError):
        await update.result()


async def test_nobody_can_wait_for_admission(world: World) -> None:
    handle = await _idle(world)
    with pytest.raises(ValueError, match="ADMITTED"):
        await handle.start_update(Cart.add, 1, wait_for_stage=STAGE.ADMITTED)


async def test_a_call_has_a_time_limit_and_the_update_goes_on(world: World) -> None:
    handle = await _idle(world)
    with pytest.raises(WorkflowUpdateRPCTimeoutOrCancelledError, match="waiting for update"):
        await handle.execute_update(Cart.add, 5, id="u", rpc_timeout=timedelta(milliseconds=50))
    do(world, both, world.take_task())
    update = handle.get_update_handle_for(Cart.add, "u")
    assert await update.result() == Total(5)


async def test_a_call_that_is_cancelled_says_so(world: World) -> None:
    handle = await _idle(world)
    waiting = asyncio.create_task(handle.execute_update(Cart.add, 5, id="u"))
    await asyncio.to_thread(wait_until, lambda: world.is_admitted("u"))
    waiting.cancel()
    with pytest.raises(WorkflowUpdateRPCTimeoutOrCancelledError):
        await waiting


async def test_an_update_is_found_again(world: World) -> None:
    handle = await _idle(world)
    work(world, both)
    await handle.execute_update(Cart.add, 5, id="u")
    assert await handle.execute_update(Cart.add, 6, id="u") == Total(5)
    assert await handle.get_update_handle("u").result() == {"amount": 5}
    assert await handle.get_update_handle("u", result_type=Total).result() == Total(5)
    with pytest.raises(NotFoundError, match='update "other" not found'):
        await handle.get_update_handle("other").result()


async def test_what_is_refused_in_passing_is_sent_again(world: World) -> None:
    handle = await _idle(world)
    other = world.client.get_workflow_handle("cart-1")
    waiting = asyncio.create_task(other.execute_update(Cart.add, 5, id="u"))
    await asyncio.to_thread(wait_until, lambda: world.is_admitted("u"))
    world.answer(ContinueAsNewWorkflowExecution())  # the caller hears that the run is busy
    await asyncio.to_thread(wait_until, lambda: world.is_admitted("u", but=handle.result_run_id))
    work(world, both)
    assert await waiting == Total(5)


# ---- together with a start


def _operation(conflict: WorkflowIDConflictPolicy = FAIL) -> Any:
    return WithStartWorkflowOperation(
        Cart.run, "ann", id="cart-1", task_queue=QUEUE, id_conflict_policy=conflict
    )


async def test_an_update_may_start_its_workflow(world: World) -> None:
    operation = _operation()
    asking = asyncio.create_task(operation.workflow_handle())
    work(world, both)
    result = await world.client.execute_update_with_start_workflow(
        Cart.add, 5, start_workflow_operation=operation
    )
    assert result == Total(5)
    handle = await operation.workflow_handle()
    assert handle is await asking
    assert handle.id == "cart-1"
    assert handle.result_run_id == handle.first_execution_run_id
    description = await handle.describe()
    assert description.run_id == handle.result_run_id


async def test_an_open_workflow_is_updated(world: World) -> None:
    handle = await _idle(world)
    operation = _operation(USE)
    work(world, accept)
    update = await world.client.start_update_with_start_workflow(
        Cart.add, 5, start_workflow_operation=operation, wait_for_stage=STAGE.ACCEPTED
    )
    assert update.workflow_run_id == handle.result_run_id
    assert (await operation.workflow_handle()).result_run_id == handle.result_run_id


async def test_an_open_workflow_may_be_in_the_way(world: World) -> None:
    handle = await _idle(world)
    operation = _operation()
    with pytest.raises(WorkflowAlreadyStartedError) as caught:
        await world.client.execute_update_with_start_workflow(
            Cart.add, 5, start_workflow_operation=operation
        )
    assert caught.value.run_id == handle.result_run_id
    with pytest.raises(WorkflowAlreadyStartedError):
        await operation.workflow_handle()


async def test_the_error_of_the_update_is_told(world: World) -> None:
    handle = await _idle(world)
    calls = [
        asyncio.create_task(handle.execute_update(Cart.add, 1, id=f"u{number}"))
        for number in range(10)
    ]
    await asyncio.to_thread(
        wait_until, lambda: all(world.is_admitted(f"u{number}") for number in range(10))
    )
    with pytest.raises(ResourceExhaustedError, match="in-flight updates") as caught:
        await world.client.start_update_with_start_workflow(
            Cart.add,
            5,
            start_workflow_operation=_operation(USE),
            wait_for_stage=STAGE.ACCEPTED,
        )
    assert caught.value.resource_cause is ResourceExhaustedCause.CONCURRENT_LIMIT
    for call in calls:
        call.cancel()


async def test_an_operation_serves_once(world: World) -> None:
    operation = _operation()
    work(world, both)
    await world.client.execute_update_with_start_workflow(
        Cart.add, 5, start_workflow_operation=operation
    )
    with pytest.raises(RuntimeError, match="cannot be reused"):
        await world.client.execute_update_with_start_workflow(
            Cart.add, 5, start_workflow_operation=operation
        )


async def test_a_start_whose_update_was_given_up_may_stand(world: World) -> None:
    operation = _operation()
    with pytest.raises(WorkflowUpdateRPCTimeoutOrCancelledError):
        await world.client.execute_update_with_start_workflow(
            Cart.add,
            5,
            start_workflow_operation=operation,
            rpc_timeout=timedelta(milliseconds=50),
        )
    with pytest.raises(WorkflowUpdateRPCTimeoutOrCancelledError):
        await operation.workflow_handle()
    assert (await world.client.get_workflow_handle("cart-1").describe()).run_id


# ---- interceptors


class Noting(Interceptor):
    """Adds a header to updates and notes which calls were made."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002
        return _Notes(next, self.seen)


class _Notes(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, seen: list[str]) -> None:  # noqa: A002
        super().__init__(next)
        self._seen = seen

    async def start_workflow_update(
        self,
        input: StartWorkflowUpdateInput,  # noqa: A002
    ) -> WorkflowUpdateHandle[Any]:
        self._seen.append(input.update)
        input.headers = {"trace": Payload(data=b"1")}
        return await super().start_workflow_update(input)

    async def start_update_with_start_workflow(
        self,
        input: StartWorkflowUpdateWithStartInput,  # noqa: A002
    ) -> WorkflowUpdateHandle[Any]:
        self._seen.append(f"{input.start_workflow_input.workflow} with start")
        return await super().start_update_with_start_workflow(input)


async def test_interceptors_stand_around_updates() -> None:
    noting = Noting()
    world = World(interceptors=[noting])
    handle = await _idle(world)
    headers: list[Any] = []

    def look(message: Message) -> list[Message]:
        assert isinstance(message.body, Request)
        assert message.body.input is not None
        headers.append(message.body.input.header)
        return both(message)

    work(world, look)
    await handle.execute_update(Cart.add, 5)
    work(world, both)
    await world.client.execute_update_with_start_workflow(
        Cart.add, 5, start_workflow_operation=_operation(USE)
    )
    assert noting.seen == ["add", "Cart with start"]
    assert headers[0].fields == {"trace": Payload(data=b"1")}
