"""Circuit, health and backlog, by a clock that the test moves."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

import pytest

from wfapp.dispatch.broker import BrokerAwayError, Circuit
from wfapp.dispatch.claims import Health
from wfapp.dispatch.notices import LocalNotices, RedisNotices
from wfapp.dispatch.publisher import Backlog


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_circuit_opens_for_a_while_after_a_failure(clock: Clock) -> None:
    circuit = Circuit(timedelta(seconds=5), clock)
    assert not circuit.is_open
    circuit.failed()
    clock.now += 4.9
    assert circuit.is_open
    clock.now += 0.2
    assert not circuit.is_open
    circuit.failed()
    circuit.worked()
    assert not circuit.is_open


def test_nobody_is_judged_before_a_full_lease_with_the_database(clock: Clock) -> None:
    health = Health(lease=timedelta(seconds=10), clock=clock)
    assert not health.may_judge
    health.reached()
    for _ in range(4):
        clock.now += 2.4
        health.reached()
    assert not health.may_judge
    clock.now += 0.5
    health.reached()
    assert health.may_judge
    health.missed()
    health.reached()
    assert not health.may_judge, "after an outage a full lease passes"


def test_a_process_that_slept_judges_nobody(clock: Clock) -> None:
    health = Health(lease=timedelta(seconds=10), clock=clock)
    health.reached()
    clock.now += 3600
    health.reached()
    assert not health.may_judge


class Queue:
    """Stands for the publisher: it tells the length of a queue, and how often it was asked."""

    def __init__(self, length: int | None) -> None:
        self.stands = length
        self.asked = 0

    def length(self, queue: str) -> int | None:
        self.asked += 1
        return self.stands


def test_messages_that_still_stand_are_not_sent_again(clock: Clock) -> None:
    queue = Queue(5)
    backlog = Backlog(queue, clock)  # type: ignore[arg-type]  # the part of it that is used
    assert not backlog.may_send_again("q", lambda limit: 5)


def test_as_many_are_sent_again_as_are_missing(clock: Clock) -> None:
    queue = Queue(5)
    backlog = Backlog(queue, clock)  # type: ignore[arg-type]  # the part of it that is used
    answers = [backlog.may_send_again("q", lambda limit: min(limit, 8)) for _ in range(5)]
    assert answers == [True, True, True, False, False]
    assert queue.asked == 1, "a batch looks once"
    clock.now += 1.1
    queue.stands = 8
    assert not backlog.may_send_again("q", lambda limit: 8)


@pytest.mark.parametrize("length", [None, 1000, 50_000])
def test_nothing_is_sent_again_into_a_long_queue_or_a_broker_that_is_away(
    length: int | None, clock: Clock
) -> None:
    def unclaimed(limit: int) -> int:
        raise AssertionError("the database need not be asked")

    backlog = Backlog(Queue(length), clock)  # type: ignore[arg-type]  # the part of it that is used
    assert not backlog.may_send_again("q", unclaimed)


class Redis:
    """Stands for a client whose connections break."""

    def __init__(self) -> None:
        self.closed = 0
        self.breaks = False

    def pubsub(self) -> "Redis":
        return self

    def subscribe(self, topic: str) -> None:
        self.topic = topic.encode()

    def unsubscribe(self, topic: str) -> None: ...

    def get_message(self, *, timeout: float) -> dict[str, object]:
        if self.breaks:
            raise OSError("connection reset")
        return {"type": "subscribe", "channel": self.topic}

    def close(self) -> None:
        self.closed += 1


class Link:
    """Stands for the broker's connection."""

    def __init__(self, client: Redis) -> None:
        self.client = client

    @contextmanager
    def redis(self) -> Iterator[Redis]:
        try:
            yield self.client
        except OSError as error:
            raise BrokerAwayError(str(error)) from error


def test_one_broken_connection_ends_all_that_were_kept_beside_it() -> None:
    redis = Redis()
    notices = RedisNotices(Link(redis))  # type: ignore[arg-type]  # the part of it that is used
    with ExitStack() as stack:
        for number in range(3):  # three wait at once
            stack.enter_context(notices._listening(redis, f"topic{number}"))
    assert len(notices._idle) == 3
    redis.breaks = True
    notices.wait("topic", timedelta(milliseconds=1), lambda: False, lambda: None)
    assert (redis.closed, notices._idle) == (3, [])


def test_a_child_leaves_the_connections_of_its_parent_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    redis = Redis()
    notices = RedisNotices(Link(redis))  # type: ignore[arg-type]  # the part of it that is used
    with notices._listening(redis, "topic") as listener:
        pass
    with notices._listening(redis, "topic") as again:
        assert again is listener
    monkeypatch.setattr("wfapp.dispatch.notices.os.getpid", lambda: 1)
    with notices._listening(redis, "topic") as for_child:
        assert for_child is not listener
    assert redis.closed == 0


def test_who_waits_for_long_rests_and_is_woken_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wfapp.dispatch.notices.SHORT_WAIT", timedelta(milliseconds=20))
    notices, resting, woken = LocalNotices(), threading.Event(), threading.Event()

    def wait() -> None:
        notices.wait("topic", timedelta(seconds=30), lambda: False, resting.set)
        woken.set()

    threading.Thread(target=wait, daemon=True).start()
    assert resting.wait(10)
    assert not woken.is_set()
    notices.publish(["topic"])
    assert woken.wait(10)


def test_who_is_woken_soon_does_not_rest() -> None:
    notices, rested = LocalNotices(), list[str]()

    def happened() -> bool:
        notices.publish(["topic"])
        return False

    notices.wait("topic", timedelta(seconds=30), happened, lambda: rested.append("rested"))
    assert not rested
