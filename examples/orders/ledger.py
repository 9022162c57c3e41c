"""Which step ran how often: the ledger tells the truth whatever is killed.

The entry is committed before the step's first line and closed after its last, each in a transaction
of its own. An entry without an end is a step whose process died in it. While the database is away
the ledger waits: a step that can't be written down isn't begun.
"""

import functools
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection

from examples.orders.models import LedgerEntry
from wfcore import activity

OUTAGE = timedelta(seconds=60)
PAUSE_SECONDS = 0.25

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Step = Callable[Concatenate[str, _P], _R]


def recorded(step: _Step[_P, _R]) -> _Step[_P, _R]:
    """Write each execution of a step down; its first argument is the order's number."""

    @functools.wraps(step)
    def wrapper(order_number: str, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        entry = _begin(order_number, step.__name__)
        try:
            result = step(order_number, *args, **kwargs)
        except BaseException as error:
            _end(entry, f"{type(error).__name__}: {error}")
            raise
        _end(entry)
        return result

    return wrapper


def _begin(order_number: str, step: str) -> LedgerEntry:
    where: dict[str, Any] = {"workflow_id": "", "run_id": "", "activity_id": "", "attempt": 1}
    if activity.in_activity():
        info = activity.info()
        where = {
            "workflow_id": info.workflow_id,
            "run_id": info.workflow_run_id,
            "activity_id": info.activity_id,
            "attempt": info.attempt,
        }
    entry = LedgerEntry(
        order_number=order_number,
        step=step,
        process=os.getpid(),
        started_at=datetime.now(UTC),
        **where,
    )
    # By its own key: a commit whose answer got lost is not written twice.
    _when_the_database_answers(
        lambda: LedgerEntry.objects.bulk_create([entry], ignore_conflicts=True)
    )
    return entry


def _end(entry: LedgerEntry, failure: str = "") -> None:
    closing = {"ended_at": datetime.now(UTC), "failure": failure[:500]}
    _when_the_database_answers(lambda: LedgerEntry.objects.filter(pk=entry.pk).update(**closing))


def _when_the_database_answers(write: Callable[[], object]) -> None:
    deadline = time.monotonic() + OUTAGE.total_seconds()
    while True:
        try:
            write()
            return
        except (OperationalError, InterfaceError):
            if time.monotonic() > deadline or connection.in_atomic_block:
                raise
            connection.close()
            time.sleep(PAUSE_SECONDS)
