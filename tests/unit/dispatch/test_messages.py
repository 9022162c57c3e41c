"""Message forms are a wire format: two releases read each other's. What stands here stays."""

import json
from pathlib import Path

import pytest

from wfapp.dispatch import messages
from wfapp.dispatch.messages import MessageTooNewError
from wfcore.history.effects import DispatchActivity, DispatchWorkflowTask
from wfcore.protocol.payloads import Payload, Payloads
from wfcore.protocol.rpc.info import WorkflowQuery
from wfcore.service.ports import QueryTask

REFERENCE = Path(__file__).resolve().parents[3] / "docs/reference/messages.md"

WORKFLOW_TASK = DispatchWorkflowTask(
    namespace="default",
    workflow_id="order-17",
    run_id="0190f3c4-1111-7000-8000-000000000001",
    task_queue="orders",
    scheduled_event_id=2,
    attempt=1,
)
ACTIVITY = DispatchActivity(
    namespace="default",
    workflow_id="order-17",
    run_id="0190f3c4-1111-7000-8000-000000000001",
    task_queue="orders",
    scheduled_event_id=5,
    activity_type="charge",
    attempt=2,
    stamp=3,
)
QUERY = QueryTask(
    query_id="7b0c0f0e-2222-4000-8000-000000000002",
    namespace="default",
    workflow_id="order-17",
    run_id="0190f3c4-1111-7000-8000-000000000001",
    workflow_type="OrderWorkflow",
    task_queue="orders",
    query=WorkflowQuery(
        query_type="state",
        query_args=Payloads(
            payloads=(Payload(metadata={"encoding": b"json/plain"}, data=b"true"),)
        ),
    ),
)

GOLDEN = {
    "wfapp.workflow_task": {
        "v": 1,
        "namespace": "default",
        "workflow_id": "order-17",
        "run_id": "0190f3c4-1111-7000-8000-000000000001",
        "scheduled_event_id": 2,
        "attempt": 1,
        "task_queue": "orders",
    },
    "wfapp.activity": {
        "v": 1,
        "namespace": "default",
        "workflow_id": "order-17",
        "run_id": "0190f3c4-1111-7000-8000-000000000001",
        "scheduled_event_id": 5,
        "activity_type": "charge",
        "attempt": 2,
        "stamp": 3,
        "task_queue": "orders",
    },
    "wfapp.query": {
        "v": 1,
        "query": {
            "queryId": "7b0c0f0e-2222-4000-8000-000000000002",
            "namespace": "default",
            "workflowId": "order-17",
            "runId": "0190f3c4-1111-7000-8000-000000000001",
            "workflowType": "OrderWorkflow",
            "taskQueue": "orders",
            "query": {
                "queryType": "state",
                "queryArgs": {
                    "payloads": [{"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": "dHJ1ZQ=="}]
                },
            },
        },
    },
}


def as_json(value: object) -> object:
    return json.loads(json.dumps(value))


def test_the_forms_of_messages_stay() -> None:
    sent = [
        messages.workflow_task_message(WORKFLOW_TASK, "orders.workflow"),
        messages.activity_message(ACTIVITY, "orders"),
        messages.query_message(QUERY, "orders.workflow"),
    ]
    assert {message.task: as_json(message.kwargs) for message in sent} == GOLDEN
    assert [message.headers for message in sent] == [{}, {}, {}]


def test_a_celery_task_gets_its_hint_in_a_header_and_no_arguments() -> None:
    message = messages.celery_task_message(ACTIVITY, "mail")
    assert (message.task, message.queue, message.kwargs) == ("charge", "mail", {})
    assert as_json(message.headers) == {"wfapp": GOLDEN["wfapp.activity"]}
    assert message.time_limit is None
    assert message.task_id == "456eb2eb-c1a1-5081-ac33-bda0cfeb5c98"


def test_the_reference_shows_these_forms() -> None:
    text = REFERENCE.read_text()
    shown = [json.loads(block.split("```")[0]) for block in text.split("```json\n")[1:]]
    for form in GOLDEN.values():
        assert form in shown


def test_messages_are_read_as_they_were_written() -> None:
    assert messages.read_workflow_task(GOLDEN["wfapp.workflow_task"]).effect == WORKFLOW_TASK
    assert messages.read_activity(GOLDEN["wfapp.activity"]).effect == ACTIVITY
    assert messages.read_query(GOLDEN["wfapp.query"]) == QUERY


def test_a_later_release_may_add_fields_and_leave_out_what_has_a_default() -> None:
    hint = messages.read_workflow_task(
        {"v": 1, "namespace": "n", "workflow_id": "w", "run_id": "r", "colour": "blue"}
    )
    assert (hint.key.namespace, hint.key.workflow_id, hint.key.run_id) == ("n", "w", "r")


@pytest.mark.parametrize("version", [2, "1", None])
def test_a_newer_format_is_refused_in_words(version: object) -> None:
    with pytest.raises(MessageTooNewError, match="stays in the database"):
        messages.read_activity({**GOLDEN["wfapp.activity"], "v": version})


def test_our_tasks_are_bound_by_no_time_limit_of_the_app() -> None:
    for message in (
        messages.workflow_task_message(WORKFLOW_TASK, "q"),
        messages.activity_message(ACTIVITY, "q"),
        messages.query_message(QUERY, "q"),
    ):
        # Celery takes None and 0 for "as the app says".
        assert message.time_limit
        assert message.time_limit > 365 * 24 * 3600
