"""Messages about updates in Temporal's JSON, both ways."""

from typing import Any

import pytest

from tests.support.histories import acceptance, rejection, response, update_request
from wfcore.protocol.json_form import from_json, to_json
from wfcore.protocol.message import Message
from wfcore.protocol.rpc.workflow_tasks import RespondWorkflowTaskCompletedRequest
from wfcore.protocol.updates import ProtocolMessage, Request, body_name


@pytest.mark.parametrize(
    "message",
    [
        ProtocolMessage(
            id="u/request", protocol_instance_id="u", event_id=5, body=update_request()
        ),
        acceptance(accepted_request=update_request(), accepted_request_sequencing_event_id=7),
        rejection(),
        response(),
        ProtocolMessage(id="m", command_index=2),
    ],
    ids=["request", "acceptance", "rejection", "response", "no body"],
)
def test_a_message_comes_back_whole(message: ProtocolMessage) -> None:
    request = RespondWorkflowTaskCompletedRequest(messages=(message,))
    assert from_json(RespondWorkflowTaskCompletedRequest, to_json(request)) == request


def test_what_it_carries_is_named_beside_its_fields() -> None:
    message = ProtocolMessage(
        id="u/request", protocol_instance_id="u", event_id=5, body=update_request()
    )
    written: dict[str, Any] = to_json(message)
    assert written["eventId"] == "5"
    assert written["body"]["@type"] == "type.googleapis.com/temporal.api.update.v1.Request"
    assert written["body"]["meta"] == {"updateId": "u", "identity": "client"}


def test_an_unknown_body_is_refused_with_what_is_known() -> None:
    written = {"id": "m", "body": {"@type": "type.googleapis.com/temporal.api.common.v1.Payload"}}
    with pytest.raises(ValueError, match=r"carries no 'temporal\.api\.common\.v1\.Payload'"):
        from_json(ProtocolMessage, written)


def test_only_bodies_have_names() -> None:
    assert body_name(Request()) == "temporal.api.update.v1.Request"
    with pytest.raises(ValueError, match="carries no ProtocolMessage"):
        body_name(ProtocolMessage())
    with pytest.raises(ValueError, match="carries no Message"):
        body_name(Message())
