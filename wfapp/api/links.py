"""Links that answers carry: to the event that a call made, or to its request where it's later."""

from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import EventType
from wfcore.protocol.metadata import (
    Link,
    LinkWorkflow,
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


def requested(
    namespace: str, execution: WorkflowExecution, request_id: str, event_type: EventType
) -> Link:
    """To an event by the request that leads to it, since it may be written later."""
    return Link(
        workflow_event=LinkWorkflowEvent(
            namespace=namespace,
            workflow_id=execution.workflow_id,
            run_id=execution.run_id,
            request_id_ref=LinkWorkflowEventRequestIdReference(
                request_id=request_id, event_type=event_type
            ),
        )
    )


def refused(namespace: str, execution: WorkflowExecution, reason: str) -> Link:
    """To a run in which nothing was written."""
    return Link(
        workflow=LinkWorkflow(
            namespace=namespace,
            workflow_id=execution.workflow_id,
            run_id=execution.run_id,
            reason=reason,
        )
    )
