"""D. Timeouts of runs and of chains; retries of workflows."""

from datetime import timedelta

import pytest

from tests.features import asks, feature
from tests.features.worlds import Run, World
from wfcore import workflow
from wfcore.client import WorkflowFailureError
from wfcore.common import RetryPolicy
from wfcore.exceptions import ApplicationError
from wfcore.exceptions import TimeoutError as WorkflowTimeoutError

STARTED = "WORKFLOW_EXECUTION_STARTED"
FAILED = "WORKFLOW_EXECUTION_FAILED"
TIMED_OUT = "WORKFLOW_EXECUTION_TIMED_OUT"
TASK = "WORKFLOW_TASK_SCHEDULED"
RETRY_STATE = "RETRY_STATE_"


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def policy(maximum: int = 0, first: float = 1) -> RetryPolicy:
    return RetryPolicy(maximum_attempts=maximum, initial_interval=seconds(first))


def fail_next(world: World, **options: object) -> None:
    """Let the code of the run that waits raise."""
    world.answer_next(asks.fail(**options))


@feature("D1")
def test_D01_the_execution_timeout_ends_the_chain(world: World) -> None:
    began = world.now()
    first = world.start("Ships", execution_timeout=seconds(5), retry_policy=policy())
    fail_next(world)
    world.advance(1)
    fail_next(world)  # the third run begins two seconds later
    world.advance(60)
    runs = first.chain()
    assert [run.status for run in runs] == ["FAILED", "FAILED", "TIMED_OUT"]
    end = runs[-1].history()[-1]
    assert end.kind == TIMED_OUT
    assert end.time == began + seconds(5)
    assert end["retryState"] == f"{RETRY_STATE}TIMEOUT"
    assert not end["newExecutionRunId"]


@workflow.defn
class Loops:
    """Two seconds a run."""

    @workflow.run
    async def run(self, left: int) -> str:
        await workflow.sleep(2)
        if left:
            workflow.continue_as_new(left - 1)
        return "done"


@feature("D2")
def test_D02_the_run_timeout_holds_for_one_run(world: World) -> None:
    world.serve([Loops])
    began = world.now()
    first = world.start(Loops.run, 4, run_timeout=seconds(3))
    assert first.result() == "done"
    assert world.now() == began + seconds(10)
    assert [run.status for run in first.chain()] == [*["CONTINUED_AS_NEW"] * 4, "COMPLETED"]


@feature("D2")
def test_D02_the_run_timeout_is_the_executions_by_default(world: World) -> None:
    run = world.start("Ships", execution_timeout=seconds(10))
    assert run.history()[0]["workflowRunTimeout"] == "10s"
    run = world.start("Ships", run_timeout=seconds(3))
    began = world.now()
    world.advance(60)
    assert run.history()[-1].kind == TIMED_OUT
    assert run.history()[-1].time == began + seconds(3)


@feature("D3")
def test_D03_runs_share_the_executions_time(world: World) -> None:
    world.serve([Loops])
    began = world.now()
    first = world.start(Loops.run, 100, run_timeout=seconds(3), execution_timeout=seconds(7))
    world.advance(60)
    runs = first.chain()
    assert len({run.run_id for run in runs}) == len(runs) == 4
    assert {run.id for run in runs} == {first.id}
    assert [run.status for run in runs] == [*["CONTINUED_AS_NEW"] * 3, "TIMED_OUT"]
    assert runs[-1].history()[-1].time == began + seconds(7)


@feature("D4")
def test_D04_the_smaller_of_the_two(world: World) -> None:
    run = world.start("Ships", run_timeout=seconds(60), execution_timeout=seconds(10))
    started = run.history()[0]
    assert started["workflowRunTimeout"] == "10s"
    assert started["workflowExecutionTimeout"] == "10s"


@workflow.defn
class TidiesUp:
    ended: list[str]

    @workflow.run
    async def run(self) -> None:
        try:
            await workflow.wait_condition(lambda: False)
        finally:
            self.ended.append(workflow.info().run_id)


@feature("D5")
def test_D05_no_code_runs_at_a_timeout(world: World) -> None:
    TidiesUp.ended = []
    world.serve([TidiesUp])
    run = world.start(TidiesUp.run, run_timeout=seconds(3))
    world.advance(60)
    kinds = run.kinds()
    assert kinds[-2:] == ["WORKFLOW_TASK_COMPLETED", TIMED_OUT]
    assert kinds.count(TASK) == 1
    assert TidiesUp.ended == []
    with pytest.raises(WorkflowFailureError) as caught:
        run.result()
    assert isinstance(caught.value.cause, WorkflowTimeoutError)


