"""Short-lived news between processes: a history grew, a question has its answer, a timer is near.

None of it is stored for long and any of it may be lost. Whoever waits is woken by a notice or, at
the latest after `LONGEST_WAIT`, to look for himself.
"""

import contextlib
import os
import secrets
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Protocol

from wfapp.dispatch.broker import BrokerAwayError, BrokerLink

#: Waiting is cut into pieces of this length, since a notice may be lost.
LONGEST_WAIT = timedelta(seconds=5)
#: A wait that has lasted for so long may last longer: see `Notices.wait`.
SHORT_WAIT = timedelta(milliseconds=500)
#: The same while there is nobody who could bring a notice.
WAIT_WITHOUT_NOTICES = timedelta(milliseconds=500)
#: How long an answer is kept for who asked.
REPLY_EXPIRES = timedelta(seconds=60)
#: A blocking read of Redis ends before the socket's own time limit.
_READ_SLICE = 0.5
_REPLIES_KEPT = 1000
#: Connections that are kept for the next who waits.
_IDLE_LISTENERS = 16


def history_topic(run_id: str) -> str:
    """The topic of a run's history."""
    return f"history.{run_id}"


def update_topic(run_id: str) -> str:
    """The topic of a run's updates."""
    return f"update.{run_id}"


def closed_topic(run_id: str) -> str:
    """The topic of a run's end, for those to whom its steps mean nothing."""
    return f"closed.{run_id}"


def tasks_topic(namespace: str, task_queue: str) -> str:
    """The topic of work in a task queue."""
    return f"tasks.{namespace}.{task_queue}"


class Notices(Protocol):
    """How news travels. Nothing here raises because of the broker."""

    def publish(self, topics: Sequence[str]) -> None:
        """Wake those who wait for one of the topics."""

    def wait(
        self,
        topic: str,
        timeout: timedelta,
        happened: Callable[[], bool],
        resting: Callable[[], None],
    ) -> None:
        """Return after a notice, or after `timeout` or a part of it.

        `happened` is asked once nothing can be missed any more; when it says yes, nobody waits.
        `resting` is called when no notice has come for a while: who waits lets go of what others
        could use.
        """

    def wake_ticker(self) -> None:
        """A deadline is near: a ticker should look now."""

    def wait_wake(self, timeout: timedelta) -> bool:
        """Wait until the ticker is needed; False after `timeout` or a part of it."""

    def reply(self, query_id: str, answer: bytes) -> bool:
        """Leave an answer for who asked; False when it is known that nobody takes it."""

    def take_reply(
        self, query_id: str, timeout: timedelta, resting: Callable[[], None]
    ) -> bytes | None:
        """The answer, or None after `timeout`; `resting` as of `wait`."""

    def forget_reply(self, query_id: str) -> None:
        """Nobody waits for this answer any more."""

    def epoch(self) -> str | None:
        """What names the broker's memory: another value than before means that it was emptied.

        None if that is not known now, or if the broker tells nothing of the kind.
        """


