"""The admin in a real browser: log in, find a run, see why it waits, end it with a reason."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import wait_until
from tools import browser
from tools.services import Services
from tools.stack import WEB_READY, WORKER_READY, Stack, free_port

pytestmark = pytest.mark.timeout(240)

QUEUE = "browser"


@pytest.fixture(scope="module")
def project(stack: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, str]]:
    """The project's web server and a worker, and where its admin is."""
    if stack == "embedded":
        pytest.skip("web server and worker are two processes, which share no broker within one")
    directory: Path = tmp_path_factory.mktemp("browser")
    with Services.begin(durable=False) as services:
        environment = {
            **services.environment(),
            "DJANGO_SETTINGS_MODULE": "tests.e2e.browser_settings",
            "DJANGO_SUPERUSER_USERNAME": "boss",
            "DJANGO_SUPERUSER_PASSWORD": "boss",
        }
        with Stack(directory, environment) as programs:
            programs.manage("migrate", "--verbosity=0")
            programs.manage("createsuperuser", "--noinput", "--email=nobody@example.com")
            port = free_port()
            web = programs.web(port)
            programs.worker("browser", queues=[QUEUE], slots=1).wait_for(WORKER_READY)
            web.wait_for(WEB_READY)
            yield programs, f"http://127.0.0.1:{port}"


@pytest.fixture
def page(project: tuple[Stack, str], tmp_path: Path) -> Iterator[Any]:
    """A page of a browser, at the admin's login."""
    chromium = browser.find()
    if chromium is None:
        pytest.skip(browser.advice())
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = started.new_page(base_url=project[1])
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.set_default_timeout(20_000)
        page.goto("/admin/")
        page.fill("#id_username", "boss")
        page.fill("#id_password", "boss")
        page.click("text=Log in")
        yield page
        assert errors == []
        started.close()


def started(project: tuple[Stack, str], workflow_id: str, workflow_type: str, *more: str) -> None:
    project[0].manage(
        *("workflow", "start", "--type", workflow_type, "--task-queue", QUEUE),
        *("--workflow-id", workflow_id, *more),
    )


def why(project: tuple[Stack, str], workflow_id: str) -> str:
    answer = project[0].manage("workflow", "why", workflow_id, "--json")
    sentence: str = json.loads(answer)["why"]
    return sentence


def open_run(page: Any, workflow_id: str) -> None:
    page.goto("/admin/wfapp/workflowexecution/")
    page.click(f"text={workflow_id}")


def test_a_run_is_found_explained_and_terminated(project: tuple[Stack, str], page: Any) -> None:
    from playwright.sync_api import expect

    started(project, "door-1", "Door")
    started(project, "hello-1", "HelloActivity", "--input", '"Ann"')
    wait_until(lambda: why(project, "door-1").startswith("waits for a signal"), what="door-1")
    wait_until(lambda: why(project, "hello-1").startswith("closed"), what="hello-1")

    page.click("text=Workflow executions")
    rows = page.locator("#result_list tbody tr")
    expect(rows).to_have_count(2)
    page.click("#changelist-filter >> text=Running")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("door-1")

    page.click("text=door-1")
    expect(page.locator("#why")).to_contain_text("Running: waits for a signal")
    page.click("text=Terminate…")
    expect(page.locator("#content")).to_contain_text("door-1 (Running")
    page.fill("#id_reason", "tested enough")
    page.click("text=Do it")
    expect(page.locator(".messagelist")).to_contain_text("Done for 1 run.")

    open_run(page, "door-1")
    expect(page.locator("#why")).to_contain_text("closed: Terminated")
    expect(page.locator("#history")).to_contain_text("tested enough")
    expect(page.locator("text=Terminate…")).to_have_count(0)

    page.goto("/admin/wfapp/auditentry/")
    expect(page.locator("#result_list")).to_contain_text("tested enough")
    expect(page.locator("#result_list")).to_contain_text("boss")


def test_a_history_is_read_and_downloaded(
    project: tuple[Stack, str], page: Any, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    started(project, "hello-2", "HelloActivity", "--input", '"Bob"')
    wait_until(lambda: why(project, "hello-2").startswith("closed"), what="hello-2")
    open_run(page, "hello-2")
    history = page.locator("#history")
    expect(history).to_contain_text("activity greet (greet)")
    expect(history).to_contain_text('"Hello, Bob!"')
    page.click("text=In full")
    expect(history).to_contain_text("WorkflowTaskStarted")
    with page.expect_download() as download:
        page.click("text=Download history as JSON")
    file = tmp_path / "history.json"
    download.value.save_as(file)
    events = json.loads(file.read_text())["events"]
    assert events[-1]["eventType"] == "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED"


def test_a_signal_with_arguments_reaches_the_run(project: tuple[Stack, str], page: Any) -> None:
    from playwright.sync_api import expect

    started(project, "door-2", "Door")
    wait_until(lambda: why(project, "door-2").startswith("waits for a signal"), what="door-2")
    open_run(page, "door-2")
    page.click("text=Send a signal…")
    page.fill("#id_name", "put")
    page.fill("#id_arguments", "no json")
    page.fill("#id_reason", "asked for")
    page.click("text=Do it")
    expect(page.locator(".errorlist")).to_contain_text("This is no JSON")
    page.fill("#id_arguments", '[{"n": 7}]')
    page.click("text=Do it")
    expect(page.locator(".messagelist")).to_contain_text("Done for 1 run.")
    open_run(page, "door-2")
    expect(page.locator("#history")).to_contain_text('{"n":7}')
