"""The project as these tests' processes run it: the suite's settings and an app of workflows."""

from datetime import timedelta

import environ

from settings.test import *  # noqa: F403
from settings.test import INSTALLED_APPS

env = environ.Env()

INSTALLED_APPS = [*INSTALLED_APPS, "tests.integration.celery.shop"]
WORKFLOWS = {
    "LEASE": timedelta(seconds=env.float("TEST_LEASE", default=10)),
    "DRAIN": timedelta(seconds=env.float("TEST_DRAIN", default=1e6)),
    "WORKFLOW_QUEUES": env.bool("TEST_WORKFLOW_QUEUES", default=True),
    "TICKER": {"THREAD": env.bool("TEST_TICKER", default=True)},
}
# Read by Celery's Django fix-up: connections outlive tasks.
CELERY_DB_REUSE_MAX = 1_000_000
if visibility_seconds := env.int("TEST_VISIBILITY", default=0):
    CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"] = visibility_seconds  # noqa: F405
CELERY_TASK_ROUTES = {"shop.routed": {"queue": "mail"}}
if env.bool("TEST_BEAT_ENTRY", default=False):
    CELERY_BEAT_SCHEDULE = {
        "workflows": {
            "task": "wfapp.tick",
            "schedule": 1.0,
            "options": {"queue": "wfapp.tick", "expires": 2},
        },
    }
if env.bool("TEST_POOL", default=False):
    DATABASES["default"]["CONN_MAX_AGE"] = 0  # noqa: F405
    DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {"max_size": 10}  # noqa: F405
