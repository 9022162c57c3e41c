"""What happens to a run while a workflow task is started: facts wait in the inbox, timers wait to
be fired. When the task ends they become events, in the order in which they happened.
"""

from datetime import datetime

from wfcore.history.machines import child, timer
from wfcore.history.recording import encode
from wfcore.history.state import InboxItem
from wfcore.history.step import Step
from wfcore.protocol import events as ev


def holds_facts(step: Step, completed: int) -> bool:
    """Whether anything waits that the worker has not seen, so that a close must not pass it by.

    `completed` is the event that begins the worker's answer: timers of that answer don't count.
    """
    return bool(step.change.inbox) or timer.any_due(step, completed)


def flush(step: Step, floor: datetime | None) -> list[InboxItem]:
    """Write all that waits, then what the step itself made; give what was written.

    A timer that came due fires at its due time, but not before `floor`: nothing is buffered before
    the task that it waits for was started. Without `floor` no timer fires.
    """
    items = _taken(step)
    if floor is not None:
        items = _merged(items, timer.due(step, floor))
    items += step.late
    step.late = []
    step.append_facts(items)
    return items


def drop(step: Step) -> None:
    """Take everything out of the inbox of a closed run; operators are told."""
    for item in _taken(step):
        kind = type(item.attributes).__name__
        step.note("late_arrival", f"{kind} came when the run was closed and was dropped")


def overflows(step: Step) -> bool:
    """Whether more waits than the buffer may hold."""
    inbox = step.change.inbox
    if len(inbox) > step.limits.buffered_events:
        return True
    return sum(len(encode(item.attributes)) for item in inbox) > step.limits.buffered_bytes


def wakes(step: Step, item: InboxItem) -> bool:
    """Whether a fact that finds no workflow task outstanding asks for one."""
    match item.attributes:
        case ev.WorkflowExecutionOptionsUpdated() | ev.WorkflowExecutionPaused():
            return False
        case ev.WorkflowExecutionSignaled():
            return not step.in_backoff
    return True


def _taken(step: Step) -> list[InboxItem]:
    """The waiting rows, each once; of several cancel requests, attachments of one start request or
    reports of a child's end the first counts, and a child that has ended was not refused.
    """
    change = step.change
    taken = set(change.inbox_taken)
    cancelled = step.recorded.cancel_requested
    told: set[int] = set()
    attached = set(step.volatile.attached_request_ids)
    items: list[InboxItem] = []
    for item in change.inbox:
        if item.item_id in taken:
            continue
        change.inbox_taken.append(item.item_id)
        if isinstance(item.attributes, ev.WorkflowExecutionCancelRequested):
            if cancelled:
                continue
            cancelled = True
        if child.is_report(item):
            initiated = child.initiated_by(item)
            if initiated in told or initiated not in step.recorded.children:
                continue
            told.add(initiated)
        if isinstance(item.attributes, ev.WorkflowExecutionOptionsUpdated):
            request_id = item.attributes.attached_request_id
            if request_id in attached:
                continue
            attached |= {request_id} - {""}
        items.append(item)
    return [
        item for item in items if not (child.is_refusal(item) and child.initiated_by(item) in told)
    ]


def _merged(arrived: list[InboxItem], fired: list[InboxItem]) -> list[InboxItem]:
    """Both, by time; arrivals keep their order among themselves."""
    if not fired:
        return arrived
    merged: list[InboxItem] = []
    rest = iter(fired)
    next_fired = next(rest, None)
    for item in arrived:
        while next_fired is not None and next_fired.event_time <= item.event_time:
            merged.append(next_fired)
            next_fired = next(rest, None)
        merged.append(item)
    if next_fired is not None:
        merged += [next_fired, *rest]
    return merged
