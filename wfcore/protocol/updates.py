"""Workflow updates as messages: request, identity and outcome."""

from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message
from wfcore.protocol.metadata import Callback, Link, PropagatedSerializationContext
from wfcore.protocol.payloads import Header, Payloads


class Input(Message, frozen=True):
    """Input."""

    header: Header | None = None
    name: str = ""
    args: Payloads | None = None


class Meta(Message, frozen=True):
    """Meta."""

    update_id: str = ""
    identity: str = ""


class Request(Message, frozen=True):
    """Request."""

    meta: Meta | None = None
    input: Input | None = None
    request_id: str = ""
    completion_callbacks: tuple[Callback, ...] = ()
    links: tuple[Link, ...] = ()
    propagated_nexus_serialization_context: PropagatedSerializationContext | None = None


class Outcome(Message, frozen=True):
    """Outcome."""

    success: Payloads | None = None
    failure: Failure | None = None


class Acceptance(Message, frozen=True):
    """A worker's word that an update's validator has passed."""

    accepted_request_message_id: str = ""
    accepted_request_sequencing_event_id: int = 0
    accepted_request: Request | None = None


class Rejection(Message, frozen=True):
    """A worker's word that an update was refused; it leaves no event."""

    rejected_request_message_id: str = ""
    rejected_request_sequencing_event_id: int = 0
    rejected_request: Request | None = None
    failure: Failure | None = None


class Response(Message, frozen=True):
    """A worker's word about how an accepted update ended."""

    meta: Meta | None = None
    outcome: Outcome | None = None


class ProtocolMessage(Message, frozen=True):
    """What travels with a workflow task beside its events and commands.

    The engine sends a `Request`, whose `event_id` is the event after which it counts; the worker
    answers with the other kinds, which commands of the same name put in their places.
    """

    id: str = ""
    protocol_instance_id: str = ""
    event_id: int = 0
    body: Message | None = None
