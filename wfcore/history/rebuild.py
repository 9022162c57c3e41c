"""The recorded state from the events alone: the same function applies an event live and here."""

from collections.abc import Iterable

from wfcore.history import recording
from wfcore.history.machines import workflow_task
from wfcore.history.state import MutableState, Recorded
from wfcore.protocol.events import HistoryEvent


def rebuild(
    events: Iterable[HistoryEvent], *, namespace: str, workflow_id: str, run_id: str
) -> Recorded:
    """What follows from a history.

    Raises:
        ValueError: the history doesn't begin with WORKFLOW_EXECUTION_STARTED, or ids have gaps.
    """
    rest = iter(events)
    first = next(rest, None)
    if first is None or first.event_id != 1:
        raise ValueError("a history begins with event 1")
    recorded = recording.begin(first, namespace=namespace, workflow_id=workflow_id, run_id=run_id)
    recorded.history_bytes = _size(first)
    for event in rest:
        recording.record(recorded, event, _size(event))
    return recorded


def visible_tail(state: MutableState) -> list[HistoryEvent]:
    """What readers of an open run see behind the stored events: SCHEDULED and STARTED of a
    transient workflow task, which are written on success only.
    """
    recorded = state.recorded
    task = state.volatile.task
    if task is None or not state.is_open:
        return []
    times = (task.scheduled_at, task.started_at or task.scheduled_at)
    return [
        HistoryEvent(event_id=event_id, event_time=at, attributes=attributes)
        for event_id, at, attributes in zip(
            (task.scheduled_event_id, task.scheduled_event_id + 1),
            times,
            workflow_task.transient_events(recorded, task),
            strict=False,
        )
    ]


def _size(event: HistoryEvent) -> int:
    return recording.event_bytes(recording.encode(event.attributes), event.user_metadata)
