"""Workflow tasks: history in, commands out, and what is not committed as it ran is thrown away.

One thread at a time works with a live instance, from loading it to the commit. An instance that
ran ahead of the history can't be wound back, so it is evicted after any task that failed, was
refused, or whose outcome is unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol, TypeVar

import msgspec

from wfcore.common import HeaderCodecBehavior
from wfcore.converter import DataConverter, WorkflowSerializationContext
from wfcore.exceptions import ApplicationError, MalformedHistoryError, WorkflowDeadlockError
from wfcore.protocol.commands import Command
from wfcore.protocol.common import WorkflowExecution, WorkflowType
from wfcore.protocol.enums import QueryResultType, WorkflowTaskFailedCause
from wfcore.protocol.events import History, HistoryEvent
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message
from wfcore.protocol.metadata import (
    MeteringMetadata,
    WorkerVersionStamp,
    WorkflowTaskCompletedMetadata,
)
from wfcore.protocol.rpc.info import (
    RespondWorkflowTaskCompletedRequestCapabilities,
    StickyExecutionAttributes,
    WorkflowQueryResult,
)
from wfcore.protocol.rpc.workflow_tasks import (
    PollWorkflowTaskQueueResponse,
    RespondQueryTaskCompletedRequest,
    RespondWorkflowTaskCompletedRequest,
    RespondWorkflowTaskCompletedResponse,
    RespondWorkflowTaskFailedRequest,
)
from wfcore.protocol.rpc.workflows import (
    GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryResponse,
)
from wfcore.protocol.updates import Rejection
from wfcore.protocol.wellformed import cleaned
from wfcore.replay.cache import InstanceCache, Lease
from wfcore.replay.instance import WorkflowInstance
from wfcore.replay.interceptors import WorkflowInboundInterceptor, WorkflowInterceptorClassInput
from wfcore.replay.local_activities import LocalActivityOutcome
from wfcore.replay.result import WorkflowTaskResult
from wfcore.worker._async_loop import run_blocking
from wfcore.worker._conversion import encode_failure
from wfcore.worker._eager import EagerActivities, reserve, start
from wfcore.worker._interceptors import Interceptor
from wfcore.worker._local_activities import LocalActivities, LocalActivityRunner, Wake
from wfcore.worker._registry import Registry
from wfcore.worker._reporting import report
from wfcore.worker._watchdog import DEADLOCK_TIMEOUT, HungCodeInterrupt, WatchedCall
from wfcore.workflow import WorkflowDefinition

_log = logging.getLogger(__name__)

_Request = TypeVar("_Request", bound=Message)

SDK_NAME = "wfcore-python"
_CAPABILITIES = RespondWorkflowTaskCompletedRequestCapabilities(
    discard_speculative_workflow_task_with_events=True
)
#: Share of a workflow task's time limit after which it is answered, to keep local activities going.
_HEARTBEAT_SHARE = 0.8
#: How long a question waits for an instance that is in use, before it is answered by a new one.
_QUERY_PATIENCE_SECONDS = 0.5
_UNHANDLED = WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE


class WorkflowTaskService(Protocol):
    """The part of the service that workflow tasks need."""

    def respond_workflow_task_completed(
        self, request: RespondWorkflowTaskCompletedRequest
    ) -> RespondWorkflowTaskCompletedResponse: ...

    def respond_workflow_task_failed(self, request: RespondWorkflowTaskFailedRequest) -> object: ...

    def respond_query_task_completed(self, request: RespondQueryTaskCompletedRequest) -> object: ...

    def get_workflow_execution_history(
        self, request: GetWorkflowExecutionHistoryRequest
    ) -> GetWorkflowExecutionHistoryResponse: ...


class WorkflowTaskRunner:
    """Runs workflow tasks and questions of one namespace; used by any number of threads.

    Args:
        cache: the live instances; several runners may share it.
        eager: runs activities that are claimed together with the commit that schedules them;
            without it none are.
        local_activities: runs those; by default one of its own with the same interceptors.
        workflow_failure_exception_types: exceptions that fail a workflow instead of its task.
        build_id: of this worker's code, recorded with each task.
        guarded: refuse calls that break replay.
        deadlock_timeout: how long the code may run without waiting; None: for ever.
    """

    def __init__(
        self,
        service: WorkflowTaskService,
        registry: Registry,
        data_converter: DataConverter,
        identity: str,
        cache: InstanceCache,
        *,
        namespace: str = "default",
        interceptors: Sequence[Interceptor] = (),
        workflow_failure_exception_types: Sequence[type[BaseException]] = (),
        build_id: str = "",
        guarded: bool = True,
        header_codec_behavior: HeaderCodecBehavior = HeaderCodecBehavior.NO_CODEC,
        deadlock_timeout: timedelta | None = DEADLOCK_TIMEOUT,
        eager: EagerActivities | None = None,
        local_activities: LocalActivityRunner | None = None,
    ) -> None:
        self._service = service
        self._registry = registry
        self._data_converter = data_converter
        self._identity = identity
        self._cache = cache
        self._namespace = namespace
        self._failure_exception_types = tuple(workflow_failure_exception_types)
        self._build_id = build_id
        self._guarded = guarded
        self._headers = header_codec_behavior is not HeaderCodecBehavior.NO_CODEC
        self._deadlock_timeout = deadlock_timeout
        self._eager = eager
        self._local = local_activities or LocalActivityRunner(
            registry, data_converter, interceptors=interceptors, namespace=namespace
        )
        self._interceptors, self._extern_functions = interceptor_classes(interceptors)

    def run(self, task: PollWorkflowTaskQueueResponse) -> None:
        """Run a task, and those that the service gives back with its answer."""
        following: PollWorkflowTaskQueueResponse | None = task
        while following is not None and following.task_token:
            following = self._run_one(following)

    def known_event_id(self, run_id: str) -> int:
        """The last event that a live instance of the run knows; 0 without one.

        A claim may leave out the events up to it.
        """
        with self._cache.lease(run_id) as lease:
            return lease.instance.last_event_id if lease.instance is not None else 0

    # --- one task ---

    def _run_one(self, task: PollWorkflowTaskQueueResponse) -> PollWorkflowTaskQueueResponse | None:
        name = (task.workflow_type or WorkflowType()).name
        definition = self._registry.workflow(name)
        if definition is None:
            self._fail_with(
                task,
                ApplicationError(
                    f"Workflow class {name} is not registered on this worker, available "
                    f"workflows: {', '.join(self._registry.workflow_names)}",
                    type="NotFoundError",
                ),
            )
            return None
        received_at = self._local.alarms.now()
        patience = None if task.query is None else _QUERY_PATIENCE_SECONDS
        with self._cache.lease(_execution(task).run_id, patience) as lease:
            result = self._caught(lease, task, lambda: self._activate(lease, definition, task))
            if result is None:
                return None
            if task.query is not None:
                if result.error is not None:
                    lease.drop()
                self._answer_query(task, result)
                return None
            if result.local_activities:
                return self._run_local(lease, definition, task, result, received_at)
            return self._commit(lease, task, result)

    def _caught(
        self,
        lease: Lease,
        task: PollWorkflowTaskQueueResponse,
        call: Callable[[], WorkflowTaskResult | None],
    ) -> WorkflowTaskResult | None:
        """What a call came to; None also if it failed, which is then reported."""
        try:
            return call()
        except HungCodeInterrupt:
            lease.drop()
        except Exception as err:  # noqa: BLE001 - of a codec or of the history
            lease.drop()
            self._fail_with(task, err)
        return None

    def _activate(
        self, lease: Lease, definition: WorkflowDefinition, task: PollWorkflowTaskQueueResponse
    ) -> WorkflowTaskResult:
        """Let the code go on; from the whole history if what is in memory doesn't fit."""
        is_new = lease.instance is None
        if is_new and _first_event_id(task) != 1:
            task = self._with_whole_history(task)
        decoded = self._decoded(task)
        if lease.instance is None:
            lease.instance = self._new_instance(definition, task)
        try:
            return self._watched(lease.instance, decoded)
        except MalformedHistoryError:
            if is_new:
                raise
        lease.drop()
        decoded = self._decoded(self._with_whole_history(task))
        lease.instance = self._new_instance(definition, task)
        return self._watched(lease.instance, decoded)

    def _watched(
        self,
        instance: WorkflowInstance,
        task: PollWorkflowTaskQueueResponse,
        outcome: LocalActivityOutcome | None = None,
    ) -> WorkflowTaskResult:
        """Begin with a task, or go on with it after a local activity."""
        limit = self._deadlock_timeout
        call: Callable[..., WorkflowTaskResult] = instance.activate
        args: list[Any] = [task]
        if outcome is not None:
            call, args = instance.resolve_local_activity, [task, outcome]
        if limit is None:
            return call(*args)
        late = WorkflowDeadlockError(limit)
        watched = WatchedCall(lambda stack: self._fail_with(task, late, stack))
        result: WorkflowTaskResult = watched.make(call, args, limit)
        return result

    def _new_instance(
        self, definition: WorkflowDefinition, task: PollWorkflowTaskQueueResponse
    ) -> WorkflowInstance:
        return WorkflowInstance(
            definition=definition,
            namespace=self._namespace,
            workflow_execution=_execution(task),
            data_converter=self._data_converter,
            interceptors=self._interceptors,
            failure_exception_types=self._failure_exception_types,
            build_id=self._build_id,
            guarded=self._guarded,
            extern_functions=self._extern_functions,
        )

    # --- local activities ---

    def _run_local(
        self,
        lease: Lease,
        definition: WorkflowDefinition,
        task: PollWorkflowTaskQueueResponse,
        result: WorkflowTaskResult,
        received_at: float,
    ) -> PollWorkflowTaskQueueResponse | None:
        """Run what the task needs in this process, and answer it early to keep it going."""
        if lease.instance is None:
            return None
        interval = lease.instance.task_timeout * _HEARTBEAT_SHARE
        with closing(self._local.begin(task, interval)) as local:
            local.follow(task, received_at)
            while result.local_activities:
                go_on = partial(self._after_local, lease, definition, local, result)
                found = self._caught(lease, local.task, go_on)
                if found is None:
                    return None
                result = found
            local.take(())
            return self._commit(lease, local.task, result, retries=local.take_retries())

    def _after_local(
        self,
        lease: Lease,
        definition: WorkflowDefinition,
        local: LocalActivities,
        result: WorkflowTaskResult,
    ) -> WorkflowTaskResult | None:
        """Wait for one of them; what the code comes to with it. None if the task is over."""
        local.take(result.local_activities)
        news = local.wait()
        if isinstance(news, LocalActivityOutcome):
            return self._watched(lease.instance, local.task, news) if lease.instance else None
        goes_on = news is Wake.HEARTBEAT
        following = self._commit(
            lease, local.task, result, retries=local.take_retries(), forces_new=goes_on
        )
        if following is None or not following.task_token or not goes_on:
            lease.drop()
            return None
        local.follow(following)
        return self._activate(lease, definition, following)

    # --- the answer ---

    def _commit(
        self,
        lease: Lease,
        task: PollWorkflowTaskQueueResponse,
        result: WorkflowTaskResult,
        *,
        retries: int = 0,
        forces_new: bool | None = None,
    ) -> PollWorkflowTaskQueueResponse | None:
        """Answer the task; the one that follows, if it comes back with the answer.

        Args:
            retries: attempts of local activities after their first ones, which are metered.
            forces_new: another task must follow, for this worker or, if False, for any.
        """
        instance = lease.instance
        if result.cause is not None or instance is None:
            lease.drop()
            self._log_failure(task, result.error)
            self._report_failed(task, result.cause or _UNHANDLED, result.failure)
            return None
        commands, reserved = reserve(self._eager, result.commands)
        answer = None
        try:
            answer = self._complete(task, result, commands, retries, forces_new)
        finally:
            start(self._eager, answer, reserved)
        if answer is not None:
            instance.release_logs()
        if (
            answer is None
            or result.error is not None
            or instance.is_closed
            or answer.reset_history_event_id
            or _has_refused(result)
        ):
            lease.drop()
        return answer.workflow_task if answer is not None else None

    def _complete(
        self,
        task: PollWorkflowTaskQueueResponse,
        result: WorkflowTaskResult,
        commands: tuple[Command, ...],
        retries: int,
        forces_new: bool | None,
    ) -> RespondWorkflowTaskCompletedResponse | None:
        request = RespondWorkflowTaskCompletedRequest(
            task_token=task.task_token,
            commands=commands,
            messages=result.messages,
            identity=self._identity,
            # Whoever offers them keeps the instance, so that the next task may be a short one.
            sticky_attributes=StickyExecutionAttributes(),
            return_new_workflow_task=forces_new is not False,
            force_create_new_workflow_task=forces_new is not None,
            query_results=result.query_results,
            namespace=self._namespace,
            worker_version_stamp=WorkerVersionStamp(build_id=self._build_id)
            if self._build_id
            else None,
            sdk_metadata=_sdk_metadata(task, result),
            metering_metadata=MeteringMetadata(nonfirst_local_activity_execution_attempts=retries),
            capabilities=_CAPABILITIES,
        )
        return report(
            self._what(task),
            lambda: self._service.respond_workflow_task_completed(self._encoded(task, request)),
        )

    # --- other answers ---

    def _answer_query(
        self, task: PollWorkflowTaskQueueResponse, result: WorkflowTaskResult
    ) -> None:
        answer = result.query_result
        if answer is None:
            message = cleaned(str(result.error)) if result.error else "the query got no answer"
            answer = WorkflowQueryResult(
                result_type=QueryResultType.FAILED, error_message=message, failure=result.failure
            )
        self._report_query(task, answer, result.cause or WorkflowTaskFailedCause.UNSPECIFIED)

    def _report_query(
        self,
        task: PollWorkflowTaskQueueResponse,
        answer: WorkflowQueryResult,
        cause: WorkflowTaskFailedCause,
    ) -> None:
        request = RespondQueryTaskCompletedRequest(
            task_token=task.task_token,
            completed_type=answer.result_type,
            query_result=answer.answer,
            error_message=answer.error_message,
            namespace=self._namespace,
            failure=answer.failure,
            cause=cause,
        )
        report(
            self._what(task),
            lambda: self._service.respond_query_task_completed(self._encoded(task, request)),
        )

    def _fail_with(
        self, task: PollWorkflowTaskQueueResponse, error: Exception, stack: str = ""
    ) -> None:
        """The task failed otherwise than by an error of the workflow's code."""
        self._log_failure(task, error)
        try:
            failure = encode_failure(self._converter(task), error)
            if stack:
                failure = msgspec.structs.replace(failure, stack_trace=stack)
        except Exception as inner:  # noqa: BLE001 - of a codec or converter; the task needs an answer
            failure = Failure(message=cleaned(f"Failed converting activation exception: {inner}"))
        if task.query is not None:
            self._report_query(
                task,
                WorkflowQueryResult(
                    result_type=QueryResultType.FAILED,
                    error_message=cleaned(str(error)),
                    failure=failure,
                ),
                _UNHANDLED,
            )
        else:
            self._report_failed(task, _UNHANDLED, failure)

    def _report_failed(
        self,
        task: PollWorkflowTaskQueueResponse,
        cause: WorkflowTaskFailedCause,
        failure: Failure | None,
    ) -> None:
        """Report the first failure of a row; later ones time out, which spaces the attempts."""
        if task.attempt > 1:
            return
        request = RespondWorkflowTaskFailedRequest(
            task_token=task.task_token,
            cause=cause,
            failure=failure,
            identity=self._identity,
            namespace=self._namespace,
            worker_version=WorkerVersionStamp(build_id=self._build_id) if self._build_id else None,
        )
        report(
            self._what(task),
            lambda: self._service.respond_workflow_task_failed(self._encoded(task, request)),
        )

    # --- parts ---

    def _converter(self, task: PollWorkflowTaskQueueResponse) -> DataConverter:
        return self._data_converter.with_context(
            WorkflowSerializationContext(
                namespace=self._namespace, workflow_id=_execution(task).workflow_id
            )
        )

    def _decoded(self, task: PollWorkflowTaskQueueResponse) -> PollWorkflowTaskQueueResponse:
        if self._data_converter.payload_codec is None:
            return task
        return run_blocking(self._converter(task).decode_message(task, headers=self._headers))

    def _encoded(self, task: PollWorkflowTaskQueueResponse, request: _Request) -> _Request:
        if self._data_converter.payload_codec is None:
            return request
        return run_blocking(self._converter(task).encode_message(request, headers=self._headers))

    def _with_whole_history(
        self, task: PollWorkflowTaskQueueResponse
    ) -> PollWorkflowTaskQueueResponse:
        """The task with all events; while it is claimed nothing is added to them."""
        events: list[HistoryEvent] = []
        token = b""
        while True:
            page = self._service.get_workflow_execution_history(
                GetWorkflowExecutionHistoryRequest(
                    namespace=self._namespace,
                    execution=_execution(task),
                    next_page_token=token,
                )
            )
            events += (page.history or History()).events
            token = page.next_page_token
            if not token:
                return msgspec.structs.replace(task, history=History(events=tuple(events)))

    def _what(self, task: PollWorkflowTaskQueueResponse) -> str:
        return f"outcome of a task of workflow {_execution(task).workflow_id}"

    def _log_failure(
        self, task: PollWorkflowTaskQueueResponse, error: BaseException | None
    ) -> None:
        execution = _execution(task)
        _log.warning(
            "Failed activation on workflow %s with ID %s and run ID %s",
            (task.workflow_type or WorkflowType()).name,
            execution.workflow_id,
            execution.run_id,
            exc_info=error,
            extra={"action": "workflow_task_failed", "attempt": task.attempt},
        )


