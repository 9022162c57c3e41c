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


def test_claim_of_activity_writes_one(world: World) -> None:
    world.start()
    world.complete(world.claim(), activity())
    with counting(world.alias) as counted:
        assert world.claim_activity().task_token
    assert counted.writes == 1, counted.texts
