"""A worker in this process, from its first task to its last."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from tests.support.waiting import wait_until
from wfcore import activity, workflow
from wfcore.client import Client, Interceptor, WorkflowFailureError
from wfcore.exceptions import ActivityError, ApplicationError, CancelledError, UnavailableError
from wfcore.service.workflow_service import WorkflowService
from wfcore.testing.clocks import SequentialIds, SimulatedClock
from wfcore.testing.memory_dispatcher import MemoryDispatcher
from wfcore.testing.memory_ports import MemoryStore
from wfcore.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    UnsandboxedWorkflowRunner,
    Worker,
)
from wfcore.worker import Interceptor as WorkerInterceptor

QUEUE = "shop"
SECONDS = timedelta(seconds=10)


class State:
    """What the code of these tests does and waits for."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.names: set[str] = set()
        self.release = threading.Event()
        self.lock = threading.Lock()


state = State()


@activity.defn
def work(number: int) -> int:
    with state.lock:
        state.running += 1
        state.most = max(state.most, state.running)
        state.names.add(threading.current_thread().name)
    state.release.wait(10)
    with state.lock:
        state.running -= 1
    return number


@activity.defn
async def double(number: int) -> int:
    await asyncio.sleep(0)
    return number * 2


@activity.defn
def stubborn() -> str:
    with state.lock:
        state.running += 1
    activity.wait_for_cancelled_sync(10)
    return "not reached"


@activity.defn
async def start_another(workflow_id: str) -> str:
    client = activity.client()
    handle = await client.start_workflow(Simple.run, 1, id=workflow_id, task_queue=QUEUE)
    return str(handle.id)


@workflow.defn
class Simple:
    @workflow.run
    async def run(self, number: int) -> int:
        return await workflow.execute_activity(double, number, start_to_close_timeout=SECONDS)


@workflow.defn
class Fan:
    @workflow.run
    async def run(self, width: int) -> list[int]:
        return list(
            await asyncio.gather(
                *(
                    workflow.execute_activity(work, n, start_to_close_timeout=SECONDS)
                    for n in range(width)
                )
            )
        )


@workflow.defn
class Calls:
    @workflow.run
    async def run(self, name: str, arg: str) -> str:
        args = [arg] if arg else []
        result: str = await workflow.execute_activity(
            name, args=args, start_to_close_timeout=SECONDS
        )
        return result


@workflow.defn
class Tidies:
    @workflow.run
    async def run(self) -> None:
        state.names.add("waits")
        try:
            await workflow.wait_condition(lambda: False)
        finally:
            state.names.add("ended")


@pytest.fixture(autouse=True)
def _fresh_state() -> None:
    state.__init__()  # type: ignore[misc]


@pytest.fixture
def client() -> Client:
    return Client(_service())


def _service() -> WorkflowService:
    clock = SimulatedClock(real_time=True)
    return WorkflowService(MemoryStore(clock), MemoryDispatcher(clock), SequentialIds())


def _worker(client: Client, **options: Any) -> Worker:
    options.setdefault("workflows", [Simple, Fan, Calls, Tidies])
    options.setdefault("activities", [work, double, stubborn, start_another])
    return Worker(client, task_queue=QUEUE, **options)


async def _until(condition: Callable[[], Any]) -> None:
    await asyncio.to_thread(wait_until, condition)


# --- running ---


async def test_a_worker_runs_workflows_and_activities(client: Client) -> None:
    async with _worker(client) as worker:
        assert worker.is_running
        assert not worker.is_shutdown
        assert await client.execute_workflow(Simple.run, 4, id="a", task_queue=QUEUE) == 8
    assert not worker.is_running
    assert worker.is_shutdown
    assert (worker.task_queue, worker.client) == (QUEUE, client)


async def test_what_waited_before_the_worker_came_is_run(client: Client) -> None:
    handle = await client.start_workflow(Simple.run, 4, id="a", task_queue=QUEUE)
    async with _worker(client):
        assert await handle.result() == 8


@pytest.mark.parametrize("eager", [True, False])
async def test_activities_run_at_once_up_to_a_limit(client: Client, eager: bool) -> None:
    async with _worker(
        client, max_concurrent_activities=3, disable_eager_activity_execution=not eager
    ):
        handle = await client.start_workflow(Fan.run, 5, id="a", task_queue=QUEUE)
        await _until(lambda: state.running == 3)
        state.release.set()
        assert await handle.result() == [0, 1, 2, 3, 4]
    assert state.most == 3


