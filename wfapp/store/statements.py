"""The hot path's SQL, made once per database and shape. Values are always parameters.

Table and column names are those of the models (a test compares them), and nothing else is put into
the texts.
"""

from functools import cache

from wfapp.store import rows
from wfapp.store.dialect import Dialect

STATE = "wfapp_executionstate"
CURRENT = "wfapp_currentrun"
EVENT = "wfapp_historyevent"
INBOX = "wfapp_inboxitem"
SIGNAL_REQUEST = "wfapp_signalrequest"
ACTIVITY = "wfapp_pendingactivity"
UPDATE = "wfapp_workflowupdate"
EXECUTION = "wfapp_workflowexecution"
JOURNAL = "wfapp_runjournal"
MEMO = "wfapp_memo"
SEARCH_ATTRIBUTE = "wfapp_searchattribute"

#: WHERE of one run.
RUN = "shard = %s AND run_id = %s"
#: WHERE of one workflow id.
WORKFLOW_ID = "shard = %s AND namespace = %s AND workflow_id = %s"
#: Rows of one INSERT: SQLite takes 32,766 parameters.
MOST_ROWS = 1_000
#: Items of one IN (...).
MOST_ITEMS = 10_000


def names(columns: tuple[str, ...], table: str = "") -> str:
    """A list of columns."""
    return ", ".join(f"{table}.{column}" if table else column for column in columns)


def marks(count: int) -> str:
    """A list of placeholders."""
    return ", ".join(["%s"] * count)


def assignments(columns: tuple[str, ...]) -> str:
    """Columns and placeholders of a SET."""
    return ", ".join(f"{column} = %s" for column in columns)


@cache
def insert(table: str, columns: tuple[str, ...], count: int = 1) -> str:
    """Insert some rows."""
    row = f"({marks(len(columns))})"
    return f"INSERT INTO {table} ({names(columns)}) VALUES {', '.join([row] * count)}"


@cache
def lock_state(dialect: Dialect, clock: str) -> str:
    """Lock the hot row and read it and the clock; the clock only after a wait for the lock.

    In a plain SELECT ... FOR UPDATE the list is computed before the wait.
    """
    return (
        f"SELECT held.snapshot, held.format, held.status, held.wakeup_at, {clock} FROM "
        f"(SELECT snapshot, format, status, wakeup_at FROM {STATE} WHERE {RUN}{dialect.bounded}"
        f"{dialect.for_update}) AS held"
    )


@cache
def read_current(dialect: Dialect, clock: str) -> str:
    """The current run and the clock: always one row, of NULLs when there is no run."""
    return (
        f"SELECT {names(rows.CURRENT_COLUMNS, 'newest')}, {clock}, {dialect.bound} "
        f"FROM (SELECT 1 AS one) AS always LEFT JOIN {CURRENT} AS newest ON {WORKFLOW_ID}"
    )


@cache
def lock_current(dialect: Dialect, clock: str) -> str:
    """Lock and read the current run."""
    columns = names(rows.CURRENT_COLUMNS)
    return (
        f"SELECT {names(rows.CURRENT_COLUMNS, 'held')}, {clock}, 1 FROM "
        f"(SELECT {columns} FROM {CURRENT} WHERE {WORKFLOW_ID}{dialect.bounded}"
        f"{dialect.for_update}) AS held"
    )


INSERT_STATE = insert(STATE, ("shard", "run_id", *rows.STATE_CONSTANTS, *rows.STATE_COLUMNS))
UPDATE_STATE = f"UPDATE {STATE} SET {assignments(rows.STATE_COLUMNS)} WHERE {RUN}"

INSERT_CURRENT = (
    insert(CURRENT, ("shard", "namespace", "workflow_id", *rows.CURRENT_COLUMNS))
    + " ON CONFLICT DO NOTHING"
)
REPLACE_CURRENT = (
    f"UPDATE {CURRENT} SET {assignments(rows.CURRENT_COLUMNS)} WHERE {WORKFLOW_ID} AND run_id = %s"
)
UPDATE_CURRENT_STATUS = f"UPDATE {CURRENT} SET status = %s WHERE {WORKFLOW_ID} AND run_id = %s"

INSERT_EXECUTION = insert(EXECUTION, rows.EXECUTION_COLUMNS)
UPDATE_EXECUTION = (
    f"UPDATE {EXECUTION} SET {assignments(rows.EXECUTION_PROGRESS)} WHERE run_id = %s"
)

INSERT_SIGNAL_REQUEST = (
    insert(SIGNAL_REQUEST, ("shard", "run_id", "request_id")) + " ON CONFLICT DO NOTHING"
)