@feature("D6")
def test_D06_retries(world: World) -> None:
    first = world.start("Ships", 7, retry_policy=policy(3))
    fail_next(world)
    world.advance(1)
    fail_next(world)
    world.advance(2)
    fail_next(world)
    runs = first.chain()
    assert [run.history()[0]["attempt"] for run in runs] == [1, 2, 3]
    ends = [run.history()[-1] for run in runs]
    assert [end.kind for end in ends] == [FAILED] * 3
    assert [end["retryState"] for end in ends] == [
        f"{RETRY_STATE}IN_PROGRESS",
        f"{RETRY_STATE}IN_PROGRESS",
        f"{RETRY_STATE}MAXIMUM_ATTEMPTS_REACHED",
    ]
    second = runs[1].history()[0]
    assert second["initiator"] == "CONTINUE_AS_NEW_INITIATOR_RETRY"
    assert second["continuedExecutionRunId"] == first.run_id
    assert second["continuedFailure"]["message"] == "no"
    assert second.values("input") == [7]


@feature("D7")
def test_D07_no_policy_no_retry(world: World) -> None:
    run = world.start("Ships")
    fail_next(world)
    end = run.history()[-1]
    assert end["retryState"] == f"{RETRY_STATE}RETRY_POLICY_NOT_SET"
    assert run.chain() == [run]
    assert "retryPolicy" not in run.history()[0].attributes


@feature("D8")
def test_D08_a_run_timeout_is_retried(world: World) -> None:
    first = world.start("Ships", run_timeout=seconds(3), retry_policy=policy(2))
    world.advance(3)
    end = first.history()[-1]
    assert end.kind == TIMED_OUT
    assert end["retryState"] == f"{RETRY_STATE}IN_PROGRESS"
    second = first.next().history()[0]
    reason = second["continuedFailure"]["timeoutFailureInfo"]
    assert reason["timeoutType"] == "TIMEOUT_TYPE_START_TO_CLOSE"
    world.advance(60)
    runs = first.chain()
    assert [run.status for run in runs] == ["TIMED_OUT", "TIMED_OUT"]
    state = runs[-1].history()[-1]["retryState"]
    assert state == f"{RETRY_STATE}MAXIMUM_ATTEMPTS_REACHED"


@feature("D9")
def test_D09_the_next_run_waits(world: World) -> None:
    first = world.start("Ships", retry_policy=policy(first=5))
    fail_next(world)
    second = first.next()
    assert second.status == "RUNNING"
    assert second.kinds() == [STARTED]
    assert second.history()[0]["firstWorkflowTaskBackoff"] == "5s"
    world.advance(4.9)
    assert second.kinds() == [STARTED]
    world.advance(0.1)
    assert second.kinds() == [STARTED, TASK]


@workflow.defn
class Raises:
    @workflow.run
    async def run(self, kind: str) -> None:
        raise ApplicationError("no") if kind == "failure" else ValueError("a bug")


@feature("D10")
def test_D10_which_exceptions_fail_a_workflow(world: World) -> None:
    world.serve([Raises])
    fails, stays = world.start(Raises.run, "failure"), world.start(Raises.run, "bug")
    world.settle()
    assert fails.status == "FAILED"
    failed = fails.history().only(FAILED)
    assert failed["failure"]["message"] == "no"
    assert stays.status == "RUNNING"
    assert "WORKFLOW_TASK_FAILED" in stays.kinds()


@workflow.defn
class Insists:
    @workflow.run
    async def run(self) -> int:
        if workflow.info().attempt < 3:
            raise ApplicationError("not yet")
        return workflow.info().attempt


@feature("D11")
def test_D11_the_result_is_that_of_the_last_run(world: World) -> None:
    world.serve([Insists])
    first = world.start(Insists.run, retry_policy=policy())
    assert first.result() == 3
    assert world.run(first.id, first.run_id).result() == 3
    runs: list[Run] = first.chain()
    assert len(runs) == 3
    with pytest.raises(WorkflowFailureError):
        first.result(follow_runs=False)
