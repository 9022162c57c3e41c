"""The API over the database: logins, the audit log, costs, and what is slow or away."""

import base64
import json
import threading
import time
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from tests.support.database_probe import DatabaseProbe
from tests.support.people import PEOPLE, Person
from tests.support.requests_json import activity, values
from wfapp import operating, wiring
from wfapp.models import AuditEntry, CurrentRun

NS = "/api/v1/namespaces/default"
BODY = {"workflowType": {"name": "Order"}, "taskQueue": {"name": "idle"}}


def basic(name: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{name}".encode()).decode()


@pytest.fixture
def api(person: Person) -> APIClient:
    client = APIClient()
    client.force_authenticate(person("everything"))
    return client


def post(client: Any, path: str, body: Any = None) -> Any:
    return client.post(path, json.dumps(body or {}), content_type="application/json")


# ---- logins


@pytest.mark.parametrize("who", PEOPLE)
def test_real_users_may_what_their_permissions_say(
    probe: DatabaseProbe, person: Person, who: str
) -> None:
    person(who)
    probe.run("order-1")
    client = Client(headers={"Authorization": basic(who)})
    may = PEOPLE[who]
    seen = client.get(f"{NS}/workflows/order-1").status_code
    done = post(client, f"{NS}/workflows/order-1/cancel").status_code
    assert (seen, done) == (
        200 if "view_workflowexecution" in may else 403,
        200 if "operate" in may else 403,
    )


def test_a_wrong_password_is_told_with_how_to_log_in(person: Person, probe: DatabaseProbe) -> None:
    person("everything")
    wrong = "Basic " + base64.b64encode(b"everything:guess").decode()
    answer = Client(headers={"Authorization": wrong}).get(f"{NS}/workflows")
    assert answer.status_code == 401
    assert answer.json()["code"] == 16


def test_a_session_needs_the_token_against_forged_requests(
    person: Person, probe: DatabaseProbe
) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("everything"))
    answer = post(client, f"{NS}/workflows/order-1", BODY)
    assert (answer.status_code, answer.json()["code"]) == (403, 7)
    assert not CurrentRun.objects.exists()
    client.get("/admin/")
    token = client.cookies["csrftoken"].value
    answer = client.post(
        f"{NS}/workflows/order-1",
        json.dumps(BODY),
        content_type="application/json",
        headers={"X-CSRFToken": token},
    )
    assert answer.status_code == 200


def test_the_schema_is_for_who_is_logged_in(person: Person, db: None) -> None:
    assert Client().get("/schema/").status_code in (401, 403)
    person("nobody")
    answer = Client(headers={"Authorization": basic("nobody")}).get("/schema/")
    assert answer.status_code == 200


# ---- what is kept


def test_cancel_and_terminate_stand_in_the_audit_log(probe: DatabaseProbe, api: APIClient) -> None:
    _, run_id = probe.idle(workflow_id="order-1")
    post(api, f"{NS}/workflows/order-1/cancel", {"reason": "late"})
    post(api, f"{NS}/workflows/order-1/terminate", {"reason": "now"})
    kept = AuditEntry.objects.order_by("entry_id").values_list(
        "actor", "action", "workflow_id", "reason", "before"
    )
    running = "WORKFLOW_EXECUTION_STATUS_RUNNING"
    assert list(kept) == [
        ("everything", "cancel", "order-1", "late", running),
        ("everything", "terminate", "order-1", "now", running),
    ]
    assert {str(entry.run_id) for entry in AuditEntry.objects.all()} == {run_id}
    assert probe.status("order-1").name == "TERMINATED"


def test_what_was_refused_is_not_audited(probe: DatabaseProbe, api: APIClient) -> None:
    probe.closed("COMPLETED", "order-1")
    assert post(api, f"{NS}/workflows/order-1/terminate").status_code == 404
    assert post(api, f"{NS}/workflows/absent/cancel").status_code == 404
    assert not AuditEntry.objects.exists()


def test_a_termination_whose_audit_fails_does_not_happen(
    probe: DatabaseProbe, api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe.run("order-1")
    monkeypatch.setattr(operating, "to_micros", lambda _: "nonsense")
    with pytest.raises(ValueError, match="nonsense"):
        post(api, f"{NS}/workflows/order-1/terminate")
    assert probe.status("order-1").name == "RUNNING"


# ---- costs


def queries(api: APIClient, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert api.get(path).status_code == 200
    return len(captured)


def test_describe_costs_as_many_queries_with_two_hundred_activities_as_with_none(
    probe: DatabaseProbe, api: APIClient
) -> None:
    probe.idle(workflow_id="small")
    probe.run("big")
    probe.step(*(activity(f"a{number}", probe.queue) for number in range(200)))
    path = f"{NS}/workflows/"
    queries(api, path + "small")
    assert queries(api, path + "big") == queries(api, path + "small") <= 10


def test_a_list_costs_as_many_queries_with_thirty_runs_as_with_one(
    probe: DatabaseProbe, api: APIClient
) -> None:
    path = f"{NS}/workflows"
    probe.run()
    queries(api, path)
    one = queries(api, path)
    for _ in range(29):
        probe.run(memo={"fields": {"a": values(1)["payloads"][0]}})
    assert len(api.get(path).json()["executions"]) == 30
    assert queries(api, path) == one <= 6


# ---- what is slow or away


def test_a_run_that_another_transaction_holds_is_given_up_within_two_seconds(
    transactional_db: None, person: Person, stack: str
) -> None:
    if stack == "embedded":
        pytest.skip("SQLite has one writer, whose wait is the connection's")
    wiring.reset()
    client = APIClient()
    client.force_authenticate(person("everything"))
    assert post(client, f"{NS}/workflows/order-1", BODY).status_code == 200
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM wfapp_executionstate FOR UPDATE")
            held.set()
            release.wait(20)
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(10)
        for call in ("signal/go", "cancel", "terminate"):
            began = time.monotonic()
            answer = post(client, f"{NS}/workflows/order-1/{call}")
            # The bound and what a loaded machine adds.
            assert time.monotonic() - began < 2 + 2
            assert (answer.status_code, answer.json()["code"]) == (503, 14)
            assert "repeat the call" in answer.json()["message"]
    finally:
        release.set()
        thread.join()
        wiring.reset()
