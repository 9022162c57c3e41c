"""Local activities: run beside their workflow task, which is kept alive, repeated if it is lost."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from tests.support.waiting import wait_until
from tests.unit.worker.activity_service import ManualAlarms
from tests.unit.worker.world import QUEUE, World, event_of, kinds
from wfcore import activity, workflow
from wfcore.client import WorkflowFailureError
from wfcore.common import RetryPolicy
from wfcore.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    FailureError,
)
from wfcore.protocol.enums import EventType
from wfcore.protocol.events import MarkerRecorded, WorkflowTaskCompleted, WorkflowTaskFailed
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse
from wfcore.worker import InstanceCache, LocalActivityRunner, Worker
from wfcore.workflow import ActivityCancellationType

SECONDS = timedelta(seconds=10)


class Shop:
    """What the activities of one test do and wait for."""

    def __init__(self) -> None:
        self.attempts: list[int] = []
        self.threads: set[str] = set()
        self.infos: list[activity.Info] = []
        self.details: list[activity.ActivityCancellationDetails | None] = []
        self.ended = 0
        self.works_from = 1
        self.release = threading.Event()

    @property
    def begun(self) -> int:
        return len(self.attempts)


shop = Shop()


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    globals()["shop"] = Shop()
    yield
    shop.release.set()


def _note() -> int:
    attempt = activity.info().attempt
    shop.attempts.append(attempt)
    shop.threads.add(threading.current_thread().name)
    shop.infos.append(activity.info())
    return attempt


@activity.defn
def charge(amount: int) -> int:
    attempt = _note()
    if attempt < shop.works_from:
        raise ApplicationError(f"attempt {attempt}", type="NotYet")
    return amount * 2


@activity.defn
def hold(amount: int) -> int:
    """Ends when the test says so, or when it is cancelled."""
    _note()
    try:
        while not shop.release.wait(0.005):
            pass
    except CancelledError:
        shop.details.append(activity.cancellation_details())
        raise
    finally:
        shop.ended += 1
    return amount


@activity.defn
async def hold_async(amount: int) -> int:
    _note()
    try:
        while not shop.release.is_set():  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0.005)
    except asyncio.CancelledError:
        shop.details.append(activity.cancellation_details())
        raise
    return amount


@activity.defn
def later(_: int) -> None:
    _note()
    activity.raise_complete_async()


ACTIVITIES = [charge, hold, hold_async, later]


@workflow.defn
class Local:
    """One local activity by name, with options."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    @workflow.run
    async def run(self, name: str, options: dict[str, Any]) -> Any:
        timers = {
            key: timedelta(seconds=value)
            for key, value in options.items()
            if key.endswith(("timeout", "threshold"))
        }
        policy = None
        if "attempts" in options or "interval" in options:
            policy = RetryPolicy(
                initial_interval=timedelta(seconds=options.get("interval", 0.001)),
                backoff_coefficient=1.0,
                maximum_attempts=options.get("attempts", 0),
            )
        if not timers.keys() & {"start_to_close_timeout", "schedule_to_close_timeout"}:
            timers["start_to_close_timeout"] = SECONDS * 100
        before = workflow.now()
        try:
            found = await workflow.execute_local_activity(
                name, 5, retry_policy=policy, result_type=int, **timers
            )
        except FailureError as error:
            found = f"{type(error).__name__}: {error}"
        took = (workflow.now() - before).total_seconds()
        return [found, round(took, 1), *self.notes]

    @workflow.signal
    def note(self, text: str) -> None:
        self.notes.append(text)

    @workflow.query
    def noted(self) -> list[str]:
        return self.notes


