"""What each event does to the recorded state. Live transitions and `rebuild` both come through
here, so that the two can't differ.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from wfcore.history.state import BuildPoint, Child, Recorded, ScheduledTask, Timer
from wfcore.protocol import events as ev
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import UserMetadata

_ENCODER = msgspec.json.Encoder()
_ZERO = timedelta(0)
#: Builds that are remembered of a run (`history.historyMaxAutoResetPoints`).
_BUILD_POINTS = 20


def encode(attributes: Message) -> bytes:
    """Attributes in the form in which they are stored."""
    return _ENCODER.encode(attributes)


def event_bytes(encoded: bytes, user_metadata: UserMetadata | None) -> int:
    """What an event adds to the size of its history."""
    return len(encoded) + (len(_ENCODER.encode(user_metadata)) if user_metadata is not None else 0)


def begin(event: HistoryEvent, *, namespace: str, workflow_id: str, run_id: str) -> Recorded:
    """The state after event 1 (without its size).

    Raises:
        ValueError: the event is no WORKFLOW_EXECUTION_STARTED.
    """
    started = event.attributes
    if not isinstance(started, ev.WorkflowExecutionStarted):
        raise ValueError(
            f"a history begins with WORKFLOW_EXECUTION_STARTED, not {event.event_type.name}"
        )
    return Recorded(
        namespace=namespace,
        workflow_id=workflow_id,
        run_id=run_id,
        workflow_type=started.workflow_type.name if started.workflow_type else "",
        task_queue=started.task_queue.name if started.task_queue else "",
        first_execution_run_id=started.first_execution_run_id,
        original_execution_run_id=started.original_execution_run_id,
        continued_execution_run_id=started.continued_execution_run_id,
        initiator=started.initiator,
        attempt=started.attempt,
        parent_namespace=started.parent_workflow_namespace,
        parent_namespace_id=started.parent_workflow_namespace_id,
        parent=started.parent_workflow_execution,
        parent_initiated_event_id=started.parent_initiated_event_id,
        root=started.root_workflow_execution,
        completion_callbacks=started.completion_callbacks,
        retry_policy=started.retry_policy,
        cron_schedule=started.cron_schedule,
        priority=started.priority,
        start_time=event.event_time,
        execution_time=event.event_time + (started.first_workflow_task_backoff or _ZERO),
        workflow_task_timeout=started.workflow_task_timeout or _ZERO,
        execution_timeout=started.workflow_execution_timeout or None,
        run_timeout=started.workflow_run_timeout or None,
        expiration_time=started.workflow_execution_expiration_time,
        next_event_id=2,
        last_event_time=event.event_time,
    )


def record(recorded: Recorded, event: HistoryEvent, size: int) -> None:
    """Take in one more event, which has `size` bytes.

    Raises:
        ValueError: its id is not the next one.
    """
    if event.event_id != recorded.next_event_id:
        raise ValueError(f"event {event.event_id} follows event {recorded.next_event_id - 1}")
    recorded.next_event_id += 1
    recorded.history_bytes += size
    if event.event_time > recorded.last_event_time:
        recorded.last_event_time = event.event_time
    effect = _EFFECTS.get(type(event.attributes))
    if effect is not None:
        effect(recorded, event, event.attributes)


def _task_scheduled(
    recorded: Recorded, event: HistoryEvent, attributes: ev.WorkflowTaskScheduled
) -> None:
    recorded.first_task_scheduled = True
    recorded.task = ScheduledTask(
        scheduled_event_id=event.event_id,
        scheduled_at=event.event_time,
        attempt=attributes.attempt,
    )


def _task_started(
    recorded: Recorded, event: HistoryEvent, attributes: ev.WorkflowTaskStarted
) -> None:
    if recorded.task is not None:
        recorded.task = msgspec.structs.replace(
            recorded.task,
            started_event_id=event.event_id,
            started_at=event.event_time,
            request_id=attributes.request_id,
            identity=attributes.identity,
        )


def _task_completed(
    recorded: Recorded, event: HistoryEvent, attributes: ev.WorkflowTaskCompleted
) -> None:
    recorded.task = None
    recorded.previous_started_event_id = attributes.started_event_id
    recorded.last_completed_event_id = event.event_id
    _note_build(recorded, event, attributes)


def _note_build(
    recorded: Recorded, event: HistoryEvent, attributes: ev.WorkflowTaskCompleted
) -> None:
    stamp = attributes.worker_version
    build_id = stamp.build_id if stamp is not None else attributes.binary_checksum
    if not build_id or any(point.build_id == build_id for point in recorded.build_points):
        return
    point = BuildPoint(
        build_id=build_id, completed_event_id=event.event_id, completed_at=event.event_time
    )
    recorded.build_points = (*recorded.build_points, point)[-_BUILD_POINTS:]


def _task_lost(recorded: Recorded, _event: HistoryEvent, _attributes: Message) -> None:
    recorded.task = None


def _task_failed(
    recorded: Recorded, event: HistoryEvent, attributes: ev.WorkflowTaskFailed
) -> None:
    recorded.task = None
    if attributes.cause is Cause.RESET_WORKFLOW:
        recorded.reset_at = event.event_time
        if recorded.execution_timeout is not None:
            recorded.expiration_time = event.event_time + recorded.execution_timeout


def _activity_scheduled(
    recorded: Recorded, event: HistoryEvent, attributes: ev.ActivityTaskScheduled
) -> None:
    recorded.open_activities[event.event_id] = attributes.activity_id


def _activity_closed(
    recorded: Recorded,
    _event: HistoryEvent,
    attributes: ev.ActivityTaskCompleted
    | ev.ActivityTaskFailed
    | ev.ActivityTaskTimedOut
    | ev.ActivityTaskCanceled,
) -> None:
    recorded.open_activities.pop(attributes.scheduled_event_id, None)


def _timer_started(recorded: Recorded, event: HistoryEvent, attributes: ev.TimerStarted) -> None:
    recorded.timers[attributes.timer_id] = Timer(
        started_event_id=event.event_id,
        fire_at=event.event_time + (attributes.start_to_fire_timeout or _ZERO),
    )


def _timer_ended(
    recorded: Recorded, _event: HistoryEvent, attributes: ev.TimerFired | ev.TimerCanceled
) -> None:
    recorded.timers.pop(attributes.timer_id, None)


def _child_initiated(
    recorded: Recorded, event: HistoryEvent, attributes: ev.StartChildWorkflowExecutionInitiated
) -> None:
    recorded.children[event.event_id] = Child(
        workflow_id=attributes.workflow_id,
        workflow_type=attributes.workflow_type.name if attributes.workflow_type else "",
        parent_close_policy=attributes.parent_close_policy,
    )


def _child_started(
    recorded: Recorded, event: HistoryEvent, attributes: ev.ChildWorkflowExecutionStarted
) -> None:
    child = recorded.children.get(attributes.initiated_event_id)
    if child is not None and attributes.workflow_execution is not None:
        recorded.children[attributes.initiated_event_id] = msgspec.structs.replace(
            child,
            started_event_id=event.event_id,
            run_id=attributes.workflow_execution.run_id,
        )


def _child_ended(
    recorded: Recorded,
    _event: HistoryEvent,
    attributes: ev.StartChildWorkflowExecutionFailed | ev.ChildWorkflowExecutionCompleted,
) -> None:
    recorded.children.pop(attributes.initiated_event_id, None)


def _signal_initiated(
    recorded: Recorded, event: HistoryEvent, attributes: ev.SignalExternalWorkflowExecutionInitiated
) -> None:
    target = attributes.workflow_execution
    recorded.external_signals[event.event_id] = target.workflow_id if target else ""


def _signal_answered(
    recorded: Recorded, _event: HistoryEvent, attributes: ev.ExternalWorkflowExecutionSignaled
) -> None:
    recorded.external_signals.pop(attributes.initiated_event_id, None)


def _cancel_initiated(
    recorded: Recorded,
    event: HistoryEvent,
    attributes: ev.RequestCancelExternalWorkflowExecutionInitiated,
) -> None:
    target = attributes.workflow_execution
    recorded.external_cancels[event.event_id] = target.workflow_id if target else ""


def _cancel_answered(
    recorded: Recorded,
    _event: HistoryEvent,
    attributes: ev.ExternalWorkflowExecutionCancelRequested,
) -> None:
    recorded.external_cancels.pop(attributes.initiated_event_id, None)


def _signaled(recorded: Recorded, _event: HistoryEvent, _attributes: Message) -> None:
    recorded.signal_count += 1


def _update_accepted(
    recorded: Recorded, event: HistoryEvent, attributes: ev.WorkflowExecutionUpdateAccepted
) -> None:
    recorded.update_count += 1
    update_id = attributes.protocol_instance_id
    recorded.open_updates = {**recorded.open_updates, update_id: event.event_id}


def _update_completed(
    recorded: Recorded, _event: HistoryEvent, attributes: ev.WorkflowExecutionUpdateCompleted
) -> None:
    recorded.open_updates = {
        update_id: event_id
        for update_id, event_id in recorded.open_updates.items()
        if event_id != attributes.accepted_event_id
    }


def _cancel_requested(
    recorded: Recorded, event: HistoryEvent, attributes: ev.WorkflowExecutionCancelRequested
) -> None:
    recorded.cancel_requested = True
    recorded.cancel_requested_event_id = event.event_id
    recorded.cancel_reason = attributes.cause


def _options_updated(
    recorded: Recorded, _event: HistoryEvent, attributes: ev.WorkflowExecutionOptionsUpdated
) -> None:
    recorded.completion_callbacks += attributes.attached_completion_callbacks
    if attributes.priority is not None:
        recorded.priority = attributes.priority


def _paused(recorded: Recorded, _event: HistoryEvent, _attributes: Message) -> None:
    recorded.status = Status.PAUSED


def _unpaused(recorded: Recorded, _event: HistoryEvent, _attributes: Message) -> None:
    recorded.status = Status.RUNNING


def _closed(status: Status) -> Callable[[Recorded, HistoryEvent, Any], None]:
    def close(recorded: Recorded, event: HistoryEvent, attributes: Any) -> None:
        recorded.status = status
        recorded.close_time = event.event_time
        recorded.new_execution_run_id = getattr(attributes, "new_execution_run_id", "")
        recorded.timers = {}
        recorded.open_activities = {}
        recorded.external_signals = {}
        recorded.external_cancels = {}

    return close


_EFFECTS: dict[type[Message], Callable[[Recorded, HistoryEvent, Any], None]] = {
    ev.WorkflowTaskScheduled: _task_scheduled,
    ev.WorkflowTaskStarted: _task_started,
    ev.WorkflowTaskCompleted: _task_completed,
    ev.WorkflowTaskFailed: _task_failed,
    ev.WorkflowTaskTimedOut: _task_lost,
    ev.ActivityTaskScheduled: _activity_scheduled,
    ev.ActivityTaskCompleted: _activity_closed,
    ev.ActivityTaskFailed: _activity_closed,
    ev.ActivityTaskTimedOut: _activity_closed,
    ev.ActivityTaskCanceled: _activity_closed,
    ev.TimerStarted: _timer_started,
    ev.TimerFired: _timer_ended,
    ev.TimerCanceled: _timer_ended,
    ev.StartChildWorkflowExecutionInitiated: _child_initiated,
    ev.StartChildWorkflowExecutionFailed: _child_ended,
    ev.ChildWorkflowExecutionStarted: _child_started,
    ev.ChildWorkflowExecutionCompleted: _child_ended,
    ev.ChildWorkflowExecutionFailed: _child_ended,
    ev.ChildWorkflowExecutionCanceled: _child_ended,
    ev.ChildWorkflowExecutionTimedOut: _child_ended,
    ev.ChildWorkflowExecutionTerminated: _child_ended,
    ev.SignalExternalWorkflowExecutionInitiated: _signal_initiated,
    ev.SignalExternalWorkflowExecutionFailed: _signal_answered,
    ev.ExternalWorkflowExecutionSignaled: _signal_answered,
    ev.RequestCancelExternalWorkflowExecutionInitiated: _cancel_initiated,
    ev.RequestCancelExternalWorkflowExecutionFailed: _cancel_answered,
    ev.ExternalWorkflowExecutionCancelRequested: _cancel_answered,
    ev.WorkflowExecutionSignaled: _signaled,
    ev.WorkflowExecutionUpdateAccepted: _update_accepted,
    ev.WorkflowExecutionUpdateCompleted: _update_completed,
    ev.WorkflowExecutionCancelRequested: _cancel_requested,
    ev.WorkflowExecutionOptionsUpdated: _options_updated,
    ev.WorkflowExecutionPaused: _paused,
    ev.WorkflowExecutionUnpaused: _unpaused,
    ev.WorkflowExecutionCompleted: _closed(Status.COMPLETED),
    ev.WorkflowExecutionFailed: _closed(Status.FAILED),
    ev.WorkflowExecutionTimedOut: _closed(Status.TIMED_OUT),
    ev.WorkflowExecutionCanceled: _closed(Status.CANCELED),
    ev.WorkflowExecutionTerminated: _closed(Status.TERMINATED),
    ev.WorkflowExecutionContinuedAsNew: _closed(Status.CONTINUED_AS_NEW),
}
