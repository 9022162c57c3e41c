"""Verbs that start runs: their options, waiting for the end, signals and updates beside a start."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.command_line import workflow
from tests.support.database_probe import DatabaseProbe
from tests.support.requests_json import accepted, answered, complete, fail, refused, values
from wfapp.cli.context import account
from wfapp.models import AuditEntry

pytestmark = pytest.mark.usefixtures("probe")

START = ("--type", "Order", "-t", "q-probe", "-w", "order-1")
UPDATE = ("--update-name", "add", "--update-id", "u1", "--update-input", "7")


def test_options_of_a_start(probe: DatabaseProbe) -> None:
    answer = workflow(
        *("start", *START, "--cron", "0 12 * * *"),
        *("--retry-initial-interval", "2s", "--retry-maximum-attempts", "3"),
        *("--retry-backoff-coefficient", "1.5", "--retry-maximum-interval", "1m"),
        *("--retry-non-retryable-error-type", "CardDeclined"),
        *("--priority-key", "2", "--fairness-key", "ann", "--fairness-weight", "0.5"),
        *("--search-attribute", 'CustomKeywordField="vip"'),
    )
    assert (answer.code, answer.err) == (0, "")
    attributes = probe.events("order-1")[0].attributes
    assert attributes.cron_schedule == "0 12 * * *"
    policy = attributes.retry_policy
    assert (policy.initial_interval, policy.maximum_interval) == (
        timedelta(seconds=2),
        timedelta(minutes=1),
    )
    assert (policy.maximum_attempts, policy.backoff_coefficient) == (3, 1.5)
    assert policy.non_retryable_error_types == ("CardDeclined",)
    assert attributes.priority.priority_key == 2
    assert (attributes.priority.fairness_key, attributes.priority.fairness_weight) == ("ann", 0.5)
    found = attributes.search_attributes.indexed_fields["CustomKeywordField"]
    assert (found.data, found.metadata["encoding"]) == (b'"vip"', b"json/plain")
    shown = workflow("describe", "order-1").out
    assert "  CronSchedule        0 12 * * *\n" in shown
    policy = "3 attempts, after 2 s, times 1.5, at most 60 s, not for CardDeclined"
    assert f"  RetryPolicy         {policy}\n" in shown
    assert '  CustomKeywordField  "vip"\n' in shown
    told = workflow("describe", "order-1", "--json").json
    assert (told["cronSchedule"], told["retryPolicy"]["maximumAttempts"]) == ("0 12 * * *", 3)
    assert "pendingUpdates" not in told
    assert "  Why                 starts in 12 h, by the cron schedule 0 12 * * *\n" in shown


def test_without_options_nothing_is_repeated(probe: DatabaseProbe) -> None:
    workflow("start", *START)
    attributes = probe.events("order-1")[0].attributes
    assert (attributes.cron_schedule, attributes.retry_policy, attributes.priority) == (
        "",
        None,
        None,
    )


@pytest.mark.parametrize(
    "wrong",
    [
        ("--cron", "often"),
        ("--retry-maximum-attempts", "-1"),
        ("--priority-key", "-1"),
        ("--search-attribute", "CustomKeywordField"),
    ],
)
def test_wrong_options_start_nothing(probe: DatabaseProbe, wrong: tuple[str, str]) -> None:
    answer = workflow("start", *START, *wrong)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("Error: ")
    assert probe.store.head("default", "order-1") is None


# ---- execute


@pytest.fixture
def worker(probe: DatabaseProbe, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Commands with which the first workflow task is answered while the verb waits."""
    commands: list[Any] = []
    monkeypatch.setattr(
        probe.dispatcher, "wait_history", lambda *_: probe.step(*commands), raising=True
    )
    return commands


def test_execute(probe: DatabaseProbe, worker: list[Any]) -> None:
    worker.append(complete({"total": 7}))
    answer = workflow("execute", *START)
    assert answer.code == 0
    assert answer.out.startswith("Running execution:\n  WorkflowId  order-1\n")
    assert answer.out.endswith('Results:\n  Status  COMPLETED\n  Result  {"total": 7}\n')


def test_execute_in_json_is_one_document(probe: DatabaseProbe, worker: list[Any]) -> None:
    worker.append(complete("done"))
    answer = workflow("execute", *START, "--json").json
    assert set(answer) == {
        *("workflowId", "runId", "type", "namespace", "taskQueue"),
        *("status", "closeEvent", "result"),
    }
    assert (answer["type"], answer["result"]) == ("Order", "done")


