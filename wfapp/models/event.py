"""History."""

from django.db import models


class HistoryEvent(models.Model):
    """One event of a run; written once, never changed."""

    pk = models.CompositePrimaryKey("shard", "run_id", "event_id")
    shard = models.BigIntegerField()
    run_id = models.UUIDField()
    event_time = models.BigIntegerField()
    event_id = models.IntegerField()
    #: `EventType`
    event_type = models.SmallIntegerField()
    #: the event's attributes as JSON; user data in them is base64
    attributes = models.BinaryField()
    #: what few events have (user metadata, links, ...) as JSON; null: nothing
    extras = models.BinaryField(null=True)

    def __str__(self) -> str:
        return f"{self.run_id} {self.event_id}"
