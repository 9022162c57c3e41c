"""The workflows and activities of a project, found as Celery finds tasks.

The modules `workflows` and `activities` of every installed app are imported and looked through. A
Celery task needs no definition: it is an activity under its own name, unless one is defined so.
"""

import sys
from types import ModuleType
from typing import Any

from celery import Celery
from celery.app.task import Task
from django.apps import apps
from django.utils.module_loading import autodiscover_modules

from wfapp.dispatch.celery_tasks import CeleryTaskActivity
from wfcore.activity import Definition as ActivityDefinition
from wfcore.worker import Registry
from wfcore.workflow import WorkflowDefinition

MODULES = ("workflows", "activities")
_OURS = "wfapp."


class ProjectRegistry(Registry):
    """What is defined, and every Celery task of the app."""

    def __init__(self, app: Celery) -> None:
        super().__init__()
        self._app = app
        self._imported = False

    @classmethod
    def discover(cls, app: Celery) -> "ProjectRegistry":
        """Import and look through the modules of the installed apps.

        Raises:
            ValueError: two definitions have one name.
        """
        autodiscover_modules(*MODULES)
        registry = cls(app)
        seen: set[int] = set()
        for config in apps.get_app_configs():
            for name in MODULES:
                module = sys.modules.get(f"{config.name}.{name}")
                if module is not None:
                    registry._add_all(module, seen)
        return registry

    def activity(self, name: str) -> ActivityDefinition | None:
        """The activity of this type: a defined one, a Celery task, or the dynamic one."""
        found = super().activity(name)
        if (found is None or found.dynamic) and self.celery_queue(name) is not None:
            return ActivityDefinition(
                name=name, fn=CeleryTaskActivity(self._app, name), is_async=False
            )
        return found

    def celery_queue(self, name: str) -> str | None:
        """The Celery queue of the task of this name; None if it isn't one, or is defined anew."""
        defined = super().activity(name)
        if (defined is not None and not defined.dynamic) or name.startswith(_OURS):
            return None
        if name not in self._app.tasks and not self._imported:
            self._imported = True
            self._app.loader.import_default_modules()
        if name not in self._app.tasks:
            return None
        queue: Any = self._app.amqp.router.route({}, name, args=(), kwargs={})["queue"]
        return str(getattr(queue, "name", queue))

    def has_route(self, name: str) -> bool:
        """Whether this is a Celery task that the app's routes send somewhere."""
        if self.celery_queue(name) is None:
            return False
        router: Any = self._app.amqp.router
        return router.lookup_route(name, (), {}, {}) is not None

    def _add_all(self, module: ModuleType, seen: set[int]) -> None:
        for value in list(vars(module).values()):
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, type):
                if WorkflowDefinition.from_class(value) is not None:
                    self.add_workflow(value)
            elif (
                callable(value)
                and not isinstance(value, Task)
                and ActivityDefinition.from_callable(value) is not None
            ):
                self.add_activity(value)
