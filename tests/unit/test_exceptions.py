"""The tree of errors: what they hold, what they say, and how gRPC shows them."""

import asyncio
import inspect
import json
from datetime import timedelta
from typing import Any

import pytest

from wfcore import exceptions
from wfcore.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
    CompleteAsyncError,
    InvalidArgumentError,
    MultiOperationExecutionError,
    NamespaceNotFoundError,
    NotFoundError,
    PayloadTooLargeError,
    ResourceExhaustedCause,
    ResourceExhaustedError,
    RPCError,
    RPCStatusCode,
    StartContendedError,
    TemporalError,
    TransactionAliasError,
    UnavailableError,
    WaitInsideTransactionError,
    WorkflowExecutionAlreadyStartedError,
    is_cancelled_exception,
)


def _activity_error(cause: BaseException | None) -> ActivityError:
    error = ActivityError(
        "Activity task failed",
        scheduled_event_id=5,
        started_event_id=6,
        identity="worker",
        activity_type="charge",
        activity_id="1",
        retry_state=None,
    )
    error.__cause__ = cause
    return error


def test_every_error_but_the_one_that_must_not_be_swallowed_is_in_one_tree() -> None:
    classes = [
        value
        for value in vars(exceptions).values()
        if inspect.isclass(value) and issubclass(value, BaseException)
    ]
    assert [c for c in classes if not issubclass(c, TemporalError)] == [CompleteAsyncError]
    assert not issubclass(CompleteAsyncError, Exception)


def test_an_application_error_shows_its_type_before_its_message() -> None:
    error = ApplicationError("no funds", {"missing": 5}, type="Payment", non_retryable=True)
    assert str(error) == "Payment: no funds"
    assert error.message == "no funds"
    assert error.details == ({"missing": 5},)
    assert str(ApplicationError("no funds")) == "no funds"


def test_the_cause_is_what_the_error_was_raised_from() -> None:
    cause = ValueError("x")
    assert _activity_error(cause).cause is cause
    assert _activity_error(None).cause is None


@pytest.mark.parametrize(
    ("error", "cancelled"),
    [
        (asyncio.CancelledError(), True),
        (CancelledError(), True),
        (_activity_error(CancelledError()), True),
        (_activity_error(ApplicationError("x")), False),
        (_activity_error(None), False),
        (ApplicationError("x"), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_cancellation_is_known_in_all_its_forms(error: BaseException, cancelled: bool) -> None:
    assert is_cancelled_exception(error) is cancelled


def test_a_childs_cancellation_is_cancellation() -> None:
    error = ChildWorkflowError(
        "Child Workflow execution failed",
        namespace="default",
        workflow_id="w",
        run_id="r",
        workflow_type="t",
        initiated_event_id=1,
        started_event_id=2,
        retry_state=None,
    )
    error.__cause__ = CancelledError()
    assert is_cancelled_exception(error)


@pytest.mark.parametrize(
    ("error", "code", "detail_type", "detail"),
    [
        (InvalidArgumentError("m"), "INVALID_ARGUMENT", None, {}),
        (NotFoundError("m"), "NOT_FOUND", "NotFoundFailure", {}),
        (
            NamespaceNotFoundError("nowhere"),
            "NOT_FOUND",
            "NamespaceNotFoundFailure",
            {"namespace": "nowhere"},
        ),
        (
            WorkflowExecutionAlreadyStartedError(
                "m", start_request_id="q", run_id="r", first_execution_run_id="f"
            ),
            "ALREADY_EXISTS",
            "WorkflowExecutionAlreadyStartedFailure",
            {"startRequestId": "q", "runId": "r", "firstExecutionRunId": "f"},
        ),
        (
            exceptions.WorkflowNotReadyError("m"),
            "FAILED_PRECONDITION",
            "WorkflowNotReadyFailure",
            {},
        ),
        (exceptions.QueryFailedError("m"), "INVALID_ARGUMENT", "QueryFailedFailure", {}),
        (
            ResourceExhaustedError("m", ResourceExhaustedCause.BUSY_WORKFLOW),
            "RESOURCE_EXHAUSTED",
            "ResourceExhaustedFailure",
            {
                "cause": "RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW",
                "scope": "RESOURCE_EXHAUSTED_SCOPE_NAMESPACE",
            },
        ),
        (
            exceptions.PermissionDeniedError("m"),
            "PERMISSION_DENIED",
            "PermissionDeniedFailure",
            {},
        ),
        (exceptions.UnimplementedError("m"), "UNIMPLEMENTED", None, {}),
        (exceptions.InternalError("m"), "INTERNAL", None, {}),
        (exceptions.AbortedError("m"), "ABORTED", None, {}),
        (exceptions.DeadlineExceededError("m"), "DEADLINE_EXCEEDED", None, {}),
    ],
)
def test_a_service_error_has_the_code_and_detail_of_the_recorded_server(
    error: RPCError, code: str, detail_type: str | None, detail: dict[str, Any]
) -> None:
    assert error.status is RPCStatusCode[code]
    assert error.detail_type == detail_type
    assert error.detail == detail
    status = error.grpc_status
    assert (status.code, status.message) == (int(error.status), error.message)
    if detail_type is None:
        assert status.details == ()
    else:
        prefix = "type.googleapis.com/temporal.api.errordetails.v1."
        assert status.details == ({"@type": prefix + detail_type, **detail},)


def test_update_with_start_reports_both_operations() -> None:
    statuses = [{"code": 3, "message": "CronSchedule is not allowed."}, {"code": 10}]
    error = MultiOperationExecutionError(
        "Update-with-Start could not be executed.", RPCStatusCode.INVALID_ARGUMENT, statuses
    )
    assert error.status is RPCStatusCode.INVALID_ARGUMENT
    assert json.loads(json.dumps(error.detail)) == {"statuses": statuses}


def test_a_contended_start_is_worth_repeating() -> None:
    error = StartContendedError("order-1", timedelta(seconds=5))
    assert isinstance(error, UnavailableError)
    assert "'order-1'" in str(error)
    assert "5 s" in str(error)
    assert "nothing was recorded" in str(error)


def test_texts_say_what_to_do() -> None:
    assert "ATOMIC_REQUESTS" in str(WaitInsideTransactionError("execute_workflow"))
    assert "detached=True" in str(TransactionAliasError("other", "default"))
    too_large = PayloadTooLargeError("Activity result", size_bytes=3_000_000, limit_bytes=2_097_152)
    assert "3,000,000 bytes, the limit is 2,097,152" in str(too_large)
    assert "pass a reference" in str(too_large)
