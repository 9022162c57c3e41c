"""The same on every pool of Celery, and few connections on each."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connections

from tests.integration.celery.conftest import ALIAS, FULL, Workers, World, in_group
from tests.integration.celery.shop import workflows
from tests.support.waiting import wait_until
from wfapp.client import get_client

LIMIT = timedelta(seconds=40)
POOLS = ["prefork", "threads", "solo", "gevent"]


@pytest.fixture
def idle_sessions_end(world: World) -> Iterator[None]:
    """The server closes sessions that are idle for a second."""
    with connections[ALIAS].cursor() as cursor:
        cursor.execute("ALTER SYSTEM SET idle_session_timeout = '1s'")
        cursor.execute("SELECT pg_reload_conf()")
    yield
    connections[ALIAS].close()
    with connections[ALIAS].cursor() as cursor:
        cursor.execute("ALTER SYSTEM RESET idle_session_timeout")
        cursor.execute("SELECT pg_reload_conf()")
    connections[ALIAS].close()


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
@pytest.mark.usefixtures("idle_sessions_end")
def test_a_worker_outlives_idle_connections(
    world: World, workers: Workers, name: str, pool: str
) -> None:
    """S12."""
    workers.start(pool=pool)
    for number in range(2):
        what = f"{name}-{number}"
        handle = get_client().start_workflow(workflows.Work.run, args=[what, 2.5], id=what)
        connections[ALIAS].close()
        assert handle.result(timeout=LIMIT) == f"{what} done"
        assert [row[0] for row in world.rows(what)] == [1]


def test_a_worker_outlives_the_connections_of_its_pool(
    world: World, workers: Workers, name: str
) -> None:
    """All that are idle are cut at once: psycopg's pool waits longer for each that it finds dead,
    so that a server which cut them each second would leave it none.
    """
    workers.start(pool="gevent", env={"TEST_POOL": "yes"})
    for number in range(2):
        what = f"{name}-{number}"
        handle = get_client().start_workflow(workflows.Work.run, args=[what, 2.5], id=what)
        world.wait_begun(what)
        world.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle'"
        )
        assert handle.result(timeout=LIMIT) == f"{what} done"
        assert [row[0] for row in world.rows(what)] == [1]


@pytest.mark.timeout(600 if FULL else 60)
@pytest.mark.parametrize("pool", POOLS)
def test_few_connections_serve_many_runs(
    world: World, workers: Workers, name: str, pool: str
) -> None:
    """S12; a thousand runs at full size."""
    slots = 1 if pool == "solo" else 3
    env = {"TEST_POOL": "yes"} if pool == "gevent" else {}
    program = workers.start(pool=pool, slots=slots, env=env)
    client = get_client()
    handles = [
        client.start_workflow(workflows.Hello.run, "x", id=f"{name}-{number}")
        for number in range(1_000 if FULL else 100)
    ]
    for handle in handles:
        handle.result(timeout=timedelta(minutes=5))
    own = len(world.ask("SELECT pg_backend_pid()"))
    (count,) = world.ask(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND backend_type = 'client backend'"
    )[0]
    processes = 1 + len(in_group(program))
    bound = slots + 3 if pool != "gevent" else 10 + 3
    assert count - own <= bound if processes == 1 else processes * 3


@pytest.mark.parametrize("pool", POOLS)
def test_timers_signals_and_death_on_every_pool(
    world: World, workers: Workers, name: str, pool: str
) -> None:
    first = workers.start(pool=pool)
    client = get_client()
    counter = client.start_workflow(workflows.Counter.run, id=f"{name}-c")
    counter.signal(workflows.Counter.add, 2)
    wait_until(lambda: counter.query("total") == 2, what="the signal")
    assert client.execute_workflow(workflows.Sleeper.run, 0.5, id=f"{name}-s", timeout=LIMIT) < 2.5
    handle = client.start_workflow(workflows.Work.run, args=[name, 2.0], id=name)
    world.wait_begun(name)
    first.kill()
    workers.start(pool=pool)
    counter.signal(workflows.Counter.finish)
    assert counter.result(timeout=LIMIT) == 2
    assert handle.result(timeout=LIMIT) == f"{name} done"
    assert [row[0] for row in world.rows(name)] == [1, 2]
