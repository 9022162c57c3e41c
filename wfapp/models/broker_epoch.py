"""What the broker's memory is called."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class BrokerEpoch(models.Model):
    """A copy of the random key that the engine keeps in a broker which forgets.

    Another key there, or none, means that the broker was emptied: whatever was announced is gone.
    """

    #: the prefix of the engine's keys on that broker
    broker = models.CharField(_("broker"), max_length=200, primary_key=True, editable=False)
    epoch = models.CharField(_("epoch"), max_length=64)
    seen_at = models.BigIntegerField(_("seen since"))

    class Meta:
        verbose_name = _("broker's epoch")
        verbose_name_plural = _("broker's epochs")

    def __str__(self) -> str:
        return self.epoch
