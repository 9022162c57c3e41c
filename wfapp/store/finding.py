"""Finding work to do: due, undelivered, unclaimed, lost. Each asks a partial index.

What a newer release wrote is left to it.
"""

from datetime import datetime

from wfapp.models.columns import from_micros, to_micros
from wfapp.store import rows
from wfapp.store import statements as sql
from wfapp.store.database import StorePart
from wfcore.history.state import SNAPSHOT_FORMAT, PendingActivity
from wfcore.service.ports import RunKey

_KEY = ("namespace", "workflow_id", "run_id")
_RUNS = f"SELECT {sql.names(_KEY)} FROM {sql.STATE} WHERE format <= {SNAPSHOT_FORMAT}"
# The run's form counts too: a claim would be for nothing if its result could not be recorded.
_ACTIVITIES = (
    f"SELECT {sql.names(rows.ACTIVITY_READ, 'activity')} FROM {sql.ACTIVITY} AS activity "
    f"JOIN {sql.STATE} AS state ON state.shard = activity.shard AND state.run_id = activity.run_id "
    f"WHERE activity.format <= {SNAPSHOT_FORMAT} AND state.format <= {SNAPSHOT_FORMAT}"
)
_UNDELIVERED = (
    f"SELECT {sql.names(_KEY, 'state')} FROM {sql.STATE} AS state JOIN "
    f"(SELECT shard, run_id, min(arrived_at) AS oldest FROM {sql.INBOX} WHERE arrived_at < %s "
    "GROUP BY shard, run_id) AS waiting "
    "ON state.shard = waiting.shard AND state.run_id = waiting.run_id "
    f"WHERE NOT state.task_started AND state.format <= {SNAPSHOT_FORMAT} "
    "ORDER BY waiting.oldest LIMIT %s"
)
_NEXT_DUE = (
    f"SELECT min(at) FROM (SELECT min(wakeup_at) AS at FROM {sql.STATE} "
    f"WHERE wakeup_at IS NOT NULL UNION ALL SELECT min(due_at) AS at FROM {sql.ACTIVITY} "
    "WHERE due_at IS NOT NULL) AS both_tables"
)


class WorkFinder(StorePart):
    """Work of all runs, found without a lock: who takes it on looks again under one."""

    def due_runs(self, now: datetime, limit: int) -> list[RunKey]:
        """As `Store.due_runs`."""
        return self._runs(
            "AND wakeup_at <= %s ORDER BY wakeup_at LIMIT %s", [to_micros(now), limit]
        )

    def due_activities(self, now: datetime, limit: int) -> list[PendingActivity]:
        """As `Store.due_activities`."""
        return self._activities(
            "AND activity.due_at <= %s ORDER BY activity.due_at LIMIT %s", [to_micros(now), limit]
        )

    def undelivered(self, before: datetime, limit: int) -> list[RunKey]:
        """As `Store.undelivered`."""
        found = self._database.read(_UNDELIVERED, [to_micros(before), limit])
        return [rows.read_key(row) for row in found]

    def next_due(self) -> datetime | None:
        """As `Store.next_due`."""
        micros = self._database.read(_NEXT_DUE)[0][0]
        return from_micros(micros) if micros is not None else None

    def unclaimed_workflow_tasks(self, namespace: str, task_queue: str, limit: int) -> list[RunKey]:
        """As `Store.unclaimed_workflow_tasks`."""
        return self._runs(
            "AND namespace = %s AND task_queue = %s AND unclaimed_at IS NOT NULL "
            "ORDER BY unclaimed_at LIMIT %s",
            [namespace, task_queue, limit],
        )

    def unclaimed_activities(
        self, namespace: str, task_queue: str, now: datetime, limit: int
    ) -> list[PendingActivity]:
        """As `Store.unclaimed_activities`."""
        return self._activities(
            "AND activity.namespace = %s AND activity.task_queue = %s "
            "AND activity.claimable_at <= %s ORDER BY activity.claimable_at LIMIT %s",
            [namespace, task_queue, to_micros(now), limit],
        )

    def claims_of(self, owner: str, limit: int) -> tuple[list[RunKey], list[PendingActivity]]:
        """As `Store.claims_of`."""
        runs = self._runs("AND owner = %s AND owner > '' LIMIT %s", [owner, limit])
        activities = self._activities(
            "AND activity.owner = %s AND activity.owner > '' LIMIT %s", [owner, limit - len(runs)]
        )
        return runs, activities

    def _runs(self, condition: str, params: list[object]) -> list[RunKey]:
        found = self._database.read(f"{_RUNS} {condition}", params)
        return [rows.read_key(row) for row in found]

    def _activities(self, condition: str, params: list[object]) -> list[PendingActivity]:
        found = self._database.read(f"{_ACTIVITIES} {condition}", params)
        return [rows.read_activity(row) for row in found]
