"""Choices that calls of this package take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, TypedDict

from wfcore.common import (
    Priority,
    RetryPolicy,
    SearchAttributes,
    TypedSearchAttributes,
    VersioningOverride,
    WorkflowIDReusePolicy,
)

if TYPE_CHECKING:
    from wfcore.workflow._event_groups import EventGroup


class ActivityCancellationType(IntEnum):
    """What cancelling an activity's handle does."""

    TRY_CANCEL = 0  # ask the activity to stop, and go on at once
    WAIT_CANCELLATION_COMPLETED = 1  # ask, and wait for what it answers
    ABANDON = 2  # go on at once, the activity learns nothing


class ChildWorkflowCancellationType(IntEnum):
    """What cancelling a child workflow's handle does."""

    ABANDON = 0  # go on at once, the child learns nothing
    TRY_CANCEL = 1  # ask the child to stop, and go on at once
    WAIT_CANCELLATION_COMPLETED = 2  # ask, and wait for the child's end
    WAIT_CANCELLATION_REQUESTED = 3  # as the one above: so it is in Temporal's recordings


class ParentClosePolicy(IntEnum):
    """What becomes of a child when its parent closes."""

    UNSPECIFIED = 0
    TERMINATE = 1
    ABANDON = 2
    REQUEST_CANCEL = 3


class HandlerUnfinishedPolicy(Enum):
    """What happens if a workflow ends while this handler is still running."""

    WARN_AND_ABANDON = 1
    ABANDON = 2


class UnfinishedSignalHandlersWarning(RuntimeWarning):
    """A workflow ended before all its signal handlers did."""


class UnfinishedUpdateHandlersWarning(RuntimeWarning):
    """A workflow ended before all its update handlers did."""


class VersioningIntent(Enum):
    """Which worker version a command is for; accepted and ignored."""

    COMPATIBLE = 1
    DEFAULT = 2


class ContinueAsNewVersioningBehavior(IntEnum):
    """How the next run moves between worker deployment versions; recorded, not acted upon."""

    UNSPECIFIED = 0
    AUTO_UPGRADE = 1
    USE_RAMPING_VERSION = 2


class ActivityConfig(TypedDict, total=False):
    """The options of `start_activity` and `execute_activity`."""

    task_queue: str | None
    schedule_to_close_timeout: timedelta | None
    schedule_to_start_timeout: timedelta | None
    start_to_close_timeout: timedelta | None
    heartbeat_timeout: timedelta | None
    retry_policy: RetryPolicy | None
    cancellation_type: ActivityCancellationType
    activity_id: str | None
    versioning_intent: VersioningIntent | None
    summary: str | None
    event_groups: Sequence[EventGroup] | None
    priority: Priority


class LocalActivityConfig(TypedDict, total=False):
    """The options of `start_local_activity` and `execute_local_activity`."""

    schedule_to_close_timeout: timedelta | None
    schedule_to_start_timeout: timedelta | None
    start_to_close_timeout: timedelta | None
    retry_policy: RetryPolicy | None
    local_retry_threshold: timedelta | None
    cancellation_type: ActivityCancellationType
    activity_id: str | None
    summary: str | None
    event_groups: Sequence[EventGroup] | None


class ChildWorkflowConfig(TypedDict, total=False):
    """The options of `start_child_workflow` and `execute_child_workflow`."""

    id: str | None
    task_queue: str | None
    cancellation_type: ChildWorkflowCancellationType
    parent_close_policy: ParentClosePolicy
    execution_timeout: timedelta | None
    run_timeout: timedelta | None
    task_timeout: timedelta | None
    id_reuse_policy: WorkflowIDReusePolicy
    retry_policy: RetryPolicy | None
    cron_schedule: str
    memo: Mapping[str, Any] | None
    search_attributes: SearchAttributes | TypedSearchAttributes | None
    versioning_intent: VersioningIntent | None
    versioning_override: VersioningOverride | None
    static_summary: str | None
    static_details: str | None
    event_groups: Sequence[EventGroup] | None
    priority: Priority
