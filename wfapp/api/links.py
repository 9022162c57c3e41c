"""Links that answers carry: to the event that a call made, or to its request where it's later."""

from wfcore.protocol.enums import EventType
from wfcore.protocol.metadata import (
    Link,
    LinkWorkflowEvent,
    LinkWorkflowEventEventReference,
    LinkWorkflowEventRequestIdReference,
)


def started(namespace: str, workflow_id: str, run_id: str) -> Link:
    """To the first event of a run."""
    return Link(
        workflow_event=LinkWorkflowEvent(
            namespace=namespace,
            workflow_id=workflow_id,
            run_id=run_id,
            event_ref=LinkWorkflowEventEventReference(
                event_id=1, event_type=EventType.WORKFLOW_EXECUTION_STARTED
            ),
        )
    )


def signaled(namespace: str, workflow_id: str, run_id: str, request_id: str) -> Link:
    """To a signal, whose event may be written later, by its request."""
    return Link(
        workflow_event=LinkWorkflowEvent(
            namespace=namespace,
            workflow_id=workflow_id,
            run_id=run_id,
            request_id_ref=LinkWorkflowEventRequestIdReference(
                request_id=request_id, event_type=EventType.WORKFLOW_EXECUTION_SIGNALED
            ),
        )
    )
