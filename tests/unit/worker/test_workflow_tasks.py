"""Workflow tasks over a service in memory: what is committed, reported, kept and thrown away."""

# ruff: noqa: A002 - interceptors have Temporal's parameter names

import asyncio
import dataclasses
import logging
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.support.waiting import wait_until
from tests.unit.worker.world import QUEUE, World, event_of, kinds
from wfcore import activity, workflow
from wfcore.client import WorkflowFailureError, WorkflowQueryFailedError
from wfcore.converter import DataConverter, PayloadCodec
from wfcore.exceptions import ApplicationError, UnavailableError
from wfcore.protocol.enums import EventType, WorkflowTaskFailedCause
from wfcore.protocol.events import WorkflowTaskCompleted, WorkflowTaskFailed
from wfcore.protocol.payloads import Payload
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse
from wfcore.worker import (
    ExecuteWorkflowInput,
    InstanceCache,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

SECONDS = timedelta(seconds=10)
made: list[str] = []


@activity.defn
def charge(amount: int) -> int:
    return amount * 2


@workflow.defn
class Order:
    """Charges twice; can be asked, told and stopped."""

    def __init__(self) -> None:
        made.append("order")
        self.charged = 0
        self.bonus = 0

    @workflow.run
    async def run(self, amount: int) -> int:
        for _ in range(2):
            self.charged += await workflow.execute_activity(
                charge, amount, start_to_close_timeout=SECONDS
            )
        workflow.logger.info("charged %s", self.charged)
        return self.charged + self.bonus

    @workflow.signal
    def add_bonus(self, bonus: int) -> None:
        self.bonus += bonus

    @workflow.query
    def state(self, add: int) -> int:
        return self.charged + add


@pytest.fixture
def world() -> World:
    made.clear()
    return World([Order], [charge])


async def _start(world: World, run: Any = Order.run, *args: Any) -> Any:
    return await world.client.start_workflow(run, args=args or [5], id="order-1", task_queue=QUEUE)


# --- committing ---


async def test_a_workflow_runs_to_its_result(world: World) -> None:
    handle = await _start(world)
    world.settle()
    assert await handle.result() == 20
    assert made == ["order"]
    assert await kinds(handle) == [
        EventType.WORKFLOW_EXECUTION_STARTED,
        EventType.WORKFLOW_TASK_SCHEDULED,
        EventType.WORKFLOW_TASK_STARTED,
        EventType.WORKFLOW_TASK_COMPLETED,
        EventType.ACTIVITY_TASK_SCHEDULED,
        EventType.ACTIVITY_TASK_STARTED,
        EventType.ACTIVITY_TASK_COMPLETED,
        EventType.WORKFLOW_TASK_SCHEDULED,
        EventType.WORKFLOW_TASK_STARTED,
        EventType.WORKFLOW_TASK_COMPLETED,
        EventType.ACTIVITY_TASK_SCHEDULED,
        EventType.ACTIVITY_TASK_STARTED,
        EventType.ACTIVITY_TASK_COMPLETED,
        EventType.WORKFLOW_TASK_SCHEDULED,
        EventType.WORKFLOW_TASK_STARTED,
        EventType.WORKFLOW_TASK_COMPLETED,
        EventType.WORKFLOW_EXECUTION_COMPLETED,
    ]


async def test_only_the_first_task_tells_rules_and_version(world: World) -> None:
    handle = await _start(world)
    world.settle()
    completed = [
        event.attributes
        for event in (await handle.fetch_history()).events
        if isinstance(event.attributes, WorkflowTaskCompleted)
    ]
    first, *later = [attributes.sdk_metadata for attributes in completed]
    assert first is not None
    assert sorted(first.core_used_flags) == [1, 2, 3, 4]
    assert first.sdk_name == "wfcore-python"
    assert first.sdk_version
    assert all(not m.core_used_flags and not m.sdk_name for m in later if m is not None)
    assert {attributes.identity for attributes in completed} == {"worker"}


async def test_the_build_id_stands_with_each_task() -> None:
    world = World([Order], [charge], build_id="1.2.3")
    handle = await _start(world)
    world.settle()
    completed = (await event_of(handle, EventType.WORKFLOW_TASK_COMPLETED)).attributes
    assert isinstance(completed, WorkflowTaskCompleted)
    assert completed.worker_version is not None
    assert completed.worker_version.build_id == "1.2.3"


async def test_a_lost_instance_is_made_again_from_the_history(world: World) -> None:
    handle = await _start(world)
    world.run_workflow_tasks()
    world.run_activities()
    world.cache.clear()
    world.settle()
    assert await handle.result() == 20
    assert made == ["order", "order"]


async def test_a_task_may_bring_only_what_is_new(world: World) -> None:
    handle = await _start(world)
    world.run_workflow_tasks()
    world.run_activities()
    (key,) = world.store.unclaimed_workflow_tasks("default", QUEUE, 2)
    known = world.runner.known_event_id(key.run_id)
    assert known == 3
    task = world.service.claim_workflow_task(key, identity="worker", after_event_id=known)
    assert task.history is not None
    assert task.history.events[0].event_id == 4
    world.runner.run(task)
    assert made == ["order"]
    world.settle()
    assert await handle.result() == 20


async def test_a_short_task_without_its_instance_loads_the_whole_history(world: World) -> None:
    handle = await _start(world)
    world.run_workflow_tasks()
    world.run_activities()
    (key,) = world.store.unclaimed_workflow_tasks("default", QUEUE, 2)
    task = world.service.claim_workflow_task(key, identity="worker", after_event_id=3)
    world.cache.clear()
    assert world.runner.known_event_id(key.run_id) == 0
    world.runner.run(task)
    world.settle()
    assert await handle.result() == 20
    assert made == ["order", "order"]


async def test_an_instance_that_missed_a_part_is_made_again(world: World) -> None:
    handle = await _start(world)
    world.run_workflow_tasks()
    world.run_activities()
    elsewhere = world.another_runner(cache=InstanceCache(10))
    elsewhere.run(world.workflow_task())
    world.run_activities()
    (key,) = world.store.unclaimed_workflow_tasks("default", QUEUE, 2)
    task = world.service.claim_workflow_task(key, identity="worker", after_event_id=9)
    world.runner.run(task)
    assert await handle.result() == 20


async def test_a_new_task_comes_back_with_the_answer(world: World) -> None:
    handle = await _start(world)
    task = world.workflow_task()
    await handle.signal(Order.add_bonus, 1)  # arrives while the task is running
    world.runner.run(task)
    assert not world.workflow_task().task_token
    assert (await kinds(handle)).count(EventType.WORKFLOW_TASK_COMPLETED) == 2
    world.settle()
    assert await handle.result() == 21


async def test_a_closed_run_leaves_the_memory(world: World) -> None:
    await _start(world)
    world.run_workflow_tasks()
    assert world.cache.statistics.size == 1
    world.settle()
    assert world.cache.statistics.size == 0


async def test_log_lines_come_after_the_commit(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await _start(world)
    with caplog.at_level(logging.INFO):
        world.settle()
    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if line.startswith("charged 20")]) == 1


