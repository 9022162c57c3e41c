"""What is done over the API stands in the audit log: with it or not at all, refused or not."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from rest_framework.test import APIClient

from tests.support.database_probe import DatabaseProbe
from tests.support.people import Person
from tests.support.probing import Probe
from tests.support.requests_json import accepted, activity, answered, complete, refused
from wfapp import operating
from wfapp.models import AuditEntry, CurrentRun, InboxItem
from wfapp.operating.actions import ACTIONS
from wfcore.exceptions import DeadlineExceededError
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.rpc.workflows import SignalWorkflowExecutionRequest
from wfcore.service import arriving, starting
from wfcore.service.ports import CurrentRunChangedError
from wfcore.service.workflow_service import WorkflowService

NS = "/api/v1/namespaces/default"
RUN = f"{NS}/workflows/order-1"
BODY = {"workflowType": {"name": "Order"}, "taskQueue": {"name": "q-probe"}}
RUNNING = "WORKFLOW_EXECUTION_STATUS_RUNNING"

Post = Callable[..., tuple[int, Any]]


@pytest.fixture
def post(person: Person, probe: DatabaseProbe) -> Post:
    """Sends a request and gives status and body."""
    client = APIClient()
    client.force_authenticate(person("everything"))

    def send(path: str, body: Any = None) -> tuple[int, Any]:
        answer = client.post(path, json.dumps(body or {}), content_type="application/json")
        return answer.status_code, answer.json()

    return send


def kept() -> list[tuple[str, str, str]]:
    """Action, status before and facts of each entry."""
    entries = AuditEntry.objects.order_by("entry_id")
    assert {entry.actor for entry in entries} <= {"everything"}
    assert {entry.workflow_id for entry in entries} <= {"order-1"}
    return [(entry.action, entry.before, entry.after) for entry in entries]


def test_starts_and_signals(probe: DatabaseProbe, post: Post) -> None:
    _, first = post(RUN, BODY)
    _, found = post(RUN, {**BODY, "workflowIdConflictPolicy": "UseExisting"})
    _, last = post(RUN, {**BODY, "workflowIdConflictPolicy": "TerminateExisting"})
    assert found["runId"] == first["runId"] != last["runId"]
    post(f"{RUN}/signal/go", {"input": ["secret"]})
    post(f"{RUN}/signal-with-start/stop", BODY)
    assert kept() == [
        ("start", "", ""),
        ("start", RUNNING, ""),
        ("start", RUNNING, ""),
        ("signal", RUNNING, '{"signal": "go"}'),
        ("signal_with_start", RUNNING, '{"signal": "stop"}'),
    ]
    runs = [str(entry.run_id) for entry in AuditEntry.objects.order_by("entry_id")]
    assert runs == [first["runId"], found["runId"], *[last["runId"]] * 3]


def test_an_eager_start_is_audited_and_hands_its_task_out(probe: DatabaseProbe, post: Post) -> None:
    _, answer = post(RUN, {**BODY, "requestEagerExecution": True})
    assert answer["eagerWorkflowTask"]["taskToken"]
    assert kept() == [("start", "", "")]


def test_a_start_whose_audit_fails_does_not_happen(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no room")

    monkeypatch.setattr(operating._Entry, "write", fail)
    with pytest.raises(RuntimeError, match="no room"):
        post(RUN, BODY)
    assert not CurrentRun.objects.exists()


def test_a_start_that_begins_anew_is_audited_once(
    probe: DatabaseProbe, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first transaction wrote the entry and was rolled back."""
    leave, seen = starting._begin_in, []

    def once_in_vain(*given: Any) -> Any:
        begun = leave(*given)
        seen.append(len(kept()))
        if len(seen) == 1:
            raise CurrentRunChangedError("begin anew")
        return begun

    monkeypatch.setattr(starting, "_begin_in", once_in_vain)
    assert post(RUN, BODY)[0] == 200
    assert seen == [1, 1]
    assert kept() == [("start", "", "")]
    assert CurrentRun.objects.count() == 1


