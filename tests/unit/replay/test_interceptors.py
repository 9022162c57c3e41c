"""Hooks see each call in and out, and may change it."""

from datetime import timedelta
from typing import Any

from tests.support.live_run import CONVERTER, LiveRun, payloads
from wfcore import workflow
from wfcore.exceptions import HistoryMismatchError
from wfcore.protocol import commands
from wfcore.protocol.payloads import Header
from wfcore.replay.instance import replay_history
from wfcore.replay.interceptors import (
    ExecuteWorkflowInput,
    HandleQueryInput,
    HandleSignalInput,
    HandleUpdateInput,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowOutboundInterceptor,
)

TEN = timedelta(seconds=10)
log: list[str] = []


class Outbound(WorkflowOutboundInterceptor):
    def start_activity(self, input: StartActivityInput) -> Any:  # noqa: A002
        log.append(f"activity {input.activity}")
        input.headers = {**input.headers, "trace": CONVERTER.to_payload("t-1")}
        return super().start_activity(input)

    def info(self) -> workflow.Info:
        log.append("info")
        return super().info()


class Inbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        log.append(f"init {workflow.info().workflow_type}")
        super().init(Outbound(outbound))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002
        log.append(f"run {list(input.headers)}")
        return f"<{await super().execute_workflow(input)}>"

    async def handle_signal(self, input: HandleSignalInput) -> None:  # noqa: A002
        log.append(f"signal {input.signal}")
        await super().handle_signal(input)

    async def handle_query(self, input: HandleQueryInput) -> Any:  # noqa: A002
        return f"{input.query}: {await super().handle_query(input)}"

    def handle_update_validator(self, input: HandleUpdateInput) -> None:  # noqa: A002
        log.append(f"validate {input.update}")
        super().handle_update_validator(input)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:  # noqa: A002
        return f"{input.id}: {await super().handle_update_handler(input)}"


class Second(WorkflowInboundInterceptor):
    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002
        log.append("second")
        return await super().execute_workflow(input)


@workflow.defn
class Hooked:
    @workflow.run
    async def run(self) -> str:
        assert workflow.extern_functions()["double"](2) == 4
        workflow.info()
        return await workflow.execute_activity("a", start_to_close_timeout=TEN, result_type=str)

    @workflow.signal
    def go(self) -> None:
        pass

    @workflow.query
    def ask(self) -> str:
        return "answer"

    @workflow.update
    def change(self) -> str:
        return "changed"

    @change.validator
    def check(self) -> None:
        pass


@workflow.defn(name="Hooked")
class HookedOtherwise:
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity("another", start_to_close_timeout=TEN)


def test_a_mismatch_is_located_in_the_workflow_not_in_a_hook() -> None:
    run = LiveRun(
        Hooked, extern_functions={"double": lambda n: 2 * n}, started={}, checks_replay=False
    )
    run.work()
    definition = workflow.WorkflowDefinition.must_from_class(HookedOtherwise)
    error = replay_history(definition, run.history, interceptors=[Inbound])
    assert isinstance(error, HistoryMismatchError)
    assert error.location.endswith("in HookedOtherwise.run")


def test_hooks_are_called_outermost_first() -> None:
    log.clear()
    run = LiveRun(
        Hooked,
        interceptors=[Inbound, Second],
        extern_functions={"double": lambda n: 2 * n},
        checks_replay=False,
        started={"header": Header(fields={"trace": CONVERTER.to_payload("t-0")})},
    )
    run.signal("go")
    (command,) = run.work()
    assert log == ["init Hooked", "signal go", "run ['trace']", "second", "info", "activity a"]
    attributes = command.attributes
    assert isinstance(attributes, commands.ScheduleActivityTask)
    assert attributes.header is not None
    assert attributes.header.fields["trace"].data == b'"t-1"'

    assert run.answer("ask") == "ask: answer"
    run.update("u1", "change")
    run.work()
    assert log[-1] == "validate change"
    run.complete_activity("1", "done")
    run.work()
    assert run.result() == "<done>"
    assert payloads("<done>") is not None
