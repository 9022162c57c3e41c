"""Which errors fail the workflow, and which only the workflow task."""

from typing import Any

import pytest

from tests.support.live_run import LiveRun, asked
from wfcore import workflow
from wfcore.converter import DataConverter, DefaultPayloadConverter
from wfcore.exceptions import ApplicationError
from wfcore.protocol.enums import WorkflowTaskFailedCause
from wfcore.protocol.payloads import Payload


class ShopError(Exception):
    pass


@workflow.defn(failure_exception_types=[ShopError])
class Raises:
    @workflow.run
    async def run(self, what: str) -> object:
        if what == "application":
            try:
                raise ValueError("inner")
            except ValueError as error:
                raise ApplicationError(
                    "outer", {"code": 7}, type="T", non_retryable=True
                ) from error
        if what == "timeout":
            raise TimeoutError("too late")
        if what == "listed":
            raise ShopError("sold out")
        if what == "exit":
            raise SystemExit(3)
        if what == "unserializable":
            return object()
        raise KeyError("bug")

    @workflow.query
    def is_failure(self) -> list[bool]:
        found = (ShopError(), ApplicationError("a"), TimeoutError(), KeyError())
        return [workflow.is_failure_exception(error) for error in found]


@pytest.mark.parametrize(
    ("what", "kind"), [("application", "T"), ("timeout", "TimeoutError"), ("listed", "ShopError")]
)
def test_failures_fail_the_workflow(what: str, kind: str) -> None:
    run = LiveRun(Raises, what)
    assert asked(run.work()) == ["FAIL_WORKFLOW_EXECUTION"]
    info = run.failure().application_failure_info
    assert info is not None
    assert info.type == kind


def test_a_failure_keeps_details_and_causes() -> None:
    run = LiveRun(Raises, "application")
    run.work()
    failure = run.failure()
    assert failure.application_failure_info is not None
    assert failure.application_failure_info.non_retryable
    assert failure.application_failure_info.details is not None
    assert failure.application_failure_info.details.payloads[0].data == b'{"code":7}'
    assert failure.cause is not None
    assert failure.cause.message == "inner"
    assert "raise ApplicationError" in failure.stack_trace


@pytest.mark.parametrize("what", ["bug", "exit", "unserializable"])
def test_other_errors_fail_the_task(what: str) -> None:
    run = LiveRun(Raises, what)
    result = run.fail()
    assert result.cause is WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE
    assert result.commands == ()
    assert result.failure is not None


def test_a_worker_may_list_more() -> None:
    run = LiveRun(Raises, "bug", failure_exception_types=[KeyError])
    assert asked(run.work()) == ["FAIL_WORKFLOW_EXECUTION"]


def test_the_code_can_ask() -> None:
    @workflow.defn(failure_exception_types=[ShopError])
    class Asks:
        @workflow.run
        async def run(self) -> list[bool]:
            found = (ShopError(), ApplicationError("a"), TimeoutError(), KeyError())
            return [workflow.is_failure_exception(error) for error in found]

    run = LiveRun(Asks)
    run.work()
    assert run.result() == [True, True, True, False]


@workflow.defn
class Takes:
    @workflow.run
    async def run(self, number: int) -> int:
        return number


def test_arguments_that_do_not_decode_fail_the_task() -> None:
    result = LiveRun(Takes, {"no": "number"}).fail()
    assert isinstance(result.error, RuntimeError)
    assert "Failed decoding arguments" in str(result.error)


def test_arguments_that_do_not_decode_can_fail_the_workflow() -> None:
    run = LiveRun(Takes, {"no": "number"}, failure_exception_types=[Exception])
    assert asked(run.work()) == ["FAIL_WORKFLOW_EXECUTION"]


def test_an_error_in_the_constructor_fails_the_task() -> None:
    @workflow.defn
    class Broken:
        def __init__(self) -> None:
            raise KeyError("bug")

        @workflow.run
        async def run(self) -> None:
            pass

    assert isinstance(LiveRun(Broken).fail().error, KeyError)


def test_a_condition_that_raises_fails_the_task() -> None:
    @workflow.defn
    class Broken:
        @workflow.run
        async def run(self) -> None:
            await workflow.wait_condition(lambda: {}["missing"])

    assert isinstance(LiveRun(Broken).fail().error, KeyError)


def test_a_failed_task_can_be_tried_again_from_the_start() -> None:
    @workflow.defn
    class Stumbles:
        attempts = 0

        @workflow.run
        async def run(self) -> str:
            await workflow.sleep(1)
            Stumbles.attempts += 1
            if Stumbles.attempts == 1:
                raise KeyError("bug")
            return "fixed"

    run = LiveRun(Stumbles)
    run.work()
    run.fire("1")
    run.fail()
    run.work()
    assert run.result() == "fixed"


class BrokenConverter(DefaultPayloadConverter):
    """Can't read what it wrote."""

    def from_payloads(self, payloads: Any, type_hints: Any = None) -> list[Any]:
        if any(payload.data == b'"poison"' for payload in payloads):
            raise ValueError("poisoned")
        return super().from_payloads(payloads, type_hints)


def test_a_result_that_does_not_decode_fails_the_task() -> None:
    @workflow.defn
    class Calls:
        @workflow.run
        async def run(self) -> object:
            return await workflow.execute_activity(
                "a", start_to_close_timeout=workflow.info().task_timeout
            )

    run = LiveRun(Calls, data_converter=DataConverter(payload_converter_class=BrokenConverter))
    run.work()
    run.complete_activity("1", "poison")
    error = run.fail().error
    assert isinstance(error, RuntimeError)
    assert str(error.__cause__) == "poisoned"
    assert Payload(data=b"") == Payload()
