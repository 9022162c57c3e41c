"""Starting workflows and talking to them, over a service in memory."""

# ruff: noqa: A002 - interceptors have Temporal's parameter names

import asyncio
import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.waiting import wait_until
from tests.unit.client.world import QUEUE, World, payloads
from wfcore import exceptions, workflow
from wfcore.client import (
    Client,
    Interceptor,
    OutboundInterceptor,
    SignalWorkflowInput,
    StartWorkflowInput,
    WorkflowContinuedAsNewError,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowHistory,
    WorkflowHistoryEventFilterType,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    register_host,
)
from wfcore.common import (
    Priority,
    QueryRejectCondition,
    RetryPolicy,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from wfcore.exceptions import (
    ApplicationError,
    CancelledError,
    DeadlineExceededError,
    HostNotRegisteredError,
    NotFoundError,
    RPCError,
    RPCStatusCode,
    TerminatedError,
    TimeoutType,
    WorkflowAlreadyStartedError,
)
from wfcore.protocol import commands
from wfcore.protocol.common import TaskQueue, WorkflowType
from wfcore.protocol.enums import EventType, QueryResultType
from wfcore.protocol.events import WorkflowExecutionSignaled, WorkflowExecutionStarted
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.protocol.payloads import Payload
from wfcore.protocol.rpc.info import WorkflowQueryResult

COLOUR = SearchAttributeKey.for_keyword("CustomKeywordField")


@dataclasses.dataclass
class Receipt:
    total: int


@workflow.defn
class Order:
    @workflow.run
    async def run(self, amount: int) -> Receipt:
        return Receipt(amount)

    @workflow.signal
    def pay(self, amount: int) -> None:
        del amount

    @workflow.query
    def status(self) -> Receipt:
        return Receipt(0)


@pytest.fixture
def world() -> World:
    return World()


async def _start(world: World, **options: Any) -> WorkflowHandle[Order, Receipt]:
    return await world.client.start_workflow(
        Order.run, 5, id=options.pop("id", "order-1"), task_queue=QUEUE, **options
    )


def _complete(**fields: Any) -> commands.CompleteWorkflowExecution:
    return commands.CompleteWorkflowExecution(result=payloads(fields or {"total": 5}))


async def _started(handle: WorkflowHandle[Any, Any]) -> WorkflowExecutionStarted:
    history = await handle.fetch_history()
    attributes = history.events[0].attributes
    assert isinstance(attributes, WorkflowExecutionStarted)
    return attributes


# --- starting ---


async def test_a_start_records_all_that_it_is_given(world: World) -> None:
    handle = await _start(
        world,
        execution_timeout=timedelta(hours=3),
        run_timeout=timedelta(hours=2),
        task_timeout=timedelta(seconds=7),
        retry_policy=RetryPolicy(maximum_attempts=2),
        memo={"owner": "ann"},
        search_attributes=TypedSearchAttributes([SearchAttributePair(COLOUR, "red")]),
        static_summary="an order",
        static_details="of ann",
        priority=Priority(priority_key=2),
    )
    started = await _started(handle)
    assert started.workflow_type == WorkflowType(name="Order")
    assert started.task_queue is not None
    assert started.task_queue.name == QUEUE
    assert started.input == payloads(5)
    assert started.workflow_execution_timeout == timedelta(hours=3)
    assert started.workflow_run_timeout == timedelta(hours=2)
    assert started.workflow_task_timeout == timedelta(seconds=7)
    assert started.retry_policy is not None
    assert started.retry_policy.maximum_attempts == 2
    assert started.identity == "tester"
    assert started.priority is not None
    assert started.priority.priority_key == 2
    description = await handle.describe()
    assert await description.memo() == {"owner": "ann"}
    assert await description.memo_value("owner", type_hint=str) == "ann"
    assert description.typed_search_attributes[COLOUR] == "red"
    assert await description.static_summary() == "an order"
    assert await description.static_details() == "of ann"


async def test_a_handle_knows_the_run_that_it_started(world: World) -> None:
    handle = await _start(world)
    assert handle.id == "order-1"
    assert handle.run_id is None
    assert handle.result_run_id == handle.first_execution_run_id
    assert (await handle.fetch_history()).run_id == handle.result_run_id


async def test_a_workflow_is_started_by_its_name_with_several_arguments(world: World) -> None:
    handle = await world.client.start_workflow(
        "Other", args=[1, "a"], id="other-1", task_queue=QUEUE
    )
    started = await _started(handle)
    assert started.workflow_type == WorkflowType(name="Other")
    assert started.input == payloads(1, "a")


async def test_an_id_in_use_is_told_with_its_run(world: World) -> None:
    first = await _start(world)
    with pytest.raises(WorkflowAlreadyStartedError) as found:
        await _start(world)
    assert found.value.workflow_id == "order-1"
    assert found.value.workflow_type == "Order"
    assert found.value.run_id == first.result_run_id


async def test_policies_decide_what_happens_to_an_id_in_use(world: World) -> None:
    first = await _start(world)
    same = await _start(world, id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING)
    assert same.result_run_id == first.result_run_id
    world.answer(_complete())
    again = await _start(world)
    assert again.result_run_id != first.result_run_id
    world.answer(_complete())
    with pytest.raises(WorkflowAlreadyStartedError):
        await _start(world, id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE)


async def test_a_signal_with_start_comes_before_the_code(world: World) -> None:
    handle = await _start(world, start_signal="pay", start_signal_args=[3])
    history = await handle.fetch_history()
    signalled = history.events[1].attributes
    assert isinstance(signalled, WorkflowExecutionSignaled)
    assert (signalled.signal_name, signalled.input) == ("pay", payloads(3))
    again = await _start(world, start_signal="pay", start_signal_args=[4])
    assert again.result_run_id == handle.result_run_id


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"args": [1]}, ValueError, "Cannot have arg and args"),
        ({"retry_policy": RetryPolicy(backoff_coefficient=0)}, ValueError, "Backoff coefficient"),
        ({"search_attributes": {"A": "x"}}, TypeError, "must be lists"),
        ({"execution_timeout": timedelta(seconds=-1)}, RPCError, "WorkflowExecutionTimeout"),
    ],
)
async def test_a_bad_start_is_refused(
    world: World, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        await _start(world, **options)
    with pytest.raises(NotFoundError):
        await world.client.get_workflow_handle("order-1").describe()


async def test_a_workflow_must_be_decorated(world: World) -> None:
    async def undecorated() -> None:
        pass

    with pytest.raises(ValueError, match=r"@workflow\.run"):
        await world.client.start_workflow(undecorated, id="x", task_queue=QUEUE)


# --- results ---


async def test_a_result_comes_in_the_type_of_the_run_method(world: World) -> None:
    handle = await _start(world)
    world.answer(_complete(total=9))
    assert await handle.result() == Receipt(9)


async def test_a_result_is_waited_for(world: World) -> None:
    waiting = asyncio.create_task(
        world.client.execute_workflow(Order.run, 5, id="order-1", task_queue=QUEUE)
    )
    await asyncio.to_thread(wait_until, lambda: _has_task(world))
    await asyncio.to_thread(world.answer, _complete(total=3))
    assert await waiting == Receipt(3)


def _has_task(world: World) -> bool:
    return bool(world.store.unclaimed_workflow_tasks("default", QUEUE, 1))


async def test_a_result_by_name_has_the_type_that_is_asked_for(world: World) -> None:
    handle = await world.client.start_workflow(
        "Order", 5, id="order-1", task_queue=QUEUE, result_type=Receipt
    )
    world.answer(_complete(total=9))
    assert await handle.result() == Receipt(9)
    untyped = world.client.get_workflow_handle("order-1")
    assert await untyped.result() == {"total": 9}
    typed = world.client.get_workflow_handle_for(Order.run, "order-1")
    assert await typed.result() == Receipt(9)


async def test_no_result_is_none(world: World) -> None:
    handle = await _start(world)
    world.answer(commands.CompleteWorkflowExecution())
    assert await handle.result() is None


async def test_a_failure_is_the_cause_of_the_error(world: World) -> None:
    handle = await _start(world)
    failure = Failure(
        message="no funds", application_failure_info=ApplicationFailureInfo(type="Payment")
    )
    world.answer(commands.FailWorkflowExecution(failure=failure))
    with pytest.raises(WorkflowFailureError, match="Workflow execution failed") as found:
        await handle.result()
    assert isinstance(found.value.cause, ApplicationError)
    assert found.value.cause.type == "Payment"


async def test_a_cancelled_workflow_has_its_details(world: World) -> None:
    handle = await _start(world)
    await handle.cancel(reason="changed my mind")
    task = world.answer(commands.CancelWorkflowExecution(details=payloads("gone")))
    assert task.history is not None
    assert any(
        event.event_type is EventType.WORKFLOW_EXECUTION_CANCEL_REQUESTED
        and getattr(event.attributes, "cause", "") == "changed my mind"
        for event in task.history.events
    )
    with pytest.raises(WorkflowFailureError) as found:
        await handle.result()
    assert isinstance(found.value.cause, CancelledError)
    assert found.value.cause.details == ("gone",)


async def test_a_terminated_workflow_has_its_reason_and_details(world: World) -> None:
    handle = await _start(world)
    await handle.terminate("a", 1, reason="fraud")
    with pytest.raises(WorkflowFailureError) as found:
        await handle.result()
    assert isinstance(found.value.cause, TerminatedError)
    assert (found.value.cause.message, found.value.cause.details) == ("fraud", ("a", 1))


async def test_a_timed_out_workflow_tells_it(world: World) -> None:
    handle = await _start(world, run_timeout=timedelta(seconds=30))
    world.clock.advance(timedelta(seconds=31))
    world.service.sweep()
    with pytest.raises(WorkflowFailureError) as found:
        await handle.result()
    assert isinstance(found.value.cause, exceptions.TimeoutError)
    assert found.value.cause.type is TimeoutType.START_TO_CLOSE


def _continue_as_new() -> commands.ContinueAsNewWorkflowExecution:
    return commands.ContinueAsNewWorkflowExecution(
        workflow_type=WorkflowType(name="Order"),
        task_queue=TaskQueue(name=QUEUE),
        input=payloads(6),
    )


async def test_a_result_follows_the_runs(world: World) -> None:
    handle = await _start(world)
    world.answer(_continue_as_new())
    world.clock.advance(timedelta(seconds=1))  # runs of a chain are at least so far apart
    world.service.sweep()
    world.answer(_complete(total=8))
    assert await handle.result() == Receipt(8)
    with pytest.raises(WorkflowContinuedAsNewError) as found:
        await handle.result(follow_runs=False)
    current = await world.client.get_workflow_handle("order-1").describe()
    assert found.value.new_execution_run_id == current.run_id


async def test_the_result_of_one_run_can_be_asked_for(world: World) -> None:
    handle = await _start(world)
    world.answer(_complete(total=1))
    await _start(world)
    world.answer(_complete(total=2))
    old = world.client.get_workflow_handle(
        "order-1", run_id=handle.result_run_id, result_type=Receipt
    )
    assert await old.result() == Receipt(1)
    assert (await old.describe()).run_id == handle.result_run_id


async def test_a_result_can_be_given_up(world: World) -> None:
    handle = await _start(world)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(handle.result(), 0.05)
    with pytest.raises(DeadlineExceededError, match="Timeout expired"):
        await handle.result(rpc_timeout=timedelta(milliseconds=50))


async def test_a_missing_workflow_has_no_result(world: World) -> None:
    with pytest.raises(RPCError) as found:
        await world.client.get_workflow_handle("nobody").result()
    assert found.value.status is RPCStatusCode.NOT_FOUND


# --- signals and queries ---


async def test_signals_are_named_or_given_by_their_method(world: World) -> None:
    handle = await _start(world)
    await handle.signal(Order.pay, 1)
    await handle.signal("pay", 2)
    await handle.signal("other", args=["a", "b"])
    history = await handle.fetch_history()
    seen = [
        (event.attributes.signal_name, event.attributes.input, event.attributes.identity)
        for event in history.events
        if isinstance(event.attributes, WorkflowExecutionSignaled)
    ]
    assert seen == [
        ("pay", payloads(1), "tester"),
        ("pay", payloads(2), "tester"),
        ("other", payloads("a", "b"), "tester"),
    ]


async def test_a_closed_workflow_takes_no_signal(world: World) -> None:
    handle = await _start(world)
    world.answer(_complete())
    with pytest.raises(NotFoundError, match="already completed"):
        await handle.signal(Order.pay, 1)


async def test_a_method_that_is_no_signal_is_refused(world: World) -> None:
    handle = await _start(world)
    with pytest.raises(RuntimeError, match=r"@workflow\.signal"):
        await handle.signal(Order.status)


def _answered(value: Any) -> WorkflowQueryResult:
    return WorkflowQueryResult(result_type=QueryResultType.ANSWERED, answer=payloads(value))


async def test_a_query_answers_in_the_type_of_its_method(world: World) -> None:
    handle = await _start(world)
    world.answer()
    world.answer_queries(lambda name, args: _answered({"total": len(name) + len(args)}))
    assert await handle.query(Order.status) == Receipt(6)
    world.answer_queries(lambda name, args: _answered([name, *args]))
    assert await handle.query("status", args=[1, 2]) == ["status", 1, 2]
    world.answer_queries(lambda name, args: _answered({"total": 1}))
    assert await handle.query("status", result_type=Receipt) == Receipt(1)


async def test_a_query_that_fails_says_why(world: World) -> None:
    handle = await _start(world)
    world.answer()
    world.answer_queries(
        lambda name, args: WorkflowQueryResult(
            result_type=QueryResultType.FAILED, error_message="unknown query"
        )
    )
    with pytest.raises(WorkflowQueryFailedError, match="unknown query"):
        await handle.query("nonsense")


async def test_a_query_may_be_rejected_by_status(world: World) -> None:
    handle = await _start(world)
    world.answer(_complete())
    with pytest.raises(WorkflowQueryRejectedError) as found:
        await handle.query(Order.status, reject_condition=QueryRejectCondition.NOT_OPEN)
    assert found.value.status is WorkflowExecutionStatus.COMPLETED


async def test_the_client_may_have_a_reject_condition_of_its_own() -> None:
    world = World(default_workflow_query_reject_condition=QueryRejectCondition.NOT_OPEN)
    handle = await _start(world)
    world.answer(_complete())
    with pytest.raises(WorkflowQueryRejectedError):
        await handle.query(Order.status)


# --- reading ---


async def test_a_description_tells_what_is_known(world: World) -> None:
    handle = await _start(world)
    description = await handle.describe()
    assert description.id == "order-1"
    assert description.run_id == handle.result_run_id
    assert description.namespace == "default"
    assert description.workflow_type == "Order"
    assert description.task_queue == QUEUE
    assert description.status is WorkflowExecutionStatus.RUNNING
    assert description.close_time is None
    assert abs(description.start_time - datetime.now(UTC)) < timedelta(minutes=1)
    assert description.parent_id is None
    assert await description.memo() == {}
    assert await description.static_summary() is None
    with pytest.raises(KeyError):
        await description.memo_value("owner")
    assert await description.memo_value("owner", "nobody") == "nobody"
    assert description.raw_description.pending_workflow_task is not None
    world.answer(_complete())
    closed = await handle.describe()
    assert closed.status is WorkflowExecutionStatus.COMPLETED
    assert closed.close_time is not None


async def test_lists_go_through_all_pages(world: World) -> None:
    for number in range(7):
        await _start(world, id=f"order-{number}")
    found = [run.id async for run in world.client.list_workflows(page_size=3)]
    assert found == [f"order-{number}" for number in reversed(range(7))]
    limited = [run.id async for run in world.client.list_workflows(page_size=3, limit=4)]
    assert len(limited) == 4
    one = [run async for run in world.client.list_workflows("WorkflowId = 'order-3'")]
    assert [run.id for run in one] == ["order-3"]
    assert one[0].status is WorkflowExecutionStatus.RUNNING


async def test_pages_can_be_fetched_by_hand(world: World) -> None:
    for number in range(3):
        await _start(world, id=f"order-{number}")
    runs = world.client.list_workflows(page_size=2)
    assert runs.current_page is None
    await runs.fetch_next_page()
    assert runs.current_page is not None
    assert [run.id for run in runs.current_page] == ["order-2", "order-1"]
    assert runs.current_page_index == 0
    rest = world.client.list_workflows(page_size=2, next_page_token=runs.next_page_token)
    assert [run.id async for run in rest] == ["order-0"]
    assert rest.next_page_token is None


async def test_histories_of_a_list_are_fetched_in_turn(world: World) -> None:
    for number in range(2):
        await _start(world, id=f"order-{number}")
    histories = [h async for h in world.client.list_workflows().map_histories()]
    assert [(h.workflow_id, len(h.events)) for h in histories] == [("order-1", 2), ("order-0", 2)]


async def test_runs_are_counted(world: World) -> None:
    await _start(world, id="order-1")
    world.answer(_complete())
    await _start(world, id="order-2")
    assert (await world.client.count_workflows()).count == 2
    grouped = await world.client.count_workflows("GROUP BY ExecutionStatus")
    assert [(group.group_values, group.count) for group in grouped.groups] == [
        (["Running"], 1),
        (["Completed"], 1),
    ]


async def test_pages_of_events_can_be_fetched_by_hand(world: World) -> None:
    handle = await _start(world)
    await handle.signal(Order.pay, 1)
    events = handle.fetch_history_events(page_size=1)
    await events.fetch_next_page()
    assert events.current_page is not None
    # Events that were written together are not parted.
    assert [event.event_id for event in events.current_page] == [1, 2]
    assert events.current_page_index == 0
    rest = handle.fetch_history_events(next_page_token=events.next_page_token)
    assert [event.event_id async for event in rest] == [3]


async def test_events_can_be_followed_to_the_end(world: World) -> None:
    handle = await _start(world)
    seen: list[EventType] = []

    async def follow() -> None:
        async for event in handle.fetch_history_events(wait_new_event=True):
            seen.append(event.event_type)
            if len(seen) == 2:
                caught_up.set()

    caught_up = asyncio.Event()
    following = asyncio.create_task(follow())
    await caught_up.wait()
    await asyncio.to_thread(world.answer, _complete())
    await following
    assert seen[0] is EventType.WORKFLOW_EXECUTION_STARTED
    assert seen[-1] is EventType.WORKFLOW_EXECUTION_COMPLETED
    assert len(seen) == 5


async def test_only_the_closing_event_can_be_asked_for(world: World) -> None:
    handle = await _start(world)
    world.answer(_complete())
    history = await handle.fetch_history(
        event_filter_type=WorkflowHistoryEventFilterType.CLOSE_EVENT
    )
    assert [event.event_type for event in history.events] == [
        EventType.WORKFLOW_EXECUTION_COMPLETED
    ]


async def test_a_history_survives_a_file(world: World) -> None:
    handle = await _start(world)
    world.answer(_complete())
    history = await handle.fetch_history()
    read = WorkflowHistory.from_json("order-1", history.to_json())
    assert read == history
    assert WorkflowHistory.from_json("order-1", history.to_json_dict()) == history
    assert read.run_id == handle.result_run_id


def test_what_is_no_history_is_refused() -> None:
    with pytest.raises(ValueError, match="events"):
        WorkflowHistory.from_json("x", "{}")
    with pytest.raises(RuntimeError, match="No events"):
        _ = WorkflowHistory("x", []).run_id


# --- interceptors and hosts ---


class Watching(Interceptor):
    """Adds a header to starts and notes signals."""

    def __init__(self) -> None:
        self.signals: list[str] = []

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _WatchingOutbound(next, self)


class _WatchingOutbound(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, watching: Watching) -> None:
        super().__init__(next)
        self.watching = watching

    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        input.headers = {"tenant": payloads("acme").payloads[0]}
        return await super().start_workflow(input)

    async def signal_workflow(self, input: SignalWorkflowInput) -> None:
        self.watching.signals.append(input.signal)
        await super().signal_workflow(input)


async def test_interceptors_stand_around_the_calls() -> None:
    watching = Watching()
    world = World(interceptors=[watching])
    handle = await _start(world)
    await handle.signal(Order.pay, 1)
    started = await _started(handle)
    assert started.header is not None
    expected = Payload(metadata={"encoding": b"json/plain"}, data=b'"acme"')
    assert started.header.fields == {"tenant": expected}
    assert watching.signals == ["pay"]


async def test_an_interceptor_that_overrides_nothing_changes_nothing() -> None:
    class Passing(Interceptor):
        def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
            return OutboundInterceptor(next)

    world = World(interceptors=[Passing(), Interceptor()])
    handle = await _start(world)
    world.answer()
    await handle.signal(Order.pay, 1)
    world.answer()
    world.answer_queries(lambda name, args: _answered({"total": 1}))
    assert await handle.query(Order.status) == Receipt(1)
    assert (await handle.describe()).id == "order-1"
    assert [run.id async for run in world.client.list_workflows()] == ["order-1"]
    assert (await world.client.count_workflows()).count == 1
    await handle.cancel()
    await handle.terminate()
    with pytest.raises(WorkflowFailureError):
        await handle.result()


async def test_plugins_are_refused(world: World) -> None:
    with pytest.raises(ValueError, match="plugins are not supported"):
        Client(world.service, plugins=[object()])


async def test_the_settings_make_another_client(world: World) -> None:
    other = Client(**{**world.client.config(), "identity": "other"})
    assert other.service is world.service
    assert other.identity == "other"
    assert other.namespace == world.client.namespace


@pytest.fixture
def _no_host() -> Iterator[None]:
    before = register_host(None)
    yield
    register_host(before)


@pytest.mark.usefixtures("_no_host")
async def test_a_client_connects_to_the_host_of_the_process(world: World) -> None:
    with pytest.raises(HostNotRegisteredError, match="INSTALLED_APPS"):
        await Client.connect("default")
    asked: list[str] = []

    def connect(target: str) -> Any:
        asked.append(target)
        return world.service

    register_host(connect)
    client = await Client.connect("other", namespace="n", tls=True, api_key="x")
    assert client.service is world.service
    assert (asked, client.namespace) == (["other"], "n")
    assert "@" in client.identity
    with pytest.raises(TypeError, match="unknown settings: nonsense"):
        await Client.connect("other", nonsense=1)
