"""Markers and changes of memo and search attributes."""

from datetime import timedelta

from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Header, Memo, Payloads, SearchAttributes


class MarkerRecorded(Message, frozen=True):
    """MARKER_RECORDED (25)."""

    marker_name: str = ""
    details: dict[str, Payloads] = {}
    workflow_task_completed_event_id: int = 0
    header: Header | None = None
    failure: Failure | None = None


class UpsertWorkflowSearchAttributes(Message, frozen=True):
    """UPSERT_WORKFLOW_SEARCH_ATTRIBUTES (40)."""

    workflow_task_completed_event_id: int = 0
    search_attributes: SearchAttributes | None = None


class WorkflowPropertiesModified(Message, frozen=True):
    """WORKFLOW_PROPERTIES_MODIFIED (46)."""

    workflow_task_completed_event_id: int = 0
    upserted_memo: Memo | None = None


class WorkflowPropertiesModifiedExternally(Message, frozen=True):
    """WORKFLOW_PROPERTIES_MODIFIED_EXTERNALLY (44)."""

    new_task_queue: str = ""
    new_workflow_task_timeout: timedelta | None = None
    new_workflow_run_timeout: timedelta | None = None
    new_workflow_execution_timeout: timedelta | None = None
    upserted_memo: Memo | None = None
