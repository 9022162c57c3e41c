"""Enumerations of Temporal's API, with its numbers.

A member's full name on the wire is its class name in upper snake case, an underscore, and the
member's name: ``EventType.TIMER_FIRED`` is ``EVENT_TYPE_TIMER_FIRED``.
"""

import re
from enum import IntEnum
from functools import cache
from typing import Self


class WireEnum(IntEnum):
    """An enumeration whose members have a full name on the wire."""

    @classmethod
    @cache
    def prefix(cls) -> str:
        """The upper-case prefix of all wire names, without the trailing underscore."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).upper()

    @property
    def wire_name(self) -> str:
        """The full name, as Temporal's JSON spells it."""
        return f"{type(self).prefix()}_{self.name}"

    @classmethod
    def from_wire(cls, value: object) -> Self:
        """Read a member from its full name, its bare name, its CamelCase name or its number.

        Raises:
            ValueError: no member has this name or number.
        """
        if isinstance(value, int):
            return cls(value)
        text = str(value)
        if not text.isupper():
            text = re.sub(r"(?<!^)(?=[A-Z])", "_", text).upper()
        member = cls.__members__.get(text.removeprefix(cls.prefix() + "_"))
        if member is None:
            raise ValueError(f"{value!r} is no {cls.__name__}; known: {', '.join(cls.__members__)}")
        return member


class ActivityTaskFailedCause(WireEnum):
    """Activity task failed cause."""

    UNSPECIFIED = 0
    PAYLOADS_TOO_LARGE = 1
    EXTERNAL_STORAGE_FAILURE = 2
    ACTIVITY_WORKER_UNHANDLED_FAILURE = 3


class ApplicationErrorCategory(WireEnum):
    """Application error category."""

    UNSPECIFIED = 0
    BENIGN = 1


class ArchivalState(WireEnum):
    """Archival state."""

    UNSPECIFIED = 0
    DISABLED = 1
    ENABLED = 2


class CallbackState(WireEnum):
    """Callback state."""

    UNSPECIFIED = 0
    STANDBY = 1
    SCHEDULED = 2
    BACKING_OFF = 3
    FAILED = 4
    SUCCEEDED = 5
    BLOCKED = 6


class CancelExternalWorkflowExecutionFailedCause(WireEnum):
    """Cancel external workflow execution failed cause."""

    UNSPECIFIED = 0
    EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND = 1
    NAMESPACE_NOT_FOUND = 2


class CommandType(WireEnum):
    """What a workflow task asks for."""

    UNSPECIFIED = 0
    SCHEDULE_ACTIVITY_TASK = 1
    REQUEST_CANCEL_ACTIVITY_TASK = 2
    START_TIMER = 3
    COMPLETE_WORKFLOW_EXECUTION = 4
    FAIL_WORKFLOW_EXECUTION = 5
    CANCEL_TIMER = 6
    CANCEL_WORKFLOW_EXECUTION = 7
    REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION = 8
    RECORD_MARKER = 9
    CONTINUE_AS_NEW_WORKFLOW_EXECUTION = 10
    START_CHILD_WORKFLOW_EXECUTION = 11
    SIGNAL_EXTERNAL_WORKFLOW_EXECUTION = 12
    UPSERT_WORKFLOW_SEARCH_ATTRIBUTES = 13
    PROTOCOL_MESSAGE = 14
    MODIFY_WORKFLOW_PROPERTIES = 16
    SCHEDULE_NEXUS_OPERATION = 17
    REQUEST_CANCEL_NEXUS_OPERATION = 18


class ContinueAsNewInitiator(WireEnum):
    """What made the next run of a chain."""

    UNSPECIFIED = 0
    WORKFLOW = 1
    RETRY = 2
    CRON_SCHEDULE = 3


class ContinueAsNewVersioningBehavior(WireEnum):
    """Continue as new versioning behavior."""

    UNSPECIFIED = 0
    AUTO_UPGRADE = 1
    USE_RAMPING_VERSION = 2


