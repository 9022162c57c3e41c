"""Exceptions to failures and back; Temporal's own converter is the measure."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
import temporalio.api.failure.v1 as temporal_api
import temporalio.converter as temporal
import temporalio.exceptions as temporal_exceptions
from google.protobuf.json_format import MessageToDict, ParseDict

from wfcore import exceptions
from wfcore.converter import (
    DataConverter,
    DefaultFailureConverter,
    DefaultFailureConverterWithEncodedAttributes,
    FailureConverter,
    PayloadConverter,
)
from wfcore.protocol import json_form
from wfcore.protocol.failures import Failure

Make = Callable[[ModuleType], BaseException]


class _Custom(Exception):  # noqa: N818 - what users write
    def __str__(self) -> str:
        return "in its own words"


def _activity_error(e: ModuleType) -> BaseException:
    error: BaseException = e.ActivityError(
        "Activity task failed",
        scheduled_event_id=5,
        started_event_id=6,
        identity="worker",
        activity_type="charge",
        activity_id="1",
        retry_state=e.RetryState.TIMEOUT,
    )
    error.__cause__ = e.ApplicationError("no funds", type="Payment")
    return error


def _chained(_: ModuleType) -> BaseException:
    error = RuntimeError("outer")
    error.__cause__ = ValueError("inner")
    error.__cause__.__cause__ = KeyError("innermost")
    return error


def _implicit(_: ModuleType) -> BaseException:
    error = RuntimeError("outer")
    error.__context__ = ValueError("not told")
    return error


def _implicit_application(e: ModuleType) -> BaseException:
    error: BaseException = e.ApplicationError("outer")
    error.__context__ = ValueError("told")
    return error


def _suppressed_application(e: ModuleType) -> BaseException:
    error = _implicit_application(e)
    error.__suppress_context__ = True
    return error


ERRORS: dict[str, Make] = {
    "plain": lambda e: ValueError("bad"),
    "own words": lambda e: _Custom(1, 2),
    "key error": lambda e: KeyError("k"),
    "no text": lambda e: RuntimeError(),
    "chained": _chained,
    "implicit": _implicit,
    "implicit, application": _implicit_application,
    "suppressed, application": _suppressed_application,
    "group": lambda e: ExceptionGroup("several", [ValueError("x")]),
    "asyncio cancelled": lambda e: asyncio.CancelledError("stop"),
    "asyncio timeout": lambda e: TimeoutError(),
    "application": lambda e: e.ApplicationError(
        "no funds",
        1,
        {"missing": 5},
        type="Payment",
        non_retryable=True,
        next_retry_delay=timedelta(seconds=3),
        category=e.ApplicationErrorCategory.BENIGN,
    ),
    "application, bare": lambda e: e.ApplicationError("no funds"),
    "cancelled": lambda e: e.CancelledError("stop", 1),
    "terminated": lambda e: e.TerminatedError("killed", 1),
    "timeout": lambda e: e.TimeoutError(
        "late", type=e.TimeoutType.HEARTBEAT, last_heartbeat_details=[1, "a"]
    ),
    "timeout, bare": lambda e: e.TimeoutError("late", type=None, last_heartbeat_details=[]),
    "server": lambda e: e.ServerError("broken", non_retryable=True),
    "activity": _activity_error,
    "child": lambda e: e.ChildWorkflowError(
        "Child Workflow execution failed",
        namespace="default",
        workflow_id="w",
        run_id="r",
        workflow_type="t",
        initiated_event_id=1,
        started_event_id=2,
        retry_state=None,
    ),
    "nexus": lambda e: e.NexusOperationError(
        "n", scheduled_event_id=1, endpoint="e", service="s", operation="o", operation_token="t"
    ),
    "failure": lambda e: e.FailureError("bare"),
    "already started": lambda e: e.WorkflowAlreadyStartedError("w", "t"),
}
_parametrize = pytest.mark.parametrize("make", ERRORS.values(), ids=ERRORS.keys())


def _raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as err:  # noqa: BLE001 - all kinds are tried
        return err


def _their_json(error: BaseException) -> dict[str, Any]:
    failure = temporal_api.Failure()
    temporal.FailureConverter.default.to_failure(error, temporal.PayloadConverter.default, failure)
    return MessageToDict(failure)


def _our_failure(error: BaseException) -> Failure:
    return FailureConverter.default.to_failure(error, PayloadConverter.default)


@_parametrize
def test_an_exception_becomes_the_failure_that_temporal_writes(make: Make) -> None:
    expected = _their_json(make(temporal_exceptions))
    assert json_form.to_json(_our_failure(make(exceptions))) == expected


def test_a_stack_trace_is_written_as_temporal_writes_it() -> None:
    error = _raised(ValueError("bad"))
    expected = _their_json(error)
    found = json_form.to_json(_our_failure(error))
    assert found == expected
    assert "raise error" in found["stackTrace"]


def _shape(error: BaseException | None) -> Any:
    """All that an error says, its cause included, in a form that compares across packages."""
    if error is None:
        return None
    fields = {
        name.lstrip("_"): int(value) if hasattr(value, "value") else value
        for name, value in vars(error).items()
        if name.lstrip("_") != "failure"
    }
    return (type(error).__name__, str(error), fields, _shape(error.__cause__))


@_parametrize
def test_a_failure_becomes_the_exception_that_temporal_makes(make: Make) -> None:
    recorded = _their_json(make(temporal_exceptions))
    theirs = temporal.FailureConverter.default.from_failure(
        ParseDict(recorded, temporal_api.Failure()), temporal.PayloadConverter.default
    )
    ours = FailureConverter.default.from_failure(
        json_form.from_json(Failure, recorded), PayloadConverter.default
    )
    assert _shape(ours) == _shape(theirs)


@pytest.mark.parametrize(
    "info",
    [
        "applicationFailureInfo",
        "timeoutFailureInfo",
        "canceledFailureInfo",
        "terminatedFailureInfo",
        "serverFailureInfo",
        "resetWorkflowFailureInfo",
        "activityFailureInfo",
        "childWorkflowExecutionFailureInfo",
        "nexusOperationExecutionFailureInfo",
        None,
    ],
)
def test_a_failure_without_a_text_gets_the_text_of_its_kind(info: str | None) -> None:
    recorded: dict[str, Any] = {info: {}} if info else {}
    theirs = temporal.FailureConverter.default.from_failure(
        ParseDict(recorded, temporal_api.Failure()), temporal.PayloadConverter.default
    )
    ours = FailureConverter.default.from_failure(
        json_form.from_json(Failure, recorded), PayloadConverter.default
    )
    assert _shape(ours) == _shape(theirs)


def test_an_error_that_was_read_is_written_as_it_was() -> None:
    recorded = _our_failure(_raised(exceptions.ApplicationError("no funds", type="Payment")))
    error = FailureConverter.default.from_failure(recorded, PayloadConverter.default)
    assert isinstance(error, exceptions.ApplicationError)
    assert error.failure is recorded
    assert _our_failure(_raised(error)) is recorded


def test_message_and_trace_can_be_put_into_a_payload() -> None:
    converter = DefaultFailureConverterWithEncodedAttributes()
    failure = converter.to_failure(_raised(_chained(exceptions)), PayloadConverter.default)
    shown = json.dumps(json_form.to_json(failure))
    assert failure.message == "Encoded failure"
    assert failure.cause is not None
    assert failure.cause.message == "Encoded failure"
    assert "outer" not in shown
    assert "raise error" not in shown
    assert failure.encoded_attributes is not None
    attributes = json.loads(failure.encoded_attributes.data)
    assert attributes["message"] == "outer"
    assert "raise error" in attributes["stack_trace"]
    # Whoever reads it needs no setting.
    error = DefaultFailureConverter().from_failure(failure, PayloadConverter.default)
    assert str(error) == "RuntimeError: outer"
    assert str(error.__cause__) == "ValueError: inner"


def test_an_error_about_a_file_whose_name_is_no_text_is_recorded_with_escapes() -> None:
    name = b"caf\xe9\0".decode(errors="surrogateescape")
    error = exceptions.ApplicationError(name, type=name)
    error.__cause__ = FileNotFoundError(2, "No such file", name)
    failure = _our_failure(_raised(error))
    assert failure.message == "caf\\udce9\0"
    assert failure.application_failure_info is not None
    assert failure.application_failure_info.type == "caf\\udce9\0"
    assert failure.cause is not None
    assert "caf\\udce9" in failure.cause.message
    assert json.dumps(json_form.to_json(failure), ensure_ascii=False).encode()


async def test_the_data_converter_converts_failures_too() -> None:
    converter = DataConverter.default
    failure = await converter.encode_failure(exceptions.ApplicationError("x", 1, type="T"))
    error = await converter.decode_failure(failure)
    assert isinstance(error, exceptions.ApplicationError)
    assert (error.type, list(error.details)) == ("T", [1])