# --- answers that are not taken ---


async def test_a_late_answer_throws_the_instance_out(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    handle = await _start(world)
    task = world.workflow_task()
    world.pass_time(11)  # the workflow task times out
    with caplog.at_level(logging.INFO):
        world.runner.run(task)
    assert "came too late" in caplog.text
    assert world.cache.statistics.size == 0
    world.settle()
    assert await handle.result() == 20


class _Flaky:
    """The service, which refuses some answers."""

    def __init__(self, world: World, errors: list[Exception]) -> None:
        self._service = world.service
        self._errors = errors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)

    def respond_workflow_task_completed(self, request: Any) -> Any:
        if self._errors:
            raise self._errors.pop(0)
        return self._service.respond_workflow_task_completed(request)


async def test_an_answer_survives_a_short_outage(world: World) -> None:
    handle = await _start(world)
    errors: list[Exception] = [UnavailableError("down")]
    world.runner = world.another_runner(service=_Flaky(world, errors))
    world.settle()
    assert errors == []
    assert await handle.result() == 20


@workflow.defn
class Impossible:
    """Asks for an activity that the service refuses."""

    @workflow.run
    async def run(self, _: int) -> None:
        await workflow.execute_activity(
            "charge", start_to_close_timeout=timedelta(seconds=1), task_queue="x" * 1001
        )


async def test_a_refused_answer_throws_the_instance_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World([Impossible])
    handle = await _start(world, Impossible.run)
    world.runner.run(world.workflow_task())
    assert "was refused" in caplog.text
    assert world.cache.statistics.size == 0
    failed = (await event_of(handle, EventType.WORKFLOW_TASK_FAILED)).attributes
    assert isinstance(failed, WorkflowTaskFailed)
    assert failed.cause is WorkflowTaskFailedCause.BAD_SCHEDULE_ACTIVITY_ATTRIBUTES


# --- failing tasks ---


@workflow.defn
class Broken:
    """Fails as often as the list says."""

    failures: list[Exception] = []  # noqa: RUF012 - shared by all instances on purpose

    @workflow.run
    async def run(self, amount: int) -> int:
        with workflow.unsafe.sandbox_unrestricted():
            if Broken.failures:
                raise Broken.failures.pop(0)
        return amount


