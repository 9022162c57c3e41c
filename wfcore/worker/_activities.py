"""Activity tasks: a task in, exactly one outcome reported, whatever the code does."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from wfcore.activity import ActivityCancellationDetails, Info, entered
from wfcore.activity import logger as activity_logger
from wfcore.common import RetryPolicy
from wfcore.converter import (
    ActivitySerializationContext,
    DataConverter,
    priority_from_protocol,
)
from wfcore.exceptions import (
    ApplicationError,
    ApplicationErrorCategory,
    CancelledError,
    CompleteAsyncError,
)
from wfcore.protocol.common import ActivityType, WorkflowExecution, WorkflowType
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.protocol.payloads import Header, Payloads
from wfcore.protocol.rpc.activity_tasks import (
    PollActivityTaskQueueResponse,
    RecordActivityTaskHeartbeatRequest,
    RecordActivityTaskHeartbeatResponse,
    RespondActivityTaskCanceledRequest,
    RespondActivityTaskCompletedRequest,
    RespondActivityTaskFailedRequest,
)
from wfcore.protocol.wellformed import cleaned
from wfcore.worker._activity_attempt import Attempt
from wfcore.worker._alarms import Alarms, shared_alarms
from wfcore.worker._conversion import (
    decode,
    decode_args,
    encode,
    encode_failure,
    encode_payloads,
)
from wfcore.worker._heartbeats import Heartbeats, throttle_interval
from wfcore.worker._interceptors import Interceptor
from wfcore.worker._registry import Registry
from wfcore.worker._reporting import report

_log = logging.getLogger(__name__)
_EPOCH = datetime.fromtimestamp(0, UTC)

MAX_HEARTBEAT_THROTTLE = timedelta(seconds=60)
DEFAULT_HEARTBEAT_THROTTLE = timedelta(seconds=30)


class ActivityService(Protocol):
    """The part of the service that activity tasks need."""

    def record_activity_task_heartbeat(
        self, request: RecordActivityTaskHeartbeatRequest
    ) -> RecordActivityTaskHeartbeatResponse: ...

    def respond_activity_task_completed(
        self, request: RespondActivityTaskCompletedRequest
    ) -> object: ...

    def respond_activity_task_failed(self, request: RespondActivityTaskFailedRequest) -> object: ...

    def respond_activity_task_canceled(
        self, request: RespondActivityTaskCanceledRequest
    ) -> object: ...


class ActivityTaskRunner:
    """Runs activity tasks of one namespace and task queue; used by any number of threads.

    Args:
        client: what async activities get from `activity.client`.
        max_heartbeat_throttle_interval: heartbeats are sent at least this often.
        default_heartbeat_throttle_interval: and this often where there is no heartbeat timeout.
    """

    def __init__(
        self,
        service: ActivityService,
        registry: Registry,
        data_converter: DataConverter,
        identity: str,
        client: Any = None,
        interceptors: Sequence[Interceptor] = (),
        *,
        namespace: str = "default",
        task_queue: str = "",
        max_heartbeat_throttle_interval: timedelta = MAX_HEARTBEAT_THROTTLE,
        default_heartbeat_throttle_interval: timedelta = DEFAULT_HEARTBEAT_THROTTLE,
        alarms: Alarms | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._service = service
        self._registry = registry
        self._data_converter = data_converter
        self._identity = identity
        self._client = client
        self._interceptors = interceptors
        self._namespace = namespace
        self._task_queue = task_queue
        self._max_throttle = max_heartbeat_throttle_interval
        self._default_throttle = default_heartbeat_throttle_interval
        self._alarms = alarms
        self._sleep = sleep
        self._lock = threading.Lock()
        self._running: set[Attempt] = set()
        self._shutting_down = False

    def run(self, task: PollActivityTaskQueueResponse) -> None:
        """Run one attempt and report its outcome. Never raises for what the activity does."""
        converter = self._data_converter.with_context(self._conversion_context(task))
        try:
            attempt, args = self._prepare(task, converter)
        except Exception as err:  # noqa: BLE001 - reported as the attempt's failure
            self._report_failure(task, converter, err, None)
            return
        attempt.heartbeats = self._heartbeats(task, converter, attempt)
        self._add(attempt)
        try:
            self._run_attempt(task, converter, attempt, args)
        finally:
            with self._lock:
                self._running.discard(attempt)

    def encode_result(self, task: PollActivityTaskQueueResponse, value: Any) -> Payloads:
        """A result as `run` would report it, for activities that report theirs from within.

        Raises:
            Exception: it can't be converted, or the codec failed.
        """
        return encode(self._data_converter.with_context(self._conversion_context(task)), [value])

    def begin_shutdown(self) -> None:
        """Tell all running activities, and those that start later, that the worker is stopping."""
        with self._lock:
            self._shutting_down = True
            running = list(self._running)
        for attempt in running:
            attempt.context.worker_shutdown.set()

    def cancel_all(self) -> None:
        """Cancel what still runs, since the worker can't wait any longer."""
        with self._lock:
            running = list(self._running)
        for attempt in running:
            attempt.cancel(ActivityCancellationDetails(worker_shutdown=True))

    # --- before the call ---

    def _add(self, attempt: Attempt) -> None:
        with self._lock:
            self._running.add(attempt)
            if self._shutting_down:
                attempt.context.worker_shutdown.set()

    def _conversion_context(
        self, task: PollActivityTaskQueueResponse
    ) -> ActivitySerializationContext:
        execution = task.workflow_execution or WorkflowExecution()
        return ActivitySerializationContext(
            namespace=task.workflow_namespace or self._namespace,
            activity_id=task.activity_id,
            activity_type=(task.activity_type or ActivityType()).name,
            activity_task_queue=self._task_queue,
            workflow_id=execution.workflow_id or None,
            workflow_type=(task.workflow_type or WorkflowType()).name or None,
            is_local=False,
        )

    def _prepare(
        self, task: PollActivityTaskQueueResponse, converter: DataConverter
    ) -> tuple[Attempt, list[Any]]:
        name = (task.activity_type or ActivityType()).name
        definition = self._registry.activity(name)
        if definition is None:
            workflow_id = (task.workflow_execution or WorkflowExecution()).workflow_id
            raise ApplicationError(
                f"Activity function {name} for workflow {workflow_id} is not registered on this "
                f"worker, available activities: {', '.join(self._registry.activity_names)}",
                type="NotFoundError",
            )
        args = decode_args(converter, definition, task.input)
        try:
            heartbeat_details = decode(converter, task.heartbeat_details)
        except Exception as err:
            raise ApplicationError("Failed decoding heartbeat details", non_retryable=True) from err
        attempt = Attempt(
            definition=definition,
            info=self._info(task, heartbeat_details),
            payload_converter=converter.payload_converter,
            client=self._client,
            interceptors=self._interceptors,
            alarms=self._alarms or shared_alarms(),
        )
        return attempt, args

    def _info(self, task: PollActivityTaskQueueResponse, heartbeat_details: list[Any]) -> Info:
        execution = task.workflow_execution or WorkflowExecution()
        in_workflow = bool(execution.workflow_id)
        return Info(
            activity_id=task.activity_id,
            activity_type=(task.activity_type or ActivityType()).name,
            attempt=task.attempt,
            current_attempt_scheduled_time=task.current_attempt_scheduled_time or _EPOCH,
            heartbeat_details=heartbeat_details,
            heartbeat_timeout=task.heartbeat_timeout or None,
            is_local=False,
            namespace=task.workflow_namespace or self._namespace,
            schedule_to_close_timeout=task.schedule_to_close_timeout or None,
            scheduled_time=task.scheduled_time or _EPOCH,
            start_to_close_timeout=task.start_to_close_timeout or None,
            started_time=task.started_time or _EPOCH,
            task_queue=self._task_queue,
            task_token=task.task_token,
            workflow_id=execution.workflow_id if in_workflow else None,
            workflow_namespace=(task.workflow_namespace or None) if in_workflow else None,
            workflow_run_id=execution.run_id if in_workflow else None,
            workflow_type=(task.workflow_type or WorkflowType()).name if in_workflow else None,
            priority=priority_from_protocol(task.priority),
            retry_policy=RetryPolicy.from_proto(task.retry_policy) if task.retry_policy else None,
            activity_run_id=task.activity_run_id or None,
        )

    def _heartbeats(
        self, task: PollActivityTaskQueueResponse, converter: DataConverter, attempt: Attempt
    ) -> Heartbeats:
        return Heartbeats(
            encode=lambda details: encode_payloads(converter, details),
            send=lambda details: self._service.record_activity_task_heartbeat(
                RecordActivityTaskHeartbeatRequest(
                    task_token=task.task_token,
                    details=details,
                    identity=self._identity,
                    namespace=self._namespace,
                )
            ),
            cancel=attempt.cancel,
            fail=attempt.fail_heartbeats,
            interval=throttle_interval(
                task.heartbeat_timeout,
                maximum=self._max_throttle,
                default=self._default_throttle,
            ),
            alarms=self._alarms or shared_alarms(),
        )

    # --- the call and its outcome ---

    def _run_attempt(
        self,
        task: PollActivityTaskQueueResponse,
        converter: DataConverter,
        attempt: Attempt,
        args: list[Any],
    ) -> None:
        headers = (task.header or Header()).fields
        try:
            result = encode(converter, [attempt.run(args, headers)])
        except CompleteAsyncError:
            _close_heartbeats(attempt)
            with entered(attempt.context):
                activity_logger.debug("Completing asynchronously")
        except (Exception, asyncio.CancelledError) as err:  # noqa: BLE001 - what users' code raises
            self._report_error(task, converter, attempt, err)
        except BaseException as err:
            # The process is being ended: report what can be reported, then let it end.
            self._report_error(task, converter, attempt, err)
            raise
        else:
            _close_heartbeats(attempt)
            self._report(
                task,
                lambda: self._service.respond_activity_task_completed(
                    RespondActivityTaskCompletedRequest(
                        task_token=task.task_token,
                        result=result,
                        identity=self._identity,
                        namespace=self._namespace,
                    )
                ),
            )

    def _report_error(
        self,
        task: PollActivityTaskQueueResponse,
        converter: DataConverter,
        attempt: Attempt,
        err: BaseException,
    ) -> None:
        unsent = _close_heartbeats(attempt)
        details = attempt.details or ActivityCancellationDetails()
        with entered(attempt.context):
            if isinstance(err, asyncio.CancelledError | CancelledError):
                if attempt.heartbeat_error:
                    err = attempt.heartbeat_error
                elif details.paused:
                    err = _unhandled_cancel("ActivityPause", "pause")
                elif details.reset:
                    err = _unhandled_cancel("ActivityReset", "reset")
                elif details.worker_shutdown:
                    err = ApplicationError(
                        "Worker is shutting down and this activity did not end in time",
                        type="WorkerShutdown",
                    )
                elif details.cancel_requested:
                    activity_logger.debug("Completing as cancelled")
                    self._report_cancelled(task)
                    return
            _log_failure(err)
        self._report_failure(task, converter, err, unsent)

    def _report_cancelled(self, task: PollActivityTaskQueueResponse) -> None:
        self._report(
            task,
            lambda: self._service.respond_activity_task_canceled(
                RespondActivityTaskCanceledRequest(
                    task_token=task.task_token, identity=self._identity, namespace=self._namespace
                )
            ),
        )

    def _report_failure(
        self,
        task: PollActivityTaskQueueResponse,
        converter: DataConverter,
        err: BaseException,
        unsent: Payloads | None,
    ) -> None:
        last_details: Payloads | None = None
        try:
            failure = _as_application_failure(encode_failure(converter, err))
            if unsent:
                last_details = encode_payloads(converter, unsent)
        except Exception as inner:  # noqa: BLE001 - of a codec or converter; the task needs an answer
            _log.exception("the failure of an activity could not be encoded")
            failure = Failure(
                message=cleaned(f"Failed building exception result: {inner}"),
                application_failure_info=ApplicationFailureInfo(),
            )
        self._report(
            task,
            lambda: self._service.respond_activity_task_failed(
                RespondActivityTaskFailedRequest(
                    task_token=task.task_token,
                    failure=failure,
                    identity=self._identity,
                    namespace=self._namespace,
                    last_heartbeat_details=last_details,
                )
            ),
        )

    def _report(self, task: PollActivityTaskQueueResponse, call: Callable[[], object]) -> None:
        name = (task.activity_type or ActivityType()).name
        report(f"outcome of activity {name} (id {task.activity_id})", call, sleep=self._sleep)