class LocalNotices:
    """News within one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, list[threading.Event]] = defaultdict(list)
        self._wake = threading.Event()
        self._replies: OrderedDict[str, bytes] = OrderedDict()

    def publish(self, topics: Sequence[str]) -> None:
        with self._lock:
            for topic in topics:
                for event in self._waiting.get(topic, ()):
                    event.set()

    def wait(
        self,
        topic: str,
        timeout: timedelta,
        happened: Callable[[], bool],
        resting: Callable[[], None],
    ) -> None:
        with self._listening(topic) as event:
            if not happened():
                _rest(event.wait, min(timeout, LONGEST_WAIT), resting)

    def wake_ticker(self) -> None:
        self._wake.set()

    def wait_wake(self, timeout: timedelta) -> bool:
        woken = self._wake.wait(timeout.total_seconds())
        self._wake.clear()
        return woken

    def reply(self, query_id: str, answer: bytes) -> bool:
        with self._lock:
            self._replies[query_id] = answer
            while len(self._replies) > _REPLIES_KEPT:
                self._replies.popitem(last=False)
        self.publish([f"reply.{query_id}"])
        return True

    def take_reply(
        self, query_id: str, timeout: timedelta, resting: Callable[[], None]
    ) -> bytes | None:
        with self._listening(f"reply.{query_id}") as event:
            if query_id not in self._replies:
                _rest(event.wait, timeout, resting)
        return self._replies.pop(query_id, None)

    def forget_reply(self, query_id: str) -> None:
        self._replies.pop(query_id, None)

    def epoch(self) -> str | None:
        return None

    @contextlib.contextmanager
    def _listening(self, topic: str) -> Iterator[threading.Event]:
        event = threading.Event()
        with self._lock:
            self._waiting[topic].append(event)
        try:
            yield event
        finally:
            with self._lock:
                self._waiting[topic].remove(event)
                if not self._waiting[topic]:
                    del self._waiting[topic]


class RedisNotices:
    """News through the Redis that is the broker: channels, and lists and keys that expire."""

    def __init__(self, link: BrokerLink, prefix: str = "wfapp.") -> None:
        self._link = link
        self._prefix = prefix
        self._lock = threading.Lock()
        self._idle: list[_Listener] = []
        self._pid = os.getpid()

    def publish(self, topics: Sequence[str]) -> None:
        with contextlib.suppress(BrokerAwayError), self._link.redis() as client:
            pipeline = client.pipeline(transaction=False)
            for topic in topics:
                pipeline.publish(self._prefix + topic, b"1")
            pipeline.execute()

    def wait(
        self,
        topic: str,
        timeout: timedelta,
        happened: Callable[[], bool],
        resting: Callable[[], None],
    ) -> None:
        try:
            with self._link.redis() as client, self._listening(client, topic) as listener:
                if listener.follow(topic) or not happened():
                    _rest(listener.read, min(timeout, LONGEST_WAIT), resting)
        except BrokerAwayError:
            time.sleep(min(timeout, WAIT_WITHOUT_NOTICES).total_seconds())

    def wake_ticker(self) -> None:
        with contextlib.suppress(BrokerAwayError), self._link.redis() as client:
            key = f"{self._prefix}wake"
            pipeline = client.pipeline(transaction=False)
            pipeline.lpush(key, b"1").ltrim(key, 0, 0).expire(key, REPLY_EXPIRES).execute()

    def wait_wake(self, timeout: timedelta) -> bool:
        seconds = min(timeout.total_seconds(), _READ_SLICE)
        try:
            with self._link.redis() as client:
                # Zero would be for ever.
                return client.blpop([f"{self._prefix}wake"], max(seconds, 0.01)) is not None
        except BrokerAwayError:
            time.sleep(seconds)
            return False

    def reply(self, query_id: str, answer: bytes) -> bool:
        with contextlib.suppress(BrokerAwayError), self._link.redis() as client:
            pipeline = client.pipeline(transaction=False)
            pipeline.rpush(self._reply_key(query_id), answer)
            pipeline.expire(self._reply_key(query_id), REPLY_EXPIRES)
            pipeline.execute()
        return True

    def take_reply(
        self, query_id: str, timeout: timedelta, resting: Callable[[], None]
    ) -> bytes | None:
        end = time.monotonic() + timeout.total_seconds()
        while (left := end - time.monotonic()) > 0:
            try:
                with self._link.redis() as client:
                    found = client.blpop([self._reply_key(query_id)], min(left, _READ_SLICE))
            except BrokerAwayError:
                time.sleep(min(left, WAIT_WITHOUT_NOTICES.total_seconds()))
                continue
            if found:
                answer: bytes = found[1]
                return answer
            resting()
        return None

    def forget_reply(self, query_id: str) -> None:
        with contextlib.suppress(BrokerAwayError), self._link.redis() as client:
            client.delete(self._reply_key(query_id))

    def epoch(self) -> str | None:
        with contextlib.suppress(BrokerAwayError), self._link.redis() as client:
            key = f"{self._prefix}epoch"
            found = client.get(key)
            if found is None:
                client.set(key, secrets.token_hex(16), nx=True)
                found = client.get(key)
            return found.decode() if found else None
        return None

    @contextlib.contextmanager
    def _listening(self, client: Any, topic: str) -> Iterator["_Listener"]:
        """A listener, rather one that has followed this topic since its last use."""
        with self._lock:
            if self._pid != os.getpid():  # after a fork the connections are the parent's
                self._pid, self._idle = os.getpid(), []
            found = next((each for each in self._idle if each.topic == topic), None)
            if found is None and self._idle:
                found = self._idle[0]
            if found is not None:
                self._idle.remove(found)
        listener = found or _Listener(client.pubsub(), self._prefix)
        try:
            yield listener
        except BaseException:
            # What ended this connection has mostly ended the others too.
            with self._lock:
                broken, self._idle = [listener, *self._idle], []
            for each in broken:
                each.close()
            raise
        with self._lock:
            self._idle.append(listener)
            surplus = self._idle.pop(0) if len(self._idle) > _IDLE_LISTENERS else None
        if surplus is not None:
            surplus.close()

    def _reply_key(self, query_id: str) -> str:
        return f"{self._prefix}reply.{query_id}"


class _Listener:
    """A connection that follows one topic, and goes on following it between two waits.

    Who waits for a run's end is woken by each of its steps; a connection for each wait would cost
    more than the steps.
    """

    def __init__(self, channel: Any, prefix: str) -> None:
        self._channel = channel
        self._prefix = prefix
        self.topic = ""

    def follow(self, topic: str) -> bool:
        """Hear of this topic from now on; whether it was followed before, so that nothing that
        came since then was missed.
        """
        if topic == self.topic:
            return True
        if self.topic:
            self._channel.unsubscribe(self._prefix + self.topic)
        self.topic = topic
        self._channel.subscribe(self._prefix + topic)
        self._until("subscribe", 1.0)
        return False

    def read(self, seconds: float) -> bool:
        """Return after a notice, or False after that time."""
        return self._until("message", seconds)

    def close(self) -> None:
        """End the connection."""
        with contextlib.suppress(Exception):  # it may be the one that just broke
            self._channel.close()

    def _until(self, kind: str, seconds: float) -> bool:
        """Read until a message of this kind; those of an earlier topic are skipped."""
        end = time.monotonic() + seconds
        name = (self._prefix + self.topic).encode()
        while (left := end - time.monotonic()) > 0:
            message = self._channel.get_message(timeout=left)
            if message and message["type"] == kind and message["channel"] == name:
                return True
        return False


def _rest(wait: Callable[[float], bool], timeout: timedelta, resting: Callable[[], None]) -> None:
    """Wait; when that takes a while, rest."""
    short = min(timeout, SHORT_WAIT)
    if not wait(short.total_seconds()) and timeout > short:
        resting()
        wait((timeout - short).total_seconds())
