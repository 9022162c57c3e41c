"""What each kind of transition costs: statements that write, and those that read."""

import pytest

from tests.integration.store.worlds import (
    World,
    activity,
    close,
    counting,
    memo,
    search_attributes,
    timer,
)
from wfapp.models import AuditEntry


@pytest.fixture
def world(alias: str) -> World:
    world = World(alias)
    world.store.namespace("default")
    return world


def test_start_writes_four(world: World) -> None:
    with counting(world.alias) as counted:
        world.start()
    assert (counted.writes, counted.reads) == (4, 1), counted.texts


def test_memo_and_search_attributes_cost_one_each(world: World) -> None:
    with counting(world.alias) as counted:
        world.start(memo=memo(a="1", b="2"), search_attributes=search_attributes(C="1", D="2"))
    assert counted.writes == 6, counted.texts


def test_task_that_schedules_nothing_writes_two(world: World) -> None:
    world.start()
    task = world.claim()
    with counting(world.alias) as counted:
        world.complete(task, timer())
    assert counted.writes == 2, counted.texts


def test_activities_cost_one_however_many(world: World) -> None:
    world.start()
    task = world.claim()
    with counting(world.alias) as counted:
        world.complete(task, *(activity(f"a{number}") for number in range(30)))
    assert counted.writes == 3, counted.texts


def test_drained_inbox_costs_one(world: World) -> None:
    key = world.start()
    task = world.claim()
    world.signal(key)
    world.signal(key)
    with counting(world.alias) as counted:
        world.complete(task, timer())
    assert counted.writes == 3, counted.texts


def test_close_writes_four(world: World) -> None:
    world.start()
    task = world.claim()
    with counting(world.alias) as counted:
        world.complete(task, close())
    assert counted.writes == 4, counted.texts


def test_claim_of_workflow_task_writes_two(world: World) -> None:
    world.start()
    with counting(world.alias) as counted:
        assert world.claim().task_token
    assert counted.writes == 2, counted.texts


def test_a_transaction_that_only_looked_does_not_wait_for_the_disk(world: World) -> None:
    key = world.start()
    with counting(world.alias) as counted, world.store.transaction("default", "wf") as tx:
        tx.current()
        tx.load(key.run_id)
        tx.inbox(key.run_id)
    assert counted.texts[-1] == "ROLLBACK"


def test_what_the_calling_code_writes_in_a_transaction_is_committed(world: World) -> None:
    """Through the ORM too, and with calls that wait for the commit."""
    called: list[int] = []
    with world.store.transaction("default", "wf") as tx:
        AuditEntry.objects.using(world.alias).create(at=0, actor="ann", action="look")
    assert AuditEntry.objects.using(world.alias).count() == 1
    with world.store.transaction("default", "wf") as tx:
        tx.on_commit(lambda: called.append(1))
    assert called == [1]


def test_claim_of_activity_writes_one(world: World) -> None:
    world.start()
    world.complete(world.claim(), activity())
    with counting(world.alias) as counted:
        assert world.claim_activity().task_token
    assert counted.writes == 1, counted.texts
