"""The tables. Times are UTC microseconds, user data is bytes, no table refers to another app's."""

from wfapp.models.audit import AuditEntry
from wfapp.models.broker_epoch import BrokerEpoch
from wfapp.models.event import HistoryEvent
from wfapp.models.execution import CurrentRun, ExecutionState, WorkflowExecution
from wfapp.models.inbox import InboxItem, SignalRequest
from wfapp.models.journal import RunJournal
from wfapp.models.memo import Memo
from wfapp.models.namespace import Namespace
from wfapp.models.pending_activity import PendingActivity
from wfapp.models.search_attribute import SearchAttribute
from wfapp.models.update import WorkflowUpdate
from wfapp.models.worker_process import WorkerProcess

__all__ = [
    "AuditEntry",
    "BrokerEpoch",
    "CurrentRun",
    "ExecutionState",
    "HistoryEvent",
    "InboxItem",
    "Memo",
    "Namespace",
    "PendingActivity",
    "RunJournal",
    "SearchAttribute",
    "SignalRequest",
    "WorkerProcess",
    "WorkflowExecution",
    "WorkflowUpdate",
]
