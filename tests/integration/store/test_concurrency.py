"""Threads with connections of their own, on PostgreSQL: of two that meet one wins, none is lost."""

import threading
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections, transaction

from tests.integration.store.worlds import World, activity, close, timer, together
from tests.support.waiting import wait_until
from wfapp.models import InboxItem
from wfcore.exceptions import (
    StartContendedError,
    UnavailableError,
    WorkflowExecutionAlreadyStartedError,
)
from wfcore.history import transition
from wfcore.history.change import Change
from wfcore.history.requests import CompleteTask
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.service.arriving import deliver
from wfcore.service.ports import RunBusyError


@pytest.fixture
def world(postgres: str) -> World:
    return World(postgres)


def waiting_for_locks(world: World) -> int:
    """How many sessions wait for a lock; unlike pg_stat_activity, also within a transaction."""
    with connections[world.alias].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return int(cursor.fetchone()[0])


def test_of_many_claims_of_a_workflow_task_one_gets_it(world: World) -> None:
    world.start()
    answers = together(*(world.claim for _ in range(6)))
    assert sorted(bool(answer.task_token) for answer in answers) == [False] * 5 + [True]


def test_of_many_claims_of_an_activity_one_gets_it(world: World) -> None:
    world.start()
    world.complete(world.claim(), activity())
    answers = together(*(world.claim_activity for _ in range(6)))
    assert sorted(bool(answer.task_token) for answer in answers) == [False] * 5 + [True]


def test_starts_of_one_workflow_id_make_one_run(world: World) -> None:
    answers = together(*(world.start for _ in range(6)))
    started = [answer for answer in answers if not isinstance(answer, Exception)]
    refused = [answer for answer in answers if isinstance(answer, Exception)]
    assert len(started) == 1
    assert all(isinstance(error, WorkflowExecutionAlreadyStartedError) for error in refused)
    assert world.history(started[0]) == ["STARTED", "WORKFLOW_TASK_SCHEDULED"]


def test_starts_with_one_request_id_are_one_start(world: World) -> None:
    answers = together(*(lambda: world.start(request_id="same") for _ in range(6)))
    assert len({answer.run_id for answer in answers}) == 1


def test_starts_after_a_closed_run_make_one_more(world: World) -> None:
    world.start()
    world.complete(world.claim(), close())
    answers = together(*(world.start for _ in range(6)))
    assert sum(not isinstance(answer, Exception) for answer in answers) == 1


def test_signals_that_race_with_commits_are_all_recorded(world: World) -> None:
    key = world.start()
    rounds, senders = 12, 4
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            task = world.claim()
            if task.task_token:
                world.complete(task)

    def send(sender: int) -> None:
        for number in range(rounds):
            world.signal(key, f"{sender}", request_id=f"{sender}-{number}")
            world.signal(key, f"{sender}", request_id=f"{sender}-{number}")

    def senders_then_stop() -> list[object]:
        try:
            return together(*(lambda sender=sender: send(sender) for sender in range(senders)))
        finally:
            stop.set()

    answers = together(work, senders_then_stop)
    assert answers == [None, [None] * senders]

    def all_recorded() -> bool:
        # What the last commit left is the ticker's; here its part is done by hand.
        for waiting in world.store.undelivered(world.store.now(), 100):
            deliver(world.service.host, waiting)
        return world.history(key).count("SIGNALED") == rounds * senders

    wait_until(all_recorded, what="every signal in the history, once")


