"""E. Continue-as-new, cron, and the chains that they make."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.features import asks, feature
from tests.features.worlds import Run, World
from wfcore import workflow
from wfcore.common import (
    Priority,
    RetryPolicy,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
)
from wfcore.exceptions import ApplicationError, InvalidArgumentError, NotFoundError

STARTED = "WORKFLOW_EXECUTION_STARTED"
CONTINUED = "WORKFLOW_EXECUTION_CONTINUED_AS_NEW"
SIGNALED = "WORKFLOW_EXECUTION_SIGNALED"
TASK = "WORKFLOW_TASK_SCHEDULED"
COLOUR = SearchAttributeKey.for_keyword("Colour")
CRON = "CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE"


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def coloured(colour: str) -> TypedSearchAttributes:
    return TypedSearchAttributes([SearchAttributePair(COLOUR, colour)])


@pytest.fixture
def continued(world: World) -> tuple[Run, Run]:
    """A run that continued as new after five seconds, and the one that follows."""
    first = world.start("Ships", 1)
    world.advance(5)
    world.answer_next(asks.go_on(2, "more"))
    return first, first.next()


@feature("E1")
def test_E01_a_fresh_history(continued: tuple[Run, Run]) -> None:
    first, second = continued
    assert second.run_id != first.run_id
    assert second.id == first.id
    assert first.history()[-1].kind == CONTINUED
    assert first.status == "CONTINUED_AS_NEW"
    assert [(event.id, event.kind) for event in second.history()] == [(1, STARTED), (2, TASK)]


@feature("E2")
def test_E02_state_goes_on_as_arguments(continued: tuple[Run, Run]) -> None:
    first, second = continued
    assert first.history()[-1].values("input") == [2, "more"]
    assert second.history()[0].values("input") == [2, "more"]


@workflow.defn
class Counts:
    """A run a second, as the engine spaces them."""

    @workflow.run
    async def run(self, left: int, total: int) -> int:
        if left:
            workflow.continue_as_new(args=[left - 1, total + 1])
        return total


@feature("E3")
def test_E03_for_as_often_as_it_likes(world: World) -> None:
    world.serve([Counts])
    first = world.start(Counts.run, 100, 0)
    assert first.result() == 100
    assert len(world.runs(f"WorkflowId = '{first.id}'")) == 101
    assert first.current().kinds()[0] == STARTED
    assert len(first.current().history()) < 15


@feature("E4")
@pytest.mark.parametrize("limits", [{"history_events_suggest": 12}])
def test_E04_it_is_suggested(world: World) -> None:
    """As with 4,096 events, which is the default."""
    run = world.start("Ships")
    world.answer_next()
    run.signal("few")
    world.answer_next()
    claim = run.history().of("WORKFLOW_TASK_STARTED")[-1]
    assert not claim["suggestContinueAsNew"]
    for _ in range(12):
        run.signal("many")
    world.answer_next()
    claim = run.history().of("WORKFLOW_TASK_STARTED")[-1]
    assert claim["suggestContinueAsNew"]
    assert run.status == "RUNNING"


def _greeting(text: str, wait: float) -> type:
    @workflow.defn(name="Greets")
    class Greets:
        @workflow.run
        async def run(self, said: list[str]) -> list[str]:
            said = [*said, text]
            if wait:
                await workflow.sleep(wait)
            if len(said) < 2:
                workflow.continue_as_new(said)
            return said

    return Greets


@feature("E5")
def test_E05_the_next_run_takes_new_code(world: World) -> None:
    world.serve([_greeting("old", 0)])
    run = world.start("Greets", [])
    world.settle()
    assert run.status == "CONTINUED_AS_NEW"
    world.serve([_greeting("new", 60)])
    assert run.result() == ["old", "new"]
    assert [each.kinds().count("TIMER_STARTED") for each in run.chain()] == [0, 1]
    for each in run.chain():
        assert "WORKFLOW_TASK_FAILED" not in each.kinds()


@feature("E6")
def test_E06_what_is_inherited(world: World) -> None:
    first = world.start(
        "Ships",
        1,
        run_timeout=seconds(60),
        task_timeout=seconds(20),
        execution_timeout=seconds(600),
        retry_policy=RetryPolicy(maximum_attempts=5),
        memo={"owner": "ann"},
        search_attributes=coloured("red"),
        priority=Priority(priority_key=2),
    )
    world.advance(5)
    world.answer_next(asks.go_on(2))
    old, new = first.history()[0], first.next().history()[0]
    for kept in (
        "taskQueue",
        "workflowType",
        "workflowTaskTimeout",
        "workflowRunTimeout",
        "workflowExecutionTimeout",
        "firstExecutionRunId",
        "priority",
    ):
        assert new[kept] == old[kept], kept
    assert new["continuedExecutionRunId"] == first.run_id
    assert new["initiator"] == "CONTINUE_AS_NEW_INITIATOR_WORKFLOW"
    assert new["attempt"] == 1
    # what only the command gives
    assert old["retryPolicy"]["maximumAttempts"] == 5
    for absent in ("retryPolicy", "cronSchedule", "continuedFailure", "lastCompletionResult"):
        assert new[absent] is None, absent


@workflow.defn
class Keeps:
    """Continues as new naming neither memo nor attributes."""

    @workflow.run
    async def run(self) -> list[Any]:
        if workflow.info().continued_run_id is None:
            workflow.upsert_search_attributes([COLOUR.value_set("blue")])
            await workflow.sleep(2)
            workflow.continue_as_new()
        found = workflow.info().typed_search_attributes.get(COLOUR)
        return [workflow.memo_value("owner", ""), found]


@feature("E6")
def test_E06_memo_and_attributes_go_on_from_the_code(world: World) -> None:
    world.serve([Keeps])
    run = world.start(Keeps.run, memo={"owner": "ann"}, search_attributes=coloured("red"))
    assert run.result() == ["ann", "blue"]


@feature("E7")
def test_E07_the_execution_timeout_goes_on(world: World) -> None:
    first = world.start("Ships", execution_timeout=seconds(30))
    world.advance(5)
    world.answer_next(asks.go_on())
    old, new = first.history()[0], first.next().history()[0]
    end = old["workflowExecutionExpirationTime"]
    assert new["workflowExecutionExpirationTime"] == end
    assert datetime.fromisoformat(end) == old.time + seconds(30)
    world.advance(60)
    assert first.next().history()[-1].time == old.time + seconds(30)


@feature("E8")
def test_E08_at_least_a_second_apart(world: World) -> None:
    first = world.start("Ships")
    world.advance(0.2)
    world.answer_next(asks.go_on())
    second = first.next()
    assert second.history()[0]["firstWorkflowTaskBackoff"] == "0.800s"
    assert second.kinds() == [STARTED]
    world.advance(0.8)
    assert second.kinds() == [STARTED, TASK]
    world.answer_next(asks.go_on())
    third = second.next()
    world.advance(5)
    starts = [run.history().only(TASK).time for run in (first, second, third)]
    assert starts[1] - starts[0] >= seconds(1)
    assert starts[2] - starts[1] >= seconds(1)


@feature("E9")
def test_E09_no_signal_is_lost(world: World) -> None:
    run = world.start("Ships")
    task = world.poll()
    run.signal("wait")
    with pytest.raises(InvalidArgumentError, match="UnhandledCommand"):
        world.answer(task, asks.go_on())
    failed = run.history().only("WORKFLOW_TASK_FAILED")
    assert failed["cause"] == "WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND"
    task = world.answer_next(asks.go_on("with the signal"))
    assert SIGNALED in [event.event_type.name for event in task.history.events]
    assert run.status == "CONTINUED_AS_NEW"


@feature("E10")
def test_E10_a_chain_can_be_walked_both_ways(world: World) -> None:
    first = world.start("Ships", retry_policy=RetryPolicy(maximum_attempts=2))
    world.advance(2)
    world.answer_next(asks.go_on(retry_policy=asks.retries(2)))
    world.answer_next(asks.fail())
    world.advance(5)
    world.answer_next(asks.complete())
    runs = first.chain()
    assert [run.status for run in runs] == ["CONTINUED_AS_NEW", "FAILED", "COMPLETED"]
    back = [runs[-1]]
    while before := back[-1].history()[0]["continuedExecutionRunId"]:
        back.append(world.run(first.id, before))
    assert [run.run_id for run in reversed(back)] == [run.run_id for run in runs]


@feature("E11")
def test_E11_first_and_original_run(continued: tuple[Run, Run]) -> None:
    first, second = continued
    for run in (first, second):
        started = run.history()[0]
        assert started["firstExecutionRunId"] == first.run_id
        assert started["originalExecutionRunId"] == run.run_id
    found = second.describe().raw_description.workflow_execution_info
    assert found.first_run_id == first.run_id


# ---- cron


@pytest.fixture
def late(world: World) -> World:
    """A world that is twenty seconds past a full minute."""
    world.clock.move_to(datetime(2031, 3, 5, 10, 0, 20, tzinfo=UTC))
    return world


def cron(world: World, schedule: str = "* * * * *", **options: Any) -> Run:
    """A run that begins again and again."""
    return world.start("Ships", cron_schedule=schedule, **options)


@feature("E12")
def test_E12_a_cron_run(late: World) -> None:
    first = cron(late)
    assert first.status == "RUNNING"
    assert first.kinds() == [STARTED]
    assert first.history()[0]["firstWorkflowTaskBackoff"] == "40s"
    late.advance(60)
    task = first.history().only(TASK)
    assert (task.time.second, task.time.microsecond) == (0, 0)
    late.answer_next(asks.complete())
    second = first.next()
    begun = second.history()[0]
    assert begun.time == first.history()[-1].time
    assert begun["initiator"] == CRON
    assert begun["firstWorkflowTaskBackoff"] == "40s"
    assert second.kinds() == [STARTED]


@workflow.defn
class Slow:
    @workflow.run
    async def run(self) -> None:
        await workflow.sleep(90)


@feature("E13")
def test_E13_cron_runs_never_overlap(late: World) -> None:
    late.serve([Slow])
    first = late.start(Slow.run, cron_schedule="* * * * *")
    late.advance(400)
    runs = first.chain()[:-1]
    starts = [run.history().of(TASK)[0].time for run in runs]
    begin = datetime(2031, 3, 5, 10, 1, tzinfo=UTC)
    assert starts == [begin, begin + seconds(120), begin + seconds(240)]
    assert {run.status for run in runs} == {"COMPLETED"}


@workflow.defn
class Remembers:
    """Gives one more than the run before it; fails at the third."""

    @workflow.run
    async def run(self) -> int:
        last = workflow.get_last_completion_result(int) or 0
        if last == 2 and workflow.get_last_failure() is None:
            raise ApplicationError("the third")
        return last + 1


@feature("E14")
def test_E14_a_cron_run_gets_the_last_result(late: World) -> None:
    late.serve([Remembers])
    first = late.start(Remembers.run, cron_schedule="* * * * *")
    late.advance(120)
    runs = first.chain()
    assert [run.history()[-1].values("result") for run in runs[:2]] == [[1], [2]]
    assert runs[1].history()[0].values("lastCompletionResult") == [1]


@feature("E15")
def test_E15_after_a_failure_it_goes_on(late: World) -> None:
    late.serve([Remembers])
    first = late.start(Remembers.run, cron_schedule="* * * * *")
    late.advance(240)
    runs = first.chain()
    assert [run.status for run in runs] == [
        "COMPLETED",
        "COMPLETED",
        "FAILED",
        "COMPLETED",
        "RUNNING",
    ]
    assert runs[2].history()[-1]["newExecutionRunId"] == runs[3].run_id
    begun = runs[3].history()[0]
    assert begun.values("lastCompletionResult") == [2]
    assert begun["continuedFailure"]["message"] == "the third"
    assert begun["initiator"] == CRON


@feature("E16")
def test_E16_a_time_zone(late: World) -> None:
    run = cron(late, "CRON_TZ=Europe/Berlin 30 12 * * *")
    begin = datetime(2031, 3, 5, 11, 30, tzinfo=UTC)  # an hour behind Berlin in March
    assert run.describe().execution_time == begin
    late.advance(begin - late.now())
    assert run.history().only(TASK).time == begin


@feature("E17")
def test_E17_cancel_and_terminate_end_it(late: World) -> None:
    first = cron(late)
    late.advance(60)
    first.cancel()
    late.answer_next(asks.cancel())
    assert first.status == "CANCELED"
    other = cron(late)
    other.terminate()
    assert other.status == "TERMINATED"
    for run in (first, other):
        assert not run.history()[-1]["newExecutionRunId"]
        assert len(late.runs(f"WorkflowId = '{run.id}'")) == 1


@feature("E18")
def test_E18_retries_come_before_the_schedule(late: World) -> None:
    policy = RetryPolicy(maximum_attempts=3, initial_interval=seconds(1))
    first = cron(late, retry_policy=policy)
    late.advance(40)
    for wait in (1, 2):
        late.answer_next(asks.fail())
        late.advance(wait)
    late.answer_next(asks.fail())
    runs = first.chain()
    begins = [run.history()[0] for run in runs]
    assert [begin["attempt"] for begin in begins] == [1, 2, 3, 1]
    assert [begin["initiator"] for begin in begins[1:]] == [
        "CONTINUE_AS_NEW_INITIATOR_RETRY",
        "CONTINUE_AS_NEW_INITIATOR_RETRY",
        CRON,
    ]
    late.advance(60)
    assert runs[-1].history().only(TASK).time == datetime(2031, 3, 5, 10, 2, tzinfo=UTC)


@feature("E10")
def test_E10_cron_runs_are_a_chain_too(late: World) -> None:
    first = cron(late)
    late.advance(60)
    late.answer_next(asks.complete())
    second = first.next().history()[0]
    assert second["continuedExecutionRunId"] == first.run_id
    assert second["firstExecutionRunId"] == first.run_id
    with pytest.raises(NotFoundError):
        late.run(first.id, "00000000-0000-7000-8000-000000000000").describe()
