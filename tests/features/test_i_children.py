"""I. Children, and the cancellation of other workflows."""

import asyncio
from typing import Any

import pytest

from tests.features import feature
from tests.features.worlds import Run, World
from wfcore import workflow
from wfcore.common import RetryPolicy
from wfcore.exceptions import (
    ApplicationError,
    ChildWorkflowError,
    RetryState,
    WorkflowAlreadyStartedError,
)
from wfcore.workflow import ChildWorkflowCancellationType, ParentClosePolicy

REQUESTED = "WORKFLOW_EXECUTION_CANCEL_REQUESTED"
INITIATED = "START_CHILD_WORKFLOW_EXECUTION_INITIATED"
STARTED = "CHILD_WORKFLOW_EXECUTION_STARTED"
COMPLETED = "CHILD_WORKFLOW_EXECUTION_COMPLETED"
FAILED = "CHILD_WORKFLOW_EXECUTION_FAILED"
ASKED = "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED"
TOLD = "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED"


@workflow.defn
class Child:
    """Does what it is told: waits for a signal, fails, goes on as new, or answers."""

    def __init__(self) -> None:
        self.ended = False

    @workflow.run
    async def run(self, what: str, left: int) -> str:
        if what == "wait":
            await workflow.wait_condition(lambda: self.ended)
        if what == "linger":
            await self._linger()
        if what == "fail":
            raise ApplicationError("broke", 7, type="Broke")
        if what == "go on" and left:
            workflow.continue_as_new(args=[what, left - 1])
        return f"did {what}"

    async def _linger(self) -> None:
        """Takes ten seconds to be cancelled."""
        try:
            await workflow.wait_condition(lambda: self.ended)
        except asyncio.CancelledError:
            await workflow.sleep(10)
            raise

    @workflow.signal
    def end(self) -> None:
        self.ended = True


@workflow.defn
class Parent:
    """Runs one child to its end."""

    @workflow.run
    async def run(self, what: str, left: int, options: dict[str, Any]) -> Any:
        try:
            return await workflow.execute_child_workflow(Child.run, args=[what, left], **options)
        except ChildWorkflowError as error:
            return [type(error.cause).__name__, str(error.cause), error.retry_state]


@workflow.defn
class Leaves:
    """Starts a child and ends when it is told to, or goes on as new."""

    def __init__(self) -> None:
        self.how = ""

    @workflow.run
    async def run(self, policy: int, child_id: str) -> None:
        if not child_id:
            return
        policies = {"parent_close_policy": ParentClosePolicy(policy)} if policy else {}
        await workflow.start_child_workflow(Child.run, args=["wait", 0], id=child_id, **policies)
        await workflow.wait_condition(lambda: bool(self.how))
        if self.how == "go on":
            workflow.continue_as_new(args=[policy, ""])

    @workflow.signal
    def leave(self, how: str) -> None:
        self.how = how


def parent_of(world: World, what: str, left: int = 0, **options: Any) -> Run:
    """A parent whose child is told what to do."""
    world.serve([Parent, Child])
    options = {"id": world.new_id(), **options}
    return world.start(Parent.run, what, left, options)


def child_of(run: Run) -> Run:
    """The first run of the one child."""
    execution = run.history().only(STARTED)["workflowExecution"]
    return run.world.run(execution["workflowId"], execution["runId"])


def left_behind(world: World, policy: int, how: str = "end") -> tuple[Run, Run]:
    """A parent that has ended before its child, and the child."""
    world.serve([Leaves, Child])
    run = world.start(Leaves.run, policy, world.new_id())
    world.settle()
    child = child_of(run)
    assert child.status == "RUNNING"
    run.signal(Leaves.leave, how)
    world.settle()
    return run, child


@feature("I1")
def test_I01_a_child_is_three_events(world: World) -> None:
    run = parent_of(world, "work")
    assert run.result() == "did work"
    history = run.history()
    initiated, started = history.only(INITIATED), history.only(STARTED)
    completed = history.only(COMPLETED)
    assert initiated.id < started.id < completed.id
    assert started["initiatedEventId"] == completed["initiatedEventId"] == str(initiated.id)
    assert completed["startedEventId"] == str(started.id)
    assert completed.values("result") == ["did work"]
    first = child_of(run).history()[0]
    assert first["parentWorkflowExecution"] == {"workflowId": run.id, "runId": run.run_id}
    assert first["parentInitiatedEventId"] == str(initiated.id)


@feature("I2")
def test_I02_the_child_waits_until_its_parent_knows(world: World) -> None:
    run = parent_of(world, "work")
    run.result()
    started = run.history().only(STARTED)
    child = child_of(run).history()
    task = child.only("WORKFLOW_TASK_SCHEDULED")
    assert child[0].time <= started.time <= task.time


