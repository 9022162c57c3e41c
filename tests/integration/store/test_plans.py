"""Every question that is asked again and again is answered from an index."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connections, transaction

from tests.integration.store.worlds import NAMESPACE, QUEUE, World, activity, counting
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.service.ports import RunFilter

ASKED: dict[str, tuple[Callable[[World], object], tuple[str, ...]]] = {
    "due runs": (
        lambda world: world.store.due_runs(world.store.now(), 100),
        ("wfapp_state_due",),
    ),
    "due activities": (
        lambda world: world.store.due_activities(world.store.now(), 100),
        ("wfapp_activity_due",),
    ),
    "next due": (
        lambda world: world.store.next_due(),
        ("wfapp_state_due", "wfapp_activity_due"),
    ),
    "undelivered": (
        lambda world: world.store.undelivered(world.store.now(), 100),
        ("wfapp_inbox_age",),
    ),
    "unclaimed workflow tasks": (
        lambda world: world.store.unclaimed_workflow_tasks(NAMESPACE, QUEUE, 10),
        ("wfapp_state_unclaimed",),
    ),
    "unclaimed activities": (
        lambda world: world.store.unclaimed_activities(NAMESPACE, QUEUE, world.store.now(), 10),
        ("wfapp_activity_unclaimed",),
    ),
    "claims": (
        lambda world: world.store.claims_of("boot-1", 10),
        ("wfapp_state_owner", "wfapp_activity_owner"),
    ),
    "list": (
        lambda world: world.store.list_runs(NAMESPACE, RunFilter(), limit=10),
        ("wfapp_run_start",),
    ),
    "list by status": (
        lambda world: world.store.list_runs(
            NAMESPACE, RunFilter(statuses=(Status.RUNNING,)), limit=10
        ),
        ("wfapp_run_status",),
    ),
    "list by type": (
        lambda world: world.store.list_runs(NAMESPACE, RunFilter(workflow_type="Order"), limit=10),
        ("wfapp_run_type",),
    ),
    "list by workflow id": (
        lambda world: world.store.list_runs(NAMESPACE, RunFilter(workflow_id="wf-1"), limit=10),
        ("wfapp_run_wid",),
    ),
}


@pytest.fixture
def world(alias: str) -> World:
    world = World(alias)
    for number in range(3):
        world.start(f"wf-{number}", workflow_run_timeout=timedelta(hours=number + 1))
    world.complete(world.claim(), activity())
    return world


@pytest.mark.parametrize("question", ASKED)
def test_the_index_is_used(world: World, question: str) -> None:
    ask, indexes = ASKED[question]
    with counting(world.alias) as counted:
        ask(world)
    texts = [text for text in counted.texts if " FROM " in text and "clock_timestamp" not in text]
    plan = "\n".join(explain(world.alias, text) for text in texts)
    if question == "undelivered" and connections[world.alias].vendor == "sqlite":
        indexes = (
            "wfapp_inbox_run",
        )  # its planner goes by the runs, in the small table of arrivals
    missing = [index for index in indexes if index not in plan]
    assert not missing, plan
    assert "TEMP B-TREE FOR ORDER BY" not in plan or question == "undelivered", plan


def explain(alias: str, text: str) -> str:
    with connections[alias].cursor() as cursor:
        if connections[alias].vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {literal(text)}")
        else:
            # Three rows are read fastest without an index; a million are not.
            options = ("enable_seqscan", "enable_bitmapscan", "enable_sort")
            with transaction.atomic(using=alias):
                for option in options:
                    cursor.execute(f"SET LOCAL {option} = off")
                cursor.execute(f"EXPLAIN {text}")
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


def literal(text: str) -> str:
    """SQLite's recorded text has its parameters put in already."""
    return text.replace("%", "%%")
