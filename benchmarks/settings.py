"""The project as it is measured: the defaults, and logs of what went wrong only."""

from settings.test import *  # noqa: F403

INSTALLED_APPS += ["benchmarks"]  # noqa: F405
LOGGING["root"]["level"] = "WARNING"  # noqa: F405
# The line that tells that a worker is ready.
LOGGING["loggers"] = {"celery.apps.worker": {"level": "INFO"}}  # noqa: F405
