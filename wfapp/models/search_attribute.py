"""Search attributes."""

from django.db import models

from wfapp.models.columns import name_column


class SearchAttribute(models.Model):
    """One search attribute of a run."""

    pk = models.CompositePrimaryKey("shard", "run_id", "name")
    shard = models.BigIntegerField()
    run_id = models.UUIDField()
    name = name_column()
    #: `wfcore.protocol.payloads.Payload` as JSON
    value = models.BinaryField()

    def __str__(self) -> str:
        return f"{self.run_id} {self.name}"
