"""H. Signals and queries."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.features import feature
from tests.features.worlds import CLIENT, NAMESPACE, Run, World
from wfcore import workflow
from wfcore.client import WorkflowQueryFailedError, WorkflowQueryRejectedError
from wfcore.common import QueryRejectCondition
from wfcore.exceptions import ApplicationError, InvalidArgumentError
from wfcore.history.limits import DEFAULT_LIMITS
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.rpc.workflows import SignalWorkflowExecutionRequest

STARTED = "WORKFLOW_EXECUTION_STARTED"
SIGNALED = "WORKFLOW_EXECUTION_SIGNALED"
TASK = "WORKFLOW_TASK_SCHEDULED"
INITIATED = "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED"
NOT_FOUND = "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND"


@workflow.defn
class Collects:
    """Keeps what it is sent, until it is told to end."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.ended = False

    @workflow.run
    async def run(self) -> list[Any]:
        await workflow.wait_condition(lambda: self.ended)
        return self.got

    @workflow.signal
    def put(self, what: Any) -> None:
        self.got.append(what)

    @workflow.signal
    def end(self) -> None:
        self.ended = True

    @workflow.query
    def seen(self) -> list[Any]:
        return self.got

    @workflow.query
    def meddles(self) -> None:
        workflow.start_activity("charge", start_to_close_timeout=timedelta(seconds=5))


def collecting(world: World) -> Run:
    """A run that waits."""
    world.serve([Collects])
    run = world.start(Collects.run)
    world.settle()
    return run


@feature("H1")
def test_H01_a_signal_is_an_event_and_a_task(world: World) -> None:
    run = world.start("Ships")
    world.answer_next()
    before = run.kinds()
    run.signal("go", 1, "two")
    assert run.kinds() == [*before, SIGNALED, TASK]
    signaled = run.history()[-2]
    assert (signaled["signalName"], signaled["identity"]) == ("go", CLIENT)
    assert signaled.values("input") == [1, "two"]


@feature("H2")
def test_H02_signals_keep_their_order(world: World) -> None:
    run = world.start(Collects.run)
    for number in range(50):
        run.signal(Collects.put, number)
    task = world.poll()
    for number in range(50, 75):
        run.signal(Collects.put, number)  # these wait for the task
    world.answer(task)
    for number in range(75, 100):
        run.signal(Collects.put, number)
    world.serve([Collects])
    run.signal(Collects.end)
    assert run.result() == list(range(100))
    sent = [event.values("input") for event in run.history().of(SIGNALED)]
    assert sent == [[number] for number in range(100)] + [[]]


@feature("H3")
def test_H03_signals_wait_for_their_handler(world: World) -> None:
    @workflow.defn(name="Late")
    class Late:
        @workflow.run
        async def run(self) -> list[int]:
            got: list[int] = []
            await workflow.sleep(10)
            early = len(got)
            workflow.set_signal_handler("put", got.append)
            await workflow.wait_condition(lambda: len(got) == 3)
            return [early, *got]

    world.serve([Late])
    run = world.start("Late")
    run.signal("put", 1)
    world.advance(5)
    run.signal("put", 2)
    world.advance(10)
    run.signal("put", 3)
    assert run.result() == [0, 1, 2, 3]


@feature("H4")
def test_H04_the_same_signal_twice(world: World) -> None:
    run = world.start("Ships")

    def send(request_id: str) -> None:
        world.service.signal_workflow_execution(
            SignalWorkflowExecutionRequest(
                namespace=NAMESPACE,
                workflow_execution=WorkflowExecution(workflow_id=run.id),
                signal_name="go",
                request_id=request_id,
            )
        )

    send("one")
    send("one")
    assert run.kinds().count(SIGNALED) == 1
    send("two")
    assert run.kinds().count(SIGNALED) == 2


@feature("H4")
def test_H04_the_same_signal_during_a_task(world: World) -> None:
    run = world.start("Ships")
    task = world.poll()
    for _ in range(2):
        world.service.signal_workflow_execution(
            SignalWorkflowExecutionRequest(
                namespace=NAMESPACE,
                workflow_execution=WorkflowExecution(workflow_id=run.id),
                signal_name="go",
                request_id="one",
            )
        )
    world.answer(task)
    assert run.kinds().count(SIGNALED) == 1


