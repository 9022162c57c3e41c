"""Workers, servers and messages die; runs go on, and nothing is done twice that need not be."""

import os
import signal
import time
from datetime import timedelta

import pytest
from django.db import connections

from tests.integration.celery.conftest import ALIAS, LEASE_SECONDS, Workers, World
from tests.integration.celery.shop import workflows
from tests.support.waiting import wait_until
from wfapp.client import get_client
from wfcore.client import WorkflowFailureError

LIMIT = timedelta(seconds=50)


def journal(world: World, run_id: str | None) -> list[str]:
    rows = world.ask(
        "SELECT kind || ': ' || text FROM wfapp_runjournal WHERE run_id = %s ORDER BY entry_id",
        run_id,
    )
    return [row[0] for row in rows]


def owners(world: World, run_id: str | None) -> list[str]:
    rows = world.ask(
        "SELECT owner FROM wfapp_pendingactivity WHERE owner > '' AND run_id = %s "
        "UNION SELECT owner FROM wfapp_executionstate WHERE owner > '' AND run_id = %s",
        run_id,
        run_id,
    )
    return [row[0] for row in rows]


def test_a_child_that_is_killed_in_an_activity_is_reported_at_once(
    world: World, workers: Workers, name: str
) -> None:
    workers.start()
    handle = get_client().start_workflow(workflows.Work.run, args=[name, 2.0], id=name)
    pid = world.wait_begun(name)[0][1]
    killed = time.time()
    os.kill(pid, signal.SIGKILL)
    assert handle.result(timeout=LIMIT) == f"{name} done"
    first, second = world.rows(name)
    assert (first[:3], second[0], second[2]) == ((1, pid, False), 2, True)
    assert second[3] - killed < LEASE_SECONDS, "the parent reports it before the lease is over"
    (entry,) = journal(world, handle.result_run_id)
    assert "attempt_lost" in entry


def test_a_child_that_is_killed_in_a_workflow_task(
    world: World, workers: Workers, name: str
) -> None:
    workers.start()
    handle = get_client().start_workflow(workflows.Busy.run, args=[name, 1.0], id=name)
    pid = world.wait_begun(f"{name} task")[0][1]
    os.kill(pid, signal.SIGKILL)
    assert handle.result(timeout=LIMIT) == f"Hello, {name}!"
    assert len(world.rows(f"{name} task")) >= 2


def test_a_whole_worker_that_is_killed_is_lost_with_its_lease(
    world: World, workers: Workers, name: str
) -> None:
    first = workers.start()
    handle = get_client().start_workflow(workflows.Work.run, args=[name, 2.0], id=name)
    world.wait_begun(name)
    killed = time.time()
    first.kill()
    workers.start()
    assert handle.result(timeout=LIMIT) == f"{name} done"
    rows = world.rows(name)
    assert [row[0] for row in rows] == [1, 2]
    assert rows[1][3] - killed < LEASE_SECONDS + 8


def test_an_activity_with_one_attempt_fails_and_never_runs_again(
    world: World, workers: Workers, name: str
) -> None:
    workers.start()
    handle = get_client().start_workflow(workflows.Work.run, args=[name, 30.0, 1], id=name)
    pid = world.wait_begun(name)[0][1]
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkflowFailureError) as raised:
        handle.result(timeout=LIMIT)
    assert "worker lost" in str(raised.value.cause.__cause__)
    assert [row[0] for row in world.rows(name)] == [1]


def test_a_deleted_worker_row_costs_nothing(world: World, workers: Workers, name: str) -> None:
    workers.start()
    seconds = 2 * LEASE_SECONDS + 1
    handle = get_client().start_workflow(workflows.Work.run, args=[name, seconds], id=name)
    world.wait_begun(name)
    assert world.ask("DELETE FROM wfapp_workerprocess RETURNING 1")
    assert handle.result(timeout=LIMIT) == f"{name} done"
    assert [row[0] for row in world.rows(name)] == [1]


def test_a_worker_of_the_same_name_keeps_no_ones_claims_alive(
    world: World, workers: Workers, name: str
) -> None:
    first = workers.start(extra=["--hostname=web-0@localhost"])
    client = get_client()
    sleeper = client.start_workflow(workflows.Sleeper.run, 6.0, id=f"{name}-s")
    handle = client.start_workflow(workflows.Work.run, args=[name, 8.0], id=name)
    world.wait_begun(name)
    workers.start(extra=["--hostname=web-0@localhost"])
    first.ask_to_stop()
    wait_until(lambda: "Warm shutdown" in first.output(), what="the drain")
    first.kill()
    killed = time.time()
    world.wait_begun(name, 2)
    assert world.rows(name)[1][3] - killed < LEASE_SECONDS + 5
    assert handle.result(timeout=LIMIT) == f"{name} done"
    assert 6 <= sleeper.result(timeout=LIMIT) < 9, "the sleep was not begun anew"


