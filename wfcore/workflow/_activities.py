"""Activities that workflow code calls: scheduled by a command, their results recorded as events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Concatenate, Unpack, overload

from wfcore.common import UNSET, Priority, RetryPolicy, arg_or_args
from wfcore.workflow import _runtime
from wfcore.workflow._event_groups import EventGroup
from wfcore.workflow._handles import ActivityHandle
from wfcore.workflow._options import ActivityCancellationType, ActivityConfig, VersioningIntent
from wfcore.workflow._types import (
    CallableAsyncNoParam,
    CallableAsyncSingleParam,
    CallableSyncNoParam,
    CallableSyncSingleParam,
    MethodAsyncNoParam,
    MethodAsyncSingleParam,
    MethodSyncNoParam,
    MethodSyncSingleParam,
    MultiParamSpec,
    ParamType,
    ReturnType,
    SelfType,
)


@overload
def start_activity(
    activity: CallableAsyncNoParam[ReturnType],
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity(
    activity: CallableSyncNoParam[ReturnType],
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity(
    activity: CallableAsyncSingleParam[ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity(
    activity: CallableSyncSingleParam[ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity(
    activity: Callable[..., Awaitable[ReturnType]],
    *,
    args: Sequence[Any],
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity(
    activity: Callable[..., ReturnType],
    *,
    args: Sequence[Any],
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity(
    activity: str,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    result_type: Any = None,
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[Any]: ...


def start_activity(
    activity: Any,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    task_queue: str | None = None,
    result_type: Any = None,
    schedule_to_close_timeout: timedelta | None = None,
    schedule_to_start_timeout: timedelta | None = None,
    start_to_close_timeout: timedelta | None = None,
    heartbeat_timeout: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    cancellation_type: ActivityCancellationType = ActivityCancellationType.TRY_CANCEL,
    activity_id: str | None = None,
    versioning_intent: VersioningIntent | None = None,
    summary: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
    priority: Priority = Priority.default,
) -> ActivityHandle[Any]:
    """Schedule an activity and return at once.

    Args:
        activity: the activity's function, or its name.
        arg: its only argument.
        args: its arguments, if it has several.
        task_queue: where it runs; by default where the workflow does.
        result_type: decodes the result, if the activity is given by name.
        schedule_to_close_timeout: limit of the whole, retries included. This or
            `start_to_close_timeout` must be given.
        schedule_to_start_timeout: limit of the wait for a worker.
        start_to_close_timeout: limit of one attempt.
        heartbeat_timeout: longest pause between heartbeats.
        retry_policy: how failed attempts are repeated; by default without end.
        cancellation_type: what cancelling the handle does.
        activity_id: names it in the history; by default its number in this run.
        versioning_intent: accepted and ignored.
        summary: one line for people.
        event_groups: groups of this command.
        priority: order among the tasks of its queue.

    Raises:
        ValueError: no timeout is given, or both `arg` and `args` are.
    """
    return _runtime.current().start_activity(
        activity,
        arg_or_args(arg, args),
        task_queue=task_queue,
        result_type=result_type,
        schedule_to_close_timeout=schedule_to_close_timeout,
        schedule_to_start_timeout=schedule_to_start_timeout,
        start_to_close_timeout=start_to_close_timeout,
        heartbeat_timeout=heartbeat_timeout,
        retry_policy=retry_policy,
        cancellation_type=cancellation_type,
        activity_id=activity_id,
        versioning_intent=versioning_intent,
        summary=summary,
        event_groups=event_groups,
        priority=priority,
    )


@overload
async def execute_activity(
    activity: CallableAsyncNoParam[ReturnType],
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity(
    activity: CallableSyncNoParam[ReturnType],
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity(
    activity: CallableAsyncSingleParam[ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity(
    activity: CallableSyncSingleParam[ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity(
    activity: Callable[..., Awaitable[ReturnType]],
    *,
    args: Sequence[Any],
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity(
    activity: Callable[..., ReturnType],
    *,
    args: Sequence[Any],
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity(
    activity: str,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    result_type: Any = None,
    **options: Unpack[ActivityConfig],
) -> Any: ...


async def execute_activity(
    activity: Any,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    task_queue: str | None = None,
    result_type: Any = None,
    schedule_to_close_timeout: timedelta | None = None,
    schedule_to_start_timeout: timedelta | None = None,
    start_to_close_timeout: timedelta | None = None,
    heartbeat_timeout: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    cancellation_type: ActivityCancellationType = ActivityCancellationType.TRY_CANCEL,
    activity_id: str | None = None,
    versioning_intent: VersioningIntent | None = None,
    summary: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
    priority: Priority = Priority.default,
) -> Any:
    """Schedule an activity and wait for its result; see `start_activity`.

    Raises:
        ActivityError: it failed, timed out or was cancelled; the cause says which.
    """
    return await _runtime.current().start_activity(
        activity,
        arg_or_args(arg, args),
        task_queue=task_queue,
        result_type=result_type,
        schedule_to_close_timeout=schedule_to_close_timeout,
        schedule_to_start_timeout=schedule_to_start_timeout,
        start_to_close_timeout=start_to_close_timeout,
        heartbeat_timeout=heartbeat_timeout,
        retry_policy=retry_policy,
        cancellation_type=cancellation_type,
        activity_id=activity_id,
        versioning_intent=versioning_intent,
        summary=summary,
        event_groups=event_groups,
        priority=priority,
    )


@overload
def start_activity_class(
    activity: type[CallableAsyncNoParam[ReturnType]],
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity_class(
    activity: type[CallableSyncNoParam[ReturnType]],
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity_class(
    activity: type[CallableAsyncSingleParam[ParamType, ReturnType]],
    arg: ParamType,
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity_class(
    activity: type[CallableSyncSingleParam[ParamType, ReturnType]],
    arg: ParamType,
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity_class(
    activity: type[Callable[..., Awaitable[ReturnType]]],
    *,
    args: Sequence[Any],
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity_class(
    activity: type[Callable[..., ReturnType]],
    *,
    args: Sequence[Any],
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


def start_activity_class(
    activity: Any,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    task_queue: str | None = None,
    schedule_to_close_timeout: timedelta | None = None,
    schedule_to_start_timeout: timedelta | None = None,
    start_to_close_timeout: timedelta | None = None,
    heartbeat_timeout: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    cancellation_type: ActivityCancellationType = ActivityCancellationType.TRY_CANCEL,
    activity_id: str | None = None,
    versioning_intent: VersioningIntent | None = None,
    summary: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
    priority: Priority = Priority.default,
) -> ActivityHandle[Any]:
    """Schedule an activity that is a callable class; see `start_activity`."""
    return _runtime.current().start_activity(
        activity,
        arg_or_args(arg, args),
        task_queue=task_queue,
        result_type=None,
        schedule_to_close_timeout=schedule_to_close_timeout,
        schedule_to_start_timeout=schedule_to_start_timeout,
        start_to_close_timeout=start_to_close_timeout,
        heartbeat_timeout=heartbeat_timeout,
        retry_policy=retry_policy,
        cancellation_type=cancellation_type,
        activity_id=activity_id,
        versioning_intent=versioning_intent,
        summary=summary,
        event_groups=event_groups,
        priority=priority,
    )


@overload
async def execute_activity_class(
    activity: type[CallableAsyncNoParam[ReturnType]],
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity_class(
    activity: type[CallableSyncNoParam[ReturnType]],
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity_class(
    activity: type[CallableAsyncSingleParam[ParamType, ReturnType]],
    arg: ParamType,
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity_class(
    activity: type[CallableSyncSingleParam[ParamType, ReturnType]],
    arg: ParamType,
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity_class(
    activity: type[Callable[..., Awaitable[ReturnType]]],
    *,
    args: Sequence[Any],
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity_class(
    activity: type[Callable[..., ReturnType]],
    *,
    args: Sequence[Any],
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


async def execute_activity_class(
    activity: Any,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    task_queue: str | None = None,
    schedule_to_close_timeout: timedelta | None = None,
    schedule_to_start_timeout: timedelta | None = None,
    start_to_close_timeout: timedelta | None = None,
    heartbeat_timeout: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    cancellation_type: ActivityCancellationType = ActivityCancellationType.TRY_CANCEL,
    activity_id: str | None = None,
    versioning_intent: VersioningIntent | None = None,
    summary: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
    priority: Priority = Priority.default,
) -> Any:
    """Run an activity that is a callable class; see `execute_activity`."""
    return await _runtime.current().start_activity(
        activity,
        arg_or_args(arg, args),
        task_queue=task_queue,
        result_type=None,
        schedule_to_close_timeout=schedule_to_close_timeout,
        schedule_to_start_timeout=schedule_to_start_timeout,
        start_to_close_timeout=start_to_close_timeout,
        heartbeat_timeout=heartbeat_timeout,
        retry_policy=retry_policy,
        cancellation_type=cancellation_type,
        activity_id=activity_id,
        versioning_intent=versioning_intent,
        summary=summary,
        event_groups=event_groups,
        priority=priority,
    )


@overload
def start_activity_method(
    activity: MethodAsyncNoParam[SelfType, ReturnType],
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity_method(
    activity: MethodSyncNoParam[SelfType, ReturnType],
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity_method(
    activity: MethodAsyncSingleParam[SelfType, ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity_method(
    activity: MethodSyncSingleParam[SelfType, ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity_method(
    activity: Callable[Concatenate[SelfType, MultiParamSpec], Awaitable[ReturnType]],
    *,
    args: Sequence[Any],
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_activity_method(
    activity: Callable[Concatenate[SelfType, MultiParamSpec], ReturnType],
    *,
    args: Sequence[Any],
    **options: Unpack[ActivityConfig],
) -> ActivityHandle[ReturnType]: ...


def start_activity_method(
    activity: Any,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    task_queue: str | None = None,
    schedule_to_close_timeout: timedelta | None = None,
    schedule_to_start_timeout: timedelta | None = None,
    start_to_close_timeout: timedelta | None = None,
    heartbeat_timeout: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    cancellation_type: ActivityCancellationType = ActivityCancellationType.TRY_CANCEL,
    activity_id: str | None = None,
    versioning_intent: VersioningIntent | None = None,
    summary: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
    priority: Priority = Priority.default,
) -> ActivityHandle[Any]:
    """Schedule an activity that is a method, given unbound; see `start_activity`."""
    return _runtime.current().start_activity(
        activity,
        arg_or_args(arg, args),
        task_queue=task_queue,
        result_type=None,
        schedule_to_close_timeout=schedule_to_close_timeout,
        schedule_to_start_timeout=schedule_to_start_timeout,
        start_to_close_timeout=start_to_close_timeout,
        heartbeat_timeout=heartbeat_timeout,
        retry_policy=retry_policy,
        cancellation_type=cancellation_type,
        activity_id=activity_id,
        versioning_intent=versioning_intent,
        summary=summary,
        event_groups=event_groups,
        priority=priority,
    )


@overload
async def execute_activity_method(
    activity: MethodAsyncNoParam[SelfType, ReturnType],
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity_method(
    activity: MethodSyncNoParam[SelfType, ReturnType],
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity_method(
    activity: MethodAsyncSingleParam[SelfType, ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity_method(
    activity: MethodSyncSingleParam[SelfType, ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity_method(
    activity: Callable[Concatenate[SelfType, MultiParamSpec], Awaitable[ReturnType]],
    *,
    args: Sequence[Any],
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


@overload
async def execute_activity_method(
    activity: Callable[Concatenate[SelfType, MultiParamSpec], ReturnType],
    *,
    args: Sequence[Any],
    **options: Unpack[ActivityConfig],
) -> ReturnType: ...


async def execute_activity_method(
    activity: Any,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    task_queue: str | None = None,
    schedule_to_close_timeout: timedelta | None = None,
    schedule_to_start_timeout: timedelta | None = None,
    start_to_close_timeout: timedelta | None = None,
    heartbeat_timeout: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    cancellation_type: ActivityCancellationType = ActivityCancellationType.TRY_CANCEL,
    activity_id: str | None = None,
    versioning_intent: VersioningIntent | None = None,
    summary: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
    priority: Priority = Priority.default,
) -> Any:
    """Run an activity that is a method, given unbound; see `execute_activity`."""
    return await _runtime.current().start_activity(
        activity,
        arg_or_args(arg, args),
        task_queue=task_queue,
        result_type=None,
        schedule_to_close_timeout=schedule_to_close_timeout,
        schedule_to_start_timeout=schedule_to_start_timeout,
        start_to_close_timeout=start_to_close_timeout,
        heartbeat_timeout=heartbeat_timeout,
        retry_policy=retry_policy,
        cancellation_type=cancellation_type,
        activity_id=activity_id,
        versioning_intent=versioning_intent,
        summary=summary,
        event_groups=event_groups,
        priority=priority,
    )
