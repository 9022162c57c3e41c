"""The part of a workflow's handle that sends updates and finds them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Unpack, overload

from wfcore.client._interceptor import StartWorkflowUpdateInput
from wfcore.client._updates import (
    AnyUpdateOptions,
    LocalReturnType,
    SelfType,
    UpdateOptions,
    UpdateOptionsWithArgs,
    WorkflowUpdateHandle,
    WorkflowUpdateStage,
    refuse_admitted,
)
from wfcore.common import UNSET, arg_or_args
from wfcore.workflow import MultiParamSpec, ParamType, UpdateDefinition, UpdateMethodMultiParam

if TYPE_CHECKING:
    from wfcore.client._client import Client


class HandleUpdates(Generic[SelfType]):
    """Updates of the workflow that a handle names."""

    _client: Client
    id: str
    run_id: str | None
    first_execution_run_id: str | None

    @overload
    async def execute_update(
        self,
        update: UpdateMethodMultiParam[[SelfType], LocalReturnType],
        **options: Unpack[UpdateOptions],
    ) -> LocalReturnType: ...

    @overload
    async def execute_update(
        self,
        update: UpdateMethodMultiParam[[SelfType, ParamType], LocalReturnType],
        arg: ParamType,
        **options: Unpack[UpdateOptions],
    ) -> LocalReturnType: ...

    @overload
    async def execute_update(
        self,
        update: UpdateMethodMultiParam[Concatenate[SelfType, MultiParamSpec], LocalReturnType],
        **options: Unpack[UpdateOptionsWithArgs],
    ) -> LocalReturnType: ...

    @overload
    async def execute_update(
        self, update: str, arg: Any = UNSET, **options: Unpack[AnyUpdateOptions]
    ) -> Any: ...

    async def execute_update(
        self,
        update: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        id: str | None = None,  # noqa: A002 - Temporal's name
        result_type: Any = None,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> Any:
        """Send an update and wait for its result: `start_update`, then `result`.

        Raises:
            WorkflowUpdateFailedError: it was refused or failed, or the workflow ended before it.
            WorkflowUpdateRPCTimeoutOrCancelledError: the call was given up; the update goes on.
            RPCError: the workflow doesn't take it, or there is no such workflow.
        """
        handle = await self._start_update(
            update,
            arg,
            wait_for_stage=WorkflowUpdateStage.COMPLETED,
            args=args,
            id=id,
            result_type=result_type,
            rpc_metadata=rpc_metadata,
            rpc_timeout=rpc_timeout,
        )
        return await handle.result()

    @overload
    async def start_update(
        self,
        update: UpdateMethodMultiParam[[SelfType], LocalReturnType],
        *,
        wait_for_stage: WorkflowUpdateStage,
        **options: Unpack[UpdateOptions],
    ) -> WorkflowUpdateHandle[LocalReturnType]: ...

    @overload
    async def start_update(
        self,
        update: UpdateMethodMultiParam[[SelfType, ParamType], LocalReturnType],
        arg: ParamType,
        *,
        wait_for_stage: WorkflowUpdateStage,
        **options: Unpack[UpdateOptions],
    ) -> WorkflowUpdateHandle[LocalReturnType]: ...

    @overload
    async def start_update(
        self,
        update: UpdateMethodMultiParam[Concatenate[SelfType, MultiParamSpec], LocalReturnType],
        *,
        wait_for_stage: WorkflowUpdateStage,
        **options: Unpack[UpdateOptionsWithArgs],
    ) -> WorkflowUpdateHandle[LocalReturnType]: ...

    @overload
    async def start_update(
        self,
        update: str,
        arg: Any = UNSET,
        *,
        wait_for_stage: WorkflowUpdateStage,
        **options: Unpack[AnyUpdateOptions],
    ) -> WorkflowUpdateHandle[Any]: ...

    async def start_update(
        self,
        update: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        wait_for_stage: WorkflowUpdateStage,
        args: Sequence[Any] = (),
        id: str | None = None,  # noqa: A002 - Temporal's name
        result_type: Any = None,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> WorkflowUpdateHandle[Any]:
        """Send an update, named or given by its method, and wait until it has come so far.

        Args:
            wait_for_stage: ACCEPTED, when the validator has passed, or COMPLETED.
            id: of the update, a random one by default; sent again with the same id, an update is
                found and not made again.
            result_type: of the result, when the update is given by name.

        Raises:
            WorkflowUpdateRPCTimeoutOrCancelledError: the call was given up; the update goes on.
            RPCError: the workflow doesn't take it, or there is no such workflow.
            ValueError: nobody can wait for ADMITTED.
        """
        return await self._start_update(
            update,
            arg,
            wait_for_stage=wait_for_stage,
            args=args,
            id=id,
            result_type=result_type,
            rpc_metadata=rpc_metadata,
            rpc_timeout=rpc_timeout,
        )

    async def _start_update(
        self,
        update: str | Callable[..., Any],
        arg: Any,
        *,
        wait_for_stage: WorkflowUpdateStage,
        args: Sequence[Any],
        id: str | None,  # noqa: A002 - Temporal's name
        result_type: Any,
        rpc_metadata: Mapping[str, str | bytes],
        rpc_timeout: timedelta | None,
    ) -> WorkflowUpdateHandle[Any]:
        refuse_admitted(wait_for_stage)
        name, hint = UpdateDefinition.name_and_result_type(update)
        return await self._client.outbound.start_workflow_update(
            StartWorkflowUpdateInput(
                id=self.id,
                run_id=self.run_id,
                first_execution_run_id=self.first_execution_run_id,
                update_id=id,
                update=name,
                args=arg_or_args(arg, args),
                wait_for_stage=wait_for_stage,
                headers={},
                ret_type=result_type or hint,
                rpc_metadata=rpc_metadata,
                rpc_timeout=rpc_timeout,
            )
        )

    def get_update_handle(
        self,
        id: str,  # noqa: A002 - Temporal's name
        *,
        workflow_run_id: str | None = None,
        result_type: Any = None,
    ) -> WorkflowUpdateHandle[Any]:
        """A handle for an update that was sent; whether there is one shows with the first call."""
        return WorkflowUpdateHandle(
            self._client,
            id,
            self.id,
            workflow_run_id=workflow_run_id or self.run_id,
            result_type=result_type,
        )

    def get_update_handle_for(
        self,
        update: UpdateMethodMultiParam[Any, LocalReturnType],
        id: str,  # noqa: A002 - Temporal's name
        *,
        workflow_run_id: str | None = None,
    ) -> WorkflowUpdateHandle[LocalReturnType]:
        """A handle whose result has the type that this update's method tells."""
        _, hint = UpdateDefinition.name_and_result_type(update)
        return self.get_update_handle(id, workflow_run_id=workflow_run_id, result_type=hint)
