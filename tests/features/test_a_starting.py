"""A. Starting a workflow."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.features import feature
from tests.features.worlds import World
from wfcore import activity, workflow
from wfcore.common import RawValue, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from wfcore.exceptions import (
    ApplicationError,
    InvalidArgumentError,
    NotFoundError,
    WorkflowAlreadyStartedError,
)
from wfcore.protocol.common import TaskQueue
from wfcore.protocol.enums import WorkflowIdConflictPolicy
from wfcore.protocol.metadata import Link, LinkWorkflow
from wfcore.protocol.rpc.info import OnConflictOptions

STARTED = "WORKFLOW_EXECUTION_STARTED"
SCHEDULED = "WORKFLOW_TASK_SCHEDULED"
CLAIMED = "WORKFLOW_TASK_STARTED"
ANSWERED = "WORKFLOW_TASK_COMPLETED"
COMPLETED = "WORKFLOW_EXECUTION_COMPLETED"
TERMINATED = "WORKFLOW_EXECUTION_TERMINATED"


@workflow.defn
class Greets:
    @workflow.run
    async def run(self, name: str) -> str:
        return f"hello {name}"


@workflow.defn
class Refuses:
    @workflow.run
    async def run(self) -> None:
        raise ApplicationError("no")


@workflow.defn
class Waits:
    def __init__(self) -> None:
        self.ended = False

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: self.ended)

    @workflow.signal
    def end(self) -> None:
        self.ended = True


@feature("A1")
def test_A01_start_creates_the_run(world: World) -> None:
    run = world.start(Greets.run, "Ada")
    assert run.kinds() == [STARTED, SCHEDULED]
    assert run.status == "RUNNING"


@feature("A2")
def test_A02_start_fields(world: World) -> None:
    started = world.start(Greets.run, "Ada").history()[0]
    assert started["workflowType"] == {"name": "Greets"}
    assert started["taskQueue"]["name"] == world.queue
    assert started.values("input") == ["Ada"]
    with pytest.raises(InvalidArgumentError):
        world.call_start("")
    with pytest.raises(InvalidArgumentError):
        world.call_start("Greets", task_queue=TaskQueue())


@feature("A3")
def test_A03_a_lost_message_loses_no_task(world: World) -> None:
    run = world.start(Greets.run, "Ada")
    assert world.lose_messages() == 1
    world.serve([Greets])
    world.settle()
    assert run.status == "RUNNING"
    world.advance(10)
    assert run.status == "COMPLETED"


@feature("A4")
def test_A04_one_worker_gets_the_task(world: World) -> None:
    run = world.start(Greets.run, "Ada")
    task = world.poll()
    assert [event.event_id for event in task.history.events] == [1, 2, 3]
    assert not world.poll().task_token
    assert run.kinds() == [STARTED, SCHEDULED, CLAIMED]


@feature("A5")
def test_A05_a_message_that_comes_twice(world: World) -> None:
    worker = world.serve([Greets])
    run = world.start(Greets.run, "Ada")
    message = world.take_message(world.queue)
    worker.run(message)
    worker.run(message)
    assert run.kinds() == [STARTED, SCHEDULED, CLAIMED, ANSWERED, COMPLETED]


@feature("A5")
def test_A05_the_same_poll_gets_the_same_answer(world: World) -> None:
    run = world.start(Greets.run, "Ada")
    key = world.key(run)
    first = world.service.claim_workflow_task(key, request_id="poll-1")
    again = world.service.claim_workflow_task(key, request_id="poll-1")
    assert again.task_token == first.task_token
    assert not world.service.claim_workflow_task(key, request_id="poll-2").task_token
    assert run.kinds() == [STARTED, SCHEDULED, CLAIMED]


@feature("A6")
def test_A06_the_same_request_starts_once(world: World) -> None:
    first = world.call_start("Greets", "once", request_id="r1")
    again = world.call_start("Greets", "once", request_id="r1")
    assert (first.started, again.started) == (True, True)
    assert again.run_id == first.run_id
    assert [found.run_id for found in world.runs()] == [first.run_id]


@feature("A7")
def test_A07_one_open_run_of_an_id(world: World) -> None:
    run = world.start(Greets.run, "Ada", id="one")
    with pytest.raises(WorkflowAlreadyStartedError) as caught:
        world.start(Greets.run, "Bob", id="one")
    assert caught.value.run_id == run.run_id
    assert len(world.runs()) == 1


@feature("A8")
def test_A08_a_closed_id_may_be_used_again(world: World) -> None:
    world.serve([Greets])
    first = world.start(Greets.run, "Ada", id="again")
    assert first.result() == "hello Ada"
    second = world.start(Greets.run, "Bob", id="again")
    assert second.run_id != first.run_id
    assert second.result() == "hello Bob"


@feature("A9")
def test_A09_only_after_a_failure(world: World) -> None:
    world.serve([Greets, Refuses])
    only_failed = WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY
    world.start(Greets.run, "Ada", id="good").result()
    with pytest.raises(WorkflowAlreadyStartedError):
        world.start(Greets.run, "Bob", id="good", id_reuse_policy=only_failed)
    first = world.start(Refuses.run, id="bad")
    world.settle()
    assert first.status == "FAILED"
    second = world.start(Greets.run, "Bob", id="bad", id_reuse_policy=only_failed)
    assert second.run_id != first.run_id


@feature("A10")
def test_A10_never_again(world: World) -> None:
    world.serve([Greets])
    never = WorkflowIDReusePolicy.REJECT_DUPLICATE
    first = world.start(Greets.run, "Ada", id="unique", id_reuse_policy=never)
    first.result()
    with pytest.raises(WorkflowAlreadyStartedError) as caught:
        world.start(Greets.run, "Bob", id="unique", id_reuse_policy=never)
    assert caught.value.run_id == first.run_id


@feature("A11")
def test_A11_terminate_if_running(world: World) -> None:
    first = world.start(Waits.run, id="taken")
    second = world.start(
        Waits.run, id="taken", id_reuse_policy=WorkflowIDReusePolicy.TERMINATE_IF_RUNNING
    )
    end = first.history()[-1]
    assert end.kind == TERMINATED
    assert end["reason"] == "TerminateIfRunning WorkflowIdReusePolicy"
    assert end.values("details") == [f"terminated by new runID: {second.run_id}"]
    assert end["identity"] == "history-service"
    assert second.status == "RUNNING"


@feature("A12")
def test_A12_a_conflict_is_an_error_by_default(world: World) -> None:
    fail = WorkflowIDConflictPolicy.FAIL
    run = world.start(Waits.run, id="one", id_conflict_policy=fail)
    before = run.history()
    with pytest.raises(WorkflowAlreadyStartedError) as caught:
        world.start(Waits.run, id="one", id_conflict_policy=fail)
    assert caught.value.run_id == run.run_id
    assert run.history() == before


@feature("A13")
def test_A13_use_the_open_run(world: World) -> None:
    run = world.start(Waits.run, id="one")
    before = run.history()
    answer = world.call_start(
        "Waits", "one", workflow_id_conflict_policy=WorkflowIdConflictPolicy.USE_EXISTING
    )
    assert (answer.run_id, answer.started) == (run.run_id, False)
    assert run.history() == before


@feature("A14")
def test_A14_terminate_the_open_run(world: World) -> None:
    first = world.start(Waits.run, id="one")
    second = world.start(
        Waits.run, id="one", id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING
    )
    assert (first.status, second.status) == ("TERMINATED", "RUNNING")
    # one commit did both: the old run's end names the new one, whose times are the same
    end, begin = first.history()[-1], second.history()[0]
    assert end.values("details") == [f"terminated by new runID: {second.run_id}"]
    assert end.time == begin.time
    assert world.run("one").describe().run_id == second.run_id


@feature("A15")
@pytest.mark.parametrize(
    ("reuse", "conflict"),
    [
        ("TERMINATE_IF_RUNNING", "FAIL"),
        ("TERMINATE_IF_RUNNING", "USE_EXISTING"),
        ("TERMINATE_IF_RUNNING", "TERMINATE_EXISTING"),
        ("REJECT_DUPLICATE", "TERMINATE_EXISTING"),
    ],
)
def test_A15_forbidden_pairs(world: World, reuse: str, conflict: str) -> None:
    with pytest.raises(InvalidArgumentError):
        world.start(
            Waits.run,
            id="one",
            id_reuse_policy=WorkflowIDReusePolicy[reuse],
            id_conflict_policy=WorkflowIDConflictPolicy[conflict],
        )
    with pytest.raises(NotFoundError):
        world.run("one").describe()


@feature("A16")
def test_A16_attach_to_the_open_run(world: World) -> None:
    run = world.start(Waits.run, id="one")
    link = Link(workflow=LinkWorkflow(namespace="default", workflow_id="caller", run_id="r"))

    def attach() -> Any:
        return world.call_start(
            "Waits",
            "one",
            request_id="second",
            links=(link,),
            workflow_id_conflict_policy=WorkflowIdConflictPolicy.USE_EXISTING,
            on_conflict_options=OnConflictOptions(attach_request_id=True, attach_links=True),
        )

    assert not attach().started
    history = run.history()
    assert history.kinds == [STARTED, SCHEDULED, "WORKFLOW_EXECUTION_OPTIONS_UPDATED"]
    assert history[2]["attachedRequestId"] == "second"
    assert history[2].raw["links"][0]["workflow"]["workflowId"] == "caller"
    # the attached id is now the run's: the same request adds nothing
    assert attach().run_id == run.run_id
    assert run.history() == history


@feature("A17")
def test_A17_the_first_task_comes_with_the_start(world: World) -> None:
    answer = world.call_start("Greets", "fast", request_eager_execution=True)
    run = world.run("fast", answer.run_id)
    assert run.kinds() == [STARTED, SCHEDULED, CLAIMED]
    assert answer.eager_workflow_task is not None
    assert not world.poll().task_token
    delayed = world.call_start(
        "Greets",
        "slow",
        request_eager_execution=True,
        workflow_start_delay=timedelta(seconds=5),
    )
    assert delayed.eager_workflow_task is None
    assert world.run("slow").kinds() == [STARTED]


def _price(amount: int) -> type:
    @workflow.defn(name="Prices")
    class Prices:
        @workflow.run
        async def run(self) -> int:
            return amount

    return Prices


@feature("A18")
def test_A18_a_queue_has_its_own_code(world: World) -> None:
    shop, bank = f"{world.queue}-shop", f"{world.queue}-bank"
    world.serve([_price(1)], queue=shop)
    world.serve([_price(2)], queue=bank)
    assert world.start("Prices", queue=shop).result() == 1
    assert world.start("Prices", queue=bank).result() == 2


@feature("A19")
def test_A19_a_type_that_nobody_knows_yet(world: World) -> None:
    world.serve([Greets])
    run = world.start("Prices")
    world.settle()
    failed = run.history().only("WORKFLOW_TASK_FAILED")
    assert failed["cause"] == "WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE"
    assert "Prices" in failed["failure"]["message"]
    assert run.status == "RUNNING"
    world.serve([Greets, _price(3)])
    assert run.result() == 3


@workflow.defn(dynamic=True)
class Anything:
    def __init__(self) -> None:
        self.signals: list[list[Any]] = []

    @workflow.run
    async def run(self, args: Sequence[RawValue]) -> list[Any]:
        await workflow.wait_condition(lambda: len(self.signals) > 0)
        paid = await workflow.execute_activity(
            "pay_somehow", 7, start_to_close_timeout=timedelta(seconds=5)
        )
        return [workflow.info().workflow_type, _values(args), self.signals, paid]

    @workflow.signal(dynamic=True)
    def on_signal(self, name: str, args: Sequence[RawValue]) -> None:
        self.signals.append([name, _values(args)])

    @workflow.query(dynamic=True)
    def on_query(self, name: str, args: Sequence[RawValue]) -> list[Any]:
        return [name, _values(args)]

    @workflow.update(dynamic=True)
    async def on_update(self, name: str, args: Sequence[RawValue]) -> list[Any]:
        return [name, _values(args)]


def _values(args: Sequence[RawValue]) -> list[Any]:
    return [workflow.payload_converter().from_payload(each.payload) for each in args]


@activity.defn(dynamic=True)
async def anything(args: Sequence[RawValue]) -> list[Any]:
    converter = activity.payload_converter()
    name = activity.info().activity_type
    return [name, [converter.from_payload(each.payload) for each in args]]


@feature("A20")
def test_A20_dynamic_handlers_take_what_no_other_does(world: World) -> None:
    world.serve([Anything, Greets], [anything])
    run = world.start("Whatever", 1, 2)
    assert run.query("how_far", "x") == ["how_far", ["x"]]
    assert run.update("change", 3) == ["change", [3]]
    run.signal("hurry", 4)
    assert run.result() == ["Whatever", [1, 2], [["hurry", [4]]], ["pay_somehow", [7]]]
    assert world.start("Greets", "Ada").result() == "hello Ada"
