"""H. Updates."""

from typing import Any

import pytest

from tests.features import feature
from tests.features.worlds import Run, World, do
from wfcore import workflow
from wfcore.client import (
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateHandle,
    WorkflowUpdateStage,
)
from wfcore.common import WorkflowIDConflictPolicy
from wfcore.exceptions import (
    ApplicationError,
    FailedPreconditionError,
    NotFoundError,
    ResourceExhaustedCause,
    ResourceExhaustedError,
)
from wfcore.history.limits import DEFAULT_LIMITS

ACCEPTED = "WORKFLOW_EXECUTION_UPDATE_ACCEPTED"
COMPLETED = "WORKFLOW_EXECUTION_UPDATE_COMPLETED"

#: what handlers were called with; each test begins with none
handled: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_handled() -> None:
    handled.clear()


@workflow.defn
class Counts:
    """Counts up by updates, until it is told to end."""

    def __init__(self) -> None:
        self.total = 0
        self.open = False
        self.ended = False

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: self.ended)
        return self.total

    @workflow.update
    def add(self, number: int) -> int:
        if not workflow.unsafe.is_replaying():
            handled.append(number)
        if number == 13:
            raise ApplicationError("unlucky", number, type="Luck")
        self.total += number
        return self.total

    @add.validator
    def check_add(self, number: int) -> None:
        if number < 0:
            raise ValueError("only up")

    @workflow.update
    async def add_later(self, number: int) -> int:
        await workflow.wait_condition(lambda: self.open)
        return self.add(number)

    @workflow.update(unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON)
    async def hang(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    def let_go(self) -> None:
        self.open = True

    @workflow.signal
    def end(self) -> None:
        self.ended = True


@pytest.fixture
def run(world: World) -> Run:
    """An idle run whose code is in memory."""
    world.serve([Counts])
    run = world.start(Counts.run)
    world.settle()
    return run


def begin(run: Run, update: Any, *args: Any, **options: Any) -> WorkflowUpdateHandle[Any]:
    """Send an update and wait until it is accepted."""
    accepted = WorkflowUpdateStage.ACCEPTED
    call = run.handle.start_update(update, args=args, wait_for_stage=accepted, **options)
    handle: WorkflowUpdateHandle[Any] = do(call)
    return handle


@feature("H15")
def test_H15_an_update(run: Run) -> None:
    before = run.kinds()
    assert run.update(Counts.add, 2, id="first") == 2
    history = run.history()
    assert history.kinds == [
        *before,
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        ACCEPTED,
        COMPLETED,
    ]
    accepted, completed = history[-2:]
    assert accepted["protocolInstanceId"] == "first"
    assert accepted["acceptedRequest"]["input"]["name"] == "add"
    assert completed["meta"]["updateId"] == "first"
    assert completed["acceptedEventId"] == str(accepted.id)
    assert "success" in completed["outcome"]


@feature("H16")
def test_H16_the_validator_refuses(run: Run) -> None:
    run.update(Counts.add, 1)
    before = run.history()
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        run.update(Counts.add, -1)
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.message, cause.type) == ("only up", "ValueError")
    assert run.history() == before
    assert handled == [1]
    assert run.update(Counts.add, 2) == 3


@feature("H17")
def test_H17_accepted_before_it_is_completed(run: Run) -> None:
    handle = begin(run, Counts.add_later, 2)
    assert run.kinds()[-1] == ACCEPTED
    assert handled == []
    run.signal(Counts.let_go)
    assert do(handle.result()) == 2
    assert run.kinds()[-1] == COMPLETED
    again = run.handle.get_update_handle(handle.id)
    assert do(again.result()) == 2


@feature("H18")
def test_H18_one_id_is_one_update(run: Run) -> None:
    assert run.update(Counts.add, 2, id="same") == 2
    before = run.history()
    assert run.update(Counts.add, 5, id="same") == 2
    assert run.history() == before
    assert handled == [2]


@feature("H18")
def test_H18_one_id_while_it_goes_on(run: Run) -> None:
    first = begin(run, Counts.add_later, 2, id="same")
    second = begin(run, Counts.add_later, 5, id="same")
    run.signal(Counts.let_go)
    assert (do(first.result()), do(second.result())) == (2, 2)
    assert run.kinds().count(ACCEPTED) == 1
    assert handled == [2]


@feature("H19")
def test_H19_a_failure_is_the_updates_own(run: Run) -> None:
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        run.update(Counts.add, 13)
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.message, cause.type, list(cause.details)) == ("unlucky", "Luck", [13])
    failed = run.history().only(COMPLETED)["outcome"]["failure"]
    assert failed["message"] == "unlucky"
    assert run.status == "RUNNING"
    assert run.update(Counts.add, 1) == 1
    run.signal(Counts.end)
    assert run.result() == 1


@feature("H20")
def test_H20_so_many_in_flight(run: Run) -> None:
    begun = [begin(run, Counts.add_later, 1) for _ in range(10)]
    with pytest.raises(ResourceExhaustedError) as caught:
        begin(run, Counts.add_later, 1)
    assert caught.value.resource_cause is ResourceExhaustedCause.CONCURRENT_LIMIT
    run.signal(Counts.let_go)
    assert [do(each.result()) for each in begun] == list(range(1, 11))
    assert run.update(Counts.add, 1) == 11


@feature("H20")
@pytest.mark.parametrize("limits", [{"updates": 3}])
def test_H20_so_many_in_total(run: Run) -> None:
    assert DEFAULT_LIMITS.updates == 2_000
    for number in range(3):
        run.update(Counts.add, 1, id=str(number))
    with pytest.raises(FailedPreconditionError):
        run.update(Counts.add, 1)
    assert run.update(Counts.add, 1, id="0") == 1  # known, so not another one
    assert handled == [1, 1, 1]


@feature("H21")
def test_H21_the_run_ends_before_an_accepted_one(run: Run) -> None:
    handle = begin(run, Counts.hang)
    run.signal(Counts.end)
    run.result()
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        do(handle.result())
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "AcceptedUpdateCompletedWorkflow"
    assert COMPLETED not in run.kinds()


@feature("H21")
def test_H21_the_run_has_ended(run: Run) -> None:
    run.update(Counts.add, 2, id="done")
    run.signal(Counts.end)
    run.result()
    before = run.history()
    with pytest.raises(NotFoundError):
        run.update(Counts.add, 1)
    assert run.update(Counts.add, 1, id="done") == 2
    assert run.history() == before


@feature("H22")
def test_H22_update_with_start(world: World) -> None:
    world.serve([Counts])
    workflow_id = world.new_id()

    def send(number: int) -> Any:
        start = WithStartWorkflowOperation(
            Counts.run,
            id=workflow_id,
            task_queue=world.queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )
        call = world.client.execute_update_with_start_workflow(
            Counts.add, number, start_workflow_operation=start
        )
        return do(call)

    assert send(2) == 2
    assert send(3) == 5
    (found,) = world.runs()
    kinds = world.run(workflow_id, found.run_id).kinds()
    assert kinds[:5] == [
        "WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        ACCEPTED,
    ]
    assert kinds.count(ACCEPTED) == 2


@feature("H26")
def test_H26_the_task_of_a_refused_update_leaves_nothing(run: Run, world: World) -> None:
    before = run.history()
    for _ in range(3):
        with pytest.raises(WorkflowUpdateFailedError):
            run.update(Counts.add, -1)
    assert run.history() == before
    assert run.pending_task is None
    run.signal(Counts.end)
    world.settle()
    history = run.history()
    assert [event.id for event in history] == list(range(1, len(history) + 1))
    assert run.status == "COMPLETED"
