"""Child workflows, and other workflows by their id."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Concatenate, Unpack, overload

from wfcore.common import (
    UNSET,
    Priority,
    RetryPolicy,
    SearchAttributes,
    TypedSearchAttributes,
    VersioningOverride,
    WorkflowIDReusePolicy,
    arg_or_args,
)
from wfcore.workflow import _runtime
from wfcore.workflow._context import uuid4
from wfcore.workflow._event_groups import EventGroup
from wfcore.workflow._handles import ChildWorkflowHandle, ExternalWorkflowHandle
from wfcore.workflow._options import (
    ChildWorkflowCancellationType,
    ChildWorkflowConfig,
    ParentClosePolicy,
    VersioningIntent,
)
from wfcore.workflow._types import (
    MethodAsyncNoParam,
    MethodAsyncSingleParam,
    MultiParamSpec,
    ParamType,
    ReturnType,
    SelfType,
)

_WAIT = ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED


@overload
async def start_child_workflow(
    workflow: MethodAsyncNoParam[SelfType, ReturnType],
    **options: Unpack[ChildWorkflowConfig],
) -> ChildWorkflowHandle[SelfType, ReturnType]: ...


@overload
async def start_child_workflow(
    workflow: MethodAsyncSingleParam[SelfType, ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[ChildWorkflowConfig],
) -> ChildWorkflowHandle[SelfType, ReturnType]: ...


@overload
async def start_child_workflow(
    workflow: Callable[Concatenate[SelfType, MultiParamSpec], Awaitable[ReturnType]],
    *,
    args: Sequence[Any],
    **options: Unpack[ChildWorkflowConfig],
) -> ChildWorkflowHandle[SelfType, ReturnType]: ...


@overload
async def start_child_workflow(
    workflow: str,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    result_type: Any = None,
    **options: Unpack[ChildWorkflowConfig],
) -> ChildWorkflowHandle[Any, Any]: ...


async def start_child_workflow(
    workflow: Any,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    id: str | None = None,  # noqa: A002 - Temporal's name
    task_queue: str | None = None,
    result_type: Any = None,
    cancellation_type: ChildWorkflowCancellationType = _WAIT,
    parent_close_policy: ParentClosePolicy = ParentClosePolicy.TERMINATE,
    execution_timeout: timedelta | None = None,
    run_timeout: timedelta | None = None,
    task_timeout: timedelta | None = None,
    id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
    retry_policy: RetryPolicy | None = None,
    cron_schedule: str = "",
    memo: Mapping[str, Any] | None = None,
    search_attributes: SearchAttributes | TypedSearchAttributes | None = None,
    versioning_intent: VersioningIntent | None = None,
    static_summary: str | None = None,
    static_details: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
    priority: Priority = Priority.default,
    versioning_override: VersioningOverride | None = None,
) -> ChildWorkflowHandle[Any, Any]:
    """Start a child workflow and wait until it is started.

    Args:
        workflow: the child's run method, or its type name.
        arg: its only argument.
        args: its arguments, if it has several.
        id: its workflow id; by default a random one, the same on replay.
        task_queue: where it runs; by default where this workflow does.
        result_type: decodes the result, if the child is given by name.
        cancellation_type: what cancelling the handle does.
        parent_close_policy: what becomes of the child when this workflow closes.
        execution_timeout: limit of the child's whole chain of runs.
        run_timeout: limit of one run.
        task_timeout: limit of its workflow tasks.
        id_reuse_policy: may the id be used again.
        retry_policy: how failed runs are repeated; by default not at all.
        cron_schedule: when it runs again.
        memo: its memo.
        search_attributes: its search attributes.
        versioning_intent: accepted and ignored.
        static_summary: one line for people.
        static_details: several lines for people.
        event_groups: groups of this command.
        priority: order among the tasks of its queue.
        versioning_override: recorded with the command.

    Raises:
        WorkflowAlreadyStartedError: the id is in use.
    """
    return await _runtime.current().start_child_workflow(
        workflow,
        arg_or_args(arg, args),
        id=id or str(uuid4()),
        task_queue=task_queue,
        result_type=result_type,
        cancellation_type=cancellation_type,
        parent_close_policy=parent_close_policy,
        execution_timeout=execution_timeout,
        run_timeout=run_timeout,
        task_timeout=task_timeout,
        id_reuse_policy=id_reuse_policy,
        retry_policy=retry_policy,
        cron_schedule=cron_schedule,
        memo=memo,
        search_attributes=search_attributes,
        versioning_intent=versioning_intent,
        static_summary=static_summary,
        static_details=static_details,
        event_groups=event_groups,
        priority=priority,
        versioning_override=versioning_override,
    )


@overload
async def execute_child_workflow(
    workflow: MethodAsyncNoParam[SelfType, ReturnType],
    **options: Unpack[ChildWorkflowConfig],
) -> ReturnType: ...


@overload
async def execute_child_workflow(
    workflow: MethodAsyncSingleParam[SelfType, ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[ChildWorkflowConfig],
) -> ReturnType: ...


@overload
async def execute_child_workflow(
    workflow: Callable[Concatenate[SelfType, MultiParamSpec], Awaitable[ReturnType]],
    *,
    args: Sequence[Any],
    **options: Unpack[ChildWorkflowConfig],
) -> ReturnType: ...


@overload
async def execute_child_workflow(
    workflow: str,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    result_type: Any = None,
    **options: Unpack[ChildWorkflowConfig],
) -> Any: ...


async def execute_child_workflow(
    workflow: Any,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    id: str | None = None,  # noqa: A002 - Temporal's name
    task_queue: str | None = None,
    result_type: Any = None,
    cancellation_type: ChildWorkflowCancellationType = _WAIT,
    parent_close_policy: ParentClosePolicy = ParentClosePolicy.TERMINATE,
    execution_timeout: timedelta | None = None,
    run_timeout: timedelta | None = None,
    task_timeout: timedelta | None = None,
    id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
    retry_policy: RetryPolicy | None = None,
    cron_schedule: str = "",
    memo: Mapping[str, Any] | None = None,
    search_attributes: SearchAttributes | TypedSearchAttributes | None = None,
    versioning_intent: VersioningIntent | None = None,
    static_summary: str | None = None,
    static_details: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
    priority: Priority = Priority.default,
    versioning_override: VersioningOverride | None = None,
) -> Any:
    """Start a child workflow and wait for its result; see `start_child_workflow`.

    Raises:
        ChildWorkflowError: it did not complete; the cause says why.
        WorkflowAlreadyStartedError: the id is in use.
    """
    handle = await _runtime.current().start_child_workflow(
        workflow,
        arg_or_args(arg, args),
        id=id or str(uuid4()),
        task_queue=task_queue,
        result_type=result_type,
        cancellation_type=cancellation_type,
        parent_close_policy=parent_close_policy,
        execution_timeout=execution_timeout,
        run_timeout=run_timeout,
        task_timeout=task_timeout,
        id_reuse_policy=id_reuse_policy,
        retry_policy=retry_policy,
        cron_schedule=cron_schedule,
        memo=memo,
        search_attributes=search_attributes,
        versioning_intent=versioning_intent,
        static_summary=static_summary,
        static_details=static_details,
        event_groups=event_groups,
        priority=priority,
        versioning_override=versioning_override,
    )
    return await handle


def get_external_workflow_handle(
    workflow_id: str, *, run_id: str | None = None
) -> ExternalWorkflowHandle[Any]:
    """A handle to another workflow, to signal or cancel it.

    Args:
        workflow_id: its workflow id.
        run_id: the run that is meant; by default the current one.
    """
    return _runtime.current().external_workflow_handle(workflow_id, run_id)


def get_external_workflow_handle_for(
    workflow: MethodAsyncNoParam[SelfType, Any] | MethodAsyncSingleParam[SelfType, Any, Any],
    workflow_id: str,
    *,
    run_id: str | None = None,
) -> ExternalWorkflowHandle[SelfType]:
    """`get_external_workflow_handle` with the type of a workflow's run method."""
    return _runtime.current().external_workflow_handle(workflow_id, run_id)
