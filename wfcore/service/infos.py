"""What describe, list and count tell of a run, made from its state."""

from datetime import datetime, timedelta

import msgspec

from wfcore.history.deadlines import run_ends_at
from wfcore.history.state import (
    ActivityPause,
    ActivityState,
    Child,
    MutableState,
    PendingActivity,
    Recorded,
)
from wfcore.protocol.common import ActivityType, TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import EventType, PendingActivityState, TaskQueueKind
from wfcore.protocol.enums import PendingWorkflowTaskState as TaskState
from wfcore.protocol.metadata import ResetPointInfo, ResetPoints, WorkerVersionStamp
from wfcore.protocol.payloads import Memo, Payload, SearchAttributes, UserMetadata
from wfcore.protocol.rpc.info import (
    ActivityOptions,
    PendingActivityInfo,
    PendingActivityInfoPauseInfo,
    PendingActivityInfoPauseInfoManual,
    PendingChildExecutionInfo,
    PendingWorkflowTaskInfo,
    RequestIdInfo,
    WorkflowExecutionConfig,
    WorkflowExecutionExtendedInfo,
    WorkflowExecutionInfo,
)

NO_TIME = timedelta()
REPORTED_PROBLEMS = "TemporalReportedProblems"
BUILD_IDS = "BuildIds"


def execution_info(
    state: MutableState, memo: Memo | None, search_attributes: SearchAttributes | None
) -> WorkflowExecutionInfo:
    """What people list, as Temporal's describe shows it."""
    recorded = state.recorded
    execution = WorkflowExecution(workflow_id=recorded.workflow_id, run_id=recorded.run_id)
    duration = None
    if recorded.close_time is not None:
        duration = max(recorded.close_time - recorded.execution_time, NO_TIME)
    return WorkflowExecutionInfo(
        execution=execution,
        type=WorkflowType(name=recorded.workflow_type),
        start_time=recorded.start_time,
        close_time=recorded.close_time,
        execution_time=recorded.execution_time,
        execution_duration=duration,
        status=recorded.status,
        history_length=recorded.next_event_id - 1,
        history_size_bytes=recorded.history_bytes,
        parent_namespace_id=recorded.parent_namespace_id,
        parent_execution=recorded.parent,
        root_execution=recorded.root or execution,
        first_run_id=recorded.first_execution_run_id,
        memo=memo or Memo(),
        search_attributes=search_attributes or SearchAttributes(),
        auto_reset_points=ResetPoints(),
        task_queue=recorded.task_queue,
        state_transition_count=state.volatile.state_transitions,
        priority=recorded.priority,
    )


def with_reported_problems(
    search_attributes: SearchAttributes | None, problems: tuple[str, ...]
) -> SearchAttributes:
    """Search attributes with TemporalReportedProblems, or without it when there is none."""
    fields = dict(search_attributes.indexed_fields) if search_attributes is not None else {}
    fields.pop(REPORTED_PROBLEMS, None)
    if problems:
        fields[REPORTED_PROBLEMS] = Payload(
            metadata={"encoding": b"json/plain", "type": b"KeywordList"},
            data=msgspec.json.encode(problems),
        )
    return SearchAttributes(indexed_fields=fields)


def with_builds(info: WorkflowExecutionInfo, recorded: Recorded) -> WorkflowExecutionInfo:
    """What describe adds: the builds of the worker's code that have worked on the run."""
    points = recorded.build_points
    if not points:
        return info
    fields = dict(info.search_attributes.indexed_fields) if info.search_attributes else {}
    fields[BUILD_IDS] = Payload(
        metadata={"encoding": b"json/plain", "type": b"KeywordList"},
        data=msgspec.json.encode(
            ["unversioned", *(f"unversioned:{point.build_id}" for point in points)]
        ),
    )
    return msgspec.structs.replace(
        info,
        search_attributes=SearchAttributes(indexed_fields=fields),
        auto_reset_points=ResetPoints(
            points=tuple(
                ResetPointInfo(
                    build_id=point.build_id,
                    run_id=recorded.run_id,
                    first_workflow_task_completed_id=point.completed_event_id,
                    create_time=point.completed_at,
                    resettable=True,
                )
                for point in points
            )
        ),
        most_recent_worker_version_stamp=WorkerVersionStamp(build_id=points[-1].build_id),
    )


def execution_config(
    recorded: Recorded, user_metadata: UserMetadata | None
) -> WorkflowExecutionConfig:
    """The settings that a run was started with."""
    return WorkflowExecutionConfig(
        task_queue=TaskQueue(name=recorded.task_queue, kind=TaskQueueKind.NORMAL),
        workflow_execution_timeout=recorded.execution_timeout,
        workflow_run_timeout=recorded.run_timeout,
        default_workflow_task_timeout=recorded.workflow_task_timeout,
        user_metadata=user_metadata,
    )


