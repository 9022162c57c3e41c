"""Activities completed from outside, over a service in memory: by token and by ids."""

# ruff: noqa: A002 - interceptors have Temporal's parameter names

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.client.world import QUEUE, World, payloads
from wfcore import workflow
from wfcore.client import (
    ActivityCancellationDetails,
    AsyncActivityCancelledError,
    AsyncActivityHandle,
    CompleteAsyncActivityInput,
    Interceptor,
    OutboundInterceptor,
)
from wfcore.converter import (
    ActivitySerializationContext,
    DataConverter,
    DefaultPayloadConverter,
    SerializationContext,
    WithSerializationContext,
)
from wfcore.exceptions import ApplicationError, InvalidArgumentError, NotFoundError
from wfcore.protocol import commands
from wfcore.protocol.common import ActivityType, RetryPolicy, TaskQueue
from wfcore.protocol.events import (
    ActivityTaskCanceled,
    ActivityTaskCompleted,
    ActivityTaskFailed,
    ActivityTaskStarted,
)
from wfcore.protocol.rpc.activity_tasks import (
    PollActivityTaskQueueRequest,
    PollActivityTaskQueueResponse,
)


@workflow.defn
class Order:
    @workflow.run
    async def run(self) -> None: ...


class Shop:
    """A run that waits for its activity, which is to be completed from outside."""

    def __init__(self, attempts: int = 1, **client: Any) -> None:
        self.world = World(**client)
        self.attempts = attempts

    async def begin(self) -> Any:
        handle = await self.world.client.start_workflow(Order.run, id="order-1", task_queue=QUEUE)
        self.world.answer(
            commands.ScheduleActivityTask(
                activity_id="pay",
                activity_type=ActivityType(name="pay"),
                task_queue=TaskQueue(name=QUEUE),
                start_to_close_timeout=timedelta(minutes=5),
                heartbeat_timeout=timedelta(minutes=1),
                retry_policy=RetryPolicy(maximum_attempts=self.attempts),
            )
        )
        return handle

    def take(self) -> PollActivityTaskQueueResponse:
        return self.world.service.poll_activity_task_queue(
            PollActivityTaskQueueRequest(
                namespace="default", task_queue=TaskQueue(name=QUEUE), identity="worker"
            )
        )

    def named(self, how: str, task: PollActivityTaskQueueResponse) -> AsyncActivityHandle:
        client = self.world.client
        if how == "token":
            return client.get_async_activity_handle(task_token=task.task_token)
        run_id = task.workflow_execution.run_id if task.workflow_execution else None
        return client.get_async_activity_handle(
            workflow_id="order-1",
            run_id=run_id if how == "run" else None,
            activity_id="pay",
        )


async def _last(handle: Any, kind: type) -> Any:
    events = (await handle.fetch_history()).events
    return [e.attributes for e in events if isinstance(e.attributes, kind)][-1]


NAMES = pytest.mark.parametrize("how", ["token", "ids", "run"])


@NAMES
async def test_it_is_completed(how: str) -> None:
    shop = Shop()
    handle = await shop.begin()
    activity = shop.named(how, shop.take())
    await activity.complete({"paid": 5})
    completed = await _last(handle, ActivityTaskCompleted)
    assert completed.result == payloads({"paid": 5})
    assert completed.identity == "tester"
    with pytest.raises(NotFoundError):
        await activity.complete(None)


@NAMES
async def test_a_result_may_be_missing_or_none(how: str) -> None:
    shop = Shop()
    handle = await shop.begin()
    await shop.named(how, shop.take()).complete()
    assert (await _last(handle, ActivityTaskCompleted)).result is None
    shop = Shop()
    handle = await shop.begin()
    await shop.named(how, shop.take()).complete(None)
    assert (await _last(handle, ActivityTaskCompleted)).result == payloads(None)


@NAMES
async def test_it_fails_and_is_tried_again(how: str) -> None:
    shop = Shop(attempts=2)
    handle = await shop.begin()
    await shop.named(how, shop.take()).fail(
        ApplicationError("declined", type="Declined"), last_heartbeat_details=["half"]
    )
    shop.world.clock.advance(timedelta(seconds=2))
    task = shop.take()
    assert task.attempt == 2
    assert task.heartbeat_details == payloads("half")
    await shop.named(how, task).fail(ApplicationError("declined again"))
    failed = await _last(handle, ActivityTaskFailed)
    assert failed.failure.message == "declined again"