def test_a_worker_that_is_asked_to_stop_finishes_what_it_has(
    world: World, workers: Workers, name: str
) -> None:
    program = workers.start()
    handle = get_client().start_workflow(workflows.Work.run, args=[name, 2.0], id=name)
    world.wait_begun(name)
    program.ask_to_stop()
    wait_until(lambda: not program.is_running, what="the worker's end")
    assert [row[:1] + row[2:3] for row in world.rows(name)] == [(1, True)]
    assert owners(world, handle.result_run_id) == []
    assert world.ask("SELECT count(*) FROM wfapp_workerprocess") == [(0,)]
    workers.start()
    assert handle.result(timeout=LIMIT) == f"{name} done"


def test_a_worker_that_takes_too_long_to_stop_gives_its_claims_up(
    world: World, workers: Workers, name: str
) -> None:
    program = workers.start(env={"TEST_DRAIN": "3"})
    handle = get_client().start_workflow(workflows.Work.run, args=[name, 9.0], id=name)
    world.wait_begun(name)
    asked = time.time()
    program.ask_to_stop()
    workers.start()
    world.wait_begun(name, 2)
    assert world.rows(name)[1][3] - asked < 8, "before the first attempt could end"
    assert handle.result(timeout=LIMIT) == f"{name} done"


def test_the_broker_is_emptied(world: World, workers: Workers, name: str) -> None:
    client = get_client()
    started = [
        client.start_workflow(workflows.Hello.run, "x", id=f"{name}-{number}")
        for number in range(30)
    ]
    world.redis.empty()
    workers.start(slots=2)
    running = client.start_workflow(workflows.Work.run, args=[name, 3.0], id=name)
    sleeping = client.start_workflow(workflows.Sleeper.run, 4.0, id=f"{name}-s")
    queued = client.start_workflow(workflows.Fan.run, args=[f"{name}-f", 20, 0.2], id=f"{name}-f")
    world.wait_begun(name)
    world.redis.empty()
    begun = time.time()
    for handle in (*started, running, sleeping, queued):
        handle.result(timeout=LIMIT)
    assert time.time() - begun < 40
    assert [row[0] for row in world.rows(name)] == [1], "a running activity is not repeated"
    assert all(len(world.rows(f"{name}-f-{number}")) == 1 for number in range(20))


def test_the_broker_is_away_for_a_while(world: World, workers: Workers, name: str) -> None:
    workers.start(slots=2)
    client = get_client()
    running = client.start_workflow(workflows.Work.run, args=[name, 3.0], id=name)
    world.wait_begun(name)
    world.redis.stop()
    started = [
        client.start_workflow(workflows.Hello.run, "x", id=f"{name}-{number}")
        for number in range(5)
    ]
    wait_until(lambda: world.rows(name)[0][2], what="the activity's end")
    world.redis.start()
    for handle in (*started, running):
        handle.result(timeout=LIMIT)
    assert [row[0] for row in world.rows(name)] == [1]


@pytest.mark.parametrize("crash", [False, True])
def test_the_database_restarts(world: World, workers: Workers, name: str, crash: bool) -> None:
    workers.start()
    client = get_client()
    handle = client.start_workflow(workflows.Work.run, args=[name, 4.0], id=name)
    busy = client.start_workflow(workflows.Busy.run, args=[f"{name}-b", 1.5], id=f"{name}-b")
    world.wait_begun(name)
    world.wait_begun(f"{name}-b task")
    world.postgres.restart(crash=crash)
    connections[ALIAS].close()
    assert handle.result(timeout=LIMIT) == f"{name} done"
    assert busy.result(timeout=LIMIT) == f"Hello, {name}-b!"
    assert [row[0] for row in world.rows(name)] == [1], "no attempt is charged to the user"
    assert len(world.rows(f"{name}-b task")) == 1


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_sessions_are_terminated_in_the_middle(
    world: World, workers: Workers, name: str, pool: str
) -> None:
    workers.start(pool=pool)
    client = get_client()
    handle = client.start_workflow(workflows.Work.run, args=[name, 4.0], id=name)
    busy = client.start_workflow(workflows.Busy.run, args=[f"{name}-b", 1.5], id=f"{name}-b")
    world.wait_begun(name)
    world.wait_begun(f"{name}-b task")
    world.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    assert handle.result(timeout=LIMIT) == f"{name} done"
    assert busy.result(timeout=LIMIT) == f"Hello, {name}-b!"
    assert [row[0] for row in world.rows(name)] == [1], "no attempt is charged to the user"


def test_a_transactional_activity_that_is_killed_leaves_one_row(
    world: World, workers: Workers, name: str
) -> None:
    workers.start()
    handle = get_client().start_workflow(workflows.Booking.run, args=[name, 2.0], id=name)
    pid = world.wait_begun(f"{name} begun")[0][1]
    os.kill(pid, signal.SIGKILL)
    assert handle.result(timeout=LIMIT) == f"{name} booked"
    assert [row[0] for row in world.rows(name)] == [2], "written once, with its completion"
    assert journal(world, handle.result_run_id)[1:] == []
