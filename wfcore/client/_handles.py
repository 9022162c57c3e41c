"""A handle names a workflow, or one run of it, and talks to it."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Generic, overload

from wfcore import exceptions
from wfcore.client._errors import WorkflowContinuedAsNewError, WorkflowFailureError
from wfcore.client._executions import WorkflowExecutionDescription
from wfcore.client._handle_updates import HandleUpdates
from wfcore.client._history import WorkflowHistory, WorkflowHistoryEventFilterType
from wfcore.client._interceptor import (
    CancelWorkflowInput,
    DescribeWorkflowInput,
    FetchWorkflowHistoryEventsInput,
    QueryWorkflowInput,
    SignalWorkflowInput,
    TerminateWorkflowInput,
)
from wfcore.client._updates import LocalReturnType, ReturnType, SelfType
from wfcore.common import UNSET, QueryRejectCondition, arg_or_args
from wfcore.converter import DataConverter, WorkflowSerializationContext
from wfcore.exceptions import CancelledError, TerminatedError, TimeoutType
from wfcore.protocol.events import (
    HistoryEvent,
    WorkflowExecutionCanceled,
    WorkflowExecutionCompleted,
    WorkflowExecutionContinuedAsNew,
    WorkflowExecutionFailed,
    WorkflowExecutionTerminated,
    WorkflowExecutionTimedOut,
)
from wfcore.protocol.failures import Failure
from wfcore.workflow import (
    MethodSyncOrAsyncNoParam,
    MethodSyncOrAsyncSingleParam,
    MultiParamSpec,
    ParamType,
    QueryDefinition,
    SignalDefinition,
)

if TYPE_CHECKING:
    from wfcore.client._client import Client
    from wfcore.client._iterators import WorkflowHistoryEventAsyncIterator


_ALL = WorkflowHistoryEventFilterType.ALL_EVENT
_CLOSE = WorkflowHistoryEventFilterType.CLOSE_EVENT


class WorkflowHandle(HandleUpdates[SelfType], Generic[SelfType, ReturnType]):
    """Names a workflow by its id and talks to it; made by `Client`.

    Attributes:
        id: the workflow's id.
        run_id: calls go to this run; None means the current one.
        result_run_id: the run whose result is waited for, and those that follow it.
        first_execution_run_id: cancel and terminate reach only the chain that began with it.
    """

    def __init__(
        self,
        client: Client,
        id: str,  # noqa: A002 - Temporal's name
        *,
        run_id: str | None = None,
        result_run_id: str | None = None,
        first_execution_run_id: str | None = None,
        result_type: Any = None,
        start_workflow_response: Any = None,
    ) -> None:
        self._client = client
        self.id = id
        self.run_id = run_id
        self.result_run_id = result_run_id
        self.first_execution_run_id = first_execution_run_id
        self._result_type = result_type
        self._start_workflow_response = start_workflow_response

    # --- the result ---

    async def result(
        self,
        *,
        follow_runs: bool = True,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> ReturnType:
        """Wait for the workflow's end and give its result.

        Args:
            follow_runs: wait for the runs that follow by continue-as-new, retry or cron too.
            rpc_timeout: a limit for each call, not for the wait as a whole.

        Raises:
            WorkflowFailureError: it failed, was cancelled or terminated, or timed out.
            WorkflowContinuedAsNewError: it continued as new and is not to be followed.
        """
        run_id = self.result_run_id
        while True:
            event = await self._close_event(run_id, rpc_metadata, rpc_timeout)
            following = getattr(event.attributes, "new_execution_run_id", "")
            if follow_runs and following:
                run_id = following
                continue
            outcome: ReturnType = await self._outcome(event)
            return outcome

    async def _close_event(
        self,
        run_id: str | None,
        rpc_metadata: Mapping[str, str | bytes],
        rpc_timeout: timedelta | None,
    ) -> HistoryEvent:
        events = self._events(
            run_id,
            wait_new_event=True,
            event_filter_type=_CLOSE,
            skip_archival=True,
            rpc_metadata=rpc_metadata,
            rpc_timeout=rpc_timeout,
        )
        async for event in events:
            return event
        raise RuntimeError("No completion event found")

    async def _outcome(self, event: HistoryEvent) -> Any:
        """The result that a closing event holds, or the error that it means."""
        converter = self._data_converter
        match event.attributes:
            case WorkflowExecutionCompleted(result=result):
                hints = [self._result_type] if self._result_type else None
                results = await converter.decode_wrapper(result, hints)
                if len(results) > 1:
                    warnings.warn(f"Expected single result, got {len(results)}", stacklevel=3)
                return results[0] if results else None
            case WorkflowExecutionFailed(failure=failure):
                cause = await converter.decode_failure(failure or Failure())
            case WorkflowExecutionCanceled(details=details):
                cause = CancelledError(
                    "Workflow cancelled", *await converter.decode_wrapper(details)
                )
            case WorkflowExecutionTerminated(reason=reason, details=details):
                cause = TerminatedError(
                    reason or "Workflow terminated", *await converter.decode_wrapper(details)
                )
            case WorkflowExecutionTimedOut():
                cause = exceptions.TimeoutError(
                    "Workflow timed out", type=TimeoutType.START_TO_CLOSE, last_heartbeat_details=[]
                )
            case WorkflowExecutionContinuedAsNew(new_execution_run_id=following):
                raise WorkflowContinuedAsNewError(following)
            case _:
                raise RuntimeError(
                    f"event {event.event_id} ({event.event_type.name}) doesn't close a workflow"
                )
        raise WorkflowFailureError(cause=cause)

    # --- steering ---

    async def cancel(
        self,
        *,
        reason: str = "",
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> None:
        """Ask the workflow to cancel itself; it may take its time, or decline.

        Raises:
            NotFoundError: there is no such workflow, or it belongs to another chain.
        """
        await self._client.outbound.cancel_workflow(
            CancelWorkflowInput(
                id=self.id,
                run_id=self.run_id,
                first_execution_run_id=self.first_execution_run_id,
                reason=reason,
                rpc_metadata=rpc_metadata,
                rpc_timeout=rpc_timeout,
            )
        )

    async def terminate(
        self,
        *args: Any,
        reason: str | None = None,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> None:
        """End the workflow at once; its code doesn't hear of it. `args` are kept as details.

        Raises:
            NotFoundError: there is no such workflow, it is closed, or belongs to another chain.
        """
        await self._client.outbound.terminate_workflow(
            TerminateWorkflowInput(
                id=self.id,
                run_id=self.run_id,
                first_execution_run_id=self.first_execution_run_id,
                args=args,
                reason=reason,
                rpc_metadata=rpc_metadata,
                rpc_timeout=rpc_timeout,
            )
        )

    @overload
    async def signal(
        self,
        signal: MethodSyncOrAsyncNoParam[SelfType, None],
        *,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> None: ...

    @overload
    async def signal(
        self,
        signal: MethodSyncOrAsyncSingleParam[SelfType, ParamType, None],
        arg: ParamType,
        *,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> None: ...

    @overload
    async def signal(
        self,
        signal: Callable[Concatenate[SelfType, MultiParamSpec], Awaitable[None] | None],
        *,
        args: Sequence[Any],
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> None: ...

    @overload
    async def signal(
        self,
        signal: str,
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> None: ...

    async def signal(
        self,
        signal: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> None:
        """Send a signal, named or given by its method; it is taken once it is stored.

        Raises:
            NotFoundError: there is no such workflow, or it is closed.
        """
        await self._client.outbound.signal_workflow(
            SignalWorkflowInput(
                id=self.id,
                run_id=self.run_id,
                signal=SignalDefinition.name_of(signal),
                args=arg_or_args(arg, args),
                headers={},
                rpc_metadata=rpc_metadata,
                rpc_timeout=rpc_timeout,
            )
        )

    @overload
    async def query(
        self,
        query: MethodSyncOrAsyncNoParam[SelfType, LocalReturnType],
        *,
        reject_condition: QueryRejectCondition | None = None,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> LocalReturnType: ...

    @overload
    async def query(
        self,
        query: MethodSyncOrAsyncSingleParam[SelfType, ParamType, LocalReturnType],
        arg: ParamType,
        *,
        reject_condition: QueryRejectCondition | None = None,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> LocalReturnType: ...

    @overload
    async def query(
        self,
        query: Callable[Concatenate[SelfType, MultiParamSpec], LocalReturnType],
        *,
        args: Sequence[Any],
        reject_condition: QueryRejectCondition | None = None,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> LocalReturnType: ...

    @overload
    async def query(
        self,
        query: str,
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        result_type: Any = None,
        reject_condition: QueryRejectCondition | None = None,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> Any: ...

    async def query(
        self,
        query: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        result_type: Any = None,
        reject_condition: QueryRejectCondition | None = None,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> Any:
        """Ask the workflow, by a query's name or its method.

        Raises:
            WorkflowQueryRejectedError: its status doesn't allow it (`reject_condition`).
            WorkflowQueryFailedError: the handler failed, or there is none.
            RPCError: no worker answered in time, or there is no such workflow.
        """
        name = QueryDefinition.name_of(query)
        if callable(query) and result_type is None:
            definition = QueryDefinition.from_fn(query)
            result_type = definition.ret_type if definition else None
        return await self._client.outbound.query_workflow(
            QueryWorkflowInput(
                id=self.id,
                run_id=self.run_id,
                query=name,
                args=arg_or_args(arg, args),
                reject_condition=reject_condition,
                headers={},
                ret_type=result_type,
                rpc_metadata=rpc_metadata,
                rpc_timeout=rpc_timeout,
            )
        )

    # --- reading ---

    async def describe(
        self,
        *,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> WorkflowExecutionDescription:
        """What is known of the run besides its history.

        Raises:
            NotFoundError: there is no such workflow.
        """
        return await self._client.outbound.describe_workflow(
            DescribeWorkflowInput(
                id=self.id,
                run_id=self.run_id,
                rpc_metadata=rpc_metadata,
                rpc_timeout=rpc_timeout,
            )
        )

    async def fetch_history(
        self,
        *,
        event_filter_type: WorkflowHistoryEventFilterType = _ALL,
        skip_archival: bool = False,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> WorkflowHistory:
        """The history as it is now."""
        events = self._events(
            self.run_id,
            event_filter_type=event_filter_type,
            skip_archival=skip_archival,
            rpc_metadata=rpc_metadata,
            rpc_timeout=rpc_timeout,
        )
        return WorkflowHistory(self.id, [event async for event in events])

    def fetch_history_events(
        self,
        *,
        page_size: int | None = None,
        next_page_token: bytes | None = None,
        wait_new_event: bool = False,
        event_filter_type: WorkflowHistoryEventFilterType = _ALL,
        skip_archival: bool = False,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> WorkflowHistoryEventAsyncIterator:
        """The events of the history; with `wait_new_event` also those to come, until the end."""
        return self._events(
            self.run_id,
            page_size=page_size,
            next_page_token=next_page_token,
            wait_new_event=wait_new_event,
            event_filter_type=event_filter_type,
            skip_archival=skip_archival,
            rpc_metadata=rpc_metadata,
            rpc_timeout=rpc_timeout,
        )

    def _events(
        self,
        run_id: str | None,
        *,
        page_size: int | None = None,
        next_page_token: bytes | None = None,
        wait_new_event: bool = False,
        event_filter_type: WorkflowHistoryEventFilterType,
        skip_archival: bool,
        rpc_metadata: Mapping[str, str | bytes],
        rpc_timeout: timedelta | None,
    ) -> WorkflowHistoryEventAsyncIterator:
        return self._client.outbound.fetch_workflow_history_events(
            FetchWorkflowHistoryEventsInput(
                id=self.id,
                run_id=run_id,
                page_size=page_size,
                next_page_token=next_page_token,
                wait_new_event=wait_new_event,
                event_filter_type=event_filter_type,
                skip_archival=skip_archival,
                rpc_metadata=rpc_metadata,
                rpc_timeout=rpc_timeout,
            )
        )

    @property
    def _data_converter(self) -> DataConverter:
        return self._client.data_converter.with_context(
            WorkflowSerializationContext(namespace=self._client.namespace, workflow_id=self.id)
        )
