"""Exceptions to recorded failures and back; causes and stack traces are kept.

Our values are frozen, so `to_failure` returns the failure where Temporal's converter fills in an
empty one that it is given.
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from wfcore import exceptions
from wfcore.converter._payload_converters import PayloadConverter
from wfcore.protocol import enums
from wfcore.protocol.common import ActivityType, WorkflowExecution, WorkflowType
from wfcore.protocol.failures import (
    ActivityFailureInfo,
    ApplicationFailureInfo,
    CanceledFailureInfo,
    ChildWorkflowExecutionFailureInfo,
    Failure,
    NexusOperationFailureInfo,
    ServerFailureInfo,
    TerminatedFailureInfo,
    TimeoutFailureInfo,
)
from wfcore.protocol.payloads import Payload, Payloads
from wfcore.protocol.wellformed import cleaned


class FailureConverter(ABC):
    """Turns exceptions into failures and back; works without waiting."""

    default: ClassVar[FailureConverter]

    @abstractmethod
    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter) -> Failure:
        """The failure that records an exception."""

    @abstractmethod
    def from_failure(self, failure: Failure, payload_converter: PayloadConverter) -> BaseException:
        """The exception that a failure records, with its causes."""


class DefaultFailureConverter(FailureConverter):
    """Keeps this package's errors as they are; any other becomes an application failure.

    Args:
        encode_common_attributes: put message and stack trace into a payload, so that a codec
            can encrypt them.
    """

    def __init__(self, *, encode_common_attributes: bool = False) -> None:
        self._encode_common_attributes = encode_common_attributes

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter) -> Failure:
        """The failure that records an exception and those that caused it.

        An error that was read from a failure gives that very failure again. The type of any
        exception from outside this package is its class's name. Texts that can't be stored, as of
        a file whose name is no UTF-8, are written with escapes: an error must be recorded.
        """
        if isinstance(exception, exceptions.FailureError) and exception.failure is not None:
            kept: Failure = exception.failure
            return kept
        fields: dict[str, Any] = {}
        if exception.__traceback__ is not None:
            fields["stack_trace"] = cleaned("\n".join(traceback.format_tb(exception.__traceback__)))
        cause = exception.__cause__
        is_failure = isinstance(exception, exceptions.FailureError)
        if cause is None and is_failure and not exception.__suppress_context__:
            cause = exception.__context__  # Temporal tells it of its own errors only
        if cause is not None:
            fields["cause"] = self.to_failure(cause, payload_converter)
        if isinstance(exception, exceptions.FailureError):
            fields["message"] = cleaned(str(exception.message))
            fields |= _info_fields(exception, payload_converter)
        else:
            fields["message"] = cleaned(str(exception))
            fields["application_failure_info"] = ApplicationFailureInfo(
                type=type(exception).__name__
            )
        if self._encode_common_attributes:
            fields["encoded_attributes"] = payload_converter.to_payload(
                {"message": fields["message"], "stack_trace": fields.pop("stack_trace", "")}
            )
            fields["message"] = "Encoded failure"
        return Failure(**fields)

    def from_failure(self, failure: Failure, payload_converter: PayloadConverter) -> BaseException:
        """The exception that a failure records; its `failure` is the one given."""
        shown = failure
        if failure.encoded_attributes is not None:
            shown = _with_encoded_attributes(failure, payload_converter)
        error = _error(shown, payload_converter)
        error.failure = failure
        if failure.cause is not None:
            error.__cause__ = self.from_failure(failure.cause, payload_converter)
        return error


class DefaultFailureConverterWithEncodedAttributes(DefaultFailureConverter):
    """The default one, with message and stack trace in a payload."""

    def __init__(self) -> None:
        super().__init__(encode_common_attributes=True)


FailureConverter.default = DefaultFailureConverter()


def _with_encoded_attributes(failure: Failure, payload_converter: PayloadConverter) -> Failure:
    payload: Payload | None = failure.encoded_attributes
    if payload is None:
        return failure
    attributes = payload_converter.from_payload(payload)
    if not isinstance(attributes, dict):
        return failure
    found = {
        name: attributes[name]
        for name in ("message", "stack_trace")
        if isinstance(attributes.get(name), str)
    }
    return msgspec.structs.replace(failure, **found)


def _payloads(values: Sequence[Any], payload_converter: PayloadConverter) -> Payloads | None:
    return payload_converter.to_payloads_wrapper(values) if values else None


def _info_fields(
    error: exceptions.FailureError, payload_converter: PayloadConverter
) -> dict[str, Any]:
    """The one info field that says of what kind the error is; none for a bare `FailureError`."""
    match error:
        case exceptions.ApplicationError():
            return {
                "application_failure_info": ApplicationFailureInfo(
                    type=cleaned(error.type or ""),
                    non_retryable=error.non_retryable,
                    details=_payloads(error.details, payload_converter),
                    next_retry_delay=error.next_retry_delay,
                    category=enums.ApplicationErrorCategory(error.category),
                )
            }
        case exceptions.TimeoutError():
            return {
                "timeout_failure_info": TimeoutFailureInfo(
                    timeout_type=enums.TimeoutType(error.type or 0),
                    last_heartbeat_details=_payloads(
                        error.last_heartbeat_details, payload_converter
                    ),
                )
            }
        case exceptions.CancelledError():
            details = _payloads(error.details, payload_converter)
            return {"canceled_failure_info": CanceledFailureInfo(details=details)}
        case exceptions.TerminatedError():
            return {"terminated_failure_info": TerminatedFailureInfo()}
        case exceptions.ServerError():
            info = ServerFailureInfo(non_retryable=error.non_retryable)
            return {"server_failure_info": info}
        case exceptions.ActivityError():
            return {
                "activity_failure_info": ActivityFailureInfo(
                    scheduled_event_id=error.scheduled_event_id,
                    started_event_id=error.started_event_id,
                    identity=error.identity,
                    activity_type=ActivityType(name=error.activity_type),
                    activity_id=error.activity_id,
                    retry_state=enums.RetryState(error.retry_state or 0),
                )
            }
        case exceptions.ChildWorkflowError():
            return {
                "child_workflow_execution_failure_info": ChildWorkflowExecutionFailureInfo(
                    namespace=error.namespace,
                    workflow_execution=WorkflowExecution(
                        workflow_id=error.workflow_id, run_id=error.run_id
                    ),
                    workflow_type=WorkflowType(name=error.workflow_type),
                    initiated_event_id=error.initiated_event_id,
                    started_event_id=error.started_event_id,
                    retry_state=enums.RetryState(error.retry_state or 0),
                )
            }
        case exceptions.NexusOperationError():
            return {
                "nexus_operation_execution_failure_info": NexusOperationFailureInfo(
                    scheduled_event_id=error.scheduled_event_id,
                    endpoint=error.endpoint,
                    service=error.service,
                    operation=error.operation,
                    operation_token=error.operation_token,
                )
            }
    return {}


def _error(failure: Failure, payload_converter: PayloadConverter) -> exceptions.FailureError:
    """The error of a failure's own kind, without its cause."""
    message = failure.message
    if (app := failure.application_failure_info) is not None:
        return exceptions.ApplicationError(
            message or "Application error",
            *payload_converter.from_payloads_wrapper(app.details),
            type=app.type or None,
            non_retryable=app.non_retryable,
            next_retry_delay=app.next_retry_delay,
            category=exceptions.ApplicationErrorCategory(app.category),
        )
    if (timeout := failure.timeout_failure_info) is not None:
        return exceptions.TimeoutError(
            message or "Timeout",
            type=exceptions.TimeoutType(timeout.timeout_type) if timeout.timeout_type else None,
            last_heartbeat_details=payload_converter.from_payloads_wrapper(
                timeout.last_heartbeat_details
            ),
        )
    if (cancelled := failure.canceled_failure_info) is not None:
        return exceptions.CancelledError(
            message or "Cancelled", *payload_converter.from_payloads_wrapper(cancelled.details)
        )
    if failure.terminated_failure_info is not None:
        return exceptions.TerminatedError(message or "Terminated")
    if (server := failure.server_failure_info) is not None:
        return exceptions.ServerError(message or "Server error", non_retryable=server.non_retryable)
    return _error_of_call(failure)


