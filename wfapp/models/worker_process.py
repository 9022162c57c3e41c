"""Worker processes."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class WorkerProcess(models.Model):
    """A worker process that lives until `expires_at` unless it is heard of again.

    Written by upsert, so that deleting a row is harmless. The boot id is new with each start:
    another process of the same name never keeps this one's claims alive.
    """

    boot_id = models.CharField(_("boot id"), max_length=200, primary_key=True, editable=False)
    expires_at = models.BigIntegerField(_("lease ends"))
    started_at = models.BigIntegerField(_("started"))
    pid = models.IntegerField(_("process id"))
    slots = models.IntegerField(_("slots"))
    #: it takes no new work
    draining = models.BooleanField(_("draining"), default=False)
    host = models.CharField(_("host"), max_length=255)
    identity = models.TextField(_("identity"))
    #: kind of Celery's pool: ``prefork``, ``threads``, ``solo``, ``gevent``
    pool = models.CharField(_("pool"), max_length=50)
    build_id = models.CharField(_("build id"), max_length=255, blank=True, default="")
    #: names of task queues, one a line
    queues = models.TextField(_("task queues"))

    class Meta:
        verbose_name = _("worker process")
        verbose_name_plural = _("worker processes")
        indexes = (models.Index(fields=["expires_at"], name="wfapp_worker_lease"),)

    def __str__(self) -> str:
        return f"{self.identity} ({self.boot_id})"
