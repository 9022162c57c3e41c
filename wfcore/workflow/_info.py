"""What code can know about its run: fixed at its start, but for search attributes and memo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from wfcore.common import (
    Priority,
    RetryPolicy,
    SearchAttributes,
    TypedSearchAttributes,
    WorkerDeploymentVersion,
)
from wfcore.protocol.payloads import Payload
from wfcore.workflow import _runtime


@dataclass(frozen=True)
class ParentInfo:
    """Names the run that started this one as a child."""

    namespace: str
    run_id: str
    workflow_id: str


@dataclass(frozen=True)
class RootInfo:
    """Names the run at the top of the tree of children."""

    run_id: str
    workflow_id: str


@dataclass(frozen=True)
class UpdateInfo:
    """Names the update that is being handled."""

    id: str
    name: str

    def logger_details(self) -> Mapping[str, Any]:
        """What a log line says about the update."""
        return {"update_id": self.id, "update_name": self.name}


@dataclass(frozen=True)
class Info:
    """The facts of a run; `workflow.info()` gives it.

    `start_time` is when the first workflow task began, `workflow_start_time` when the run was
    recorded. `original_execution_run_id` outlives a reset, `first_execution_run_id` names the first
    run of the chain. Search attributes and `raw_memo` follow what the run itself changes.
    """

    attempt: int
    continued_run_id: str | None
    cron_schedule: str | None
    execution_timeout: timedelta | None
    first_execution_run_id: str
    headers: Mapping[str, Payload]
    namespace: str
    original_execution_run_id: str
    parent: ParentInfo | None
    root: RootInfo | None
    priority: Priority
    raw_memo: Mapping[str, Payload]
    retry_policy: RetryPolicy | None
    run_id: str
    run_timeout: timedelta | None
    search_attributes: SearchAttributes
    start_time: datetime
    task_queue: str
    task_timeout: timedelta
    typed_search_attributes: TypedSearchAttributes
    workflow_id: str
    workflow_start_time: datetime
    workflow_type: str

    def logger_details(self) -> Mapping[str, Any]:
        """What a log line says about the run."""
        return {
            "attempt": self.attempt,
            "namespace": self.namespace,
            "run_id": self.run_id,
            "task_queue": self.task_queue,
            "workflow_id": self.workflow_id,
            "workflow_type": self.workflow_type,
        }

    def get_current_build_id(self) -> str:
        """Build id of the worker that ran the current workflow task; empty if it had none."""
        return _runtime.current().build_id

    def get_current_deployment_version(self) -> WorkerDeploymentVersion | None:
        """Deployment version of the worker that ran the current workflow task."""
        return _runtime.current().deployment_version

    def get_current_history_length(self) -> int:
        """Number of events up to the current workflow task; in a query it may be an older one's."""
        return _runtime.current().history_length

    def get_current_history_size(self) -> int:
        """Bytes of the history up to the current workflow task."""
        return _runtime.current().history_size

    def is_continue_as_new_suggested(self) -> bool:
        """Whether the history has grown so that the workflow should continue as new."""
        return _runtime.current().is_continue_as_new_suggested

    def is_target_worker_deployment_version_changed(self) -> bool:
        """Whether another worker deployment version is the target now."""
        return _runtime.current().is_target_worker_deployment_version_changed