def _close_heartbeats(attempt: Attempt) -> Payloads | None:
    return attempt.heartbeats.close() if attempt.heartbeats else None


def _unhandled_cancel(kind: str, reason: str) -> ApplicationError:
    return ApplicationError(
        f"Unhandled activity cancel error produced by activity {reason}", type=kind
    )


def _as_application_failure(failure: Failure) -> Failure:
    """The service takes application failures only from an activity; others become their cause."""
    if failure.application_failure_info is not None:
        return failure
    return Failure(
        message=failure.message,
        cause=failure,
        application_failure_info=ApplicationFailureInfo(type=_kind_of(failure)),
    )


def _kind_of(failure: Failure) -> str:
    for info, kind in (
        (failure.canceled_failure_info, "CancelledError"),
        (failure.timeout_failure_info, "TimeoutError"),
        (failure.terminated_failure_info, "TerminatedError"),
        (failure.server_failure_info, "ServerError"),
        (failure.activity_failure_info, "ActivityError"),
        (failure.child_workflow_execution_failure_info, "ChildWorkflowError"),
    ):
        if info is not None:
            return kind
    return "FailureError"


def _log_failure(err: BaseException) -> None:
    benign = isinstance(err, ApplicationError) and err.category is ApplicationErrorCategory.BENIGN
    activity_logger.log(
        logging.DEBUG if benign else logging.WARNING,
        "Completing activity as failed",
        exc_info=err,
        extra={"action": "activity_failed"},
    )
