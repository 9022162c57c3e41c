"""Inside the calling code's transactions: what is done there is true if and only if they commit."""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import connections, transaction
from django.test import TestCase

from tests.integration.store.worlds import World, close, counting, together
from wfapp import signals
from wfapp.models import RunJournal
from wfcore.history.state import InboxItem
from wfcore.protocol.events import WorkflowExecutionSignaled


@pytest.fixture
def world(alias: str) -> World:
    return World(alias)


class RolledBackError(Exception):
    pass


def test_a_savepoint_that_is_rolled_back_leaves_no_run(world: World) -> None:
    with transaction.atomic(using=world.alias):
        kept = world.start("kept")
        with suppress(RolledBackError), transaction.atomic(using=world.alias):
            world.start("dropped")
            raise RolledBackError
    assert world.store.head("default", "dropped") is None
    assert world.history(kept) == ["STARTED", "WORKFLOW_TASK_SCHEDULED"]


def test_an_error_of_a_start_leaves_the_callers_block_usable(world: World) -> None:
    world.start()
    with transaction.atomic(using=world.alias):
        kept = world.start("kept")
        with pytest.raises(Exception, match="already running"):
            world.start()
    assert world.history(kept) == ["STARTED", "WORKFLOW_TASK_SCHEDULED"]


def test_calls_after_commit_are_dropped_with_their_savepoint(world: World) -> None:
    called: list[str] = []
    with transaction.atomic(using=world.alias):
        with suppress(RolledBackError), transaction.atomic(using=world.alias):
            with world.store.transaction("default", "wf") as tx:
                tx.on_commit(lambda: called.append("dropped"))
            raise RolledBackError
        world.store.on_commit(lambda: called.append("kept"))
        assert called == []
    assert called == ["kept"]


def test_a_call_that_fails_breaks_neither_the_others_nor_the_caller(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    called: list[str] = []

    def broken() -> None:
        raise RolledBackError

    with (
        caplog.at_level(logging.CRITICAL, "django.db.backends.base"),
        transaction.atomic(using=world.alias),
    ):
        world.store.on_commit(broken)
        world.store.on_commit(lambda: called.append("next"))
    assert called == ["next"]


def test_the_callers_transaction_is_recognised(world: World) -> None:
    store = world.store
    assert not store.inside_callers_transaction()
    with transaction.atomic(using=world.alias):
        assert store.inside_callers_transaction()
    assert not store.inside_callers_transaction()


def test_manual_transactions_are_the_callers_too(postgres: str) -> None:
    """Not on SQLite, where Django's savepoints commit when autocommit is off."""
    world = World(postgres)
    transaction.set_autocommit(False, using=world.alias)
    try:
        assert world.store.inside_callers_transaction()
        world.start()
        transaction.rollback(using=world.alias)
    finally:
        transaction.set_autocommit(True, using=world.alias)
    assert world.store.head("default", "wf") is None


def test_the_block_of_a_test_case_is_not_the_callers(world: World) -> None:
    block = transaction.atomic(using=world.alias)
    block._from_testcase = True  # what TestCase does
    assert "_from_testcase" in TestCase._enter_atomics.__func__.__code__.co_names
    with block:
        assert not world.store.inside_callers_transaction()
        with transaction.atomic(using=world.alias):
            assert world.store.inside_callers_transaction()


def test_a_block_on_another_alias_is_told(postgres: str, sqlite: str) -> None:
    world = World(postgres)
    assert world.store.open_elsewhere() == ""
    with transaction.atomic(using=sqlite):
        assert world.store.open_elsewhere() == sqlite
        assert not world.store.inside_callers_transaction()
    with transaction.atomic(using=postgres):
        assert world.store.open_elsewhere() == ""


def test_nothing_of_the_bound_for_locks_stays_in_a_session(postgres: str) -> None:
    world = World(postgres)

    def bound() -> str:
        with connections[postgres].cursor() as cursor:
            cursor.execute("SELECT current_setting('lock_timeout')")
            return str(cursor.fetchone()[0])

    key = world.start()
    world.signal(key, request_id="r")
    assert bound() == "0"
    with transaction.atomic(using=postgres):
        with connections[postgres].cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '7s'")
        world.start("joined")
        world.signal(key, request_id="s")
        assert bound() == "7s"


def test_outside_of_a_block_an_arrival_is_one_round_trip(postgres: str) -> None:
    world = World(postgres)
    key = world.start()
    world.claim()
    fact = WorkflowExecutionSignaled(signal_name="go")
    item = InboxItem(event_time=world.store.now(), attributes=fact)
    with counting(postgres) as counted:
        assert world.store.put_inbox(key, item, request_id="r")
        assert world.store.put_inbox(key, item, request_id="r") is None
    assert len(counted.texts) == 2


# ---- Django's signals


class Heard:
    """What receivers were told."""

    def __init__(self) -> None:
        self.facts: list[dict[str, Any]] = []

    def __call__(self, **facts: Any) -> None:
        facts.pop("signal")
        facts.pop("sender")
        self.facts.append(facts)


@pytest.fixture
def listen() -> Any:
    connected = []

    def to(signal: Any) -> Heard:
        heard = Heard()
        signal.connect(heard)
        connected.append((signal, heard))
        return heard

    yield to
    for signal, heard in connected:
        signal.disconnect(heard)


def test_a_start_is_told_after_the_callers_commit(
    world: World, listen: Callable[[Any], Heard]
) -> None:
    heard = listen(signals.run_started)
    with transaction.atomic(using=world.alias):
        key = world.start()
        assert heard.facts == []
    assert heard.facts == [
        {
            "namespace": "default",
            "workflow_id": "wf",
            "run_id": key.run_id,
            "workflow_type": "Order",
        }
    ]


def test_a_close_is_told_with_its_status(world: World, listen: Callable[[Any], Heard]) -> None:
    heard = listen(signals.run_closed)
    world.start()
    world.complete(world.claim(), close())
    assert [fact["status"].name for fact in heard.facts] == ["COMPLETED"]


def test_a_receiver_that_fails_breaks_nobody(world: World, listen: Callable[[Any], Heard]) -> None:
    def broken(**_: Any) -> None:
        raise RolledBackError

    signals.run_started.connect(broken)
    try:
        heard = listen(signals.run_started)
        world.start()
    finally:
        signals.run_started.disconnect(broken)
    assert len(heard.facts) == 1


def test_a_signal_that_came_too_late_is_journalled_and_told(
    postgres: str, listen: Callable[[Any], Heard]
) -> None:
    """Recorded inside a transaction, it is delivered after the commit, and the run has closed."""
    world = World(postgres)
    heard = listen(signals.signal_undeliverable)
    key = world.start()
    task = world.claim()
    with transaction.atomic(using=postgres):
        world.signal(key)
        assert together(lambda: world.complete(task, close())) == [None]
    assert [fact["run_id"] for fact in heard.facts] == [key.run_id]
    assert "WorkflowExecutionSignaled" in heard.facts[0]["text"]
    entries = RunJournal.objects.using(postgres).filter(run_id=key.run_id)
    assert [entry.kind for entry in entries] == [signals.LATE_ARRIVAL]
    assert world.store.read_inbox(key) == []