def test_a_signal_stored_while_the_answer_commits_is_taken_in_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit has not seen its row; the sender waits for the commit before it looks again."""
    key = world.start()
    task = world.claim()
    real = transition.apply
    stored = threading.Event()
    put = world.store.put_inbox

    def noted(*given: Any, **named: Any) -> int | None:
        try:
            return put(*given, **named)
        finally:
            stored.set()

    def send() -> None:
        world.signal(key)
        connections.close_all()

    sender = threading.Thread(target=send)

    def apply(change: Change, request: Any, limits: Any) -> Any:
        if isinstance(request, CompleteTask):
            sender.start()
            assert stored.wait(10)
        return real(change, request, limits)

    monkeypatch.setattr(world.store, "put_inbox", noted)
    monkeypatch.setattr(transition, "apply", apply)
    world.complete(task)
    sender.join(10)
    assert world.history(key)[-2:] == ["SIGNALED", "WORKFLOW_TASK_SCHEDULED"]


def test_a_withdrawn_arrival_is_not_recorded(world: World) -> None:
    """Who withdraws while a commit takes the row in waits for it, and is told that it came late."""
    key = world.start()
    task = world.claim()
    world.signal(key)
    item = InboxItem.objects.using(world.alias).get()
    holding, go_on = threading.Event(), threading.Event()

    def commit() -> None:
        with world.store.transaction(key.namespace, key.workflow_id) as tx:
            tx.load(key.run_id)
            assert [each.item_id for each in tx.inbox(key.run_id)] == [item.id]
            holding.set()
            assert go_on.wait(20)

    def withdraw() -> bool:
        assert holding.wait(20)
        return world.store.withdraw_inbox(key, item.id)

    def release() -> None:
        assert holding.wait(20)
        wait_until(lambda: waiting_for_locks(world), what="the withdrawal to wait")
        go_on.set()

    assert together(commit, withdraw, release) == [None, True, None]
    world.complete(task)
    assert "SIGNALED" not in world.history(key)


def test_a_run_that_is_held_is_busy_after_the_wait(world: World) -> None:
    key = world.start()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with world.store.transaction(key.namespace, key.workflow_id) as tx:
            tx.load(key.run_id)
            held.set()
            assert done.wait(20)

    def ask() -> None:
        assert held.wait(20)
        try:
            with (
                pytest.raises(RunBusyError),
                world.store.transaction(
                    key.namespace, key.workflow_id, wait=timedelta(milliseconds=50)
                ) as tx,
            ):
                tx.load(key.run_id)
        finally:
            done.set()

    assert together(hold, ask) == [None, None]


def test_the_clock_is_read_after_the_wait_for_the_lock(world: World) -> None:
    key = world.start()
    held, done = threading.Event(), threading.Event()

    def hold() -> object:
        with world.store.transaction(key.namespace, key.workflow_id) as tx:
            tx.load(key.run_id)
            held.set()
            wait_until(lambda: waiting_for_locks(world), what="the other one to wait")
            ended = world.store.now()
        done.set()
        return ended

    def ask() -> object:
        assert held.wait(20)
        with world.store.transaction(key.namespace, key.workflow_id) as tx:
            tx.load(key.run_id)
            return tx.now

    ended, read = together(hold, ask)
    assert read >= ended


def test_start_waits_for_another_open_transaction_only_so_long(world: World) -> None:
    service = world.service
    service.host = replace(service.host, start_wait=timedelta(milliseconds=100))
    begun, done = threading.Event(), threading.Event()

    def first() -> None:
        with transaction.atomic(using=world.alias):
            world.start()
            begun.set()
            assert done.wait(20)

    def second() -> object:
        assert begun.wait(20)
        try:
            with transaction.atomic(using=world.alias):
                with pytest.raises(StartContendedError):
                    world.start()
                # The caller's block goes on, and its own bound for locks is as before.
                with connections[world.alias].cursor() as cursor:
                    cursor.execute("SELECT current_setting('lock_timeout')")
                    return cursor.fetchone()[0]
        finally:
            done.set()

    assert together(first, second) == [None, "0"]


def test_start_goes_ahead_when_the_other_transaction_rolls_back(world: World) -> None:
    begun = threading.Event()

    class RolledBackError(Exception):
        pass

    def first() -> None:
        with suppress(RolledBackError), transaction.atomic(using=world.alias):
            world.start()
            begun.set()
            wait_until(lambda: waiting_for_locks(world), what="the other start to wait")
            raise RolledBackError

    def second() -> object:
        assert begun.wait(20)
        return world.start()

    none, key = together(first, second)
    assert none is None
    assert world.history(key) == ["STARTED", "WORKFLOW_TASK_SCHEDULED"]


def test_starts_in_opposite_order_end_the_deadlock(world: World) -> None:
    """PostgreSQL ends one of the two; its block goes on and the other's start is recorded."""
    both = threading.Barrier(2)

    def starting(first: str, second: str) -> object:
        with transaction.atomic(using=world.alias):
            world.start(first)
            both.wait(20)
            try:
                world.start(second)
            except StartContendedError as error:
                return error
            except WorkflowExecutionAlreadyStartedError as error:
                return error
        return None

    answers = together(lambda: starting("a", "b"), lambda: starting("b", "a"))
    assert any(isinstance(answer, StartContendedError) for answer in answers)
    assert all(world.store.head("default", name) is not None for name in "ab")


def kill_this_session(world: World) -> None:
    with connections[world.alias].cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = cursor.fetchone()[0]

    def kill() -> None:
        with connections[world.alias].cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])

    assert together(kill) == [None]


def test_a_connection_killed_in_a_transaction_leaves_nothing_half_written(world: World) -> None:
    key = world.start()
    task = world.claim()
    before = world.history(key)

    def half() -> None:
        with world.store.transaction(key.namespace, key.workflow_id) as tx:
            tx.load(key.run_id)
            assert not tx.seen_request(key.run_id, "half")
            kill_this_session(world)
            tx.inbox(key.run_id)

    with pytest.raises(UnavailableError):
        half()
    assert world.history(key) == before
    # The next transaction has a new connection, and nothing of the lost one.
    with world.store.transaction(key.namespace, key.workflow_id) as tx:
        tx.load(key.run_id)
        assert not tx.seen_request(key.run_id, "half")
    world.complete(task, timer())


def test_a_connection_that_died_while_idle_is_replaced_by_a_read(world: World) -> None:
    key = world.start()
    kill_this_session(world)
    head = world.store.head(key.namespace, key.workflow_id)
    assert head is not None
    assert head.status is Status.RUNNING


def test_a_write_on_a_dead_connection_says_so_and_the_next_one_works(world: World) -> None:
    key = world.start()
    kill_this_session(world)
    with pytest.raises(UnavailableError):
        world.store.withdraw_inbox(key, 1)
    assert world.store.withdraw_inbox(key, 1) is False
