"""Child workflows and other workflows: their starts, ends, signals and cancel requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from wfcore.common import UNSET, arg_or_args
from wfcore.converter import (
    encode_search_attributes,
    priority_to_protocol,
    retry_policy_to_protocol,
    versioning_override_to_protocol,
)
from wfcore.exceptions import InvalidVersioningOverrideError, WorkflowAlreadyStartedError
from wfcore.protocol import commands, enums, events
from wfcore.protocol.common import TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import (
    CancelExternalWorkflowExecutionFailedCause,
    RetryState,
    SignalExternalWorkflowExecutionFailedCause,
    StartChildWorkflowExecutionFailedCause,
    TimeoutType,
)
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.failures import (
    ApplicationFailureInfo,
    CanceledFailureInfo,
    ChildWorkflowExecutionFailureInfo,
    Failure,
    TerminatedFailureInfo,
    TimeoutFailureInfo,
)
from wfcore.protocol.payloads import Header, Memo, UserMetadata
from wfcore.replay.interceptors import (
    SignalChildWorkflowInput,
    SignalExternalWorkflowInput,
    StartChildWorkflowInput,
    WorkflowOutboundInterceptor,
)
from wfcore.replay.loop import WorkflowTask
from wfcore.replay.pending import inherits_build_id, settled
from wfcore.replay.state import Job, RunState
from wfcore.replay.values import Values
from wfcore.workflow import (
    ChildWorkflowCancellationType,
    ChildWorkflowHandle,
    EventGroup,
    ExternalWorkflowHandle,
    SignalDefinition,
)
from wfcore.workflow._event_groups import markers

_CANCELED = Failure(canceled_failure_info=CanceledFailureInfo())


class ChildWorkflow:
    """A child from its command to its end."""

    def __init__(self, state: RunState, call: StartChildWorkflowInput) -> None:
        self._state = state
        self.call = call
        self.event_id = 0
        self.started_event_id = 0
        self.run_id = ""
        self.is_open = True
        self.is_cancel_requested = False
        self.started: asyncio.Future[None] = state.loop.create_future()
        self.result: asyncio.Future[Any] = state.loop.create_future()
        self._values = state.values.for_workflow(state.info.namespace, call.id)
        self._issued = state.commands.add(
            _start_command(state, call, self._values),
            self,
            self._values.metadata(call.static_summary, call.static_details),
            markers(call.event_groups),
        )

    def recorded(self, event: HistoryEvent) -> None:
        """START_CHILD_WORKFLOW_EXECUTION_INITIATED."""
        self.event_id = event.event_id
        self._state.operations[event.event_id] = self

    # --- what happened to it --------------------------------------------------------------------

    def has_started(self, event: HistoryEvent) -> Job | None:
        """The child exists."""
        attributes: Any = event.attributes
        self.started_event_id = event.event_id
        if attributes.workflow_execution is not None:
            self.run_id = attributes.workflow_execution.run_id
        return partial(self.started.set_result, None) if self.is_open else None

    def start_failed(self, event: HistoryEvent) -> Job | None:
        """There will be no child."""
        attributes: Any = event.attributes
        del self._state.operations[self.event_id]
        if not self.is_open:
            return None
        self.is_open = False
        error: BaseException
        match attributes.cause:
            case StartChildWorkflowExecutionFailedCause.WORKFLOW_ALREADY_EXISTS:
                error = WorkflowAlreadyStartedError(self.call.id, self.call.workflow)
            case StartChildWorkflowExecutionFailedCause.INVALID_VERSIONING_OVERRIDE:
                error = InvalidVersioningOverrideError()
            case cause:
                error = RuntimeError(f"The child could not be started: {cause.name}")
        return partial(self._fail, error)

    def closed(self, event: HistoryEvent) -> Job | None:
        """The child ended; what the code was already told stands."""
        del self._state.operations[self.event_id]
        if not self.is_open:
            return None
        self.is_open = False
        return partial(self._tell, event.attributes)

    # --- cancelling it --------------------------------------------------------------------------

    def request_cancel(self, cancelled: asyncio.CancelledError) -> None:
        """Cancel it, as its cancellation type says; a text given to ``cancel()`` is the reason."""
        state = self._state
        state.check_may_act("cancel a child workflow")
        if not self.is_open or self.is_cancel_requested:
            return
        text = cancelled.args[0] if cancelled.args else None
        reason = text if isinstance(text, str) else ""
        if not self.event_id:
            state.commands.drop(self._issued)
            self.is_open = False
            message = f"Child Workflow Execution cancelled before scheduled: {reason}"
            failure = self._failure(message, _CANCELED, RetryState.NON_RETRYABLE_FAILURE)
            state.follow_ups.append(partial(self._fail, self._values.from_failure(failure)))
            return
        kind = self.call.cancellation_type
        if kind is not ChildWorkflowCancellationType.ABANDON:
            self.is_cancel_requested = True
            CancelRequest(
                state,
                self.call.id,
                self.run_id,
                reason=reason,
                is_to_child=True,
                metadata=self._issued.metadata,
                groups=self._issued.markers,
            )
        if kind in (
            ChildWorkflowCancellationType.ABANDON,
            ChildWorkflowCancellationType.TRY_CANCEL,
        ):
            self.is_open = False
            state.follow_ups.append(partial(self._fail, self._cancelled_error()))

    async def wait_for_start(self) -> None:
        """Wait until the child exists."""
        state = self._state
        await settled(
            state,
            self.started,
            self.request_cancel,
            reraises=lambda: state.cancellation_reason is not None,
        )

    async def run(self) -> Any:
        """What the handle does."""
        return await settled(self._state, self.result, self.request_cancel)

    # --- telling the code -----------------------------------------------------------------------

    def _tell(self, event: object) -> None:
        match event:
            case events.ChildWorkflowExecutionCompleted():
                hint = self.call.ret_type
                found = self._values.decode(
                    event.result, None if hint is None else [hint], self._state.is_failure
                )
                self.result.set_result(found[0] if found else None)
                return
            case events.ChildWorkflowExecutionFailed():
                message, cause, retry = "failed", event.failure, event.retry_state
            case events.ChildWorkflowExecutionTimedOut():
                timeout = TimeoutFailureInfo(timeout_type=TimeoutType.START_TO_CLOSE)
                cause = Failure(message="Timed out", timeout_failure_info=timeout)
                message, retry = "timed out", event.retry_state
            case events.ChildWorkflowExecutionTerminated():
                cause = Failure(
                    message="Terminated", terminated_failure_info=TerminatedFailureInfo()
                )
                message, retry = "terminated", RetryState.NON_RETRYABLE_FAILURE
            case events.ChildWorkflowExecutionCanceled():
                info = CanceledFailureInfo(details=event.details)
                cause = Failure(canceled_failure_info=info)
                message, retry = "cancelled", RetryState.NON_RETRYABLE_FAILURE
        failure = self._failure(f"Child Workflow execution {message}", cause, retry)
        self._fail(self._values.from_failure(failure))

    def _cancelled_error(self) -> BaseException:
        return self._values.from_failure(
            self._failure(
                "Child Workflow execution cancelled", _CANCELED, RetryState.NON_RETRYABLE_FAILURE
            )
        )

    def _fail(self, error: BaseException) -> None:
        if self.started.done():
            self.result.set_exception(error)
        else:
            self.started.set_exception(error)
            self.started.exception()  # seen: whoever waited for it may have been cancelled
            self.result.set_result(None)  # nobody has the handle, so nobody would fetch an error

    def _failure(self, message: str, cause: Failure | None, retry: RetryState) -> Failure:
        return Failure(
            message=message,
            cause=cause,
            child_workflow_execution_failure_info=ChildWorkflowExecutionFailureInfo(
                namespace=self._state.info.namespace,
                workflow_execution=WorkflowExecution(workflow_id=self.call.id, run_id=self.run_id),
                workflow_type=WorkflowType(name=self.call.workflow),
                initiated_event_id=self.event_id,
                started_event_id=self.started_event_id,
                retry_state=retry,
            ),
        )


class ChildTask(WorkflowTask[Any], ChildWorkflowHandle[Any, Any]):
    """The handle of a child."""

    def __init__(
        self,
        state: RunState,
        child: ChildWorkflow,
        outbound: Callable[[], WorkflowOutboundInterceptor],
        coro: Coroutine[Any, Any, Any],
    ) -> None:
        self._child = child
        self._run_state = state
        self._outbound = outbound
        super().__init__(coro, loop=state.loop, name=f"child: {child.call.workflow}")
        state.loop.add_task(self)

    @property
    def id(self) -> str:
        return self._child.call.id

    @property
    def first_execution_run_id(self) -> str | None:
        return self._child.run_id or None

    async def signal(
        self,
        signal: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        event_groups: Sequence[EventGroup] | None = None,
    ) -> None:
        self._run_state.check_may_act("signal a child workflow")
        await self._outbound().signal_child_workflow(
            SignalChildWorkflowInput(
                signal=SignalDefinition.name_of(signal),
                args=arg_or_args(arg, args),
                child_workflow_id=self.id,
                headers={},
                event_groups=event_groups,
            )
        )


# --- other workflows ----------------------------------------------------------------------------


class Signal:
    """A signal to another workflow, from its command to its delivery."""

    def __init__(
        self,
        state: RunState,
        call: SignalChildWorkflowInput | SignalExternalWorkflowInput,
    ) -> None:
        is_child = isinstance(call, SignalChildWorkflowInput)
        if isinstance(call, SignalChildWorkflowInput):
            workflow_id, run_id = call.child_workflow_id, ""
        else:
            workflow_id, run_id = call.workflow_id, call.workflow_run_id or ""
        self._state = state
        self._values = state.values.for_workflow(state.info.namespace, workflow_id)
        self._event_id = 0
        self._is_open = True
        self.delivered: asyncio.Future[None] = state.loop.create_future()
        state.next_number("signal")
        self._issued = state.commands.add(
            commands.SignalExternalWorkflowExecution(
                namespace=state.info.namespace,
                execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
                signal_name=call.signal,
                input=self._values.encode(call.args),
                child_workflow_only=is_child,
                header=Header(fields=dict(call.headers)) if call.headers else None,
            ),
            self,
            None,
            markers(call.event_groups),
        )

    def recorded(self, event: HistoryEvent) -> None:
        """SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED."""
        self._event_id = event.event_id
        self._state.operations[event.event_id] = self

    def answered(self, event: HistoryEvent) -> Job:
        """It was delivered, or could not be."""
        del self._state.operations[self._event_id]
        self._is_open = False
        attributes: Any = event.attributes
        if isinstance(attributes, events.ExternalWorkflowExecutionSignaled):
            return partial(self.delivered.set_result, None)
        cause: SignalExternalWorkflowExecutionFailedCause = attributes.cause
        return partial(
            self._fail,
            _undelivered(f"Unable to signal external workflow because {_WHY[cause]}", cause),
        )

    def request_cancel(self, _cancelled: asyncio.CancelledError) -> None:
        """Take it back if it was not sent yet; else go on waiting."""
        if self._event_id or not self._is_open:
            return
        self._is_open = False
        self._state.commands.drop(self._issued)
        failure = Failure(
            message="Signal was cancelled before being sent",
            canceled_failure_info=CanceledFailureInfo(),
        )
        self._state.follow_ups.append(partial(self._fail, failure))

    async def run(self) -> None:
        """Wait for the delivery."""
        await settled(self._state, self.delivered, self.request_cancel)

    def _fail(self, failure: Failure) -> None:
        self.delivered.set_exception(self._values.from_failure(failure))


class CancelRequest:
    """A cancel request to a child or another workflow, from its command to its delivery."""

    def __init__(
        self,
        state: RunState,
        workflow_id: str,
        run_id: str,
        *,
        reason: str,
        is_to_child: bool = False,
        metadata: UserMetadata | None = None,
        groups: tuple[Any, ...] = (),
    ) -> None:
        self._state = state
        self._is_to_child = is_to_child
        self._event_id = 0
        self._values = state.values.for_workflow(state.info.namespace, workflow_id)
        self.delivered: asyncio.Future[None] = state.loop.create_future()
        state.next_number("cancel")
        state.commands.add(
            commands.RequestCancelExternalWorkflowExecution(
                namespace=state.info.namespace,
                workflow_id=workflow_id,
                run_id=run_id,
                child_workflow_only=is_to_child,
                reason=reason,
            ),
            self,
            metadata,
            groups,
        )

    def recorded(self, event: HistoryEvent) -> None:
        """REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED."""
        self._event_id = event.event_id
        self._state.operations[event.event_id] = self

    def answered(self, event: HistoryEvent) -> Job | None:
        """It was delivered, or could not be."""
        del self._state.operations[self._event_id]
        attributes: Any = event.attributes
        is_delivered = isinstance(attributes, events.ExternalWorkflowExecutionCancelRequested)
        if self._is_to_child:
            return None  # the code waits for the child's end, or not at all
        if is_delivered:
            return partial(self._tell, None)
        cause: CancelExternalWorkflowExecutionFailedCause = attributes.cause
        why = "not found" if "EXECUTION_NOT_FOUND" in cause.name else _WHY[cause]
        return partial(
            self._tell, _undelivered(f"Unable to cancel external workflow because {why}", cause)
        )

    def _tell(self, failure: Failure | None) -> None:
        if self.delivered.done():
            return  # whoever waited was cancelled
        if failure is None:
            self.delivered.set_result(None)
        else:
            self.delivered.set_exception(self._values.from_failure(failure))


_WHY: dict[enums.WireEnum, str] = {
    SignalExternalWorkflowExecutionFailedCause.UNSPECIFIED: "of an unknown cause",
    SignalExternalWorkflowExecutionFailedCause.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND: (
        "it was not found"
    ),
    SignalExternalWorkflowExecutionFailedCause.NAMESPACE_NOT_FOUND: "its namespace was not found",
    SignalExternalWorkflowExecutionFailedCause.SIGNAL_COUNT_LIMIT_EXCEEDED: (
        "it has got as many signals as it may"
    ),
    CancelExternalWorkflowExecutionFailedCause.UNSPECIFIED: "of an unknown cause",
    CancelExternalWorkflowExecutionFailedCause.NAMESPACE_NOT_FOUND: "its namespace was not found",
}


def _undelivered(message: str, cause: enums.WireEnum) -> Failure:
    kind = "".join(word.capitalize() for word in cause.name.split("_"))
    return Failure(message=message, application_failure_info=ApplicationFailureInfo(type=kind))


class OtherWorkflow(ExternalWorkflowHandle[Any]):
    """A handle by id."""

    def __init__(
        self,
        state: RunState,
        outbound: Callable[[], WorkflowOutboundInterceptor],
        workflow_id: str,
        run_id: str | None,
    ) -> None:
        self._state = state
        self._outbound = outbound
        self._id = workflow_id
        self._run_id = run_id

    @property
    def id(self) -> str:
        return self._id

    @property
    def run_id(self) -> str | None:
        return self._run_id

    async def signal(
        self,
        signal: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        event_groups: Sequence[EventGroup] | None = None,
    ) -> None:
        self._state.check_may_act("signal a workflow")
        await self._outbound().signal_external_workflow(
            SignalExternalWorkflowInput(
                signal=SignalDefinition.name_of(signal),
                args=arg_or_args(arg, args),
                namespace=self._state.info.namespace,
                workflow_id=self._id,
                workflow_run_id=self._run_id,
                headers={},
                event_groups=event_groups,
            )
        )

    async def cancel(
        self, *, reason: str = "", event_groups: Sequence[EventGroup] | None = None
    ) -> None:
        self._state.check_may_act("cancel a workflow")
        request = CancelRequest(
            self._state,
            self._id,
            self._run_id or "",
            # The target sees who asked, in the words of Temporal's workers.
            reason=f"Cancel requested by workflow with run id {self._state.info.run_id} "
            f"with reason: {reason}",
            groups=markers(event_groups),
        )
        await request.delivered


def _start_command(
    state: RunState, call: StartChildWorkflowInput, values: Values
) -> commands.StartChildWorkflowExecution:
    return commands.StartChildWorkflowExecution(
        namespace=state.info.namespace,
        workflow_id=call.id,
        workflow_type=WorkflowType(name=call.workflow),
        task_queue=TaskQueue(name=call.task_queue or state.info.task_queue),
        input=values.encode(call.args),
        workflow_execution_timeout=call.execution_timeout or None,
        workflow_run_timeout=call.run_timeout or None,
        workflow_task_timeout=call.task_timeout or None,
        parent_close_policy=enums.ParentClosePolicy(call.parent_close_policy),
        workflow_id_reuse_policy=enums.WorkflowIdReusePolicy(call.id_reuse_policy),
        retry_policy=retry_policy_to_protocol(call.retry_policy) if call.retry_policy else None,
        cron_schedule=call.cron_schedule,
        header=Header(fields=dict(call.headers)),
        memo=Memo(fields=values.encode_map(call.memo)) if call.memo else None,
        search_attributes=encode_search_attributes(call.search_attributes)
        if call.search_attributes
        else None,
        inherit_build_id=inherits_build_id(state, call.task_queue, call.versioning_intent),
        priority=priority_to_protocol(call.priority),
        versioning_override=versioning_override_to_protocol(call.versioning_override)
        if call.versioning_override
        else None,
    )
