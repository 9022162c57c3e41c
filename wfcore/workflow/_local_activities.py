"""Local activities: run inside the workflow task, their results recorded as markers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Concatenate, Unpack, overload

from wfcore.common import UNSET, RetryPolicy, arg_or_args
from wfcore.workflow import _runtime
from wfcore.workflow._event_groups import EventGroup
from wfcore.workflow._handles import ActivityHandle
from wfcore.workflow._options import ActivityCancellationType, LocalActivityConfig
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
def start_local_activity(
    activity: CallableAsyncNoParam[ReturnType],
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity(
    activity: CallableSyncNoParam[ReturnType],
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity(
    activity: CallableAsyncSingleParam[ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity(
    activity: CallableSyncSingleParam[ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity(
    activity: Callable[..., Awaitable[ReturnType]],
    *,
    args: Sequence[Any],
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity(
    activity: Callable[..., ReturnType],
    *,
    args: Sequence[Any],
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity(
    activity: str,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    result_type: Any = None,
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[Any]: ...


def start_local_activity(
    activity: Any,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    result_type: Any = None,
    schedule_to_close_timeout: timedelta | None = None,
    schedule_to_start_timeout: timedelta | None = None,
    start_to_close_timeout: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    local_retry_threshold: timedelta | None = None,
    cancellation_type: ActivityCancellationType = ActivityCancellationType.TRY_CANCEL,
    activity_id: str | None = None,
    summary: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
) -> ActivityHandle[Any]:
    """Run an activity inside the workflow task, in this worker, and return at once.

    For short work only: the result is recorded when the workflow task ends, and a lost task
    repeats it.

    Args:
        activity: the activity's function, or its name.
        arg: its only argument.
        args: its arguments, if it has several.
        result_type: decodes the result, if the activity is given by name.
        schedule_to_close_timeout: limit of the whole, retries included. This or
            `start_to_close_timeout` must be given.
        schedule_to_start_timeout: limit of the wait for a free slot.
        start_to_close_timeout: limit of one attempt.
        retry_policy: how failed attempts are repeated; by default without end.
        local_retry_threshold: longer waits between attempts become timers; by default a minute.
        cancellation_type: what cancelling the handle does.
        activity_id: names it in the history; by default its number in this run.
        summary: one line for people.
        event_groups: groups of this command.

    Raises:
        ValueError: no timeout is given, or both `arg` and `args` are.
    """
    return _runtime.current().start_local_activity(
        activity,
        arg_or_args(arg, args),
        result_type=result_type,
        schedule_to_close_timeout=schedule_to_close_timeout,
        schedule_to_start_timeout=schedule_to_start_timeout,
        start_to_close_timeout=start_to_close_timeout,
        retry_policy=retry_policy,
        local_retry_threshold=local_retry_threshold,
        cancellation_type=cancellation_type,
        activity_id=activity_id,
        summary=summary,
        event_groups=event_groups,
    )


@overload
async def execute_local_activity(
    activity: CallableAsyncNoParam[ReturnType],
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity(
    activity: CallableSyncNoParam[ReturnType],
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity(
    activity: CallableAsyncSingleParam[ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity(
    activity: CallableSyncSingleParam[ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity(
    activity: Callable[..., Awaitable[ReturnType]],
    *,
    args: Sequence[Any],
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity(
    activity: Callable[..., ReturnType],
    *,
    args: Sequence[Any],
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity(
    activity: str,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    result_type: Any = None,
    **options: Unpack[LocalActivityConfig],
) -> Any: ...


async def execute_local_activity(
    activity: Any,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    result_type: Any = None,
    schedule_to_close_timeout: timedelta | None = None,
    schedule_to_start_timeout: timedelta | None = None,
    start_to_close_timeout: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    local_retry_threshold: timedelta | None = None,
    cancellation_type: ActivityCancellationType = ActivityCancellationType.TRY_CANCEL,
    activity_id: str | None = None,
    summary: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
) -> Any:
    """Run a local activity and wait for its result; see `start_local_activity`.

    Raises:
        FailureError: what the activity itself raised; it is not wrapped in an `ActivityError`.
    """
    return await _runtime.current().start_local_activity(
        activity,
        arg_or_args(arg, args),
        result_type=result_type,
        schedule_to_close_timeout=schedule_to_close_timeout,
        schedule_to_start_timeout=schedule_to_start_timeout,
        start_to_close_timeout=start_to_close_timeout,
        retry_policy=retry_policy,
        local_retry_threshold=local_retry_threshold,
        cancellation_type=cancellation_type,
        activity_id=activity_id,
        summary=summary,
        event_groups=event_groups,
    )


@overload
def start_local_activity_class(
    activity: type[CallableAsyncNoParam[ReturnType]],
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity_class(
    activity: type[CallableSyncNoParam[ReturnType]],
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity_class(
    activity: type[CallableAsyncSingleParam[ParamType, ReturnType]],
    arg: ParamType,
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity_class(
    activity: type[CallableSyncSingleParam[ParamType, ReturnType]],
    arg: ParamType,
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity_class(
    activity: type[Callable[..., Awaitable[ReturnType]]],
    *,
    args: Sequence[Any],
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity_class(
    activity: type[Callable[..., ReturnType]],
    *,
    args: Sequence[Any],
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


def start_local_activity_class(
    activity: Any,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    schedule_to_close_timeout: timedelta | None = None,
    schedule_to_start_timeout: timedelta | None = None,
    start_to_close_timeout: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    local_retry_threshold: timedelta | None = None,
    cancellation_type: ActivityCancellationType = ActivityCancellationType.TRY_CANCEL,
    activity_id: str | None = None,
    summary: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
) -> ActivityHandle[Any]:
    """Start a local activity that is a callable class; see `start_local_activity`."""
    return _runtime.current().start_local_activity(
        activity,
        arg_or_args(arg, args),
        result_type=None,
        schedule_to_close_timeout=schedule_to_close_timeout,
        schedule_to_start_timeout=schedule_to_start_timeout,
        start_to_close_timeout=start_to_close_timeout,
        retry_policy=retry_policy,
        local_retry_threshold=local_retry_threshold,
        cancellation_type=cancellation_type,
        activity_id=activity_id,
        summary=summary,
        event_groups=event_groups,
    )


@overload
async def execute_local_activity_class(
    activity: type[CallableAsyncNoParam[ReturnType]],
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity_class(
    activity: type[CallableSyncNoParam[ReturnType]],
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity_class(
    activity: type[CallableAsyncSingleParam[ParamType, ReturnType]],
    arg: ParamType,
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity_class(
    activity: type[CallableSyncSingleParam[ParamType, ReturnType]],
    arg: ParamType,
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity_class(
    activity: type[Callable[..., Awaitable[ReturnType]]],
    *,
    args: Sequence[Any],
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity_class(
    activity: type[Callable[..., ReturnType]],
    *,
    args: Sequence[Any],
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


async def execute_local_activity_class(
    activity: Any,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    schedule_to_close_timeout: timedelta | None = None,
    schedule_to_start_timeout: timedelta | None = None,
    start_to_close_timeout: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    local_retry_threshold: timedelta | None = None,
    cancellation_type: ActivityCancellationType = ActivityCancellationType.TRY_CANCEL,
    activity_id: str | None = None,
    summary: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
) -> Any:
    """Run a local activity that is a callable class."""
    return await _runtime.current().start_local_activity(
        activity,
        arg_or_args(arg, args),
        result_type=None,
        schedule_to_close_timeout=schedule_to_close_timeout,
        schedule_to_start_timeout=schedule_to_start_timeout,
        start_to_close_timeout=start_to_close_timeout,
        retry_policy=retry_policy,
        local_retry_threshold=local_retry_threshold,
        cancellation_type=cancellation_type,
        activity_id=activity_id,
        summary=summary,
        event_groups=event_groups,
    )


@overload
def start_local_activity_method(
    activity: MethodAsyncNoParam[SelfType, ReturnType],
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity_method(
    activity: MethodSyncNoParam[SelfType, ReturnType],
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity_method(
    activity: MethodAsyncSingleParam[SelfType, ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity_method(
    activity: MethodSyncSingleParam[SelfType, ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity_method(
    activity: Callable[Concatenate[SelfType, MultiParamSpec], Awaitable[ReturnType]],
    *,
    args: Sequence[Any],
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


@overload
def start_local_activity_method(
    activity: Callable[Concatenate[SelfType, MultiParamSpec], ReturnType],
    *,
    args: Sequence[Any],
    **options: Unpack[LocalActivityConfig],
) -> ActivityHandle[ReturnType]: ...


def start_local_activity_method(
    activity: Any,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    schedule_to_close_timeout: timedelta | None = None,
    schedule_to_start_timeout: timedelta | None = None,
    start_to_close_timeout: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    local_retry_threshold: timedelta | None = None,
    cancellation_type: ActivityCancellationType = ActivityCancellationType.TRY_CANCEL,
    activity_id: str | None = None,
    summary: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
) -> ActivityHandle[Any]:
    """Start a local activity that is a method, given unbound."""
    return _runtime.current().start_local_activity(
        activity,
        arg_or_args(arg, args),
        result_type=None,
        schedule_to_close_timeout=schedule_to_close_timeout,
        schedule_to_start_timeout=schedule_to_start_timeout,
        start_to_close_timeout=start_to_close_timeout,
        retry_policy=retry_policy,
        local_retry_threshold=local_retry_threshold,
        cancellation_type=cancellation_type,
        activity_id=activity_id,
        summary=summary,
        event_groups=event_groups,
    )


@overload
async def execute_local_activity_method(
    activity: MethodAsyncNoParam[SelfType, ReturnType],
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity_method(
    activity: MethodSyncNoParam[SelfType, ReturnType],
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity_method(
    activity: MethodAsyncSingleParam[SelfType, ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity_method(
    activity: MethodSyncSingleParam[SelfType, ParamType, ReturnType],
    arg: ParamType,
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity_method(
    activity: Callable[Concatenate[SelfType, MultiParamSpec], Awaitable[ReturnType]],
    *,
    args: Sequence[Any],
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


@overload
async def execute_local_activity_method(
    activity: Callable[Concatenate[SelfType, MultiParamSpec], ReturnType],
    *,
    args: Sequence[Any],
    **options: Unpack[LocalActivityConfig],
) -> ReturnType: ...


async def execute_local_activity_method(
    activity: Any,
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    schedule_to_close_timeout: timedelta | None = None,
    schedule_to_start_timeout: timedelta | None = None,
    start_to_close_timeout: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    local_retry_threshold: timedelta | None = None,
    cancellation_type: ActivityCancellationType = ActivityCancellationType.TRY_CANCEL,
    activity_id: str | None = None,
    summary: str | None = None,
    event_groups: Sequence[EventGroup] | None = None,
) -> Any:
    """Run a local activity that is a method, given unbound."""
    return await _runtime.current().start_local_activity(
        activity,
        arg_or_args(arg, args),
        result_type=None,
        schedule_to_close_timeout=schedule_to_close_timeout,
        schedule_to_start_timeout=schedule_to_start_timeout,
        start_to_close_timeout=start_to_close_timeout,
        retry_policy=retry_policy,
        local_retry_threshold=local_retry_threshold,
        cancellation_type=cancellation_type,
        activity_id=activity_id,
        summary=summary,
        event_groups=event_groups,
    )