def extended_info(state: MutableState) -> WorkflowExecutionExtendedInfo:
    """When a run ends at the latest, whether it is to be cancelled, and which requests made it."""
    recorded, volatile = state.recorded, state.volatile
    infos = {
        request_id: RequestIdInfo(
            event_type=EventType.WORKFLOW_EXECUTION_OPTIONS_UPDATED, event_id=event_id
        )
        for request_id, event_id in volatile.attached_request_ids.items()
    }
    if volatile.create_request_id:
        infos[volatile.create_request_id] = RequestIdInfo(
            event_type=EventType.WORKFLOW_EXECUTION_STARTED, event_id=1
        )
    return WorkflowExecutionExtendedInfo(
        execution_expiration_time=recorded.expiration_time,
        run_expiration_time=run_expiration(recorded),
        cancel_requested=recorded.cancel_requested,
        last_reset_time=recorded.reset_at,
        original_start_time=recorded.start_time,
        reset_run_id=state.volatile.reset_run_id,
        request_id_infos=infos,
    )


def run_expiration(recorded: Recorded) -> datetime | None:
    """When the run times out; None without a run or execution timeout."""
    ends = [recorded.expiration_time] if recorded.expiration_time is not None else []
    if (end := run_ends_at(recorded)) is not None:
        ends.append(end)
    return min(ends, default=None)


def pending_workflow_task(state: MutableState) -> PendingWorkflowTaskInfo | None:
    """The outstanding workflow task; of a closed run, the one that was outstanding then."""
    if not state.is_open:
        left = state.recorded.task
        if left is None:
            return None
        return PendingWorkflowTaskInfo(
            state=TaskState.SCHEDULED,
            scheduled_time=left.scheduled_at,
            original_scheduled_time=left.scheduled_at,
            attempt=left.attempt,
        )
    task = state.volatile.task
    if task is None:
        return None
    started = task.started_at is not None
    return PendingWorkflowTaskInfo(
        state=TaskState.STARTED if started else TaskState.SCHEDULED,
        scheduled_time=task.scheduled_at,
        original_scheduled_time=task.original_scheduled_at,
        started_time=task.started_at,
        attempt=task.attempt,
    )


def pending_child(initiated: int, child: Child) -> PendingChildExecutionInfo:
    """A child that is not known to have ended."""
    return PendingChildExecutionInfo(
        workflow_id=child.workflow_id,
        run_id=child.run_id,
        workflow_type_name=child.workflow_type,
        initiated_id=initiated,
        parent_close_policy=child.parent_close_policy,
    )


def pending_activity(row: PendingActivity, now: datetime) -> PendingActivityInfo:
    """An open activity; its next attempt's time is shown while it waits for that."""
    next_at = row.claimable_at if row.claimable_at and row.claimable_at > now else None
    interval = None
    if next_at is not None and row.last_attempt_completed_at is not None:
        interval = next_at - row.last_attempt_completed_at
    expiration = None
    if row.schedule_to_close_timeout:
        expiration = row.scheduled_at + row.schedule_to_close_timeout
    return PendingActivityInfo(
        activity_id=row.activity_id,
        activity_type=ActivityType(name=row.activity_type),
        state=_activity_state(row),
        heartbeat_details=row.heartbeat_details,
        last_heartbeat_time=row.last_heartbeat_at,
        last_started_time=row.started_at,
        attempt=row.attempt,
        maximum_attempts=row.retry_policy.maximum_attempts,
        scheduled_time=row.scheduled_at,
        expiration_time=expiration,
        last_failure=row.last_failure,
        last_worker_identity=row.identity or row.last_worker_identity,
        current_retry_interval=interval,
        last_attempt_complete_time=row.last_attempt_completed_at,
        next_attempt_schedule_time=next_at,
        paused=row.pause is not None,
        pause_info=_pause_info(row.pause),
        priority=row.priority,
        activity_options=ActivityOptions(
            task_queue=TaskQueue(name=row.task_queue, normal_name=row.task_queue),
            schedule_to_close_timeout=row.schedule_to_close_timeout,
            schedule_to_start_timeout=row.schedule_to_start_timeout,
            start_to_close_timeout=row.start_to_close_timeout,
            heartbeat_timeout=row.heartbeat_timeout,
            retry_policy=row.retry_policy,
            priority=row.priority,
        ),
    )


def _activity_state(row: PendingActivity) -> PendingActivityState:
    if row.state is ActivityState.SCHEDULED:
        return PendingActivityState.PAUSED if row.pause else PendingActivityState.SCHEDULED
    if row.cancel_requested_event_id:
        return PendingActivityState.CANCEL_REQUESTED
    return PendingActivityState.PAUSE_REQUESTED if row.pause else PendingActivityState.STARTED


def _pause_info(pause: ActivityPause | None) -> PendingActivityInfoPauseInfo | None:
    if pause is None:
        return None
    manual = PendingActivityInfoPauseInfoManual(identity=pause.identity, reason=pause.reason)
    return PendingActivityInfoPauseInfo(pause_time=pause.at, manual=manual)
