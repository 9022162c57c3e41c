"""Tables beside the runs: who did what, who is at work, which namespaces there are."""

from datetime import datetime

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from wfapp.admin.readonly import ReadOnlyAdmin, as_time
from wfapp.models import AuditEntry, Namespace, WorkerProcess
from wfapp.presentation.words import span


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """What people did to runs."""

    list_display = ("time", "actor", "action", "namespace", "workflow_id", "reason")
    fields = (
        "time",
        "actor",
        "action",
        "namespace",
        "workflow_id",
        "run_id",
        "reason",
        "before",
        "after",
    )
    readonly_fields = fields
    ordering = ("-at", "-entry_id")
    sortable_by = ()
    list_per_page = 50

    @admin.display(description=_("time"))
    def time(self, entry: AuditEntry) -> datetime | None:
        return as_time(entry.at)


@admin.register(WorkerProcess)
class WorkerProcessAdmin(ReadOnlyAdmin):
    """Worker processes that were heard of within their lease, or not any more."""

    list_display = ("identity", "host", "pid", "pool", "slots", "served", "lease", "draining")
    fields = (
        "boot_id",
        "identity",
        "host",
        "pid",
        "pool",
        "slots",
        "build_id",
        "started",
        "lease",
        "draining",
        "served",
    )
    readonly_fields = fields
    ordering = ("-expires_at",)
    sortable_by = ()

    @admin.display(description=_("task queues"))
    def served(self, process: WorkerProcess) -> str:
        return ", ".join(process.queues.split("\n"))

    @admin.display(description=_("lease ends"))
    def lease(self, process: WorkerProcess) -> datetime | None:
        return as_time(process.expires_at)

    @admin.display(description=_("started"))
    def started(self, process: WorkerProcess) -> datetime | None:
        return as_time(process.started_at)


@admin.register(Namespace)
class NamespaceAdmin(ReadOnlyAdmin):
    """Namespaces."""

    list_display = ("name", "keeps", "description", "owner_email")
    fields = ("name", "namespace_id", "keeps", "description", "owner_email")
    readonly_fields = fields
    ordering = ("name",)

    @admin.display(description=_("retention"))
    def keeps(self, namespace: Namespace) -> str:
        return span(namespace.retention)
