"""How long a tick lets the ticker sleep: never past a deadline that it knows of."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from wfapp.beat.sweep import AFTER_FAILURES, Sweep
from wfcore.service.sweeping import SweepReport

LOOKED = datetime(2026, 1, 1, tzinfo=UTC)
INTERVAL = timedelta(seconds=1)
#: How long the tick itself takes.
TOOK = timedelta(milliseconds=20)


def wait_after(next_due: timedelta | None, **found: Any) -> timedelta:
    """The sleep after a tick that found this, with the next deadline so long after its look."""
    nothing = {"runs": 0, "activities": 0, "inboxes": 0, "failed": 0, "more": False}
    report = SweepReport(
        at=LOOKED, next_due=None if next_due is None else LOOKED + next_due, **{**nothing, **found}
    )
    idle: Any = SimpleNamespace(
        sweep=lambda limit: report,
        now=lambda: LOOKED + TOOK,
        reached=lambda: None,
        judge=lambda: None,
        look=lambda: None,
        is_busy=False,
    )
    sweep = Sweep(
        service=idle,
        store=idle,
        judge=idle,
        health=idle,
        epochs=idle,
        lost=idle,
        budget=timedelta(milliseconds=200),
        interval=INTERVAL,
        batch=100,
    )
    return sweep.tick()


def test_it_lasts_until_the_next_deadline_or_for_an_interval() -> None:
    assert wait_after(None) == INTERVAL
    assert wait_after(timedelta(seconds=60)) == INTERVAL
    assert wait_after(timedelta(milliseconds=300)) == timedelta(milliseconds=300) - TOOK


@pytest.mark.parametrize("after", [timedelta(microseconds=1), timedelta(milliseconds=5), TOOK])
@pytest.mark.parametrize("found", [{}, {"runs": 1}, {"activities": 1}, {"failed": 1, "runs": 3}])
def test_what_came_due_during_a_tick_is_done_at_once(
    after: timedelta, found: dict[str, int]
) -> None:
    assert wait_after(after, **found) == timedelta()


def test_what_was_due_and_could_not_be_done_does_not_keep_the_ticker_running() -> None:
    assert wait_after(-TOOK) == INTERVAL  # another release's
    assert wait_after(timedelta(), failed=1) == AFTER_FAILURES
    assert wait_after(-TOOK, runs=1) == timedelta()
