"""C. Activities as code sees them, and what operators do to pending ones."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.features import asks, feature
from tests.features.worlds import CLIENT, NAMESPACE, Run, World, do
from tests.support.waiting import wait_until
from wfcore import activity, workflow
from wfcore.common import RetryPolicy
from wfcore.exceptions import ActivityError, ApplicationError, NotFoundError
from wfcore.exceptions import RetryState as State
from wfcore.protocol.common import FieldMask, WorkflowExecution
from wfcore.protocol.enums import PendingActivityState
from wfcore.protocol.rpc import activity_operations as operations
from wfcore.protocol.rpc.info import ActivityOptions
from wfcore.workflow import ActivityCancellationType

SHORT = {"start_to_close_timeout": timedelta(seconds=30)}
ONCE = RetryPolicy(maximum_attempts=1)
SCHEDULED = "ACTIVITY_TASK_SCHEDULED"
STARTED = "ACTIVITY_TASK_STARTED"
COMPLETED = "ACTIVITY_TASK_COMPLETED"
FAILED = "ACTIVITY_TASK_FAILED"


class Told:
    """What an activity of a test does; set by the test."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.act: Callable[[], Any] = lambda: None


told = Told()


@pytest.fixture(autouse=True)
def _told_nothing() -> None:
    told.__init__()  # type: ignore[misc]  # anew for each test


@activity.defn
def act() -> Any:
    told.calls.append(activity.info().attempt)
    return told.act()


@workflow.defn
class Acts:
    """Runs one activity; ends when it is told to."""

    def __init__(self) -> None:
        self.ended = False

    @workflow.run
    async def run(self, options: dict[str, Any]) -> Any:
        found = await workflow.execute_activity(act, **SHORT, **options)
        await workflow.wait_condition(lambda: self.ended)
        return found

    @workflow.signal
    def end(self) -> None:
        self.ended = True


@feature("C3")
def test_C03_activities_are_not_replayed(world: World, tmp_path: Path) -> None:
    file = tmp_path / "written"

    def write() -> int:
        with file.open("a") as out:
            return out.write("once")

    told.act = write
    worker = world.serve([Acts], [act])
    run = world.start(Acts.run, {})
    world.settle()
    worker.forget()
    run.signal(Acts.end)
    assert run.result() == 4
    assert (told.calls, file.read_text()) == ([1], "once")


@feature("C8")
def test_C08_the_function_is_called_so_often(world: World) -> None:
    def refuse() -> None:
        raise RuntimeError("no")

    told.act = refuse
    world.serve([Tries], [act])
    world.start(Tries.run, 3).result()
    assert told.calls == [1, 2, 3]


class CardRefusedError(Exception):
    """An error of the domain."""


@workflow.defn
class Tries:
    """What the workflow sees of an activity that fails."""

    @workflow.run
    async def run(self, attempts: int) -> list[Any]:
        try:
            await workflow.execute_activity(
                act, **SHORT, retry_policy=RetryPolicy(maximum_attempts=attempts)
            )
        except ActivityError as error:
            cause = error.cause
            assert isinstance(cause, ApplicationError)
            state = State(error.retry_state or 0).name
            return [state, error.activity_type, cause.type, cause.message, cause.non_retryable]
        return []


@feature("C13")
def test_C13_any_exception_is_an_application_failure(world: World) -> None:
    def refuse() -> None:
        raise CardRefusedError("expired")

    told.act = refuse
    world.serve([Tries], [act])
    run = world.start(Tries.run, 2)
    run.result()
    assert told.calls == [1, 2]
    reason = run.history().only(FAILED)["failure"]
    assert reason["message"] == "expired"
    assert reason["applicationFailureInfo"]["type"] == "CardRefusedError"
    assert not reason["applicationFailureInfo"].get("nonRetryable", False)


@feature("C38")
def test_C38_the_workflow_sees_the_cause(world: World) -> None:
    def refuse() -> None:
        raise CardRefusedError("expired")

    told.act = refuse
    world.serve([Tries], [act])
    assert world.start(Tries.run, 2).result() == [
        "MAXIMUM_ATTEMPTS_REACHED",
        "act",
        "CardRefusedError",
        "expired",
        False,
    ]


@feature("C21")
def test_C21_heartbeats_are_throttled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []
    beat = world.service.record_activity_task_heartbeat

    def count(request: Any) -> Any:
        sent.append(request)
        return beat(request)

    monkeypatch.setattr(world.service, "record_activity_task_heartbeat", count)

    def heartbeats() -> None:
        for number in range(1000):
            activity.heartbeat(number)
        wait_until(lambda: sent, what="a heartbeat")

    told.act = heartbeats
    world.serve([Beats], [act])
    world.start(Beats.run).result()
    assert 1 <= len(sent) <= 2


