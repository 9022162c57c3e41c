"""celery-beat's scheduler that ticks for workflows too.

``celery -A project beat --scheduler wfapp.beat.scheduler:TickingScheduler``; with
django-celery-beat, derive from `TickingMixin` and its ``DatabaseScheduler``. A tick holds beat no
longer than the budget of a sweep and never raises, so that beat's own entries are sent as before.
"""

import logging
import threading
import time
from datetime import timedelta
from typing import Any

from celery.beat import PersistentScheduler
from django.db import close_old_connections

from wfapp import wiring
from wfapp.beat.worker_ticker import get_sweep

logger = logging.getLogger(__name__)

#: Beat sleeps no longer than this at a stretch, so that it sees a hint.
HINT_POLL = timedelta(milliseconds=200)
RETRY = timedelta(seconds=1)


class TickingMixin:
    """Put before a scheduler class of celery-beat: `tick` also does what has come due."""

    _hints: "HintListener | None" = None
    _next_tick_at = 0.0

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Celery's own tick, then ours; the seconds until either is needed again."""
        wait: float = super().tick(*args, **kwargs)  # type: ignore[misc]  # of the class beside it
        return min(wait, self._tick_workflows())

    def close(self) -> None:
        """Stop listening for hints, then close as the scheduler does."""
        if self._hints is not None:
            self._hints.stop()
        super().close()  # type: ignore[misc]  # of the class beside it

    def _tick_workflows(self) -> float:
        if self._hints is None:
            self._hints = HintListener()
            self._hints.start()
        left = self._next_tick_at - time.monotonic()
        if left <= 0 or self._hints.take():
            left = self._sweep().total_seconds()
            self._next_tick_at = time.monotonic() + left
        return min(left, HINT_POLL.total_seconds())

    def _sweep(self) -> timedelta:
        try:
            close_old_connections()
            return get_sweep().tick()
        except Exception:  # beat's other entries must not wait for our troubles
            logger.exception("tick failed", extra={"action": "tick_failed"})
            return RETRY


class TickingScheduler(TickingMixin, PersistentScheduler):
    """Beat's default scheduler, ticking."""


class HintListener:
    """Waits for hints in a thread, since beat sleeps where nothing can wake it."""

    def __init__(self) -> None:
        self._hinted = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wfapp-hints", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(timeout=5)

    def take(self) -> bool:
        """Whether a hint came since this was asked last."""
        hinted = self._hinted.is_set()
        self._hinted.clear()
        return hinted

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if wiring.get_notices().wait_wake(timedelta(seconds=1)):
                    self._hinted.set()
            except Exception:  # without hints beat ticks by the clock
                logger.exception("hints lost", extra={"action": "hints_failed"})
                self._stopping.wait(RETRY.total_seconds())