async def _failed_task(world: World, handle: Any) -> WorkflowTaskFailed:
    world.runner.run(world.workflow_task())
    failed = (await event_of(handle, EventType.WORKFLOW_TASK_FAILED)).attributes
    assert isinstance(failed, WorkflowTaskFailed)
    assert failed.failure is not None
    return failed


async def test_an_error_of_the_code_fails_the_task_and_not_the_workflow(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World([Broken])
    Broken.failures = [ValueError("a bug")]
    handle = await _start(world, Broken.run)
    failed = await _failed_task(world, handle)
    assert failed.cause is WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE
    assert failed.failure is not None
    assert failed.failure.message == "a bug"
    assert "Failed activation on workflow Broken with ID order-1" in caplog.text
    assert world.cache.statistics.size == 0
    world.pass_time(0)
    world.settle()
    assert await handle.result() == 5


async def test_only_the_first_failure_of_a_row_is_reported() -> None:
    world = World([Broken])
    Broken.failures = [ValueError("a bug") for _ in range(2)]
    handle = await _start(world, Broken.run)
    await _failed_task(world, handle)
    world.pass_time(0)
    second = world.workflow_task()
    assert second.attempt == 2
    world.runner.run(second)
    assert not world.workflow_task().task_token  # nobody answered: it waits for its time limit
    assert (await kinds(handle)).count(EventType.WORKFLOW_TASK_FAILED) == 1
    for _ in range(5):
        world.pass_time(11)
        world.settle()
    assert await handle.result() == 5


async def test_listed_errors_fail_the_workflow() -> None:
    world = World([Broken], workflow_failure_exception_types=[ValueError])
    Broken.failures = [ValueError("a bug")]
    handle = await _start(world, Broken.run)
    world.settle()
    with pytest.raises(WorkflowFailureError) as found:
        await handle.result()
    assert isinstance(found.value.cause, ApplicationError)
    assert found.value.cause.type == "ValueError"


async def test_an_unknown_workflow_is_told_with_what_is_known(world: World) -> None:
    handle = await world.client.start_workflow("Unheard", id="x", task_queue=QUEUE)
    failed = await _failed_task(world, handle)
    assert failed.failure is not None
    assert failed.failure.message == (
        "Workflow class Unheard is not registered on this worker, available workflows: Order"
    )
    assert failed.failure.application_failure_info is not None
    assert failed.failure.application_failure_info.type == "NotFoundError"


async def test_code_that_disagrees_with_its_history_fails_the_task(world: World) -> None:
    @workflow.defn(name="Order")
    class Changed:
        @workflow.run
        async def run(self, amount: int) -> None:
            await workflow.sleep(amount)

    handle = await _start(world)
    world.run_workflow_tasks()
    world.run_activities()
    changed = world.another_runner([Changed], cache=InstanceCache(10))
    changed.run(world.workflow_task())
    failed = (await event_of(handle, EventType.WORKFLOW_TASK_FAILED)).attributes
    assert isinstance(failed, WorkflowTaskFailed)
    assert failed.cause is WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR
    assert (await handle.describe()).status == 1
    world.pass_time(0)
    world.settle()  # the old code goes on
    assert await handle.result() == 20


@workflow.defn
class Clocked:
    @workflow.run
    async def run(self, _: int) -> float:
        return time.time()


async def test_what_breaks_replay_is_refused_unless_guards_are_off() -> None:
    world = World([Clocked])
    handle = await _start(world, Clocked.run)
    failed = await _failed_task(world, handle)
    assert failed.failure is not None
    assert "workflow.now()" in failed.failure.message
    free = World([Clocked], guarded=False)
    handle = await _start(free, Clocked.run)
    free.settle()
    assert await handle.result() > 0


# --- code that hangs ---


@workflow.defn
class Hanging:
    """Runs for ever the first time."""

    tries = 0

    @workflow.run
    async def run(self, amount: int) -> int:
        with workflow.unsafe.sandbox_unrestricted():
            Hanging.tries += 1
            while Hanging.tries == 1:
                pass
        return amount


async def test_code_that_does_not_come_back_is_given_up() -> None:
    Hanging.tries = 0
    world = World([Hanging], deadlock_timeout=timedelta(milliseconds=50))
    handle = await _start(world, Hanging.run)
    await asyncio.to_thread(world.runner.run, world.workflow_task())
    failed = (await event_of(handle, EventType.WORKFLOW_TASK_FAILED)).attributes
    assert isinstance(failed, WorkflowTaskFailed)
    assert failed.failure is not None
    assert "Potential deadlock detected" in failed.failure.message
    assert "while Hanging.tries == 1" in failed.failure.stack_trace
    assert world.cache.statistics.size == 0
    world.pass_time(0)
    world.settle()
    assert await handle.result() == 5


# --- queries ---


async def _ask(world: World, handle: Any, *query: Any) -> Any:
    asking = asyncio.create_task(handle.query(*query))
    task = await asyncio.to_thread(wait_until, lambda: _question(world))
    await asyncio.to_thread(world.runner.run, task)
    return await asking


def _question(world: World) -> PollWorkflowTaskQueueResponse | None:
    task = world.workflow_task()
    return task if task.query else None


async def test_a_question_is_answered_by_the_live_instance(world: World) -> None:
    handle = await _start(world)
    world.run_workflow_tasks()
    assert await _ask(world, handle, Order.state, 3) == 3
    assert made == ["order"]
    world.settle()
    assert await handle.result() == 20


async def test_a_question_to_a_closed_run_is_answered_by_replay(world: World) -> None:
    handle = await _start(world)
    world.settle()
    assert await _ask(world, handle, Order.state, 1) == 21
    assert made == ["order", "order"]
    assert (await kinds(handle))[-1] is EventType.WORKFLOW_EXECUTION_COMPLETED


async def test_a_task_that_comes_again_when_its_run_was_asked_after_its_end_is_only_late(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Its instance has read the end of the history, which the task doesn't know."""

    @workflow.defn
    class Brief:
        @workflow.run
        async def run(self, amount: int) -> int:
            return amount

        @workflow.query
        def state(self) -> str:
            return "brief"

    world.runner = world.another_runner([Brief])
    handle = await _start(world, Brief.run)
    task = world.workflow_task()
    world.runner.run(task)
    assert await _ask(world, handle, Brief.state) == "brief"
    world.runner.run(task)
    assert "Failed activation" not in caplog.text
    assert (await kinds(handle))[-1] is EventType.WORKFLOW_EXECUTION_COMPLETED


async def test_an_unknown_question_is_told(world: World) -> None:
    handle = await _start(world)
    world.run_workflow_tasks()
    with pytest.raises(WorkflowQueryFailedError, match="nonsense"):
        await _ask(world, handle, "nonsense")
    world.settle()
    assert await handle.result() == 20


async def test_a_question_to_an_unknown_workflow_is_told(world: World) -> None:
    handle = await _start(world)
    world.settle()
    world.runner = world.another_runner([Broken])
    with pytest.raises(WorkflowQueryFailedError, match="Order is not registered"):
        await _ask(world, handle, Order.state, 1)


# --- codec and interceptors ---


class Reverse(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(
                metadata={"encoding": b"reversed", "was": p.metadata["encoding"]}, data=p.data[::-1]
            )
            for p in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": p.metadata["was"]}, data=p.data[::-1]) for p in payloads
        ]


async def test_a_codec_is_on_all_data_in_the_history() -> None:
    converter = dataclasses.replace(DataConverter.default, payload_codec=Reverse())
    world = World([Order], [charge], data_converter=converter)
    handle = await _start(world, Order.run, 123)
    await asyncio.to_thread(world.settle)
    assert await handle.result() == 492
    text = (await handle.fetch_history()).to_json()
    assert "anNvbi9wbGFpbg==" in text  # the name of the encoding, kept beside
    events = (await handle.fetch_history()).events
    assert events[0].attributes.input.payloads[0].data == b"321"  # type: ignore[attr-defined]
    assert events[-1].attributes.result.payloads[0].data == b"294"  # type: ignore[attr-defined]


class Unreadable(Reverse):
    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        raise ValueError("no key")


async def test_a_codec_that_fails_fails_the_task() -> None:
    converter = dataclasses.replace(DataConverter.default, payload_codec=Unreadable())
    world = World([Order], [charge], data_converter=converter)
    handle = await _start(world)
    task = world.workflow_task()
    await asyncio.to_thread(world.runner.run, task)
    failed = (await event_of(handle, EventType.WORKFLOW_TASK_FAILED)).attributes
    assert isinstance(failed, WorkflowTaskFailed)
    assert failed.failure is not None
    assert failed.failure.message == "no key"
    assert world.cache.statistics.size == 0


async def test_without_a_limit_nothing_is_watched() -> None:
    world = World([Order], [charge], deadlock_timeout=None)
    handle = await _start(world)
    world.settle()
    assert await handle.result() == 20


class Doubling(Interceptor):
    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        input.unsafe_extern_functions["factor"] = lambda: 2
        return _DoublingInbound


class _DoublingInbound(WorkflowInboundInterceptor):
    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        return await super().execute_workflow(input) * workflow.extern_functions()["factor"]()


async def test_interceptors_stand_around_the_run() -> None:
    world = World([Order], [charge], interceptors=[Doubling(), Interceptor()])
    handle = await _start(world)
    world.settle()
    assert await handle.result() == 40
