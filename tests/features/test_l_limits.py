"""L. Limits: where a run, a command or a call is refused for its size or number."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.features import asks, feature
from tests.features.worlds import World, do, values
from wfcore.exceptions import InvalidArgumentError
from wfcore.history.limits import DEFAULT_LIMITS
from wfcore.protocol import commands
from wfcore.protocol.common import WorkflowExecution, WorkflowType
from wfcore.protocol.message import Message

FAILED = "WORKFLOW_TASK_FAILED"
TERMINATED = "WORKFLOW_EXECUTION_TERMINATED"
CAUSE = "WORKFLOW_TASK_FAILED_CAUSE_"


@feature("L1")
def test_L01_any_number_of_open_runs(world: World) -> None:
    many = 10_000 if world.mode == "memory" else 1_000
    for _ in range(many):
        world.call_start("Ships")
    assert do(world.client.count_workflows("ExecutionStatus = 'Running'")).count == many
    last = world.start("Ships")
    assert last.status == "RUNNING"
    last.terminate()
    assert last.status == "TERMINATED"


@feature("L2")
@pytest.mark.parametrize("limits", [{"history_events": 20}])
def test_L02_a_history_has_so_many_events(world: World) -> None:
    assert DEFAULT_LIMITS.history_events == 51_200
    run = world.start("Ships")
    for _ in range(19):
        run.signal("go")
    assert run.status == "RUNNING"
    with pytest.raises(InvalidArgumentError, match="history count exceeds limit"):
        run.signal("go")
    assert run.status == "TERMINATED"
    end = run.history()[-1]
    assert end.kind == TERMINATED
    assert end["reason"] == "Workflow history count exceeds limit."
    assert len(run.history()) == 22  # the event that crossed the limit is kept


@feature("L3")
@pytest.mark.parametrize("limits", [{"history_bytes": 10_000}])
def test_L03_a_history_has_so_many_bytes(world: World) -> None:
    assert DEFAULT_LIMITS.history_bytes == 50 * 1024 * 1024
    run = world.start("Ships")
    sent = 0
    while run.describe().raw_info.history_size_bytes <= 10_000:
        run.signal("go", "x" * 1000)
        sent += 1
    assert 5 < sent <= 10
    assert run.status == "RUNNING"
    with pytest.raises(InvalidArgumentError, match="history size exceeds limit"):
        run.signal("go", "x" * 1000)
    assert run.status == "TERMINATED"
    assert run.history()[-1]["reason"] == "Workflow history size exceeds limit."
    assert run.kinds().count("WORKFLOW_EXECUTION_SIGNALED") == sent


def _child(name: str) -> Message:
    return commands.StartChildWorkflowExecution(
        workflow_id=name, workflow_type=WorkflowType(name="Child")
    )


def _signal(name: str) -> Message:
    return commands.SignalExternalWorkflowExecution(
        execution=WorkflowExecution(workflow_id=name), signal_name="go"
    )


def _cancel(name: str) -> Message:
    return commands.RequestCancelExternalWorkflowExecution(workflow_id=name)


FEW = {"pending_activities": 2, "pending_children": 2, "pending_signals": 2, "pending_cancels": 2}


@feature("L4")
@pytest.mark.parametrize("limits", [FEW])
@pytest.mark.parametrize(
    ("command", "cause"),
    [
        (asks.activity, "PENDING_ACTIVITIES_LIMIT_EXCEEDED"),
        (_child, "PENDING_CHILD_WORKFLOWS_LIMIT_EXCEEDED"),
        (_signal, "PENDING_SIGNALS_LIMIT_EXCEEDED"),
        (_cancel, "PENDING_REQUEST_CANCEL_LIMIT_EXCEEDED"),
    ],
)
def test_L04_so_many_of_a_kind_at_once(
    world: World, command: Callable[[str], Message], cause: str
) -> None:
    assert {name: getattr(DEFAULT_LIMITS, name) for name in FEW} == dict.fromkeys(FEW, 2_000)
    run = world.start("Ships")
    task = world.poll()
    three = [command(f"{world.queue}-{name}") for name in "abc"]
    with pytest.raises(InvalidArgumentError):
        world.answer(task, *three)
    assert run.history().only(FAILED)["cause"] == CAUSE + cause
    assert run.status == "RUNNING"
    world.answer_next(*three[:2])
    assert run.status == "RUNNING"


@feature("L4")
@pytest.mark.parametrize("limits", [FEW])
def test_L04_one_ends_and_it_goes_on(world: World) -> None:
    run = world.start("Ships")
    world.answer_next(asks.activity("a"), asks.activity("b"))
    run.signal("go")
    with pytest.raises(InvalidArgumentError):
        world.answer(world.poll(), asks.activity("c"))
    world.complete_activity(world.take_activity())
    world.answer_next(asks.activity("c"))
    assert len(run.pending_activities) == 2
    assert run.history().only(FAILED)["cause"] == CAUSE + "PENDING_ACTIVITIES_LIMIT_EXCEEDED"


LARGE = "x" * 2000


@feature("L7")
@pytest.mark.parametrize("limits", [{"blob_bytes": 1000}])
def test_L07_a_payload_that_a_call_brings(world: World) -> None:
    assert DEFAULT_LIMITS.blob_bytes == 2 * 1024 * 1024
    with pytest.raises(InvalidArgumentError):
        world.start("Ships", LARGE)
    assert world.runs() == []
    run = world.start("Ships")
    before = run.history()
    with pytest.raises(InvalidArgumentError):
        run.signal("go", LARGE)
    assert run.history() == before


@feature("L7")
@pytest.mark.parametrize("limits", [{"blob_bytes": 1000}])
@pytest.mark.parametrize(
    ("command", "words"),
    [
        (asks.activity("a", LARGE), "Input exceeds size limit"),
        (asks.complete(LARGE), "Result exceeds size limit"),
        (asks.go_on(LARGE), "Input exceeds size limit"),
        (
            commands.RecordMarker(marker_name="m", details={"data": values(LARGE)}),
            "Details exceeds size limit",
        ),
    ],
)
def test_L07_a_payload_that_a_command_brings(world: World, command: Any, words: str) -> None:
    run = world.start("Ships")
    task = world.poll()
    with pytest.raises(InvalidArgumentError):
        world.answer(task, command)
    assert run.status == "TERMINATED"
    failed, end = run.history()[-2:]
    assert (failed.kind, end.kind) == (FAILED, TERMINATED)
    assert words in end["reason"]
    assert end["identity"] == "history-service"


@feature("L8")
def test_L08_so_many_events_wait_for_a_task(world: World) -> None:
    run = world.start("Ships")
    task = world.poll()
    for _ in range(100):
        run.signal("go")
    assert run.kinds()[-1] == "WORKFLOW_TASK_STARTED"
    run.signal("one more")
    history = run.history()
    failed = history.only(FAILED)
    assert failed["cause"] == CAUSE + "FORCE_CLOSE_COMMAND"
    assert len(history.of("WORKFLOW_EXECUTION_SIGNALED")) == 101
    assert run.status == "RUNNING"
    with pytest.raises(Exception, match="not found"):
        world.answer(task)
    world.answer_next(asks.complete())
    assert run.status == "COMPLETED"


@feature("L8")
@pytest.mark.parametrize("limits", [{"buffered_bytes": 5000}])
def test_L08_so_many_bytes_wait_for_a_task(world: World) -> None:
    run = world.start("Ships")
    world.poll()
    for _ in range(6):
        run.signal("go", "x" * 1000)
    assert run.history().of(FAILED)[0]["cause"] == CAUSE + "FORCE_CLOSE_COMMAND"


@feature("L9")
def test_L09_ids_have_a_length(world: World) -> None:
    longest = "i" * 1000
    run = world.start("Ships", id=longest)
    assert run.status == "RUNNING"
    with pytest.raises(InvalidArgumentError):
        world.start("Ships", id="i" * 1001)
    with pytest.raises(InvalidArgumentError):
        world.start("S" * 1001)
    with pytest.raises(InvalidArgumentError):
        run.signal("s" * 1001)
    with pytest.raises(InvalidArgumentError):
        world.answer(world.poll(), asks.activity("a" * 1001))
    assert run.history().only(FAILED)["cause"] == CAUSE + "BAD_SCHEDULE_ACTIVITY_ATTRIBUTES"
    assert len(world.runs()) == 1
