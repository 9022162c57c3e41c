"""Events of child workflows."""

from datetime import timedelta

from wfcore.protocol.common import Priority, RetryPolicy, TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import (
    ParentClosePolicy,
    RetryState,
    StartChildWorkflowExecutionFailedCause,
    WorkflowIdReusePolicy,
)
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message
from wfcore.protocol.metadata import (
    TimeSkippingConfig,
    TimeSkippingStatePropagation,
    VersioningOverride,
)
from wfcore.protocol.payloads import Header, Memo, Payloads, SearchAttributes


class StartChildWorkflowExecutionInitiated(Message, frozen=True):
    """START_CHILD_WORKFLOW_EXECUTION_INITIATED (29)."""

    namespace: str = ""
    namespace_id: str = ""
    workflow_id: str = ""
    workflow_type: WorkflowType | None = None
    task_queue: TaskQueue | None = None
    input: Payloads | None = None
    workflow_execution_timeout: timedelta | None = None
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta | None = None
    parent_close_policy: ParentClosePolicy = ParentClosePolicy.UNSPECIFIED
    control: str = ""  # deprecated
    workflow_task_completed_event_id: int = 0
    workflow_id_reuse_policy: WorkflowIdReusePolicy = WorkflowIdReusePolicy.UNSPECIFIED
    retry_policy: RetryPolicy | None = None
    cron_schedule: str = ""
    header: Header | None = None
    memo: Memo | None = None
    search_attributes: SearchAttributes | None = None
    inherit_build_id: bool = False  # deprecated
    priority: Priority | None = None
    time_skipping_config: TimeSkippingConfig | None = None
    time_skipping_state_propagation: TimeSkippingStatePropagation | None = None
    versioning_override: VersioningOverride | None = None


class StartChildWorkflowExecutionFailed(Message, frozen=True):
    """START_CHILD_WORKFLOW_EXECUTION_FAILED (30)."""

    namespace: str = ""
    namespace_id: str = ""
    workflow_id: str = ""
    workflow_type: WorkflowType | None = None
    cause: StartChildWorkflowExecutionFailedCause = (
        StartChildWorkflowExecutionFailedCause.UNSPECIFIED
    )
    control: str = ""  # deprecated
    initiated_event_id: int = 0
    workflow_task_completed_event_id: int = 0


class ChildWorkflowExecutionStarted(Message, frozen=True):
    """CHILD_WORKFLOW_EXECUTION_STARTED (31)."""

    namespace: str = ""
    namespace_id: str = ""
    initiated_event_id: int = 0
    workflow_execution: WorkflowExecution | None = None
    workflow_type: WorkflowType | None = None
    header: Header | None = None


class ChildWorkflowExecutionCompleted(Message, frozen=True):
    """CHILD_WORKFLOW_EXECUTION_COMPLETED (32)."""

    result: Payloads | None = None
    namespace: str = ""
    namespace_id: str = ""
    workflow_execution: WorkflowExecution | None = None
    workflow_type: WorkflowType | None = None
    initiated_event_id: int = 0
    started_event_id: int = 0


class ChildWorkflowExecutionFailed(Message, frozen=True):
    """CHILD_WORKFLOW_EXECUTION_FAILED (33)."""

    failure: Failure | None = None
    namespace: str = ""
    namespace_id: str = ""
    workflow_execution: WorkflowExecution | None = None
    workflow_type: WorkflowType | None = None
    initiated_event_id: int = 0
    started_event_id: int = 0
    retry_state: RetryState = RetryState.UNSPECIFIED


class ChildWorkflowExecutionCanceled(Message, frozen=True):
    """CHILD_WORKFLOW_EXECUTION_CANCELED (34)."""

    details: Payloads | None = None
    namespace: str = ""
    namespace_id: str = ""
    workflow_execution: WorkflowExecution | None = None
    workflow_type: WorkflowType | None = None
    initiated_event_id: int = 0
    started_event_id: int = 0


class ChildWorkflowExecutionTimedOut(Message, frozen=True):
    """CHILD_WORKFLOW_EXECUTION_TIMED_OUT (35)."""

    namespace: str = ""
    namespace_id: str = ""
    workflow_execution: WorkflowExecution | None = None
    workflow_type: WorkflowType | None = None
    initiated_event_id: int = 0
    started_event_id: int = 0
    retry_state: RetryState = RetryState.UNSPECIFIED


class ChildWorkflowExecutionTerminated(Message, frozen=True):
    """CHILD_WORKFLOW_EXECUTION_TERMINATED (36)."""

    namespace: str = ""
    namespace_id: str = ""
    workflow_execution: WorkflowExecution | None = None
    workflow_type: WorkflowType | None = None
    initiated_event_id: int = 0
    started_event_id: int = 0
