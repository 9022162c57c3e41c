"""Open activities."""

from django.db import models
from django.db.models import Q

from wfapp.models.columns import name_column


class PendingActivity(models.Model):
    """An open activity, replaced as a whole where `stamp` is still the one that was read.

    Columns are what finds and guards it, all else is in `body`. Activities that were open when
    their run closed stay, with `standing` false, and are found by nobody but readers of the run.
    """

    pk = models.CompositePrimaryKey("shard", "run_id", "scheduled_event_id")
    shard = models.BigIntegerField()
    run_id = models.UUIDField()
    #: earliest time at which the ticker must look at it; null: nothing can come due
    due_at = models.BigIntegerField(null=True)
    #: the attempt waits for a worker and may start from then on; null: it doesn't wait
    claimable_at = models.BigIntegerField(null=True)
    scheduled_event_id = models.IntegerField()
    stamp = models.IntegerField()
    #: number of the body's form
    format = models.SmallIntegerField()
    standing = models.BooleanField()
    activity_id = name_column()
    namespace = name_column()
    task_queue = name_column()
    #: boot id of the worker process that runs the attempt; empty: none, or without a lease
    owner = models.CharField(max_length=200)
    #: `wfcore.history.state.PendingActivity` as JSON
    body = models.BinaryField()

    class Meta:
        # Partial: only rows with work to find have entries.
        indexes = (
            models.Index(
                fields=["due_at"], name="wfapp_activity_due", condition=Q(due_at__isnull=False)
            ),
            models.Index(
                fields=["namespace", "task_queue", "claimable_at"],
                name="wfapp_activity_unclaimed",
                condition=Q(claimable_at__isnull=False),
            ),
            models.Index(fields=["owner"], name="wfapp_activity_owner", condition=Q(owner__gt="")),
        )

    def __str__(self) -> str:
        return f"{self.run_id} {self.activity_id}"
