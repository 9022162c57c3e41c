"""The verbs of `manage.py workflow` over the database."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from tests.support.command_line import workflow
from tests.support.database_probe import DatabaseProbe
from tests.support.requests_json import activity, complete, continue_as_new, fail, values
from wfapp.cli.context import account
from wfapp.models import AuditEntry
from wfcore.exceptions import DeadlineExceededError, QueryFailedError
from wfcore.protocol import json_form
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.payloads import Payload, Payloads
from wfcore.protocol.rpc.info import QueryRejected
from wfcore.protocol.rpc.workflows import QueryWorkflowResponse

pytestmark = pytest.mark.usefixtures("probe")


# ---- start


def test_start(probe: DatabaseProbe) -> None:
    answer = workflow(
        *("start", "--type", "Order", "--task-queue", "orders", "--workflow-id", "order-1"),
        *("-i", '{"sku": 7}', "-i", "true", "--run-timeout", "1h", "--memo", 'who="Ann"'),
        *("--static-summary", "an order", "--reason", "by phone"),
    )
    assert answer.code == 0, answer.err
    info = probe.describe("order-1")
    run_id = info.workflow_execution_info.execution.run_id
    assert answer.out == (
        "Running execution:\n"
        "  WorkflowId  order-1\n"
        f"  RunId       {run_id}\n"
        "  Type        Order\n"
        "  Namespace   default\n"
        "  TaskQueue   orders\n"
    )
    started = probe.events("order-1")[0]
    assert [p.data for p in started.attributes.input.payloads] == [b'{"sku":7}', b"true"]
    assert started.attributes.workflow_run_timeout.total_seconds() == 3600
    assert started.attributes.memo.fields["who"].data == b'"Ann"'
    assert started.attributes.identity == account()
    assert started.user_metadata.summary.data == b'"an order"'
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor, entry.reason) == ("start", account(), "by phone")
    assert str(entry.run_id) == run_id


def test_a_second_start_of_an_open_id_is_refused_or_finds_it(probe: DatabaseProbe) -> None:
    probe.run("order-1")
    again = ("start", "--type", "Order", "-w", "order-1")
    answer = workflow(*again)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith("Error: Workflow execution is already running.")
    found = workflow(*again, "--id-conflict-policy", "UseExisting")
    assert found.code == 0
    assert found.err == "Nothing was started: this run was open already.\n"


def test_start_makes_an_id_and_answers_in_json() -> None:
    answer = workflow("start", "--type", "Order", "--json").json
    assert set(answer) == {"workflowId", "runId", "type", "namespace", "taskQueue"}
    assert answer["taskQueue"] == "default"


@pytest.mark.parametrize(
    "arguments",
    [
        ("start", "--type", "Order", "-i", "text"),
        ("start", "--type", "Order", "--input-file", "/nowhere"),
        ("start", "--type", "Order", "--memo", "x"),
        ("start", "--type", "x" * 1001),
        ("start", "--type", "Order", "-n", "nowhere"),
    ],
)
def test_bad_input_starts_nothing(arguments: tuple[str, ...]) -> None:
    answer = workflow(*arguments)
    assert answer.code in (1, 2)
    assert answer.err.startswith("Error: ")
    assert answer.err.count("\n") == 1
    assert workflow("list", "--json").json == []
    assert not AuditEntry.objects.exists()


# ---- list, show, history, why


def test_list(probe: DatabaseProbe) -> None:
    empty = workflow("list")
    assert (empty.code, empty.out, empty.err) == (0, "", "No runs.\n")
    _, first = probe.run("order-1", workflowType={"name": "Order"})
    probe.advance(60)
    _, second = probe.run("order-2", workflowType={"name": "LongOrder"})
    assert workflow("list").out == (
        "  Status   WorkflowId  Type       StartTime            RunId\n"
        f"  Running  order-2     LongOrder  2030-01-01 00:01:00  {second}\n"
        f"  Running  order-1     Order      2030-01-01 00:00:00  {first}\n"
    )
    assert [run["execution"]["workflowId"] for run in workflow("list", "--json").json] == [
        "order-2",
        "order-1",
    ]
    assert len(workflow("list", "--json", "--limit", "1").json) == 1
    assert len(workflow("list", "--json", "-q", "WorkflowType = 'Order'").json) == 1
    assert workflow("list", "-q", "nonsense").code == 1


def test_list_goes_on_over_pages(probe: DatabaseProbe) -> None:
    for _ in range(130):
        probe.run()
    assert len(workflow("list", "--json", "--limit", "120").json) == 120


def test_show_tells_all_and_why(probe: DatabaseProbe) -> None:
    probe.run("order-1", memo={"fields": {"who": values("Ann")["payloads"][0]}})
    probe.step(activity("pay", "payments", kind="charge"))
    probe.advance(5)
    shown = workflow("show", "order-1").out
    assert "  Status         Running\n" in shown
    assert '  Memo.who       "Ann"\n' in shown
    assert "Pending activity pay:\n" in shown
    assert "  Why            activity charge (pay) is due since 5 s" in shown
    body = workflow("show", "order-1", "--json").json
    assert body["pendingActivities"][0]["activityId"] == "pay"
    assert body["workflowExecutionInfo"]["memo"] == {"fields": {"who": "Ann"}}
    assert body["why"].startswith("activity charge (pay) is due since 5 s")


def test_the_id_may_stand_first_or_behind_its_flag(probe: DatabaseProbe) -> None:
    probe.run("order-1")
    assert workflow("why", "order-1").out == workflow("why", "-w", "order-1").out
    assert workflow("why").err == "Error: a workflow id is missing\n"
    assert workflow("why", "a", "-w", "b").code == 1


def test_why(probe: DatabaseProbe) -> None:
    probe.run("order-1")
    probe.cancel("order-1")
    probe.advance(40)
    answer = workflow("why", "order-1")
    sentence, also = answer.out.splitlines()
    assert sentence == (
        "the workflow task is due since 40 s, no worker has claimed from queue q-probe for 40 s: "
        "no worker process serves it"
    )
    assert also.startswith("  also: cancellation is requested")
    assert workflow("why", "order-1", "--json").json["trouble"] is True


def test_history(probe: DatabaseProbe) -> None:
    probe.run("order-1", input=values("Ann"))
    probe.step(complete("done"))
    assert workflow("history", "order-1").out == (
        "Progress:\n"
        "  ID  Time                 Type\n"
        "  1   2030-01-01 00:00:00  WorkflowExecutionStarted\n"
        "  2   2030-01-01 00:00:00  WorkflowTaskScheduled\n"
        "  3   2030-01-01 00:00:00  WorkflowTaskStarted\n"
        "  4   2030-01-01 00:00:00  WorkflowTaskCompleted\n"
        "  5   2030-01-01 00:00:00  WorkflowExecutionCompleted\n"
    )
    compact = workflow("history", "order-1", "--compact").out.splitlines()
    assert [line.split()[2:] for line in compact[1:]] == [
        ["00:00:00", "workflow", "wf", "started", '"Ann"'],
        ["00:00:00", "workflow", "completed", '"done"'],
    ]
    detailed = workflow("history", "order-1", "--detailed").out
    assert "--- [1] WorkflowExecutionStarted ---\n" in detailed
    assert 'input[0]                  "Ann"' in detailed
    assert workflow("history", "order-1", "--reverse").out.splitlines()[2].startswith("  5 ")


def test_history_is_exported_in_temporals_json(probe: DatabaseProbe, tmp_path: Path) -> None:
    probe.run("order-1", input=values("Ann"))
    probe.step(complete("done"))
    file = tmp_path / "order.json"
    answer = workflow("history", "order-1", "--output", str(file))
    assert answer.out == f"5 events written to {file}\n"
    events = json_form.history_from_json(json.loads(file.read_text()))
    assert events == probe.events("order-1")
    assert workflow("history", "order-1", "--json").json == json.loads(file.read_text())
    assert [entry.name for entry in tmp_path.iterdir()] == ["order.json"]


def test_a_file_that_can_not_be_written(probe: DatabaseProbe, tmp_path: Path) -> None:
    probe.run("order-1")
    answer = workflow("history", "order-1", "--output", str(tmp_path / "absent" / "x.json"))
    assert (answer.code, answer.err.startswith("Error: ")) == (1, True)


# ---- result


def test_result_of_a_completed_workflow(probe: DatabaseProbe) -> None:
    probe.run("order-1")
    probe.step(complete({"total": 7}))
    assert workflow("result", "order-1").out == (
        'Results:\n  Status  COMPLETED\n  Result  {"total": 7}\n'
    )
    answer = workflow("result", "order-1", "--json").json
    assert (answer["status"], answer["result"]) == ("COMPLETED", {"total": 7})
    assert answer["closeEvent"]["eventType"] == "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED"


def test_result_follows_the_chain(probe: DatabaseProbe) -> None:
    _, first = probe.run("order-1")
    probe.step(continue_as_new())
    probe.advance(2)
    probe.step(complete("at last"))
    answer = workflow("result", "order-1", "-r", first, "--json").json
    assert answer["result"] == "at last"
    assert answer["runId"] != first


@pytest.mark.parametrize(
    ("end", "status", "error"),
    [
        (lambda probe: probe.step(fail("no luck")), "FAILED", "workflow failed"),
        (lambda probe: probe.terminate("order-1"), "TERMINATED", "workflow ended as Terminated"),
    ],
)
def test_result_of_another_end_is_an_error(
    probe: DatabaseProbe, end: Callable[[DatabaseProbe], Any], status: str, error: str
) -> None:
    probe.run("order-1")
    end(probe)
    answer = workflow("result", "order-1")
    assert (answer.code, answer.err) == (1, f"Error: {error}\n")
    assert f"  Status   {status}\n" in answer.out or f"  Status  {status}\n" in answer.out


def test_result_waits_no_longer_than_it_may(probe: DatabaseProbe) -> None:
    probe.run("order-1")
    answer = workflow("result", "order-1", "--timeout", "0s")
    assert (answer.code, answer.err) == (4, "Error: the workflow is still running\n")


# ---- acting


def test_signal(probe: DatabaseProbe) -> None:
    probe.idle(workflow_id="order-1")
    answer = workflow(
        *("signal", "order-1", "--name", "approve", "-i", "true", "--reason", "called")
    )
    assert (answer.code, answer.out) == (0, "Signal workflow succeeded\n")
    attributes = probe.attributes("order-1", "WORKFLOW_EXECUTION_SIGNALED")
    assert (attributes.signal_name, attributes.identity) == ("approve", account())
    assert attributes.input.payloads[0].data == b"true"
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.reason, entry.after) == (
        "signal",
        "called",
        '{"signal": "approve"}',
    )


def test_cancel_and_terminate(probe: DatabaseProbe) -> None:
    probe.idle(workflow_id="order-1")
    assert workflow("cancel", "order-1", "--reason", "late").out == "Canceled workflow\n"
    assert probe.attributes("order-1", "WORKFLOW_EXECUTION_CANCEL_REQUESTED").cause == "late"
    assert workflow("terminate", "order-1", "--reason", "now").out == "Workflow terminated\n"
    assert probe.attributes("order-1", "WORKFLOW_EXECUTION_TERMINATED").reason == "now"
    assert sorted(AuditEntry.objects.values_list("action", "reason")) == [
        ("cancel", "late"),
        ("terminate", "now"),
    ]


def test_reset(probe: DatabaseProbe) -> None:
    _, old = probe.idle(workflow_id="order-1")
    probe.signal("order-1", "go")
    told = workflow("reset", "order-1", "--type", "LastWorkflowTask", "--reason", "bad code")
    new = probe.describe("order-1").workflow_execution_info.execution.run_id
    assert told.out == f"Resetting workflow order-1 to event ID 4\nNew run: {new}\n"
    assert probe.types("order-1", new)[3:5] == [
        "WORKFLOW_TASK_FAILED",
        "WORKFLOW_EXECUTION_SIGNALED",
    ]
    assert probe.attributes("order-1", "WORKFLOW_EXECUTION_TERMINATED", old).reason == "bad code"
    entry = AuditEntry.objects.get(action="reset")
    assert (entry.reason, entry.after) == ("bad code", '{"eventId": 4}')
    excluded = workflow("reset", "order-1", "--event-id", "4", "--reapply-exclude", "signal")
    assert excluded.code == 0
    assert "WORKFLOW_EXECUTION_SIGNALED" not in probe.types("order-1")
    assert workflow("reset", "order-1", "--event-id", "2").code == 1
    assert workflow("reset", "nobody", "--type", "FirstWorkflowTask").code == 2


@pytest.mark.parametrize("verb", [("signal", "--name", "go"), ("terminate",)])
def test_a_closed_run_is_told_from_a_missing_one(
    probe: DatabaseProbe, verb: tuple[str, ...]
) -> None:
    probe.closed("COMPLETED", "order-1")
    assert workflow(*verb, "-w", "order-1").code == 3
    assert workflow(*verb, "-w", "absent").code == 2
    assert workflow(*verb, "-w", "order-1", "-r", "11111111-1111-4111-8111-111111111111").code == 2
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("verb", ["show", "history", "result", "why", "cancel", "terminate"])
def test_a_missing_run(verb: str) -> None:
    answer = workflow(verb, "absent")
    assert (answer.code, answer.err) == (2, "Error: workflow not found for ID: absent\n")
    told = json.loads(workflow(verb, "absent", "--json").err)
    assert told == {"error": "workflow not found for ID: absent", "exitCode": 2}


# ---- query


def answers(probe: DatabaseProbe, monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    """What the service says to a query."""

    def query(*_: Any, **__: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(probe.service, "query_workflow", query)


def test_query_prints_values_and_traces_in_lines(
    probe: DatabaseProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe.run("order-1")
    found = tuple(
        Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(value).encode())
        for value in ({"paid": True}, "line 1\nline 2")
    )
    answers(probe, monkeypatch, QueryWorkflowResponse(query_result=Payloads(payloads=found)))
    shown = workflow("query", "order-1", "--name", "state").out
    assert shown == 'Query result:\n  {"paid": true}\n  line 1\n  line 2\n'
    assert workflow("query", "order-1", "--name", "state", "--json").json == {
        "queryResult": [{"paid": True}, "line 1\nline 2"]
    }


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        (QueryFailedError("no such order"), 1, "the query failed: no such order"),
        (DeadlineExceededError("no worker answered"), 4, "no worker answered"),
        (
            QueryWorkflowResponse(query_rejected=QueryRejected(status=Status.CANCELED)),
            3,
            "query was rejected, workflow has status: Canceled",
        ),
    ],
)
def test_query_errors(
    probe: DatabaseProbe, monkeypatch: pytest.MonkeyPatch, answer: Any, code: int, text: str
) -> None:
    probe.run("order-1")
    answers(probe, monkeypatch, answer)
    told = workflow("query", "order-1", "--name", "state")
    assert (told.code, told.err) == (code, f"Error: {text}\n")


# ---- usage


@pytest.mark.parametrize(
    "arguments", [(), ("bogus",), ("start",), ("list", "--limit", "many"), ("signal", "x")]
)
def test_bad_usage(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=r"Error: "):
        workflow(*arguments)
