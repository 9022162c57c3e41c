"""One ticker ticks on a host, and no trouble with files or hints stops the last one."""

import logging
import os
import threading
import warnings
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.waiting import wait_until
from wfapp.beat.ticker import HostLock, Ticker


class Ticks:
    """Counts ticks; nothing is ever due."""

    def __init__(self) -> None:
        self.count = 0

    def tick(self) -> timedelta:
        self.count += 1
        return timedelta(milliseconds=20)


@pytest.fixture
def stopping() -> Iterator[list[Ticker]]:
    started: list[Ticker] = []
    yield started
    for ticker in started:
        ticker.stop()


def test_one_process_holds_the_lock_until_it_lets_go(tmp_path: Path) -> None:
    one, other = HostLock("db", tmp_path), HostLock("db", tmp_path)
    assert one.acquire()
    assert not other.acquire()
    one.release()
    assert other.acquire()
    other.release()


def test_a_child_made_later_does_not_keep_the_lock_for_its_parent(tmp_path: Path) -> None:
    # A prefork child that outlives its killed parent by an hour must not stop all timers for it.
    lock, other = HostLock("db", tmp_path), HostLock("db", tmp_path)
    assert lock.acquire()
    (its_reading, writing), (reading, its_writing) = os.pipe(), os.pipe()
    with warnings.catch_warnings():  # of Python 3.12 and newer, where threads of other tests live
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os.write(its_writing, b"1")
        os.close(writing)
        os.read(its_reading, 1)  # lives until the test is over
        os._exit(0)
    try:
        os.read(reading, 1)
        assert not other.acquire()
        lock.release()
        assert other.acquire()
        other.release()
    finally:
        for end in (its_reading, writing, reading, its_writing):
            os.close(end)
        os.waitpid(child, 0)


def test_without_a_place_for_the_lock_a_ticker_ticks_all_the_same(
    tmp_path: Path, stopping: list[Ticker], caplog: pytest.LogCaptureFixture
) -> None:
    ticks = Ticks()
    nowhere = HostLock("db", tmp_path / "missing")
    ticker = Ticker(lambda: ticks, lambda _: False, nowhere)
    stopping.append(ticker)
    with caplog.at_level(logging.WARNING):
        ticker.start()
        wait_until(lambda: ticks.count >= 2, what="two ticks")
    assert [record.__dict__["action"] for record in caplog.records] == ["ticker_unlocked"]


def test_hints_that_fail_are_a_wait_like_any_other(
    stopping: list[Ticker], caplog: pytest.LogCaptureFixture
) -> None:
    ticks, asked = Ticks(), threading.Event()

    def hint(_: timedelta) -> bool:
        asked.set()
        raise RuntimeError("of the broker's client")

    ticker = Ticker(lambda: ticks, hint)
    stopping.append(ticker)
    with caplog.at_level(logging.ERROR):
        ticker.start()
        assert asked.wait(10)
        wait_until(lambda: ticks.count >= 2, what="another tick")
    assert caplog.records[0].__dict__["action"] == "hints_failed"
