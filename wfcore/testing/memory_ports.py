"""The ports in memory: a verified fake, for tests and simulations.

The store behaves as a database at READ COMMITTED does: a transaction's writes are seen by itself
at once and by others after its commit, locks are held to its outermost end, a rollback leaves
nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import islice
from types import TracebackType
from typing import Self

import msgspec

from wfcore.exceptions import StartContendedError
from wfcore.history.change import Change
from wfcore.history.effects import Journal
from wfcore.history.state import InboxItem, MutableState, PendingActivity
from wfcore.history.updates import Update
from wfcore.protocol.enums import WorkflowExecutionStatus
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.payloads import Memo, SearchAttributes
from wfcore.protocol.rpc.info import WorkflowExecutionInfo
from wfcore.service.infos import execution_info
from wfcore.service.ports import (
    CurrentRun,
    CurrentRunChangedError,
    Namespace,
    RunBusyError,
    RunFilter,
    RunHead,
    RunKey,
    SnapshotTooNewError,
    StaleActivityError,
)
from wfcore.testing.clocks import SequentialIds, SimulatedClock
from wfcore.testing.memory_dispatcher import MemoryDispatcher
from wfcore.testing.memory_rows import Arrival, Ordered, Run, Write, apply_change
from wfcore.testing.memory_tables import DEFAULT_WAIT, Tables

__all__ = [
    "MemoryDispatcher",
    "MemoryStore",
    "MemoryTransaction",
    "SequentialIds",
    "SimulatedClock",
]

_encode = msgspec.json.Encoder().encode
_decode_state = msgspec.json.Decoder(MutableState).decode


class MemoryStore:
    """Everything that runs are made of, in one process.

    `namespaces` are there from the start; "default" always is.
    """

    def __init__(
        self,
        clock: SimulatedClock | None = None,
        *,
        namespaces: Sequence[Namespace] = (),
    ) -> None:
        self.clock = clock or SimulatedClock()
        self._tables = Tables()
        self._item_count = 0
        default = Namespace(
            name="default",
            namespace_id="32049b68-7872-4094-8e63-d0dd59896a83",
            retention=timedelta(days=1),
        )
        self._namespaces = {space.name: space for space in (default, *namespaces)}

    # ---- transactions

    def transaction(
        self, namespace: str, workflow_id: str, *, wait: timedelta | None = None
    ) -> "MemoryTransaction":
        return MemoryTransaction(
            self._tables, self.clock, namespace, workflow_id, wait or DEFAULT_WAIT
        )

    def now(self) -> datetime:
        return self.clock.now()

    def inside_callers_transaction(self) -> bool:
        unit = self._tables.open_unit()
        return unit is not None and unit.callers

    def on_commit(self, call: Callable[[], None]) -> None:
        unit = self._tables.open_unit()
        if unit is None:
            call()
        else:
            unit.calls.append(call)

    @contextmanager
    def callers_transaction(self) -> Iterator[None]:
        """A block of the calling code, as Django's ``atomic()``; what is done inside joins it."""
        with self._tables.unit(callers=True):
            yield

    # ---- reading, without locks

    def head(self, namespace: str, workflow_id: str, run_id: str = "") -> RunHead | None:
        with self._tables.mutex:
            run = self._tables.find(namespace, workflow_id, run_id)
            return run.head if run is not None else None

    def read_state(self, namespace: str, workflow_id: str, run_id: str = "") -> MutableState | None:
        with self._tables.mutex:
            run = self._tables.find(namespace, workflow_id, run_id)
        return read_snapshot(run) if run is not None else None

    def read_activities(self, key: RunKey) -> list[PendingActivity]:
        with self._tables.mutex:
            run = self._tables.visible(key)
            return [run.activities[i] for i in sorted(run.activities)] if run is not None else []

    def read_update(self, key: RunKey, update_id: str) -> Update | None:
        with self._tables.mutex:
            run = self._tables.visible(key)
            return run.updates.get(update_id) if run is not None else None

    def read_inbox(self, key: RunKey) -> list[InboxItem]:
        with self._tables.mutex:
            return waiting_items(self._tables.visible(key))

    def read_events(
        self,
        key: RunKey,
        *,
        first: int = 1,
        last: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> list[HistoryEvent]:
        with self._tables.mutex:
            run = self._tables.visible(key)
            if run is None:
                return []
            found = run.events[max(first - 1, 0) : last]
        if reverse:
            found.reverse()
        return found[:limit]

    def read_journal(self, key: RunKey) -> list[Journal]:
        with self._tables.mutex:
            run = self._tables.visible(key)
            return list(run.journal) if run is not None else []

    def write_journal(self, entries: Sequence[Journal]) -> None:
        with self._tables.unit() as unit:
            for entry in entries:
                key = RunKey(
                    namespace=entry.namespace, workflow_id=entry.workflow_id, run_id=entry.run_id
                )
                unit.writes.append((key, _journal_write((entry,))))

    def read_visibility(self, key: RunKey) -> tuple[Memo | None, SearchAttributes | None]:
        with self._tables.mutex:
            run = self._tables.visible(key)
            return (run.memo, run.search_attributes) if run is not None else (None, None)

    def namespace(self, name: str) -> Namespace | None:
        return self._namespaces.get(name)

    def namespaces(self) -> list[Namespace]:
        return [self._namespaces[name] for name in sorted(self._namespaces)]

    def list_runs(
        self, namespace: str, wanted: RunFilter, *, limit: int, after: bytes = b""
    ) -> tuple[list[WorkflowExecutionInfo], bytes]:
        skip_to = ""
        if after:
            skip_to = after.decode("ascii", errors="replace")
            if not any(key.run_id == skip_to for key in self._tables.runs):
                raise ValueError(f"{after!r} is no page token of this store")
        with self._tables.mutex:
            found = []
            for key in self._tables.by_start.get(namespace, Ordered()).newest():
                if skip_to:
                    skip_to = "" if key.run_id == skip_to else skip_to
                elif _matches(self._tables.runs[key], wanted):
                    found.append(self._tables.runs[key])
                    if len(found) == limit:
                        break
        token = found[-1].key.run_id.encode() if len(found) == limit else b""
        return [
            execution_info(_decode_state(run.snapshot), run.memo, run.search_attributes)
            for run in found
        ], token

    def count_runs(
        self, namespace: str, wanted: RunFilter, *, by_status: bool = False
    ) -> dict[WorkflowExecutionStatus | None, int]:
        counts: dict[WorkflowExecutionStatus | None, int] = {} if by_status else {None: 0}
        with self._tables.mutex:
            for key in self._tables.by_start.get(namespace, Ordered()).until():
                run = self._tables.runs[key]
                if _matches(run, wanted):
                    group = run.head.status if by_status else None
                    counts[group] = counts.get(group, 0) + 1
        return counts

    # ---- facts that need no lock on the run

    def put_inbox(
        self,
        key: RunKey,
        item: InboxItem,
        *,
        request_id: str = "",
        replaces: PendingActivity | None = None,
    ) -> int | None:
        with self._tables.unit() as unit:
            if request_id:
                self._tables.hold(unit, ("request", key, request_id))
            if replaces is not None:
                self._tables.hold(unit, ("activity", key, replaces.scheduled_event_id))
            with self._tables.mutex:
                run = self._tables.visible(key)
                if run is None or (request_id and request_id in run.request_ids):
                    return None
                if replaces is not None and not _stands(run, replaces):
                    return None
                self._item_count += 1
                item = msgspec.structs.replace(item, item_id=self._item_count)
            arrival = Arrival(item=item, stored_at=self.now(), size=len(_encode(item.attributes)))
            gone = replaces.scheduled_event_id if replaces is not None else 0

            def write(run: Run) -> None:
                run.inbox[item.item_id] = arrival
                if request_id:
                    run.request_ids.add(request_id)
                if gone:
                    run.activities.pop(gone, None)
                    run.dirty.add(gone)

            unit.writes.append((key, write))
            return item.item_id

    def inbox_size(self, key: RunKey, limit: int) -> tuple[int, int]:
        with self._tables.mutex:
            run = self._tables.visible(key)
            sizes = [row.size for row in islice(run.inbox.values(), limit)] if run else []
        return len(sizes), sum(sizes)

    def requested_runs(self, namespace: str, workflow_id: str, request_id: str) -> list[str]:
        with self._tables.mutex:
            runs = self._tables.runs_of(namespace, workflow_id)
            return [run.key.run_id for run in runs if request_id in run.request_ids]

    def withdraw_inbox(self, key: RunKey, item_id: int, journal: Sequence[Journal] = ()) -> bool:
        with self._tables.unit() as unit:
            self._tables.hold(unit, ("run", key.namespace, key.workflow_id))
            with self._tables.mutex:
                run = self._tables.visible(key)
                if run is None or item_id not in run.inbox:
                    return False

            def write(run: Run) -> None:
                run.inbox.pop(item_id, None)
                run.journal.extend(journal)

            unit.writes.append((key, write))
            return True

    def read_activity(self, key: RunKey, scheduled_event_id: int) -> PendingActivity | None:
        with self._tables.mutex:
            run = self._tables.visible(key)
            if run is None or run.closed:
                return None
            return run.activities.get(scheduled_event_id)

    def replace_activity(
        self, old: PendingActivity, new: PendingActivity, journal: Sequence[Journal] = ()
    ) -> bool:
        key = RunKey(namespace=old.namespace, workflow_id=old.workflow_id, run_id=old.run_id)
        event_id = old.scheduled_event_id
        with self._tables.unit() as unit:
            self._tables.hold(unit, ("activity", key, event_id))
            with self._tables.mutex:
                run = self._tables.visible(key)
                if run is None or not _stands(run, old):
                    return False

            def write(run: Run) -> None:
                run.activities[event_id] = new
                run.dirty.add(event_id)
                run.journal.extend(journal)

            unit.writes.append((key, write))
            return True

    # ---- finding work

    def due_runs(self, now: datetime, limit: int) -> list[RunKey]:
        with self._tables.mutex:
            return list(islice(self._tables.due_runs.until(now), limit))

    def due_activities(self, now: datetime, limit: int) -> list[PendingActivity]:
        with self._tables.mutex:
            found = islice(self._tables.due_activities.until(now), limit)
            return [self._tables.runs[key].activities[event_id] for key, event_id in found]

    def undelivered(self, before: datetime, limit: int) -> list[RunKey]:
        with self._tables.mutex:
            oldest = []
            for key in self._tables.with_inbox:
                run = self._tables.runs[key]
                stored_at = min(row.stored_at for row in run.inbox.values())
                if run.readable and not run.head.task_started and stored_at < before:
                    oldest.append((stored_at, key.run_id, key))
        return [key for _, _, key in sorted(oldest)[:limit]]

    def next_due(self) -> datetime | None:
        with self._tables.mutex:
            times = (self._tables.due_runs.first(), self._tables.due_activities.first())
        return min((at for at in times if at is not None), default=None)

    def postpone_run(self, key: RunKey, until: datetime, journal: Journal) -> None:
        def write(run: Run) -> None:
            run.wakeup_at = until
            run.journal.append(journal)

        with self._tables.unit() as unit:
            self._tables.hold(unit, ("run", key.namespace, key.workflow_id))
            unit.writes.append((key, write))

    def unclaimed_workflow_tasks(self, namespace: str, task_queue: str, limit: int) -> list[RunKey]:
        with self._tables.mutex:
            waiting = self._tables.waiting_tasks.get((namespace, task_queue), Ordered())
            return list(islice(waiting.until(), limit))

    def unclaimed_activities(
        self, namespace: str, task_queue: str, now: datetime, limit: int
    ) -> list[PendingActivity]:
        with self._tables.mutex:
            waiting = self._tables.waiting_activities.get((namespace, task_queue), Ordered())
            found = islice(waiting.until(now), limit)
            return [self._tables.runs[key].activities[event_id] for key, event_id in found]

    def claims_of(self, owner: str, limit: int) -> tuple[list[RunKey], list[PendingActivity]]:
        with self._tables.mutex:
            runs: list[RunKey] = []
            rows: list[PendingActivity] = []
            for name in islice(self._tables.claims.get(owner, {}), limit):
                if isinstance(name, RunKey):
                    runs.append(name)
                else:
                    rows.append(self._tables.runs[name[0]].activities[name[1]])
        return runs, rows


class MemoryTransaction:
    """The `Transaction` port in memory."""

    def __init__(
        self,
        tables: Tables,
        clock: SimulatedClock,
        namespace: str,
        workflow_id: str,
        wait: timedelta,
    ) -> None:
        self._tables = tables
        self._clock = clock
        self._namespace = namespace
        self._workflow_id = workflow_id
        self._wait = wait
        self._now = clock.now()
        self._expected_current = ""
        self._saved: set[str] = set()

    def __enter__(self) -> Self:
        self._context = self._tables.unit()
        self._unit = self._context.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._context.__exit__(kind, error, trace)

    def _key(self, run_id: str) -> RunKey:
        return RunKey(namespace=self._namespace, workflow_id=self._workflow_id, run_id=run_id)

    def _lock(self) -> None:
        name = ("run", self._namespace, self._workflow_id)
        self._tables.hold(self._unit, name, self._wait)
        self._now = max(self._now, self._clock.now())

    @property
    def now(self) -> datetime:
        return self._now

    def current(self, *, lock: bool = False) -> CurrentRun | None:
        if lock:
            self._lock()
        with self._tables.mutex:
            run = self._tables.visible_current(self._namespace, self._workflow_id)
        self._expected_current = run.key.run_id if run is not None else ""
        return run.current if run is not None else None

    def load(self, run_id: str) -> MutableState | None:
        key = self._key(run_id)
        with self._tables.mutex:
            if self._tables.visible(key) is None:
                return None
        self._lock()
        with self._tables.mutex:
            run = self._tables.visible(key)
        return read_snapshot(run) if run is not None else None

    def inbox(self, run_id: str) -> list[InboxItem]:
        with self._tables.mutex:
            run = self._tables.visible(self._key(run_id))
            return waiting_items(run)

    def activities(
        self,
        run_id: str,
        *,
        scheduled_event_ids: Sequence[int] = (),
        activity_ids: Sequence[str] = (),
    ) -> list[PendingActivity]:
        key = self._key(run_id)
        with self._tables.mutex:
            run = self._tables.visible(key)
            rows = [] if run is None or run.closed else list(run.activities.values())
        wanted, names = set(scheduled_event_ids), set(activity_ids)
        named = {
            row.scheduled_event_id
            for row in rows
            if row.scheduled_event_id in wanted or row.activity_id in names
        }
        for event_id in sorted(named):
            self._tables.hold(self._unit, ("activity", key, event_id), self._wait)
        with self._tables.mutex:
            run = self._tables.visible(key)
            stored = run.activities if run is not None else {}
            return [stored[event_id] for event_id in sorted(named) if event_id in stored]

    def updates(self, run_id: str, update_ids: Sequence[str]) -> list[Update]:
        with self._tables.mutex:
            run = self._tables.visible(self._key(run_id))
            known = run.updates if run is not None else {}
            return [known[update_id] for update_id in set(update_ids) if update_id in known]

    def events(self, run_id: str, event_ids: Sequence[int]) -> list[HistoryEvent]:
        with self._tables.mutex:
            run = self._tables.visible(self._key(run_id))
            count = len(run.events) if run is not None else 0
            ids = [event_id for event_id in sorted(event_ids) if 1 <= event_id <= count]
            return [run.events[event_id - 1] for event_id in ids] if run is not None else []

    def memo(self, run_id: str) -> Memo | None:
        with self._tables.mutex:
            run = self._tables.visible(self._key(run_id))
            return run.memo if run is not None else None

    def search_attributes(self, run_id: str) -> SearchAttributes | None:
        with self._tables.mutex:
            run = self._tables.visible(self._key(run_id))
            return run.search_attributes if run is not None else None

    def seen_request(self, run_id: str, request_id: str) -> bool:
        key = self._key(run_id)
        self._tables.hold(self._unit, ("request", key, request_id), self._wait)
        with self._tables.mutex:
            run = self._tables.visible(key)
            if run is not None and request_id in run.request_ids:
                return True
        self._unit.writes.append((key, lambda run: run.request_ids.add(request_id)))
        return False

    def save(self, change: Change) -> None:
        expected = self._expected_current
        each: Change | None = change
        with self._tables.unit():
            while each is not None:
                self._save_one(each, expected)
                expected = each.state.recorded.run_id
                each = each.next_run

    def _save_one(self, change: Change, expected_current: str) -> None:
        run_id = change.state.recorded.run_id
        if run_id in self._saved:
            raise ValueError(f"run {run_id} was saved before in this transaction; save it once")
        self._saved.add(run_id)
        key = self._key(run_id)
        snapshot = _encode(change.state)
        state = _decode_state(snapshot)
        if change.is_new:
            self._make_current(expected_current)
            self._unit.made[key] = (state, snapshot)
        for event_id in change.activity_rows:
            known = change.activities.get(event_id)
            if known is not None:
                self._tables.hold(self._unit, ("activity", key, event_id), self._wait)
                with self._tables.mutex:
                    run = self._tables.visible(key)
                if run is None or not _stands(run, known):
                    raise StaleActivityError(
                        f"activity {event_id} of run {run_id} changed since it was read"
                    )
        self._unit.writes.append((key, lambda run: apply_change(run, change, state, snapshot)))

    def _make_current(self, expected: str) -> None:
        try:
            self._lock()
        except RunBusyError as error:
            raise StartContendedError(self._workflow_id, self._wait) from error
        with self._tables.mutex:
            run = self._tables.visible_current(self._namespace, self._workflow_id)
        seen = run.key.run_id if run is not None else ""
        if seen != expected:
            raise CurrentRunChangedError(
                f"run {seen} of workflow id {self._workflow_id!r} came first; begin anew"
            )

    def on_commit(self, call: Callable[[], None]) -> None:
        self._unit.calls.append(call)


def read_snapshot(run: Run) -> MutableState:
    """The state that a run's snapshot holds.

    Raises:
        SnapshotTooNewError: a newer release wrote it.
    """
    if not run.readable:
        raise SnapshotTooNewError(
            f"run {run.key.run_id} was written in snapshot format {run.format} by a newer release"
        )
    return _decode_state(run.snapshot)


def waiting_items(run: Run | None) -> list[InboxItem]:
    """What waits in a run's inbox, in order."""
    return [run.inbox[item_id].item for item_id in sorted(run.inbox)] if run is not None else []


def _stands(run: Run, row: PendingActivity) -> bool:
    """Whether a pending activity is still as it was read."""
    stored = None if run.closed else run.activities.get(row.scheduled_event_id)
    return stored is not None and stored.stamp == row.stamp


def _journal_write(entries: Sequence[Journal]) -> Write:
    return lambda run: run.journal.extend(entries)


def _matches(run: Run, wanted: RunFilter) -> bool:
    head, start = run.head, run.current.start_time
    return (
        wanted.workflow_id in ("", run.key.workflow_id)
        and wanted.run_id in ("", run.key.run_id)
        and wanted.workflow_type in ("", head.workflow_type)
        and wanted.task_queue in ("", head.task_queue)
        and (not wanted.statuses or head.status in wanted.statuses)
        and (wanted.started_after is None or start > wanted.started_after)
        and (wanted.started_before is None or start < wanted.started_before)
    )
