"""Updates: rows of a run that are found by their ids, open or closed."""

import threading

import pytest

from wfcore.exceptions import NotFoundError
from wfcore.history.requests import AdmitUpdate
from wfcore.history.updates import Update
from wfcore.protocol.failures import Failure
from wfcore.protocol.updates import (
    Acceptance,
    Input,
    Meta,
    Outcome,
    ProtocolMessage,
    Rejection,
    Request,
    Response,
)
from wfcore.service.ports import RunKey, Store
from wfcore.testing.contracts.base import PATIENCE, BrokenError, StoreContract, state_of
from wfcore.testing.port_builders import NAMESPACE, Builder, payloads


def order(update_id: str = "u") -> AdmitUpdate:
    """An update with user data."""
    request = Request(
        meta=Meta(update_id=update_id, identity="contract"),
        input=Input(name="set", args=payloads(f"input of {update_id}")),
    )
    return AdmitUpdate(update_id=update_id, request=request)


def accepted(update_id: str = "u") -> ProtocolMessage:
    """A worker's acceptance."""
    return ProtocolMessage(id=f"{update_id}/a", protocol_instance_id=update_id, body=Acceptance())


def rejected(update_id: str = "u") -> ProtocolMessage:
    """A worker's refusal."""
    body = Rejection(failure=Failure(message="no"))
    return ProtocolMessage(id=f"{update_id}/x", protocol_instance_id=update_id, body=body)


def completed(update_id: str = "u") -> ProtocolMessage:
    """A worker's result."""
    body = Response(meta=Meta(update_id=update_id), outcome=Outcome(success=payloads("result")))
    return ProtocolMessage(id=f"{update_id}/c", protocol_instance_id=update_id, body=body)


class UpdateContract(StoreContract):
    """Updates: rows of a run that are found by their ids, open or closed."""

    def test_an_admitted_update_comes_back_whole(self, store: Store, build: Builder) -> None:
        key = build.start()
        assert store.read_update(key, "u") is None
        build.change(key, order())
        expected = Update(update_id="u", admission=1, request=order().request)
        assert store.read_update(key, "u") == expected
        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            tx.load(key.run_id)
            assert tx.updates(key.run_id, ("none", "u")) == [expected]
            assert tx.updates(key.run_id, ()) == []

    def test_it_is_replaced_as_it_goes_on(self, store: Store, build: Builder) -> None:
        key = build.start()
        build.change(key, order())
        build.answer(key, build.claim(key), messages=(accepted(),))
        row = store.read_update(key, "u")
        assert row is not None
        assert (row.request, row.accepted_event_id, row.completed_event_id) == (None, 5, 0)
        build.signal(key)
        build.answer(key, build.claim(key), messages=(completed(),))
        row = store.read_update(key, "u")
        assert row is not None
        assert (row.accepted_event_id, row.completed_event_id) == (5, 10)

    def test_a_refused_one_is_replaced_by_the_next_of_its_id(
        self, store: Store, build: Builder
    ) -> None:
        key = build.start()
        build.change(key, order())
        build.answer(key, build.claim(key), messages=(rejected(),))
        row = store.read_update(key, "u")
        assert row is not None
        assert row.rejection == Failure(message="no")
        build.change(key, order())
        again = store.read_update(key, "u")
        assert again is not None
        assert (again.admission, again.request) == (2, order().request)

    def test_a_row_may_go_away(self, store: Store, build: Builder) -> None:
        key = build.start()
        build.change(key, order())
        build.change(key, order("v"), lambda change: change.update_rows.update({"u": None}))
        assert store.read_update(key, "u") is None
        assert store.read_update(key, "v") is not None

    def test_a_task_that_leaves_no_event_is_kept_and_found(
        self, store: Store, build: Builder
    ) -> None:
        key = build.start()
        build.complete(key)
        build.change(key, order())
        task = state_of(store, key).volatile.task
        assert task is not None
        assert task.is_speculative
        assert len(store.read_events(key)) == 4
        build.answer(key, build.claim(key, owner="boot"), messages=(rejected(),))
        assert state_of(store, key).volatile.task is None
        assert len(store.read_events(key)) == 4

    def test_many_are_read_and_written_at_once(self, store: Store, build: Builder) -> None:
        key = build.start()
        names = [f"u{number}" for number in range(10)]
        for name in names:
            build.change(key, order(name))
        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            tx.load(key.run_id)
            assert {row.update_id for row in tx.updates(key.run_id, names)} == set(names)
        build.answer(key, build.claim(key), messages=tuple(map(accepted, names)))
        rows = [store.read_update(key, name) for name in names]
        assert [row.accepted_event_id for row in rows if row is not None] == list(range(5, 15))

    def test_a_closed_run_keeps_them(self, store: Store, build: Builder) -> None:
        key = build.start()
        build.change(key, order())
        build.answer(key, build.claim(key), messages=(accepted(), completed()))
        build.terminate(key)
        row = store.read_update(key, "u")
        assert row is not None
        assert row.completed_event_id == 6
        with pytest.raises(NotFoundError):
            build.change(key, order("v"))
        assert store.read_update(key, "v") is None

    def test_a_failed_transaction_leaves_none(self, store: Store, build: Builder) -> None:
        key = build.start()

        def fail(_change: object) -> None:
            raise BrokenError

        with pytest.raises(BrokenError):
            build.change(key, order(), fail)
        assert store.read_update(key, "u") is None
        assert state_of(store, key).volatile.updates == {}

    def test_runs_do_not_share_ids(self, store: Store, build: Builder) -> None:
        key, other = build.start(), build.start()
        build.change(key, order())
        assert store.read_update(other, "u") is None
        unknown = RunKey(namespace=NAMESPACE, workflow_id="none", run_id=key.run_id)
        assert store.read_update(unknown, "u") is None

    def test_of_one_id_at_once_one_is_admitted(self, store: Store, build: Builder) -> None:
        key = build.start()
        together = threading.Barrier(3)

        def send() -> None:
            together.wait(PATIENCE)
            build.change(key, order())

        for sending in [self.apart(send) for _ in range(3)]:
            sending.result(PATIENCE)
        row = store.read_update(key, "u")
        assert row is not None
        assert row.admission == 1
