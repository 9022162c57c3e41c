"""Rows, locks and transactions of the store in memory.

A thread's outermost transaction is a `Unit`. What it writes is kept apart until it commits, and is
then applied under the mutex; its locks last until its end.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from wfcore.history.state import ActivityState, MutableState
from wfcore.service.ports import RunBusyError, RunKey
from wfcore.testing.memory_rows import Ordered, Run, Write, new_run

#: How long a transaction waits for a lock when its opener doesn't say.
DEFAULT_WAIT = timedelta(seconds=5)


class Unit:
    """A thread's outermost transaction: its locks, what it wrote, what to call after the commit."""

    def __init__(self, *, callers: bool) -> None:
        self.callers = callers
        self.writes: list[tuple[RunKey, Write]] = []
        self.made: dict[RunKey, tuple[MutableState, bytes]] = {}
        self.calls: list[Callable[[], None]] = []
        self.locks: list[tuple[Any, ...]] = []


class Tables:
    """All rows. Public parts are for the ports in memory only; reading them takes `mutex`."""

    def __init__(self) -> None:
        self.mutex = threading.Condition()
        self._thread = threading.local()
        self._locks: dict[tuple[Any, ...], Unit] = {}
        self.runs: dict[RunKey, Run] = {}
        self._current: dict[tuple[str, str], RunKey] = {}

        self.due_runs: Ordered[RunKey] = Ordered()
        self.due_activities: Ordered[tuple[RunKey, int]] = Ordered()
        self.waiting_tasks: dict[tuple[str, str], Ordered[RunKey]] = {}
        self.waiting_activities: dict[tuple[str, str], Ordered[tuple[RunKey, int]]] = {}
        self._task_place: dict[RunKey, tuple[str, str]] = {}
        self._activity_place: dict[tuple[RunKey, int], tuple[str, str]] = {}
        self._task_owner: dict[RunKey, str] = {}
        self._activity_owner: dict[tuple[RunKey, int], str] = {}
        self.claims: dict[str, dict[Any, None]] = {}
        self.with_inbox: dict[RunKey, None] = {}
        self.by_start: dict[str, Ordered[RunKey]] = {}

    # ---- transactions

    def open_unit(self) -> Unit | None:
        unit: Unit | None = getattr(self._thread, "unit", None)
        return unit

    @contextmanager
    def unit(self, *, callers: bool = False) -> Iterator[Unit]:
        """Join the thread's open transaction under a savepoint, or open one and end it."""
        unit = self.open_unit()
        if unit is not None:
            writes, calls, made = len(unit.writes), len(unit.calls), dict(unit.made)
            try:
                yield unit
            except BaseException:
                del unit.writes[writes:], unit.calls[calls:]
                unit.made = made
                raise
            return
        unit = Unit(callers=callers)
        self._thread.unit = unit
        try:
            yield unit
            self._commit(unit)
        finally:
            self._thread.unit = None
            with self.mutex:
                for name in unit.locks:
                    del self._locks[name]
                self.mutex.notify_all()
        for call in unit.calls:
            call()

    def _commit(self, unit: Unit) -> None:
        with self.mutex:
            touched: dict[RunKey, Run] = {}
            for key, write in unit.writes:
                run = self.runs.get(key)
                if run is None:
                    run = self.runs[key] = new_run(key, *unit.made[key])
                    self._current[key.namespace, key.workflow_id] = key
                    starts = self.by_start.setdefault(key.namespace, Ordered())
                    starts.put(key, run.current.start_time)
                write(run)
                touched[key] = run
            for run in touched.values():
                self._index(run)

    def hold(self, unit: Unit, name: tuple[Any, ...], wait: timedelta = DEFAULT_WAIT) -> None:
        """Take a lock until the unit ends.

        Raises:
            RunBusyError: another transaction kept it for longer than `wait`.
        """
        end = time.monotonic() + wait.total_seconds()
        with self.mutex:
            while (holder := self._locks.get(name)) is not unit:
                if holder is None:
                    self._locks[name] = unit
                    unit.locks.append(name)
                elif not self.mutex.wait(max(end - time.monotonic(), 0)):
                    raise RunBusyError(f"{name[1:]} stayed locked for {wait.total_seconds():g} s")

    def visible(self, key: RunKey) -> Run | None:
        """A run as the calling thread sees it: committed, and with what its transaction wrote."""
        unit = self.open_unit()
        run = self.runs.get(key)
        writes = [write for at, write in unit.writes if at == key] if unit is not None else []
        if unit is None or not writes or (run is None and key not in unit.made):
            return run
        run = run.copy() if run is not None else new_run(key, *unit.made[key])
        for write in writes:
            write(run)
        return run

    def runs_of(self, namespace: str, workflow_id: str) -> list[Run]:
        """All runs of a workflow id, as the calling thread sees them."""
        unit = self.open_unit()
        keys = {*self.runs, *(unit.made if unit is not None else ())}
        found = [
            self.visible(key)
            for key in keys
            if (key.namespace, key.workflow_id) == (namespace, workflow_id)
        ]
        return [run for run in found if run is not None]

    def visible_current(self, namespace: str, workflow_id: str) -> Run | None:
        unit = self.open_unit()
        if unit is not None:
            for key in reversed(unit.made):
                if (key.namespace, key.workflow_id) == (namespace, workflow_id):
                    return self.visible(key)
        known = self._current.get((namespace, workflow_id))
        return self.visible(known) if known is not None else None

    def find(self, namespace: str, workflow_id: str, run_id: str) -> Run | None:
        if not run_id:
            return self.visible_current(namespace, workflow_id)
        return self.visible(RunKey(namespace=namespace, workflow_id=workflow_id, run_id=run_id))

    # ---- indexes

    def _index(self, run: Run) -> None:
        key = run.key
        self.due_runs.put(key, run.wakeup_at if run.readable else None)
        place = (key.namespace, run.head.task_queue)
        waits = run.task_waits_since if run.readable else None
        self._place(self.waiting_tasks, self._task_place, key, place, waits)
        self._own(self._task_owner, key, run.task_owner)
        if run.inbox:
            self.with_inbox[key] = None
        else:
            self.with_inbox.pop(key, None)
        for event_id in run.dirty:
            self._index_activity(run, event_id)
        run.dirty.clear()

    def _index_activity(self, run: Run, event_id: int) -> None:
        row = None if run.closed else run.activities.get(event_id)
        name = (run.key, event_id)
        self.due_activities.put(name, row.due_at if row else None)
        waits = row.claimable_at if row else None
        place = (run.key.namespace, row.task_queue) if row else ("", "")
        self._place(self.waiting_activities, self._activity_place, name, place, waits)
        started = row is not None and row.state == ActivityState.STARTED
        self._own(self._activity_owner, name, row.owner if row and started else "")

    @staticmethod
    def _place(
        queues: dict[tuple[str, str], Ordered[Any]],
        places: dict[Any, tuple[str, str]],
        name: Any,
        place: tuple[str, str],
        waits: datetime | None,
    ) -> None:
        old = places.pop(name, None)
        if old is not None and (old != place or waits is None):
            queues[old].put(name, None)
        if waits is not None:
            places[name] = place
            queues.setdefault(place, Ordered()).put(name, waits)

    def _own(self, owners: dict[Any, str], name: Any, owner: str) -> None:
        old = owners.pop(name, "")
        if old and old != owner:
            self.claims[old].pop(name, None)
        if owner:
            owners[name] = owner
            self.claims.setdefault(owner, {})[name] = None