@feature("H5")
@pytest.mark.parametrize("limits", [{"signals": 5}])
def test_H05_so_many_and_no_more(world: World) -> None:
    assert DEFAULT_LIMITS.signals == 10_000
    run = world.start("Ships")
    for _ in range(3):
        run.signal("go")
    world.poll()
    for _ in range(2):
        run.signal("go")  # those that wait for the task count
    with pytest.raises(InvalidArgumentError, match="exceeded workflow execution limit for signal"):
        run.signal("go")
    assert run.kinds().count(SIGNALED) == 3
    assert run.status == "RUNNING"


@feature("H6")
def test_H06_signal_with_start(world: World) -> None:
    run = world.start("Ships", 7, start_signal="go", start_signal_args=[1])
    assert run.kinds() == [STARTED, SIGNALED, TASK]
    assert run.history()[0].values("input") == [7]
    assert run.history()[1].values("input") == [1]
    again = world.start("Ships", 8, id=run.id, start_signal="go", start_signal_args=[2])
    assert again.run_id == run.run_id
    assert run.kinds() == [STARTED, SIGNALED, TASK, SIGNALED]


@workflow.defn
class Sends:
    """Signals another workflow; its answer is how that failed."""

    @workflow.run
    async def run(self, workflow_id: str) -> str:
        other = workflow.get_external_workflow_handle(workflow_id or workflow.info().workflow_id)
        try:
            await other.signal("put", "hello")
        except ApplicationError as error:
            return error.message
        return "sent"


@feature("H7")
def test_H07_from_one_workflow_to_another(world: World) -> None:
    world.serve([Sends, Collects])
    other = world.start(Collects.run)
    run = world.start(Sends.run, other.id)
    assert run.result() == "sent"
    history = run.history()
    initiated = history.only(INITIATED)
    assert initiated["workflowExecution"]["workflowId"] == other.id
    told = history.only("EXTERNAL_WORKFLOW_EXECUTION_SIGNALED")
    assert told["initiatedEventId"] == str(initiated.id)
    assert history[told.id].kind == TASK
    signaled = other.history().only(SIGNALED)
    assert signaled.values("input") == ["hello"]
    sender = {"workflowId": run.id, "runId": run.run_id}
    assert signaled["externalWorkflowExecution"] == sender


@feature("H8")
@pytest.mark.parametrize("target", ["nobody", ""])
def test_H08_to_itself_or_to_nobody(world: World, target: str) -> None:
    world.serve([Sends])
    run = world.start(Sends.run, target)
    assert "not found" in run.result()
    failed = run.history().only("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED")
    assert failed["cause"] == NOT_FOUND
    assert failed["initiatedEventId"] == str(run.history().only(INITIATED).id)
    assert SIGNALED not in run.kinds()


@feature("H9")
def test_H09_a_query_leaves_no_event(world: World) -> None:
    run = collecting(world)
    run.signal(Collects.put, 1)
    world.settle()
    before = run.history()
    assert run.query(Collects.seen) == [1]
    assert run.history() == before


@feature("H10")
def test_H10_a_query_of_a_closed_run(world: World) -> None:
    run = collecting(world)
    run.signal(Collects.put, 1)
    run.signal(Collects.end)
    run.result()
    world.serve([Collects])  # another process, which has never seen the run
    before = run.history()
    assert run.query(Collects.seen) == [1]
    assert run.history() == before


@feature("H11")
def test_H11_a_query_sees_the_signals_before_it(world: World) -> None:
    run = collecting(world)
    run.signal(Collects.put, 1)
    run.signal(Collects.put, 2)
    assert run.query(Collects.seen) == [1, 2]


@feature("H12")
def test_H12_a_query_may_not_act(world: World) -> None:
    run = collecting(world)
    before = run.history()
    with pytest.raises(WorkflowQueryFailedError):
        run.query(Collects.meddles)
    assert run.history() == before
    assert run.pending_activities == []
    assert run.query(Collects.seen) == []


