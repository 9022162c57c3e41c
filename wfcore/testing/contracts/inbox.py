"""Arrivals: order, repetition, delivery."""

import threading

import msgspec
import pytest

from wfcore.history.change import Change
from wfcore.history.requests import DeliverInbox
from wfcore.history.state import InboxItem
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.events import (
    ChildWorkflowExecutionStarted,
    ChildWorkflowExecutionTerminated,
)
from wfcore.protocol.payloads import Payload, UserMetadata
from wfcore.service.ports import (
    Store,
)
from wfcore.testing.contracts.base import (
    MANY,
    MINUTE,
    PATIENCE,
    BrokenError,
    StoreContract,
    journal,
    only_activity,
    state_of,
)
from wfcore.testing.port_builders import NAMESPACE, Builder, signal


class InboxContract(StoreContract):
    """Arrivals: order, repetition, delivery."""

    def test_arrivals_keep_their_order_and_content(self, store: Store, build: Builder) -> None:
        key = build.start()
        items = [signal(f"s{number}", store.now()) for number in range(5)]
        items[1] = msgspec.structs.replace(
            items[1], user_metadata=UserMetadata(summary=Payload(data=b"why"))
        )
        ids = [store.put_inbox(key, item) for item in items]
        assert None not in ids
        expected = [
            msgspec.structs.replace(item, item_id=item_id)
            for item, item_id in zip(items, ids, strict=True)
        ]
        assert store.read_inbox(key) == expected
        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            tx.load(key.run_id)
            assert tx.inbox(key.run_id) == expected

    def test_the_end_of_a_child_brings_its_start_along(self, store: Store, build: Builder) -> None:
        key = build.start()
        child = WorkflowExecution(workflow_id="child", run_id=key.run_id)
        begun = ChildWorkflowExecutionStarted(initiated_event_id=5, workflow_execution=child)
        ended = ChildWorkflowExecutionTerminated(initiated_event_id=5, workflow_execution=child)
        item = InboxItem(event_time=store.now(), attributes=ended, started=begun)
        item_id = store.put_inbox(key, item)
        assert item_id is not None
        assert store.read_inbox(key) == [msgspec.structs.replace(item, item_id=item_id)]

    def test_an_arrival_with_a_known_request_id_is_none(self, store: Store, build: Builder) -> None:
        key, other = build.start(), build.start()
        assert store.put_inbox(key, signal("s", store.now()), request_id="r") is not None
        assert store.put_inbox(key, signal("s", store.now()), request_id="r") is None
        assert store.put_inbox(other, signal("s", store.now()), request_id="r") is not None
        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            assert tx.seen_request(key.run_id, "r")
            assert not tx.seen_request(key.run_id, "q")
        assert store.put_inbox(key, signal("s", store.now()), request_id="q") is None
        assert len(store.read_inbox(key)) == 1

    def test_a_request_id_is_known_to_all_runs_of_its_workflow_id(
        self, store: Store, build: Builder
    ) -> None:
        key, other = build.start(), build.start()
        assert store.put_inbox(key, signal("s", store.now()), request_id="r") is not None
        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            assert not tx.seen_request(key.run_id, "q")
        build.terminate(key)
        following = build.start(key.workflow_id)
        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            assert not tx.seen_request(following.run_id, "q")

        def runs(request_id: str, workflow_id: str = key.workflow_id) -> set[str]:
            return set(store.requested_runs(NAMESPACE, workflow_id, request_id))

        assert runs("r") == {key.run_id}
        assert runs("q") == {key.run_id, following.run_id}
        assert runs("p") == runs("r", other.workflow_id) == set()
        assert not store.requested_runs("other", key.workflow_id, "r")

    def test_of_one_request_at_once_one_is_stored(self, store: Store, build: Builder) -> None:
        key = build.start()
        together = threading.Barrier(4)

        def put() -> int | None:
            together.wait(PATIENCE)
            return store.put_inbox(key, signal("s", store.now()), request_id="r")

        outcomes = [future.result(PATIENCE) for future in [self.apart(put) for _ in range(4)]]
        assert len([item_id for item_id in outcomes if item_id is not None]) == 1
        assert len(store.read_inbox(key)) == 1

    def test_a_save_takes_the_rows_that_it_read(self, store: Store, build: Builder) -> None:
        key = build.start()
        store.put_inbox(key, signal("read", store.now()))

        def meanwhile(_change: Change) -> None:
            item = signal("later", store.now())
            if self.others_may_write:
                self.apart(lambda: store.put_inbox(key, item)).result(PATIENCE)
            else:
                store.put_inbox(key, item)

        build.change(key, DeliverInbox(), meanwhile)
        names = [getattr(item.attributes, "signal_name", "") for item in store.read_inbox(key)]
        assert names == ["later"]
        assert state_of(store, key).recorded.signal_count == 1

    def test_an_arrival_stored_within_a_transaction_shares_its_fate(
        self, store: Store, build: Builder
    ) -> None:
        key = build.start()

        def put_under_the_lock(fails: bool) -> None:
            with store.transaction(NAMESPACE, key.workflow_id) as tx:
                tx.load(key.run_id)
                assert store.put_inbox(key, signal("s", tx.now)) is not None
                assert len(tx.inbox(key.run_id)) == 1
                if fails:
                    raise BrokenError

        with pytest.raises(BrokenError):
            put_under_the_lock(fails=True)
        assert store.read_inbox(key) == []
        put_under_the_lock(fails=False)
        assert len(store.read_inbox(key)) == 1

    def test_an_arrival_can_be_withdrawn_until_it_is_taken(
        self, store: Store, build: Builder
    ) -> None:
        key = build.start()
        kept = store.put_inbox(key, signal("kept", store.now()))
        gone = store.put_inbox(key, signal("gone", store.now()))
        assert kept is not None
        assert gone is not None
        assert store.withdraw_inbox(key, gone, (journal(key, store),))
        assert [entry.kind for entry in store.read_journal(key)] == ["contract"]
        assert not store.withdraw_inbox(key, gone, (journal(key, store),))
        build.change(key, DeliverInbox())
        assert not store.withdraw_inbox(key, kept, (journal(key, store),))
        assert len(store.read_journal(key)) == 1

    def test_its_size_is_counted_up_to_a_limit(self, store: Store, build: Builder) -> None:
        key = build.start()
        assert store.inbox_size(key, 10) == (0, 0)
        for number in range(4):
            store.put_inbox(key, signal(f"s{number}", store.now()))
        count, size = store.inbox_size(key, 10)
        assert count == 4
        assert size >= 4 * len("input of s0")
        assert store.inbox_size(key, 3)[0] == 3

    def test_undelivered_are_old_and_meet_no_started_task(
        self, store: Store, build: Builder
    ) -> None:
        idle, started, empty = build.start(), build.start(), build.start()
        build.claim(started)
        for key in (idle, started):
            store.put_inbox(key, signal("s", store.now()))
        found = store.undelivered(store.now() + MINUTE, MANY)
        assert idle in found
        assert started not in found
        assert empty not in found
        assert idle not in store.undelivered(store.now() - MINUTE, MANY)

    def test_an_activity_that_ends_is_replaced_by_its_fact(
        self, store: Store, build: Builder
    ) -> None:
        key = build.with_activities()
        build.signal(key)
        build.claim(key)
        row = only_activity(store, key)
        started = build.claimed(row)
        assert store.replace_activity(row, started)
        item = build.completion(started)
        assert store.put_inbox(key, item, replaces=row) is None
        assert store.read_inbox(key) == []
        item_id = store.put_inbox(key, item, replaces=started)
        assert item_id is not None
        assert store.read_activities(key) == []
        assert store.read_inbox(key) == [msgspec.structs.replace(item, item_id=item_id)]
        assert store.put_inbox(key, item, replaces=started) is None
