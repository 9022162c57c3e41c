"""Every error of the engine and of its public API, in one tree under `TemporalError`.

Three branches: `FailureError` is what is recorded in histories, `RPCError` is what the service
answers, and the rest tells a programmer what to change. Names, signatures and texts of the first
two are Temporal's; identifiers are attributes, never only text.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum, StrEnum
from typing import Any


class TemporalError(Exception):
    """Base of all errors of this package."""

    @property
    def cause(self) -> BaseException | None:
        """What led to this error; the same as ``__cause__``."""
        return self.__cause__


# --- failures: what histories record -----------------------------------------------------------


class ApplicationErrorCategory(IntEnum):
    """How loudly an application error is reported."""

    UNSPECIFIED = 0
    BENIGN = 1  # expected: logged at DEBUG, counted in no metric


class TimeoutType(IntEnum):
    """Which limit was exceeded."""

    START_TO_CLOSE = 1
    SCHEDULE_TO_START = 2
    SCHEDULE_TO_CLOSE = 3
    HEARTBEAT = 4


class RetryState(IntEnum):
    """Why a failed attempt was not followed by another."""

    IN_PROGRESS = 1
    NON_RETRYABLE_FAILURE = 2
    TIMEOUT = 3
    MAXIMUM_ATTEMPTS_REACHED = 4
    RETRY_POLICY_NOT_SET = 5
    INTERNAL_SERVER_ERROR = 6
    CANCEL_REQUESTED = 7


class FailureError(TemporalError):
    """An error that comes from a recorded failure or becomes one.

    Raised in workflow code it fails the workflow, unlike any other exception, which fails only
    the workflow task. `failure` is the `wfcore.protocol.failures.Failure` that it was read from.
    """

    def __init__(
        self,
        message: str,
        *,
        failure: Any = None,
        exc_args: tuple[Any, ...] | None = None,
    ) -> None:
        super().__init__(*((message,) if exc_args is None else exc_args))
        self.message = message
        self.failure = failure


class ApplicationError(FailureError):
    """An error that user code reports, from an activity or a workflow.

    `type` is what `RetryPolicy.non_retryable_error_types` is matched against;
    `next_retry_delay` replaces the policy's interval before the next attempt.
    """

    def __init__(
        self,
        message: str,
        *details: Any,
        type: str | None = None,  # noqa: A002 - Temporal's name
        non_retryable: bool = False,
        next_retry_delay: timedelta | None = None,
        category: ApplicationErrorCategory = ApplicationErrorCategory.UNSPECIFIED,
    ) -> None:
        super().__init__(message, exc_args=(f"{type}: {message}" if type else message,))
        self.details: Sequence[Any] = details
        self.type = type
        self.non_retryable = non_retryable
        self.next_retry_delay = next_retry_delay
        self.category = category


class CancelledError(FailureError):
    """A workflow or activity was cancelled."""

    def __init__(self, message: str = "Cancelled", *details: Any) -> None:
        super().__init__(message)
        self.details: Sequence[Any] = details


class TerminatedError(FailureError):
    """A workflow was terminated."""

    def __init__(self, message: str, *details: Any) -> None:
        super().__init__(message)
        self.details: Sequence[Any] = details


class TimeoutError(FailureError):  # noqa: A001 - Temporal's name
    """A workflow or activity exceeded a time limit."""

    def __init__(
        self,
        message: str,
        *,
        type: TimeoutType | None,  # noqa: A002 - Temporal's name
        last_heartbeat_details: Sequence[Any],
    ) -> None:
        super().__init__(message)
        self.type = type
        self.last_heartbeat_details = last_heartbeat_details


class ServerError(FailureError):
    """The engine itself failed the operation."""

    def __init__(self, message: str, *, non_retryable: bool = False) -> None:
        super().__init__(message)
        self.non_retryable = non_retryable


class ActivityError(FailureError):
    """An activity did not complete; the cause says why."""

    def __init__(
        self,
        message: str,
        *,
        scheduled_event_id: int,
        started_event_id: int,
        identity: str,
        activity_type: str,
        activity_id: str,
        retry_state: RetryState | None,
    ) -> None:
        super().__init__(message)
        self.scheduled_event_id = scheduled_event_id
        self.started_event_id = started_event_id
        self.identity = identity
        self.activity_type = activity_type
        self.activity_id = activity_id
        self.retry_state = retry_state


class ChildWorkflowError(FailureError):
    """A child workflow did not complete; the cause says why."""

    def __init__(
        self,
        message: str,
        *,
        namespace: str,
        workflow_id: str,
        run_id: str,
        workflow_type: str,
        initiated_event_id: int,
        started_event_id: int,
        retry_state: RetryState | None,
    ) -> None:
        super().__init__(message)
        self.namespace = namespace
        self.workflow_id = workflow_id
        self.run_id = run_id
        self.workflow_type = workflow_type
        self.initiated_event_id = initiated_event_id
        self.started_event_id = started_event_id
        self.retry_state = retry_state


class NexusOperationError(FailureError):
    """A Nexus operation did not complete; read from histories that others wrote."""

    def __init__(
        self,
        message: str,
        *,
        scheduled_event_id: int,
        endpoint: str,
        service: str,
        operation: str,
        operation_token: str,
    ) -> None:
        super().__init__(message)
        self.scheduled_event_id = scheduled_event_id
        self.endpoint = endpoint
        self.service = service
        self.operation = operation
        self.operation_token = operation_token


class WorkflowAlreadyStartedError(FailureError):
    """The workflow id is in use: raised by a client's start and by a child's start.

    The run ids are known only to a client.
    """

    def __init__(
        self,
        workflow_id: str,
        workflow_type: str,
        *,
        run_id: str | None = None,
        first_run_id: str | None = None,
    ) -> None:
        super().__init__("Workflow execution already started")
        self.workflow_id = workflow_id
        self.workflow_type = workflow_type
        self.run_id = run_id
        self.first_run_id = first_run_id


class ActivityAlreadyStartedError(FailureError):
    """The id of a standalone activity is in use."""

    def __init__(self, activity_id: str, activity_type: str, *, run_id: str | None = None) -> None:
        super().__init__("Activity execution already started")
        self.activity_id = activity_id
        self.activity_type = activity_type
        self.run_id = run_id


class NexusOperationAlreadyStartedError(FailureError):
    """The id of a Nexus operation is in use."""

    def __init__(self, operation_id: str, *, run_id: str | None = None) -> None:
        super().__init__("Nexus operation execution already started")
        self.operation_id = operation_id
        self.run_id = run_id


class InvalidVersioningOverrideError(FailureError):
    """A child could not start because its versioning override is invalid."""

    def __init__(self) -> None:
        super().__init__("Invalid versioning override")


def is_cancelled_exception(exception: BaseException) -> bool:
    """Whether the exception means cancellation, in any of its forms.

    True for `asyncio.CancelledError`, `CancelledError`, and for an activity's, child workflow's or
    Nexus operation's error that a `CancelledError` caused.
    """
    if isinstance(exception, asyncio.CancelledError | CancelledError):
        return True
    return isinstance(
        exception, ActivityError | ChildWorkflowError | NexusOperationError
    ) and isinstance(exception.cause, CancelledError)


# --- what workflow and activity code may not do --------------------------------------------------


class NondeterminismError(TemporalError):
    """The workflow's code and its history disagree; the workflow task fails, not the workflow."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ReadOnlyContextError(TemporalError):
    """A query handler or update validator tried to change the workflow."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NotInWorkflowEventLoopError(FailureError):
    """A call that only workflow code may make was made outside of it."""

    def __init__(
        self,
        message: str = "Not in workflow event loop: call this from the code of a workflow only",
    ) -> None:
        super().__init__(message)


class RestrictedWorkflowAccessError(NondeterminismError):
    """Workflow code used what gives another result on replay; `name` is what it called."""

    def __init__(self, name: str, advice: str) -> None:
        self.name = name
        super().__init__(
            f"Workflow code must not use {name}: a replay would not get the same result. {advice}"
        )


class HistoryMismatchError(NondeterminismError):
    """A recorded event and what the workflow's code does disagree.

    `event_id` and `event_type` name the event, or are 0 and empty where the history has none for
    the command; `command` and `location` (file:line) are empty where the code issued none.
    """

    def __init__(
        self, message: str, *, event_id: int, event_type: str, command: str, location: str
    ) -> None:
        super().__init__(message)
        self.event_id = event_id
        self.event_type = event_type
        self.command = command
        self.location = location


class MalformedHistoryError(TemporalError):
    """A history breaks the rules that every server keeps; nothing can be replayed from it."""


class CompleteAsyncError(BaseException):
    """An activity's function ends here, its result comes later from outside.

    Raised by `wfcore.activity.raise_complete_async`; let it pass. No `Exception`, so that code
    which catches those doesn't swallow it.
    """


class WorkflowDeadlockError(TemporalError):
    """Workflow code did not yield in time; it must not block, compute for long or do I/O."""

    def __init__(self, limit: timedelta) -> None:
        self.limit = limit
        super().__init__(
            "Potential deadlock detected: workflow didn't yield within "
            f"{limit.total_seconds():g} second(s). Move blocking or long work into an activity"
        )


# --- the service's answers -----------------------------------------------------------------------


class RPCStatusCode(IntEnum):
    """The gRPC codes."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class ResourceExhaustedCause(StrEnum):
    """Which limit refused a call; values are the names on the wire."""

    UNSPECIFIED = "RESOURCE_EXHAUSTED_CAUSE_UNSPECIFIED"
    RPS_LIMIT = "RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT"
    CONCURRENT_LIMIT = "RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT"
    SYSTEM_OVERLOADED = "RESOURCE_EXHAUSTED_CAUSE_SYSTEM_OVERLOADED"
    PERSISTENCE_LIMIT = "RESOURCE_EXHAUSTED_CAUSE_PERSISTENCE_LIMIT"
    BUSY_WORKFLOW = "RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW"
    APS_LIMIT = "RESOURCE_EXHAUSTED_CAUSE_APS_LIMIT"
    PERSISTENCE_STORAGE_LIMIT = "RESOURCE_EXHAUSTED_CAUSE_PERSISTENCE_STORAGE_LIMIT"
    CIRCUIT_BREAKER_OPEN = "RESOURCE_EXHAUSTED_CAUSE_CIRCUIT_BREAKER_OPEN"
    OPS_LIMIT = "RESOURCE_EXHAUSTED_CAUSE_OPS_LIMIT"


