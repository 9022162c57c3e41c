"""What a process has just committed is handed on only when it is complete and small."""

from datetime import UTC, datetime

import pytest

from tests.support.probing import Probe
from wfcore.protocol.events import HistoryEvent, WorkflowExecutionCancelRequested
from wfcore.service import recent
from wfcore.service.recent import Recent

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def events(first: int, last: int) -> list[HistoryEvent]:
    return [
        HistoryEvent(event_id=number, event_time=NOW, attributes=WorkflowExecutionCancelRequested())
        for number in range(first, last + 1)
    ]


def ids(found: list[HistoryEvent] | None) -> list[int] | None:
    return None if found is None else [event.event_id for event in found]


def test_a_tail_without_a_gap_is_known() -> None:
    known = Recent()
    known.wrote("r", events(1, 3), 300)
    known.wrote("r", events(4, 6), 600)
    assert ids(known.events("r", 2, 5)) == [2, 3, 4, 5]
    assert ids(known.events("r", 6, 6)) == [6]
    assert known.events("r", 2, 7) is None
    assert known.events("other", 1, 1) is None


def test_what_another_process_wrote_in_between_is_not_made_up() -> None:
    known = Recent()
    known.wrote("r", events(1, 3), 300)
    known.wrote("r", events(7, 8), 900)
    assert known.events("r", 3, 8) is None
    assert ids(known.events("r", 7, 8)) == [7, 8]


@pytest.mark.parametrize("size", [recent.BYTES + 1, 10 * recent.BYTES])
def test_large_events_are_not_kept(size: int) -> None:
    known = Recent()
    known.wrote("r", events(1, 1), size)
    assert known.events("r", 1, 1) is None
    known.wrote("r", events(2, 2), size + 100)
    assert ids(known.events("r", 2, 2)) == [2]
    known.wrote("r", events(3, 3), 2 * size + 200)
    assert known.events("r", 3, 3) is None


def test_a_long_tail_and_many_runs_are_let_go() -> None:
    known = Recent()
    known.wrote("r", events(1, recent.EVENTS + 1), 100)
    assert known.events("r", 1, 1) is None
    for number in range(recent.RUNS):
        known.wrote(str(number), events(1, 1), 10)
    known.wrote("last", events(1, 1), 10)
    assert known.events("0", 1, 1) is None
    assert known.events("last", 1, 1) is not None


def test_a_claimed_row_is_given_once_and_for_its_attempt() -> None:
    probe = Probe()
    probe.with_activity()
    task = probe.poll_activity()
    known = probe.service.host.recent
    run_id = task.workflow_execution.run_id
    assert known.take_claimed(run_id, 5, 2) is None
    probe.with_activity()
    task = probe.poll_activity()
    run_id = task.workflow_execution.run_id
    row = known.take_claimed(run_id, 5, 1)
    assert row is not None
    assert row.attempt == 1
    assert known.take_claimed(run_id, 5, 1) is None