def interceptor_classes(
    interceptors: Sequence[Interceptor],
) -> tuple[list[type[WorkflowInboundInterceptor]], dict[str, Callable[..., Any]]]:
    """The classes that wrap each run, and the functions that they let workflow code reach."""
    extern_functions: dict[str, Callable[..., Any]] = {}
    given = WorkflowInterceptorClassInput(unsafe_extern_functions=extern_functions)
    found = [interceptor.workflow_interceptor_class(given) for interceptor in interceptors]
    return [kind for kind in found if kind is not None], extern_functions


@cache
def _version() -> str:
    try:
        return version("wfcore")
    except PackageNotFoundError:  # run from a source tree
        return "unknown"


def _execution(task: PollWorkflowTaskQueueResponse) -> WorkflowExecution:
    return task.workflow_execution or WorkflowExecution()


def _has_refused(result: WorkflowTaskResult) -> bool:
    """Whether an update was refused: a replay will not see it, and perhaps not even the task."""
    return any(isinstance(message.body, Rejection) for message in result.messages)


def _first_event_id(task: PollWorkflowTaskQueueResponse) -> int:
    events = task.history.events if task.history else ()
    return events[0].event_id if events else 0


def _sdk_metadata(
    task: PollWorkflowTaskQueueResponse, result: WorkflowTaskResult
) -> WorkflowTaskCompletedMetadata:
    """The rules that this task adds, and in the first one who we are."""
    is_first = not task.previous_started_event_id
    return WorkflowTaskCompletedMetadata(
        core_used_flags=tuple(map(int, result.core_flags)),
        lang_used_flags=tuple(map(int, result.lang_flags)),
        sdk_name=SDK_NAME if is_first else "",
        sdk_version=_version() if is_first else "",
    )
