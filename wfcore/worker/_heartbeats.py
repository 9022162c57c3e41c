"""Heartbeats of one attempt: the first goes at once, then the latest of each interval.

A heartbeat is also how the attempt learns that it was cancelled, paused, reset, or is over.
"""

import logging
import threading
from collections.abc import Callable
from datetime import timedelta

from wfcore.activity import ActivityCancellationDetails
from wfcore.exceptions import NotFoundError
from wfcore.protocol.payloads import Payloads
from wfcore.protocol.rpc.activity_tasks import RecordActivityTaskHeartbeatResponse
from wfcore.worker._alarms import Alarm, Alarms

_log = logging.getLogger(__name__)
_SHARE_OF_TIMEOUT = 0.8


def throttle_interval(
    heartbeat_timeout: timedelta | None, *, maximum: timedelta, default: timedelta
) -> timedelta:
    """How long to wait between two heartbeats that are sent."""
    if not heartbeat_timeout:
        return min(default, maximum)
    return min(heartbeat_timeout * _SHARE_OF_TIMEOUT, maximum)


class Heartbeats:
    """Sends the heartbeats of one attempt.

    Args:
        encode: passes details through the codec.
        send: tells the service.
        cancel: tells the attempt that it should end.
        fail: tells the attempt that its details can't be encoded.
    """

    def __init__(
        self,
        *,
        encode: Callable[[Payloads], Payloads],
        send: Callable[[Payloads | None], RecordActivityTaskHeartbeatResponse],
        cancel: Callable[[ActivityCancellationDetails], None],
        fail: Callable[[Exception], None],
        interval: timedelta,
        alarms: Alarms,
    ) -> None:
        self._encode = encode
        self._send = send
        self._cancel = cancel
        self._fail = fail
        self._interval_seconds = interval.total_seconds()
        self._alarms = alarms
        self._changed = threading.Condition()
        self._details: Payloads | None = None
        self._unsent = False
        self._sending = False
        self._closed = False
        self._alarm: Alarm | None = None
        self._sent_at: float | None = None

    def record(self, details: Payloads | None) -> None:
        """Note the newest details and see to it that they are sent."""
        with self._changed:
            if self._closed:
                return
            self._details = details
            self._unsent = True
            self._schedule()

    def close(self) -> Payloads | None:
        """End, after a sending that is under way; the details that were not sent, if any."""
        with self._changed:
            self._closed = True
            if self._alarm:
                self._alarm.cancel()
            self._changed.wait_for(lambda: not self._sending)
            return self._details if self._unsent else None

    def _schedule(self) -> None:
        if self._alarm is not None or self._sending or self._closed:
            return
        at = self._alarms.now()
        if self._sent_at is not None:
            at = max(at, self._sent_at + self._interval_seconds)
        self._alarm = self._alarms.call_at(at, self._send_newest)

    def _send_newest(self) -> None:
        with self._changed:
            self._alarm = None
            if self._closed:
                return
            details = self._details
            self._unsent = False
            self._sending = True
            self._sent_at = self._alarms.now()
        try:
            self._exchange(details)
        finally:
            with self._changed:
                self._sending = False
                if self._unsent:
                    self._schedule()
                self._changed.notify_all()

    def _exchange(self, details: Payloads | None) -> None:
        try:
            encoded = self._encode(details) if details else None
        except Exception as err:  # noqa: BLE001 - whatever a codec raises, the attempt reports
            self._fail(err)
            return
        try:
            answer = self._send(encoded)
        except NotFoundError:
            self._cancel(ActivityCancellationDetails(not_found=True))
        except Exception:  # noqa: BLE001 - of the service or the way to it: the next heartbeat may succeed
            _log.warning(
                "heartbeat was not taken and will be sent again",
                exc_info=True,
                extra={"action": "heartbeat_failed"},
            )
            with self._changed:
                self._unsent = True
        else:
            if answer.cancel_requested or answer.activity_paused or answer.activity_reset:
                self._cancel(
                    ActivityCancellationDetails(
                        cancel_requested=answer.cancel_requested,
                        paused=answer.activity_paused,
                        reset=answer.activity_reset,
                    )
                )
