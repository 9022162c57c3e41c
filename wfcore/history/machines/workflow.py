"""The run itself: how it begins, and requests to it that are not about its tasks."""

from datetime import datetime, timedelta

from wfcore.history import recording
from wfcore.history.change import Change
from wfcore.history.limits import Limits
from wfcore.history.machines import delivery, signal, update, workflow_task
from wfcore.history.requests import (
    AttachStartRequest,
    ClaimTask,
    RequestCancelRun,
    StartRun,
)
from wfcore.history.retries import fill_policy
from wfcore.history.state import InboxItem, MutableState, Volatile
from wfcore.history.step import Step
from wfcore.protocol import events
from wfcore.protocol.common import TaskQueue
from wfcore.protocol.enums import ContinueAsNewInitiator, TaskQueueKind
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.metadata import Link
from wfcore.protocol.payloads import UserMetadata
from wfcore.schedules import cron

_ZERO = timedelta(0)


def run_timeouts(
    execution: timedelta | None, run: timedelta | None, task: timedelta | None, limits: Limits
) -> tuple[timedelta | None, timedelta | None, timedelta]:
    """Execution, run and workflow task timeout after defaulting and capping; None: unlimited."""
    execution = min(execution, limits.duration) if execution else None
    run = min(run, limits.duration) if run else None
    if execution is not None:
        run = execution if run is None else min(run, execution)
    task = min(task or limits.workflow_task_timeout, limits.workflow_task_timeout_cap)
    return execution, run, task if run is None else min(task, run)


def start_attributes(
    now: datetime, start: StartRun, limits: Limits
) -> events.WorkflowExecutionStarted:
    """Event 1 of a run that a client or a parent starts."""
    request = start.request
    execution, run, task = run_timeouts(
        request.workflow_execution_timeout,
        request.workflow_run_timeout,
        request.workflow_task_timeout,
        limits,
    )
    cron_schedule = request.cron_schedule
    backoff = start.first_workflow_task_backoff
    if backoff is None and cron_schedule:
        backoff = cron_wait(cron_schedule, now, now)
    if backoff is None:
        backoff = min(request.workflow_start_delay or _ZERO, limits.duration)
    return events.WorkflowExecutionStarted(
        workflow_type=request.workflow_type,
        workflow_id=request.workflow_id,
        task_queue=_normal_queue(request.task_queue),
        input=request.input,
        workflow_execution_timeout=execution,
        # a child's command carries an explicit zero, which the server repeats
        workflow_run_timeout=run if run or start.parent is None else _ZERO,
        workflow_task_timeout=task,
        workflow_execution_expiration_time=now + execution if execution else None,
        original_execution_run_id=start.run_id,
        first_execution_run_id=start.run_id,
        identity=request.identity,
        initiator=ContinueAsNewInitiator.CRON_SCHEDULE
        if cron_schedule
        else ContinueAsNewInitiator.UNSPECIFIED,
        continued_failure=request.continued_failure,
        last_completion_result=request.last_completion_result,
        retry_policy=fill_policy(request.retry_policy) if request.retry_policy else None,
        attempt=1,
        cron_schedule=cron_schedule,
        first_workflow_task_backoff=backoff,
        memo=request.memo if request.memo and request.memo.fields else None,
        search_attributes=request.search_attributes
        if request.search_attributes and request.search_attributes.indexed_fields
        else None,
        header=request.header
        if request.header and (request.header.fields or start.parent)
        else None,
        completion_callbacks=request.completion_callbacks,
        versioning_override=request.versioning_override,
        priority=request.priority,
        eager_execution_accepted=start.eager_claim is not None and not backoff,
        parent_workflow_namespace=start.parent_namespace,
        parent_workflow_namespace_id=start.parent_namespace_id,
        parent_workflow_execution=start.parent,
        parent_initiated_event_id=start.parent_initiated_event_id,
        root_workflow_execution=start.root,
    )


