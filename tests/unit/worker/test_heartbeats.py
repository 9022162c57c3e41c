"""How often heartbeats are sent, and which details."""

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.worker.activity_service import ManualAlarms
from wfcore.activity import ActivityCancellationDetails
from wfcore.converter import DataConverter
from wfcore.exceptions import UnavailableError
from wfcore.protocol.payloads import Payloads
from wfcore.protocol.rpc.activity_tasks import RecordActivityTaskHeartbeatResponse
from wfcore.worker._heartbeats import Heartbeats, throttle_interval

MINUTE = timedelta(seconds=60)
HALF = timedelta(seconds=30)
_converter = DataConverter.default.payload_converter


@pytest.mark.parametrize(
    ("timeout", "interval"),
    [
        (None, 30),
        (timedelta(0), 30),
        (timedelta(seconds=10), 8),
        (timedelta(seconds=75), 60),
        (timedelta(seconds=100), 60),
        (timedelta(milliseconds=500), 0.4),
    ],
)
def test_the_interval_is_a_share_of_the_timeout(timeout: timedelta | None, interval: float) -> None:
    found = throttle_interval(timeout, maximum=MINUTE, default=HALF)
    assert found == timedelta(seconds=interval)


class World:
    """Heartbeats of an attempt with an interval of eight seconds."""

    def __init__(self) -> None:
        self.alarms = ManualAlarms()
        self.sent: list[tuple[float, list[Any]]] = []
        self.cancelled: list[ActivityCancellationDetails] = []
        self.failed: list[Exception] = []
        self.refuse: list[Exception] = []
        self.heartbeats = Heartbeats(
            encode=lambda details: details,
            send=self._send,
            cancel=self.cancelled.append,
            fail=self.failed.append,
            interval=timedelta(seconds=8),
            alarms=self.alarms,
        )
        self._begin = self.alarms.now()

    def _send(self, details: Payloads | None) -> RecordActivityTaskHeartbeatResponse:
        if self.refuse:
            raise self.refuse.pop(0)
        values = _converter.from_payloads_wrapper(details)
        self.sent.append((self.alarms.now() - self._begin, values))
        return RecordActivityTaskHeartbeatResponse()

    def beat(self, value: int) -> None:
        self.heartbeats.record(_converter.to_payloads_wrapper([value]))


@pytest.fixture
def world() -> World:
    return World()


def test_the_first_goes_at_once_and_then_the_newest_of_each_interval(world: World) -> None:
    for second in range(20):
        world.beat(second)
        world.alarms.advance(1)
    assert world.sent == [(0, [0]), (8, [7]), (16, [15])]


def test_after_a_pause_the_next_goes_at_once(world: World) -> None:
    world.beat(1)
    world.alarms.advance(100)
    world.beat(2)
    world.alarms.advance(0)
    assert world.sent == [(0, [1]), (100, [2])]


def test_nothing_is_sent_when_nothing_is_new(world: World) -> None:
    world.beat(1)
    world.alarms.advance(100)
    assert world.sent == [(0, [1])]


def test_what_was_not_taken_is_sent_again_after_the_interval(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.refuse = [UnavailableError("down"), RuntimeError("no connection")]
    world.beat(1)
    world.alarms.advance(16)
    assert world.sent == [(16, [1])]
    assert (world.cancelled, world.failed) == ([], [])
    assert len(caplog.records) == 2


def test_the_end_gives_what_was_not_sent_and_sends_no_more(world: World) -> None:
    world.beat(1)
    world.alarms.advance(0)
    world.beat(2)
    assert _converter.from_payloads_wrapper(world.heartbeats.close()) == [2]
    world.beat(3)
    world.alarms.advance(100)
    assert world.sent == [(0, [1])]


def test_the_end_gives_nothing_when_all_was_sent(world: World) -> None:
    world.beat(1)
    world.alarms.advance(0)
    assert world.heartbeats.close() is None
