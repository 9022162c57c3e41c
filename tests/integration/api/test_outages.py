"""While database or broker are away, the API says so at once, or does without."""

import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import wait_until
from tools.services import Postgres, Redis, Services
from tools.stack import WEB_READY, Stack, free_port

AUTHORIZATION = "Basic " + base64.b64encode(b"boss:boss").decode()
#: what a view may take, and what a loaded machine adds
PATIENCE = 2.0 + 1.5

Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def services(stack: str) -> Iterator[Services]:
    """Servers of this test's own, which it stops."""
    if stack == "embedded":
        pytest.skip("the embedded stack has no servers to stop")
    with Services.begin(durable=False) as services:
        yield services


@pytest.fixture
def call(services: Services, tmp_path: Path) -> Iterator[Call]:
    environment = {
        **services.environment(),
        "DJANGO_SETTINGS_MODULE": "settings.test",
        "TEST_CONNECT_SECONDS": "2",  # as in production
        "DJANGO_SUPERUSER_USERNAME": "boss",
        "DJANGO_SUPERUSER_PASSWORD": "boss",
    }
    with Stack(tmp_path, environment) as programs:
        programs.manage("migrate", "--verbosity=0")
        programs.manage("createsuperuser", "--noinput", "--email=nobody@example.com")
        port = free_port()
        programs.web(port).wait_for(WEB_READY)

        def send(method: str, path: str, body: Any = None) -> tuple[int, Any]:
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/api/v1/namespaces/default/{path}",
                method=method,
                data=json.dumps(body).encode() if body is not None else None,
                headers={"Authorization": AUTHORIZATION},
            )
            began = time.monotonic()
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                    found = answer.status, json.loads(answer.read())
            except urllib.error.HTTPError as error:
                found = error.code, json.loads(error.read())
            send.took = time.monotonic() - began  # type: ignore[attr-defined]
            return found

        yield send


BODY = {"workflowType": {"name": "Order"}, "taskQueue": {"name": "idle"}}


@pytest.mark.timeout(120)
def test_outages(services: Services, call: Any) -> None:
    assert isinstance(services.postgres, Postgres)
    assert isinstance(services.redis, Redis)
    assert call("POST", "workflows/before", BODY)[0] == 200

    services.redis.stop()
    assert call("POST", "workflows/without-broker", BODY)[0] == 200
    assert call.took < PATIENCE
    assert call("POST", "workflows/without-broker/signal/go", {})[0] == 200
    assert call.took < PATIENCE

    services.postgres.stop()
    for method, path in (("GET", "workflows/before"), ("POST", "workflows/lost")):
        status, body = call(method, path, BODY if method == "POST" else None)
        assert (status, body) == (
            503,
            {"code": 14, "message": "the database can't be had now; repeat the call"},
        )
        assert call.took < PATIENCE

    services.postgres.start()
    wait_until(lambda: call("GET", "workflows/without-broker")[0] == 200, what="the database")
    assert call("GET", "workflows/lost")[0] == 404
