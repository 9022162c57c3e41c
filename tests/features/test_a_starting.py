"""A. Starting a workflow."""

from tests.features import feature
from tests.features.worlds import World
from wfcore import workflow


@workflow.defn
class Greets:
    @workflow.run
    async def run(self, name: str) -> str:
        return f"hello {name}"


@feature("A1")
def test_A01_start_creates_the_run(world: World) -> None:
    run = world.start(Greets.run, "Ada")
    assert run.kinds() == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED"]
    assert run.status == "RUNNING"


@feature("A4")
def test_A04_one_worker_gets_the_task(world: World) -> None:
    run = world.start(Greets.run, "Ada")
    world.serve([Greets])
    assert run.result() == "hello Ada"
    assert run.kinds() == [
        "WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        "WORKFLOW_EXECUTION_COMPLETED",
    ]
