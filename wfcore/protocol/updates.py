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
