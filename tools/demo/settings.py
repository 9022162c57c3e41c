"""The local project with the demo's pace: what takes days in the shop takes seconds here."""

from datetime import timedelta

from settings.local import *  # noqa: F403

ORDERS = {
    "approval_timeout": timedelta(seconds=8),
    "remind_every": timedelta(seconds=2.5),
    "charge_retry": timedelta(seconds=0.5),
    "work": timedelta(seconds=0.4),
}

# The account's process has the terminal for itself.
DEMO_LOG = env.str("DEMO_LOG", default="")  # noqa: F405
if DEMO_LOG:
    LOGGING["handlers"]["console"] = {  # noqa: F405
        "class": "logging.FileHandler",
        "filename": DEMO_LOG,
        "formatter": "line",
    }