class EventType(WireEnum):
    """What a history event says."""

    UNSPECIFIED = 0
    WORKFLOW_EXECUTION_STARTED = 1
    WORKFLOW_EXECUTION_COMPLETED = 2
    WORKFLOW_EXECUTION_FAILED = 3
    WORKFLOW_EXECUTION_TIMED_OUT = 4
    WORKFLOW_TASK_SCHEDULED = 5
    WORKFLOW_TASK_STARTED = 6
    WORKFLOW_TASK_COMPLETED = 7
    WORKFLOW_TASK_TIMED_OUT = 8
    WORKFLOW_TASK_FAILED = 9
    ACTIVITY_TASK_SCHEDULED = 10
    ACTIVITY_TASK_STARTED = 11
    ACTIVITY_TASK_COMPLETED = 12
    ACTIVITY_TASK_FAILED = 13
    ACTIVITY_TASK_TIMED_OUT = 14
    ACTIVITY_TASK_CANCEL_REQUESTED = 15
    ACTIVITY_TASK_CANCELED = 16
    TIMER_STARTED = 17
    TIMER_FIRED = 18
    TIMER_CANCELED = 19
    WORKFLOW_EXECUTION_CANCEL_REQUESTED = 20
    WORKFLOW_EXECUTION_CANCELED = 21
    REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED = 22
    REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED = 23
    EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED = 24
    MARKER_RECORDED = 25
    WORKFLOW_EXECUTION_SIGNALED = 26
    WORKFLOW_EXECUTION_TERMINATED = 27
    WORKFLOW_EXECUTION_CONTINUED_AS_NEW = 28
    START_CHILD_WORKFLOW_EXECUTION_INITIATED = 29
    START_CHILD_WORKFLOW_EXECUTION_FAILED = 30
    CHILD_WORKFLOW_EXECUTION_STARTED = 31
    CHILD_WORKFLOW_EXECUTION_COMPLETED = 32
    CHILD_WORKFLOW_EXECUTION_FAILED = 33
    CHILD_WORKFLOW_EXECUTION_CANCELED = 34
    CHILD_WORKFLOW_EXECUTION_TIMED_OUT = 35
    CHILD_WORKFLOW_EXECUTION_TERMINATED = 36
    SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED = 37
    SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED = 38
    EXTERNAL_WORKFLOW_EXECUTION_SIGNALED = 39
    UPSERT_WORKFLOW_SEARCH_ATTRIBUTES = 40
    WORKFLOW_EXECUTION_UPDATE_ADMITTED = 47
    WORKFLOW_EXECUTION_UPDATE_ACCEPTED = 41
    WORKFLOW_EXECUTION_UPDATE_REJECTED = 42
    WORKFLOW_EXECUTION_UPDATE_COMPLETED = 43
    WORKFLOW_PROPERTIES_MODIFIED_EXTERNALLY = 44
    ACTIVITY_PROPERTIES_MODIFIED_EXTERNALLY = 45
    WORKFLOW_PROPERTIES_MODIFIED = 46
    NEXUS_OPERATION_SCHEDULED = 48
    NEXUS_OPERATION_STARTED = 49
    NEXUS_OPERATION_COMPLETED = 50
    NEXUS_OPERATION_FAILED = 51
    NEXUS_OPERATION_CANCELED = 52
    NEXUS_OPERATION_TIMED_OUT = 53
    NEXUS_OPERATION_CANCEL_REQUESTED = 54
    WORKFLOW_EXECUTION_OPTIONS_UPDATED = 55
    NEXUS_OPERATION_CANCEL_REQUEST_COMPLETED = 56
    NEXUS_OPERATION_CANCEL_REQUEST_FAILED = 57
    WORKFLOW_EXECUTION_PAUSED = 58
    WORKFLOW_EXECUTION_UNPAUSED = 59
    WORKFLOW_EXECUTION_TIME_SKIPPING_TRANSITIONED = 60


class ExecutionType(WireEnum):
    """Execution type."""

    UNSPECIFIED = 0
    WORKFLOW = 1
    ACTIVITY = 2
    NEXUS_OPERATION = 3


class HistoryEventFilterType(WireEnum):
    """Which events a reader wants."""

    UNSPECIFIED = 0
    ALL_EVENT = 1
    CLOSE_EVENT = 2


class IndexedValueType(WireEnum):
    """Types of search attributes."""

    UNSPECIFIED = 0
    TEXT = 1
    KEYWORD = 2
    INT = 3
    DOUBLE = 4
    BOOL = 5
    DATETIME = 6
    KEYWORD_LIST = 7


class NamespaceState(WireEnum):
    """Namespace state."""

    UNSPECIFIED = 0
    REGISTERED = 1
    DEPRECATED = 2
    DELETED = 3


class NexusHandlerErrorRetryBehavior(WireEnum):
    """Nexus handler error retry behavior."""

    UNSPECIFIED = 0
    RETRYABLE = 1
    NON_RETRYABLE = 2


