"""Workflows through a real worker, from a start to a result."""

import threading
import time
from datetime import timedelta

import pytest
from django.db import connections

from tests.integration.celery.conftest import World
from tests.integration.celery.shop import workflows
from tests.support.waiting import wait_until
from wfapp.client import get_async_client, get_client
from wfcore.client import (
    WorkflowFailureError,
    WorkflowUpdateFailedError,
    WorkflowUpdateStage,
)
from wfcore.exceptions import CancelledError, DeadlineExceededError, TerminatedError

pytestmark = pytest.mark.usefixtures("worker")

LIMIT = timedelta(seconds=20)


def test_hello(name: str) -> None:
    handle = get_client().start_workflow(workflows.Hello.run, "Ada", id=name)
    assert handle.result(timeout=LIMIT) == "Hello, Ada!"
    kinds = [event.event_type.name for event in handle.fetch_history().events]
    assert kinds == [
        "WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        "ACTIVITY_TASK_SCHEDULED",
        "ACTIVITY_TASK_STARTED",
        "ACTIVITY_TASK_COMPLETED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        "WORKFLOW_EXECUTION_COMPLETED",
    ]


def test_a_workflow_by_name_with_an_id_of_ours() -> None:
    result = get_client().execute_workflow("Hello", "Bo", timeout=LIMIT)
    assert result == "Hello, Bo!"


@pytest.mark.parametrize("seconds", [0.3, 2.0])
def test_a_timer_fires_in_time(name: str, seconds: float) -> None:
    begun = time.monotonic()
    slept = get_client().execute_workflow(workflows.Sleeper.run, seconds, id=name, timeout=LIMIT)
    assert seconds <= slept < seconds + 1.5
    assert time.monotonic() - begun < seconds + 3


def test_signals_arrive_in_order_and_once(name: str) -> None:
    handle = get_client().start_workflow(workflows.Counter.run, id=name)
    for value in range(1, 21):
        handle.signal(workflows.Counter.add, value)
    handle.signal("finish")
    assert handle.result(timeout=LIMIT) == 210


def test_an_async_activity_has_a_client_of_its_namespace(name: str) -> None:
    found = get_client().execute_workflow(workflows.Echo.run, id=name, timeout=LIMIT)
    assert tuple(found) == ("default", 7)


def test_an_activity_is_repeated_until_it_succeeds(name: str, world: World) -> None:
    result = get_client().execute_workflow(
        workflows.Retried.run, args=[name, 2], id=name, timeout=LIMIT
    )
    assert result == 3
    assert [row[0] for row in world.rows(name)] == [1, 2, 3]


def test_activities_run_side_by_side(name: str, world: World) -> None:
    result = get_client().execute_workflow(
        workflows.Fan.run, args=[name, 20, 0.05], id=name, timeout=LIMIT
    )
    assert result == 20
    assert all(len(world.rows(f"{name}-{number}")) == 1 for number in range(20))


def test_cancel_terminate_and_their_results(name: str) -> None:
    client = get_client()
    cancelled = client.start_workflow(workflows.Sleeper.run, 600.0, id=f"{name}-c")
    terminated = client.start_workflow(workflows.Sleeper.run, 600.0, id=f"{name}-t")
    cancelled.cancel(reason="changed my mind")
    terminated.terminate(reason="enough")
    with pytest.raises(WorkflowFailureError) as first:
        cancelled.result(timeout=LIMIT)
    with pytest.raises(WorkflowFailureError) as second:
        terminated.result(timeout=LIMIT)
    assert isinstance(first.value.cause, CancelledError)
    assert isinstance(second.value.cause, TerminatedError)
    assert terminated.describe().status.name == "TERMINATED"


def test_waiting_for_a_result_has_a_limit(name: str) -> None:
    handle = get_client().start_workflow(workflows.Sleeper.run, 600.0, id=name)
    begun = time.monotonic()
    with pytest.raises(DeadlineExceededError):
        handle.result(timeout=timedelta(seconds=0.5))
    assert time.monotonic() - begun < 2
    handle.terminate()


