"""What the shop's side does while the database is away: it tries again."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection

from wfcore.exceptions import UnavailableError

Result = TypeVar("Result")

OUTAGE = timedelta(seconds=60)
PAUSE_SECONDS = 0.1


def patiently(call: Callable[[], Result]) -> Result:
    """Call again until the database answers; the call must bear being done twice."""
    deadline = time.monotonic() + OUTAGE.total_seconds()
    while True:
        try:
            return call()
        except (OperationalError, InterfaceError, UnavailableError):
            if time.monotonic() > deadline:
                raise
            connection.close()
            time.sleep(PAUSE_SECONDS)
