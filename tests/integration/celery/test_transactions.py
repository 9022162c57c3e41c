"""Starts, signals and waits inside the caller's transaction."""

import contextlib
import os
import signal
import threading
import time
from datetime import timedelta

import pytest
from django.db import connections, transaction

from tests.integration.celery.conftest import ALIAS, World
from tests.integration.celery.shop import workflows
from tests.support.waiting import wait_until
from wfapp.client import get_client
from wfcore.exceptions import (
    NotFoundError,
    TransactionAliasError,
    WaitInsideTransactionError,
    WorkflowAlreadyStartedError,
)

pytestmark = pytest.mark.usefixtures("worker")

LIMIT = timedelta(seconds=30)
#: S11 asks for so many starts in each case
STARTS = 50


class TakeBackError(Exception):
    """Rolls a block back."""


def order(what: str) -> None:
    """The caller's own data: the activity must find it."""
    with connections[ALIAS].cursor() as cursor:
        cursor.execute("INSERT INTO ledger (what, attempt, pid) VALUES (%s, 0, 0)", [what])


def test_a_start_joins_the_transaction_and_its_first_activity_finds_the_data(
    world: World, name: str
) -> None:
    """S11 (a)."""
    for number in range(STARTS):
        what = f"{name}-{number}"
        with transaction.atomic(using=ALIAS):
            order(what)
            handle = get_client().start_workflow(workflows.FindOrder.run, what, id=what)
            assert handle.id == what
            assert handle.result_run_id
            if number == 0:
                # Another session sees neither row nor run, whatever time passes.
                assert not seen_by_others(what)
    for number in range(STARTS):
        what = f"{name}-{number}"
        assert get_client().get_workflow_handle(what).result(timeout=LIMIT) == 1


def seen_by_others(workflow_id: str) -> bool:
    found: list[bool] = []

    def look() -> None:
        found.append(bool(list(get_client().list_workflows(f"WorkflowId = '{workflow_id}'"))))
        connections.close_all()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return found[0]


def test_nothing_exists_after_a_rollback(world: World, name: str) -> None:
    """S11 (b)."""
    before = world.ask("SELECT count(*) FROM wfapp_historyevent")
    for number in range(STARTS):
        with contextlib.suppress(TakeBackError), transaction.atomic(using=ALIAS):
            order(f"{name}-{number}")
            get_client().start_workflow(
                workflows.FindOrder.run, f"{name}-{number}", id=f"{name}-{number}"
            )
            raise TakeBackError
    assert world.ask("SELECT count(*) FROM wfapp_historyevent") == before
    with pytest.raises(NotFoundError):
        get_client().get_workflow_handle(f"{name}-0").describe()


def test_a_savepoint_takes_its_own_start_back(world: World, name: str) -> None:
    """S11 (d)."""
    client = get_client()
    for number in range(STARTS):
        with transaction.atomic(using=ALIAS):
            client.start_workflow(workflows.Hello.run, "outer", id=f"{name}-outer-{number}")
            with contextlib.suppress(TakeBackError), transaction.atomic(using=ALIAS):
                client.start_workflow(workflows.Hello.run, "inner", id=f"{name}-inner-{number}")
                raise TakeBackError
    for number in range(STARTS):
        assert client.get_workflow_handle(f"{name}-outer-{number}").result(timeout=LIMIT)
        with pytest.raises(NotFoundError):
            client.get_workflow_handle(f"{name}-inner-{number}").describe()


def test_starts_with_the_broker_away_run_when_it_is_back(world: World, name: str) -> None:
    """S11 (c)."""
    world.redis.stop()
    try:
        for number in range(STARTS):
            with transaction.atomic(using=ALIAS):
                order(f"{name}-{number}")
                get_client().start_workflow(
                    workflows.FindOrder.run, f"{name}-{number}", id=f"{name}-{number}"
                )
    finally:
        world.redis.start()
    for number in range(STARTS):
        handle = get_client().get_workflow_handle(f"{name}-{number}")
        assert handle.result(timeout=timedelta(seconds=40)) == 1


def test_an_id_in_use_does_not_break_the_callers_transaction(world: World, name: str) -> None:
    get_client().start_workflow(workflows.Counter.run, id=name)
    with transaction.atomic(using=ALIAS):
        with pytest.raises(WorkflowAlreadyStartedError):
            get_client().start_workflow(workflows.Counter.run, id=name)
        order(name)
    assert len(world.rows(name)) == 1
    get_client().get_workflow_handle(name).terminate()


def test_signals_and_cancels_are_delivered_after_the_commit(world: World, name: str) -> None:
    handle = get_client().start_workflow(workflows.Counter.run, id=name)
    with contextlib.suppress(TakeBackError), transaction.atomic(using=ALIAS):
        handle.signal(workflows.Counter.add, 100)
        raise TakeBackError
    with transaction.atomic(using=ALIAS):
        handle.signal(workflows.Counter.add, 1)
        handle.signal(workflows.Counter.finish)
    assert handle.result(timeout=LIMIT) == 1


@pytest.mark.parametrize("call", ["result", "execute", "query"])
def test_waiting_inside_a_transaction_is_refused_in_words(
    world: World, name: str, call: str
) -> None:
    client = get_client()
    handle = client.get_workflow_handle(name)
    calls = {
        "result": handle.result,
        "execute": lambda: client.execute_workflow(workflows.Hello.run, "x", id=name),
        "query": lambda: handle.query("total"),
    }
    with transaction.atomic(using=ALIAS):
        with pytest.raises(WaitInsideTransactionError, match="ATOMIC_REQUESTS"):
            calls[call]()
        with pytest.raises(NotFoundError):
            handle.describe()


def test_a_transaction_on_another_database_is_refused_unless_detached(
    world: World, name: str
) -> None:
    from settings.databases import from_url

    connections.settings["elsewhere"] = from_url(world.services.database_url)
    connections.configure_settings(connections.settings)
    try:
        with transaction.atomic(using="elsewhere"):
            with pytest.raises(TransactionAliasError, match="detached=True"):
                get_client().start_workflow(workflows.Hello.run, "x", id=name)
            handle = get_client().start_workflow(workflows.Hello.run, "x", id=name, detached=True)
    finally:
        connections["elsewhere"].close()
        del connections["elsewhere"]
        del connections.settings["elsewhere"]
    assert handle.result(timeout=LIMIT) == "Hello, x!"


def test_a_detached_start_outlives_a_rollback(world: World, name: str) -> None:
    with contextlib.suppress(TakeBackError), transaction.atomic(using=ALIAS):
        handle = get_client().start_workflow(workflows.Hello.run, "x", id=name, detached=True)
        raise TakeBackError
    assert handle.result(timeout=LIMIT) == "Hello, x!"


def test_no_view_waits_for_a_broker_that_hangs(world: World, name: str) -> None:
    pid = int((world.redis.directory / "pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        durations = []
        for number in range(4):
            begun = time.monotonic()
            get_client().start_workflow(workflows.Hello.run, "x", id=f"{name}-{number}")
            durations.append(time.monotonic() - begun)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert max(durations) < 2
    assert sum(durations) < 3, "after the first failure nobody waits"
    for number in range(4):
        handle = get_client().get_workflow_handle(f"{name}-{number}")
        wait_until(
            lambda handle=handle: handle.describe().status.name == "COMPLETED",
            seconds=40,
            what="the ticker to send what was not sent",
        )
