"""The admin: runs to look at and to steer, other tables to look at; nothing is edited here."""

from wfapp.admin.execution import WorkflowExecutionAdmin
from wfapp.admin.tables import AuditEntryAdmin, NamespaceAdmin, WorkerProcessAdmin

__all__ = ["AuditEntryAdmin", "NamespaceAdmin", "WorkerProcessAdmin", "WorkflowExecutionAdmin"]
