"""Time and ids of tests: a clock that moves when it is told to, or as ours; ids that repeat."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

#: Where a manual clock starts; far from any date at which a test may run.
DEFAULT_START = datetime(2030, 1, 1, tzinfo=UTC)


class SimulatedClock:
    """The time of a store in memory.

    A manual clock stands still between calls of `advance`. Who waits on it for something that has
    not happened takes the whole timeout in no time, since with one thread nothing else can move
    the clock; with `skip_waits` off a wait lasts until another thread advances it. A real-time
    clock runs as ours, and `advance` puts it forward.
    """

    def __init__(
        self,
        start: datetime = DEFAULT_START,
        *,
        real_time: bool = False,
        skip_waits: bool = True,
    ) -> None:
        self._now = start
        self._ahead = timedelta()
        self._real_time = real_time
        self._skip_waits = skip_waits
        self._lock = threading.Lock()
        self._waiting: set[threading.Condition] = set()

    def now(self) -> datetime:
        """The time, aware, in UTC."""
        if self._real_time:
            return datetime.now(UTC) + self._ahead
        return self._now

    def advance(self, by: timedelta) -> datetime:
        """Put the clock forward and wake who waits on it; gives the new time.

        Raises:
            ValueError: time doesn't go back.
        """
        if by < timedelta():
            raise ValueError(f"a clock can't be put back by {-by}; advance it by a positive time")
        with self._lock:
            self._now += by
            self._ahead += by
            waiting = list(self._waiting)
        for condition in waiting:
            with condition:
                condition.notify_all()
        return self.now()

    def move_to(self, moment: datetime) -> None:
        """Put a clock forward to a time; one that is past already changes nothing."""
        self.advance(max(moment - self.now(), timedelta()))

    def wait_for(
        self, condition: threading.Condition, ready: Callable[[], bool], timeout: timedelta
    ) -> bool:
        """Wait, holding `condition`, until `ready` or the timeout; gives the last `ready()`."""
        until = self.now() + timeout
        end = time.monotonic() + timeout.total_seconds()
        with self._lock:
            self._waiting.add(condition)
        try:
            while not ready() and self.now() < until:
                if self._real_time:
                    condition.wait(max(end - time.monotonic(), 0))
                elif self._skip_waits:
                    with self._lock:
                        self._now = max(self._now, until)
                else:
                    condition.wait()
        finally:
            with self._lock:
                self._waiting.discard(condition)
        return ready()


class SequentialIds:
    """Ids that count up, so that a test or a simulation gives the same ones each time."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed & 0xFFFF
        self._count = 0
        self._lock = threading.Lock()

    def _next(self) -> int:
        with self._lock:
            self._count += 1
            return self._count

    def run_id(self, now: datetime) -> str:
        """A UUIDv7 of this time with a counter where randomness would be."""
        millis = (now - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
        head = f"{millis:012x}"
        return f"{head[:8]}-{head[8:]}-7{self._seed & 0xFFF:03x}-8000-{self._next():012x}"

    def request_id(self) -> str:
        """A UUIDv4 by its form."""
        return f"00000000-{self._seed:04x}-4000-8000-{self._next():012x}"