class Place:
    """A world whose alarms stand until they are moved, and a workflow task in a thread."""

    def __init__(self, *workflows: type, **runner: Any) -> None:
        self.alarms = ManualAlarms()
        self.world = World(workflows or [Local], ACTIVITIES)
        self.local = self.runner_of(**runner)
        self.world.runner = self.world.another_runner(local_activities=self.local)
        self.thread: threading.Thread | None = None

    def runner_of(self, **options: Any) -> LocalActivityRunner:
        return LocalActivityRunner(
            self.world.registry, self.world.data_converter, alarms=self.alarms, **options
        )

    async def start(self, *args: Any, run: Any = Local.run, **options: Any) -> Any:
        return await self.world.client.start_workflow(
            run, args=args, id="order-1", task_queue=QUEUE, **options
        )

    def run_task(self, task: PollWorkflowTaskQueueResponse | None = None) -> None:
        """Begin the task that waits, in a thread of its own."""
        found = task or self.world.workflow_task()
        assert found.task_token
        self.thread = threading.Thread(target=self.world.runner.run, args=[found], daemon=True)
        self.thread.start()

    def join(self) -> None:
        assert self.thread is not None
        self.thread.join(10)
        assert not self.thread.is_alive()

    def pass_time(self, seconds: float) -> None:
        """For the engine and for the worker alike."""
        self.world.clock.advance(timedelta(seconds=seconds))
        self.alarms.advance(seconds)

    def beat(self, seconds: float = 8) -> None:
        """Pass the time after which the task is answered early, and wait for the one after it."""
        self.pass_time(seconds)
        _until(lambda: self._waits(seconds) or not (self.thread and self.thread.is_alive()))

    def _waits(self, seconds: float) -> bool:
        at = self.alarms.time + seconds
        return any(alarm.at == at and not alarm.cancelled for alarm in list(self.alarms.alarms))


def _until(condition: Callable[[], Any]) -> None:
    wait_until(condition, seconds=10)


async def _markers(handle: Any) -> list[MarkerRecorded]:
    return [
        event.attributes
        for event in (await handle.fetch_history()).events
        if isinstance(event.attributes, MarkerRecorded)
    ]


def _data(marker: MarkerRecorded) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(marker.details["data"].payloads[0].data)
    return found


# --- success ---


async def test_it_leaves_one_marker_and_no_other_event() -> None:
    world = World([Local], ACTIVITIES)
    handle = await world.client.start_workflow(
        Local.run, args=["charge", {}], id="order-1", task_queue=QUEUE
    )
    world.settle()
    assert (await handle.result())[0] == 10
    assert await kinds(handle) == [
        EventType.WORKFLOW_EXECUTION_STARTED,
        EventType.WORKFLOW_TASK_SCHEDULED,
        EventType.WORKFLOW_TASK_STARTED,
        EventType.WORKFLOW_TASK_COMPLETED,
        EventType.MARKER_RECORDED,
        EventType.WORKFLOW_EXECUTION_COMPLETED,
    ]
    (marker,) = await _markers(handle)
    assert marker.marker_name == "core_local_activity"
    data = _data(marker)
    assert (data["seq"], data["attempt"], data["activity_type"]) == (1, 1, "charge")
    assert marker.details["result"].payloads[0].data == b"10"
    assert threading.current_thread().name not in shop.threads


async def test_it_knows_what_it_is() -> None:
    place = Place()
    handle = await place.start("charge", {"schedule_to_close_timeout": 9, "attempts": 3})
    place.world.settle()
    (info,) = shop.infos
    assert info.is_local
    assert (info.activity_id, info.activity_type, info.task_queue) == ("1", "charge", QUEUE)
    assert (info.workflow_id, info.workflow_type) == ("order-1", "Local")
    assert info.workflow_run_id == handle.result_run_id
    assert info.schedule_to_close_timeout == timedelta(seconds=9)
    assert info.start_to_close_timeout is None
    assert info.heartbeat_timeout is None
    assert info.retry_policy is not None
    assert info.retry_policy.maximum_attempts == 3


async def test_an_uncached_run_has_them_too() -> None:
    world = World([Local], ACTIVITIES)
    world.runner = world.another_runner(cache=InstanceCache(0))
    handle = await world.client.start_workflow(
        Local.run, args=["charge", {}], id="order-1", task_queue=QUEUE
    )
    world.settle()
    assert (await handle.result())[0] == 10


async def test_the_workflows_time_goes_on_by_what_has_passed() -> None:
    place = Place()
    handle = await place.start("hold", {})
    place.run_task()
    _until(lambda: shop.begun)
    place.alarms.advance(3)
    shop.release.set()
    place.join()
    assert await handle.result() == [5, 3.0]


