"""`dev` is the whole project in one process; `worker` is two that end together."""

import base64
import json
import os
import signal
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.waiting import wait_until
from tools.services import Services
from tools.stack import Program, Stack, free_port

pytestmark = pytest.mark.timeout(120)

SETTINGS = "tests.conformance.http.settings"
AUTHORIZATION = "Basic " + base64.b64encode(b"boss:boss").decode()


def environment(database_url: str, redis_url: str) -> dict[str, str]:
    return {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "DJANGO_SETTINGS_MODULE": SETTINGS,
        "DJANGO_SUPERUSER_USERNAME": "boss",
        "DJANGO_SUPERUSER_PASSWORD": "boss",
    }


def call(base: str, path: str, body: Any = None) -> Any:
    request = urllib.request.Request(  # noqa: S310 - our own address
        f"{base}/api/v1/namespaces/default/{path}",
        data=json.dumps(body).encode() if body is not None else None,
        headers={"Authorization": AUTHORIZATION},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return json.loads(answer.read())
    except urllib.error.URLError:
        return None


def stopped(program: Program, seconds: float = 30) -> int:
    """Ask a program to end; its exit code."""
    program.ask_to_stop()
    wait_until(lambda: not program.is_running, seconds=seconds, what=f"an end: {program.tail()}")
    return int(program._process.returncode)


def test_dev_runs_everything_in_one_process(tmp_path: Path) -> None:
    """SQLite and the broker within the process: no server at all."""
    database = f"sqlite:///{tmp_path / 'dev.sqlite3'}"
    with Stack(tmp_path, environment(database, "memory://")) as programs:
        address = f"127.0.0.1:{free_port()}"
        dev = programs.start(
            *("dev", "django", "workflow", "dev", "--task-queue", "http-conformance"),
            *("--address", address, "--slots", "4"),
        )
        dev.wait_for("http://")
        programs.manage("createsuperuser", "--noinput", "--email=nobody@example.com")
        base = f"http://{address}"
        wait_until(lambda: call(base, "workflows") is not None, what=f"an answer: {dev.tail()}")
        assert psutil.Process(dev.pid).children() == []
        started = call(
            base,
            "workflows/hello",
            {
                "workflowType": {"name": "HelloActivity"},
                "taskQueue": {"name": "http-conformance"},
                "input": ["Ann"],
            },
        )
        assert started["started"]
        closed = call(
            base,
            "workflows/hello/history?waitNewEvent=true"
            "&historyEventFilterType=HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT",
        )
        (event,) = closed["history"]["events"]
        attributes = event["workflowExecutionCompletedEventAttributes"]
        assert attributes["result"] == ["Hello, Ann!"]
        assert call(base, "workflows/hello/query/__stack_trace", {}) is not None
        assert stopped(dev) == 0


@pytest.fixture
def pair(stack: str, tmp_path: Path) -> Any:
    """The two workers, ready."""
    if stack == "embedded":
        pytest.skip("a worker process of its own needs a broker outside of it")
    with (
        Services.begin(durable=False) as services,
        Stack(tmp_path, environment(services.database_url, services.redis_url)) as programs,
    ):
        programs.manage("migrate", "--verbosity=0")
        program = programs.start(
            *("pair", "django", "workflow", "worker", "--task-queue", "http-conformance"),
            *("--slots", "1", "--workflow-slots", "1"),
        )
        for name in ("activities", "workflows"):
            program.wait_for(f"{name}@")
        wait_until(lambda: program.output().count(" ready.") == 2, what=f"two: {program.tail()}")
        yield program
        for process in workers(program):
            process.kill()


def workers(program: Program) -> list[psutil.Process]:
    try:
        return psutil.Process(program.pid).children()
    except psutil.NoSuchProcess:
        return []


def test_the_pair_ends_when_it_is_told_to(pair: Program) -> None:
    both = workers(pair)
    assert len(both) == 2
    assert stopped(pair) == 0
    assert not [process for process in both if process.is_running()]


def test_the_pair_ends_when_one_dies(pair: Program) -> None:
    first, second = workers(pair)
    os.kill(first.pid, signal.SIGKILL)
    wait_until(lambda: not pair.is_running, seconds=30, what=f"an end: {pair.tail()}")
    assert pair._process.returncode == 1
    assert "Error: a worker ended with code -9" in pair.output()
    assert not second.is_running()
