"""What all contracts stand on: threads, a builder of runs, short looks at a store."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TypeVar

import pytest

from wfcore.history.change import Change
from wfcore.history.effects import Journal
from wfcore.history.state import MutableState, PendingActivity
from wfcore.service.ports import (
    RunKey,
    Store,
)
from wfcore.testing.clocks import SequentialIds
from wfcore.testing.port_builders import Builder

T = TypeVar("T")

#: How long a test waits for another thread before it calls it stuck.
PATIENCE = 10.0
#: How long a lock is watched before it counts as held.
WATCHED = 0.2
#: More than a test finds in a database that it shares.
MANY = 10_000
SHORT = timedelta(milliseconds=100)
MINUTE = timedelta(minutes=1)


class PortContract:
    """What both contracts stand on."""

    def apart(self, call: Callable[[], T]) -> "Future[T]":
        """Run a call in a thread of its own; a host with connections closes the thread's there."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future


class StoreContract(PortContract):
    """Shared parts of the contracts of a store."""

    @pytest.fixture
    def store(self) -> Store:
        """The store under test; a host overrides this."""
        raise NotImplementedError

    #: whether another connection may write while one has written; not so on SQLite
    others_may_write = True

    @pytest.fixture
    def build(self, store: Store) -> Builder:
        return Builder(store, SequentialIds(threading.get_ident()))

    def callers_transaction(self, store: Store) -> AbstractContextManager[object]:
        """A block of the calling code that the store joins; a host overrides this."""
        raise NotImplementedError


def run_key(change: Change) -> RunKey:
    """Names the run of a change."""
    recorded = change.state.recorded
    return RunKey(
        namespace=recorded.namespace, workflow_id=recorded.workflow_id, run_id=recorded.run_id
    )


def state_of(store: Store, key: RunKey) -> MutableState:
    """The state of a run that exists."""
    state = store.read_state(key.namespace, key.workflow_id, key.run_id)
    assert state is not None
    return state


def only_activity(store: Store, key: RunKey) -> PendingActivity:
    """The one pending activity of a run."""
    (row,) = store.read_activities(key)
    return row


def journal(key: RunKey, store: Store, kind: str = "contract") -> Journal:
    """An entry about a run."""
    return Journal(
        namespace=key.namespace,
        workflow_id=key.workflow_id,
        run_id=key.run_id,
        at=store.now(),
        kind=kind,
        text="text",
    )


class BrokenError(Exception):
    """What a test breaks a transaction with."""