class NexusOperationCancellationState(WireEnum):
    """Nexus operation cancellation state."""

    UNSPECIFIED = 0
    SCHEDULED = 1
    BACKING_OFF = 2
    SUCCEEDED = 3
    FAILED = 4
    TIMED_OUT = 5
    BLOCKED = 6


class ParentClosePolicy(WireEnum):
    """What happens to a child when its parent closes."""

    UNSPECIFIED = 0
    TERMINATE = 1
    ABANDON = 2
    REQUEST_CANCEL = 3


class PendingActivityState(WireEnum):
    """Where an open activity stands."""

    UNSPECIFIED = 0
    SCHEDULED = 1
    STARTED = 2
    CANCEL_REQUESTED = 3
    PAUSED = 4
    PAUSE_REQUESTED = 5


class PendingNexusOperationState(WireEnum):
    """Pending nexus operation state."""

    UNSPECIFIED = 0
    SCHEDULED = 1
    BACKING_OFF = 2
    STARTED = 3
    BLOCKED = 4


class PendingWorkflowTaskState(WireEnum):
    """Where an open workflow task stands."""

    UNSPECIFIED = 0
    SCHEDULED = 1
    STARTED = 2


class QueryRejectCondition(WireEnum):
    """In which statuses a query is refused."""

    UNSPECIFIED = 0
    NONE = 1
    NOT_OPEN = 2
    NOT_COMPLETED_CLEANLY = 3


class QueryResultType(WireEnum):
    """Whether a query handler answered or failed."""

    UNSPECIFIED = 0
    ANSWERED = 1
    FAILED = 2


class ReplicationState(WireEnum):
    """Replication state."""

    UNSPECIFIED = 0
    NORMAL = 1
    HANDOVER = 2


class ResetReapplyExcludeType(WireEnum):
    """Reset reapply exclude type."""

    UNSPECIFIED = 0
    SIGNAL = 1
    UPDATE = 2
    NEXUS = 3
    CANCEL_REQUEST = 4


class ResetReapplyType(WireEnum):
    """Reset reapply type."""

    UNSPECIFIED = 0
    SIGNAL = 1
    NONE = 2
    ALL_ELIGIBLE = 3


class RetryState(WireEnum):
    """Why a failed attempt was or was not followed by another."""

    UNSPECIFIED = 0
    IN_PROGRESS = 1
    NON_RETRYABLE_FAILURE = 2
    TIMEOUT = 3
    MAXIMUM_ATTEMPTS_REACHED = 4
    RETRY_POLICY_NOT_SET = 5
    INTERNAL_SERVER_ERROR = 6
    CANCEL_REQUESTED = 7


class Severity(WireEnum):
    """Severity."""

    UNSPECIFIED = 0
    HIGH = 1
    MEDIUM = 2
    LOW = 3


class SignalExternalWorkflowExecutionFailedCause(WireEnum):
    """Signal external workflow execution failed cause."""

    UNSPECIFIED = 0
    EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND = 1
    NAMESPACE_NOT_FOUND = 2
    SIGNAL_COUNT_LIMIT_EXCEEDED = 3


class StartChildWorkflowExecutionFailedCause(WireEnum):
    """Start child workflow execution failed cause."""

    UNSPECIFIED = 0
    WORKFLOW_ALREADY_EXISTS = 1
    NAMESPACE_NOT_FOUND = 2
    INVALID_VERSIONING_OVERRIDE = 3


class SuggestContinueAsNewReason(WireEnum):
    """Why continue-as-new is suggested."""

    UNSPECIFIED = 0
    HISTORY_SIZE_TOO_LARGE = 1
    TOO_MANY_HISTORY_EVENTS = 2
    TOO_MANY_UPDATES = 3


class TaskQueueKind(WireEnum):
    """Normal queues are shared, sticky ones belong to a worker."""

    UNSPECIFIED = 0
    NORMAL = 1
    STICKY = 2
    WORKER_COMMANDS = 3


class TimeoutType(WireEnum):
    """Which limit was exceeded."""

    UNSPECIFIED = 0
    START_TO_CLOSE = 1
    SCHEDULE_TO_START = 2
    SCHEDULE_TO_CLOSE = 3
    HEARTBEAT = 4


class UpdateAdmittedEventOrigin(WireEnum):
    """Update admitted event origin."""

    UNSPECIFIED = 0
    REAPPLY = 1