@workflow.defn
class Beats:
    """An activity with a heartbeat timeout; cancelled when the run is."""

    @workflow.run
    async def run(self) -> Any:
        return await workflow.execute_activity(
            act,
            **SHORT,
            heartbeat_timeout=timedelta(seconds=10),
            retry_policy=ONCE,
            cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )


@feature("C22")
def test_C22_code_sees_the_cancellation_at_its_heartbeat(world: World) -> None:
    seen = []
    worker = world.serve([Beats], [act])
    run = world.start(Beats.run)

    def asks_often() -> None:
        run.cancel()
        world.settle()  # the workflow asks for the end
        seen.append(activity.is_cancelled())
        activity.heartbeat()
        try:
            activity.wait_for_cancelled_sync(timeout=10)
        finally:
            seen.append(activity.is_cancelled())

    told.act = asks_often
    world.settle()
    assert seen == [False, True]
    assert "ACTIVITY_TASK_CANCELED" in run.kinds()
    assert run.status == "CANCELED"
    assert worker.queue == world.queue


@workflow.defn
class Cancels:
    """Cancels its activity, which another queue's worker runs, and tells when it went on."""

    def __init__(self) -> None:
        self.stop = False

    @workflow.run
    async def run(self, kind: int, queue: str) -> str:
        handle = workflow.start_activity(
            "charge",
            task_queue=queue,
            cancellation_type=ActivityCancellationType(kind),
            **SHORT,
        )
        await workflow.wait_condition(lambda: self.stop)
        handle.cancel()
        try:
            return str(await handle)
        except (ActivityError, asyncio.CancelledError) as error:
            return type(error).__name__

    @workflow.signal
    def cancel_it(self) -> None:
        self.stop = True


@feature("C25")
@pytest.mark.parametrize(
    ("kind", "asked", "waits"),
    [("TRY_CANCEL", 1, False), ("WAIT_CANCELLATION_COMPLETED", 1, True), ("ABANDON", 0, False)],
)
def test_C25_cancellation_types(world: World, kind: str, asked: int, waits: bool) -> None:
    world.serve([Cancels])
    bank = f"{world.queue}-bank"
    run = world.start(Cancels.run, int(ActivityCancellationType[kind]), bank)
    world.settle()
    attempt = world.take_activity(bank)
    run.signal(Cancels.cancel_it)
    world.settle()
    assert run.kinds().count("ACTIVITY_TASK_CANCEL_REQUESTED") == asked
    assert run.status == ("RUNNING" if waits else "COMPLETED")
    if waits:
        world.cancel_activity(attempt)
        assert "ACTIVITY_TASK_CANCELED" in run.kinds()
    assert run.result() == "ActivityError"


@feature("C26")
def test_C26_completed_from_outside_by_its_token(world: World) -> None:
    tokens = []

    def leave() -> None:
        tokens.append(activity.info().task_token)
        activity.raise_complete_async()

    told.act = leave
    world.serve([Acts], [act])
    run = world.start(Acts.run, {})
    run.signal(Acts.end)
    world.settle()
    assert run.pending_activities[0].state is PendingActivityState.STARTED
    assert run.status == "RUNNING"
    do(world.client.get_async_activity_handle(task_token=tokens[0]).complete("from outside"))
    assert run.result() == "from outside"
    assert len(run.history().of(COMPLETED)) == 1


@feature("C27")
def test_C27_completed_from_outside_by_its_id(world: World) -> None:
    told.act = activity.raise_complete_async
    world.serve([Acts], [act])
    run = world.start(Acts.run, {"activity_id": "charge-1"})
    run.signal(Acts.end)
    world.settle()
    handle = world.client.get_async_activity_handle(
        workflow_id=run.id, run_id=None, activity_id="charge-1"
    )
    do(handle.heartbeat("half"))
    assert run.status == "RUNNING"
    do(handle.complete("from outside"))
    assert run.result() == "from outside"
    with pytest.raises(NotFoundError):
        do(handle.complete("again"))


@workflow.defn
class Local:
    @workflow.run
    async def run(self) -> Any:
        return await workflow.execute_local_activity(act, **SHORT)


@feature("C36")
def test_C36_a_local_activity_is_a_marker(world: World) -> None:
    told.act = lambda: "local"
    worker = world.serve([Local], [act])
    run = world.start(Local.run)
    assert run.result() == "local"
    history = run.history()
    assert history.only("MARKER_RECORDED")["markerName"] == "core_local_activity"
    assert SCHEDULED not in history.kinds
    worker.forget()
    assert told.calls == [1]


