"""Memos."""

from django.db import models


class Memo(models.Model):
    """What a run tells people about itself, not indexed. No row: an empty memo."""

    pk = models.CompositePrimaryKey("shard", "run_id")
    shard = models.BigIntegerField()
    run_id = models.UUIDField()
    #: `wfcore.protocol.payloads.Memo` as JSON
    body = models.BinaryField()

    def __str__(self) -> str:
        return str(self.run_id)