def _error_of_call(failure: Failure) -> exceptions.FailureError:
    """The error of something that a workflow called."""
    message = failure.message
    if (activity := failure.activity_failure_info) is not None:
        return exceptions.ActivityError(
            message or "Activity error",
            scheduled_event_id=activity.scheduled_event_id,
            started_event_id=activity.started_event_id,
            identity=activity.identity,
            activity_type=activity.activity_type.name if activity.activity_type else "",
            activity_id=activity.activity_id,
            retry_state=_retry_state(activity.retry_state),
        )
    if (child := failure.child_workflow_execution_failure_info) is not None:
        execution = child.workflow_execution or WorkflowExecution()
        return exceptions.ChildWorkflowError(
            message or "Child workflow error",
            namespace=child.namespace,
            workflow_id=execution.workflow_id,
            run_id=execution.run_id,
            workflow_type=child.workflow_type.name if child.workflow_type else "",
            initiated_event_id=child.initiated_event_id,
            started_event_id=child.started_event_id,
            retry_state=_retry_state(child.retry_state),
        )
    if (nexus := failure.nexus_operation_execution_failure_info) is not None:
        return exceptions.NexusOperationError(
            message or "Nexus operation error",
            scheduled_event_id=nexus.scheduled_event_id,
            endpoint=nexus.endpoint,
            service=nexus.service,
            operation=nexus.operation,
            operation_token=nexus.operation_token,
        )
    return exceptions.FailureError(message or "Failure error")


def _retry_state(state: enums.RetryState) -> exceptions.RetryState | None:
    return exceptions.RetryState(state) if state else None
