"""The part of a client that starts workflows together with an update."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Unpack, cast, overload

from wfcore.client._handles import WorkflowHandle
from wfcore.client._interceptor import (
    OutboundInterceptor,
    StartWorkflowUpdateWithStartInput,
    UpdateWithStartUpdateWorkflowInput,
)
from wfcore.client._updates import (
    AnyUpdateOptions,
    LocalReturnType,
    SelfType,
    UpdateOptions,
    UpdateOptionsWithArgs,
    WithStartWorkflowOperation,
    WorkflowUpdateHandle,
    WorkflowUpdateStage,
    refuse_admitted,
)
from wfcore.common import UNSET, arg_or_args
from wfcore.protocol.rpc.workflows import StartWorkflowExecutionResponse
from wfcore.workflow import MultiParamSpec, ParamType, UpdateDefinition, UpdateMethodMultiParam

if TYPE_CHECKING:
    from wfcore.client._client import Client


class ClientUpdates:
    """Update-with-start."""

    outbound: OutboundInterceptor

    @overload
    async def execute_update_with_start_workflow(
        self,
        update: UpdateMethodMultiParam[[SelfType], LocalReturnType],
        *,
        start_workflow_operation: WithStartWorkflowOperation[SelfType, Any],
        **options: Unpack[UpdateOptions],
    ) -> LocalReturnType: ...

    @overload
    async def execute_update_with_start_workflow(
        self,
        update: UpdateMethodMultiParam[[SelfType, ParamType], LocalReturnType],
        arg: ParamType,
        *,
        start_workflow_operation: WithStartWorkflowOperation[SelfType, Any],
        **options: Unpack[UpdateOptions],
    ) -> LocalReturnType: ...

    @overload
    async def execute_update_with_start_workflow(
        self,
        update: UpdateMethodMultiParam[Concatenate[SelfType, MultiParamSpec], LocalReturnType],
        *,
        start_workflow_operation: WithStartWorkflowOperation[SelfType, Any],
        **options: Unpack[UpdateOptionsWithArgs],
    ) -> LocalReturnType: ...

    @overload
    async def execute_update_with_start_workflow(
        self,
        update: str,
        arg: Any = UNSET,
        *,
        start_workflow_operation: WithStartWorkflowOperation[Any, Any],
        **options: Unpack[AnyUpdateOptions],
    ) -> Any: ...

    async def execute_update_with_start_workflow(
        self,
        update: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        start_workflow_operation: WithStartWorkflowOperation[Any, Any],
        args: Sequence[Any] = (),
        id: str | None = None,  # noqa: A002 - Temporal's name
        result_type: Any = None,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> Any:
        """Start a workflow unless it is open, send it an update, and wait for its result.

        Raises:
            WorkflowUpdateFailedError: the update was refused or failed.
            WorkflowAlreadyStartedError: the policies don't allow to start or use the workflow.
            WorkflowUpdateRPCTimeoutOrCancelledError: the call was given up; the update goes on.
            RPCError: the service refused one of the two.
        """
        handle = await self._start_update_with_start(
            update,
            arg,
            start_workflow_operation=start_workflow_operation,
            wait_for_stage=WorkflowUpdateStage.COMPLETED,
            args=args,
            id=id,
            result_type=result_type,
            rpc_metadata=rpc_metadata,
            rpc_timeout=rpc_timeout,
        )
        return await handle.result()

    @overload
    async def start_update_with_start_workflow(
        self,
        update: UpdateMethodMultiParam[[SelfType], LocalReturnType],
        *,
        start_workflow_operation: WithStartWorkflowOperation[SelfType, Any],
        wait_for_stage: WorkflowUpdateStage,
        **options: Unpack[UpdateOptions],
    ) -> WorkflowUpdateHandle[LocalReturnType]: ...

    @overload
    async def start_update_with_start_workflow(
        self,
        update: UpdateMethodMultiParam[[SelfType, ParamType], LocalReturnType],
        arg: ParamType,
        *,
        start_workflow_operation: WithStartWorkflowOperation[SelfType, Any],
        wait_for_stage: WorkflowUpdateStage,
        **options: Unpack[UpdateOptions],
    ) -> WorkflowUpdateHandle[LocalReturnType]: ...

    @overload
    async def start_update_with_start_workflow(
        self,
        update: UpdateMethodMultiParam[Concatenate[SelfType, MultiParamSpec], LocalReturnType],
        *,
        start_workflow_operation: WithStartWorkflowOperation[SelfType, Any],
        wait_for_stage: WorkflowUpdateStage,
        **options: Unpack[UpdateOptionsWithArgs],
    ) -> WorkflowUpdateHandle[LocalReturnType]: ...

    @overload
    async def start_update_with_start_workflow(
        self,
        update: str,
        arg: Any = UNSET,
        *,
        start_workflow_operation: WithStartWorkflowOperation[Any, Any],
        wait_for_stage: WorkflowUpdateStage,
        **options: Unpack[AnyUpdateOptions],
    ) -> WorkflowUpdateHandle[Any]: ...

    async def start_update_with_start_workflow(
        self,
        update: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        start_workflow_operation: WithStartWorkflowOperation[Any, Any],
        wait_for_stage: WorkflowUpdateStage,
        args: Sequence[Any] = (),
        id: str | None = None,  # noqa: A002 - Temporal's name
        result_type: Any = None,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> WorkflowUpdateHandle[Any]:
        """Start a workflow unless it is open, send it an update, and wait until that has come so
        far; see `WorkflowHandle.start_update`. The workflow may be started without the update.

        Raises:
            WorkflowAlreadyStartedError: the policies don't allow to start or use the workflow.
            WorkflowUpdateRPCTimeoutOrCancelledError: the call was given up; the update goes on.
            RPCError: the service refused one of the two.
            RuntimeError: the operation was used before.
            ValueError: nobody can wait for ADMITTED.
        """
        return await self._start_update_with_start(
            update,
            arg,
            start_workflow_operation=start_workflow_operation,
            wait_for_stage=wait_for_stage,
            args=args,
            id=id,
            result_type=result_type,
            rpc_metadata=rpc_metadata,
            rpc_timeout=rpc_timeout,
        )

    async def _start_update_with_start(
        self,
        update: str | Callable[..., Any],
        arg: Any,
        *,
        start_workflow_operation: WithStartWorkflowOperation[Any, Any],
        wait_for_stage: WorkflowUpdateStage,
        args: Sequence[Any],
        id: str | None,  # noqa: A002 - Temporal's name
        result_type: Any,
        rpc_metadata: Mapping[str, str | bytes],
        rpc_timeout: timedelta | None,
    ) -> WorkflowUpdateHandle[Any]:
        refuse_admitted(wait_for_stage)
        name, hint = UpdateDefinition.name_and_result_type(update)
        update_input = UpdateWithStartUpdateWorkflowInput(
            update_id=id,
            update=name,
            args=arg_or_args(arg, args),
            wait_for_stage=wait_for_stage,
            headers={},
            ret_type=result_type or hint,
        )
        start_input = start_workflow_operation.use()

        def on_start(answer: StartWorkflowExecutionResponse) -> None:
            handle: WorkflowHandle[Any, Any] = WorkflowHandle(
                cast("Client", self),
                start_input.id,
                result_run_id=answer.run_id,
                first_execution_run_id=answer.first_execution_run_id or answer.run_id,
                result_type=start_input.ret_type,
            )
            start_workflow_operation.has_started(handle)

        return await self.outbound.start_update_with_start_workflow(
            StartWorkflowUpdateWithStartInput(
                start_workflow_input=start_input,
                update_workflow_input=update_input,
                rpc_metadata=rpc_metadata,
                rpc_timeout=rpc_timeout,
                _on_start=on_start,
                _on_start_error=start_workflow_operation.has_failed,
            )
        )
