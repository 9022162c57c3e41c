"""The project of the workers that run the random programs."""

from datetime import timedelta

from settings.test import *  # noqa: F403
from settings.test import INSTALLED_APPS
from tests.conformance.ports_postgres import ATTRIBUTES

INSTALLED_APPS = [*INSTALLED_APPS, "tests.conformance.programs_project"]
WORKFLOWS = {
    "LIMITS": {"SEARCH_ATTRIBUTES": ATTRIBUTES},
    # Programs wait for cancelled activities, whose heartbeat timeouts are long.
    "MAX_HEARTBEAT_THROTTLE": timedelta(milliseconds=100),
}