async def test_each_attempt_runs_in_what_the_host_enters_for_it() -> None:
    entered: list[str] = []

    @contextmanager
    def in_thread() -> Iterator[None]:
        entered.append(threading.current_thread().name)
        yield
        entered.append("left")

    place = Place(in_thread=in_thread)
    await place.start("charge", {})
    place.world.settle()
    assert entered == [*shop.threads, "left"]


@workflow.defn
class Many:
    @workflow.run
    async def run(self, name: str, count: int) -> list[int]:
        return list(
            await asyncio.gather(
                *(
                    workflow.execute_local_activity(
                        name, n, start_to_close_timeout=SECONDS, result_type=int
                    )
                    for n in range(count)
                )
            )
        )


async def test_no_more_run_at_once_than_there_is_room_for() -> None:
    place = Place(Many, max_concurrent=2)
    handle = await place.start("hold", 5, run=Many.run)
    place.run_task()
    _until(lambda: shop.begun == 2)
    assert shop.ended == 0
    shop.release.set()
    place.join()
    assert await handle.result() == [0, 1, 2, 3, 4]
    assert len(await _markers(handle)) == 5


# --- failing and trying again ---


async def test_a_failure_is_tried_again_in_the_worker() -> None:
    world = World([Local], ACTIVITIES)
    shop.works_from = 3
    handle = await world.client.start_workflow(
        Local.run, args=["charge", {"attempts": 5}], id="order-1", task_queue=QUEUE
    )
    world.settle()
    assert (await handle.result())[0] == 10
    assert shop.attempts == [1, 2, 3]
    (marker,) = await _markers(handle)
    assert _data(marker)["attempt"] == 3
    completed = (await event_of(handle, EventType.WORKFLOW_TASK_COMPLETED)).attributes
    assert isinstance(completed, WorkflowTaskCompleted)
    assert completed.metering_metadata is not None
    assert completed.metering_metadata.nonfirst_local_activity_execution_attempts == 2


async def test_the_last_failure_is_what_the_code_gets() -> None:
    place = Place()
    shop.works_from = 9
    handle = await place.start("charge", {"attempts": 1})
    place.world.settle()
    assert (await handle.result())[0] == "ApplicationError: NotYet: attempt 1"
    (marker,) = await _markers(handle)
    assert marker.failure is not None
    assert marker.failure.message == "attempt 1"


async def test_without_a_policy_attempts_are_not_counted() -> None:
    place = Place()
    shop.works_from = 4
    handle = await place.start("charge", {})
    place.run_task()
    for waited in (1, 2, 4):
        begun = shop.begun
        _until(lambda: place.alarms.alarms and shop.begun == begun)  # noqa: B023 - called at once
        _until(lambda: any(a.at == place.alarms.time + waited for a in place.alarms.alarms))  # noqa: B023
        place.alarms.advance(waited)
        _until(lambda: shop.begun == begun + 1)  # noqa: B023
    place.join()
    assert (await handle.result())[0] == 10


async def test_a_wait_above_the_threshold_becomes_a_timer() -> None:
    place = Place()
    shop.works_from = 2
    handle = await place.start("charge", {"interval": 90, "local_retry_threshold": 60})
    place.world.settle()
    assert (await kinds(handle))[-2:] == [EventType.MARKER_RECORDED, EventType.TIMER_STARTED]
    place.world.pass_time(91)
    place.world.settle()
    assert (await handle.result())[0] == 10
    assert shop.attempts == [1, 2]
    first, second = map(_data, await _markers(handle))
    assert first["backoff"] == {"seconds": 90, "nanos": 0}
    assert second["original_schedule_time"] == first["original_schedule_time"]


async def test_an_activity_of_another_worker_fails_the_task() -> None:
    world = World([Local])
    handle = await world.client.start_workflow(
        Local.run, args=["charge", {}], id="order-1", task_queue=QUEUE
    )
    world.runner.run(world.workflow_task())
    failed = (await event_of(handle, EventType.WORKFLOW_TASK_FAILED)).attributes
    assert isinstance(failed, WorkflowTaskFailed)
    assert failed.failure is not None
    assert "charge is not registered on this worker" in failed.failure.message


