"""Celery tasks as they are, run as activities by real workers."""

import itertools
from datetime import timedelta

import pytest

from tests.integration.celery.conftest import Workers, World
from tests.integration.celery.shop import workflows
from wfapp.client import get_client
from wfcore.client import WorkflowFailureError

LIMIT = timedelta(seconds=30)


def shared(task: str, what: str, *more: object) -> object:
    return get_client().execute_workflow(
        workflows.Shared.run, args=[task, what, list(more)], id=what, timeout=LIMIT
    )


@pytest.mark.usefixtures("worker")
def test_a_task_object_with_its_base_class_and_request(world: World, name: str) -> None:
    answer = shared("shop.receipt", name)
    assert isinstance(answer, dict)
    assert (answer["retries"], answer["copies"]) == (0, 1)
    assert [len(world.rows(f"{name} {hook}")) for hook in ("before_start", "on_success")] == [1, 1]


@pytest.mark.usefixtures("worker")
def test_keyword_arguments(name: str) -> None:
    answer = get_client().execute_workflow(
        workflows.SharedWithKeywords.run, name, id=name, timeout=LIMIT
    )
    assert answer["copies"] == 3


@pytest.mark.usefixtures("worker")
def test_autoretry_makes_durable_attempts_with_celerys_backoff(world: World, name: str) -> None:
    assert shared("shop.unsteady", name, 2) == 2
    rows = world.rows(name)
    assert [row[0] for row in rows] == [1, 2, 3]
    waits = [after[3] - before[3] for before, after in itertools.pairwise(rows)]
    assert 1 <= waits[0] < 3
    assert 2 <= waits[1] < 4
    assert len(world.rows(f"{name} on_retry")) == 2


@pytest.mark.usefixtures("worker")
def test_max_retries_fail_the_activity(world: World, name: str) -> None:
    with pytest.raises(WorkflowFailureError) as raised:
        shared("shop.unsteady", name, 9)
    assert raised.value.cause.__cause__.type == "OSError"
    assert [row[0] for row in world.rows(name)] == [1, 2, 3, 4]


@pytest.mark.usefixtures("worker")
def test_a_task_replaces_itself(world: World, name: str) -> None:
    answer = shared("shop.handover", name)
    assert isinstance(answer, dict)
    assert answer["copies"] == 2
    assert len(world.rows(name)) == 1


@pytest.mark.usefixtures("worker")
def test_a_transactional_task_commits_with_its_completion(world: World, name: str) -> None:
    assert shared("shop.stock", name) == f"{name} stocked"
    assert len(world.rows(name)) == 1
    journal = (
        "SELECT count(*) FROM wfapp_runjournal AS journal "
        "JOIN wfapp_workflowexecution AS run ON run.run_id = journal.run_id "
        "WHERE journal.kind = 'late_result' AND run.workflow_id = %s"
    )
    assert world.ask(journal, name) == [(0,)]


@pytest.mark.usefixtures("worker")
def test_a_soft_time_limit_reaches_the_body(world: World, name: str) -> None:
    assert shared("shop.slow", name) == "stopped softly"
    assert [row[2] for row in world.rows(name)] == [True]


@pytest.mark.usefixtures("worker")
def test_a_hard_time_limit_fails_the_activity_once(world: World, name: str) -> None:
    with pytest.raises(WorkflowFailureError) as raised:
        shared("shop.endless", name)
    assert raised.value.cause.__cause__.type == "TimeLimitExceeded"
    assert [row[0] for row in world.rows(name)] == [1]


def test_routes_hold(workers: Workers, name: str) -> None:
    workers.start(queues=["celery", "orders"])
    workers.start(queues=["mail"])
    assert shared("shop.routed", name) == "mail"
    on_orders = {"id": f"{name}-o", "task_queue": "orders", "timeout": LIMIT}
    routed = ["shop.routed", f"{name}-o", []]
    unrouted = ["shop.where", f"{name}-w", []]
    client = get_client()
    assert client.execute_workflow(workflows.Shared.run, args=routed, **on_orders) == "mail"
    on_orders["id"] = f"{name}-w"
    assert client.execute_workflow(workflows.Shared.run, args=unrouted, **on_orders) == "orders"
