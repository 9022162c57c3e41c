"""Writing many rows in few statements: pending activities by comparison, updates by their ids."""

import uuid
from collections.abc import Callable
from typing import Any

from wfapp.store import rows
from wfapp.store import statements as sql
from wfapp.store.database import Database, Params, Statement
from wfcore.history.change import Change
from wfcore.history.state import PendingActivity
from wfcore.service.ports import StaleActivityError


class Batch:
    """Statements of one transaction that are run together, in their order, when it is flushed."""

    def __init__(self, database: Database) -> None:
        self.dialect = database.dialect
        self._database = database
        self._statements: list[Statement] = []
        self._checks: list[tuple[list[int], Callable[[int], None]]] = []

    def write(self, text: str, params: Params = ()) -> int:
        """Add a statement; gives its place."""
        self._statements.append((text, params))
        return len(self._statements) - 1

    def check(self, places: list[int], check: Callable[[int], None]) -> None:
        """Look at the number of rows that the statements at these places touched together."""
        self._checks.append((places, check))

    def flush(self) -> None:
        """Run them, then the checks."""
        counts = self._database.write_together(self._statements)
        for places, check in self._checks:
            check(sum(counts[place] for place in places))
        self._statements, self._checks = [], []


def insert_rows(
    batch: Batch, table: str, columns: tuple[str, ...], values: list[list[Any]]
) -> None:
    """Insert rows, in one statement unless they are more than a thousand."""
    dialect = batch.dialect
    for start in range(0, len(values), sql.MOST_ROWS):
        few = values[start : start + sql.MOST_ROWS]
        batch.write(
            sql.insert(table, columns, len(few)),
            [item for row in few for item in dialect.values(row)],
        )


def write_activities(batch: Batch, change: Change, shard: int, *, had_activities: bool) -> None:
    """Write `activity_rows`: what was read is compared by its stamp, all else is new.

    When the run closes, activities that are still pending lose their standing.

    Raises:
        StaleActivityError: an activity changed since it was read, or is gone; by the flush.
    """
    run_id = change.state.recorded.run_id
    run = [shard, batch.dialect.uuid(uuid.UUID(run_id))]
    made: list[PendingActivity] = []
    replaced: list[tuple[PendingActivity, int]] = []
    removed: list[tuple[int, int]] = []
    unread: list[int] = []
    for event_id, row in change.activity_rows.items():
        known = change.activities.get(event_id)
        if row is not None and known is not None:
            replaced.append((row, known.stamp))
        elif row is not None:
            made.append(row)
        elif known is not None:
            removed.append((event_id, known.stamp))
        else:
            unread.append(event_id)
    standing = change.state.is_open
    places = _replace(batch, change, run, replaced) + _remove(batch, run, removed)
    wanted = len(replaced) + len(removed)

    def check(written: int) -> None:
        if written != wanted:
            raise StaleActivityError(f"an activity of run {run_id} changed since it was read")

    batch.check(places, check)
    if unread:
        batch.write(
            f"DELETE FROM {sql.ACTIVITY} WHERE {sql.RUN} "
            f"AND scheduled_event_id IN ({sql.marks(len(unread))})",
            [*run, *unread],
        )
    values = [
        rows.activity_constants(row, shard)
        + rows.activity_values(row, standing=standing, format_number=change.state.format)
        for row in made
    ]
    insert_rows(batch, sql.ACTIVITY, sql.INSERT_ACTIVITY_COLUMNS, values)
    if had_activities and not standing:
        batch.write(sql.END_STANDING, [False, *run])


def _replace(
    batch: Batch,
    change: Change,
    run: list[Any],
    replaced: list[tuple[PendingActivity, int]],
) -> list[int]:
    places = []
    standing = change.state.is_open
    for start in range(0, len(replaced), sql.MOST_ROWS):
        few = replaced[start : start + sql.MOST_ROWS]
        params: list[Any] = []
        for row, stamp in few:
            params += rows.activity_values(
                row, standing=standing, format_number=change.state.format
            )
            params += [row.scheduled_event_id, stamp]
        text = sql.replace_activities(batch.dialect, len(few))
        places.append(batch.write(text, [*params, *run]))
    return places


def _remove(batch: Batch, run: list[Any], removed: list[tuple[int, int]]) -> list[int]:
    places = []
    for start in range(0, len(removed), sql.MOST_ROWS):
        few = removed[start : start + sql.MOST_ROWS]
        pairs = [number for pair in few for number in pair]
        places.append(batch.write(sql.delete_activities(len(few)), [*run, *pairs]))
    return places


def write_updates(batch: Batch, change: Change, run: list[Any]) -> None:
    """Write `update_rows`; the run's lock keeps others from doing so."""
    if not change.update_rows:
        return
    written = [row for row in change.update_rows.values() if row is not None]
    removed = [update_id for update_id, row in change.update_rows.items() if row is None]
    if removed:
        batch.write(
            f"DELETE FROM {sql.UPDATE} WHERE {sql.RUN} "
            f"AND update_id IN ({sql.marks(len(removed))})",
            [*run, *removed],
        )
    if written:
        values = [value for row in written for value in (*run, *rows.update_values(row))]
        batch.write(sql.upsert_updates(len(written)), values)
