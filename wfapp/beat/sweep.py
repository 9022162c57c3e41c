"""One tick: due work in bounded batches, dead workers, lost messages; then how long to wait."""

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from django.db import DatabaseError, InterfaceError

from wfapp.dispatch.claims import Health, Judge
from wfapp.dispatch.resending import EpochWatch, LostMessages
from wfcore.exceptions import UnavailableError
from wfcore.service.ports import Store
from wfcore.service.sweeping import SweepReport

logger = logging.getLogger(__name__)

#: A tick that found work it could not do comes again no sooner.
AFTER_FAILURES = timedelta(milliseconds=200)
#: Part of a batch that fits into a budget.
STEP = 20


class Sweeping(Protocol):
    """The part of the service that a tick needs."""

    def sweep(self, limit: int = ...) -> SweepReport: ...


class Sweep:
    """What every form of the ticker calls.

    Args:
        budget: a tick begins no further batch after this time.
        interval: the longest sleep.
        batch: rows taken on at once.
    """

    def __init__(
        self,
        *,
        service: Sweeping,
        store: Store,
        judge: Judge,
        health: Health,
        epochs: EpochWatch,
        lost: LostMessages,
        budget: timedelta,
        interval: timedelta,
        batch: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._service = service
        self._store = store
        self._judge = judge
        self._health = health
        self._epochs = epochs
        self._lost = lost
        self._budget = budget
        self._interval = interval
        self._batch = batch
        self._clock = clock
        self._away = False

    def tick(self) -> timedelta:
        """Do what is due, within the budget; how long nothing more will be. Never raises."""
        try:
            return self._tick()
        except (DatabaseError, InterfaceError, UnavailableError) as error:
            self._health.missed()
            if not self._away:  # once for each outage
                logger.warning(
                    "nothing can come due while the database is away; it is tried again: %s",
                    error,
                    extra={"action": "tick_missed"},
                )
            self._away = True
        except Exception:  # a ticker that ended here would stop all timers
            logger.exception("tick failed", extra={"action": "tick_failed"})
        return self._interval

    def _tick(self) -> timedelta:
        end = self._clock() + self._budget.total_seconds()
        report = self._service.sweep(min(STEP, self._batch))
        while report.more and self._clock() < end:
            report = self._service.sweep(min(STEP, self._batch))
        self._health.reached()
        if self._away:
            logger.info("the database is back", extra={"action": "tick_resumed"})
        self._away = False
        self._judge.judge()
        self._epochs.look()
        self._lost.look()
        if report.more or self._epochs.is_busy:
            return timedelta()
        return self._wait(report)

    def _wait(self, report: SweepReport) -> timedelta:
        if report.next_due is None:
            return self._interval
        wait = report.next_due - self._store.now()
        if wait > timedelta():
            return min(wait, self._interval)
        if report.next_due > report.at:
            return timedelta()  # it came due during this tick
        if report.failed:
            return AFTER_FAILURES
        # Due, and yet nothing was found to do: another release's, or somebody was faster.
        done = report.runs + report.activities + report.inboxes
        return timedelta() if done else self._interval
