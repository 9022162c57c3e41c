"""The project as it stands for the recorded steps: the suite's settings and their workflows."""

from settings.test import *  # noqa: F403
from settings.test import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.conformance.http"]
WORKFLOWS = {
    "IDENTITY": "conformance-worker",
    "BUILD_ID": "conformance-build",
    "LIMITS": {
        "SEARCH_ATTRIBUTES": {
            "CustomKeywordField": "Keyword",
            "CustomIntField": "Int",
            "CustomBoolField": "Bool",
        },
    },
}
