"""Child workflows and other workflows: starts, ends, signals, cancel requests."""

import asyncio
from typing import Any

import pytest

from tests.support.live_run import LiveRun, asked, payloads
from wfcore import workflow
from wfcore.exceptions import (
    ApplicationError,
    ChildWorkflowError,
    WorkflowAlreadyStartedError,
)
from wfcore.protocol import commands, events
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import (
    CancelExternalWorkflowExecutionFailedCause,
    RetryState,
    SignalExternalWorkflowExecutionFailedCause,
    StartChildWorkflowExecutionFailedCause,
)
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.workflow import ChildWorkflowCancellationType

CHILD_RUN = "01a22cd5-0000-7000-8000-000000000001"


@workflow.defn
class Child:
    @workflow.run
    async def run(self, text: str) -> str:
        return text

    @workflow.signal
    def poke(self, text: str) -> None:
        pass


@workflow.defn
class Parent:
    @workflow.run
    async def run(self) -> str:
        try:
            return await workflow.execute_child_workflow(Child.run, "abc", id="child-1")
        except ChildWorkflowError as error:
            return f"{error.message}: {error.cause!r}"
        except WorkflowAlreadyStartedError as error:
            return f"taken: {error.workflow_id}"


def initiated(run: LiveRun) -> int:
    return run.event_of(events.StartChildWorkflowExecutionInitiated).event_id


def start_child(run: LiveRun) -> int:
    started = run.add(
        events.ChildWorkflowExecutionStarted(
            initiated_event_id=initiated(run),
            workflow_execution=WorkflowExecution(workflow_id="child-1", run_id=CHILD_RUN),
        )
    )
    return started.event_id


def close_child(run: LiveRun, kind: type[Any], **fields: Any) -> None:
    run.add(kind(initiated_event_id=initiated(run), started_event_id=6, **fields))


def test_a_child_is_started_and_its_result_returned() -> None:
    run = LiveRun(Parent)
    (command,) = run.work()
    attributes = command.attributes
    assert isinstance(attributes, commands.StartChildWorkflowExecution)
    assert (attributes.workflow_id, attributes.input) == ("child-1", payloads("abc"))
    assert attributes.workflow_type is not None
    assert attributes.workflow_type.name == "Child"
    start_child(run)
    assert run.work() == []
    close_child(run, events.ChildWorkflowExecutionCompleted, result=payloads("ABC"))
    run.work()
    assert run.result() == "ABC"


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        (
            events.ChildWorkflowExecutionFailed,
            {
                "failure": Failure(
                    message="no", application_failure_info=ApplicationFailureInfo(type="T")
                ),
                "retry_state": RetryState.RETRY_POLICY_NOT_SET,
            },
            "Child Workflow execution failed: ApplicationError('T: no')",
        ),
        (
            events.ChildWorkflowExecutionTimedOut,
            {},
            "Child Workflow execution timed out: TimeoutError('Timed out')",
        ),
        (
            events.ChildWorkflowExecutionTerminated,
            {},
            "Child Workflow execution terminated: TerminatedError('Terminated')",
        ),
        (
            events.ChildWorkflowExecutionCanceled,
            {},
            "Child Workflow execution cancelled: CancelledError('Cancelled')",
        ),
    ],
)
def test_each_end_of_a_child_is_an_error_of_its_own(
    kind: type[Any], fields: dict[str, Any], said: str
) -> None:
    run = LiveRun(Parent)
    run.work()
    start_child(run)
    close_child(run, kind, **fields)
    run.work()
    assert run.result() == said


def test_an_id_in_use_is_told_at_the_start() -> None:
    run = LiveRun(Parent)
    run.work()
    run.add(
        events.StartChildWorkflowExecutionFailed(
            initiated_event_id=initiated(run),
            cause=StartChildWorkflowExecutionFailedCause.WORKFLOW_ALREADY_EXISTS,
        )
    )
    run.work()
    assert run.result() == "taken: child-1"


def test_a_child_without_id_gets_the_same_one_on_replay() -> None:
    @workflow.defn
    class Nameless:
        @workflow.run
        async def run(self) -> str:
            child = await workflow.start_child_workflow("Child", "x")
            return child.id

    run = LiveRun(Nameless)
    (command,) = run.work()
    attributes = command.attributes
    assert isinstance(attributes, commands.StartChildWorkflowExecution)
    start_child(run)
    run.work()
    assert run.result() == attributes.workflow_id


@workflow.defn
class Cancelling:
    """Cancels its child on a signal."""

    def __init__(self) -> None:
        self.stop = False

    @workflow.run
    async def run(self, kind: int) -> str:
        child = await workflow.start_child_workflow(
            Child.run,
            "x",
            id="child-1",
            cancellation_type=ChildWorkflowCancellationType(kind),
        )
        await workflow.wait_condition(lambda: self.stop)
        child.cancel("enough")
        try:
            return await child
        except ChildWorkflowError as error:
            return f"{error.message}: {type(error.cause).__name__}"

    @workflow.signal
    def halt(self) -> None:
        self.stop = True


def cancelling(kind: ChildWorkflowCancellationType) -> LiveRun:
    run = LiveRun(Cancelling, int(kind))
    run.work()
    start_child(run)
    run.work()
    run.signal("halt")
    return run