async def test_it_cannot_be_completed_from_outside() -> None:
    place = Place()
    handle = await place.start("later", {"attempts": 3})
    place.world.settle()
    assert "use execute_activity" in (await handle.result())[0]
    assert shop.attempts == [1]


# --- time limits ---


async def test_an_attempt_that_takes_too_long_is_told_and_tried_again() -> None:
    place = Place()
    handle = await place.start("hold", {"start_to_close_timeout": 2, "attempts": 2})
    place.run_task()
    _until(lambda: shop.begun == 1)
    place.alarms.advance(2)
    _until(lambda: shop.details)
    assert shop.details[0] == activity.ActivityCancellationDetails(timed_out=True)
    place.alarms.advance(0.001)
    _until(lambda: shop.begun == 2)
    shop.release.set()
    place.join()
    assert (await handle.result())[0] == 5


@pytest.mark.parametrize("name", ["hold", "hold_async"])
async def test_the_last_attempts_time_limit_ends_it(name: str) -> None:
    place = Place()
    handle = await place.start(name, {"start_to_close_timeout": 2, "attempts": 1})
    place.run_task()
    _until(lambda: shop.begun)
    place.alarms.advance(2)
    place.join()
    assert (await handle.result())[0] == "TimeoutError: Activity timed out"


async def test_schedule_to_close_ends_the_running_attempt() -> None:
    place = Place()
    limits = {"start_to_close_timeout": 2, "schedule_to_close_timeout": 3}
    handle = await place.start("hold", {**limits, "interval": 0.5})
    place.run_task()
    _until(lambda: shop.begun == 1)
    place.alarms.advance(2)
    _until(lambda: shop.ended == 1)
    place.alarms.advance(0.5)
    _until(lambda: shop.begun == 2)
    place.alarms.advance(0.5)
    place.join()
    await handle.result()
    (marker,) = await _markers(handle)
    assert marker.failure is not None
    assert marker.failure.timeout_failure_info is not None
    assert marker.failure.timeout_failure_info.timeout_type.name == "SCHEDULE_TO_CLOSE"


async def test_no_attempt_is_waited_for_that_would_come_too_late() -> None:
    place = Place()
    shop.works_from = 9
    handle = await place.start("charge", {"schedule_to_close_timeout": 3, "interval": 4})
    place.world.settle()
    assert (await handle.result())[0] == "ApplicationError: NotYet: attempt 1"


async def test_schedule_to_start_bounds_the_wait_for_a_thread() -> None:
    place = Place(max_concurrent=1)
    blocker = threading.Event()
    place.local.submit(blocker.wait)
    handle = await place.start("charge", {"schedule_to_start_timeout": 2})
    place.run_task()
    _until(lambda: len(place.alarms.alarms) >= 2)
    place.alarms.advance(2)
    place.join()
    blocker.set()
    assert (await handle.result())[0] == "TimeoutError: Activity timed out"
    assert not shop.begun


# --- keeping the workflow task alive ---


async def test_the_task_is_answered_early_and_another_goes_on() -> None:
    place = Place()
    handle = await place.start("hold", {})
    place.run_task()
    _until(lambda: shop.begun)
    await handle.signal(Local.note, "while it runs")
    for _ in range(2):
        place.beat()
        place.world.service.sweep()
    shop.release.set()
    place.join()
    found, took, note = await handle.result()
    assert (found, note) == (5, "while it runs")
    assert took >= 16
    assert shop.attempts == [1]
    tasks = [kind for kind in await kinds(handle) if kind is EventType.WORKFLOW_TASK_COMPLETED]
    assert len(tasks) == 3
    assert EventType.WORKFLOW_TASK_TIMED_OUT not in await kinds(handle)
    assert (await kinds(handle))[-2:] == [
        EventType.MARKER_RECORDED,
        EventType.WORKFLOW_EXECUTION_COMPLETED,
    ]


