"""What a scripted worker says about updates: it accepts, answers, refuses, or says nothing."""

import random
from collections.abc import Sequence

from wfcore.protocol import commands
from wfcore.protocol import events as ev
from wfcore.protocol.commands import CLOSING, Command
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.protocol.updates import (
    Acceptance,
    Meta,
    Outcome,
    ProtocolMessage,
    Rejection,
    Response,
)
from wfcore.testing.simulation.world import text

#: Types of failures of updates in a simulated world.
REFUSED, BROKEN = "Refused", "Broken"


def words(
    messages: Sequence[ProtocolMessage], events: Sequence[HistoryEvent], rng: random.Random
) -> tuple[ProtocolMessage, ...]:
    """About what the task brings, and about what was accepted before."""
    said: list[ProtocolMessage] = []
    for message in messages:
        update_id = message.protocol_instance_id
        kind = rng.choice(["accept", "both", "both", "refuse", "nothing"])
        if kind == "refuse":
            body = Rejection(failure=failure(REFUSED))
            said.append(_word(update_id, body))
        elif kind != "nothing":
            body_ = Acceptance(accepted_request_sequencing_event_id=message.event_id)
            said.append(_word(update_id, body_))
            if kind == "both":
                said.append(_answer(update_id, rng))
    said += [_answer(update_id, rng) for update_id in _open(events) if rng.random() < 0.4]
    return tuple(said)


def placed(
    asked: tuple[Command, ...], said: Sequence[ProtocolMessage], rng: random.Random
) -> tuple[Command, ...]:
    """The commands with those that give messages their places, in order, before the end."""
    found = list(asked)
    last = len(found) - (1 if found and found[-1].command_type in CLOSING else 0)
    places = sorted(rng.randint(0, last) for _ in said)
    for shift, (place, message) in enumerate(zip(places, said, strict=True)):
        command = Command.of(commands.ProtocolMessage(message_id=message.id))
        found.insert(place + shift, command)
    return tuple(found)


def failure(kind: str) -> Failure:
    """Why an update ended badly."""
    return Failure(message=kind, application_failure_info=ApplicationFailureInfo(type=kind))


def _open(events: Sequence[HistoryEvent]) -> list[str]:
    found: dict[int, str] = {}
    for event in events:
        match event.attributes:
            case ev.WorkflowExecutionUpdateAccepted(protocol_instance_id=update_id):
                found[event.event_id] = update_id
            case ev.WorkflowExecutionUpdateCompleted(accepted_event_id=accepted):
                found.pop(accepted, None)
    return list(found.values())


def _answer(update_id: str, rng: random.Random) -> ProtocolMessage:
    outcome = Outcome(success=text(f"answer to {update_id}"))
    if rng.random() < 0.2:
        outcome = Outcome(failure=failure(BROKEN))
    return _word(update_id, Response(meta=Meta(update_id=update_id), outcome=outcome))


def _word(update_id: str, body: Acceptance | Rejection | Response) -> ProtocolMessage:
    return ProtocolMessage(
        id=f"{update_id}/{type(body).__name__}", protocol_instance_id=update_id, body=body
    )
