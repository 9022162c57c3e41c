"""What operators did."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from wfapp.models.columns import name_column, new_entry_id


class AuditEntry(models.Model):
    """An operator's action; no reference to users or runs, since it outlives both."""

    #: a UUIDv7: entries sort by time
    entry_id = models.UUIDField(primary_key=True, editable=False, default=new_entry_id)
    at = models.BigIntegerField(_("time"))
    run_id = models.UUIDField(_("run id"), null=True)
    #: who: name of the user, or of the account that ran the command
    actor = models.CharField(_("who"), max_length=254)
    #: stable name: ``terminate``, ``reset``, ...
    action = models.CharField(_("action"), max_length=100)
    namespace = name_column(_("namespace"))
    workflow_id = name_column(_("workflow id"), blank=True, default="")
    reason = models.TextField(_("reason"), blank=True, default="")
    before = models.TextField(_("before"), blank=True, default="")
    after = models.TextField(_("after"), blank=True, default="")

    class Meta:
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")
        indexes = (
            models.Index(fields=["-at"], name="wfapp_audit_time"),
            models.Index(fields=["namespace", "workflow_id", "-at"], name="wfapp_audit_wid"),
        )

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.workflow_id}"