def test_what_is_refused_leaves_no_entry(probe: DatabaseProbe, post: Post) -> None:
    assert post(f"{RUN}/signal/go")[0] == 404
    assert post(f"{RUN}/update/add", {"request": {"meta": {}}})[0] == 404
    assert post(RUN, {})[0] == 400
    assert post(f"{RUN}/activities/job/pause")[0] == 404
    assert post(f"{NS}/activity-complete", {"taskToken": "Ym9ndXM="})[0] == 400
    probe.run("order-1")
    probe.step()
    assert post(RUN, BODY)[0] == 409
    assert post(f"{RUN}/activities/job/complete")[0] == 404
    assert post(f"{RUN}/activities/job/pause")[0] == 404
    assert kept() == []


def test_a_signal_that_came_too_late_leaves_no_entry(
    probe: DatabaseProbe, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stored while a task ran, which then closed the run."""
    probe.run("order-1")
    task = probe.poll()
    put = arriving._put

    def close_between(*given: Any) -> Any:
        stored = put(*given)
        assert kept() == [("signal", RUNNING, '{"signal": "go"}')]
        InboxItem.objects.update(run_id="00000000-0000-7000-8000-000000000000")  # not seen
        probe.answer(task, complete())
        InboxItem.objects.update(run_id=CurrentRun.objects.get().run_id)
        return stored

    monkeypatch.setattr(arriving, "_put", close_between)
    assert post(f"{RUN}/signal/go")[0] == 404
    assert kept() == []


def test_a_signal_to_a_run_that_works_is_audited_once(probe: DatabaseProbe, post: Post) -> None:
    probe.run("order-1")
    probe.poll()
    body = {"requestId": "the-same"}
    assert post(f"{RUN}/signal/go", body)[0] == 200
    assert kept() == [("signal", RUNNING, '{"signal": "go"}')]
    assert InboxItem.objects.count() == 1
    post(f"{RUN}/signal/go", body)
    assert len(kept()) == 2  # somebody asked twice
    assert InboxItem.objects.count() == 1


@pytest.mark.parametrize("word", [answered, None])
def test_updates(probe: DatabaseProbe, post: Post, word: Any) -> None:
    probe.idle(workflow_id="order-1")
    words = (accepted, word) if word is not None else (refused,)
    probe.dispatcher.wait_update = lambda *_: probe.say(*words)  # type: ignore[method-assign]
    body = {"request": {"meta": {"updateId": "u1"}, "input": {"args": ["secret"]}}}
    status, answer = post(f"{RUN}/update/add", body)
    assert (status, set(answer["outcome"])) == (200, {"success" if word else "failure"})
    assert set(answer["link"]) == {"workflowEvent" if word else "workflow"}
    assert kept() == [("update", RUNNING, '{"update": "add", "updateId": "u1"}')]


def test_an_update_without_an_id_is_audited_with_the_one_that_it_got(
    probe: DatabaseProbe, post: Post
) -> None:
    probe.idle(workflow_id="order-1")
    probe.dispatcher.wait_update = lambda *_: probe.say(accepted)  # type: ignore[method-assign]
    body = {"request": {"meta": {}}, "waitPolicy": {"lifecycleStage": "Accepted"}}
    _, answer = post(f"{RUN}/update/add", body)
    update_id = answer["updateRef"]["updateId"]
    assert update_id
    assert kept()[0][2] == json.dumps({"update": "add", "updateId": update_id})


def test_an_update_that_the_run_left_behind_stays_audited(probe: DatabaseProbe, post: Post) -> None:
    probe.idle(workflow_id="order-1")
    probe.dispatcher.wait_update = (  # type: ignore[method-assign]
        lambda *_: probe.terminate("order-1")
    )
    body = {"request": {"meta": {"updateId": "u1"}}}
    assert post(f"{RUN}/update/add", body)[0] == 404
    assert [entry[0] for entry in kept()] == ["update"]


def test_updates_beyond_the_limit_leave_no_entry(probe: DatabaseProbe, post: Post) -> None:
    probe.idle(workflow_id="order-1")

    def give_up(*_: Any) -> None:
        raise DeadlineExceededError("nobody answers")

    probe.dispatcher.wait_update = give_up  # type: ignore[method-assign]
    codes = [
        post(f"{RUN}/update/add", {"request": {"meta": {"updateId": f"u{number}"}}})[0]
        for number in range(11)
    ]
    assert codes == [504] * 10 + [429]
    assert len(kept()) == 10


def test_orders_to_activities(probe: DatabaseProbe, post: Post) -> None:
    probe.run("order-1")
    probe.step(activity("job"))
    old = {"execution": {"workflowId": "order-1"}, "id": "job"}
    post(f"{NS}/activities-deprecated/pause", {**old, "reason": "look"})
    post(f"{NS}/activities-deprecated/unpause", {**old, "resetAttempts": True})
    post(f"{RUN}/activities/job/pause", {"reason": "again"})
    options = {
        "activityOptions": {"startToCloseTimeout": "7s"},
        "updateMask": "startToCloseTimeout",
    }
    post(f"{RUN}/activities/job/update-options", options)
    post(f"{RUN}/activities/job/reset", {"keepPaused": True})
    post(f"{RUN}/activities/job/unpause")
    job = '"activityId": "job"'
    assert kept() == [
        ("pause_activity", RUNNING, f"{{{job}}}"),
        ("unpause_activity", RUNNING, f'{{{job}, "resetAttempts": true}}'),
        ("pause_activity", RUNNING, f"{{{job}}}"),
        (
            "update_activity_options",
            RUNNING,
            f'{{{job}, "updateMask": "start_to_close_timeout"}}',
        ),
        ("reset_activity", RUNNING, f'{{{job}, "keepPaused": true}}'),
        ("unpause_activity", RUNNING, f"{{{job}}}"),
    ]
    reasons = AuditEntry.objects.order_by("entry_id").values_list("reason", flat=True)
    assert list(reasons)[:3] == ["look", "", "again"]
    (row,) = probe.describe("order-1").pending_activities
    assert (row.paused, row.activity_options.start_to_close_timeout.total_seconds()) == (False, 7)


@pytest.mark.parametrize("how", ["complete", "fail", "fail and retry", "resolve-as-canceled"])
@pytest.mark.parametrize("by", ["id", "token"])
def test_answers_to_activities(probe: DatabaseProbe, post: Post, how: str, by: str) -> None:
    probe.run("order-1")
    probe.step(activity("job", retryPolicy={"maximumAttempts": 1 + how.endswith("retry")}))
    task = probe.poll_activity("probe-activities")
    verb = how.partition(" ")[0]
    if verb.startswith("resolve"):
        probe.cancel("order-1")
        request_cancel = {
            "commandType": "COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK",
            "requestCancelActivityTaskCommandAttributes": {"scheduledEventId": "5"},
        }
        probe.step(request_cancel)
    token = {"taskToken": base64.b64encode(task.task_token).decode()}
    path = f"{RUN}/activities/job/{verb}" if by == "id" else f"{NS}/activity-{verb}"
    status, _ = post(path, token if by == "token" else {})
    assert status == 200
    name = {"complete": "complete_activity", "fail": "fail_activity"}.get(verb, "cancel_activity")
    facts = '{"activityId": "job"}' if by == "id" else '{"scheduledEventId": 5, "attempt": 1}'
    assert kept() == [(name, RUNNING, facts)]
    assert post(path, token if by == "token" else {})[0] in (400, 404)
    assert len(kept()) == 1


def test_heartbeats_are_none_of_its_business(probe: DatabaseProbe, post: Post) -> None:
    probe.run("order-1")
    probe.step(activity("job", heartbeatTimeout="60s"))
    probe.poll_activity("probe-activities")
    assert post(f"{RUN}/activities/job/heartbeat", {"details": [1]}) == (200, {})
    assert kept() == []


def test_each_action_is_a_call_of_the_service() -> None:
    for kind, action in ACTIONS.items():
        assert getattr(WorkflowService, action.call.__name__) is action.call
        assert action.target(kind()) is not None
        assert dict(action.facts(kind())) is not None


def test_a_store_in_memory_has_no_audit_log() -> None:
    request = SignalWorkflowExecutionRequest(namespace="default")
    with pytest.raises(TypeError, match="DjangoStore"):
        operating.perform(Probe().service, request, operating.Operator(actor="ann"))


def test_the_callers_transaction_takes_the_entry_with_it(probe: DatabaseProbe) -> None:
    probe.idle(workflow_id="order-1")
    request = SignalWorkflowExecutionRequest(
        namespace="default",
        workflow_execution=WorkflowExecution(workflow_id="order-1"),
        signal_name="go",
    )
    operator = operating.Operator(actor="everything")
    with transaction.atomic():
        operating.perform(probe.service, request, operator)
        assert len(kept()) == 1
        transaction.set_rollback(True)
    assert kept() == []
    with transaction.atomic():
        operating.perform(probe.service, request, operator)
    assert len(kept()) == 1
