"""All tables of the first release."""

import uuid

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

import wfapp.models.columns

#: Free room in each page, in per cent, for the next versions of rows that are rewritten all their
#: lives: they stay in their page, and the table stays a third of the size that it has without
#: (measured with three updates a row and no vacuum in between).
FILLFACTOR = {"executionstate": 70, "currentrun": 90, "pendingactivity": 70}


def leave_room(_: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Set the fillfactor of the hot tables, where there is such a thing."""
    if schema_editor.connection.vendor != "postgresql":
        return
    for name, percent in FILLFACTOR.items():
        schema_editor.execute(f"ALTER TABLE wfapp_{name} SET (fillfactor = {percent})")


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="CurrentRun",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "shard",
                        "namespace",
                        "workflow_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("shard", models.BigIntegerField()),
                ("namespace", models.CharField(max_length=1000)),
                ("workflow_id", models.CharField(max_length=1000)),
                ("run_id", models.UUIDField()),
                ("first_execution_run_id", models.UUIDField()),
                ("start_time", models.BigIntegerField()),
                ("status", models.SmallIntegerField()),
                ("create_request_id", models.CharField(max_length=1000)),
            ],
        ),
        migrations.CreateModel(
            name="HistoryEvent",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "shard",
                        "run_id",
                        "event_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("shard", models.BigIntegerField()),
                ("run_id", models.UUIDField()),
                ("event_time", models.BigIntegerField()),
                ("event_id", models.IntegerField()),
                ("event_type", models.SmallIntegerField()),
                ("attributes", models.BinaryField()),
                ("extras", models.BinaryField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Memo",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "shard",
                        "run_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("shard", models.BigIntegerField()),
                ("run_id", models.UUIDField()),
                ("body", models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name="RunJournal",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "shard",
                        "run_id",
                        "entry_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("shard", models.BigIntegerField()),
                ("run_id", models.UUIDField()),
                ("entry_id", models.UUIDField()),
                ("at", models.BigIntegerField(verbose_name="time")),
                ("scheduled_event_id", models.IntegerField()),
                ("attempt", models.IntegerField()),
                ("kind", models.CharField(max_length=100, verbose_name="kind")),
                ("text", models.TextField(verbose_name="text")),
                ("identity", models.TextField(verbose_name="identity")),
            ],
            options={
                "verbose_name": "journal entry",
                "verbose_name_plural": "journal entries",
            },
        ),
        migrations.CreateModel(
            name="SearchAttribute",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "shard",
                        "run_id",
                        "name",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("shard", models.BigIntegerField()),
                ("run_id", models.UUIDField()),
                ("name", models.CharField(max_length=1000)),
                ("value", models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name="SignalRequest",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "shard",
                        "request_id",
                        "run_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("shard", models.BigIntegerField()),
                ("run_id", models.UUIDField()),
                ("request_id", models.CharField(max_length=1000)),
            ],
        ),
        migrations.CreateModel(
            name="WorkflowUpdate",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "shard",
                        "run_id",
                        "update_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("shard", models.BigIntegerField()),
                ("run_id", models.UUIDField()),
                ("update_id", models.CharField(max_length=1000)),
                ("body", models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "entry_id",
                    models.UUIDField(
                        default=wfapp.models.columns.new_entry_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("at", models.BigIntegerField(verbose_name="time")),
                ("run_id", models.UUIDField(null=True, verbose_name="run id")),
                ("actor", models.CharField(max_length=254, verbose_name="who")),
                ("action", models.CharField(max_length=100, verbose_name="action")),
                ("namespace", models.CharField(max_length=1000, verbose_name="namespace")),
                (
                    "workflow_id",
                    models.CharField(
                        blank=True, default="", max_length=1000, verbose_name="workflow id"
                    ),
                ),
                ("reason", models.TextField(blank=True, default="", verbose_name="reason")),
                ("before", models.TextField(blank=True, default="", verbose_name="before")),
                ("after", models.TextField(blank=True, default="", verbose_name="after")),
            ],
            options={
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit entries",
                "indexes": [
                    models.Index(fields=["-at"], name="wfapp_audit_time"),
                    models.Index(
                        fields=["namespace", "workflow_id", "-at"], name="wfapp_audit_wid"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ExecutionState",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "shard",
                        "run_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("shard", models.BigIntegerField()),
                ("run_id", models.UUIDField()),
                ("wakeup_at", models.BigIntegerField(null=True)),
                ("unclaimed_at", models.BigIntegerField(null=True)),
                ("next_event_id", models.IntegerField()),
                ("status", models.SmallIntegerField()),
                ("format", models.SmallIntegerField()),
                ("task_started", models.BooleanField()),
                ("cancel_unseen", models.BooleanField()),
                ("first_execution_run_id", models.UUIDField()),
                ("namespace", models.CharField(max_length=1000)),
                ("workflow_id", models.CharField(max_length=1000)),
                ("workflow_type", models.CharField(max_length=1000)),
                ("task_queue", models.CharField(max_length=1000)),
                ("owner", models.CharField(max_length=200)),
                ("snapshot", models.BinaryField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("wakeup_at__isnull", False)),
                        fields=["wakeup_at"],
                        name="wfapp_state_due",
                    ),
                    models.Index(
                        condition=models.Q(("unclaimed_at__isnull", False)),
                        fields=["namespace", "task_queue", "unclaimed_at"],
                        name="wfapp_state_unclaimed",
                    ),
                    models.Index(
                        condition=models.Q(("owner__gt", "")),
                        fields=["owner"],
                        name="wfapp_state_owner",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="InboxItem",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("shard", models.BigIntegerField()),
                ("run_id", models.UUIDField()),
                ("arrived_at", models.BigIntegerField()),
                ("event_time", models.BigIntegerField()),
                ("event_type", models.SmallIntegerField()),
                ("attributes", models.BinaryField()),
                ("extras", models.BinaryField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["shard", "run_id", "id"], name="wfapp_inbox_run"),
                    models.Index(fields=["arrived_at"], name="wfapp_inbox_age"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Namespace",
            fields=[
                (
                    "namespace_id",
                    models.UUIDField(
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                ("name", models.CharField(max_length=1000, verbose_name="name")),
                (
                    "retention_micros",
                    models.BigIntegerField(verbose_name="retention in microseconds"),
                ),
                (
                    "description",
                    models.TextField(blank=True, default="", verbose_name="description"),
                ),
                (
                    "owner_email",
                    models.CharField(
                        blank=True, default="", max_length=254, verbose_name="owner's email"
                    ),
                ),
            ],
            options={
                "verbose_name": "namespace",
                "verbose_name_plural": "namespaces",
                "constraints": [
                    models.UniqueConstraint(fields=("name",), name="wfapp_namespace_name")
                ],
            },
        ),
        migrations.CreateModel(
            name="PendingActivity",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "shard",
                        "run_id",
                        "scheduled_event_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("shard", models.BigIntegerField()),
                ("run_id", models.UUIDField()),
                ("due_at", models.BigIntegerField(null=True)),
                ("claimable_at", models.BigIntegerField(null=True)),
                ("scheduled_event_id", models.IntegerField()),
                ("stamp", models.IntegerField()),
                ("format", models.SmallIntegerField()),
                ("standing", models.BooleanField()),
                ("activity_id", models.CharField(max_length=1000)),
                ("namespace", models.CharField(max_length=1000)),
                ("task_queue", models.CharField(max_length=1000)),
                ("owner", models.CharField(max_length=200)),
                ("body", models.BinaryField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)),
                        fields=["due_at"],
                        name="wfapp_activity_due",
                    ),
                    models.Index(
                        condition=models.Q(("claimable_at__isnull", False)),
                        fields=["namespace", "task_queue", "claimable_at"],
                        name="wfapp_activity_unclaimed",
                    ),
                    models.Index(
                        condition=models.Q(("owner__gt", "")),
                        fields=["owner"],
                        name="wfapp_activity_owner",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WorkerProcess",
            fields=[
                (
                    "boot_id",
                    models.CharField(
                        editable=False,
                        max_length=200,
                        primary_key=True,
                        serialize=False,
                        verbose_name="boot id",
                    ),
                ),
                ("expires_at", models.BigIntegerField(verbose_name="lease ends")),
                ("started_at", models.BigIntegerField(verbose_name="started")),
                ("pid", models.IntegerField(verbose_name="process id")),
                ("slots", models.IntegerField(verbose_name="slots")),
                ("draining", models.BooleanField(default=False, verbose_name="draining")),
                ("host", models.CharField(max_length=255, verbose_name="host")),
                ("identity", models.TextField(verbose_name="identity")),
                ("pool", models.CharField(max_length=50, verbose_name="pool")),
                (
                    "build_id",
                    models.CharField(
                        blank=True, default="", max_length=255, verbose_name="build id"
                    ),
                ),
                ("queues", models.TextField(verbose_name="task queues")),
            ],
            options={
                "verbose_name": "worker process",
                "verbose_name_plural": "worker processes",
                "indexes": [models.Index(fields=["expires_at"], name="wfapp_worker_lease")],
            },
        ),
        migrations.CreateModel(
            name="WorkflowExecution",
            fields=[
                (
                    "run_id",
                    models.UUIDField(
                        editable=False, primary_key=True, serialize=False, verbose_name="run id"
                    ),
                ),
                ("shard", models.BigIntegerField(editable=False)),
                ("start_time", models.BigIntegerField(verbose_name="started")),
                ("execution_time", models.BigIntegerField(verbose_name="first task after")),
                ("close_time", models.BigIntegerField(null=True, verbose_name="closed")),
                ("history_bytes", models.BigIntegerField(verbose_name="history bytes")),
                ("history_length", models.IntegerField(verbose_name="events")),
                ("state_transitions", models.IntegerField(verbose_name="transitions")),
                (
                    "status",
                    models.SmallIntegerField(
                        choices=[
                            (1, "Running"),
                            (2, "Completed"),
                            (3, "Failed"),
                            (4, "Canceled"),
                            (5, "Terminated"),
                            (6, "Continued as new"),
                            (7, "Timed out"),
                            (8, "Paused"),
                        ],
                        verbose_name="status",
                    ),
                ),
                ("first_run_id", models.UUIDField(verbose_name="first run")),
                ("parent_run_id", models.UUIDField(null=True, verbose_name="parent's run")),
                ("root_run_id", models.UUIDField(verbose_name="root's run")),
                ("namespace", models.CharField(max_length=1000, verbose_name="namespace")),
                ("workflow_id", models.CharField(max_length=1000, verbose_name="workflow id")),
                ("workflow_type", models.CharField(max_length=1000, verbose_name="type")),
                ("task_queue", models.CharField(max_length=1000, verbose_name="task queue")),
                (
                    "parent_workflow_id",
                    models.CharField(
                        blank=True, default="", max_length=1000, verbose_name="parent"
                    ),
                ),
                ("root_workflow_id", models.CharField(max_length=1000, verbose_name="root")),
                ("priority", models.BinaryField(null=True)),
            ],
            options={
                "verbose_name": "workflow execution",
                "verbose_name_plural": "workflow executions",
                "permissions": (
                    ("view_payloads", "Can see the user data of workflow executions"),
                    ("operate", "Can start, signal, cancel and terminate workflow executions"),
                ),
                "indexes": [
                    models.Index(
                        fields=["namespace", "-start_time", "-run_id"], name="wfapp_run_start"
                    ),
                    models.Index(
                        fields=["namespace", "status", "-start_time", "-run_id"],
                        name="wfapp_run_status",
                    ),
                    models.Index(
                        fields=["namespace", "workflow_type", "-start_time", "-run_id"],
                        name="wfapp_run_type",
                    ),
                    models.Index(
                        fields=["namespace", "workflow_id", "-start_time", "-run_id"],
                        name="wfapp_run_wid",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BrokerEpoch",
            fields=[
                (
                    "broker",
                    models.CharField(
                        editable=False,
                        max_length=200,
                        primary_key=True,
                        serialize=False,
                        verbose_name="broker",
                    ),
                ),
                ("epoch", models.CharField(max_length=64, verbose_name="epoch")),
                ("seen_at", models.BigIntegerField(verbose_name="seen since")),
            ],
            options={
                "verbose_name": "broker's epoch",
                "verbose_name_plural": "broker's epochs",
            },
        ),
        migrations.RunPython(leave_room, migrations.RunPython.noop, elidable=False),
    ]
