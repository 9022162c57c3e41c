"""Clocks that are told to move, and ids that repeat."""

import threading
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from wfcore.service.ids import RandomIds
from wfcore.testing.clocks import SequentialIds, SimulatedClock

SECOND = timedelta(seconds=1)
NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def test_a_manual_clock_stands_until_it_is_advanced() -> None:
    clock = SimulatedClock(NOW)
    assert clock.now() == clock.now() == NOW
    assert clock.advance(SECOND) == NOW + SECOND
    clock.move_to(NOW + 5 * SECOND)
    clock.move_to(NOW)
    assert clock.now() == NOW + 5 * SECOND
    with pytest.raises(ValueError, match="can't be put back"):
        clock.advance(-SECOND)


def test_a_wait_on_a_manual_clock_takes_its_time_at_once() -> None:
    clock, condition = SimulatedClock(NOW), threading.Condition()
    with condition:
        assert not clock.wait_for(condition, lambda: False, 20 * SECOND)
        assert clock.now() == NOW + 20 * SECOND
        assert clock.wait_for(condition, lambda: True, 20 * SECOND)
    assert clock.now() == NOW + 20 * SECOND


def test_a_wait_may_need_another_thread_to_move_the_clock() -> None:
    clock, condition = SimulatedClock(NOW, skip_waits=False), threading.Condition()
    waiting, done = threading.Event(), threading.Event()

    def wait() -> None:
        with condition:
            waiting.set()
            clock.wait_for(condition, lambda: False, 10 * SECOND)
        done.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert waiting.wait(10)
    clock.advance(9 * SECOND)
    assert not done.is_set()
    clock.advance(SECOND)
    thread.join(10)
    assert done.is_set()


def test_a_real_clock_runs_and_can_be_put_forward() -> None:
    clock = SimulatedClock(real_time=True)
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=1)
    clock.advance(timedelta(hours=1))
    assert clock.now() - datetime.now(UTC) > timedelta(minutes=59)
    condition = threading.Condition()
    with condition:
        assert not clock.wait_for(condition, lambda: False, timedelta(milliseconds=5))


def test_sequential_ids_repeat_themselves() -> None:
    first, second = SequentialIds(7), SequentialIds(7)
    for _ in range(3):
        assert first.run_id(NOW) == second.run_id(NOW)
        assert first.request_id() == second.request_id()
    assert first.run_id(NOW) != first.run_id(NOW)
    assert SequentialIds(7).request_id() != SequentialIds(8).request_id()
    assert uuid.UUID(first.run_id(NOW)).version == 7
    assert uuid.UUID(first.request_id()).version == 4


def test_random_run_ids_follow_time() -> None:
    ids = RandomIds()
    made = [ids.run_id(NOW + number * SECOND) for number in range(50)]
    assert made == sorted(made)
    assert len({ids.run_id(NOW) for _ in range(100)}) == 100
    assert {uuid.UUID(run_id).version for run_id in made} == {7}
    assert uuid.UUID(ids.request_id()).version == 4
