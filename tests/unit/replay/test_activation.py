"""A history becomes workflow tasks: which count, what they were told, what they answered."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from wfcore.exceptions import MalformedHistoryError
from wfcore.protocol import events
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.message import Message
from wfcore.replay.activation import HistoryCursor, Recorded, Turn

STARTED = events.WorkflowExecutionStarted
SCHEDULED = events.WorkflowTaskScheduled
TASK = events.WorkflowTaskStarted
DONE = events.WorkflowTaskCompleted
FAILED = events.WorkflowTaskFailed
TIMED_OUT = events.WorkflowTaskTimedOut
SIGNAL = events.WorkflowExecutionSignaled
TIMER = events.TimerStarted
FIRED = events.TimerFired
END = events.WorkflowExecutionCompleted
TERMINATED = events.WorkflowExecutionTerminated


def history(*kinds: type[Message], first: int = 1) -> list[HistoryEvent]:
    begin = datetime(2026, 3, 1, tzinfo=UTC)
    return [
        HistoryEvent(event_id=number, event_time=begin + timedelta(seconds=number), attributes=k())
        for number, k in enumerate(kinds, start=first)
    ]


def steps(cursor: HistoryCursor, found: Sequence[HistoryEvent], **options: bool) -> list[object]:
    """Each step in short: a turn's task, facts and answer's commands; or an answer's commands."""

    def ids(some: Sequence[HistoryEvent]) -> list[int]:
        return [event.event_id for event in some]

    out: list[object] = []
    for step in cursor.walk(found, **options):
        if isinstance(step, Turn):
            answer = None if step.answer is None else ids(step.answer.commands)
            out.append((step.started.event_id, ids(step.facts), answer))
        else:
            assert isinstance(step, Recorded)
            out.append(ids(step.commands))
    return out


def test_a_task_with_its_answer_comes_before_the_next() -> None:
    found = history(STARTED, SCHEDULED, TASK, DONE, TIMER, FIRED, SCHEDULED, TASK, DONE, END)
    cursor = HistoryCursor()
    assert steps(cursor, found) == [(3, [1, 2], [5]), [5], (8, [6, 7], [10]), [10]]
    assert cursor.last_event_id == 10


def test_a_started_task_without_answer_is_open() -> None:
    cursor = HistoryCursor()
    assert steps(cursor, history(STARTED, SCHEDULED, TASK)) == [(3, [1, 2], None)]
    assert cursor.is_answer_due


def test_a_query_leaves_the_open_task_unread() -> None:
    found = history(STARTED, SCHEDULED, TASK, DONE, SIGNAL, SCHEDULED, TASK)
    cursor = HistoryCursor()
    assert steps(cursor, found, with_open_task=False) == [(3, [1, 2], []), []]
    assert cursor.last_event_id == 4
    assert steps(cursor, found[4:]) == [(7, [5, 6], None)]


@pytest.mark.parametrize("end", [FAILED, TIMED_OUT])
def test_a_task_that_came_to_nothing_is_told_again(end: type[Message]) -> None:
    found = history(STARTED, SCHEDULED, TASK, end, SIGNAL, SCHEDULED, TASK, DONE)
    assert steps(HistoryCursor(), found) == [(7, [1, 2, 3, 4, 5, 6], []), []]


def test_a_run_that_ended_during_a_task_ends_there() -> None:
    found = history(STARTED, SCHEDULED, TASK, TERMINATED)
    assert steps(HistoryCursor(), found) == []


def test_parts_may_overlap() -> None:
    found = history(STARTED, SCHEDULED, TASK, DONE, TIMER, FIRED, SCHEDULED, TASK)
    cursor = HistoryCursor()
    steps(cursor, found[:3])
    assert steps(cursor, found[1:]) == [[5], (8, [6, 7], None)]
    assert steps(cursor, found) == []


def test_a_gap_is_refused() -> None:
    cursor = HistoryCursor()
    steps(cursor, history(STARTED, SCHEDULED, TASK))
    with pytest.raises(MalformedHistoryError, match=r"begins at event 6, but .* from 4 on"):
        steps(cursor, history(SIGNAL, SCHEDULED, TASK, first=6))


def test_a_task_that_was_not_committed_is_noticed() -> None:
    cursor = HistoryCursor()
    steps(cursor, history(STARTED, SCHEDULED, TASK))
    with pytest.raises(MalformedHistoryError, match=r"event 4 \(WORKFLOW_TASK_FAILED\).*evict"):
        steps(cursor, history(FAILED, SCHEDULED, TASK, first=4))


@pytest.mark.parametrize(
    "kinds", [(STARTED, SCHEDULED, TASK, SIGNAL, DONE), (STARTED, SCHEDULED, DONE)]
)
def test_an_impossible_order_is_refused(kinds: tuple[type[Message], ...]) -> None:
    with pytest.raises(MalformedHistoryError, match="can't stand where it does"):
        steps(HistoryCursor(), history(*kinds))


def test_an_answer_that_ends_the_history_may_be_cut() -> None:
    (_, answer) = HistoryCursor().walk(history(STARTED, SCHEDULED, TASK, DONE, TIMER))
    assert isinstance(answer, Recorded)
    assert answer.next_event is None
