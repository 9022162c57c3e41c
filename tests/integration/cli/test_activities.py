"""The verbs of activities over the database, and what show and why tell of them."""

import pytest
from django.core.management import CommandError

from tests.support.command_line import workflow
from tests.support.database_probe import DatabaseProbe
from tests.support.requests_json import activity, start_child
from wfapp.cli.context import account
from wfapp.models import AuditEntry

pytestmark = pytest.mark.usefixtures("probe")

PAY = ("order-1", "-a", "pay")


@pytest.fixture
def order(probe: DatabaseProbe) -> DatabaseProbe:
    """A run with two activities; an attempt of the first has failed."""
    probe.run("order-1")
    retry = {"initialInterval": "3600s", "maximumAttempts": 5}
    probe.step(
        activity("pay", "payments", kind="charge", retryPolicy=retry),
        activity("ship", "parcels", kind="ship"),
    )
    probe.answer_activity("failed", probe.poll_activity("payments"))
    return probe


def entries() -> list[tuple[str, str]]:
    found = AuditEntry.objects.order_by("entry_id").values_list("action", "reason")
    return list(found)


def test_complete(order: DatabaseProbe) -> None:
    answer = workflow("activity", "complete", "order-1", "-a", "ship", "--result", '{"at": 7}')
    assert (answer.code, answer.out) == (0, "Activity completed\n")
    attributes = order.attributes("order-1", "ACTIVITY_TASK_COMPLETED")
    assert attributes.result.payloads[0].data == b'{"at":7}'
    assert attributes.identity == account()
    gone = workflow("activity", "complete", "order-1", "-a", "ship", "--json")
    assert gone.code == 2
    assert entries() == [("complete_activity", "")]


def test_fail(order: DatabaseProbe) -> None:
    order.poll_activity("parcels")
    answer = workflow(
        "activity", "fail", "order-1", "-a", "ship", "--reason", "lost", "--detail", "[1]"
    )
    assert (answer.code, answer.out) == (0, "Activity failed\n")
    failure = order.attributes("order-1", "ACTIVITY_TASK_FAILED").failure
    assert (failure.message, failure.application_failure_info.non_retryable) == ("lost", True)
    assert failure.application_failure_info.details.payloads[0].data == b"[1]"
    assert entries() == [("fail_activity", "lost")]


def test_pause_and_unpause(order: DatabaseProbe) -> None:
    answer = workflow("activity", "pause", *PAY, "--reason", "the bank is closed")
    assert (answer.code, answer.out) == (0, "Activity paused\n")
    order.advance(60)
    shown = workflow("show", "order-1").out
    assert "  State            Paused\n" in shown
    assert f"  Paused           60 s ago by {account()}\n" in shown
    assert "  PauseReason      the bank is closed\n" in shown
    assert "NextAttempt" not in shown
    why = workflow("why", "order-1").out
    assert f"activity charge (pay) is paused since 60 s by {account()}: the bank is closed" in why
    assert workflow("describe", "order-1", "--json").json["pendingActivities"][0]["paused"] is True
    answer = workflow("activity", "unpause", *PAY, "--reset-attempts", "--reset-heartbeats")
    assert (answer.code, answer.out) == (0, "Activity unpaused\n")
    row = order.describe("order-1").pending_activities[0]
    assert (row.paused, row.attempt) == (False, 1)
    assert entries() == [("pause_activity", "the bank is closed"), ("unpause_activity", "")]


def test_an_attempt_that_runs_is_paused_after_it(order: DatabaseProbe) -> None:
    order.poll_activity("parcels")
    workflow("activity", "pause", "order-1", "--activity-type", "ship")
    assert "it is paused after this attempt" in workflow("why", "order-1").out
    assert "  State      Started\n" in workflow("show", "order-1").out


def test_reset(order: DatabaseProbe) -> None:
    answer = workflow("activity", "reset", *PAY, "--json")
    assert (answer.code, answer.json) == (0, {})
    assert order.describe("order-1").pending_activities[0].attempt == 1
    workflow("activity", "pause", *PAY)
    workflow("activity", "reset", "order-1", "--all", "--keep-paused", "--jitter", "1s")
    assert order.describe("order-1").pending_activities[0].paused is True
    assert entries()[-1] == ("reset_activity", "")


def test_update_options(order: DatabaseProbe) -> None:
    answer = workflow(
        *("activity", "update-options", *PAY, "--start-to-close-timeout", "1m"),
        *("--task-queue", "slow", "--retry-maximum-attempts", "9"),
    )
    assert answer.code == 0, answer.err
    assert answer.out == (
        "Activity options:\n"
        "  TaskQueue            slow\n"
        "  StartToCloseTimeout  60s\n"
        "  RetryPolicy          9 attempts, after 60 min, times 2, at most 4 d\n"
    )
    options = order.describe("order-1").pending_activities[0].activity_options
    assert options.task_queue.name == "slow"
    assert options.start_to_close_timeout.total_seconds() == 60
    restored = workflow(
        "activity", "update-options", *PAY, "--restore-original-options", "--json"
    ).json
    assert restored["activityOptions"]["startToCloseTimeout"] == "10s"
    assert restored["activityOptions"]["taskQueue"] == {"name": "payments"}
    nothing = workflow("activity", "update-options", *PAY)
    assert (nothing.code, nothing.err.startswith("Error: nothing to change")) == (1, True)
    wrong = workflow("activity", "update-options", *PAY, "--retry-maximum-attempts", "-1")
    assert wrong.code == 1
    assert [action for action, _ in entries()] == ["update_activity_options"] * 2


@pytest.mark.parametrize("verb", ["pause", "unpause", "reset"])
def test_missing_and_closed(order: DatabaseProbe, verb: str) -> None:
    assert workflow("activity", verb, "order-1", "-a", "nope").code == 2
    assert workflow("activity", verb, "absent", "-a", "pay").code == 2
    order.terminate("order-1")
    assert workflow("activity", verb, *PAY).code == 3
    assert entries() == []


@pytest.mark.parametrize(
    "arguments",
    [("pause", "order-1"), ("reset", *PAY, "--all"), ("complete", "order-1"), ("fail", *PAY)],
)
def test_bad_usage(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=r"Error: "):
        workflow("activity", *arguments)


def test_children_are_shown(probe: DatabaseProbe) -> None:
    probe.run("order-1")
    probe.step(start_child("parcel-1", workflowType={"name": "Parcel"}))
    shown = workflow("show", "order-1").out
    run_id = probe.describe("parcel-1").workflow_execution_info.execution.run_id
    assert (
        "Pending child workflows:\n"
        "  WorkflowId  Type    State    ParentClosePolicy  RunId\n"
        f"  parcel-1    Parcel  Started  Terminate          {run_id}\n"
    ) in shown