class ResourceExhaustedScope(StrEnum):
    """Whose limit it is; values are the names on the wire."""

    UNSPECIFIED = "RESOURCE_EXHAUSTED_SCOPE_UNSPECIFIED"
    NAMESPACE = "RESOURCE_EXHAUSTED_SCOPE_NAMESPACE"
    SYSTEM = "RESOURCE_EXHAUSTED_SCOPE_SYSTEM"


@dataclass(frozen=True)
class GrpcStatus:
    """A call's outcome in the parts of `google.rpc.Status`; details are in their JSON form."""

    code: int
    message: str
    details: tuple[Mapping[str, Any], ...] = ()


_DETAIL_PREFIX = "type.googleapis.com/temporal.api.errordetails.v1."


class RPCError(TemporalError):
    """The service refused a call.

    Attributes:
        message: what was wrong.
        status: the gRPC code.
        detail_type: the name of the message in Temporal's errordetails that goes with the error.
        detail: the fields of that message in their JSON form (camelCase, empty ones left out).
        raw_grpc_status: the encoded status; empty unless the error came over gRPC.
    """

    #: The code of a subclass; an error made from `RPCError` itself has its own.
    status: RPCStatusCode = RPCStatusCode.UNKNOWN
    detail_type: str | None = None

    def __init__(
        self,
        message: str,
        status: RPCStatusCode,
        raw_grpc_status: bytes = b"",
        *,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.raw_grpc_status = raw_grpc_status
        self.detail: dict[str, Any] = {key: value for key, value in (detail or {}).items() if value}

    @property
    def grpc_status(self) -> GrpcStatus:
        """Code, message and detail as one value."""
        details: tuple[Mapping[str, Any], ...] = ()
        if self.detail_type is not None:
            details = ({"@type": _DETAIL_PREFIX + self.detail_type, **self.detail},)
        return GrpcStatus(int(self.status), self.message, details)


class _ServiceError(RPCError):
    """An error whose class fixes the code."""

    def __init__(self, message: str, *, detail: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, type(self).status, detail=detail)


class InvalidArgumentError(_ServiceError):
    """A request's field is missing or malformed; the text names it."""

    status = RPCStatusCode.INVALID_ARGUMENT


class QueryFailedError(InvalidArgumentError):
    """A query handler failed; `failure` is a `wfcore.protocol.failures.Failure` or None."""

    detail_type = "QueryFailedFailure"

    def __init__(self, message: str, failure: Any = None) -> None:
        super().__init__(message)
        self.failure = failure


class PayloadTooLargeError(InvalidArgumentError):
    """User data is above the size limit."""

    def __init__(self, what: str, *, size_bytes: int, limit_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes
        super().__init__(
            f"{what} has {size_bytes:,} bytes, the limit is {limit_bytes:,}. "
            "Store the data elsewhere and pass a reference to it"
        )


class NotFoundError(_ServiceError):
    """What a request names doesn't exist, or the task it answers is over."""

    status = RPCStatusCode.NOT_FOUND
    detail_type = "NotFoundFailure"


class NamespaceNotFoundError(NotFoundError):
    """There is no such namespace."""

    detail_type = "NamespaceNotFoundFailure"

    def __init__(self, namespace: str) -> None:
        super().__init__(f"Namespace {namespace} is not found.", detail={"namespace": namespace})
        self.namespace = namespace


class AlreadyExistsError(_ServiceError):
    """What a request would make exists."""

    status = RPCStatusCode.ALREADY_EXISTS


class NamespaceAlreadyExistsError(AlreadyExistsError):
    """The namespace's name is taken."""

    detail_type = "NamespaceAlreadyExistsFailure"


class WorkflowExecutionAlreadyStartedError(AlreadyExistsError):
    """The policies of a start don't allow another run of this workflow id.

    The client turns it into `WorkflowAlreadyStartedError`.
    """

    detail_type = "WorkflowExecutionAlreadyStartedFailure"

    def __init__(
        self,
        message: str,
        *,
        start_request_id: str = "",
        run_id: str = "",
        first_execution_run_id: str = "",
    ) -> None:
        detail = {
            "startRequestId": start_request_id,
            "runId": run_id,
            "firstExecutionRunId": first_execution_run_id,
        }
        super().__init__(message, detail=detail)
        self.start_request_id = start_request_id
        self.run_id = run_id
        self.first_execution_run_id = first_execution_run_id


class FailedPreconditionError(_ServiceError):
    """The state of what a request names doesn't allow it."""

    status = RPCStatusCode.FAILED_PRECONDITION


class WorkflowNotReadyError(FailedPreconditionError):
    """The workflow can't answer now, since its workflow task keeps failing."""

    detail_type = "WorkflowNotReadyFailure"


class MultiOperationExecutionError(RPCError):
    """Update-with-start failed.

    Attributes:
        statuses: one entry for each of its operations, as in `google.rpc.Status`.
        failed: the error of the operation that failed, if it is at hand; the other was given up.
    """

    detail_type = "MultiOperationExecutionFailure"

    def __init__(
        self,
        message: str,
        status: RPCStatusCode,
        statuses: Sequence[Mapping[str, Any]],
        failed: RPCError | None = None,
    ) -> None:
        super().__init__(message, status, detail={"statuses": list(statuses)})
        self.statuses = statuses
        self.failed = failed


class ResourceExhaustedError(_ServiceError):
    """A limit is reached; try again later."""

    status = RPCStatusCode.RESOURCE_EXHAUSTED
    detail_type = "ResourceExhaustedFailure"

    def __init__(
        self,
        message: str,
        resource_cause: ResourceExhaustedCause = ResourceExhaustedCause.UNSPECIFIED,
        scope: ResourceExhaustedScope = ResourceExhaustedScope.NAMESPACE,
    ) -> None:
        super().__init__(message, detail={"cause": str(resource_cause), "scope": str(scope)})
        self.resource_cause = resource_cause
        self.scope = scope


class PermissionDeniedError(_ServiceError):
    """The caller may not do this."""

    status = RPCStatusCode.PERMISSION_DENIED
    detail_type = "PermissionDeniedFailure"

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message, detail={"reason": reason})
        self.reason = reason


class UnauthenticatedError(_ServiceError):
    """The caller is unknown."""

    status = RPCStatusCode.UNAUTHENTICATED


class DeadlineExceededError(_ServiceError):
    """The call didn't end within the caller's time limit; it may still take effect."""

    status = RPCStatusCode.DEADLINE_EXCEEDED


class AbortedError(_ServiceError):
    """Another change came first; repeat the call."""

    status = RPCStatusCode.ABORTED


class UnavailableError(_ServiceError):
    """The service can't be reached now; repeat the call."""

    status = RPCStatusCode.UNAVAILABLE


class UnimplementedError(_ServiceError):
    """This service has no such call or option."""

    status = RPCStatusCode.UNIMPLEMENTED


class InternalError(_ServiceError):
    """The service met a state that it can't explain."""

    status = RPCStatusCode.INTERNAL


class StartContendedError(UnavailableError):
    """Another open transaction holds the workflow id; nothing was recorded."""

    def __init__(self, workflow_id: str, waited: timedelta) -> None:
        self.workflow_id = workflow_id
        self.waited = waited
        super().__init__(
            f"another open transaction is changing workflow id {workflow_id!r} and did not end "
            f"within {waited.total_seconds():g} s; nothing was recorded. Repeat the start, and "
            "start workflows late in a transaction, so that it holds their ids for a short time"
        )


# --- the host's rules ----------------------------------------------------------------------------


class WaitInsideTransactionError(TemporalError):
    """A call would wait for a worker that can't see this transaction's data before it commits."""

    def __init__(self, call: str) -> None:
        self.call = call
        super().__init__(
            f"{call} waits for a worker, and inside a database transaction it would wait for "
            "ever: the worker sees nothing before the commit. Make the call after the atomic() "
            "block; where ATOMIC_REQUESTS is on, mark the view with "
            "transaction.non_atomic_requests"
        )


class TransactionAliasError(TemporalError):
    """A transaction is open on another database than the one that holds the workflows."""

    def __init__(self, open_alias: str, store_alias: str) -> None:
        self.open_alias = open_alias
        self.store_alias = store_alias
        super().__init__(
            f"a transaction is open on database {open_alias!r}, but workflows are stored in "
            f"{store_alias!r}, so the two can't commit together. Open the block on "
            f"{store_alias!r}, or pass detached=True to record this at once on its own"
        )


class HostNotRegisteredError(TemporalError):
    """A client or worker was made before a host had registered the service it talks to."""

    def __init__(self, target: str) -> None:
        self.target = target
        super().__init__(
            f"no host serves {target!r}: add 'wfapp' to INSTALLED_APPS and call django.setup(); "
            "tests of a project use wfapp.testing.WorkflowEnvironment"
        )
