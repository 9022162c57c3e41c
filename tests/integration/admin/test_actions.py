"""Who may do what to runs, with a reason that is kept."""

from typing import Any

import pytest
from django.test import Client

from tests.support.database_probe import DatabaseProbe
from tests.support.people import PEOPLE, Person
from wfapp.models import AuditEntry

LIST = "/admin/wfapp/workflowexecution/"
ACTIONS = ("signal_runs", "cancel_runs", "terminate_runs")


def logged_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def act(client: Client, action: str, run_ids: list[str], **fields: Any) -> Any:
    """Ask for an action, and confirm it if `fields` answer its form."""
    confirmed = {"confirmed": "1", **fields} if fields else {}
    return client.post(
        LIST, {"action": action, "_selected_action": run_ids, **confirmed}, follow=True
    )


# ---- permissions


@pytest.mark.parametrize("who", PEOPLE)
def test_pages_are_for_who_may_view(probe: DatabaseProbe, person: Person, who: str) -> None:
    _, run_id = probe.run()
    client = logged_in(person(who))
    expected = 200 if "view_workflowexecution" in PEOPLE[who] else 403
    for address in (LIST, f"{LIST}{run_id}/change/", f"{LIST}{run_id}/history.json"):
        assert client.get(address).status_code == expected, address


def test_pages_ask_for_a_login(probe: DatabaseProbe) -> None:
    _, run_id = probe.run()
    for address in (LIST, f"{LIST}{run_id}/change/", f"{LIST}{run_id}/history.json"):
        answer = Client().get(address)
        assert answer.status_code == 302
        assert answer["Location"].startswith("/admin/login/")


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("who", PEOPLE)
def test_actions_are_for_who_may_operate(
    probe: DatabaseProbe, person: Person, who: str, action: str
) -> None:
    workflow_id, run_id = probe.idle()
    before = probe.types(workflow_id)
    fields = {"reason": "why", "name": "approve"}
    act(logged_in(person(who)), action, [run_id], **fields)
    changed = probe.types(workflow_id) != before
    assert changed == ("operate" in PEOPLE[who])
    assert AuditEntry.objects.exists() == changed


@pytest.mark.parametrize("who", ["reader", "operator"])
@pytest.mark.parametrize("address", [f"{LIST}add/", f"{LIST}{{}}/delete/"])
def test_nobody_adds_or_deletes(
    probe: DatabaseProbe, person: Person, who: str, address: str
) -> None:
    _, run_id = probe.run()
    client = logged_in(person(who))
    assert client.get(address.format(run_id)).status_code == 403
    assert client.post(address.format(run_id), {"post": "yes"}).status_code == 403


def test_changing_a_run_by_post_does_nothing(probe: DatabaseProbe, person: Person) -> None:
    workflow_id, run_id = probe.run()
    logged_in(person("everything")).post(f"{LIST}{run_id}/change/", {"workflow_id": "other"})
    assert probe.describe(workflow_id).workflow_execution_info.execution.run_id == run_id


# ---- what is done


@pytest.fixture
def client(person: Person) -> Client:
    return logged_in(person("operator"))


def entry() -> dict[str, Any]:
    """The only entry of the audit log."""
    kept = ("actor", "action", "workflow_id", "reason", "before", "after")
    found: dict[str, Any] = AuditEntry.objects.values(*kept).get()
    return found


def test_a_reason_is_asked_for_first(probe: DatabaseProbe, client: Client) -> None:
    workflow_id, run_id = probe.run("order-1")
    page = act(client, "terminate_runs", [run_id]).content.decode()
    assert "This is done to 1 run:" in page
    assert "order-1 (Running" in page
    assert probe.status(workflow_id).name == "RUNNING"
    page = act(client, "terminate_runs", [run_id], reason="  ").content.decode()
    assert "This field is required." in page
    assert probe.status(workflow_id).name == "RUNNING"


