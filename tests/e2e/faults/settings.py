"""The project as the fault test runs it: steps that take a while, retries that come soon."""

from datetime import timedelta

from settings.test import *  # noqa: F403
from tests.e2e.faults.plan import REMIND_EVERY, WORK

ORDERS = {
    "work": WORK,
    "remind_every": REMIND_EVERY,
    "charge_retry": timedelta(seconds=0.5),
}
