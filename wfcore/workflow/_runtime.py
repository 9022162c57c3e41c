"""What the functions of this package call: the run whose code is running in this thread.

`wfcore.replay` implements it. Whoever calls from elsewhere gets `NotInWorkflowEventLoopError`,
never another run's data: the runtime hangs on the event loop that runs in this very thread.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from asyncio.events import _get_running_loop
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any, NoReturn

from wfcore.common import (
    MetricMeter,
    Priority,
    RetryPolicy,
    SearchAttributes,
    SearchAttributeUpdate,
    TypedSearchAttributes,
    VersioningOverride,
    WorkerDeploymentVersion,
    WorkflowIDReusePolicy,
)
from wfcore.converter import PayloadConverter
from wfcore.exceptions import NotInWorkflowEventLoopError

if TYPE_CHECKING:
    from wfcore.workflow._event_groups import EventGroup
    from wfcore.workflow._handles import (
        ActivityHandle,
        ChildWorkflowHandle,
        ExternalWorkflowHandle,
    )
    from wfcore.workflow._info import Info
    from wfcore.workflow._options import (
        ActivityCancellationType,
        ChildWorkflowCancellationType,
        ContinueAsNewVersioningBehavior,
        ParentClosePolicy,
        VersioningIntent,
    )


def maybe_current() -> Runtime | None:
    """The run whose code is running in this thread, if any."""
    return getattr(_get_running_loop(), "workflow_runtime", None)


def current() -> Runtime:
    """The run whose code is running in this thread.

    Raises:
        NotInWorkflowEventLoopError: none is.
    """
    runtime: Runtime | None = getattr(_get_running_loop(), "workflow_runtime", None)
    if runtime is None:
        raise NotInWorkflowEventLoopError
    return runtime


class Runtime(ABC):
    """One run, as its own code sees it."""

    #: The object of the workflow's class.
    workflow_object: Any
    #: The workflow's time in nanoseconds since the epoch.
    time_ns: int
    #: The run's generator, seeded from the history, and its seed.
    random: Random
    seed: int
    is_replaying: bool
    is_read_only: bool
    #: Whether calls that break replay are refused.
    is_guarded: bool
    #: Why cancellation was asked for; None as long as it was not.
    cancellation_reason: str | None
    history_length: int
    history_size: int
    is_continue_as_new_suggested: bool
    is_target_worker_deployment_version_changed: bool
    payload_converter: PayloadConverter
    extern_functions: Mapping[str, Callable[..., Any]]
    current_details: str

    # --- what it is -----------------------------------------------------------------------------

    @abstractmethod
    def info(self) -> Info:
        """The run's facts."""

    @property
    @abstractmethod
    def is_replaying_history_events(self) -> bool:
        """Replaying, and not in a query handler or validator."""

    @property
    @abstractmethod
    def build_id(self) -> str:
        """Build id of the worker that ran, or now runs, the current workflow task."""

    @property
    @abstractmethod
    def deployment_version(self) -> WorkerDeploymentVersion | None:
        """Deployment version of that worker, if it has one."""

    @property
    @abstractmethod
    def metric_meter(self) -> MetricMeter:
        """A meter that records nothing on replay."""

    @abstractmethod
    def is_failure_exception(self, error: BaseException) -> bool:
        """Whether the exception fails the workflow, not the workflow task."""

    @abstractmethod
    def memo(self) -> Mapping[str, Any]:
        """The decoded memo."""

    @abstractmethod
    def memo_value(self, key: str, default: Any, type_hint: Any) -> Any:
        """One entry of the memo."""

    @abstractmethod
    def has_last_completion_result(self) -> bool:
        """Whether the run before left a result."""

    @abstractmethod
    def last_completion_result(self, type_hint: Any) -> Any:
        """The result of the run before."""

    @abstractmethod
    def last_failure(self) -> BaseException | None:
        """The failure of the run before."""

    @abstractmethod
    def on_new_seed(self, callback: Callable[[int], None]) -> None:
        """Call back when a reset changes the seed."""

    @abstractmethod
    def log(self, logger: logging.Logger, record: logging.LogRecord) -> None:
        """Keep a log record until the workflow task is committed."""

    # --- what it can do -------------------------------------------------------------------------

    @abstractmethod
    def set_current_details(self, details: str) -> None:
        """Change the text that is shown for the run."""

    @abstractmethod
    def start_activity(
        self,
        activity: Any,
        args: Sequence[Any],
        *,
        task_queue: str | None,
        result_type: Any,
        schedule_to_close_timeout: timedelta | None,
        schedule_to_start_timeout: timedelta | None,
        start_to_close_timeout: timedelta | None,
        heartbeat_timeout: timedelta | None,
        retry_policy: RetryPolicy | None,
        cancellation_type: ActivityCancellationType,
        activity_id: str | None,
        versioning_intent: VersioningIntent | None,
        summary: str | None,
        event_groups: Sequence[EventGroup] | None,
        priority: Priority,
    ) -> ActivityHandle[Any]:
        """Schedule an activity."""

    @abstractmethod
    def start_local_activity(
        self,
        activity: Any,
        args: Sequence[Any],
        *,
        result_type: Any,
        schedule_to_close_timeout: timedelta | None,
        schedule_to_start_timeout: timedelta | None,
        start_to_close_timeout: timedelta | None,
        retry_policy: RetryPolicy | None,
        local_retry_threshold: timedelta | None,
        cancellation_type: ActivityCancellationType,
        activity_id: str | None,
        summary: str | None,
        event_groups: Sequence[EventGroup] | None,
    ) -> ActivityHandle[Any]:
        """Run an activity inside the workflow task."""

    @abstractmethod
    async def start_child_workflow(
        self,
        workflow: Any,
        args: Sequence[Any],
        *,
        id: str,  # noqa: A002 - Temporal's name
        task_queue: str | None,
        result_type: Any,
        cancellation_type: ChildWorkflowCancellationType,
        parent_close_policy: ParentClosePolicy,
        execution_timeout: timedelta | None,
        run_timeout: timedelta | None,
        task_timeout: timedelta | None,
        id_reuse_policy: WorkflowIDReusePolicy,
        retry_policy: RetryPolicy | None,
        cron_schedule: str,
        memo: Mapping[str, Any] | None,
        search_attributes: SearchAttributes | TypedSearchAttributes | None,
        versioning_intent: VersioningIntent | None,
        static_summary: str | None,
        static_details: str | None,
        event_groups: Sequence[EventGroup] | None,
        priority: Priority,
        versioning_override: VersioningOverride | None,
    ) -> ChildWorkflowHandle[Any, Any]:
        """Start a child workflow and wait for its start."""

    @abstractmethod
    def external_workflow_handle(
        self, workflow_id: str, run_id: str | None
    ) -> ExternalWorkflowHandle[Any]:
        """A handle to another workflow."""

    @abstractmethod
    def continue_as_new(
        self,
        args: Sequence[Any],
        *,
        workflow: Callable[..., Any] | str | None,
        task_queue: str | None,
        run_timeout: timedelta | None,
        task_timeout: timedelta | None,
        backoff_start_interval: timedelta | None,
        retry_policy: RetryPolicy | None,
        memo: Mapping[str, Any] | None,
        search_attributes: SearchAttributes | TypedSearchAttributes | None,
        versioning_intent: VersioningIntent | None,
        initial_versioning_behavior: ContinueAsNewVersioningBehavior | None,
        event_groups: Sequence[EventGroup] | None,
    ) -> NoReturn:
        """End this run and start the next one."""

    @abstractmethod
    async def sleep(
        self, seconds: float, summary: str | None, event_groups: Sequence[EventGroup] | None
    ) -> None:
        """Wait for a timer."""

    @abstractmethod
    async def wait_condition(
        self,
        condition: Callable[[], bool],
        timeout: float | None,  # noqa: ASYNC109 - Temporal's name
        timeout_summary: str | None,
        event_groups: Sequence[EventGroup] | None,
    ) -> None:
        """Wait until the condition holds."""

    @abstractmethod
    def upsert_memo(
        self, updates: Mapping[str, Any], event_groups: Sequence[EventGroup] | None
    ) -> None:
        """Change entries of the memo."""

    @abstractmethod
    def upsert_search_attributes(
        self,
        attributes: SearchAttributes | Sequence[SearchAttributeUpdate[Any]],
        event_groups: Sequence[EventGroup] | None,
    ) -> None:
        """Change search attributes."""

    @abstractmethod
    def patch(
        self,
        patch_id: str,
        *,
        deprecated: bool,
        event_groups: Sequence[EventGroup] | None,
    ) -> bool:
        """Whether the code that the patch guards is to run."""

    # --- handlers -------------------------------------------------------------------------------

    @abstractmethod
    def all_handlers_finished(self) -> bool:
        """Whether no signal or update handler is running."""

    @abstractmethod
    def get_signal_handler(self, name: str | None) -> Callable[..., Any] | None:
        """The handler of a signal, or for None the dynamic one."""

    @abstractmethod
    def set_signal_handler(self, name: str | None, handler: Callable[..., Any] | None) -> None:
        """Set or remove the handler of a signal."""

    @abstractmethod
    def get_query_handler(self, name: str | None) -> Callable[..., Any] | None:
        """The handler of a query, or for None the dynamic one."""

    @abstractmethod
    def set_query_handler(self, name: str | None, handler: Callable[..., Any] | None) -> None:
        """Set or remove the handler of a query."""

    @abstractmethod
    def get_update_handler(self, name: str | None) -> Callable[..., Any] | None:
        """The handler of an update, or for None the dynamic one."""

    @abstractmethod
    def set_update_handler(
        self,
        name: str | None,
        handler: Callable[..., Any] | None,
        validator: Callable[..., None] | None,
    ) -> None:
        """Set or remove the handler of an update."""