def cron_wait(cron_schedule: str, previous: datetime, now: datetime) -> timedelta | None:
    """The wait of a run that begins now and follows one that was due before; None: none follows.

    The text may be no schedule: that of a continue-as-new is stored as it is.
    """
    try:
        return cron.parse(cron_schedule).wait(previous, now)
    except cron.CronError:
        return None


def begin(
    now: datetime,
    attributes: events.WorkflowExecutionStarted,
    limits: Limits,
    *,
    namespace: str,
    run_id: str,
    volatile: Volatile | None = None,
    user_metadata: UserMetadata | None = None,
    links: tuple[Link, ...] = (),
) -> Step:
    """A run that has its event 1 and nothing else."""
    event = HistoryEvent(
        event_id=1, event_time=now, attributes=attributes, user_metadata=user_metadata, links=links
    )
    recorded = recording.begin(
        event, namespace=namespace, workflow_id=attributes.workflow_id, run_id=run_id
    )
    encoded = recording.encode(attributes)
    recorded.history_bytes = recording.event_bytes(encoded, user_metadata)
    change = Change(
        state=MutableState(recorded=recorded, volatile=volatile or Volatile()),
        now=now,
        is_new=True,
        memo=attributes.memo,
        search_attributes=attributes.search_attributes,
    )
    change.events.append(event)
    change.encoded.append(encoded)
    return Step(change, limits)


def first_task(step: Step, eager: ClaimTask | None = None) -> None:
    """Schedule the first workflow task, if it need not wait."""
    recorded = step.recorded
    if step.volatile.waits_for_parent:
        delivery.ask_later(step)
    if step.volatile.waits_for_parent or recorded.execution_time > recorded.start_time:
        return
    workflow_task.schedule(step)
    if eager is not None:
        # the server says nothing of the size to a worker that starts what it has just made
        workflow_task.claim(step, eager, history_bytes=0)


def start(now: datetime, request: StartRun, limits: Limits) -> Step:
    """STARTED, the signal that came with it, and the first workflow task unless it must wait."""
    step = begin(
        now,
        start_attributes(now, request, limits),
        limits,
        namespace=request.request.namespace,
        run_id=request.run_id,
        volatile=Volatile(
            create_request_id=request.request.request_id,
            waits_for_parent=request.waits_for_parent,
        ),
        user_metadata=request.request.user_metadata,
        links=request.request.links,
    )
    if request.signal is not None:
        step.append_item(signal.item(request.signal, now))
    first_task(step, request.eager_claim)
    if request.update is not None:
        update.admit(step, request.update)
    return step


def begin_tasks(step: Step) -> None:
    """The parent knows of this run: what it waited for may come."""
    step.volatile.waits_for_parent = False
    step.volatile.deliveries.pop(delivery.FIRST_EVENT, None)
    recorded = step.recorded
    early = recorded.cancel_requested or step.volatile.updates
    if early or recorded.execution_time <= step.now:
        workflow_task.schedule(step)


def cancel_item(request: RequestCancelRun, now: datetime) -> InboxItem:
    """The fact that a cancel was requested."""
    return InboxItem(
        event_time=now,
        attributes=events.WorkflowExecutionCancelRequested(
            cause=request.reason,
            external_initiated_event_id=request.external_initiated_event_id,
            external_workflow_execution=request.external_workflow_execution,
            identity=request.identity,
        ),
        links=request.links,
    )


def attach_item(request: AttachStartRequest, now: datetime) -> InboxItem:
    """The fact that a start request was attached to this run."""
    return InboxItem(
        event_time=now,
        attributes=events.WorkflowExecutionOptionsUpdated(
            attached_request_id=request.request_id,
            attached_completion_callbacks=request.completion_callbacks,
        ),
        links=request.links,
    )


def _normal_queue(queue: TaskQueue | None) -> TaskQueue:
    return TaskQueue(name=queue.name if queue else "", kind=TaskQueueKind.NORMAL)
