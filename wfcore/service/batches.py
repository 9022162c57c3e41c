"""Which events one transaction wrote: a page of a history holds whole transactions.

Told from the events alone. All events of a transaction have its time, but for facts, which have
that of their arrival: those that waited for the end of a workflow task stand behind its closing
event, those that woke the run in front of the workflow task that they brought. Where the two can't
be told apart a page is cut elsewhere, which loses nothing.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import zip_longest

from wfcore.protocol import events as ev
from wfcore.protocol.events import HistoryEvent

#: Events of a workflow task, each of which a transaction begins with.
_TASK = (
    ev.WorkflowTaskStarted,
    ev.WorkflowTaskCompleted,
    ev.WorkflowTaskFailed,
    ev.WorkflowTaskTimedOut,
)
#: Events that are never written without the one that follows.
_HALVES = (ev.ActivityTaskStarted,)
_NEVER = datetime.min.replace(tzinfo=UTC)


def split(events: Sequence[HistoryEvent]) -> list[list[HistoryEvent]]:
    """The events, in order and without gaps, by the transactions that wrote them."""
    batches: list[list[HistoryEvent]] = []
    written_at = _NEVER
    for event, following in zip_longest(events, events[1:]):
        half = following is not None and isinstance(event.attributes, _HALVES)
        at = following.event_time if half and following is not None else event.event_time
        if not batches or _begins(event, at, batches[-1], written_at):
            batches.append([event])
            written_at = at
        else:
            batches[-1].append(event)
            written_at = max(written_at, at)
    return batches


def _begins(
    event: HistoryEvent, at: datetime, batch: list[HistoryEvent], written_at: datetime
) -> bool:
    last, attributes = batch[-1].attributes, event.attributes
    if isinstance(last, _HALVES):
        return False
    if isinstance(attributes, _TASK):
        return not _is_late(batch)
    if isinstance(attributes, ev.WorkflowTaskScheduled):
        woken = not isinstance(
            last, (*_TASK, ev.WorkflowTaskScheduled, ev.WorkflowExecutionStarted)
        )
        return not woken and at > written_at
    return at > written_at


def _is_late(batch: list[HistoryEvent]) -> bool:
    """Whether a batch consists of a workflow task so far that is written when it has succeeded."""
    first = batch[0].attributes
    return (
        isinstance(first, ev.WorkflowTaskScheduled)
        and first.attempt > 1
        and not isinstance(batch[-1].attributes, ev.WorkflowTaskCompleted)
    )
