"""SCHEDULED and STARTED of a workflow task: written at once, later, or never."""

from datetime import timedelta

from wfcore.history.state import Recorded, TaskClaim
from wfcore.protocol import events
from wfcore.protocol.common import TaskQueue
from wfcore.protocol.enums import TaskQueueKind


def scheduled(recorded: Recorded, timeout: timedelta, attempt: int) -> events.WorkflowTaskScheduled:
    """WORKFLOW_TASK_SCHEDULED."""
    return events.WorkflowTaskScheduled(
        task_queue=TaskQueue(name=recorded.task_queue, kind=TaskQueueKind.NORMAL),
        start_to_close_timeout=timeout,
        attempt=attempt,
    )


def started(task: TaskClaim) -> events.WorkflowTaskStarted:
    """WORKFLOW_TASK_STARTED."""
    return events.WorkflowTaskStarted(
        scheduled_event_id=task.scheduled_event_id,
        identity=task.identity,
        request_id=task.request_id,
        suggest_continue_as_new=task.suggest_continue_as_new,
        suggest_continue_as_new_reasons=task.suggest_reasons,
        history_size_bytes=task.history_bytes,
    )
