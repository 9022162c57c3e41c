"""Writing many rows in few statements: pending activities by comparison, updates by their ids."""

import uuid
from typing import Any

from wfapp.store import rows
from wfapp.store import statements as sql
from wfapp.store.database import Database
from wfcore.history.change import Change
from wfcore.history.state import PendingActivity
from wfcore.service.ports import StaleActivityError


def insert_rows(
    database: Database, table: str, columns: tuple[str, ...], values: list[list[Any]]
) -> None:
    """Insert rows, in one statement unless they are more than a thousand."""
    dialect = database.dialect
    for start in range(0, len(values), sql.MOST_ROWS):
        few = values[start : start + sql.MOST_ROWS]
        database.write(
            sql.insert(table, columns, len(few)),
            [item for row in few for item in dialect.values(row)],
        )


def write_activities(
    database: Database, change: Change, shard: int, *, had_activities: bool
) -> None:
    """Write `activity_rows`: what was read is compared by its stamp, all else is new.

    When the run closes, activities that are still pending lose their standing.

    Raises:
        StaleActivityError: an activity changed since it was read, or is gone.
    """
    run_id = change.state.recorded.run_id
    run = [shard, database.dialect.uuid(uuid.UUID(run_id))]
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
    written = _replace(database, change, run, replaced) + _remove(database, run, removed)
    if written != len(replaced) + len(removed):
        raise StaleActivityError(f"an activity of run {run_id} changed since it was read")
    if unread:
        database.write(
            f"DELETE FROM {sql.ACTIVITY} WHERE {sql.RUN} "
            f"AND scheduled_event_id IN ({sql.marks(len(unread))})",
            [*run, *unread],
        )
    values = [
        rows.activity_constants(row, shard)
        + rows.activity_values(row, standing=standing, format_number=change.state.format)
        for row in made
    ]
    insert_rows(database, sql.ACTIVITY, sql.INSERT_ACTIVITY_COLUMNS, values)
    if had_activities and not standing:
        database.write(sql.END_STANDING, [False, *run])


def _replace(
    database: Database,
    change: Change,
    run: list[Any],
    replaced: list[tuple[PendingActivity, int]],
) -> int:
    written = 0
    standing = change.state.is_open
    for start in range(0, len(replaced), sql.MOST_ROWS):
        few = replaced[start : start + sql.MOST_ROWS]
        params: list[Any] = []
        for row, stamp in few:
            params += rows.activity_values(
                row, standing=standing, format_number=change.state.format
            )
            params += [row.scheduled_event_id, stamp]
        written += database.write(
            sql.replace_activities(database.dialect, len(few)), [*params, *run]
        )
    return written


def _remove(database: Database, run: list[Any], removed: list[tuple[int, int]]) -> int:
    written = 0
    for start in range(0, len(removed), sql.MOST_ROWS):
        few = removed[start : start + sql.MOST_ROWS]
        pairs = [number for pair in few for number in pair]
        written += database.write(sql.delete_activities(len(few)), [*run, *pairs])
    return written


def write_updates(database: Database, change: Change, run: list[Any]) -> None:
    """Write `update_rows`; the run's lock keeps others from doing so."""
    if not change.update_rows:
        return
    written = [row for row in change.update_rows.values() if row is not None]
    removed = [update_id for update_id, row in change.update_rows.items() if row is None]
    if removed:
        database.write(
            f"DELETE FROM {sql.UPDATE} WHERE {sql.RUN} "
            f"AND update_id IN ({sql.marks(len(removed))})",
            [*run, *removed],
        )
    if written:
        values = [value for row in written for value in (*run, *rows.update_values(row))]
        database.write(sql.upsert_updates(len(written)), values)
