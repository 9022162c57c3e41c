"""Updates of runs."""

from django.db import models

from wfapp.models.columns import name_column


class WorkflowUpdate(models.Model):
    """An update that a run was sent; kept with the run, so that its id is known for as long.

    It waits with its request in `body`, then tells the events of its acceptance and its end. One
    that was refused goes away a while after.
    """

    pk = models.CompositePrimaryKey("shard", "run_id", "update_id")
    shard = models.BigIntegerField()
    run_id = models.UUIDField()
    update_id = name_column()
    #: `wfcore.history.updates.Update` as JSON
    body = models.BinaryField()

    def __str__(self) -> str:
        return f"{self.run_id} {self.update_id}"