@NAMES
async def test_a_heartbeat_keeps_it_alive_and_tells_of_a_cancellation(how: str) -> None:
    shop = Shop()
    handle = await shop.begin()
    activity = shop.named(how, shop.take())
    await activity.heartbeat("half")
    (pending,) = (await handle.describe()).raw_description.pending_activities
    assert pending.heartbeat_details == payloads("half")
    with pytest.raises(InvalidArgumentError):
        await activity.report_cancellation()
    await handle.signal("cancel it")
    shop.world.answer(commands.RequestCancelActivityTask(scheduled_event_id=5))
    with pytest.raises(AsyncActivityCancelledError) as caught:
        await activity.heartbeat()
    assert caught.value.details == ActivityCancellationDetails(cancel_requested=True)
    await activity.report_cancellation("stopped")
    assert (await _last(handle, ActivityTaskCanceled)).details == payloads("stopped")


async def test_named_by_ids_it_may_be_completed_before_anybody_has_taken_it() -> None:
    shop = Shop()
    handle = await shop.begin()
    activity = shop.world.client.get_async_activity_handle(
        workflow_id="order-1", run_id=None, activity_id="pay"
    )
    for end in (activity.heartbeat(), activity.fail(ApplicationError("no"))):
        with pytest.raises(NotFoundError):
            await end
    await activity.complete(1)
    started = await _last(handle, ActivityTaskStarted)
    assert (started.identity, started.attempt) == ("tester", 1)
    assert not shop.take().task_token


async def test_the_token_of_an_old_attempt_is_worth_nothing() -> None:
    shop = Shop(attempts=2)
    await shop.begin()
    old = shop.named("token", shop.take())
    await old.fail(ApplicationError("declined"))
    shop.world.clock.advance(timedelta(seconds=2))
    shop.take()
    with pytest.raises(NotFoundError):
        await old.complete(1)
    await shop.named("ids", PollActivityTaskQueueResponse()).complete(1)


async def test_the_calls_pass_interceptors() -> None:
    class Doubling(Interceptor):
        def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
            class Outbound(OutboundInterceptor):
                async def complete_async_activity(self, input: CompleteAsyncActivityInput) -> None:
                    await super().complete_async_activity(
                        dataclasses.replace(input, result=input.result * 2)
                    )

            return Outbound(next)

    shop = Shop(interceptors=[Doubling()])
    handle = await shop.begin()
    await shop.named("ids", shop.take()).complete(4)
    assert (await _last(handle, ActivityTaskCompleted)).result == payloads(8)


class Contextual(DefaultPayloadConverter, WithSerializationContext):
    """Writes which activity a value belongs to."""

    activity_id: str | None = None

    def with_context(self, context: SerializationContext) -> "Contextual":
        made = Contextual()
        if isinstance(context, ActivitySerializationContext):
            made.activity_id = context.activity_id
        return made

    def to_payloads(self, values: Any) -> Any:
        return super().to_payloads([[self.activity_id, value] for value in values])


async def test_values_are_converted_in_the_context_that_is_given() -> None:
    converter = DataConverter(payload_converter_class=Contextual)
    shop = Shop(data_converter=converter)
    handle = await shop.begin()
    context = ActivitySerializationContext(
        namespace="default",
        activity_id="pay",
        activity_type="pay",
        activity_task_queue=QUEUE,
        workflow_id="order-1",
        workflow_type="Order",
        is_local=False,
    )
    activity = shop.named("ids", shop.take()).with_context(context)
    await activity.complete(5)
    assert (await _last(handle, ActivityTaskCompleted)).result == payloads(["pay", 5])


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"workflow_id": "order-1"},
        {"task_token": b"t", "activity_id": "pay"},
        {"task_token": b"t", "workflow_id": "order-1"},
    ],
)
def test_what_names_nothing_is_refused(names: dict[str, Any]) -> None:
    get: Any = World().client.get_async_activity_handle
    with pytest.raises(ValueError, match=r"[Tt]ask token"):
        get(**names)
