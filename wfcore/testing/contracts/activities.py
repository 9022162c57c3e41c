"""Pending activities: replaced by compare-and-swap, found when due."""

import threading
from datetime import timedelta

import msgspec
import pytest

from wfcore.history.change import Change
from wfcore.history.requests import SignalRun
from wfcore.history.state import ActivityPause, PendingActivity
from wfcore.service.ports import (
    StaleActivityError,
    Store,
)
from wfcore.testing.contracts.base import (
    MANY,
    MINUTE,
    PATIENCE,
    StoreContract,
    journal,
    only_activity,
    state_of,
)
from wfcore.testing.port_builders import NAMESPACE, QUEUE, Builder, payloads


class ActivityContract(StoreContract):
    """Pending activities: replaced by compare-and-swap, found when due."""

    def test_rows_come_back_in_order(self, store: Store, build: Builder) -> None:
        key = build.with_activities(12)
        rows = store.read_activities(key)
        assert [row.activity_id for row in rows] == [f"a{number}" for number in range(12)]
        assert [row.scheduled_event_id for row in rows] == list(range(5, 17))
        assert store.read_activity(key, 7) == rows[2]
        assert store.read_activity(key, 4) is None
        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            tx.load(key.run_id)
            by_id = tx.activities(key.run_id, scheduled_event_ids=(9, 5, 99))
            by_name = tx.activities(key.run_id, activity_ids=("a11", "a0", "none"))
        assert by_id == [rows[0], rows[4]]
        assert by_name == [rows[0], rows[11]]

    def test_a_replaced_row_comes_back_whole(self, store: Store, build: Builder) -> None:
        key = build.with_activities()
        row = only_activity(store, key)
        new = msgspec.structs.replace(
            build.claimed(row, owner="boot"), heartbeat_details=payloads("details")
        )
        assert store.replace_activity(row, new, (journal(key, store),))
        assert only_activity(store, key) == new
        assert [entry.kind for entry in store.read_journal(key)] == ["contract"]

    def test_a_stale_row_is_not_replaced(self, store: Store, build: Builder) -> None:
        key = build.with_activities()
        row = only_activity(store, key)
        started = build.claimed(row)
        assert store.replace_activity(row, started)
        assert not store.replace_activity(row, build.claimed(row), (journal(key, store),))
        assert only_activity(store, key) == started
        assert store.read_journal(key) == []

    def test_a_heartbeat_keeps_the_stamp(self, store: Store, build: Builder) -> None:
        key = build.with_activities()
        row = only_activity(store, key)
        started = build.claimed(row)
        store.replace_activity(row, started)
        beaten = msgspec.structs.replace(started, heartbeat_details=payloads("1"))
        assert store.replace_activity(started, beaten)
        again = msgspec.structs.replace(started, heartbeat_details=payloads("2"))
        assert store.replace_activity(started, again)
        assert only_activity(store, key) == again

    def test_of_many_claims_one_wins(self, store: Store, build: Builder) -> None:
        key = build.with_activities()
        row = only_activity(store, key)
        together = threading.Barrier(6)

        def take(owner: str) -> bool:
            new = build.claimed(row, owner)
            together.wait(PATIENCE)
            return store.replace_activity(row, new)

        futures = {
            owner: self.apart(lambda owner=owner: take(owner))  # type: ignore[misc]
            for owner in (f"boot-{number}" for number in range(6))
        }
        winners = [owner for owner, future in futures.items() if future.result(PATIENCE)]
        assert len(winners) == 1
        assert only_activity(store, key).owner == winners[0]

    def test_a_transition_that_read_an_old_row_is_refused(
        self, store: Store, build: Builder
    ) -> None:
        key = build.with_activities()
        row = only_activity(store, key)
        store.replace_activity(row, build.claimed(row))
        before = state_of(store, key)

        def stale(change: Change) -> None:
            change.activities = {row.scheduled_event_id: row}
            change.activity_rows = {row.scheduled_event_id: None}

        with pytest.raises(StaleActivityError):
            build.change(key, SignalRun(signal_name="s", request_id="r"), stale)
        assert state_of(store, key) == before
        assert only_activity(store, key).stamp == row.stamp + 1

    def test_a_closed_run_shows_its_activities_and_gives_none(
        self, store: Store, build: Builder
    ) -> None:
        key = build.with_activities(2)
        rows = store.read_activities(key)
        started = build.claimed(rows[0], owner=f"boot-{key.run_id}")
        store.replace_activity(rows[0], started)
        build.terminate(key)
        later = store.now() + timedelta(days=400)
        assert store.read_activities(key) == [started, rows[1]]
        assert store.read_activity(key, rows[0].scheduled_event_id) is None
        assert not store.replace_activity(started, started)
        assert store.put_inbox(key, build.completion(started), replaces=started) is None
        assert not [row for row in store.due_activities(later, MANY) if row.run_id == key.run_id]
        waiting = store.unclaimed_activities(NAMESPACE, QUEUE, later, MANY)
        assert not [row for row in waiting if row.run_id == key.run_id]
        assert store.claims_of(f"boot-{key.run_id}", MANY) == ([], [])
        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            tx.load(key.run_id)
            assert tx.activities(key.run_id, scheduled_event_ids=(5, 6)) == []

    def test_due_ones_are_found_nearest_first(self, store: Store, build: Builder) -> None:
        key = build.with_activities(3)
        now = store.now()
        for row, wait in zip(store.read_activities(key), (3, 1, 2), strict=True):
            due = msgspec.structs.replace(row, due_at=now + timedelta(hours=wait))
            assert store.replace_activity(row, due)

        def found(hours: float) -> list[str]:
            rows = store.due_activities(now + timedelta(hours=hours), MANY)
            return [row.activity_id for row in rows if row.run_id == key.run_id]

        assert found(0.5) == []
        assert found(2.5) == ["a1", "a2"]
        assert found(3.5) == ["a1", "a2", "a0"]
        row = store.read_activities(key)[1]
        store.replace_activity(row, msgspec.structs.replace(row, due_at=None))
        assert found(3.5) == ["a2", "a0"]

    def test_a_paused_one_is_neither_due_nor_waiting(self, store: Store, build: Builder) -> None:
        queue = build.workflow_id()
        key = build.with_activities(1, queue=queue)
        row = only_activity(store, key)
        pause = ActivityPause(at=store.now(), identity="operator", reason="checked")
        paused = msgspec.structs.replace(row, pause=pause, due_at=None)
        assert store.replace_activity(row, paused)
        later = store.now() + timedelta(days=400)
        assert only_activity(store, key) == paused
        assert store.unclaimed_activities(NAMESPACE, queue, later, MANY) == []
        assert not [due for due in store.due_activities(later, MANY) if due.run_id == key.run_id]
        assert store.replace_activity(paused, row)
        assert store.unclaimed_activities(NAMESPACE, queue, later, MANY) == [row]

    def test_waiting_ones_are_found_by_queue_and_time(self, store: Store, build: Builder) -> None:
        queue = build.workflow_id()
        key = build.with_activities(3, queue=queue)
        now = store.now()
        first, second, third = store.read_activities(key)
        later = msgspec.structs.replace(
            second, stamp=second.stamp + 1, attempt_scheduled_at=now + timedelta(hours=1)
        )
        assert store.replace_activity(second, later)
        assert store.replace_activity(third, build.claimed(third))

        def found(after: timedelta) -> list[PendingActivity]:
            return store.unclaimed_activities(NAMESPACE, queue, now + after, MANY)

        assert found(MINUTE) == [first]
        assert found(timedelta(hours=2)) == [first, later]
        assert store.unclaimed_activities(NAMESPACE, queue, now + MINUTE, 0) == []
