"""What workflow code asks of activities: schedule one, cancel one."""

from datetime import timedelta

from wfcore.history.activity_options import (
    effective_timeouts,
    inherited_priority,
    priority_fault,
    timeouts_fault,
)
from wfcore.history.faults import BadCommandError
from wfcore.history.machines import activity
from wfcore.history.machines.chain import queue_fault
from wfcore.history.retries import check_policy, fill_policy
from wfcore.history.sizes import payloads_bytes
from wfcore.history.state import ActivityState, PendingActivity
from wfcore.history.step import Step
from wfcore.protocol import commands, events
from wfcore.protocol.commands import Command
from wfcore.protocol.common import TaskQueue
from wfcore.protocol.enums import TaskQueueKind
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause

_ZERO = timedelta(0)
_BAD_SCHEDULE = Cause.BAD_SCHEDULE_ACTIVITY_ATTRIBUTES


def schedule(
    step: Step, command: Command, attributes: commands.ScheduleActivityTask, completed: int
) -> None:
    """SCHEDULE_ACTIVITY_TASK."""
    recorded = step.recorded
    _check(step, attributes)
    if len(recorded.open_activities) >= step.limits.pending_activities:
        raise BadCommandError(
            Cause.PENDING_ACTIVITIES_LIMIT_EXCEEDED,
            f"the number of pending activities, {len(recorded.open_activities)}, has reached the "
            f"per-workflow limit of {step.limits.pending_activities}",
        )
    ids = _ids_in_use(step)
    if attributes.activity_id in ids:
        raise BadCommandError(
            Cause.SCHEDULE_ACTIVITY_DUPLICATE_ID,
            "invalid history builder state for action: add-activitytask-scheduled-event, "
            f"ActivityID: {attributes.activity_id}",
        )
    scheduled = _scheduled(step, attributes, completed)
    event_id = step.append(
        scheduled,
        user_metadata=command.user_metadata,
        markers=command.event_group_markers,
    )
    ids.add(attributes.activity_id)
    row = pending_row(step, scheduled, event_id)
    answer = step.answer
    if attributes.request_eager_execution and step.limits.eager_activities and answer is not None:
        row = activity.started(
            row,
            step.now,
            request_id=answer.activity_request_id,
            identity=answer.identity,
            owner=answer.owner,
        )
        step.taken.append(row)
    step.change.activity_rows[event_id] = row


def request_cancel(
    step: Step, command: Command, attributes: commands.RequestCancelActivityTask, completed: int
) -> None:
    """REQUEST_CANCEL_ACTIVITY_TASK; one that nobody has taken ends at once."""
    cause = Cause.BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES
    scheduled_id = attributes.scheduled_event_id
    if scheduled_id <= 0:
        raise BadCommandError(
            cause, "ScheduledEventId is not set on RequestCancelActivityTaskCommand."
        )
    row = _pending(step, scheduled_id)
    ended = row is None and scheduled_id in _ending(step)
    if not ended and (row is None or row.cancel_requested_event_id):
        raise BadCommandError(
            cause,
            "invalid history builder state for action: add-activitytask-cancel-requested-event, "
            f"ScheduledEventID: {scheduled_id}",
        )
    event_id = step.append(
        events.ActivityTaskCancelRequested(
            scheduled_event_id=scheduled_id, workflow_task_completed_event_id=completed
        ),
        user_metadata=command.user_metadata,
        markers=command.event_group_markers,
    )
    if row is None:
        return  # its closing event waits in the inbox
    row = activity.cancel_requested(row, event_id)
    if row.state is ActivityState.STARTED:
        step.change.activity_rows[scheduled_id] = row
        return
    step.late.append(activity.canceled(row, step.now, activity.NOT_STARTED, step.identity))
    step.wants_task = True
    _ids_in_use(step).discard(row.activity_id)
    if scheduled_id in step.change.activities:
        step.change.activity_rows[scheduled_id] = None
    else:
        del step.change.activity_rows[scheduled_id]  # made by the same answer: never stored


