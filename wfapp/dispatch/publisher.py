"""Messages to Celery's queues: published once, without waiting long, never an error for callers.

What could not be sent is not lost: it stands in the database with a time by which it is announced
again.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from celery import Celery
from kombu import Producer, Queue

from wfapp.dispatch.broker import BrokerAwayError, BrokerLink
from wfapp.dispatch.messages import Outgoing

logger = logging.getLogger(__name__)


class Publisher:
    """Sends through the project's Celery app, so that its signals and events hold for messages."""

    def __init__(self, app: Celery, link: BrokerLink) -> None:
        self._app = app
        self._link = link

    def publish(self, messages: Sequence[Outgoing]) -> bool:
        """Send; False when the broker is away, or when the app runs its tasks eagerly."""
        if not messages:
            return True
        if self._app.conf.task_always_eager:
            return False
        try:
            with self._link.producer() as producer:
                for message in messages:
                    self._send(producer, message)
        except BrokerAwayError:
            return False
        return True

    def length(self, queue: str) -> int | None:
        """How many messages stand in a queue; None when the broker is away."""
        try:
            with self._link.producer() as producer:
                return self._length(producer, queue)
        except BrokerAwayError:
            return None

    def _send(self, producer: Producer, message: Outgoing) -> None:
        amqp = self._app.amqp
        task_message = amqp.as_task_v2(
            message.task_id,
            message.task,
            args=(),
            kwargs=dict(message.kwargs),
            expires=message.expires,
            time_limit=message.time_limit,
            soft_time_limit=message.time_limit,
            ignore_result=True,
            argsrepr="()",
            kwargsrepr=message.shown,
            create_sent_event=self._app.conf.task_send_sent_event,
        )
        amqp.send_task_message(
            producer,
            message.task,
            task_message,
            queue=self._queue(message.queue),
            headers=dict(message.headers),
            serializer="json",
            retry=False,
        )

    def _queue(self, name: str) -> Queue:
        """As the app declares it; ours exist also where the app makes no missing queues."""
        queues = self._app.amqp.queues
        queue: Queue = queues[name] if name in queues else queues.new_missing(name)
        return queue

    def _length(self, producer: Producer, name: str) -> int:
        channel: Any = producer.channel
        queue: Any = self._queue(name).bind(channel)
        queue.declare()  # asking for one that doesn't exist would end the channel of an AMQP broker
        try:
            return int(queue.queue_declare(passive=True).message_count)
        except channel.connection.client.channel_errors:
            return 0  # Redis has no empty lists


class Backlog:
    """Whether a message that is sent again would only make a long queue longer.

    After an outage of the workers their messages are still there, and to send all of them again
    would fill the broker.
    """

    #: Longer queues are not compared: who drains them comes below this soon enough.
    LONG_QUEUE = 1000
    REMEMBERED_SECONDS = 1.0
    MOST_QUEUES = 1000

    def __init__(self, publisher: Publisher, clock: Callable[[], float] = time.monotonic) -> None:
        self._publisher = publisher
        self._clock = clock
        self._room: dict[str, tuple[float, int]] = {}

    def may_send_again(self, queue: str, unclaimed: Callable[[int], int]) -> bool:
        """Whether fewer messages stand in the queue than work waits; a yes counts as one sent.

        `unclaimed` counts the work of this queue in the database, up to the limit that it is given.
        """
        if len(self._room) > self.MOST_QUEUES:
            self._room.clear()
        looked_at, room = self._room.get(queue, (float("-inf"), 0))
        if self._clock() - looked_at > self.REMEMBERED_SECONDS:
            looked_at, room = self._clock(), self._look(queue, unclaimed)
        self._room[queue] = (looked_at, room - 1)
        return room > 0

    def _look(self, queue: str, unclaimed: Callable[[int], int]) -> int:
        length = self._publisher.length(queue)
        if length is None or length >= self.LONG_QUEUE:
            return 0
        return unclaimed(self.LONG_QUEUE) - length
