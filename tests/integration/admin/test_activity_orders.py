"""Orders to the activities of a run, on its page: who may, what is asked, what is kept."""

from typing import Any

import pytest
from django.test import Client

from tests.support.database_probe import DatabaseProbe
from tests.support.people import PEOPLE, Person
from wfapp.models import AuditEntry

RUN = "/admin/wfapp/workflowexecution/{}/"


@pytest.fixture
def client(person: Person) -> Client:
    client = Client()
    client.force_login(person("everything"))
    return client


def order(client: Client, run_id: str, name: str, activity_id: str = "a", **fields: Any) -> Any:
    """Ask for an order, and confirm it if `fields` answer its form."""
    confirmed = {"confirmed": "1", **fields} if fields else {}
    sent = {"order": name, "activity": activity_id, **confirmed}
    return client.post(f"{RUN.format(run_id)}activity/", sent, follow=True)


def pending(probe: DatabaseProbe, workflow_id: str) -> Any:
    (row,) = probe.describe(workflow_id).pending_activities
    return row


@pytest.mark.parametrize("who", PEOPLE)
@pytest.mark.parametrize("name", ["pause", "unpause", "reset"])
def test_orders_are_for_who_may_view_and_operate(
    probe: DatabaseProbe, person: Person, who: str, name: str
) -> None:
    _, run_id = probe.with_activity()
    client = Client()
    client.force_login(person(who))
    may = {"view_workflowexecution", "operate"} <= set(PEOPLE[who])
    answer = order(client, run_id, name, reason="why")
    assert answer.status_code == (200 if may else 403)
    assert AuditEntry.objects.exists() == may
    page = client.get(f"{RUN.format(run_id)}change/").content.decode()
    assert ('name="order"' in page) == may


def test_nobody_orders_without_a_login_or_by_a_link(probe: DatabaseProbe, client: Client) -> None:
    _, run_id = probe.with_activity()
    assert order(Client(), run_id, "pause", reason="why").redirect_chain
    assert client.get(f"{RUN.format(run_id)}activity/?order=pause&activity=a").status_code == 405
    assert not AuditEntry.objects.exists()


def test_pause_and_unpause(probe: DatabaseProbe, client: Client) -> None:
    workflow_id, run_id = probe.with_activity()
    asked = order(client, run_id, "pause").content.decode()
    assert f"This is done to activity a of {workflow_id}." in asked
    assert "This field is required." in order(client, run_id, "pause", reason=" ").content.decode()
    assert not pending(probe, workflow_id).paused
    page = order(client, run_id, "pause", reason="the bank is closed").content.decode()
    assert "Done for activity a." in page
    assert pending(probe, workflow_id).pause_info.manual.reason == "the bank is closed"
    assert "by everything" in page
    assert "the bank is closed" in page
    assert 'value="unpause"' in page
    page = order(client, run_id, "unpause", reason="open", reset_attempts="on").content.decode()
    assert not pending(probe, workflow_id).paused
    assert 'value="pause"' in page
    kept = AuditEntry.objects.order_by("entry_id").values_list("actor", "action", "reason", "after")
    assert list(kept) == [
        ("everything", "pause_activity", "the bank is closed", '{"activityId": "a"}'),
        ("everything", "unpause_activity", "open", '{"activityId": "a", "resetAttempts": true}'),
    ]


def test_reset(probe: DatabaseProbe, client: Client) -> None:
    workflow_id, run_id = probe.with_activity(retryPolicy={"initialInterval": "3600s"})
    probe.answer_activity("failed", probe.poll_activity())
    assert pending(probe, workflow_id).attempt == 2
    assert "a later attempt runs now" in order(client, run_id, "reset").content.decode()
    order(client, run_id, "pause", reason="look")
    order(client, run_id, "reset", reason="again", keep_paused="on", reset_heartbeat="on")
    assert (pending(probe, workflow_id).attempt, pending(probe, workflow_id).paused) == (1, True)
    order(client, run_id, "reset", reason="again", restore_original_options="on")
    assert not pending(probe, workflow_id).paused


def test_what_can_not_be_done_is_told(probe: DatabaseProbe, client: Client) -> None:
    workflow_id, run_id = probe.with_activity()
    page = order(client, run_id, "pause", "nothing", reason="why").content.decode()
    assert "Not done for nothing: Can&#x27;t find pending activity" in page
    assert order(client, run_id, "explode", reason="why").status_code == 404
    assert order(client, run_id, "pause", "", reason="why").status_code == 404
    absent = "00000000-0000-7000-8000-000000000000"
    assert order(client, absent, "pause", reason="why").status_code == 404
    probe.terminate(workflow_id)
    page = order(client, run_id, "pause", reason="why").content.decode()
    assert "workflow execution already completed" in page
    assert 'name="order"' not in page
    assert not AuditEntry.objects.exists()
