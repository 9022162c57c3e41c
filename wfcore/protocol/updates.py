"""Workflow updates as messages: request, identity and outcome."""

from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import UpdateWorkflowExecutionLifecycleStage
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


class WaitPolicy(Message, frozen=True):
    """How far an update must have come before a call is answered; unspecified: to its end."""

    lifecycle_stage: UpdateWorkflowExecutionLifecycleStage = (
        UpdateWorkflowExecutionLifecycleStage.UNSPECIFIED
    )


class UpdateRef(Message, frozen=True):
    """Names an update of a run."""

    workflow_execution: WorkflowExecution | None = None
    update_id: str = ""


class Outcome(Message, frozen=True):
    """How an update ended: one of the two."""

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
    command_index: int = 0
    body: Message | None = None


#: What a `ProtocolMessage` may carry, by the names that Temporal's JSON has for them.
BODIES: dict[str, type[Message]] = {
    f"temporal.api.update.v1.{kind.__name__}": kind
    for kind in (Request, Acceptance, Rejection, Response)
}


def body_name(body: Message) -> str:
    """``temporal.api.update.v1.Acceptance``: the full name of what a message carries.

    Raises:
        ValueError: it is nothing that a message carries.
    """
    name = f"temporal.api.update.v1.{type(body).__name__}"
    if BODIES.get(name) is not type(body):
        raise ValueError(f"a protocol message carries no {type(body).__name__}")
    return name