def test_terminate_ends_the_run_and_keeps_who_and_why(probe: DatabaseProbe, client: Client) -> None:
    workflow_id, run_id = probe.run("order-1")
    page = act(client, "terminate_runs", [run_id], reason="double order").content.decode()
    assert "Done for 1 run." in page
    attributes = probe.attributes(workflow_id, "WORKFLOW_EXECUTION_TERMINATED")
    assert (attributes.reason, attributes.identity) == ("double order", "operator")
    assert entry() == {
        "actor": "operator",
        "action": "terminate",
        "workflow_id": "order-1",
        "reason": "double order",
        "before": "WORKFLOW_EXECUTION_STATUS_RUNNING",
        "after": "",
    }


def test_cancel_is_requested_with_the_reason(probe: DatabaseProbe, client: Client) -> None:
    workflow_id, run_id = probe.idle()
    act(client, "cancel_runs", [run_id], reason="customer left")
    attributes = probe.attributes(workflow_id, "WORKFLOW_EXECUTION_CANCEL_REQUESTED")
    assert (attributes.cause, attributes.identity) == ("customer left", "operator")
    assert (entry()["action"], entry()["reason"]) == ("cancel", "customer left")


def test_a_signal_carries_its_arguments(probe: DatabaseProbe, client: Client) -> None:
    workflow_id, run_id = probe.idle()
    act(
        client,
        "signal_runs",
        [run_id],
        name="approve",
        arguments='[true, {"by": "phone"}]',
        reason="called",
    )
    attributes = probe.attributes(workflow_id, "WORKFLOW_EXECUTION_SIGNALED")
    assert attributes.signal_name == "approve"
    assert [payload.data for payload in attributes.input.payloads] == [b"true", b'{"by":"phone"}']
    assert entry()["after"] == '{"signal": "approve"}'


@pytest.mark.parametrize("arguments", ["{", "7", '{"a": 1}', "nonsense"])
def test_arguments_are_checked_before_anything_is_sent(
    probe: DatabaseProbe, client: Client, arguments: str
) -> None:
    workflow_id, run_id = probe.idle()
    before = probe.types(workflow_id)
    page = act(
        client, "signal_runs", [run_id], name="approve", arguments=arguments, reason="called"
    ).content.decode()
    assert 'class="errorlist"' in page
    assert probe.types(workflow_id) == before
    assert not AuditEntry.objects.exists()


def test_a_run_that_closed_meanwhile_is_told_and_the_others_are_done(
    probe: DatabaseProbe, client: Client
) -> None:
    closed_id, closed = probe.closed("COMPLETED")
    open_id, still_open = probe.run()
    page = act(client, "terminate_runs", [closed, still_open], reason="clean up").content.decode()
    assert f"Not done for {closed_id}: workflow execution already completed" in page
    assert "Done for 1 run." in page
    assert probe.status(open_id).name == "TERMINATED"
    assert [entry.workflow_id for entry in AuditEntry.objects.all()] == [open_id]


def test_who_waits_for_runs_that_others_hold_does_not_wait_for_each(
    probe: DatabaseProbe, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wfapp.admin import execution

    run_ids = [probe.run()[1] for _ in range(3)]
    clock = iter([0.0, 0.0, 2.5])
    monkeypatch.setattr(execution, "monotonic", lambda: next(clock))
    page = act(client, "terminate_runs", run_ids, reason="clean up").content.decode()
    assert "Done for 1 run." in page
    assert "Not done in time for 2 runs: choose them again." in page
    assert AuditEntry.objects.count() == 1


def test_other_tables_are_shown_and_cannot_be_changed(
    probe: DatabaseProbe, client: Client, person: Person
) -> None:
    from django.contrib.auth.models import Permission

    _, run_id = probe.run()
    act(client, "terminate_runs", [run_id], reason="double order")
    user = person("nobody")
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="wfapp"))
    looking = logged_in(user)
    for model in ("auditentry", "workerprocess", "namespace"):
        assert looking.get(f"/admin/wfapp/{model}/").status_code == 200
        assert looking.get(f"/admin/wfapp/{model}/add/").status_code == 403
    page = looking.get("/admin/wfapp/auditentry/").content.decode()
    assert "double order" in page