REQUESTED_RUNS = (
    f"SELECT request.run_id FROM {SIGNAL_REQUEST} AS request JOIN {STATE} AS state "
    "ON state.shard = request.shard AND state.run_id = request.run_id "
    "WHERE request.shard = %s AND state.namespace = %s AND state.workflow_id = %s "
    "AND request.request_id = %s"
)

UPSERT_MEMO = (
    insert(MEMO, ("shard", "run_id", "body"))
    + " ON CONFLICT (shard, run_id) DO UPDATE SET body = excluded.body"
)
READ_MEMO = f"SELECT body FROM {MEMO} WHERE {RUN}"
DELETE_SEARCH_ATTRIBUTES = f"DELETE FROM {SEARCH_ATTRIBUTE} WHERE {RUN}"
READ_SEARCH_ATTRIBUTES = f"SELECT name, value FROM {SEARCH_ATTRIBUTE} WHERE {RUN}"


@cache
def upsert_search_attributes(count: int) -> str:
    """Write some search attributes of one run."""
    return (
        insert(SEARCH_ATTRIBUTE, ("shard", "run_id", "name", "value"), count)
        + " ON CONFLICT (shard, run_id, name) DO UPDATE SET value = excluded.value"
    )


@cache
def lock_inbox(dialect: Dialect) -> str:
    """All waiting arrivals of a run; locked, so that none is withdrawn while it is taken in."""
    return f"{READ_INBOX}{dialect.for_update}"


READ_INBOX = f"SELECT {names(rows.INBOX_READ)} FROM {INBOX} WHERE {RUN} ORDER BY id"
INBOX_SIZE = (
    "SELECT count(*), coalesce(sum(length(attributes)), 0) FROM "
    f"(SELECT attributes FROM {INBOX} WHERE {RUN} LIMIT %s) AS few"
)
WITHDRAW_INBOX = f"DELETE FROM {INBOX} WHERE {RUN} AND id = %s"

#: Columns of `rows.update_values` beside shard and run id.
UPDATE_COLUMNS = ("update_id", "body")
READ_UPDATES = f"SELECT body FROM {UPDATE} WHERE {RUN}"


@cache
def upsert_updates(count: int) -> str:
    """Write some updates of one run."""
    return (
        insert(UPDATE, ("shard", "run_id", *UPDATE_COLUMNS), count)
        + " ON CONFLICT (shard, run_id, update_id) DO UPDATE SET body = excluded.body"
    )


READ_EVENTS = f"SELECT {names(rows.EVENT_READ)} FROM {EVENT} WHERE {RUN}"
READ_ACTIVITIES = f"SELECT {names(rows.ACTIVITY_READ)} FROM {ACTIVITY} WHERE {RUN}"

INSERT_ACTIVITY_COLUMNS = (*rows.ACTIVITY_CONSTANTS, *rows.ACTIVITY_COLUMNS)
#: One activity that still has the stamp that was read.
ACTIVITY_AS_READ = f"{RUN} AND scheduled_event_id = %s AND stamp = %s AND standing"
END_STANDING = (
    f"UPDATE {ACTIVITY} SET standing = %s, due_at = NULL, claimable_at = NULL, owner = '' "
    f"WHERE {RUN} AND standing"
)

#: Types of `rows.ACTIVITY_COLUMNS` and of (scheduled event id, stamp as read).
_REPLACED_TYPES = (
    "bigint",
    "bigint",
    "integer",
    "smallint",
    "boolean",
    "varchar",
    "varchar",
    "bytea",
    "integer",
    "integer",
)


@cache
def replace_activities(dialect: Dialect, count: int) -> str:
    """Replace some activities of one run that still have the stamps that were read."""
    first = ", ".join(dialect.typed(kind) for kind in _REPLACED_TYPES)
    others = f", ({marks(len(_REPLACED_TYPES))})" * (count - 1)
    sets = ", ".join(
        f"{column} = fresh.column{place}" for place, column in enumerate(rows.ACTIVITY_COLUMNS, 1)
    )
    event_id, stamp = len(rows.ACTIVITY_COLUMNS) + 1, len(rows.ACTIVITY_COLUMNS) + 2
    return (
        f"UPDATE {ACTIVITY} AS old SET {sets} FROM (VALUES ({first}){others}) AS fresh "
        f"WHERE old.shard = %s AND old.run_id = %s AND old.scheduled_event_id = "
        f"fresh.column{event_id} AND old.stamp = fresh.column{stamp} AND old.standing"
    )


@cache
def delete_activities(count: int) -> str:
    """Delete some activities of one run that still have the stamps that were read."""
    pairs = ", ".join(["(%s, %s)"] * count)
    return (
        f"DELETE FROM {ACTIVITY} WHERE {RUN} AND standing "
        f"AND (scheduled_event_id, stamp) IN (VALUES {pairs})"
    )