async def test_what_the_code_has_asked_for_goes_with_the_early_answer() -> None:
    place = Place(Beside)
    handle = await place.start(run=Beside.run)
    place.run_task()
    _until(lambda: shop.begun)
    place.beat()
    shop.release.set()
    place.join()
    assert (await kinds(handle))[3:7] == [
        EventType.WORKFLOW_TASK_COMPLETED,
        EventType.TIMER_STARTED,
        EventType.WORKFLOW_TASK_SCHEDULED,
        EventType.WORKFLOW_TASK_STARTED,
    ]
    place.world.pass_time(60)
    place.world.settle()
    assert await handle.result() == 1


@workflow.defn
class Beside:
    @workflow.run
    async def run(self) -> int:
        timer = asyncio.create_task(asyncio.sleep(30))
        found: int = await workflow.execute_local_activity(
            hold, 1, start_to_close_timeout=SECONDS * 10
        )
        await timer
        return found


async def test_the_watchdog_does_not_count_their_time() -> None:
    place = Place()
    place.world.runner = place.world.another_runner(
        local_activities=place.local, deadlock_timeout=timedelta(milliseconds=50)
    )
    handle = await place.start("hold", {})
    place.run_task()
    _until(lambda: shop.begun)
    assert place.thread is not None
    place.thread.join(0.2)  # longer than the watchdog lets code run
    shop.release.set()
    place.join()
    assert (await handle.result())[0] == 5
    assert EventType.WORKFLOW_TASK_FAILED not in await kinds(handle)


async def test_a_query_is_answered_meanwhile() -> None:
    place = Place()
    handle = await place.start("hold", {}, task_timeout=timedelta(seconds=5))
    place.run_task()
    _until(lambda: shop.begun)
    await handle.signal(Local.note, "seen")
    place.beat(4)
    asked = asyncio.create_task(handle.query(Local.noted))
    service = place.world.service
    await asyncio.to_thread(_until, lambda: service._waiting_queries._counts)
    place.beat(4)
    place.beat(4)  # a task that began after the question is over now
    found: list[PollWorkflowTaskQueueResponse] = []

    def poll() -> bool:
        found.append(place.world.workflow_task())
        return bool(found[-1].task_token)

    await asyncio.to_thread(_until, poll)
    await asyncio.to_thread(place.world.runner.run, found[-1])
    assert await asked == ["seen"]
    shop.release.set()
    place.join()
    assert shop.attempts == [1]


async def test_a_lost_task_repeats_them() -> None:
    place = Place()
    handle = await place.start("hold", {})
    place.run_task()
    _until(lambda: shop.begun)
    place.world.pass_time(11)  # the worker is asleep
    place.alarms.advance(8)  # and comes too late
    place.join()
    _until(lambda: shop.details)
    assert shop.details == [activity.ActivityCancellationDetails(not_found=True)]
    place.run_task()
    _until(lambda: shop.begun == 2)
    shop.release.set()
    place.join()
    assert (await handle.result())[0] == 5
    assert shop.attempts == [1, 1]


async def test_a_terminated_run_cancels_them() -> None:
    place = Place()
    handle = await place.start("hold", {})
    place.run_task()
    _until(lambda: shop.begun)
    await handle.terminate()
    place.alarms.advance(8)
    place.join()
    _until(lambda: shop.details)
    assert place.world.cache.statistics.size == 0


async def test_a_worker_that_stops_hands_the_task_on() -> None:
    place = Place()
    handle = await place.start("hold", {})
    place.run_task()
    _until(lambda: shop.begun)
    place.local.begin_shutdown()
    place.local.stop()
    place.join()
    _until(lambda: shop.details)
    assert (await kinds(handle))[-1] is EventType.WORKFLOW_TASK_SCHEDULED
    elsewhere = place.world.another_runner(
        local_activities=place.runner_of(), cache=InstanceCache(1)
    )
    shop.release.set()
    elsewhere.run(place.world.workflow_task())
    assert (await handle.result())[0] == 5
    assert shop.attempts == [1, 1]