def test_execute_of_what_fails(probe: DatabaseProbe, worker: list[Any]) -> None:
    worker.append(fail("no luck"))
    answer = workflow("execute", *START)
    assert (answer.code, answer.err) == (1, "Error: workflow failed\n")
    assert "  Failure  MyError: no luck\n" in answer.out


def test_execute_waits_no_longer_than_it_may(probe: DatabaseProbe) -> None:
    assert workflow("execute", *START, "--timeout", "0s").code == 4
    assert probe.status("order-1").name == "RUNNING"


# ---- beside a signal


def test_signal_with_start(probe: DatabaseProbe) -> None:
    sent = ("signal-with-start", *START, "--signal-name", "go", "--signal-input", "true")
    first = workflow(*sent, "--reason", "by phone", "--json").json
    again = workflow(*sent, "--json").json
    assert first == again
    assert set(first) == {"workflowId", "runId", "type", "namespace", "taskQueue"}
    probe.step()
    signals = [
        event.attributes
        for event in probe.events("order-1")
        if event.event_type.name == "WORKFLOW_EXECUTION_SIGNALED"
    ]
    assert [signal.input.payloads[0].data for signal in signals] == [b"true", b"true"]
    assert {signal.identity for signal in signals} == {account()}
    entries = AuditEntry.objects.order_by("entry_id").values_list("action", "reason", "after")
    assert list(entries) == [
        ("signal_with_start", "by phone", '{"signal": "go"}'),
        ("signal_with_start", "", '{"signal": "go"}'),
    ]


# ---- beside an update


def says(probe: DatabaseProbe, *words: Any) -> None:
    """What a worker says to an update while the verb waits."""
    probe.dispatcher.wait_update = lambda *_: probe.say(*words)  # type: ignore[method-assign]


def test_execute_update_with_start(probe: DatabaseProbe) -> None:
    says(probe, accepted, answered)
    answer = workflow("execute-update-with-start", *START, *UPDATE)
    run_id = probe.describe("order-1").workflow_execution_info.execution.run_id
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == (
        "Running execution:\n"
        "  WorkflowId  order-1\n"
        f"  RunId       {run_id}\n"
        "  Type        Order\n"
        "  Namespace   default\n"
        "  TaskQueue   q-probe\n"
        "\n"
        "  Name      add\n"
        "  UpdateID  u1\n"
        '  Result    "ok"\n'
    )
    sent = probe.attributes("order-1", "WORKFLOW_EXECUTION_UPDATE_ACCEPTED").accepted_request
    assert [payload.data for payload in sent.input.args.payloads] == [b"7"]
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.after) == (
        "update_with_start",
        '{"update": "add", "updateId": "u1"}',
    )
    again = workflow("execute-update-with-start", *START, *UPDATE, "--json")
    assert (again.json["runId"], again.json["result"]) == (run_id, "ok")
    assert again.err == "Nothing was started: this run was open already.\n"


def test_start_update_with_start_waits_until_it_is_accepted(probe: DatabaseProbe) -> None:
    says(probe, accepted)
    answer = workflow("start-update-with-start", *START, *UPDATE, "--json").json
    assert (answer["name"], answer["updateId"], "result" in answer) == ("add", "u1", False)


def test_update_with_start_that_is_refused(probe: DatabaseProbe) -> None:
    says(probe, refused)
    answer = workflow("execute-update-with-start", *START, *UPDATE)
    assert (answer.code, answer.err) == (
        1,
        "Error: unable to update workflow: no (type: Rejected, retryable: true)\n",
    )


@pytest.mark.parametrize(
    ("more", "code", "text"),
    [
        (("--id-conflict-policy", "Fail"), 3, "Workflow execution is already running."),
        (("--start-delay", "1h"), 1, "WorkflowStartDelay is not supported."),
        (("--timeout", "1s"), 4, "no worker answered the update"),
    ],
)
def test_errors_of_update_with_start_are_those_of_the_part_that_failed(
    probe: DatabaseProbe, more: tuple[str, ...], code: int, text: str
) -> None:
    probe.run("order-1", input=values(1))
    answer = workflow("execute-update-with-start", *START, *UPDATE, *more)
    assert answer.code == code
    assert answer.err.startswith(f"Error: {text}")