def _check(step: Step, attributes: commands.ScheduleActivityTask) -> None:
    limit = step.limits.id_bytes
    if attributes.task_queue is None:
        raise BadCommandError(_BAD_SCHEDULE, "taskQueue is not set")
    if fault := queue_fault(attributes.task_queue.name, limit):
        raise BadCommandError(_BAD_SCHEDULE, fault)
    kind = attributes.activity_type.name if attributes.activity_type else ""
    for name, value in (("activityId", attributes.activity_id), ("activityType", kind)):
        if not value:
            raise BadCommandError(_BAD_SCHEDULE, f"{name} is not set")
        length = len(value.encode())
        if length > limit:
            raise BadCommandError(
                _BAD_SCHEDULE, f"{name} exceeds length limit. Length={length} Limit={limit}"
            )
    if fault := check_policy(attributes.retry_policy):
        raise BadCommandError(_BAD_SCHEDULE, fault)
    if fault := timeouts_fault(attributes, attributes.activity_id, kind):
        raise BadCommandError(_BAD_SCHEDULE, fault)
    if fault := priority_fault(attributes.priority):
        raise BadCommandError(_BAD_SCHEDULE, f"invalid priorities: {fault}")
    if payloads_bytes(attributes.input) > step.limits.blob_bytes:
        raise BadCommandError(
            _BAD_SCHEDULE,
            "ScheduleActivityTaskCommandAttributes.Input exceeds size limit.",
            terminates=True,
        )


def _scheduled(
    step: Step, attributes: commands.ScheduleActivityTask, completed: int
) -> events.ActivityTaskScheduled:
    to_close, to_start, start_to_close, beat = effective_timeouts(
        attributes, step.recorded.run_timeout, step.limits.duration
    )
    queue = attributes.task_queue or TaskQueue()
    return events.ActivityTaskScheduled(
        activity_id=attributes.activity_id,
        activity_type=attributes.activity_type,
        task_queue=TaskQueue(name=queue.name, kind=TaskQueueKind.NORMAL),
        header=attributes.header,
        input=attributes.input,
        schedule_to_close_timeout=to_close,
        schedule_to_start_timeout=to_start,
        start_to_close_timeout=start_to_close,
        heartbeat_timeout=beat,
        workflow_task_completed_event_id=completed,
        retry_policy=fill_policy(attributes.retry_policy),
        use_workflow_build_id=attributes.use_workflow_build_id,
        priority=inherited_priority(attributes.priority, step.recorded.priority),
    )


def pending_row(
    step: Step, scheduled: events.ActivityTaskScheduled, event_id: int
) -> PendingActivity:
    """The first attempt of an activity, which may start now."""
    recorded = step.recorded
    return PendingActivity(
        namespace=recorded.namespace,
        workflow_id=recorded.workflow_id,
        run_id=recorded.run_id,
        scheduled_event_id=event_id,
        activity_id=scheduled.activity_id,
        activity_type=scheduled.activity_type.name if scheduled.activity_type else "",
        task_queue=scheduled.task_queue.name if scheduled.task_queue else "",
        scheduled_at=step.now,
        schedule_to_close_timeout=scheduled.schedule_to_close_timeout or _ZERO,
        schedule_to_start_timeout=scheduled.schedule_to_start_timeout or _ZERO,
        start_to_close_timeout=scheduled.start_to_close_timeout or _ZERO,
        heartbeat_timeout=scheduled.heartbeat_timeout or _ZERO,
        retry_policy=scheduled.retry_policy or fill_policy(None),
        priority=scheduled.priority,
        attempt_scheduled_at=step.now,
    )


def _pending(step: Step, scheduled_event_id: int) -> PendingActivity | None:
    """The row of an open activity; None when it is closed or its end waits to be written."""
    row = step.activity(scheduled_event_id)
    is_open = scheduled_event_id in step.recorded.open_activities
    if row is None and is_open and scheduled_event_id not in _ending(step):
        raise LookupError(
            f"activity {scheduled_event_id} is open and was not loaded: load what "
            "transition.needs() asks for"
        )
    return row


def _ending(step: Step) -> set[int]:
    """Scheduled event ids of activities whose end waits to be written."""
    return {
        item.attributes.scheduled_event_id
        for item in (*step.change.inbox, *step.late)
        if isinstance(item.attributes, activity.CLOSING)
    }


def _ids_in_use(step: Step) -> set[str]:
    """Ids of open activities; one whose end waits to be written has given its id up."""
    if step.activity_ids is None:
        gone = _ending(step)
        opened = step.recorded.open_activities
        step.activity_ids = {name for key, name in opened.items() if key not in gone}
    return step.activity_ids
