"""The journal of a run."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class RunJournal(models.Model):
    """Something operators must know of a run that its history doesn't hold."""

    pk = models.CompositePrimaryKey("shard", "run_id", "entry_id")
    shard = models.BigIntegerField()
    run_id = models.UUIDField()
    #: a UUIDv7: entries of a run sort by time
    entry_id = models.UUIDField()
    at = models.BigIntegerField(_("time"))
    scheduled_event_id = models.IntegerField()
    attempt = models.IntegerField()
    #: stable name: ``attempt_lost``, ``late_result``, ``stuck``, ...
    kind = models.CharField(_("kind"), max_length=100)
    text = models.TextField(_("text"))
    identity = models.TextField(_("identity"))

    class Meta:
        verbose_name = _("journal entry")
        verbose_name_plural = _("journal entries")

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"