@feature("H13")
def test_H13_a_query_may_ask_for_a_status(world: World) -> None:
    not_open = {"reject_condition": QueryRejectCondition.NOT_OPEN}
    clean = {"reject_condition": QueryRejectCondition.NOT_COMPLETED_CLEANLY}
    run = collecting(world)
    assert run.query(Collects.seen, **not_open) == []
    run.signal(Collects.end)
    run.result()
    assert run.query(Collects.seen, **clean) == []
    with pytest.raises(WorkflowQueryRejectedError) as caught:
        run.query(Collects.seen, **not_open)
    assert caught.value.status is not None
    assert caught.value.status.name == "COMPLETED"
    failed = collecting(world)
    failed.terminate()
    with pytest.raises(WorkflowQueryRejectedError) as caught:
        failed.query(Collects.seen, **clean)
    assert caught.value.status is not None
    assert caught.value.status.name == "TERMINATED"


@feature("H14")
def test_H14_where_the_code_waits(world: World) -> None:
    run = collecting(world)
    text = run.query("__stack_trace")
    assert "await workflow.wait_condition(lambda: self.ended)" in text
    assert "test_h_signals_and_queries.py" in text


@feature("H23")
def test_H23_handlers_that_a_run_leaves_behind(world: World) -> None:
    @workflow.defn(name="Leaves")
    class Leaves:
        def __init__(self) -> None:
            self.ended = False

        @workflow.run
        async def run(self) -> None:
            await workflow.wait_condition(lambda: self.ended)

        @workflow.signal
        async def noted(self) -> None:
            await workflow.sleep(1000)

        @workflow.signal(unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON)
        async def ignored(self) -> None:
            await workflow.sleep(1000)

        @workflow.signal
        def end(self) -> None:
            self.ended = True

    world.serve([Leaves])
    run = world.start("Leaves")
    for name in ("noted", "ignored", "noted"):
        run.signal(name)
    run.signal("end")
    with pytest.warns(workflow.UnfinishedSignalHandlersWarning) as warned:
        world.settle()
    assert len(warned) == 1
    assert '[{"name": "noted", "count": 2}]' in str(warned[0].message)
    assert run.status == "COMPLETED"


@feature("H24")
def test_H24_handlers_change_places_only_where_they_wait(world: World) -> None:
    @workflow.defn(name="Locks")
    class Locks:
        def __init__(self) -> None:
            self.lock = asyncio.Lock()
            self.steps: list[str] = []

        @workflow.run
        async def run(self) -> list[str]:
            await workflow.wait_condition(lambda: len(self.steps) == 12)
            return self.steps

        @workflow.signal
        async def free(self, name: str) -> None:
            self.steps += [f"{name}1", f"{name}2"]  # nothing comes between these
            await workflow.sleep(1)
            self.steps.append(f"{name}3")

        @workflow.signal
        async def locked(self, name: str) -> None:
            async with self.lock:
                await self.free(name)

    world.serve([Locks])
    run = world.start("Locks")
    for handler, name in (("free", "a"), ("free", "b"), ("locked", "c"), ("locked", "d")):
        run.signal(handler, name)
    steps = run.result()
    assert steps[:6] == ["a1", "a2", "b1", "b2", "c1", "c2"]
    assert steps.index("b1") < steps.index("a3") < steps.index("b3")
    assert [step for step in steps if step[0] in "cd"] == ["c1", "c2", "c3", "d1", "d2", "d3"]


@feature("H25")
def test_H25_signals_come_before_the_first_line(world: World) -> None:
    @workflow.defn(name="Looks")
    class Looks:
        def __init__(self) -> None:
            self.got = ""

        @workflow.run
        async def run(self) -> str:
            return self.got

        @workflow.signal
        def put(self, what: str) -> None:
            self.got = what

    world.serve([Looks])
    run = world.start("Looks", start_signal="put", start_signal_args=["early"])
    assert run.result() == "early"
