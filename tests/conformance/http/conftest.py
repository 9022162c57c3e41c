"""A web server and a Celery worker of the project, on servers of their own."""

import base64
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.http import workflows
from tests.support.waiting import wait_until
from tools.services import Services
from tools.stack import WORKER_READY, Stack, free_port

#: A superuser of their database.
LOGIN = ("conformance", "conformance")


@pytest.fixture(scope="package")
def authorization() -> str:
    """The header by which the steps log in."""
    return "Basic " + base64.b64encode(":".join(LOGIN).encode()).decode()


@pytest.fixture(scope="package")
def base_url(
    stack: str, authorization: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Where the API answers, with workflows on their queue."""
    if stack == "embedded":
        pytest.skip("web server and worker are two processes, which share no broker within one")
    directory: Path = tmp_path_factory.mktemp("http")
    with Services.begin(durable=False) as services:
        environment = {
            **services.environment(),
            "DJANGO_SETTINGS_MODULE": "tests.conformance.http.settings",
            "DJANGO_SUPERUSER_USERNAME": LOGIN[0],
            "DJANGO_SUPERUSER_PASSWORD": LOGIN[1],
        }
        with Stack(directory, environment) as programs:
            programs.manage("migrate", "--verbosity=0")
            programs.manage("createsuperuser", "--noinput", "--email=nobody@example.com")
            port = free_port()
            web = programs.web(port)
            worker = programs.worker("http", queues=[workflows.TASK_QUEUE])
            worker.wait_for(WORKER_READY)
            url = f"http://127.0.0.1:{port}"
            wait_until(lambda: _answers(url, authorization), what=f"an answer: {web.tail()}")
            yield url


def _answers(url: str, authorization: str) -> bool:
    request = urllib.request.Request(  # noqa: S310 - our own address
        f"{url}/api/v1/namespaces", headers={"Authorization": authorization}
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except urllib.error.URLError:
        return False
