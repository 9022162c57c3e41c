"""Builders of requests and commands in protobuf's JSON form, as the recordings were made with."""

import base64
import json
from typing import Any

Json = dict[str, Any]

UUID = "11111111-2222-4333-8444-555555555555"
LONG = "x" * 1001
MIB = 1024 * 1024


def text64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def value(content: Any) -> Json:
    """One payload."""
    return {
        "metadata": {"encoding": text64("json/plain")},
        "data": text64(json.dumps(content)),
    }


def attribute(kind: str, content: Any) -> Json:
    """One search attribute."""
    payload = value(content)
    payload["metadata"]["type"] = text64(kind)
    return payload


def values(*contents: Any) -> Json:
    return {"payloads": [value(content) for content in contents]}


def big(size: int) -> Json:
    """One payload of about that many bytes."""
    return {
        "metadata": {"encoding": text64("binary/plain")},
        "data": base64.b64encode(b"x" * size).decode(),
    }


TOO_BIG: Json = {"payloads": [big(2 * MIB + 1)]}


def seconds(amount: float) -> str:
    return f"{amount:.3f}s" if amount % 1 else f"{int(amount)}s"


def failure(message: str = "boom", kind: str = "MyError") -> Json:
    return {"message": message, "applicationFailureInfo": {"type": kind}}


# ---- commands


def command(kind: str, attributes: Json | None = None, **extra: Any) -> Json:
    """A command; None leaves its attribute message out."""
    first, *rest = kind.lower().split("_")
    name = first + "".join(part.capitalize() for part in rest) + "CommandAttributes"
    sent = {"commandType": f"COMMAND_TYPE_{kind}", **extra}
    return sent if attributes is None else {**sent, name: attributes}


def timer(timer_id: str, wait: float, **extra: Any) -> Json:
    attributes = {"timerId": timer_id, "startToFireTimeout": seconds(wait)}
    return command("START_TIMER", attributes, **extra)


def cancel_timer(timer_id: str) -> Json:
    return command("CANCEL_TIMER", {"timerId": timer_id})


def activity(
    activity_id: str,
    queue: str | None = "probe-activities",
    kind: str = "act",
    start_to_close: float = 10,
    **attributes: Any,
) -> Json:
    named = {"taskQueue": {"name": queue}} if queue else {}
    return command(
        "SCHEDULE_ACTIVITY_TASK",
        {
            "activityId": activity_id,
            "activityType": {"name": kind},
            "startToCloseTimeout": seconds(start_to_close),
            **named,
            **attributes,
        },
    )


def cancel_activity(event_id: int) -> Json:
    return command("REQUEST_CANCEL_ACTIVITY_TASK", {"scheduledEventId": str(event_id)})


def complete(*results: Any) -> Json:
    attributes = {"result": values(*results)} if results else {}
    return command("COMPLETE_WORKFLOW_EXECUTION", attributes)


def fail(message: str = "boom") -> Json:
    return command("FAIL_WORKFLOW_EXECUTION", {"failure": failure(message)})


def cancel_workflow() -> Json:
    return command("CANCEL_WORKFLOW_EXECUTION", {})


def continue_as_new(**attributes: Any) -> Json:
    return command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", attributes)


def start_child(workflow_id: str, **attributes: Any) -> Json:
    attributes.setdefault("workflowType", {"name": "child"})
    return command("START_CHILD_WORKFLOW_EXECUTION", {"workflowId": workflow_id, **attributes})


def signal_external(workflow_id: str, name: str = "s", run_id: str = "", **attributes: Any) -> Json:
    target = {"workflowId": workflow_id, "runId": run_id}
    return command(
        "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION",
        {"execution": target, "signalName": name, **attributes},
    )


def cancel_external(workflow_id: str, run_id: str = "", **attributes: Any) -> Json:
    return command(
        "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION",
        {"workflowId": workflow_id, "runId": run_id, **attributes},
    )


def marker(name: str = "m", **attributes: Any) -> Json:
    return command("RECORD_MARKER", {"markerName": name, **attributes})


def upsert_attributes(**fields: Any) -> Json:
    return command(
        "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES", {"searchAttributes": {"indexedFields": fields}}
    )


def upsert_memo(**fields: Any) -> Json:
    return command("MODIFY_WORKFLOW_PROPERTIES", {"upsertedMemo": {"fields": fields}})


# ---- what a worker says about updates


def accepted(message: Json) -> Json:
    """The validator passed."""
    return _said(
        message,
        "Acceptance",
        acceptedRequestMessageId=message["id"],
        acceptedRequestSequencingEventId=message["eventId"],
        acceptedRequest=_request(message),
    )


def refused(message: Json) -> Json:
    """The validator raised."""
    return _said(
        message,
        "Rejection",
        rejectedRequestMessageId=message["id"],
        rejectedRequestSequencingEventId=message["eventId"],
        rejectedRequest=_request(message),
        failure=failure("no", "Rejected"),
    )


def answered(message: Json, *contents: Any, **outcome: Any) -> Json:
    """The handler ended."""
    return _said(
        message,
        "Response",
        meta={"updateId": message["protocolInstanceId"]},
        outcome=outcome or {"success": values(*contents or ("ok",))},
    )


def placed(message: Json) -> Json:
    """The command that gives a message its place."""
    return command("PROTOCOL_MESSAGE", {"messageId": message["id"]})


def _said(message: Json, kind: str, **body: Any) -> Json:
    return {
        "id": f"{message['protocolInstanceId']}/{kind}",
        "protocolInstanceId": message["protocolInstanceId"],
        "body": {"@type": f"type.googleapis.com/temporal.api.update.v1.{kind}", **body},
    }


def _request(message: Json) -> Json:
    return {key: part for key, part in message["body"].items() if key != "@type"}
