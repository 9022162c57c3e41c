"""continue_as_new: ends the run and starts the next one, whose history begins anew."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NoReturn

from wfcore.common import (
    UNSET,
    RetryPolicy,
    SearchAttributes,
    TypedSearchAttributes,
    arg_or_args,
)
from wfcore.workflow import _runtime
from wfcore.workflow._event_groups import EventGroup
from wfcore.workflow._options import ContinueAsNewVersioningBehavior, VersioningIntent


class ContinueAsNewError(BaseException):
    """What `continue_as_new` raises; workflow code must let it pass."""


def continue_as_new(
    arg: Any = UNSET,
    *,
    args: Sequence[Any] = (),
    workflow: Callable[..., Awaitable[Any]] | str | None = None,
    task_queue: str | None = None,
    run_timeout: timedelta | None = None,
    task_timeout: timedelta | None = None,
    backoff_start_interval: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    memo: Mapping[str, Any] | None = None,
    search_attributes: SearchAttributes | TypedSearchAttributes | None = None,
    versioning_intent: VersioningIntent | None = None,
    initial_versioning_behavior: ContinueAsNewVersioningBehavior | None = None,
    event_groups: Sequence[EventGroup] | None = None,
) -> NoReturn:
    """End this run and start the next one of the same workflow id.

    What is left out is as in this run; of the memo, as it was at this run's start.

    Args:
        arg: the only argument of the next run.
        args: its arguments, if it has several.
        workflow: another workflow to go on with.
        task_queue: where the next run runs.
        run_timeout: its limit.
        task_timeout: limit of its workflow tasks.
        backoff_start_interval: how long it waits before its first workflow task.
        retry_policy: its retry policy.
        memo: its memo.
        search_attributes: its search attributes.
        versioning_intent: accepted and ignored.
        initial_versioning_behavior: recorded with the command.
        event_groups: groups of this command.

    Raises:
        ContinueAsNewError: always.
        ValueError: both `arg` and `args` are given.
    """
    _runtime.current().continue_as_new(
        arg_or_args(arg, args),
        workflow=workflow,
        task_queue=task_queue,
        run_timeout=run_timeout,
        task_timeout=task_timeout,
        backoff_start_interval=backoff_start_interval,
        retry_policy=retry_policy,
        memo=memo,
        search_attributes=search_attributes,
        versioning_intent=versioning_intent,
        initial_versioning_behavior=initial_versioning_behavior,
        event_groups=event_groups,
    )