async def test_sync_activities_run_in_the_executor_that_is_given(client: Client) -> None:
    state.release.set()
    with ThreadPoolExecutor(1, thread_name_prefix="mine") as executor:
        async with _worker(client, activity_executor=executor):
            assert await client.execute_workflow(Fan.run, 3, id="a", task_queue=QUEUE) == [0, 1, 2]
    assert state.names == {"mine_0"}


async def test_an_async_activity_has_the_client(client: Client) -> None:
    async with _worker(client):
        called = await client.execute_workflow(
            Calls.run, args=["start_another", "other"], id="a", task_queue=QUEUE
        )
        assert called == "other"
        assert await client.get_workflow_handle("other").result() == 2


async def test_many_workflows_run_side_by_side(client: Client) -> None:
    async with _worker(client):
        results = await asyncio.gather(
            *(
                client.execute_workflow(Simple.run, n, id=f"w{n}", task_queue=QUEUE)
                for n in range(30)
            )
        )
    assert results == [n * 2 for n in range(30)]


async def test_a_workflow_worker_may_leave_activities_to_others(client: Client) -> None:
    async with _worker(client, no_remote_activities=True):
        handle = await client.start_workflow(Simple.run, 4, id="a", task_queue=QUEUE)
        async with Worker(client, task_queue=QUEUE, activities=[double]):
            assert await handle.result() == 8


async def test_the_rate_of_activities_can_be_limited(client: Client) -> None:
    state.release.set()
    loop = asyncio.get_running_loop()
    async with _worker(client, max_activities_per_second=50, disable_eager_activity_execution=True):
        begin = loop.time()
        await client.execute_workflow(Fan.run, 6, id="a", task_queue=QUEUE)
        assert loop.time() - begin >= 5 / 50


# --- ending ---


async def test_shutdown_waits_for_what_runs(client: Client) -> None:
    worker = _worker(client, graceful_shutdown_timeout=SECONDS)
    running = asyncio.create_task(worker.run())
    handle = await client.start_workflow(Fan.run, 2, id="a", task_queue=QUEUE)
    await _until(lambda: state.running == 2)
    ending = asyncio.create_task(worker.shutdown())
    await asyncio.sleep(0)
    assert not ending.done()
    state.release.set()
    await ending
    await running
    assert worker.is_shutdown
    history = await handle.fetch_history()
    assert [event.event_type.name for event in history.events].count("ACTIVITY_TASK_COMPLETED") >= 1
    async with _worker(client):
        assert await handle.result() == [0, 1]


async def test_code_that_waits_ends_with_the_worker(client: Client) -> None:
    """And not when the garbage collector comes upon it, in whatever code runs then."""
    async with _worker(client):
        await client.start_workflow(Tidies.run, id="a", task_queue=QUEUE)
        await _until(lambda: "waits" in state.names)
    assert "ended" in state.names


async def test_after_the_grace_activities_are_cancelled_and_can_be_retried(
    client: Client,
) -> None:
    worker = _worker(client)
    running = asyncio.create_task(worker.run())
    handle = await client.start_workflow(Calls.run, args=["stubborn", ""], id="a", task_queue=QUEUE)
    await _until(lambda: state.running == 1)
    await worker.shutdown()
    await running
    description = await handle.describe()
    (pending,) = description.raw_description.pending_activities
    assert pending.last_failure is not None
    assert pending.last_failure.application_failure_info is not None
    assert pending.last_failure.application_failure_info.type == "WorkerShutdown"


async def test_a_cancelled_run_ends_the_worker_first(client: Client) -> None:
    worker = _worker(client)
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert worker.is_shutdown


async def test_a_worker_runs_once(client: Client) -> None:
    async with _worker(client) as worker:
        with pytest.raises(RuntimeError, match="Already started"):
            await worker.run()
    with pytest.raises(RuntimeError, match="Already started"):
        await worker.run()


class _FailingService:
    """A service whose polls fail."""

    def __init__(self, errors: list[Exception]) -> None:
        self._service = _service()
        self._errors = errors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)

    def poll_workflow_task_queue(self, request: Any) -> Any:
        if self._errors:
            raise self._errors.pop(0)
        return self._service.poll_workflow_task_queue(request)


async def test_an_outage_is_waited_out(caplog: pytest.LogCaptureFixture) -> None:
    service: Any = _FailingService([UnavailableError("down")])
    client = Client(service)
    async with _worker(client):
        assert await client.execute_workflow(Simple.run, 4, id="a", task_queue=QUEUE) == 8
    assert "polling failed, trying again: down" in caplog.text


