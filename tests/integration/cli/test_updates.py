"""The verbs of updates over the database; a worker answers while a verb waits."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError

from tests.support.command_line import workflow
from tests.support.database_probe import DatabaseProbe
from tests.support.requests_json import accepted, answered, failure, refused
from wfapp.cli.context import account
from wfapp.models import AuditEntry

pytestmark = pytest.mark.usefixtures("probe")

#: Longer than any call waits.
_STEP = timedelta(seconds=30)
ADD = ("order-1", "--name", "add", "--update-id", "u1")


@pytest.fixture
def order(probe: DatabaseProbe) -> DatabaseProbe:
    probe.idle(workflow_id="order-1")
    return probe


def says(probe: DatabaseProbe, *words: Any) -> None:
    """What a worker says to an update when the verb waits for the first time."""
    left = [words]

    def once(*_: Any) -> None:
        if left:
            probe.say(*left.pop())
        else:
            probe.clock.move_to(probe.clock.now() + _STEP)

    probe.dispatcher.wait_update = once  # type: ignore[method-assign]


def test_execute(order: DatabaseProbe) -> None:
    says(order, accepted, answered)
    answer = workflow("update", "execute", *ADD, "-i", "7", "--reason", "by phone")
    assert (answer.code, answer.out, answer.err) == (
        0,
        '  Name      add\n  UpdateID  u1\n  Result    "ok"\n',
        "",
    )
    sent = order.attributes("order-1", "WORKFLOW_EXECUTION_UPDATE_ACCEPTED").accepted_request
    assert (sent.input.args.payloads[0].data, sent.meta.identity) == (b"7", account())
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.reason, entry.after) == (
        "update",
        "by phone",
        '{"update": "add", "updateId": "u1"}',
    )
    again = workflow("update", "execute", *ADD, "--json").json
    assert again == {"name": "add", "updateId": "u1", "result": "ok"}


def test_start_waits_until_it_is_accepted_and_result_for_its_end(order: DatabaseProbe) -> None:
    says(order, accepted)
    started = workflow("update", "start", *ADD, "--json").json
    assert started == {"name": "add", "updateId": "u1"}
    named = ("order-1", "--update-id", "u1")
    assert workflow("update", "describe", *named).out == ("  UpdateID  u1\n  Stage     Accepted\n")
    shown = workflow("show", "order-1").out
    assert (
        "Pending updates:\n"
        "  UpdateID  Name  Stage     Since\n"
        "  u1        add   Accepted  2030-01-01 00:00:00\n"
    ) in shown
    assert workflow("show", "order-1", "--json").json["pendingUpdates"] == [
        {
            "updateId": "u1",
            "name": "add",
            "stage": "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED",
            "acceptedTime": "2030-01-01T00:00:00.000000Z",
        }
    ]
    assert "update u1 is accepted and has not ended" in workflow("why", "order-1").out
    late = workflow("update", "result", *named, "--timeout", "1s")
    assert (late.code, late.err) == (4, "Error: the update is not completed yet\n")

    order.signal("order-1")
    task = order.poll()
    (message,) = [{"id": "u1/request", "protocolInstanceId": "u1", "eventId": "0"}]
    said = answered(message)
    command = {
        "commandType": "COMMAND_TYPE_PROTOCOL_MESSAGE",
        "protocolMessageCommandAttributes": {"messageId": said["id"]},
    }
    order.answer(task, command, messages=[said])
    assert workflow("update", "result", *named).out == '  UpdateID  u1\n  Result    "ok"\n'
    described = workflow("update", "describe", *named, "--json").json
    assert described == {"updateId": "u1", "stage": "COMPLETED", "result": "ok"}
    assert "Pending updates" not in workflow("show", "order-1").out


def test_a_wait_goes_on_over_long_polls(order: DatabaseProbe) -> None:
    left = [lambda: order.say(accepted, answered), lambda: None, lambda: None]

    def later(*_: Any) -> None:
        order.clock.move_to(order.clock.now() + _STEP)
        left.pop()()

    order.dispatcher.wait_update = later  # type: ignore[method-assign]
    assert workflow("update", "execute", *ADD, "--json").json["result"] == "ok"
    assert left == []


def test_an_admitted_update_is_shown(order: DatabaseProbe) -> None:
    left: list[str] = []

    def look(*_: Any) -> None:
        left.append(workflow("show", "order-1").out)
        order.say(accepted, answered)

    order.dispatcher.wait_update = look  # type: ignore[method-assign]
    workflow("update", "execute", *ADD)
    assert "  u1        add   Admitted\n" in left[0]
    assert "update u1 waits for a worker's word" in left[0]


@pytest.mark.parametrize("verb", ["start", "execute"])
def test_what_is_refused_is_an_error(order: DatabaseProbe, verb: str) -> None:
    says(order, refused)
    answer = workflow("update", verb, *ADD)
    text = "unable to update workflow: no (type: Rejected, retryable: true)"
    assert (answer.code, answer.out, answer.err) == (1, "", f"Error: {text}\n")


def test_what_fails_is_an_error_with_its_kind(order: DatabaseProbe) -> None:
    failed = failure("jammed", "Jammed")
    failed["applicationFailureInfo"]["nonRetryable"] = True
    says(order, accepted, lambda message: answered(message, failure=failed))
    answer = workflow("update", "execute", *ADD, "--json")
    assert (answer.code, answer.out) == (1, "")
    assert json.loads(answer.err) == {
        "error": "unable to update workflow: jammed (type: Jammed, retryable: false)",
        "exitCode": 1,
    }
    described = workflow("update", "describe", "order-1", "--update-id", "u1", "--json").json
    assert described["failure"] == "Jammed: jammed"


def test_missing_closed_and_late(order: DatabaseProbe) -> None:
    assert workflow("update", "execute", "absent", "--name", "add").code == 2
    missing = workflow("update", "result", "order-1", "--update-id", "nope")
    assert (missing.code, missing.err) == (2, 'Error: update "nope" not found\n')
    order.dispatcher.wait_update = (  # type: ignore[method-assign]
        lambda *_: order.clock.move_to(order.clock.now() + _STEP)
    )
    late = workflow("update", "execute", *ADD, "--timeout", "1s")
    assert (late.code, late.err) == (4, "Error: the update is not completed yet\n")
    chain = workflow("update", "execute", *ADD, "--first-execution-run-id", "x")
    assert chain.code == 2
    order.terminate("order-1")
    assert workflow("update", "execute", *ADD, "--update-id", "u2").code == 3


@pytest.mark.parametrize("arguments", [("update",), ("update", "bogus"), ("update", "result", "x")])
def test_bad_usage(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=r"Error: "):
        workflow(*arguments)
