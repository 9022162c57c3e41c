"""Facts that need no lock on the run: arrivals, claims and heartbeats of activities, the journal.

Each is one conditional statement, or a few in one transaction, so that of two that meet one loses.
A refusal leaves nothing behind.
"""

import uuid
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from wfapp.models.columns import to_micros
from wfapp.store import rows
from wfapp.store import statements as sql
from wfapp.store.database import StorePart
from wfapp.store.dialect import Dialect, milliseconds
from wfapp.store.writing import Batch, insert_rows
from wfcore.history.effects import Journal
from wfcore.history.state import SNAPSHOT_FORMAT, InboxItem, PendingActivity
from wfcore.service.ports import RunKey

_INBOX_COLUMNS = ("shard", "run_id", "arrived_at", *rows.INBOX_COLUMNS)


class _RefusedError(Exception):
    """Another one came first: undo what was written so far."""


class Facts(StorePart):
    """Writing without the run's lock."""

    # ---- arrivals

    def put_inbox(
        self,
        key: RunKey,
        item: InboxItem,
        *,
        request_id: str = "",
        replaces: PendingActivity | None = None,
    ) -> int | None:
        """As `Store.put_inbox`; on PostgreSQL a sender waits for one round trip."""
        database = self._database
        run = database.run(key)
        if run is None:
            return None
        arrived = to_micros(database.time_of(None))
        put = [*run, arrived, *rows.inbox_values(item), *run]
        guards: list[tuple[str, list[Any]]] = []
        if request_id:
            guards.append((_note_request(database.dialect), [request_id, *run]))
        if replaces is not None:
            as_read = [*run, replaces.scheduled_event_id, replaces.stamp]
            guards.append((_end_activity(database.dialect), as_read))
        if database.dialect.postgres and len(guards) < 2 and not database.joined:
            bound = milliseconds(database.lock_wait)
            texts = tuple(text for text, _ in guards)
            params = [param for _, given in guards for param in (*given, bound)]
            found = database.fetch(_put(database.clock_sql, texts), [*params, *put])
            return _id(found)
        try:
            with database.unit() as bound:
                for text, params in guards:
                    if not database.write(text, [*params, bound]):
                        raise _RefusedError
                found = database.fetch(_put(database.clock_sql, ()), put)
                if not found:
                    raise _RefusedError
        except _RefusedError:
            return None
        return _id(found)

    def inbox_size(self, key: RunKey, limit: int) -> tuple[int, int]:
        """As `Store.inbox_size`."""
        run = self._database.run(key)
        if run is None:
            return 0, 0
        count, size = self._database.read(sql.INBOX_SIZE, [*run, limit])[0]
        return count, int(size)

    def requested_runs(self, namespace: str, workflow_id: str, request_id: str) -> list[str]:
        """As `Store.requested_runs`."""
        key = RunKey(namespace=namespace, workflow_id=workflow_id, run_id="")
        place = self._database.workflow_id(key)
        found = self._database.read(sql.REQUESTED_RUNS, [*place, request_id])
        return [str(uuid.UUID(str(run_id))) for (run_id,) in found]

    def withdraw_inbox(self, key: RunKey, item_id: int, journal: Sequence[Journal] = ()) -> bool:
        """As `Store.withdraw_inbox`: waits for a transaction that is taking the row in."""
        run = self._database.run(key)
        if run is None:
            return False
        with self._database.unit() as bound:
            text = f"{sql.WITHDRAW_INBOX}{self._database.dialect.bounded}"
            if not self._database.write(text, [*run, item_id, bound]):
                return False
            self.write_journal(journal)
        return True

    # ---- activities

    def replace_activity(
        self, old: PendingActivity, new: PendingActivity, journal: Sequence[Journal] = ()
    ) -> bool:
        """As `Store.replace_activity`."""
        database = self._database
        key = RunKey(namespace=old.namespace, workflow_id=old.workflow_id, run_id=old.run_id)
        run = database.run(key)
        if run is None:
            return False
        values = rows.activity_values(new, standing=True, format_number=SNAPSHOT_FORMAT)
        text = _replace_activity(database.dialect)
        params = [*values, *run, old.scheduled_event_id, old.stamp]
        if not journal and not database.joined:
            return bool(database.write(text, [*params, milliseconds(database.lock_wait)]))
        with database.unit() as bound:
            if not database.write(text, [*params, bound]):
                return False
            self.write_journal(journal)
        return True

    # ---- the run

    def write_journal(self, entries: Sequence[Journal]) -> None:
        """As `Store.write_journal`."""
        values = [rows.journal_values(entry, place) for place, entry in enumerate(entries)]
        batch = Batch(self._database)
        insert_rows(batch, sql.JOURNAL, rows.JOURNAL_COLUMNS, values)
        batch.flush()

    def postpone_run(self, key: RunKey, until: datetime, journal: Journal) -> None:
        """As `Store.postpone_run`."""
        run = self._database.run(key)
        if run is None:
            return
        with self._database.unit() as bound:
            text = f"UPDATE {sql.STATE} SET wakeup_at = %s WHERE {sql.RUN}"
            bounded = self._database.dialect.bounded
            if self._database.write(f"{text}{bounded}", [to_micros(until), *run, bound]):
                self.write_journal([journal])


def _id(found: list[tuple[Any, ...]]) -> int | None:
    item_id: int | None = found[0][0] if found else None
    return item_id


@cache
def _note_request(dialect: Dialect) -> str:
    """Record a signal's request id with its run; touches no row if it was there."""
    return (
        f"INSERT INTO {sql.SIGNAL_REQUEST} (shard, run_id, request_id) "
        f"SELECT shard, run_id, %s FROM {sql.STATE} WHERE {sql.RUN}{dialect.bounded} "
        "ON CONFLICT DO NOTHING"
    )


@cache
def _end_activity(dialect: Dialect) -> str:
    """Remove an activity that is as it was read."""
    return f"DELETE FROM {sql.ACTIVITY} WHERE {sql.ACTIVITY_AS_READ}{dialect.bounded}"


@cache
def _replace_activity(dialect: Dialect) -> str:
    """Replace an activity that is as it was read."""
    return (
        f"UPDATE {sql.ACTIVITY} SET {sql.assignments(rows.ACTIVITY_COLUMNS)} "
        f"WHERE {sql.ACTIVITY_AS_READ}{dialect.bounded}"
    )


@cache
def _put(clock: str, guards: tuple[str, ...]) -> str:
    """Insert an arrival of a run that exists, if the guarding statement touched a row."""
    guard = f"WITH guard AS ({guards[0]} RETURNING 1) " if guards else ""
    marks = sql.marks(len(rows.INBOX_COLUMNS))
    return (
        f"{guard}INSERT INTO {sql.INBOX} ({sql.names(_INBOX_COLUMNS)}) "
        f"SELECT %s, %s, coalesce({clock}, %s), {marks} FROM {sql.STATE} WHERE {sql.RUN}"
        f"{' AND EXISTS (SELECT 1 FROM guard)' if guards else ''} RETURNING id"
    )