def test_queries_to_a_running_and_a_closed_run(name: str) -> None:
    handle = get_client().start_workflow(workflows.Counter.run, id=name)
    handle.signal(workflows.Counter.add, 5)
    wait_until(lambda: handle.query(workflows.Counter.total) == 5, what="the sum")
    events = len(handle.fetch_history().events)
    assert handle.query("total") == 5
    assert len(handle.fetch_history().events) == events, "a query leaves no event"
    handle.signal(workflows.Counter.finish)
    assert handle.result(timeout=LIMIT) == 5
    closed = get_client().get_workflow_handle_for(workflows.Counter.run, name)
    assert closed.query(workflows.Counter.total) == 5


def test_updates_of_a_running_and_a_closed_run(name: str) -> None:
    handle = get_client().start_workflow(workflows.Counter.run, id=name)
    assert handle.execute_update(workflows.Counter.put, 7, id="u", timeout=LIMIT) == 7
    events = len(handle.fetch_history().events)
    with pytest.raises(WorkflowUpdateFailedError):
        handle.execute_update(workflows.Counter.put, -1, timeout=LIMIT)
    assert len(handle.fetch_history().events) == events, "a refusal leaves no event"
    update = handle.start_update(
        workflows.Counter.add_later,
        args=[5, 0.2],
        wait_for_stage=WorkflowUpdateStage.ACCEPTED,
        timeout=LIMIT,
    )
    assert update.result(timeout=LIMIT) == 12
    handle.signal(workflows.Counter.finish)
    assert handle.result(timeout=LIMIT) == 12
    assert handle.execute_update(workflows.Counter.put, 8, id="u", timeout=LIMIT) == 7


def test_many_updates_at_once(name: str) -> None:
    handle = get_client().start_workflow(workflows.Counter.run, id=name)
    answers: list[int] = []

    def send(number: int) -> None:
        client = get_client().get_workflow_handle(name)
        answers.append(
            client.execute_update("add_later", args=[number, 0.05], result_type=int, timeout=LIMIT)
        )
        connections.close_all()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert max(answers) == sum(range(1, 9))
    handle.terminate()


def test_many_queries_at_once(name: str) -> None:
    handle = get_client().start_workflow(workflows.Counter.run, id=name)
    handle.signal(workflows.Counter.finish)
    handle.result(timeout=LIMIT)
    answers: list[int] = []

    def ask() -> None:
        answers.append(get_client().get_workflow_handle(name).query("total"))
        connections.close_all()

    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [0] * 10


def test_lists_and_counts(name: str) -> None:
    client = get_client()
    client.execute_workflow(workflows.Hello.run, "x", id=name, timeout=LIMIT)
    (found,) = client.list_workflows(f"WorkflowId = '{name}'")
    assert (found.id, found.status.name) == (name, "COMPLETED")
    assert client.count_workflows(f"WorkflowId = '{name}'").count == 1


async def test_the_asynchronous_clients(name: str) -> None:
    handle = await get_async_client().start_workflow(
        workflows.Hello.run, "Cy", id=name, task_queue="default"
    )
    assert await handle.result() == "Hello, Cy!"
    other = await get_client().astart_workflow(workflows.Counter.run, id=f"{name}-a")
    await other.asignal(workflows.Counter.add, 3)
    assert await other.aexecute_update(workflows.Counter.put, 3, timeout=LIMIT) == 3
    update = await other.astart_update(
        workflows.Counter.put, 3, wait_for_stage=WorkflowUpdateStage.COMPLETED, timeout=LIMIT
    )
    assert await update.aresult(timeout=LIMIT) == 3
    await other.asignal(workflows.Counter.finish)
    assert await other.aresult(timeout=LIMIT) == 3
    assert await other.aquery(workflows.Counter.total) == 3
    assert (await other.adescribe()).id == f"{name}-a"


def test_no_activity_runs_inside_an_open_transaction(name: str) -> None:
    assert get_client().execute_workflow(workflows.Sessions.run, id=name, timeout=LIMIT) == 0
