"""The app's place in Django; importing it opens no connection and starts no thread."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class WorkflowsConfig(AppConfig):
    """Durable workflows; the label is part of table names and never changes."""

    name = "wfapp"
    label = "wfapp"
    verbose_name = _("Durable workflows")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from wfapp import checks, tasks, wiring  # noqa: F401 - the first two register themselves
        from wfapp.store.namespaces import make_default_namespace
        from wfcore.client import register_host

        post_migrate.connect(
            make_default_namespace, sender=self, dispatch_uid="wfapp.default_namespace"
        )
        register_host(lambda target: wiring.get_service())