@feature("I3")
def test_I03_an_id_in_use(world: World) -> None:
    @workflow.defn(name="Tries")
    class Tries:
        @workflow.run
        async def run(self, child_id: str) -> str:
            try:
                await workflow.start_child_workflow("Child", args=["work", 0], id=child_id)
            except WorkflowAlreadyStartedError as error:
                return error.workflow_id
            return ""

    world.serve([Tries, Child])
    other = world.start(Child.run, "wait", 0)
    run = world.start("Tries", other.id)
    assert run.result() == other.id
    failed = run.history().only("START_CHILD_WORKFLOW_EXECUTION_FAILED")
    assert failed["cause"].endswith("_WORKFLOW_ALREADY_EXISTS")
    assert failed["workflowId"] == other.id
    assert STARTED not in run.kinds()
    assert other.status == "RUNNING"


@feature("I4")
@pytest.mark.parametrize("policy", [0, ParentClosePolicy.TERMINATE])
def test_I04_children_are_terminated(world: World, policy: int) -> None:
    run, child = left_behind(world, policy)
    assert (run.status, child.status) == ("COMPLETED", "TERMINATED")
    assert child.history()[-1]["reason"] == "by parent close policy"
    policy_name = run.history().only(INITIATED)["parentClosePolicy"]
    assert policy_name == "PARENT_CLOSE_POLICY_TERMINATE"


@feature("I5")
def test_I05_children_are_asked_to_end(world: World) -> None:
    run, child = left_behind(world, ParentClosePolicy.REQUEST_CANCEL)
    assert (run.status, child.status) == ("COMPLETED", "CANCELED")
    requested = child.history().only(REQUESTED)
    assert requested["externalWorkflowExecution"] == {"workflowId": run.id, "runId": run.run_id}


@feature("I6")
def test_I06_children_are_abandoned(world: World) -> None:
    run, child = left_behind(world, ParentClosePolicy.ABANDON)
    world.advance(3600)
    assert (run.status, child.status) == ("COMPLETED", "RUNNING")
    assert REQUESTED not in child.kinds()
    child.signal(Child.end)
    assert child.result() == "did wait"
    assert run.kinds()[-1] == "WORKFLOW_EXECUTION_COMPLETED"


@feature("I7")
def test_I07_the_policy_when_the_parent_continues_as_new(world: World) -> None:
    run, child = left_behind(world, 0, "go on")
    assert (run.status, child.status) == ("CONTINUED_AS_NEW", "TERMINATED")
    assert child.history()[-1]["reason"] == "by parent close policy"
    assert run.result() is None


@feature("I8")
def test_I08_a_childs_chain_has_one_end(world: World) -> None:
    run = parent_of(world, "go on", 2)
    assert run.result() == "did go on"
    history = run.history()
    assert len(history.of(STARTED)) == 1
    child = child_of(run)
    chain = child.chain()
    assert [each.status for each in chain] == ["CONTINUED_AS_NEW", "CONTINUED_AS_NEW", "COMPLETED"]
    completed = history.only(COMPLETED)
    assert completed["workflowExecution"] == {"workflowId": child.id, "runId": chain[-1].run_id}
    for each in chain:
        assert each.history()[0]["parentWorkflowExecution"]["workflowId"] == run.id


@feature("I9")
def test_I09_a_childs_failure(world: World) -> None:
    run = parent_of(world, "fail")
    name, text, _ = run.result()
    assert (name, text) == ("ApplicationError", "Broke: broke")
    failure = run.history().only(FAILED)["failure"]
    assert failure["message"] == "broke"
    assert failure["applicationFailureInfo"]["type"] == "Broke"


@feature("I9")
def test_I09_it_fails_the_parent_as_a_cause(world: World) -> None:
    @workflow.defn(name="Relies")
    class Relies:
        @workflow.run
        async def run(self) -> str:
            found: str = await workflow.execute_child_workflow("Child", args=["fail", 0])
            return found

    world.serve([Relies, Child])
    run = world.start("Relies")
    world.settle()
    assert run.status == "FAILED"
    failure = run.history()[-1]["failure"]
    assert failure["childWorkflowExecutionFailureInfo"]["workflowType"]["name"] == "Child"
    assert failure["cause"]["message"] == "broke"
    assert failure["cause"]["applicationFailureInfo"]["type"] == "Broke"


@feature("I10")
def test_I10_children_are_not_retried(world: World) -> None:
    run = parent_of(world, "fail")
    assert run.result()[2] == RetryState.RETRY_POLICY_NOT_SET
    assert run.history().only(FAILED)["retryState"] == "RETRY_STATE_RETRY_POLICY_NOT_SET"
    assert len(child_of(run).chain()) == 1