async def test_an_error_that_stays_ends_the_worker() -> None:
    service: Any = _FailingService([ValueError("broken")])
    told: list[BaseException] = []

    async def on_fatal_error(error: BaseException) -> None:
        told.append(error)

    worker = _worker(Client(service), on_fatal_error=on_fatal_error)
    with pytest.raises(ValueError, match="broken"):
        await worker.run()
    assert [str(error) for error in told] == ["broken"]
    assert worker.is_shutdown


async def test_an_error_that_stays_ends_the_block_too() -> None:
    service: Any = _FailingService([ValueError("broken")])

    async def wait_for_ever() -> None:
        async with _worker(Client(service)):
            await asyncio.Event().wait()

    with pytest.raises(ValueError, match="broken"):
        await wait_for_ever()


# --- options ---


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"workflows": [], "activities": []}, ValueError, "At least one activity or workflow"),
        ({"activities": [work, work]}, ValueError, "More than one activity named work"),
        ({"nonsense": 1, "other": 2}, TypeError, "unknown settings: nonsense, other"),
        ({"nexus_service_handlers": [object()]}, ValueError, "Nexus is not supported"),
        ({"plugins": [object()]}, ValueError, "plugins are not supported"),
    ],
)
def test_a_bad_option_is_refused(
    client: Client, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        _worker(client, **options)


def test_a_process_pool_is_refused_with_what_to_do(client: Client) -> None:
    with ProcessPoolExecutor(1) as executor, pytest.raises(ValueError, match="prefork"):
        _worker(client, activity_executor=executor)


def test_options_of_temporals_core_have_no_effect(client: Client) -> None:
    worker = _worker(client, max_cached_workflows=5, tuner=None, nonsticky_to_sticky_poll_ratio=0.1)
    config = worker.config()
    assert config["max_cached_workflows"] == 5
    again = Worker(**{**config, "workflow_runner": UnsandboxedWorkflowRunner()})
    assert again.task_queue == QUEUE


class Both(Interceptor, WorkerInterceptor):
    """One object that hooks into a client and into its workers."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        return _Marking(next, self.mark)


class _Marking(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, mark: str) -> None:  # noqa: A002
        super().__init__(next)
        self.mark = mark

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002
        state.names.add(f"{self.mark}{len(state.names)}")
        return await super().execute_activity(input)


async def test_the_clients_interceptors_come_first() -> None:
    client = Client(_service(), interceptors=[Both("client")])
    async with _worker(client, interceptors=[Both("worker")]):
        await client.execute_workflow(Simple.run, 4, id="a", task_queue=QUEUE)
    assert state.names == {"client0", "worker1"}


# --- failures as workflows see them ---


@activity.defn
def fails() -> None:
    raise ApplicationError("no funds", type="Payment", non_retryable=True)


@workflow.defn
class Sees:
    @workflow.run
    async def run(self) -> str:
        try:
            await workflow.execute_activity(fails, start_to_close_timeout=SECONDS)
        except ActivityError as err:
            return f"{err.activity_type}: {getattr(err.cause, 'type', None)}"
        return "not reached"


async def test_a_workflow_sees_its_activitys_failure(client: Client) -> None:
    async with Worker(client, task_queue=QUEUE, workflows=[Sees], activities=[fails]):
        assert await client.execute_workflow(Sees.run, id="a", task_queue=QUEUE) == "fails: Payment"


@activity.defn
async def beats() -> None:
    while True:
        activity.heartbeat()
        state.running = 1
        await asyncio.sleep(0.005)


@workflow.defn
class Waits:
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(
            beats,
            start_to_close_timeout=SECONDS,
            heartbeat_timeout=timedelta(milliseconds=200),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )


async def test_cancelling_a_workflow_reaches_its_activity(client: Client) -> None:
    async with Worker(client, task_queue=QUEUE, workflows=[Waits], activities=[beats]):
        handle = await client.start_workflow(Waits.run, id="a", task_queue=QUEUE)
        await _until(lambda: state.running == 1)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as found:
            await handle.result()
    assert isinstance(found.value.cause, CancelledError)
    kinds = [event.event_type.name for event in (await handle.fetch_history()).events]
    assert "ACTIVITY_TASK_CANCELED" in kinds
    assert kinds[-1] == "WORKFLOW_EXECUTION_CANCELED"
