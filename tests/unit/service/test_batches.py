"""Pages of histories hold whole transactions, told from the events alone."""

from datetime import UTC, datetime, timedelta

import pytest

from wfcore.protocol import events as ev
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.message import Message
from wfcore.service import batches

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
SCHEDULED = ev.WorkflowTaskScheduled(attempt=1)
STARTED = ev.WorkflowTaskStarted()
COMPLETED = ev.WorkflowTaskCompleted()
AGAIN = ev.WorkflowTaskScheduled(attempt=2)
START = ev.WorkflowExecutionStarted()
SIGNAL = ev.WorkflowExecutionSignaled()
ACTIVITY = ev.ActivityTaskScheduled()
ACTIVITY_STARTED = ev.ActivityTaskStarted()
ACTIVITY_COMPLETED = ev.ActivityTaskCompleted()
TIMER = ev.TimerStarted()
FIRED = ev.TimerFired()
END = ev.WorkflowExecutionCompleted()

# Each row: transactions, each event with the second at which it happened.
HISTORIES: dict[str, list[list[tuple[float, Message]]]] = {
    "an activity": [
        [(0, START), (0, SCHEDULED)],
        [(1, STARTED)],
        [(2, COMPLETED), (2, ACTIVITY)],
        [(3, ACTIVITY_STARTED), (4, ACTIVITY_COMPLETED), (4, SCHEDULED)],
        [(5, STARTED)],
        [(6, COMPLETED), (6, END)],
    ],
    "a signal that waited for the end of the task": [
        [(0, START), (0, SCHEDULED)],
        [(1, STARTED)],
        [(3, COMPLETED), (3, TIMER), (2, SIGNAL), (3, SCHEDULED)],
        [(4, STARTED)],
    ],
    "a signal after the end of the task": [
        [(0, START), (0, SCHEDULED)],
        [(1, STARTED)],
        [(3, COMPLETED), (3, TIMER)],
        [(4, SIGNAL), (4, SCHEDULED)],
        [(5, SIGNAL)],
        [(6, STARTED)],
    ],
    "an activity that ran while the workflow went on": [
        [(0, START), (0, SCHEDULED)],
        [(1, STARTED)],
        [(2, COMPLETED), (2, ACTIVITY)],
        [(4, SIGNAL), (4, SCHEDULED)],
        [(5, STARTED)],
        [(6, COMPLETED)],
        [(3, ACTIVITY_STARTED), (7, ACTIVITY_COMPLETED), (7, SCHEDULED)],
    ],
    "a timer": [
        [(0, START), (0, SCHEDULED)],
        [(1, STARTED)],
        [(2, COMPLETED), (2, TIMER)],
        [(10, FIRED), (11, SCHEDULED)],
        [(12, STARTED)],
    ],
    "a start that waits": [[(0, START)], [(9, SCHEDULED)], [(10, STARTED)]],
    "a task that succeeds at the second attempt": [
        [(0, START), (0, SCHEDULED)],
        [(1, STARTED)],
        [(2, ev.WorkflowTaskFailed())],
        [(3, AGAIN), (4, STARTED), (5, COMPLETED), (5, END)],
    ],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_events_are_split_by_transaction(name: str) -> None:
    rows = HISTORIES[name]
    flat = [item for row in rows for item in row]
    events = [
        HistoryEvent(
            event_id=number, event_time=BEGIN + timedelta(seconds=second), attributes=attributes
        )
        for number, (second, attributes) in enumerate(flat, 1)
    ]
    assert [len(batch) for batch in batches.split(events)] == [len(row) for row in rows]


def test_no_events_are_no_transactions() -> None:
    assert batches.split([]) == []
