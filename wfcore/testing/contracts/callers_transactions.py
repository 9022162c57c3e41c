"""What happens inside a transaction of the calling code."""

import pytest

from wfcore.service.ports import (
    Store,
)
from wfcore.testing.contracts.base import (
    PATIENCE,
    BrokenError,
    StoreContract,
    state_of,
)
from wfcore.testing.port_builders import NAMESPACE, Builder, signal


class CallersTransactionContract(StoreContract):
    """What happens inside a block of the calling code."""

    def test_the_store_knows_the_block(self, store: Store) -> None:
        assert not store.inside_callers_transaction()
        with self.callers_transaction(store):
            assert store.inside_callers_transaction()
        assert not store.inside_callers_transaction()

    def test_a_start_inside_is_seen_inside_only(self, store: Store, build: Builder) -> None:
        with self.callers_transaction(store):
            key = build.start()
            assert store.head(NAMESPACE, key.workflow_id) is not None
            assert state_of(store, key).recorded.run_id == key.run_id
            outside = self.apart(lambda: store.head(NAMESPACE, key.workflow_id))
            assert outside.result(PATIENCE) is None
        assert store.head(NAMESPACE, key.workflow_id) is not None

    def test_a_rollback_of_the_block_takes_all_along(self, store: Store, build: Builder) -> None:
        called: list[int] = []
        with pytest.raises(BrokenError), self.callers_transaction(store):
            key = build.start()
            store.put_inbox(key, signal("s", store.now()))
            store.on_commit(lambda: called.append(1))
            raise BrokenError
        assert store.head(NAMESPACE, key.workflow_id) is None
        assert called == []

    def test_an_error_inside_undoes_only_its_own_part(self, store: Store, build: Builder) -> None:
        called: list[str] = []
        with self.callers_transaction(store):
            kept = build.start()
            store.on_commit(lambda: called.append("kept"))
            lost = build.workflow_id()
            with pytest.raises(BrokenError), store.transaction(NAMESPACE, lost) as tx:
                tx.current()
                tx.save(build.new_run(tx, lost))
                tx.on_commit(lambda: called.append("lost"))
                raise BrokenError
            assert store.head(NAMESPACE, lost) is None
        assert store.head(NAMESPACE, kept.workflow_id) is not None
        assert store.head(NAMESPACE, lost) is None
        assert called == ["kept"]

    def test_calls_wait_for_the_outer_commit(self, store: Store, build: Builder) -> None:
        seen: list[str] = []
        with self.callers_transaction(store):
            workflow_id = build.workflow_id()
            with store.transaction(NAMESPACE, workflow_id) as tx:
                tx.current()
                tx.save(build.new_run(tx, workflow_id))
                tx.on_commit(lambda: seen.append("transaction"))
            store.on_commit(lambda: seen.append("store"))
            assert seen == []
        assert seen == ["transaction", "store"]

    def test_without_a_block_a_call_follows_at_once(self, store: Store) -> None:
        called: list[int] = []
        store.on_commit(lambda: called.append(1))
        assert called == [1]

    def test_an_arrival_inside_takes_no_lock_on_the_run(self, store: Store, build: Builder) -> None:
        key = build.start()
        with self.callers_transaction(store):
            assert store.put_inbox(key, signal("s", store.now())) is not None
            outside = self.apart(lambda: [item.item_id for item in store.read_inbox(key)])
            assert outside.result(PATIENCE) == []
            if self.others_may_write:
                self.apart(lambda: build.claim(key)).result(PATIENCE)
        assert len(store.read_inbox(key)) == 1

    def test_two_starts_of_one_block_and_a_message_between(
        self, store: Store, build: Builder
    ) -> None:
        with self.callers_transaction(store):
            first = build.start()
            store.put_inbox(first, signal("s", store.now()))
            second = build.start()
            assert len(store.read_inbox(first)) == 1
        assert store.read_inbox(second) == []
        assert len(store.read_inbox(first)) == 1