class UpdateWorkflowExecutionLifecycleStage(WireEnum):
    """How far an update has come."""

    UNSPECIFIED = 0
    ADMITTED = 1
    ACCEPTED = 2
    COMPLETED = 3


class VersioningBehavior(WireEnum):
    """Versioning behavior."""

    UNSPECIFIED = 0
    PINNED = 1
    AUTO_UPGRADE = 2


class PinnedOverrideBehavior(WireEnum):
    """Pinned override behavior."""

    UNSPECIFIED = 0
    PINNED = 1


class WorkerVersioningMode(WireEnum):
    """Worker versioning mode."""

    UNSPECIFIED = 0
    UNVERSIONED = 1
    VERSIONED = 2


class WorkflowExecutionStatus(WireEnum):
    """The status of a run; RUNNING and PAUSED are open."""

    UNSPECIFIED = 0
    RUNNING = 1
    COMPLETED = 2
    FAILED = 3
    CANCELED = 4
    TERMINATED = 5
    CONTINUED_AS_NEW = 6
    TIMED_OUT = 7
    PAUSED = 8


class WorkflowIdConflictPolicy(WireEnum):
    """What to do when a run of a workflow id is open."""

    UNSPECIFIED = 0
    FAIL = 1
    USE_EXISTING = 2
    TERMINATE_EXISTING = 3


class WorkflowIdReusePolicy(WireEnum):
    """What to do when the last run of a workflow id is closed."""

    UNSPECIFIED = 0
    ALLOW_DUPLICATE = 1
    ALLOW_DUPLICATE_FAILED_ONLY = 2
    REJECT_DUPLICATE = 3
    TERMINATE_IF_RUNNING = 4


class WorkflowTaskFailedCause(WireEnum):
    """Why a workflow task failed."""

    UNSPECIFIED = 0
    UNHANDLED_COMMAND = 1
    BAD_SCHEDULE_ACTIVITY_ATTRIBUTES = 2
    BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES = 3
    BAD_START_TIMER_ATTRIBUTES = 4
    BAD_CANCEL_TIMER_ATTRIBUTES = 5
    BAD_RECORD_MARKER_ATTRIBUTES = 6
    BAD_COMPLETE_WORKFLOW_EXECUTION_ATTRIBUTES = 7
    BAD_FAIL_WORKFLOW_EXECUTION_ATTRIBUTES = 8
    BAD_CANCEL_WORKFLOW_EXECUTION_ATTRIBUTES = 9
    BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES = 10
    BAD_CONTINUE_AS_NEW_ATTRIBUTES = 11
    START_TIMER_DUPLICATE_ID = 12
    RESET_STICKY_TASK_QUEUE = 13
    WORKFLOW_WORKER_UNHANDLED_FAILURE = 14
    BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES = 15
    BAD_START_CHILD_EXECUTION_ATTRIBUTES = 16
    FORCE_CLOSE_COMMAND = 17
    FAILOVER_CLOSE_COMMAND = 18
    BAD_SIGNAL_INPUT_SIZE = 19
    RESET_WORKFLOW = 20
    BAD_BINARY = 21
    SCHEDULE_ACTIVITY_DUPLICATE_ID = 22
    BAD_SEARCH_ATTRIBUTES = 23
    NON_DETERMINISTIC_ERROR = 24
    BAD_MODIFY_WORKFLOW_PROPERTIES_ATTRIBUTES = 25
    PENDING_CHILD_WORKFLOWS_LIMIT_EXCEEDED = 26
    PENDING_ACTIVITIES_LIMIT_EXCEEDED = 27
    PENDING_SIGNALS_LIMIT_EXCEEDED = 28
    PENDING_REQUEST_CANCEL_LIMIT_EXCEEDED = 29
    BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE = 30
    UNHANDLED_UPDATE = 31
    BAD_SCHEDULE_NEXUS_OPERATION_ATTRIBUTES = 32
    PENDING_NEXUS_OPERATIONS_LIMIT_EXCEEDED = 33
    BAD_REQUEST_CANCEL_NEXUS_OPERATION_ATTRIBUTES = 34
    FEATURE_DISABLED = 35
    GRPC_MESSAGE_TOO_LARGE = 36
    PAYLOADS_TOO_LARGE = 37
    EXTERNAL_STORAGE_FAILURE = 38
    WORKFLOW_PAUSE_REQUESTED_BEFORE_TASK_STARTED = 39
    REQUEST_TOO_LARGE = 40
