"""One transaction on one workflow id: lock, load, append, save.

What is decided under the run's lock is written with it or not at all. Locks are taken in the order
hot row, current run, rows of inbox and activities. What is read under the lock is read by a
statement of its own, since READ COMMITTED gives each statement its own view: one that waits for the
lock and reads another table sees that table as it was before the wait.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from wfapp import signals
from wfapp.models.columns import shard_of
from wfapp.store import rows
from wfapp.store import statements as sql
from wfapp.store.database import Database
from wfapp.store.writing import Batch, insert_rows, write_activities, write_updates
from wfcore.exceptions import StartContendedError
from wfcore.history.change import Change
from wfcore.history.effects import Journal
from wfcore.history.state import InboxItem, MutableState, PendingActivity
from wfcore.history.updates import Update
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.payloads import Memo, SearchAttributes
from wfcore.service.infos import REPORTED_PROBLEMS, with_reported_problems
from wfcore.service.ports import CurrentRun, CurrentRunChangedError, RunBusyError


@dataclass(frozen=True, kw_only=True, slots=True)
class _Loaded:
    """The hot row as it was read."""

    snapshot: bytes
    status: int
    wakeup_at: int | None
    #: the run has activities that stand
    activities: bool


class DjangoTransaction:
    """The `Transaction` port on Django's connection. `with` opens it; leaving commits."""

    def __init__(
        self, database: Database, namespace: str, workflow_id: str, wait: timedelta | None
    ) -> None:
        self._database = database
        self._dialect = database.dialect
        self._namespace = namespace
        self._workflow_id = workflow_id
        self._shard = shard_of(namespace, workflow_id)
        self._wait = wait
        self._now: datetime | None = None
        self._expected_current = ""
        self._loaded: dict[str, _Loaded] = {}
        self._saved: set[str] = set()
        #: a run and what waited in its inbox when it was loaded
        self._waiting: tuple[str, list[tuple[Any, ...]]] | None = None
        self._bounded = False
        self._failed = False

    # ---- begin and end

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._bound = self._stack.enter_context(self._database.unit(self._wait))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._failed and error is None:
            # A part of the change may have been written: leaving must not commit it.
            error = RuntimeError("a save failed in this transaction; leave it with that error")
            self._stack.__exit__(type(error), error, None)
            raise error
        self._stack.__exit__(kind, error, trace)

    def on_commit(self, call: Callable[[], None]) -> None:
        self._database.on_commit(call)

    # ---- reading

    @property
    def now(self) -> datetime:
        if self._now is None:
            self._now = self._database.now()
        return self._now

    def _tell(self, micros: int | None) -> None:
        """Take over a clock that was read; time doesn't go back within a transaction."""
        read = self._database.time_of(micros)
        self._now = read if self._now is None else max(self._now, read)

    def current(self, *, lock: bool = False) -> CurrentRun | None:
        make = sql.lock_current if lock else sql.read_current
        place = [self._shard, self._namespace, self._workflow_id]
        found = self._database.fetch(
            make(self._dialect, self._database.clock_sql),
            [*place, self._bound] if lock else [self._bound, *place],
        )
        self._bounded = True
        current = None
        if found:
            *columns, micros, _ = found[0]
            self._tell(micros)
            current = rows.read_current(columns) if columns[0] is not None else None
        self._expected_current = current.run_id if current is not None else ""
        return current

    def load(self, run_id: str) -> MutableState | None:
        run = self._run(run_id)
        if run is None:
            return None
        # The inbox along with it: by a statement of its own, which begins when the lock is had.
        found, waiting = self._database.fetch_together(
            [
                (sql.lock_state(self._dialect, self._database.clock_sql), [*run, self._bound]),
                (sql.lock_inbox(self._dialect), run),
            ]
        )
        self._bounded = True
        if not found:
            return None
        self._waiting = (run_id, waiting)
        snapshot, format_number, status, wakeup_at, micros = found[0]
        self._tell(micros)
        snapshot = bytes(snapshot)
        state = rows.read_state(snapshot, format_number, run_id)
        self._loaded[run_id] = _Loaded(
            snapshot=snapshot,
            status=status,
            wakeup_at=wakeup_at,
            activities=bool(state.recorded.open_activities),
        )
        return state

    def inbox(self, run_id: str) -> list[InboxItem]:
        run = self._run(run_id)
        if run is None:
            return []
        if self._waiting is not None and self._waiting[0] == run_id:
            known, self._waiting = self._waiting[1], None
            if not self._database.has_written():
                return [rows.read_inbox_item(row) for row in known]
        self._bound_waits()
        found = self._database.fetch(sql.lock_inbox(self._dialect), run)
        return [rows.read_inbox_item(row) for row in found]

    def activities(
        self,
        run_id: str,
        *,
        scheduled_event_ids: Sequence[int] = (),
        activity_ids: Sequence[str] = (),
    ) -> list[PendingActivity]:
        run = self._run(run_id)
        conditions = [
            f"{column} IN ({sql.marks(len(wanted))})"
            for column, wanted in (
                ("scheduled_event_id", scheduled_event_ids),
                ("activity_id", activity_ids),
            )
            if wanted
        ]
        if run is None or not conditions:
            return []
        self._bound_waits()
        self._waiting = None  # an activity that ends without the run's lock goes from here to there
        # Locked: a heartbeat keeps the stamp, so that a comparison would not notice it.
        found = self._database.fetch(
            f"{sql.READ_ACTIVITIES} AND standing AND ({' OR '.join(conditions)}) "
            f"ORDER BY scheduled_event_id{self._dialect.for_update}",
            [*run, *scheduled_event_ids, *activity_ids],
        )
        return [rows.read_activity(row) for row in found]

    def updates(self, run_id: str, update_ids: Sequence[str]) -> list[Update]:
        run = self._run(run_id)
        if run is None or not update_ids:
            return []
        found = self._database.fetch(
            f"{sql.READ_UPDATES} AND update_id IN ({sql.marks(len(update_ids))})",
            [*run, *update_ids],
        )
        return [rows.read_update(row) for row in found]

    def events(self, run_id: str, event_ids: Sequence[int]) -> list[HistoryEvent]:
        run = self._run(run_id)
        if run is None or not event_ids:
            return []
        found = self._database.fetch(
            f"{sql.READ_EVENTS} AND event_id IN ({sql.marks(len(event_ids))}) ORDER BY event_id",
            [*run, *event_ids],
        )
        return [rows.read_event(row) for row in found]

    def memo(self, run_id: str) -> Memo | None:
        run = self._run(run_id)
        found = self._database.fetch(sql.READ_MEMO, run) if run is not None else []
        return rows.read_memo(found[0][0]) if found else None

    def search_attributes(self, run_id: str) -> SearchAttributes | None:
        run = self._run(run_id)
        found = self._database.fetch(sql.READ_SEARCH_ATTRIBUTES, run) if run is not None else []
        return rows.read_search_attributes(found) if found else None

    def seen_request(self, run_id: str, request_id: str) -> bool:
        run = self._run(run_id)
        if run is None:
            return False
        self._bound_waits()
        return not self._database.write(sql.INSERT_SIGNAL_REQUEST, [*run, request_id])

    def _run(self, run_id: str) -> list[Any] | None:
        """Parameters of `RUN`; None if this is no run id, so that there is no such run."""
        try:
            return [self._shard, self._dialect.uuid(uuid.UUID(run_id))]
        except ValueError:
            return None

    def _bound_waits(self) -> None:
        """Bound the waits of statements that don't do it themselves; once is enough."""
        if not self._bounded:
            if self._dialect.postgres:
                self._database.fetch(f"SELECT {self._dialect.bound}", [self._bound])
            self._bounded = True

    # ---- saving

    def save(self, change: Change) -> None:
        chain = list(_chain(change))
        for each in chain:
            run_id = each.state.recorded.run_id
            if run_id in self._saved:
                raise ValueError(f"run {run_id} was saved before in this transaction; save it once")
            if not each.is_new and run_id not in self._loaded:
                raise ValueError(f"run {run_id} was not loaded in this transaction; load it first")
            self._saved.add(run_id)
        self._bound_waits()
        try:
            batch = Batch(self._database)
            self._save_events(batch, chain)
            for each in chain:
                self._save_run(batch, each)
            batch.flush()
            for each in chain:
                self._announce(each)
        except BaseException:
            self._failed = True
            raise

    def _save_events(self, batch: Batch, chain: list[Change]) -> None:
        appended = [row for each in chain for row in rows.event_rows(each, self._shard)]
        insert_rows(batch, sql.EVENT, rows.EVENT_COLUMNS, appended)

    def _save_run(self, batch: Batch, change: Change) -> None:
        run = self._run(change.state.recorded.run_id)
        if run is None:
            raise ValueError(f"{change.state.recorded.run_id!r} is no UUID, as run ids are")
        if change.is_new:
            self._save_new_state(batch, change, run)
        else:
            self._save_state(batch, change, run)
        loaded = self._loaded.get(change.state.recorded.run_id)
        had_activities = loaded is not None and loaded.activities
        write_activities(batch, change, self._shard, had_activities=had_activities)
        write_updates(batch, change, run)
        self._take_inbox(batch, change, run)
        self._save_visibility(batch, change, run)
        self._save_journal(batch, change.journal)

    def _save_new_state(self, batch: Batch, change: Change, run: list[Any]) -> None:
        state = change.state
        wakeup_at = rows.wakeup(None, change.next_deadline, change.now)
        values = [*rows.state_constants(state), *rows.state_values(state, wakeup_at)]
        self._make_current(state)
        batch.write(sql.INSERT_STATE, [*run, *self._dialect.values(values)])
        batch.write(
            sql.INSERT_EXECUTION, self._dialect.values(rows.execution_values(state, self._shard))
        )

    def _make_current(self, state: MutableState) -> None:
        """Put this run in the place of the one that was current, or of none."""
        values = self._dialect.values(rows.current_values(state))
        workflow_id = [self._shard, self._namespace, self._workflow_id]
        expected = self._expected_current
        try:
            if expected:
                place = [*workflow_id, self._dialect.uuid(uuid.UUID(expected))]
                written = self._database.write(sql.REPLACE_CURRENT, [*values, *place])
            else:
                written = self._database.write(sql.INSERT_CURRENT, [*workflow_id, *values])
        except RunBusyError as error:
            waited = self._wait or self._database.lock_wait
            raise StartContendedError(self._workflow_id, waited) from error
        if not written:
            raise CurrentRunChangedError(
                f"another run of workflow id {self._workflow_id!r} came first; begin anew"
            )
        self._expected_current = state.recorded.run_id

    def _save_state(self, batch: Batch, change: Change, run: list[Any]) -> None:
        state = change.state
        loaded = self._loaded[state.recorded.run_id]
        wakeup_at = rows.wakeup(loaded.wakeup_at, change.next_deadline, change.now)
        values = rows.state_values(state, wakeup_at)
        if values[-1] == loaded.snapshot and wakeup_at == loaded.wakeup_at:
            return  # nothing happened, as when a message comes twice
        batch.write(sql.UPDATE_STATE, [*self._dialect.values(values), *run])
        if state.recorded.status == loaded.status:
            return
        if change.next_run is None:
            workflow_id = [self._shard, self._namespace, self._workflow_id]
            batch.write(
                sql.UPDATE_CURRENT_STATUS, [int(state.recorded.status), *workflow_id, run[1]]
            )
        else:
            # The run that follows takes the place of this one, which the lock keeps current.
            self._expected_current = state.recorded.run_id
        batch.write(sql.UPDATE_EXECUTION, [*rows.execution_progress(state), run[1]])

    def _take_inbox(self, batch: Batch, change: Change, run: list[Any]) -> None:
        """Delete the very rows that became events; what arrived since stays."""
        taken = change.inbox_taken
        for start in range(0, len(taken), sql.MOST_ITEMS):
            ids = taken[start : start + sql.MOST_ITEMS]
            batch.write(
                f"DELETE FROM {sql.INBOX} WHERE {sql.RUN} AND id IN ({sql.marks(len(ids))})",
                [*run, *ids],
            )

    def _save_visibility(self, batch: Batch, change: Change, run: list[Any]) -> None:
        if change.memo is not None and (change.memo.fields or not change.is_new):
            batch.write(sql.UPSERT_MEMO, [*run, rows.encode(change.memo)])
        attributes = change.search_attributes
        if attributes is not None and not change.is_new:
            batch.write(sql.DELETE_SEARCH_ATTRIBUTES, run)
        if change.reported_problems is not None:
            attributes = with_reported_problems(attributes, change.reported_problems)
            if REPORTED_PROBLEMS not in attributes.indexed_fields and not change.is_new:
                batch.write(
                    f"{sql.DELETE_SEARCH_ATTRIBUTES} AND name = %s", [*run, REPORTED_PROBLEMS]
                )
        self._write_search_attributes(batch, attributes, run)

    def _write_search_attributes(
        self, batch: Batch, attributes: SearchAttributes | None, run: list[Any]
    ) -> None:
        fields = attributes.indexed_fields if attributes is not None else {}
        if fields:
            batch.write(
                sql.upsert_search_attributes(len(fields)),
                [
                    value
                    for name, payload in fields.items()
                    for value in (*run, name, rows.encode(payload))
                ],
            )

    def _save_journal(self, batch: Batch, journal: Sequence[Journal]) -> None:
        entries = [rows.journal_values(entry, place) for place, entry in enumerate(journal)]
        insert_rows(batch, sql.JOURNAL, rows.JOURNAL_COLUMNS, entries)

    def _announce(self, change: Change) -> None:
        for call in signals.announcements(change):
            self.on_commit(call)


def _chain(change: Change) -> Iterator[Change]:
    each: Change | None = change
    while each is not None:
        yield each
        each = each.next_run
