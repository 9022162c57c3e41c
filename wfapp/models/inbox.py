"""What arrived for a run while a workflow task was started, and which signals were seen before."""

from django.db import models

from wfapp.models.columns import name_column


class InboxItem(models.Model):
    """A fact that becomes events when the workflow task ends; the id is the order of arrival."""

    id = models.BigAutoField(primary_key=True)
    shard = models.BigIntegerField()
    run_id = models.UUIDField()
    #: when it was stored, by the database's clock
    arrived_at = models.BigIntegerField()
    event_time = models.BigIntegerField()
    #: `EventType`
    event_type = models.SmallIntegerField()
    #: the event's attributes as JSON
    attributes = models.BinaryField()
    #: what few facts have (user metadata, the STARTED event) as JSON; null: nothing
    extras = models.BinaryField(null=True)

    class Meta:
        indexes = (
            models.Index(fields=["shard", "run_id", "id"], name="wfapp_inbox_run"),
            models.Index(fields=["arrived_at"], name="wfapp_inbox_age"),
        )

    def __str__(self) -> str:
        return f"{self.run_id} {self.id}"


class SignalRequest(models.Model):
    """The request id of a signal that a run has had; kept with the run."""

    # In this order, since all runs of a workflow id are asked for a request.
    pk = models.CompositePrimaryKey("shard", "request_id", "run_id")
    shard = models.BigIntegerField()
    run_id = models.UUIDField()
    request_id = name_column()

    def __str__(self) -> str:
        return f"{self.run_id} {self.request_id}"