@feature("I10")
def test_I10_but_by_a_policy_of_their_own(world: World) -> None:
    @workflow.defn(name="Insists")
    class Insists:
        @workflow.run
        async def run(self) -> str:
            try:
                await workflow.execute_child_workflow(
                    "Child", args=["fail", 0], retry_policy=RetryPolicy(maximum_attempts=3)
                )
            except ChildWorkflowError as error:
                return error.retry_state.name if error.retry_state else "none"
            return ""

    world.serve([Insists, Child])
    run = world.start("Insists")
    assert run.result() == "MAXIMUM_ATTEMPTS_REACHED"
    assert len(run.history().of(FAILED)) == 1
    assert len(child_of(run).chain()) == 3


@workflow.defn
class Cancels:
    """Cancels its child, whose end takes ten seconds; by what and after how many seconds that
    ended here.
    """

    @workflow.run
    async def run(self, kind: int) -> list[Any]:
        child = await workflow.start_child_workflow(
            Child.run,
            args=["linger", 0],
            cancellation_type=ChildWorkflowCancellationType(kind),
            parent_close_policy=ParentClosePolicy.ABANDON,
        )
        await workflow.sleep(1)
        began = workflow.now()
        child.cancel()
        reason = ""
        try:
            await child
        except ChildWorkflowError as error:
            reason = type(error.cause).__name__
        took = (workflow.now() - began).total_seconds()
        await workflow.sleep(20)  # what it asked for goes out while it is open
        return [reason, took]


@feature("I11")
@pytest.mark.parametrize(
    ("kind", "asks", "waits"),
    [
        (ChildWorkflowCancellationType.ABANDON, False, False),
        (ChildWorkflowCancellationType.TRY_CANCEL, True, False),
        (ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED, True, True),
        (ChildWorkflowCancellationType.WAIT_CANCELLATION_REQUESTED, True, True),
    ],
)
def test_I11_cancellation_types(
    world: World, kind: ChildWorkflowCancellationType, asks: bool, waits: bool
) -> None:
    """What waits for the request's delivery alone waits for the end, as Temporal's SDK does."""
    world.serve([Cancels, Child])
    run = world.start(Cancels.run, kind.value)
    assert run.result() == ["CancelledError", 10 if waits else 0]
    child = child_of(run)
    assert (REQUESTED in child.kinds()) is asks
    assert (ASKED in run.kinds()) is asks
    assert child.status == ("CANCELED" if asks else "RUNNING")


@feature("I12")
def test_I12_the_root_of_the_tree(world: World) -> None:
    @workflow.defn(name="Tree")
    class Tree:
        @workflow.run
        async def run(self, depth: int) -> Any:
            root = workflow.info().root
            below = await workflow.execute_child_workflow("Tree", depth - 1) if depth else []
            return [root.workflow_id if root else None, *below]

    world.serve([Tree])
    run = world.start("Tree", 2)
    assert run.result() == [None, run.id, run.id]
    child = child_of(run)
    grandchild = child_of(child)
    top = {"workflowId": run.id, "runId": run.run_id}
    for each in (child, grandchild):
        assert each.history()[0]["rootWorkflowExecution"] == top
        described = each.describe()
        assert (described.root_id, described.root_run_id) == (run.id, run.run_id)
    assert grandchild.describe().parent_id == child.id


@workflow.defn
class Stops:
    """Asks another workflow to end; its answer is how that failed."""

    @workflow.run
    async def run(self, workflow_id: str) -> str:
        try:
            await workflow.get_external_workflow_handle(workflow_id).cancel()
        except ApplicationError as error:
            return error.message
        return "told"


@feature("I13")
def test_I13_one_workflow_cancels_another(world: World) -> None:
    world.serve([Stops, Child])
    other = world.start(Child.run, "wait", 0)
    world.settle()
    run = world.start(Stops.run, other.id)
    assert run.result() == "told"
    history = run.history()
    asked, told = history.only(ASKED), history.only(TOLD)
    assert asked["workflowExecution"]["workflowId"] == other.id
    assert told["initiatedEventId"] == str(asked.id)
    world.settle()
    assert other.status == "CANCELED"
    requested = other.history().only(REQUESTED)
    assert requested["externalWorkflowExecution"] == {"workflowId": run.id, "runId": run.run_id}


@feature("I13")
def test_I13_there_is_no_such_workflow(world: World) -> None:
    world.serve([Stops])
    run = world.start(Stops.run, "nobody")
    assert "not found" in run.result()
    failed = run.history().only("REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED")
    assert failed["cause"].endswith("_EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND")


@feature("I14")
def test_I14_a_closed_workflow_counts_as_told(world: World) -> None:
    world.serve([Stops, Child])
    other = world.start(Child.run, "work", 0)
    other.result()
    before = other.history()
    run = world.start(Stops.run, other.id)
    assert run.result() == "told"
    assert run.kinds().count(TOLD) == 1
    assert other.history() == before
