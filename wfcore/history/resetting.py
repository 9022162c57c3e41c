"""A run that begins with the history of another one, up to one of its workflow tasks.

The kept events are copied as they are; the workflow task that they end with fails, so that another
one follows; what reached the old run afterwards and is no doing of its code is applied again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from wfcore.exceptions import InvalidArgumentError
from wfcore.history import recording, search_attributes
from wfcore.history.change import Change
from wfcore.history.limits import Limits
from wfcore.history.machines import activity_commands, delivery, marker, update, workflow_task
from wfcore.history.outcome import finish
from wfcore.history.rebuild import rebuild
from wfcore.history.requests import ENGINE_IDENTITY
from wfcore.history.state import DeliveryKind, MutableState, Volatile
from wfcore.history.step import CHILD_ENDS, Step
from wfcore.history.updates import Update
from wfcore.protocol import events as ev
from wfcore.protocol.enums import UpdateAdmittedEventOrigin
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.failures import Failure, ResetWorkflowFailureInfo
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Memo, SearchAttributes
from wfcore.protocol.updates import Request

#: Ends of workflow tasks that may be a reset's point.
_TASK_ENDS = (ev.WorkflowTaskCompleted, ev.WorkflowTaskFailed, ev.WorkflowTaskTimedOut)
#: What other workflows have answered.
_ANSWERS = (
    ev.SignalExternalWorkflowExecutionFailed,
    ev.ExternalWorkflowExecutionSignaled,
    ev.RequestCancelExternalWorkflowExecutionFailed,
    ev.ExternalWorkflowExecutionCancelRequested,
)
_CHILD_STARTS = (ev.StartChildWorkflowExecutionFailed, ev.ChildWorkflowExecutionStarted)


@dataclass(frozen=True, kw_only=True, slots=True)
class ResetRun:
    """What a reset shall make.

    Attributes:
        base_run_id: the run whose history is taken.
        events: its whole history, and that of runs which continued it as new.
        point: id of the event in front of which the copy ends; see `check_point`.
        signals, updates: which of those that came after the point are applied again.
    """

    namespace: str
    workflow_id: str
    base_run_id: str
    run_id: str
    reason: str
    events: Sequence[HistoryEvent]
    later_runs: Sequence[HistoryEvent] = ()
    point: int
    signals: bool = True
    updates: bool = True


def check_point(events: Sequence[HistoryEvent], point: int) -> None:
    """Whether a history can be reset there: to the STARTED event of a workflow task, if something
    follows it, or to its end.

    Raises:
        InvalidArgumentError: it can't.
    """
    last = len(events)
    if not 1 < point <= last:
        raise InvalidArgumentError(
            "Workflow task finish ID must be > 1 && <= workflow last event ID."
        )
    attributes = events[point - 1].attributes
    before = events[point - 2].attributes
    is_end = isinstance(attributes, _TASK_ENDS) and isinstance(before, ev.WorkflowTaskStarted)
    is_start = isinstance(attributes, ev.WorkflowTaskStarted) and point < last
    if not (is_end or is_start):
        raise InvalidArgumentError(
            f"StateRebuilder unable to Rebuild mutable state to event ID: {point - 1}, "
            "version: 0, this event must be at the boundary"
        )


def reset(now: datetime, request: ResetRun, limits: Limits) -> Change:
    """Make the run.

    Raises:
        InvalidArgumentError: the point is none that a history can be reset to.
    """
    check_point(request.events, request.point)
    kept = request.events[: request.point - 1]
    step = _copied(now, request, kept, limits)
    _fail_task(step, request)
    _take_over_updates(step, kept)
    _apply_again(step, request)
    _take_up(step, kept)
    workflow_task.schedule(step)
    finish(step)
    return step.change


def _copied(now: datetime, request: ResetRun, kept: Sequence[HistoryEvent], limits: Limits) -> Step:
    recorded = rebuild(
        kept,
        namespace=request.namespace,
        workflow_id=request.workflow_id,
        run_id=request.run_id,
    )
    memo, attributes = _visible(kept)
    change = Change(
        state=MutableState(recorded=recorded, volatile=Volatile()),
        now=now,
        is_new=True,
        memo=memo,
        search_attributes=attributes,
        events=list(kept),
        encoded=[recording.encode(event.attributes) for event in kept],
    )
    step = Step(change, limits)
    for event in kept:
        attached = getattr(event.attributes, "attached_request_id", "")
        if attached:
            step.volatile.attached_request_ids[attached] = event.event_id
    return step


def _visible(kept: Sequence[HistoryEvent]) -> tuple[Memo | None, SearchAttributes | None]:
    """Memo and search attributes as the events have made them."""
    memo: Memo | None = None
    attributes: SearchAttributes | None = None
    for event in kept:
        match event.attributes:
            case ev.WorkflowExecutionStarted() as started:
                memo, attributes = started.memo, started.search_attributes
            case ev.WorkflowPropertiesModified(upserted_memo=changed) if changed is not None:
                memo = marker.merged_memo(memo, changed)
            case ev.UpsertWorkflowSearchAttributes(search_attributes=upserted) if upserted:
                attributes = search_attributes.merged(attributes, upserted)
    return memo, attributes


def _fail_task(step: Step, request: ResetRun) -> None:
    """The workflow task that the copy ends with has come to nothing."""
    task = step.recorded.task
    if task is None:
        raise LookupError(f"the events before event {request.point} end with no workflow task")
    started = task.started_event_id or step.append(
        ev.WorkflowTaskStarted(
            scheduled_event_id=task.scheduled_event_id,
            identity=ENGINE_IDENTITY,
            request_id=request.run_id,
            history_size_bytes=step.recorded.history_bytes,
        )
    )
    step.append(
        ev.WorkflowTaskFailed(
            scheduled_event_id=task.scheduled_event_id,
            started_event_id=started,
            cause=Cause.RESET_WORKFLOW,
            failure=Failure(
                message=request.reason, reset_workflow_failure_info=ResetWorkflowFailureInfo()
            ),
            identity=ENGINE_IDENTITY,
            base_run_id=request.base_run_id,
            new_run_id=request.run_id,
        )
    )


# ---- updates


def _take_over_updates(step: Step, kept: Sequence[HistoryEvent]) -> None:
    """Rows of the updates of the kept events; one that was admitted by an event waits again."""
    admitted: dict[str, tuple[int, Request]] = {}
    accepted: dict[str, Update] = {}
    names: dict[int, str] = {}
    for event in kept:
        match event.attributes:
            case ev.WorkflowExecutionUpdateAdmitted(request=asked) if asked and asked.meta:
                admitted[asked.meta.update_id] = (event.event_id, asked)
            case ev.WorkflowExecutionUpdateAccepted(protocol_instance_id=update_id):
                admitted.pop(update_id, None)
                step.volatile.admissions += 1
                names[event.event_id] = update_id
                accepted[update_id] = Update(
                    update_id=update_id,
                    admission=step.volatile.admissions,
                    accepted_event_id=event.event_id,
                )
            case ev.WorkflowExecutionUpdateCompleted(accepted_event_id=at) if at in names:
                row = accepted[names[at]]
                accepted[names[at]] = msgspec.structs.replace(
                    row, completed_event_id=event.event_id
                )
    step.change.update_rows.update(accepted)
    for event_id, asked in admitted.values():
        update.take_over(step, event_id, asked)


def _admit_again(step: Step, asked: Request | None) -> None:
    if asked is None or asked.meta is None:
        return
    update_id = asked.meta.update_id
    if update_id in step.volatile.updates or update_id in step.change.update_rows:
        return
    event_id = step.append(
        ev.WorkflowExecutionUpdateAdmitted(request=asked, origin=UpdateAdmittedEventOrigin.REAPPLY)
    )
    update.take_over(step, event_id, asked)


# ---- what came after the point


def _apply_again(step: Step, request: ResetRun) -> None:
    for event in (*request.events[request.point - 1 :], *request.later_runs):
        attributes = event.attributes
        match attributes:
            case ev.WorkflowExecutionSignaled() if request.signals:
                _repeat(step, event, attributes)
            case ev.WorkflowExecutionUpdateAdmitted(request=asked) if request.updates:
                _admit_again(step, asked)
            case ev.WorkflowExecutionUpdateAccepted(accepted_request=asked) if request.updates:
                _admit_again(step, asked)
            case ev.WorkflowExecutionOptionsUpdated(attached_request_id=attached):
                event_id = _repeat(step, event, attributes)
                if attached:
                    step.volatile.attached_request_ids[attached] = event_id
    for event in request.events[request.point - 1 :]:
        _hear_again(step, event)


def _repeat(step: Step, event: HistoryEvent, attributes: Message) -> int:
    return step.append(attributes, user_metadata=event.user_metadata, links=event.links)


def _hear_again(step: Step, event: HistoryEvent) -> None:
    """What others have told the old run of what it had asked them for before the point."""
    recorded, attributes = step.recorded, event.attributes
    initiated = getattr(attributes, "initiated_event_id", 0)
    child = recorded.children.get(initiated)
    if isinstance(attributes, _ANSWERS):
        if initiated in recorded.external_signals or initiated in recorded.external_cancels:
            _repeat(step, event, attributes)
    elif isinstance(attributes, _CHILD_STARTS):
        if child is not None and not child.started_event_id:
            _repeat(step, event, attributes)
    elif isinstance(attributes, CHILD_ENDS) and child is not None:
        started = child.started_event_id
        _repeat(step, event, msgspec.structs.replace(attributes, started_event_id=started))


def _take_up(step: Step, kept: Sequence[HistoryEvent]) -> None:
    """Begin anew what was asked for before the point and has no answer."""
    recorded = step.recorded
    for event_id in recorded.open_activities:
        scheduled = kept[event_id - 1].attributes
        if isinstance(scheduled, ev.ActivityTaskScheduled):
            step.change.activity_rows[event_id] = activity_commands.pending_row(
                step, scheduled, event_id
            )
    for event in kept:
        match event.attributes:
            case ev.ActivityTaskCancelRequested(scheduled_event_id=scheduled_id):
                row = step.change.activity_rows.get(scheduled_id)
                if row is not None:
                    step.change.activity_rows[scheduled_id] = msgspec.structs.replace(
                        row, cancel_requested_event_id=event.event_id
                    )
    for event_id, child in recorded.children.items():
        if not child.started_event_id:
            delivery.add(step, DeliveryKind.START_CHILD, event_id)
    for event_id in recorded.external_signals:
        delivery.add(step, DeliveryKind.SIGNAL, event_id)
    for event_id in recorded.external_cancels:
        delivery.add(step, DeliveryKind.CANCEL, event_id)
