"""The page of one run tells all, in a bounded number of queries, and hides what must be hidden."""

import html
import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.support.database_probe import DatabaseProbe
from tests.support.people import Person
from tests.support.requests_json import accepted, activity, complete, start_child, timer, values
from wfcore.protocol import json_form

PAGE = "/admin/wfapp/workflowexecution/{}/change/"
EXPORT = "/admin/wfapp/workflowexecution/{}/history.json"


@pytest.fixture
def client(person: Person) -> Client:
    client = Client()
    client.force_login(person("everything"))
    return client


def shown(client: Client, run_id: str, query: str = "") -> str:
    """The page without its markup."""
    answer = client.get(PAGE.format(run_id) + query)
    assert answer.status_code == 200
    return text(answer.content.decode())


def text(page: str) -> str:
    main = page[page.index('<div class="wfapp-run">') :]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", main)))


def test_it_tells_why_the_run_is_not_moving(probe: DatabaseProbe, client: Client) -> None:
    _, run_id = probe.run(taskQueue={"name": "orders"})
    probe.advance(200)
    assert (
        "Running : the workflow task is due since 3 min, no worker has claimed from queue orders "
        "for 3 min: no worker process serves it"
    ) in shown(client, run_id)


def test_pending_activities_show_attempt_error_and_next_retry(
    probe: DatabaseProbe, client: Client
) -> None:
    _, run_id = probe.with_activity(
        retryPolicy={"initialInterval": "60s", "maximumInterval": "60s", "maximumAttempts": 5}
    )
    probe.answer_activity("failed", probe.poll_activity())
    page = shown(client, run_id)
    assert "act (a) waits 2 / 5 Jan. 1, 2030, 12:01 a.m." in page
    assert "MyError: boom" in page
    assert "probe-worker" in page


def test_timers_messages_and_memo_are_shown(probe: DatabaseProbe, client: Client) -> None:
    workflow_id, run_id = probe.run(
        memo={
            "fields": {
                "customer": {"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": "IkFubiI="}
            }
        }
    )
    probe.step(timer("reminder", 7200))
    probe.signal(workflow_id, "first")
    probe.poll()
    probe.signal(workflow_id, "approve")
    page = shown(client, run_id)
    assert "Timers reminder Jan. 1, 2030, 2 a.m. (in 2 h)" in page
    assert re.search(r"Unread messages WorkflowExecutionSignaled approve", page)
    assert 'Memo customer "Ann"' in page


def test_children_updates_and_what_is_repeated_are_shown(
    probe: DatabaseProbe, client: Client
) -> None:
    workflow_id, run_id = probe.run(
        cronSchedule="0 12 * * *", retryPolicy={"maximumAttempts": 3}, workflowId="order-1"
    )
    assert "Cron schedule 0 12 * * * Retry policy 3 attempts" in shown(client, run_id)
    workflow_id, run_id = probe.run()
    # On a queue of its own, or the worker at hand might get the child's task instead.
    elsewhere = {"name": "parcels"}
    probe.step(start_child("parcel-1", workflowType={"name": "Parcel"}, taskQueue=elsewhere))
    probe.step()
    probe.update(workflow_id, "u1", lambda: probe.say(accepted), name="add", stage="ACCEPTED")
    page = shown(client, run_id)
    assert "parcel-1 Parcel started Terminate" in page
    assert "add (u1) Accepted Jan. 1, 2030, midnight" in page
    child = probe.describe("parcel-1").workflow_execution_info.execution.run_id
    assert PAGE.format(child) in client.get(PAGE.format(run_id)).content.decode()


def test_the_journal_is_shown(probe: DatabaseProbe, client: Client) -> None:
    _, run_id = probe.with_activity(retryPolicy={"maximumAttempts": 1})
    task = probe.poll_activity()
    probe.advance(20)  # beyond its time
    probe.answer_activity("completed", task)
    assert re.search(r"Journal .* late_result", shown(client, run_id))


def test_the_history_is_compact_and_in_full(probe: DatabaseProbe, client: Client) -> None:
    _, run_id = probe.run(input=values("Ann"))
    probe.step(activity("pay", probe.queue, kind="charge"))
    probe.answer_activity("completed", probe.poll_activity(), result=values({"receipt": 7}))
    probe.step(complete("done"))
    compact = shown(client, run_id)
    assert 'activity charge (pay) completed 0 ms {"receipt": 7}' in compact
    assert "WorkflowTaskStarted" not in compact
    full = shown(client, run_id, "?events=full")
    assert "ActivityTaskScheduled" in full
    assert 'input[0] "Ann"' in full
    assert "WorkflowTaskStarted" in full


