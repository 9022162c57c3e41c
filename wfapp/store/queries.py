"""Reading runs without locks, by their keys: nothing here scans a table."""

from wfapp import models
from wfapp.store import rows
from wfapp.store import statements as sql
from wfapp.store.database import StorePart
from wfcore.history.effects import Journal
from wfcore.history.state import InboxItem, MutableState, PendingActivity
from wfcore.history.updates import Update
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.payloads import Memo, SearchAttributes
from wfcore.service.ports import RunHead, RunKey

_CURRENT_STATE = (
    f"FROM {sql.CURRENT} AS newest JOIN {sql.STATE} AS state "
    "ON state.shard = newest.shard AND state.run_id = newest.run_id "
    "WHERE newest.shard = %s AND newest.namespace = %s AND newest.workflow_id = %s"
)
_SNAPSHOT = ("snapshot", "format", "run_id")


class RunReader(StorePart):
    """What stands of one run, as last committed."""

    def head(self, namespace: str, workflow_id: str, run_id: str = "") -> RunHead | None:
        """As `Store.head`."""
        found = self._state(rows.HEAD_COLUMNS, namespace, workflow_id, run_id)
        return rows.read_head(found) if found is not None else None

    def read_state(self, namespace: str, workflow_id: str, run_id: str = "") -> MutableState | None:
        """As `Store.read_state`."""
        found = self._state(_SNAPSHOT, namespace, workflow_id, run_id)
        return rows.read_state(*found) if found is not None else None

    def _state(
        self, columns: tuple[str, ...], namespace: str, workflow_id: str, run_id: str
    ) -> rows.Row | None:
        key = RunKey(namespace=namespace, workflow_id=workflow_id, run_id=run_id)
        if not run_id:
            text = f"SELECT {sql.names(columns, 'state')} {_CURRENT_STATE}"
            found = self._database.read(text, self._database.workflow_id(key))
        elif (run := self._database.run(key)) is not None:
            text = f"SELECT {sql.names(columns)} FROM {sql.STATE} WHERE {sql.RUN}"
            found = self._database.read(text, run)
        else:
            return None
        return found[0] if found else None

    def read_activities(self, key: RunKey) -> list[PendingActivity]:
        """As `Store.read_activities`."""
        run = self._database.run(key)
        if run is None:
            return []
        found = self._database.read(f"{sql.READ_ACTIVITIES} ORDER BY scheduled_event_id", run)
        return [rows.read_activity(row) for row in found]

    def read_activity(self, key: RunKey, scheduled_event_id: int) -> PendingActivity | None:
        """As `Store.read_activity`."""
        run = self._database.run(key)
        if run is None:
            return None
        found = self._database.read(
            f"{sql.READ_ACTIVITIES} AND scheduled_event_id = %s AND standing",
            [*run, scheduled_event_id],
        )
        return rows.read_activity(found[0]) if found else None

    def read_update(self, key: RunKey, update_id: str) -> Update | None:
        """As `Store.read_update`."""
        run = self._database.run(key)
        if run is None:
            return None
        found = self._database.read(f"{sql.READ_UPDATES} AND update_id = %s", [*run, update_id])
        return rows.read_update(found[0]) if found else None

    def read_inbox(self, key: RunKey) -> list[InboxItem]:
        """As `Store.read_inbox`."""
        run = self._database.run(key)
        found = self._database.read(sql.READ_INBOX, run) if run is not None else []
        return [rows.read_inbox_item(row) for row in found]

    def read_events(
        self,
        key: RunKey,
        *,
        first: int = 1,
        last: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> list[HistoryEvent]:
        """As `Store.read_events`."""
        run = self._database.run(key)
        if run is None:
            return []
        text, params = f"{sql.READ_EVENTS} AND event_id >= %s", [*run, first]
        if last is not None:
            text, params = f"{text} AND event_id <= %s", [*params, last]
        text = f"{text} ORDER BY event_id {'DESC' if reverse else 'ASC'}"
        if limit is not None:
            text, params = f"{text} LIMIT %s", [*params, limit]
        return [rows.read_event(row) for row in self._database.read(text, params)]

    def read_journal(self, key: RunKey) -> list[Journal]:
        """As `Store.read_journal`."""
        run = self._database.run(key)
        if run is None:
            return []
        with self._database.telling():
            entries = models.RunJournal.objects.using(self._database.alias).filter(
                shard=run[0], run_id=key.run_id
            )
            return [rows.read_journal(entry, key) for entry in entries.order_by("entry_id")]

    def read_visibility(self, key: RunKey) -> tuple[Memo | None, SearchAttributes | None]:
        """As `Store.read_visibility`."""
        run = self._database.run(key)
        if run is None:
            return None, None
        memos = self._database.read(sql.READ_MEMO, run)
        pairs = self._database.read(sql.READ_SEARCH_ATTRIBUTES, run)
        return (
            rows.read_memo(memos[0][0]) if memos else None,
            rows.read_search_attributes(pairs) if pairs else None,
        )
