"""A run in three rows: what people list, what transitions lock, and which run is the newest.

`ExecutionState` changes with every transition; `WorkflowExecution` only when a run starts, closes
or changes its status, so that lists neither wait for transitions nor slow them.
"""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from wfapp.models.columns import name_column
from wfcore.protocol.enums import WorkflowExecutionStatus as Status

STATUS_LABELS = {
    Status.RUNNING: _("Running"),
    Status.COMPLETED: _("Completed"),
    Status.FAILED: _("Failed"),
    Status.CANCELED: _("Canceled"),
    Status.TERMINATED: _("Terminated"),
    Status.CONTINUED_AS_NEW: _("Continued as new"),
    Status.TIMED_OUT: _("Timed out"),
    Status.PAUSED: _("Paused"),
}


class WorkflowExecution(models.Model):
    """What people list, filter and count. Numbers are those of the last write: start or close."""

    run_id = models.UUIDField(_("run id"), primary_key=True, editable=False)
    shard = models.BigIntegerField(editable=False)
    start_time = models.BigIntegerField(_("started"))
    execution_time = models.BigIntegerField(_("first task after"))
    close_time = models.BigIntegerField(_("closed"), null=True)
    history_bytes = models.BigIntegerField(_("history bytes"))
    history_length = models.IntegerField(_("events"))
    state_transitions = models.IntegerField(_("transitions"))
    status = models.SmallIntegerField(
        _("status"), choices=[(status.value, label) for status, label in STATUS_LABELS.items()]
    )
    first_run_id = models.UUIDField(_("first run"))
    parent_run_id = models.UUIDField(_("parent's run"), null=True)
    root_run_id = models.UUIDField(_("root's run"))
    namespace = name_column(_("namespace"))
    workflow_id = name_column(_("workflow id"))
    workflow_type = name_column(_("type"))
    task_queue = name_column(_("task queue"))
    parent_workflow_id = name_column(_("parent"), blank=True, default="")
    root_workflow_id = name_column(_("root"))
    priority = models.BinaryField(null=True)

    class Meta:
        verbose_name = _("workflow execution")
        verbose_name_plural = _("workflow executions")
        # Beside Django's own `view`, which shows runs without what they carry.
        permissions = (
            ("view_payloads", "Can see the user data of workflow executions"),
            ("operate", "Can start, signal, cancel and terminate workflow executions"),
        )
        # Each list is newest first and goes on after (start_time, run_id).
        indexes = (
            models.Index(fields=["namespace", "-start_time", "-run_id"], name="wfapp_run_start"),
            models.Index(
                fields=["namespace", "status", "-start_time", "-run_id"], name="wfapp_run_status"
            ),
            models.Index(
                fields=["namespace", "workflow_type", "-start_time", "-run_id"],
                name="wfapp_run_type",
            ),
            models.Index(
                fields=["namespace", "workflow_id", "-start_time", "-run_id"], name="wfapp_run_wid"
            ),
        )

    def __str__(self) -> str:
        return f"{self.workflow_id} ({self.run_id})"


class ExecutionState(models.Model):
    """The hot row: its lock is the run's lock, its snapshot is the run's state."""

    pk = models.CompositePrimaryKey("shard", "run_id")
    shard = models.BigIntegerField()
    run_id = models.UUIDField()
    #: earliest time at which the ticker must look at the run; null: nothing can come due
    wakeup_at = models.BigIntegerField(null=True)
    #: the workflow task waits for a worker, since (or from) then; null: it doesn't
    unclaimed_at = models.BigIntegerField(null=True)
    next_event_id = models.IntegerField()
    #: `WorkflowExecutionStatus`
    status = models.SmallIntegerField()
    #: number of the snapshot's form; a release leaves alone what is newer than its own
    format = models.SmallIntegerField()
    #: a workflow task is claimed, so that facts wait in the inbox
    task_started = models.BooleanField()
    #: its code is about to learn that it is to cancel: none of its activities begins
    cancel_unseen = models.BooleanField()
    first_execution_run_id = models.UUIDField()
    namespace = name_column()
    workflow_id = name_column()
    workflow_type = name_column()
    task_queue = name_column()
    #: boot id of the worker process that holds the workflow task; empty: none, or without a lease
    owner = models.CharField(max_length=200)
    #: `wfcore.history.state.MutableState` as JSON
    snapshot = models.BinaryField()

    class Meta:
        # Partial: only rows with work to find have entries.
        indexes = (
            models.Index(
                fields=["wakeup_at"], name="wfapp_state_due", condition=Q(wakeup_at__isnull=False)
            ),
            models.Index(
                fields=["namespace", "task_queue", "unclaimed_at"],
                name="wfapp_state_unclaimed",
                condition=Q(unclaimed_at__isnull=False),
            ),
            models.Index(fields=["owner"], name="wfapp_state_owner", condition=Q(owner__gt="")),
        )

    def __str__(self) -> str:
        return f"{self.workflow_id} ({self.run_id})"


class CurrentRun(models.Model):
    """The newest run of a workflow id; its key keeps two from being made at once.

    The key is unique for (namespace, workflow id), of which `shard` is a function.
    """

    pk = models.CompositePrimaryKey("shard", "namespace", "workflow_id")
    shard = models.BigIntegerField()
    namespace = name_column()
    workflow_id = name_column()
    run_id = models.UUIDField()
    first_execution_run_id = models.UUIDField()
    start_time = models.BigIntegerField()
    #: `WorkflowExecutionStatus`
    status = models.SmallIntegerField()
    create_request_id = name_column()

    def __str__(self) -> str:
        return f"{self.workflow_id} ({self.run_id})"