def test_a_long_history_comes_in_pages(probe: DatabaseProbe, client: Client) -> None:
    workflow_id, run_id = probe.run()
    for _ in range(300):
        probe.signal(workflow_id)
    first = client.get(PAGE.format(run_id) + "?events=full").content.decode()
    assert len(re.findall(r'id="event-\d+"', first)) == 250
    assert 'from=251#history">Later' in first
    second = client.get(PAGE.format(run_id) + "?events=full&from=251").content.decode()
    assert re.findall(r'id="event-(\d+)"', second) == [str(number) for number in range(251, 303)]


def test_the_number_of_queries_does_not_grow_with_the_run(
    probe: DatabaseProbe, client: Client
) -> None:
    def queries(run_id: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            shown(client, run_id)
        return len(captured)

    _, small = probe.run()
    queries(small)  # what is cached once is cached
    _, big = probe.run()
    probe.step(*(activity(f"a{number}", probe.queue) for number in range(200)))
    assert queries(big) == queries(small) <= 14


SECRET = "4012-8888"


def _with_secrets(probe: DatabaseProbe) -> str:
    secret = values(SECRET)
    _, run_id = probe.run(
        input=secret,
        memo={"fields": {"card": secret["payloads"][0]}},
        userMetadata={"summary": secret["payloads"][0]},
        header={"fields": {"h": secret["payloads"][0]}},
    )
    probe.step(activity("a", probe.queue, input=secret))
    probe.answer_activity("heartbeat", probe.poll_activity(), details=secret)
    return run_id


@pytest.mark.parametrize("who", ["watcher", "operator"])
def test_user_data_is_hidden_from_who_may_not_see_it(
    probe: DatabaseProbe, person: Person, who: str
) -> None:
    run_id = _with_secrets(probe)
    client = Client()
    client.force_login(person(who))
    for address in (PAGE, PAGE + "?events=full", EXPORT):
        page = client.get(address.format(run_id)).content.decode()
        assert "NDAxMi04ODg4" not in page
        assert "QwMTItODg4O" not in page  # base64 of it in quotes
        assert SECRET not in page
    assert "(hidden)" in client.get(PAGE.format(run_id)).content.decode()


def test_user_data_is_decoded_for_who_may_see_it(probe: DatabaseProbe, client: Client) -> None:
    run_id = _with_secrets(probe)
    assert shown(client, run_id, "?events=full").count(SECRET) >= 5


def test_the_download_is_a_history_that_can_be_read_again(
    probe: DatabaseProbe, client: Client
) -> None:
    workflow_id, run_id = probe.run(input=values("Ann"))
    probe.step(complete(1))
    answer = client.get(EXPORT.format(run_id))
    assert answer["Content-Disposition"] == f'attachment; filename="{run_id}.json"'
    events = json_form.history_from_json(json.loads(answer.content))
    assert events == probe.events(workflow_id)


def test_names_and_failures_are_text_and_never_markup(probe: DatabaseProbe, client: Client) -> None:
    bad = "<img src=x onerror=alert(1)>"
    _, run_id = probe.run(bad, workflowType={"name": bad}, input=values(bad))
    probe.fail_task(probe.poll())
    for query in ("", "?events=full"):
        page = client.get(PAGE.format(run_id) + query).content.decode()
        assert "<img src=x" not in page
        assert "&lt;img src=x" in page


@pytest.mark.parametrize(
    "address",
    [
        PAGE.format("00000000-0000-4000-8000-000000000000"),
        PAGE.format("nonsense"),
        EXPORT.format("00000000-0000-4000-8000-000000000000"),
        EXPORT.format("nonsense"),
    ],
)
def test_a_run_that_is_not_there(probe: DatabaseProbe, client: Client, address: str) -> None:
    assert client.get(address, follow=True).status_code in (200, 404)


@pytest.mark.parametrize("first", ["0", "-5", "x", "99999999999999999999", "%00", "1000000"])
def test_a_page_of_the_history_that_is_not_there(
    probe: DatabaseProbe, client: Client, first: str
) -> None:
    _, run_id = probe.run()
    assert "History" in shown(client, run_id, f"?from={first}")


def test_a_closed_run_tells_how_it_ended(probe: DatabaseProbe, client: Client) -> None:
    _, run_id = probe.run()
    probe.advance(3)
    probe.step(complete("fine"))
    page: Any = client.get(PAGE.format(run_id)).content.decode()
    assert "closed: Completed, 0 ms ago, after 3 s" in text(page)
    assert "Terminate…" not in page
