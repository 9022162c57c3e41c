"""Commits, rollbacks, locks, current runs."""

import threading

import pytest

from wfcore.history.change import Change
from wfcore.history.requests import SignalRun
from wfcore.history.state import SNAPSHOT_FORMAT
from wfcore.protocol import commands
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.service.ports import (
    CurrentRunChangedError,
    RunBusyError,
    RunFilter,
    RunKey,
    SnapshotTooNewError,
    Store,
)
from wfcore.testing.contracts.base import (
    MANY,
    MINUTE,
    PATIENCE,
    SHORT,
    WATCHED,
    BrokenError,
    StoreContract,
    journal,
    run_key,
    state_of,
)
from wfcore.testing.port_builders import NAMESPACE, QUEUE, Builder, signal


class TransactionContract(StoreContract):
    """Commits, rollbacks, locks, current runs."""

    def test_a_started_run_is_there_after_the_commit(self, store: Store, build: Builder) -> None:
        key = build.start()
        head = store.head(NAMESPACE, key.workflow_id)
        assert head is not None
        assert head.key == key
        assert head.status is Status.RUNNING
        assert (head.workflow_type, head.task_queue) == ("contract", QUEUE)
        assert (head.next_event_id, head.task_started) == (3, False)
        assert head.first_execution_run_id == key.run_id
        assert [event.event_id for event in store.read_events(key)] == [1, 2]

    def test_an_error_leaves_nothing(self, store: Store, build: Builder) -> None:
        key = build.start()
        before = state_of(store, key)
        with (
            pytest.raises(BrokenError),
            store.transaction(NAMESPACE, key.workflow_id) as tx,
        ):
            build.new_run(tx, key.workflow_id)
            state = tx.load(key.run_id)
            assert state is not None
            tx.seen_request(key.run_id, "rolled-back")
            state.recorded.signal_count = 99
            tx.save(Change(state=state, now=tx.now, journal=[journal(key, store)]))
            raise BrokenError
        assert state_of(store, key) == before
        assert store.read_journal(key) == []
        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            assert not tx.seen_request(key.run_id, "rolled-back")

    def test_a_start_that_breaks_leaves_no_run(self, store: Store, build: Builder) -> None:
        workflow_id = build.workflow_id()
        with pytest.raises(BrokenError), store.transaction(NAMESPACE, workflow_id) as tx:
            tx.current()
            change = build.new_run(tx, workflow_id)
            tx.save(change)
            raise BrokenError
        assert store.head(NAMESPACE, workflow_id) is None
        assert store.read_events(run_key(change)) == []

    def test_what_does_not_exist_is_none(self, store: Store, build: Builder) -> None:
        key = RunKey(
            namespace=NAMESPACE,
            workflow_id=build.workflow_id(),
            run_id=build.ids.run_id(store.now()),
        )
        assert store.head(NAMESPACE, key.workflow_id) is None
        assert store.head(NAMESPACE, key.workflow_id, key.run_id) is None
        assert store.read_state(NAMESPACE, key.workflow_id) is None
        assert store.read_events(key) == []
        assert store.read_activity(key, 5) is None
        assert store.put_inbox(key, signal("s", store.now())) is None
        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            assert tx.current() is None
            assert tx.load(key.run_id) is None

    def test_a_loaded_state_belongs_to_its_loader(self, store: Store, build: Builder) -> None:
        key = build.start()
        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            state = tx.load(key.run_id)
            assert state is not None
            state.recorded.signal_count = 99
            state.recorded.open_activities[77] = "mine"
        assert state_of(store, key).recorded.signal_count == 0
        assert state_of(store, key).recorded.open_activities == {}

    def test_a_change_comes_back_as_it_was_saved(self, store: Store, build: Builder) -> None:
        key = build.with_activities()
        kept: list[Change] = []
        build.change(key, SignalRun(signal_name="s", request_id="r"), kept.append)
        (change,) = kept
        assert state_of(store, key) == change.state
        assert store.read_events(key)[-len(change.events) :] == change.events

    def test_the_clock_does_not_go_back(self, store: Store, build: Builder) -> None:
        key = build.start()
        before = store.now()
        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            times = [tx.now]
            tx.load(key.run_id)
            times.append(tx.now)
            tx.inbox(key.run_id)
            times.append(tx.now)
        assert times == sorted(times)
        assert times[0].tzinfo is not None
        assert abs(times[0] - before) < MINUTE

    def test_a_lock_is_held_to_the_end(self, store: Store, build: Builder) -> None:
        key = build.start()
        asking, loaded = threading.Event(), threading.Event()

        def load() -> int:
            asking.set()
            with store.transaction(NAMESPACE, key.workflow_id) as tx:
                state = tx.load(key.run_id)
                loaded.set()
                assert state is not None
                return state.recorded.signal_count

        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            state = tx.load(key.run_id)
            assert state is not None
            other = self.apart(load)
            assert asking.wait(PATIENCE)
            assert not loaded.wait(WATCHED)
            state.recorded.signal_count = 7
            tx.save(Change(state=state, now=tx.now))
        assert other.result(PATIENCE) == 7

    def test_waiting_for_a_lock_is_bounded(self, store: Store, build: Builder) -> None:
        key = build.start()

        def load() -> None:
            with store.transaction(NAMESPACE, key.workflow_id, wait=SHORT) as tx:
                tx.load(key.run_id)

        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            tx.load(key.run_id)
            with pytest.raises(RunBusyError):
                self.apart(load).result(PATIENCE)
        self.apart(load).result(PATIENCE)

    def test_increments_under_the_lock_are_not_lost(self, store: Store, build: Builder) -> None:
        key = build.start()

        def add() -> None:
            for _ in range(5):
                with store.transaction(NAMESPACE, key.workflow_id, wait=MINUTE) as tx:
                    state = tx.load(key.run_id)
                    assert state is not None
                    state.recorded.signal_count += 1
                    tx.save(Change(state=state, now=tx.now))

        for future in [self.apart(add) for _ in range(4)]:
            future.result(PATIENCE)
        assert state_of(store, key).recorded.signal_count == 20

    def test_a_new_run_becomes_the_current_one(self, store: Store, build: Builder) -> None:
        first = build.start()
        build.terminate(first)
        second = build.start(first.workflow_id)
        with store.transaction(NAMESPACE, first.workflow_id) as tx:
            current = tx.current(lock=True)
        assert current is not None
        assert (current.run_id, current.status) == (second.run_id, Status.RUNNING)
        assert current.first_execution_run_id == second.run_id
        state = state_of(store, second)
        assert current.create_request_id == state.volatile.create_request_id != ""
        assert current.start_time == state.recorded.start_time
        head = store.head(NAMESPACE, first.workflow_id, first.run_id)
        assert head is not None
        assert head.status is Status.TERMINATED

    def test_a_start_that_did_not_see_the_current_run_fails(
        self, store: Store, build: Builder
    ) -> None:
        first = build.start()
        build.terminate(first)
        with (
            pytest.raises(CurrentRunChangedError),
            store.transaction(NAMESPACE, first.workflow_id) as tx,
        ):
            tx.save(build.new_run(tx, first.workflow_id))
        head = store.head(NAMESPACE, first.workflow_id)
        assert head is not None
        assert head.key == first

    def test_of_two_starts_at_once_one_wins(self, store: Store, build: Builder) -> None:
        workflow_id = build.workflow_id()
        together = threading.Barrier(4)

        def begin() -> bool:
            together.wait(PATIENCE)
            try:
                build.start(workflow_id)
            except CurrentRunChangedError:
                return False
            return True

        outcomes = [future.result(PATIENCE) for future in [self.apart(begin) for _ in range(4)]]
        # a start that began after the winner's commit saw its run, and replaced it
        assert any(outcomes)
        runs, _ = store.list_runs(NAMESPACE, RunFilter(workflow_id=workflow_id), limit=10)
        assert len(runs) == outcomes.count(True)

    def test_a_run_and_its_follower_are_saved_together(self, store: Store, build: Builder) -> None:
        first = build.start()
        build.complete(first, commands.ContinueAsNewWorkflowExecution())
        head = store.head(NAMESPACE, first.workflow_id)
        assert head is not None
        assert head.key != first
        assert head.first_execution_run_id == first.run_id
        assert state_of(store, first).recorded.status is Status.CONTINUED_AS_NEW
        assert [event.event_id for event in store.read_events(head.key)][:1] == [1]

    def test_a_request_id_is_seen_once(self, store: Store, build: Builder) -> None:
        key, other = build.start(), build.start()
        seen = []
        for run in (key, key, other):
            with store.transaction(NAMESPACE, run.workflow_id) as tx:
                tx.load(run.run_id)
                seen.append(tx.seen_request(run.run_id, "the-same"))
        assert seen == [False, True, False]

    def test_a_request_id_of_a_run_being_made_is_kept(self, store: Store, build: Builder) -> None:
        workflow_id = build.workflow_id()
        with store.transaction(NAMESPACE, workflow_id) as tx:
            tx.current()
            change = build.new_run(tx, workflow_id)
            run_id = change.state.recorded.run_id
            assert not tx.seen_request(run_id, "first")
            tx.save(change)
        with store.transaction(NAMESPACE, workflow_id) as tx:
            assert tx.seen_request(run_id, "first")

    def test_calls_follow_the_commit(self, store: Store, build: Builder) -> None:
        workflow_id = build.workflow_id()
        seen: list[bool] = []
        with store.transaction(NAMESPACE, workflow_id) as tx:
            tx.current()
            tx.save(build.new_run(tx, workflow_id))
            tx.on_commit(lambda: seen.append(store.head(NAMESPACE, workflow_id) is not None))
            assert seen == []
        assert seen == [True]

    def test_calls_never_follow_a_rollback(self, store: Store, build: Builder) -> None:
        called: list[int] = []
        with pytest.raises(BrokenError), store.transaction(NAMESPACE, build.workflow_id()) as tx:
            tx.on_commit(lambda: called.append(1))
            raise BrokenError
        assert called == []

    def test_a_newer_snapshot_is_left_alone(self, store: Store, build: Builder) -> None:
        key = build.start()

        def newer(change: Change) -> None:
            change.state.format = SNAPSHOT_FORMAT + 1
            change.next_deadline = change.now

        build.change(key, SignalRun(signal_name="s", request_id="r"), newer)
        with pytest.raises(SnapshotTooNewError):
            store.read_state(NAMESPACE, key.workflow_id)
        with (
            pytest.raises(SnapshotTooNewError),
            store.transaction(NAMESPACE, key.workflow_id) as tx,
        ):
            tx.load(key.run_id)
        assert key not in store.due_runs(store.now() + MINUTE, MANY)
        assert key not in store.unclaimed_workflow_tasks(NAMESPACE, QUEUE, MANY)