# ---- what operators do


def operate(world: World, run: Run, kind: type, **fields: Any) -> Any:
    """Call the service about activity "a"."""
    methods = {
        operations.PauseActivityRequest: world.service.pause_activity,
        operations.UnpauseActivityRequest: world.service.unpause_activity,
        operations.ResetActivityRequest: world.service.reset_activity,
        operations.UpdateActivityOptionsRequest: world.service.update_activity_options,
    }
    execution = WorkflowExecution(workflow_id=run.id, run_id=run.run_id)
    request = kind(namespace=NAMESPACE, execution=execution, identity=CLIENT, id="a", **fields)
    return methods[kind](request)  # type: ignore[operator]


def pending(run: Run) -> Any:
    """Its one pending activity."""
    (found,) = run.pending_activities
    return found


@pytest.fixture
def failing(world: World) -> Run:
    """A run whose activity has failed twice and waits for two seconds."""
    run = world.start("Ships")
    world.answer_next(asks.activity("a", heartbeat_timeout=timedelta(seconds=60)))
    world.fail_activity(world.take_activity())
    world.advance(1)
    world.beat(attempt := world.take_activity(), "half")
    world.fail_activity(attempt)
    return run


@feature("C30")
def test_C30_a_paused_activity_is_not_handed_out(world: World, failing: Run) -> None:
    operate(world, failing, operations.PauseActivityRequest, reason="hold it")
    assert pending(failing).state is PendingActivityState.PAUSED
    assert pending(failing).paused
    world.advance(3600)
    assert not world.poll_activity().task_token
    operate(world, failing, operations.UnpauseActivityRequest)
    assert world.take_activity().attempt == 3


@feature("C30")
def test_C30_a_running_attempt_goes_on(world: World) -> None:
    run = world.start("Ships")
    world.answer_next(asks.activity("a"))
    attempt = world.take_activity()
    operate(world, run, operations.PauseActivityRequest)
    assert pending(run).state is PendingActivityState.PAUSE_REQUESTED
    assert world.beat(attempt).activity_paused
    world.complete_activity(attempt)
    assert COMPLETED in run.kinds()


@feature("C31")
def test_C31_unpaused_it_starts_at_once(world: World, failing: Run) -> None:
    operate(world, failing, operations.PauseActivityRequest)
    operate(world, failing, operations.UnpauseActivityRequest)
    attempt = world.take_activity()  # without the rest of the two seconds
    assert attempt.attempt == 3
    assert attempt.heartbeat_details is not None


@feature("C31")
def test_C31_unpaused_it_may_begin_anew(world: World, failing: Run) -> None:
    operate(world, failing, operations.PauseActivityRequest)
    operate(
        world,
        failing,
        operations.UnpauseActivityRequest,
        reset_attempts=True,
        reset_heartbeat=True,
        jitter=timedelta(seconds=10),
    )
    world.advance(10)
    attempt = world.take_activity()
    assert attempt.attempt == 1
    assert attempt.heartbeat_details is None


@feature("C32")
def test_C32_reset(world: World, failing: Run) -> None:
    assert pending(failing).attempt == 3
    operate(world, failing, operations.ResetActivityRequest)
    assert pending(failing).attempt == 1
    assert world.take_activity().attempt == 1  # at once


@feature("C33")
def test_C33_options_that_change(world: World, failing: Run) -> None:
    answer = operate(
        world,
        failing,
        operations.UpdateActivityOptionsRequest,
        activity_options=ActivityOptions(
            retry_policy=asks.retries(first=5), start_to_close_timeout=timedelta(seconds=7)
        ),
        update_mask=FieldMask(paths=("retry_policy.initial_interval",)),
    )
    assert answer.activity_options.retry_policy.initial_interval == timedelta(seconds=5)
    assert answer.activity_options.start_to_close_timeout == timedelta(seconds=60)
    world.advance(19.9)  # as on Temporal's server the wait that follows the attempt that comes
    assert not world.poll_activity().task_token
    world.advance(0.1)
    assert world.take_activity().attempt == 3


@feature("C34")
def test_C34_operations_leave_no_events(world: World, failing: Run) -> None:
    before = failing.history()
    operate(world, failing, operations.PauseActivityRequest)
    operate(world, failing, operations.UnpauseActivityRequest)
    operate(world, failing, operations.ResetActivityRequest)
    operate(
        world,
        failing,
        operations.UpdateActivityOptionsRequest,
        activity_options=ActivityOptions(start_to_close_timeout=timedelta(seconds=7)),
        update_mask=FieldMask(paths=("start_to_close_timeout",)),
    )
    assert failing.history() == before
