"""Namespaces."""

import uuid
from datetime import timedelta

from django.db import models
from django.utils.translation import gettext_lazy as _

from wfapp.models.columns import name_column


class Namespace(models.Model):
    """Isolates runs; how long closed ones are kept belongs to it."""

    namespace_id = models.UUIDField(_("id"), primary_key=True, default=uuid.uuid4, editable=False)
    name = name_column(_("name"))
    retention_micros = models.BigIntegerField(_("retention in microseconds"))
    description = models.TextField(_("description"), blank=True, default="")
    owner_email = models.CharField(_("owner's email"), max_length=254, blank=True, default="")

    class Meta:
        verbose_name = _("namespace")
        verbose_name_plural = _("namespaces")
        # Not unique=True: that brings a second index for LIKE, which nobody asks.
        constraints = (models.UniqueConstraint(fields=["name"], name="wfapp_namespace_name"),)

    def __str__(self) -> str:
        return self.name

    @property
    def retention(self) -> timedelta:
        """How long a closed run is kept."""
        return timedelta(microseconds=self.retention_micros)