async def test_a_worker_waits_for_them_no_longer_than_its_grace() -> None:
    world = World([Local], ACTIVITIES)
    worker = Worker(world.client, task_queue=QUEUE, workflows=[Local], activities=ACTIVITIES)
    async with worker:
        handle = await world.client.start_workflow(
            Local.run, args=["hold", {}], id="order-1", task_queue=QUEUE
        )
        await asyncio.to_thread(_until, lambda: shop.begun)
    assert (await kinds(handle))[-1] is EventType.WORKFLOW_TASK_SCHEDULED
    await asyncio.to_thread(_until, lambda: shop.details)


# --- cancellation ---


@workflow.defn
class Cancels:
    @workflow.run
    async def run(self, kind: int, name: str = "hold") -> str:
        handle = workflow.start_local_activity(
            name,
            1,
            start_to_close_timeout=SECONDS * 10,
            cancellation_type=ActivityCancellationType(kind),
            retry_policy=RetryPolicy(initial_interval=SECONDS),
        )
        await workflow.wait_condition(lambda: self.is_asked)
        handle.cancel()
        try:
            await handle
        except ActivityError as error:
            return str(error.cause)
        return "done"

    def __init__(self) -> None:
        self.is_asked = False

    @workflow.signal
    def ask(self) -> None:
        self.is_asked = True


async def _asked_to_cancel(kind: ActivityCancellationType, name: str = "hold") -> tuple[Place, Any]:
    place = Place(Cancels)
    handle = await place.start(int(kind), name, run=Cancels.run)
    place.run_task()
    _until(lambda: shop.begun)
    if name == "charge":  # which fails, and is to be tried again
        _until(lambda: place._waits(10))
    await handle.signal(Cancels.ask)
    place.pass_time(8)  # the signal comes with the next task
    return place, handle


async def test_try_cancel_doesnt_wait_for_the_end() -> None:
    place, handle = await _asked_to_cancel(ActivityCancellationType.TRY_CANCEL)
    place.join()
    assert await handle.result() == "Activity cancelled"
    _until(lambda: shop.details)
    assert shop.details == [activity.ActivityCancellationDetails(cancel_requested=True)]
    (marker,) = await _markers(handle)
    assert _data(marker)["attempt"] == 0


@pytest.mark.parametrize("name", ["hold", "hold_async"])
async def test_wait_cancellation_completed_waits_for_the_end(name: str) -> None:
    kind = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
    place, handle = await _asked_to_cancel(kind, name)
    place.join()
    assert await handle.result() == "Cancelled"
    assert shop.details == [activity.ActivityCancellationDetails(cancel_requested=True)]
    (marker,) = await _markers(handle)
    assert _data(marker)["attempt"] == 1


async def test_abandon_lets_it_go_on() -> None:
    place, handle = await _asked_to_cancel(ActivityCancellationType.ABANDON)
    place.join()
    assert await handle.result() == "Activity cancelled"
    assert shop.ended == 0
    shop.release.set()
    _until(lambda: shop.ended)
    assert shop.details == []


async def test_one_that_waits_for_its_next_attempt_ends_at_once() -> None:
    shop.works_from = 2
    kind = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
    place, handle = await _asked_to_cancel(kind, "charge")
    place.join()
    assert await handle.result() == "Activity cancelled"
    assert shop.attempts == [1]


# --- the engine's side ---


async def test_a_chain_of_early_answers_has_an_end() -> None:
    place = Place()
    handle = await place.start("hold", {}, task_timeout=timedelta(seconds=100))
    place.run_task()
    _until(lambda: shop.begun)
    for _ in range(23):  # half an hour and a little more
        place.beat(80)
    place.join()
    assert EventType.WORKFLOW_TASK_TIMED_OUT in await kinds(handle)


async def test_failures_of_the_workflow_stay_its_own() -> None:
    place = Place(Plain)
    shop.works_from = 2
    handle = await place.start(run=Plain.run)
    place.world.settle()
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ApplicationError)


@workflow.defn
class Plain:
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_local_activity(
            charge, 1, start_to_close_timeout=SECONDS, retry_policy=RetryPolicy(maximum_attempts=1)
        )
