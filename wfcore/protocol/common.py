"""Small values that events, commands and requests share."""

from datetime import timedelta

from wfcore.protocol.enums import TaskQueueKind
from wfcore.protocol.message import Int32, Message


class WorkflowType(Message, frozen=True):
    """Workflow type."""

    name: str = ""


class WorkflowExecution(Message, frozen=True):
    """Names a run; an empty run id means the current run."""

    workflow_id: str = ""
    run_id: str = ""


class TaskQueue(Message, frozen=True):
    """A queue of tasks by name."""

    name: str = ""
    kind: TaskQueueKind = TaskQueueKind.UNSPECIFIED
    normal_name: str = ""


class ActivityType(Message, frozen=True):
    """Activity type."""

    name: str = ""


class RetryPolicy(Message, frozen=True):
    """How failed attempts are repeated; absent parts are filled with the server's defaults."""

    initial_interval: timedelta | None = None
    backoff_coefficient: float = 0.0
    maximum_interval: timedelta | None = None
    maximum_attempts: Int32 = 0
    non_retryable_error_types: tuple[str, ...] = ()


class Priority(Message, frozen=True):
    """Order among the tasks of a queue: key 1 first, 5 last, 0 unset."""

    priority_key: Int32 = 0
    fairness_key: str = ""
    fairness_weight: float = 0.0


class FieldMask(Message, frozen=True):
    """Names of fields, in snake_case, with a dot before those of a field's own message.

    In Temporal's JSON it is one text: ``retryPolicy.initialInterval,startToCloseTimeout``.
    """

    paths: tuple[str, ...] = ()
