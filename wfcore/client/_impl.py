"""Behind all interceptors: inputs to requests, answers to what the caller gets."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from wfcore.client import _async_activities as async_activities
from wfcore.client._async_activities import (
    CompleteAsyncActivityInput,
    FailAsyncActivityInput,
    HeartbeatAsyncActivityInput,
    ReportCancellationAsyncActivityInput,
)
from wfcore.client._errors import WorkflowQueryFailedError, WorkflowQueryRejectedError
from wfcore.client._executions import WorkflowExecutionCount, WorkflowExecutionDescription
from wfcore.client._handles import WorkflowHandle
from wfcore.client._interceptor import (
    CancelWorkflowInput,
    CountWorkflowsInput,
    DescribeWorkflowInput,
    FetchWorkflowHistoryEventsInput,
    ListWorkflowsInput,
    OutboundInterceptor,
    QueryWorkflowInput,
    SignalWorkflowInput,
    StartWorkflowInput,
    StartWorkflowUpdateInput,
    StartWorkflowUpdateWithStartInput,
    TerminateWorkflowInput,
    UpdateWithStartStartWorkflowInput,
    UpdateWithStartUpdateWorkflowInput,
)
from wfcore.client._iterators import (
    WorkflowExecutionAsyncIterator,
    WorkflowHistoryEventAsyncIterator,
)
from wfcore.client._updates import WorkflowUpdateHandle, WorkflowUpdateStage, waiting_call
from wfcore.common import HeaderCodecBehavior
from wfcore.converter import (
    DataConverter,
    WorkflowSerializationContext,
    encode_search_attributes,
    priority_to_protocol,
    retry_policy_to_protocol,
    versioning_override_to_protocol,
)
from wfcore.exceptions import (
    MultiOperationExecutionError,
    QueryFailedError,
    WorkflowAlreadyStartedError,
    WorkflowExecutionAlreadyStartedError,
)
from wfcore.protocol.common import TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import (
    QueryRejectCondition,
    TaskQueueKind,
    WorkflowIdConflictPolicy,
    WorkflowIdReusePolicy,
)
from wfcore.protocol.enums import UpdateWorkflowExecutionLifecycleStage as Stage
from wfcore.protocol.payloads import Header, Payload, Payloads, UserMetadata
from wfcore.protocol.rpc.info import WorkflowExecutionInfo, WorkflowQuery
from wfcore.protocol.rpc.updates import (
    ExecuteMultiOperationRequest,
    ExecuteMultiOperationRequestOperation,
    UpdateWorkflowExecutionRequest,
    UpdateWorkflowExecutionResponse,
)
from wfcore.protocol.rpc.workflows import (
    CountWorkflowExecutionsRequest,
    DescribeWorkflowExecutionRequest,
    QueryWorkflowRequest,
    RequestCancelWorkflowExecutionRequest,
    SignalWithStartWorkflowExecutionRequest,
    SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
    StartWorkflowExecutionResponse,
    TerminateWorkflowExecutionRequest,
)
from wfcore.protocol.updates import Input, Meta, Request, WaitPolicy

if TYPE_CHECKING:
    from wfcore.client._client import Client


# ruff: noqa: A002 - parameters have Temporal's names
class ClientImpl(OutboundInterceptor):
    """Makes the calls."""

    def __init__(self, client: Client) -> None:
        self._client = client

    # --- start ---

    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        """Start, or signal with start.

        Raises:
            WorkflowAlreadyStartedError: the policies don't allow another run.
        """
        client = self._client
        fields = await self._start_fields(input)
        try:
            if input.start_signal is None:
                started = await self._start(input, StartWorkflowExecutionRequest(**fields))
                run_id, first_run_id = started.run_id, started.first_execution_run_id
            else:
                converter = self._converter(input.id)
                signalled = await client.calls.make(
                    client.service.signal_with_start_workflow_execution,
                    SignalWithStartWorkflowExecutionRequest(
                        **fields,
                        signal_name=input.start_signal,
                        signal_input=await _arguments(converter, input.start_signal_args),
                    ),
                    time_limit=input.rpc_timeout,
                )
                run_id, first_run_id = signalled.run_id, signalled.first_execution_run_id
        except WorkflowExecutionAlreadyStartedError as err:
            raise _already_started(input, err) from err
        return WorkflowHandle(
            client,
            input.id,
            result_run_id=run_id,
            first_execution_run_id=first_run_id or run_id,
            result_type=input.ret_type,
        )

    async def _start(
        self, input: StartWorkflowInput, request: StartWorkflowExecutionRequest
    ) -> StartWorkflowExecutionResponse:
        """Start, with the first task going to a worker in this process if that was asked for."""
        client = self._client

        async def make(request: StartWorkflowExecutionRequest) -> StartWorkflowExecutionResponse:
            return await client.calls.make(
                client.service.start_workflow_execution, request, time_limit=input.rpc_timeout
            )

        place = None
        if input.request_eager_start:
            place = client.service.local_workers.reserve(client.namespace, input.task_queue)
        if place is None:
            return await make(request)
        with place:
            started = await make(msgspec.structs.replace(request, request_eager_execution=True))
            if started.eager_workflow_task is not None:
                place.fill(started.eager_workflow_task)
        return started

    async def _start_fields(
        self, input: StartWorkflowInput | UpdateWithStartStartWorkflowInput
    ) -> dict[str, Any]:
        """What all kinds of start have in common."""
        converter = self._converter(input.id)
        fields: dict[str, Any] = {
            "namespace": self._client.namespace,
            "workflow_id": input.id,
            "workflow_type": WorkflowType(name=input.workflow),
            "task_queue": TaskQueue(name=input.task_queue, kind=TaskQueueKind.NORMAL),
            "input": await _arguments(converter, input.args),
            "workflow_execution_timeout": input.execution_timeout,
            "workflow_run_timeout": input.run_timeout,
            "workflow_task_timeout": input.task_timeout,
            "identity": self._client.identity,
            "request_id": str(uuid.uuid4()),
            "workflow_id_reuse_policy": WorkflowIdReusePolicy(input.id_reuse_policy),
            "workflow_id_conflict_policy": WorkflowIdConflictPolicy(input.id_conflict_policy),
            "cron_schedule": input.cron_schedule,
            "workflow_start_delay": input.start_delay,
            "header": await self._header(converter, input.headers),
        }
        if input.retry_policy is not None:
            fields["retry_policy"] = retry_policy_to_protocol(input.retry_policy)
        if input.memo:
            fields["memo"] = await converter.encode_memo(input.memo)
        if input.search_attributes:
            fields["search_attributes"] = encode_search_attributes(input.search_attributes)
        if input.static_summary is not None or input.static_details is not None:
            fields["user_metadata"] = UserMetadata(
                summary=await _text(converter, input.static_summary),
                details=await _text(converter, input.static_details),
            )
        # Also an empty one: the SDK sends the message always, and event 1 shows it.
        fields["priority"] = priority_to_protocol(input.priority)
        if input.versioning_override is not None:
            fields["versioning_override"] = versioning_override_to_protocol(
                input.versioning_override
            )
        return fields

    # --- steering ---

    async def cancel_workflow(self, input: CancelWorkflowInput) -> None:
        """Ask for cancellation."""
        await self._client.calls.make(
            self._client.service.request_cancel_workflow_execution,
            RequestCancelWorkflowExecutionRequest(
                namespace=self._client.namespace,
                workflow_execution=_execution(input.id, input.run_id),
                identity=self._client.identity,
                request_id=str(uuid.uuid4()),
                first_execution_run_id=input.first_execution_run_id or "",
                reason=input.reason,
            ),
            time_limit=input.rpc_timeout,
        )

    async def signal_workflow(self, input: SignalWorkflowInput) -> None:
        """Send a signal."""
        converter = self._converter(input.id)
        await self._client.calls.make(
            self._client.service.signal_workflow_execution,
            SignalWorkflowExecutionRequest(
                namespace=self._client.namespace,
                workflow_execution=_execution(input.id, input.run_id),
                signal_name=input.signal,
                input=await _arguments(converter, input.args),
                identity=self._client.identity,
                request_id=str(uuid.uuid4()),
                header=await self._header(converter, input.headers),
            ),
            time_limit=input.rpc_timeout,
        )

    async def terminate_workflow(self, input: TerminateWorkflowInput) -> None:
        """Terminate."""
        converter = self._converter(input.id)
        await self._client.calls.make(
            self._client.service.terminate_workflow_execution,
            TerminateWorkflowExecutionRequest(
                namespace=self._client.namespace,
                workflow_execution=_execution(input.id, input.run_id),
                reason=input.reason or "",
                details=await _arguments(converter, input.args),
                identity=self._client.identity,
                first_execution_run_id=input.first_execution_run_id or "",
            ),
            time_limit=input.rpc_timeout,
        )

    async def query_workflow(self, input: QueryWorkflowInput) -> Any:
        """Ask.

        Raises:
            WorkflowQueryRejectedError: the workflow's status doesn't allow it.
            WorkflowQueryFailedError: the handler failed, or there is none.
        """
        converter = self._converter(input.id)
        condition = (
            input.reject_condition or self._client.default_workflow_query_reject_condition or 0
        )
        method = self._client.service.query_workflow
        if input.rpc_timeout is not None:
            method = partial(method, timeout=input.rpc_timeout)
        try:
            answer = await self._client.calls.make(
                method,
                QueryWorkflowRequest(
                    namespace=self._client.namespace,
                    execution=_execution(input.id, input.run_id),
                    query=WorkflowQuery(
                        query_type=input.query,
                        query_args=await _arguments(converter, input.args),
                        header=await self._header(converter, input.headers),
                    ),
                    query_reject_condition=QueryRejectCondition(condition),
                ),
                time_limit=input.rpc_timeout,
                waits=True,
            )
        except QueryFailedError as err:
            raise WorkflowQueryFailedError(err.message) from err
        if answer.query_rejected is not None:
            raise WorkflowQueryRejectedError(answer.query_rejected.status or None)
        results = await converter.decode_wrapper(
            answer.query_result, [input.ret_type] if input.ret_type else None
        )
        if len(results) > 1:
            warnings.warn(f"Expected single query result, got {len(results)}", stacklevel=2)
        return results[0] if results else None

    # --- updates ---

    async def start_workflow_update(
        self, input: StartWorkflowUpdateInput
    ) -> WorkflowUpdateHandle[Any]:
        """Send an update and wait for its stage; until it is accepted, it is sent again.

        Raises:
            WorkflowUpdateRPCTimeoutOrCancelledError: the call was given up.
        """
        request = await self._update_request(
            input, input.id, input.run_id, input.first_execution_run_id
        )
        method = self._client.service.update_workflow_execution
        while True:
            answer = await waiting_call(self._client, method, request, input.rpc_timeout)
            if answer.stage >= Stage.ACCEPTED:
                return await self._update_handle(input, input.id, answer)

    async def start_update_with_start_workflow(
        self, input: StartWorkflowUpdateWithStartInput
    ) -> WorkflowUpdateHandle[Any]:
        """Start a workflow unless it is open, and send it an update.

        Raises:
            WorkflowAlreadyStartedError: the policies allow neither.
            WorkflowUpdateRPCTimeoutOrCancelledError: the call was given up.
        """
        has_started = False

        def on_start(answer: StartWorkflowExecutionResponse) -> None:
            nonlocal has_started
            if not has_started:
                has_started = True
                input._on_start(answer)  # noqa: SLF001 - Temporal's name

        try:
            return await self._update_with_start(input, on_start)
        except BaseException as err:
            told = _failed(input.start_workflow_input, err)
            if not has_started:
                input._on_start_error(told)  # noqa: SLF001 - Temporal's name
            if told is err:
                raise
            raise told from err

    async def _update_with_start(
        self,
        input: StartWorkflowUpdateWithStartInput,
        on_start: Callable[[StartWorkflowExecutionResponse], None],
    ) -> WorkflowUpdateHandle[Any]:
        begin, update = input.start_workflow_input, input.update_workflow_input
        start = StartWorkflowExecutionRequest(**await self._start_fields(begin))
        operations = (
            ExecuteMultiOperationRequestOperation(start_workflow=start),
            ExecuteMultiOperationRequestOperation(
                update_workflow=await self._update_request(update, begin.id)
            ),
        )
        request = ExecuteMultiOperationRequest(
            namespace=self._client.namespace, operations=operations
        )
        method = self._client.service.execute_multi_operation
        while True:
            answer = await waiting_call(self._client, method, request, input.rpc_timeout)
            started, updated = (each for each in answer.responses)
            if started.start_workflow is None or updated.update_workflow is None:
                raise RuntimeError("update-with-start was answered by something else")
            on_start(started.start_workflow)
            if updated.update_workflow.stage >= Stage.ACCEPTED:
                return await self._update_handle(update, begin.id, updated.update_workflow)

    async def _update_request(
        self,
        input: StartWorkflowUpdateInput | UpdateWithStartUpdateWorkflowInput,
        workflow_id: str,
        run_id: str | None = None,
        first_execution_run_id: str | None = None,
    ) -> UpdateWorkflowExecutionRequest:
        converter = self._converter(workflow_id)
        meta = Meta(update_id=input.update_id or str(uuid.uuid4()), identity=self._client.identity)
        asked = Input(
            header=await self._header(converter, input.headers),
            name=input.update,
            args=await _arguments(converter, input.args),
        )
        return UpdateWorkflowExecutionRequest(
            namespace=self._client.namespace,
            workflow_execution=_execution(workflow_id, run_id),
            first_execution_run_id=first_execution_run_id or "",
            wait_policy=WaitPolicy(lifecycle_stage=Stage(input.wait_for_stage)),
            request=Request(meta=meta, input=asked),
        )

    async def _update_handle(
        self,
        input: StartWorkflowUpdateInput | UpdateWithStartUpdateWorkflowInput,
        workflow_id: str,
        answer: UpdateWorkflowExecutionResponse,
    ) -> WorkflowUpdateHandle[Any]:
        ref = answer.update_ref
        run = ref.workflow_execution if ref is not None else None
        handle: WorkflowUpdateHandle[Any] = WorkflowUpdateHandle(
            self._client,
            ref.update_id if ref is not None else "",
            workflow_id,
            workflow_run_id=run.run_id if run is not None else None,
            result_type=input.ret_type,
            known_outcome=answer.outcome,
        )
        if input.wait_for_stage is WorkflowUpdateStage.COMPLETED:
            await handle.outcome()
        return handle

    # --- activities ---

    async def heartbeat_async_activity(self, input: HeartbeatAsyncActivityInput) -> None:
        """Record a heartbeat."""
        await async_activities.heartbeat(self._client, input)

    async def complete_async_activity(self, input: CompleteAsyncActivityInput) -> None:
        """Complete an activity."""
        await async_activities.complete(self._client, input)

    async def fail_async_activity(self, input: FailAsyncActivityInput) -> None:
        """Fail an attempt."""
        await async_activities.fail(self._client, input)

    async def report_cancellation_async_activity(
        self, input: ReportCancellationAsyncActivityInput
    ) -> None:
        """End an activity as cancelled."""
        await async_activities.report_cancellation(self._client, input)

    # --- reading ---

    async def describe_workflow(self, input: DescribeWorkflowInput) -> WorkflowExecutionDescription:
        """Describe."""
        answer = await self._client.calls.make(
            self._client.service.describe_workflow_execution,
            DescribeWorkflowExecutionRequest(
                namespace=self._client.namespace, execution=_execution(input.id, input.run_id)
            ),
            time_limit=input.rpc_timeout,
        )
        return WorkflowExecutionDescription.from_info(
            answer.workflow_execution_info or WorkflowExecutionInfo(),
            self._client.namespace,
            self._client.data_converter,
            raw_description=answer,
        )

    def fetch_workflow_history_events(
        self, input: FetchWorkflowHistoryEventsInput
    ) -> WorkflowHistoryEventAsyncIterator:
        """Events, page by page."""
        return WorkflowHistoryEventAsyncIterator(self._client, input)

    def list_workflows(self, input: ListWorkflowsInput) -> WorkflowExecutionAsyncIterator:
        """Runs, page by page."""
        return WorkflowExecutionAsyncIterator(self._client, input)

    async def count_workflows(self, input: CountWorkflowsInput) -> WorkflowExecutionCount:
        """Count."""
        answer = await self._client.calls.make(
            self._client.service.count_workflow_executions,
            CountWorkflowExecutionsRequest(
                namespace=self._client.namespace, query=input.query or ""
            ),
            time_limit=input.rpc_timeout,
        )
        return WorkflowExecutionCount.from_answer(answer)

    # --- parts ---

    def _converter(self, workflow_id: str) -> DataConverter:
        return self._client.data_converter.with_context(
            WorkflowSerializationContext(namespace=self._client.namespace, workflow_id=workflow_id)
        )

    async def _header(
        self, converter: DataConverter, headers: Mapping[str, Payload]
    ) -> Header | None:
        if not headers:
            return None
        header = Header(fields=dict(headers))
        if self._client.header_codec_behavior is HeaderCodecBehavior.CODEC:
            return await converter.encode_message(header, headers=True)
        return header


def _already_started(
    input: StartWorkflowInput | UpdateWithStartStartWorkflowInput,
    error: WorkflowExecutionAlreadyStartedError,
) -> WorkflowAlreadyStartedError:
    return WorkflowAlreadyStartedError(
        input.id,
        input.workflow,
        run_id=error.run_id or None,
        first_run_id=error.first_execution_run_id or None,
    )


def _failed(input: UpdateWithStartStartWorkflowInput, error: BaseException) -> BaseException:
    """What the caller of update-with-start is told."""
    if not isinstance(error, MultiOperationExecutionError):
        return error
    if isinstance(error.failed, WorkflowExecutionAlreadyStartedError):
        return _already_started(input, error.failed)
    return error.failed or error


def _execution(workflow_id: str, run_id: str | None) -> WorkflowExecution:
    return WorkflowExecution(workflow_id=workflow_id, run_id=run_id or "")


async def _arguments(converter: DataConverter, args: Sequence[Any]) -> Payloads | None:
    return await converter.encode_wrapper(args) if args else None


async def _text(converter: DataConverter, text: str | None) -> Payload | None:
    return None if text is None else (await converter.encode([text]))[0]