CANCELLED = "Child Workflow execution cancelled: CancelledError"


def test_try_cancel_asks_the_child_and_goes_on() -> None:
    run = cancelling(ChildWorkflowCancellationType.TRY_CANCEL)
    found = run.work()
    assert asked(found) == [
        "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION",
        "COMPLETE_WORKFLOW_EXECUTION",
    ]
    assert found[0].attributes == commands.RequestCancelExternalWorkflowExecution(
        namespace="test",
        workflow_id="child-1",
        run_id=CHILD_RUN,
        child_workflow_only=True,
        reason="enough",
    )
    assert run.result() == CANCELLED


def test_abandon_goes_on_without_a_command() -> None:
    run = cancelling(ChildWorkflowCancellationType.ABANDON)
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == CANCELLED


@pytest.mark.parametrize(
    "kind",
    [
        ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        ChildWorkflowCancellationType.WAIT_CANCELLATION_REQUESTED,
    ],
)
def test_waiting_ends_with_the_child(kind: ChildWorkflowCancellationType) -> None:
    run = cancelling(kind)
    assert asked(run.work()) == ["REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION"]
    request = run.event_of(events.RequestCancelExternalWorkflowExecutionInitiated)
    run.add(events.ExternalWorkflowExecutionCancelRequested(initiated_event_id=request.event_id))
    assert run.work() == []
    close_child(run, events.ChildWorkflowExecutionCanceled)
    run.work()
    assert run.result() == CANCELLED


def test_cancelled_before_it_was_sent_a_child_leaves_no_trace() -> None:
    @workflow.defn
    class Hasty:
        @workflow.run
        async def run(self) -> str:
            task = asyncio.create_task(workflow.start_child_workflow(Child.run, "x", id="c"))
            await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except ChildWorkflowError as error:
                return error.message
            return "?"

    run = LiveRun(Hasty)
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == "Child Workflow Execution cancelled before scheduled: "


# --- other workflows ----------------------------------------------------------------------------


@workflow.defn
class Caller:
    """Signals or cancels another workflow, or its own child."""

    @workflow.run
    async def run(self, what: str) -> str:
        other = workflow.get_external_workflow_handle_for(Child.run, "other", run_id="")
        try:
            if what == "signal":
                await other.signal(Child.poke, "hi")
            elif what == "cancel":
                await other.cancel(reason="stop it")
            else:
                child = await workflow.start_child_workflow(Child.run, "x", id="child-1")
                await child.signal(Child.poke, "hi")
        except ApplicationError as error:
            return f"{error.type}: {error.message}"
        return "delivered"


def test_a_signal_waits_for_its_delivery() -> None:
    run = LiveRun(Caller, "signal")
    (command,) = run.work()
    assert command.attributes == commands.SignalExternalWorkflowExecution(
        namespace="test",
        execution=WorkflowExecution(workflow_id="other"),
        signal_name="poke",
        input=payloads("hi"),
    )
    run.add(events.ExternalWorkflowExecutionSignaled(initiated_event_id=5))
    run.work()
    assert run.result() == "delivered"


def test_a_signal_to_nobody_is_an_application_error() -> None:
    run = LiveRun(Caller, "signal")
    run.work()
    run.add(
        events.SignalExternalWorkflowExecutionFailed(
            initiated_event_id=5,
            cause=SignalExternalWorkflowExecutionFailedCause.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND,
        )
    )
    run.work()
    assert run.result() == (
        "ExternalWorkflowExecutionNotFound: "
        "Unable to signal external workflow because it was not found"
    )


def test_a_cancel_request_waits_for_its_delivery() -> None:
    run = LiveRun(Caller, "cancel")
    (command,) = run.work()
    assert command.attributes == commands.RequestCancelExternalWorkflowExecution(
        namespace="test",
        workflow_id="other",
        reason=f"Cancel requested by workflow with run id {run.execution.run_id} "
        "with reason: stop it",
    )
    run.add(
        events.RequestCancelExternalWorkflowExecutionFailed(
            initiated_event_id=5,
            cause=CancelExternalWorkflowExecutionFailedCause.NAMESPACE_NOT_FOUND,
        )
    )
    run.work()
    assert run.result() == (
        "NamespaceNotFound: Unable to cancel external workflow because its namespace was not found"
    )


def test_a_signal_to_a_child_reaches_that_child_only() -> None:
    run = LiveRun(Caller, "child")
    run.work()
    start_child(run)
    (command,) = run.work()
    attributes = command.attributes
    assert isinstance(attributes, commands.SignalExternalWorkflowExecution)
    assert attributes.child_workflow_only
    assert attributes.execution == WorkflowExecution(workflow_id="child-1")


def test_a_signal_that_was_not_sent_yet_can_be_cancelled() -> None:
    @workflow.defn
    class Hasty:
        @workflow.run
        async def run(self) -> str:
            other = workflow.get_external_workflow_handle("other")
            task = asyncio.create_task(other.signal("go"))
            await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except Exception as error:  # noqa: BLE001
                return str(error)
            return "?"

    run = LiveRun(Hasty)
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == "Signal was cancelled before being sent"
