"""Every form of the ticker fires timers, and any number of them at once does no harm."""

import signal
import time
from datetime import timedelta

import pytest

from tests.integration.celery.conftest import Workers, World
from tests.integration.celery.shop import workflows
from wfapp.client import get_client

LIMIT = timedelta(seconds=30)
NO_TICKER = {"TEST_TICKER": "no"}
TICKING = ["--scheduler=wfapp.beat.scheduler:TickingScheduler"]


@pytest.fixture
def quiet_worker(workers: Workers) -> Workers:
    """A worker without a ticker of its own."""
    workers.start(env=NO_TICKER)
    return workers


def fires_in_time(name: str, seconds: float = 1.2) -> None:
    begun = time.monotonic()
    get_client().execute_workflow(workflows.Sleeper.run, seconds, id=name, timeout=LIMIT)
    assert seconds <= time.monotonic() - begun < seconds + 3


def test_beats_scheduler_ticks(quiet_worker: Workers, name: str) -> None:
    beat = quiet_worker.beat(extra=TICKING)
    beat.wait_for("beat: Starting")
    fires_in_time(name)
    fires_in_time(f"{name}-short", 0.3)


def test_a_plain_beat_entry_ticks(quiet_worker: Workers, name: str) -> None:
    beat = quiet_worker.beat(env={"TEST_BEAT_ENTRY": "yes"})
    beat.wait_for("Sending due task")
    fires_in_time(name)


def test_three_tickers_fire_each_timer_once(workers: Workers, world: World, name: str) -> None:
    workers.start(env={"TMPDIR": str(world.stack.directory)})
    workers.start()
    workers.beat(extra=TICKING).wait_for("beat: Starting")
    client = get_client()
    handles = [
        client.start_workflow(workflows.Sleeper.run, 1.0, id=f"{name}-{number}")
        for number in range(30)
    ]
    for handle in handles:
        handle.result(timeout=LIMIT)
    for handle in handles:
        kinds = [event.event_type.name for event in handle.fetch_history().events]
        assert kinds.count("TIMER_FIRED") == 1


def test_a_ticker_that_is_killed_is_replaced(workers: Workers, world: World, name: str) -> None:
    first = workers.start()
    workers.start()
    handle = get_client().start_workflow(workflows.Sleeper.run, 2.0, id=name)
    first._signal_group(signal.SIGKILL)
    assert handle.result(timeout=LIMIT) < 6
