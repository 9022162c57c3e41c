"""The project as these tests' processes run it: the suite's settings and an app of workflows."""

from settings.test import *  # noqa: F403
from settings.test import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.integration.celery.shop"]
# Celery's name, read by its Django fix-up: connections outlive tasks.
CELERY_DB_REUSE_MAX = 1_000_000
CELERY_TASK_ROUTES = {"shop.routed": {"queue": "mail"}}
