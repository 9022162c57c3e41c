"""The list of runs stays fast and right however many there are."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.support.database_probe import DatabaseProbe
from tests.support.people import Person
from tests.support.requests_json import activity, complete

LIST = "/admin/wfapp/workflowexecution/"


@pytest.fixture
def client(person: Person) -> Client:
    client = Client()
    client.force_login(person("everything"))
    return client


def ids(page: str) -> list[str]:
    """Workflow ids of the rows, in their order."""
    return re.findall(r'<th class="field-workflow_id"><a [^>]*>([^<]+)</a>', page)


def text(answer: Any) -> str:
    assert answer.status_code == 200, answer
    return str(answer.content.decode())


def cell(page: str, name: str) -> str:
    found = re.search(rf'<td class="field-{name}[^"]*">(.*?)</td>', page)
    assert found is not None
    return found[1]


def test_rows_tell_status_type_queue_and_progress(probe: DatabaseProbe, client: Client) -> None:
    probe.run("order-1", workflowType={"name": "Order"}, taskQueue={"name": "orders"})
    page = text(client.get(LIST))
    assert ids(page) == ["order-1"]
    shown = {name: cell(page, name) for name in ("status_mark", "workflow_type", "task_queue")}
    assert shown == {"status_mark": "Running", "workflow_type": "Order", "task_queue": "orders"}
    assert cell(page, "started").startswith("Jan. 1, 2030")
    assert cell(page, "trouble") == ""


def test_last_progress_is_that_of_the_last_event(probe: DatabaseProbe, client: Client) -> None:
    workflow_id, _ = probe.idle()
    probe.advance(3600)
    probe.signal(workflow_id)
    assert "1 a.m." in cell(text(client.get(LIST)), "progress")


def test_a_retried_activity_is_trouble(probe: DatabaseProbe, client: Client) -> None:
    probe.with_activity(retryPolicy={"initialInterval": "1s", "maximumAttempts": 9})
    for _ in range(2):
        probe.answer_activity("failed", probe.poll_activity())
        probe.advance(10)
    assert cell(text(client.get(LIST)), "trouble") == "activity at attempt 3"


def test_a_failing_workflow_task_is_trouble(probe: DatabaseProbe, client: Client) -> None:
    probe.run()
    for _ in range(5):
        probe.fail_task(probe.poll())
        probe.advance(60)
    assert "workflow task fails" in cell(text(client.get(LIST)), "trouble")


def test_pages_go_on_after_the_last_row_and_hold_each_run_once(
    probe: DatabaseProbe, client: Client
) -> None:
    made = [probe.run(f"order-{number}")[0] for number in range(120)]
    found: list[str] = []
    query, sizes = "", []
    while True:
        page = text(client.get(LIST + query))
        sizes.append(len(ids(page)))
        found += ids(page)
        following = re.search(r'<a rel="next" href="([^"]+)"', page)
        if following is None:
            break
        query = following[1].replace("&amp;", "&")
    assert sizes == [50, 50, 20]
    assert sorted(found) == sorted(made)
    assert len(set(found)) == 120


def test_a_page_costs_as_many_queries_with_fifty_rows_as_with_one(
    probe: DatabaseProbe, client: Client
) -> None:
    def queries() -> int:
        client.get(LIST)  # what is cached once is cached
        with CaptureQueriesContext(
            connection,
        ) as captured:
            text(client.get(LIST))
        counted = [query["sql"] for query in captured]
        assert not any("COUNT(*)" in sql for sql in counted)
        assert not any('"snapshot"' in sql or '"body"' in sql for sql in counted)
        return len(counted)

    probe.run()
    one = queries()
    for _ in range(49):
        probe.with_activity()
    assert queries() == one <= 12


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["done", "open"]),
        ("?status=1", ["open"]),
        ("?status=2", ["done"]),
        ("?type=Order", ["open"]),
        ("?type=Ord", []),
        ("?q=open", ["open"]),
        ("?q=ope", []),
        ("?namespace=elsewhere", []),
        ("?status=1&type=Order&q=open", ["open"]),
    ],
)
def test_filters(probe: DatabaseProbe, client: Client, query: str, expected: list[str]) -> None:
    probe.run("open", workflowType={"name": "Order"})
    probe.advance(1)
    probe.run("done", taskQueue={"name": "other"})
    probe.answer(probe.poll("other"), complete())
    assert ids(text(client.get(LIST + query))) == expected


def test_a_run_is_found_by_its_run_id(probe: DatabaseProbe, client: Client) -> None:
    _, run_id = probe.run("order-1")
    probe.run("order-2")
    assert ids(text(client.get(f"{LIST}?q={run_id}"))) == ["order-1"]


@pytest.mark.parametrize(
    "query",
    [
        "?after=x",
        "?after=1-2",
        "?after=99999999999999999999999-00000000-0000-4000-8000-000000000000",
        "?status=99",
        "?status=x",
        "?input__contains=secret",
        "?q=%00",
        "?type=%00",
        "?namespace=%00",
    ],
)
def test_what_makes_no_sense_shows_no_error_page(
    probe: DatabaseProbe, client: Client, query: str
) -> None:
    probe.run()
    assert client.get(LIST + query).status_code in (200, 302, 400)


def test_names_are_text_and_never_markup(probe: DatabaseProbe, client: Client) -> None:
    probe.run("<script>alert(1)</script>")
    page = text(client.get(LIST))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_activities_of_many_runs_are_not_mixed_up(probe: DatabaseProbe, client: Client) -> None:
    probe.run("calm")
    probe.step(activity("a", probe.queue))
    probe.advance(1)
    probe.run("busy")
    probe.step(activity("a", "busy-queue", retryPolicy={"initialInterval": "1s"}))
    probe.answer_activity("failed", probe.poll_activity("busy-queue"))
    page = text(client.get(LIST))
    assert ids(page) == ["busy", "calm"]
    assert re.findall(r'field-trouble[^"]*">(.*?)</td>', page) == ["activity at attempt 2", ""]
