"""One live run: history in, commands out.

`WorkflowInstance` is told what happened and lets the workflow's code run until it waits. Nothing
but events, in their order, reaches the code; so a second instance that reads the same history
stands at the same place.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import zlib
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from wfcore.common import RawValue, VersioningBehavior, WorkerDeploymentVersion
from wfcore.converter import DataConverter
from wfcore.exceptions import (
    CancelledError,
    FailureError,
    HistoryMismatchError,
    MalformedHistoryError,
    is_cancelled_exception,
)
from wfcore.protocol import commands, events
from wfcore.protocol.commands import Command
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import WorkflowTaskFailedCause
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.failures import Failure
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse
from wfcore.protocol.updates import ProtocolMessage
from wfcore.protocol.wellformed import cleaned
from wfcore.replay import introspection, sandbox
from wfcore.replay.activation import HistoryCursor, Recorded, Turn
from wfcore.replay.flags import LangFlag
from wfcore.replay.handlers import Handlers, InboundRoot, read_only
from wfcore.replay.info import read_info
from wfcore.replay.interceptors import (
    ExecuteWorkflowInput,
    WorkflowInboundInterceptor,
)
from wfcore.replay.jobs import Jobs, read_facts
from wfcore.replay.local_activities import LocalActivityOutcome
from wfcore.replay.matching import Line, line_of
from wfcore.replay.outbound import ContinueAsNewRequest, Outbound
from wfcore.replay.pending import Timers
from wfcore.replay.result import WorkflowTaskResult
from wfcore.replay.runtime import WorkflowRuntime
from wfcore.replay.state import Job, RunState
from wfcore.replay.updates import Updates
from wfcore.replay.values import Values
from wfcore.workflow import WorkflowDefinition

_logger = logging.getLogger(__name__)


class WorkflowInstance:
    """The code of one run, at one place of its history.

    Not for two threads at once. A result that is not committed as it is, a failed one included,
    leaves the instance ahead of the history: `evict` it then.

    Args:
        definition: the workflow.
        namespace: the run's namespace.
        workflow_execution: the run's ids.
        data_converter: converts values and failures; its codec is not used here.
        interceptors: classes of inbound interceptors, outermost first.
        failure_exception_types: exceptions that fail the workflow instead of the task.
        build_id: of the worker that runs new tasks.
        deployment_version: of the worker that runs new tasks.
        guarded: refuse calls that break replay.
        extern_functions: what `workflow.extern_functions` gives.
        is_replay: all of it is a replay, the end of the history included.

    Raises:
        RestrictedWorkflowAccessError: `guarded`, and the source of the workflow's class calls what
            breaks replay.
    """

    def __init__(
        self,
        *,
        definition: WorkflowDefinition,
        namespace: str,
        workflow_execution: WorkflowExecution,
        data_converter: DataConverter = DataConverter.default,
        interceptors: Sequence[type[WorkflowInboundInterceptor]] = (),
        failure_exception_types: Sequence[type[BaseException]] = (),
        build_id: str = "",
        deployment_version: WorkerDeploymentVersion | None = None,
        guarded: bool = False,
        extern_functions: Mapping[str, Callable[..., Any]] | None = None,
        is_replay: bool = False,
    ) -> None:
        is_guarded = guarded and definition.sandboxed
        if is_guarded:
            sandbox.prepare(definition)
        timers = Timers()
        values = Values(data_converter).for_workflow(namespace, workflow_execution.workflow_id)
        self._state = state = RunState(
            salt=zlib.crc32(workflow_execution.run_id.encode()) << 24,
            values=values,
            guarded=is_guarded,
            timers=timers,
        )
        timers.state = state
        state.is_failure = self._is_failure
        self._definition = definition
        self._namespace = namespace
        self._execution = workflow_execution
        self._interceptors = tuple(interceptors)
        self._worker_failure_types = tuple(failure_exception_types)
        self._failure_types = tuple(definition.failure_exception_types)
        self._versioning_behavior = definition.versioning_behavior
        self._worker = (build_id, deployment_version)
        self._is_replay = is_replay
        self._cursor = HistoryCursor()
        self._handlers = Handlers(state, definition, self._run_top)
        self._handlers.queries.update(introspection.QUERIES)
        self._updates = Updates(state, self._handlers)
        self._outbound = Outbound(state)
        self._runtime = WorkflowRuntime(state, self._handlers, dict(extern_functions or {}))
        self._runtime.outbound = self._outbound
        state.loop.workflow_runtime = self._runtime
        state.loop.report_error = self._report
        self._main: asyncio.Task[None] | None = None
        self._call: ExecuteWorkflowInput | None = None
        self._thread_id: int | None = None

    @property
    def last_event_id(self) -> int:
        """The last event that the instance knows; a task may bring the history from there on."""
        return self._cursor.last_event_id

    @property
    def task_timeout(self) -> timedelta:
        """How long a workflow task of the run may take; known from the first activation on."""
        return self._state.info.task_timeout

    @property
    def running_thread_id(self) -> int | None:
        """The thread in which the code runs now, for whoever watches it."""
        return self._thread_id

    @property
    def is_closed(self) -> bool:
        """Whether the code has ended."""
        return self._state.commands.is_closed

    def activate(self, task: PollWorkflowTaskQueueResponse) -> WorkflowTaskResult:
        """Let the code go on with what the task's history adds, then answer its queries.

        Whatever the code raises is in the result.

        Raises:
            MalformedHistoryError: the history doesn't follow what the instance knows; evict it and
                load the history from its start.
        """
        history = task.history.events if task.history else ()
        self._thread_id = threading.get_ident()
        try:
            error = self._advance(
                history, with_open_task=task.query is None, messages=task.messages
            )
            return self._result(task) if error is None else self._failed(error)
        finally:
            self._thread_id = None

    def resolve_local_activity(
        self, task: PollWorkflowTaskQueueResponse, outcome: LocalActivityOutcome
    ) -> WorkflowTaskResult:
        """Go on with a task after one of the local activities that its result named.

        The new result takes the place of the one before.
        """
        self._thread_id = threading.get_ident()
        try:
            self._take_outcome(outcome)
            return self._result(task)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the code's own errors
            return self._failed(error)
        finally:
            self._thread_id = None

    def evict(self) -> None:
        """End what is left of the code in this process; nothing that it does now is recorded.

        Raises:
            ValueError: the code is running in another thread.
        """
        self._state.is_replaying = True
        self._state.loop.close_tasks()
        self._state.operations.clear()
        self._state.conditions.clear()
        self._runtime.logs.clear()

    def release_logs(self) -> None:
        """Write the lines that the code logged, once the task that it did so in is committed."""
        lines, self._runtime.logs = self._runtime.logs, []
        for logger, record in lines:
            logger.handle(record)

    def replay(self, history: Sequence[HistoryEvent]) -> BaseException | None:
        """Go through a whole history; what makes it fail, if anything does.

        Raises:
            MalformedHistoryError: it is no history.
        """
        return self._advance(history, with_open_task=True)

    # --- going through the history --------------------------------------------------------------

    def _advance(
        self,
        history: Sequence[HistoryEvent],
        *,
        with_open_task: bool,
        messages: Sequence[ProtocolMessage] = (),
    ) -> BaseException | None:
        state = self._state
        try:
            for step in self._cursor.walk(history, with_open_task=with_open_task):
                if isinstance(step, Recorded):
                    state.flags.enter_recorded(step.completed.attributes.sdk_metadata)  # type: ignore[attr-defined]
                    if not _is_heartbeat(step):
                        state.commands.match(step, state.flags)
                else:
                    self._take_turn(step, messages if step.answer is None else ())
        except MalformedHistoryError:
            raise
        except HistoryMismatchError as error:
            return error
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the code's own errors are the result
            return error
        return None

    def _take_turn(self, turn: Turn, messages: Sequence[ProtocolMessage]) -> None:
        state = self._state
        self._enter_task(turn)
        if turn.answer is not None:
            self._runtime.patches.announce(turn.answer.commands)
            self._runtime.local_activities.announce(turn.answer.commands)
        with self._failing_workflow():
            recorded = turn.answer.commands if turn.answer is not None else ()
            updates = self._updates.from_events(recorded) + self._updates.from_messages(messages)
            jobs = read_facts(turn.facts, state, self)
            jobs.first += updates
            jobs.updates += len(updates)
            self._run_jobs(jobs)
            self._follow_up()
        self._end_turn()

    def _take_outcome(self, outcome: LocalActivityOutcome) -> None:
        jobs = Jobs()
        jobs.others.append(self._runtime.local_activities.end(outcome))
        with self._failing_workflow():
            self._run_jobs(jobs)
            self._follow_up()
        self._end_turn()

    @contextmanager
    def _failing_workflow(self) -> Iterator[None]:
        """Errors outside of the main coroutine, such as arguments that can't be decoded, may be
        of a kind that is to fail the workflow."""
        try:
            yield
        except MalformedHistoryError:
            raise
        except Exception as error:
            if not self._is_failure(error):
                raise
            self._fail_workflow(error, line_of(error))

    def _end_turn(self) -> None:
        if self._state.commands.is_closed and not self._state.is_replaying:
            self._handlers.warn_of_unfinished()

    def _follow_up(self) -> None:
        """Tell the code what its own commands brought about, until nothing more follows."""
        state, local = self._state, self._runtime.local_activities
        while not state.commands.is_closed:
            jobs = Jobs()
            jobs.others, state.follow_ups = state.follow_ups, []
            jobs.others += local.due(anyway=not jobs.others)
            if not jobs.others:
                return
            self._run_jobs(jobs)

    def _enter_task(self, turn: Turn) -> None:
        state, runtime, started = self._state, self._runtime, turn.started
        state.has_accepted = False
        state.turns = 0
        self._updates.messages.clear()
        state.is_replaying = turn.answer is not None or self._is_replay
        completed: Any = turn.answer.completed.attributes if turn.answer else None
        if state.is_replaying:
            state.flags.enter_recorded(completed.sdk_metadata if completed else None)
        else:
            state.flags.enter_new()
        if completed is None:
            runtime.set_worker(*self._worker)
        else:
            runtime.set_worker(*_worker_of(completed))
        state.set_time(started.event_time)
        attributes: Any = started.attributes
        runtime.history_length = started.event_id
        runtime.history_size = attributes.history_size_bytes
        runtime.is_continue_as_new_suggested = attributes.suggest_continue_as_new
        runtime.is_target_worker_deployment_version_changed = (
            attributes.target_worker_deployment_version_changed
        )

    def _run_jobs(self, jobs: Jobs) -> None:
        """Apply jobs and let the code run: after signals and updates, and again after the rest."""
        state = self._state
        if not jobs.first and not jobs.others:
            return
        is_one_batch = state.flags.lang(LangFlag.ONE_BATCH)
        batches = ([*jobs.first, *jobs.others],) if is_one_batch else (jobs.first, jobs.others)
        for batch in batches:
            if batch:
                with state.loop.entered():
                    for job in batch:
                        job()
                    self._run_code(jobs)
        state.turns += 1

    def _run_code(self, jobs: Jobs) -> None:
        state = self._state
        loop = state.loop
        if self._runtime.workflow_object is None:
            self._make_workflow()
        while True:
            loop.run_ready(self._has_failed)
            if state.error is not None:
                error, state.error = state.error, None
                raise error
            # A rejected update leaves no event: what it changed must not let a condition pass.
            if state.conditions and (state.has_accepted or not jobs.are_updates_only):
                state.conditions = [
                    waiting for waiting in state.conditions if not _is_over(*waiting)
                ]
            if not loop.has_ready():
                return

    def _has_failed(self) -> bool:
        return self._state.error is not None

    # --- the code -------------------------------------------------------------------------------

    def begin(self, first: HistoryEvent, started: events.WorkflowExecutionStarted) -> None:
        """The run's first event: all that is fixed from now on."""
        state = self._state
        state.started = started
        if started.memo:
            state.memo.update(started.memo.fields)
        if started.search_attributes:
            state.search_attributes.update(started.search_attributes.indexed_fields)
        state.info = read_info(
            first,
            started,
            execution=self._execution,
            namespace=self._namespace,
            memo=state.memo,
            first_task_at=datetime.fromtimestamp(state.loop.seconds, UTC),
        )
        self._runtime.set_seed(state.info.original_execution_run_id)
        with state.loop.entered():
            self._chain_interceptors()
            self._call = self._read_call(started)

    def _chain_interceptors(self) -> None:
        root = InboundRoot(self._handlers)
        inbound: WorkflowInboundInterceptor = root
        for interceptor in reversed(self._interceptors):
            inbound = interceptor(inbound)
        inbound.init(self._outbound)
        self._handlers.inbound = inbound
        self._runtime.outbound = self._outbound.first = root.outbound

    def _read_call(self, started: events.WorkflowExecutionStarted) -> ExecuteWorkflowInput:
        definition = self._definition
        count = len(started.input.payloads) if started.input else 0
        types = definition.arg_types if definition.name is not None else [RawValue] * count
        args = self._state.values.decode(started.input, types, self._is_failure)
        return ExecuteWorkflowInput(
            type=definition.cls,
            run_fn=definition.run_fn,
            args=args if definition.name is not None else [args],
            headers=self._state.info.headers,
        )

    def _make_workflow(self) -> None:
        definition, call = self._definition, self._call
        if call is None:
            raise MalformedHistoryError(
                "the history's first event is not WORKFLOW_EXECUTION_STARTED; load it whole"
            )
        made = definition.cls(*call.args) if definition.has_init else definition.cls()
        self._handlers.workflow = self._runtime.workflow_object = made
        if definition.dynamic_config_fn is None:
            return
        with read_only(self._state):
            config = definition.dynamic_config_fn(made)
        if config.failure_exception_types is not None:
            self._failure_types = tuple(config.failure_exception_types)
        if config.versioning_behavior is not VersioningBehavior.UNSPECIFIED:
            self._versioning_behavior = config.versioning_behavior

    def signal(self, event_id: int, event: events.WorkflowExecutionSignaled) -> None:
        """A signal came."""
        self._handlers.signal(event_id, event)

    def admit(self, event_id: int, event: events.WorkflowExecutionUpdateAdmitted) -> Job | None:
        """A reset brought an update over."""
        return self._updates.admitted(event, event_id)

    def set_seed(self, run_id: str) -> None:
        """A reset changed the random numbers."""
        self._runtime.set_seed(run_id)

    def start(self) -> None:
        """Start the main coroutine."""
        self._main = self._state.loop.create_task(self._run_top(self._run_main), name="run")

    async def _run_main(self) -> None:
        call: Any = self._call
        result = await self._handlers.inbound.execute_workflow(call)
        payloads = self._state.values.encode_one(result)
        code = self._definition.run_fn.__code__
        self._state.commands.add(
            commands.CompleteWorkflowExecution(result=payloads), line=(code, code.co_firstlineno)
        )

    async def _run_top(self, body: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run the main coroutine or a signal's handler, either of which may end the run."""
        try:
            await body()
        except ContinueAsNewRequest as request:
            self._outbound.issue_continue_as_new(request, line_of(request))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - it ends the run or the task
            if not self._state.loop.evicting:
                self._end_with(error)

    def _end_with(self, error: BaseException) -> None:
        line = line_of(error)
        if isinstance(error, asyncio.CancelledError):
            error = CancelledError(str(error))
        if self._state.cancellation_reason is not None and is_cancelled_exception(error):
            self._state.commands.add(commands.CancelWorkflowExecution(), line=line)
        elif self._is_failure(error):
            try:
                self._fail_workflow(error, line)
            except ValueError as unconverted:
                self._state.error = unconverted
        else:
            self._state.error = error

    def _fail_workflow(self, error: BaseException, line: Line) -> None:
        try:
            failure = self._state.values.to_failure(error)
        except Exception as inner:
            raise ValueError("Failed converting workflow exception") from inner
        self._state.commands.add(commands.FailWorkflowExecution(failure=failure), line=line)

    def cancel(self, reason: str) -> None:
        """Cancellation was asked for."""
        self._state.cancellation_reason = reason
        if self._main is not None:
            # Later, so that a main coroutine of the same task begins before it is cancelled.
            self._state.loop.call_soon(self._main.cancel)

    def _is_failure(self, error: BaseException) -> bool:
        return isinstance(
            error,
            (FailureError, TimeoutError, *self._failure_types, *self._worker_failure_types),
        )

    def _report(self, context: Mapping[str, Any]) -> None:
        """Log what asyncio has to say about the code; not on replay."""
        if self._state.is_replaying:
            return
        error = context.get("exception")
        _logger.error(
            context.get("message") or "Unhandled exception in workflow code",
            exc_info=error if isinstance(error, BaseException) else None,
            extra={"action": "workflow_code_error", **self._state.info.logger_details()},
        )

    # --- the result -----------------------------------------------------------------------------

    def _result(self, task: PollWorkflowTaskQueueResponse) -> WorkflowTaskResult:
        state = self._state
        if task.query is not None:
            return WorkflowTaskResult(query_result=self._handlers.answer("", task.query))
        return WorkflowTaskResult(
            commands=state.commands.commands(state.flags),
            messages=tuple(self._updates.messages),
            local_activities=()
            if state.commands.is_closed or not state.local_activities
            else tuple(activity.task() for activity in state.local_activities.values()),
            query_results={
                query_id: self._handlers.answer(query_id, query)
                for query_id, query in task.queries.items()
            },
            core_flags=state.flags.new_core,
            lang_flags=state.flags.new_lang,
            versioning_behavior=self._versioning_behavior,
        )

    # --- failing --------------------------------------------------------------------------------

    def _failed(self, error: BaseException) -> WorkflowTaskResult:
        is_mismatch = isinstance(error, HistoryMismatchError)
        if is_mismatch and self._is_failure(error):
            failure = self._state.values.to_failure(error)
            command = Command.of(commands.FailWorkflowExecution(failure=failure))
            return WorkflowTaskResult(commands=(command,), error=error)
        try:
            failure = self._state.values.to_failure(error)
        except Exception as inner:  # noqa: BLE001 - a converter's fault must not hide that it failed
            failure = Failure(message=cleaned(f"Failed converting activation exception: {inner}"))
        return WorkflowTaskResult(
            cause=WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR
            if is_mismatch
            else WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE,
            failure=failure,
            error=error,
        )


def _is_heartbeat(answer: Recorded) -> bool:
    """Whether a worker only asked for more time; the commands come with a later task."""
    following = answer.next_event
    return (
        not answer.commands
        and following is not None
        and type(following.attributes) is events.WorkflowTaskScheduled
    )


def _is_over(condition: Callable[[], bool], future: asyncio.Future[Any]) -> bool:
    """Whether a condition needs no more looking at: it holds, or nobody waits for it."""
    if future.done():
        return True
    if not condition():
        return False
    future.set_result(True)
    return True


def _worker_of(
    completed: events.WorkflowTaskCompleted,
) -> tuple[str, WorkerDeploymentVersion | None]:
    """Build id and deployment version of the worker that completed a task."""
    version = completed.deployment_version
    if version is not None:
        made = WorkerDeploymentVersion(version.deployment_name, version.build_id)
        return version.build_id, made
    stamp = completed.worker_version
    return (stamp.build_id if stamp is not None else "", None)


def replay_history(
    definition: WorkflowDefinition,
    history: Sequence[HistoryEvent],
    *,
    namespace: str = "ReplayNamespace",
    workflow_execution: WorkflowExecution | None = None,
    data_converter: DataConverter = DataConverter.default,
    interceptors: Sequence[type[WorkflowInboundInterceptor]] = (),
    failure_exception_types: Sequence[type[BaseException]] = (),
    build_id: str = "",
    guarded: bool = False,
    extern_functions: Mapping[str, Callable[..., Any]] | None = None,
) -> BaseException | None:
    """Run a workflow's code against a recorded history; what makes that fail, if anything does.

    A `HistoryMismatchError` names the event and the command that disagree. What the code does after
    the history's end is not looked at, but an error there counts, unless it fails the workflow.

    Raises:
        MalformedHistoryError: it is no history that a server could have written.
    """
    instance = WorkflowInstance(
        definition=definition,
        namespace=namespace,
        workflow_execution=workflow_execution or _execution_of(history),
        data_converter=data_converter,
        interceptors=interceptors,
        failure_exception_types=failure_exception_types,
        build_id=build_id,
        guarded=guarded,
        extern_functions=extern_functions,
        is_replay=True,
    )
    try:
        return instance.replay(history)
    finally:
        instance.evict()


def _execution_of(history: Sequence[HistoryEvent]) -> WorkflowExecution:
    started = history[0].attributes if history else None
    if not isinstance(started, events.WorkflowExecutionStarted):
        raise MalformedHistoryError(
            "a history to replay begins with WORKFLOW_EXECUTION_STARTED; load it whole"
        )
    return WorkflowExecution(
        workflow_id=started.workflow_id, run_id=started.original_execution_run_id
    )
