"""The app's one setting, `ORDERS`: every key is optional.

The workflow never reads it: what a run needs is handed over when it starts, since a setting may
change while a run waits for days.
"""

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings


@dataclass(frozen=True, kw_only=True)
class OrderSettings:
    #: how long an order waits for its approval
    approval_timeout: timedelta = timedelta(days=3)
    #: the approver is reminded each time this has passed
    remind_every: timedelta = timedelta(days=1)
    #: the pause between two tries of a charge, doubled after each
    charge_retry: timedelta = timedelta(seconds=1)
    #: how often the payment service refuses an order before it accepts it
    payment_failures: int = 2
    #: how long each step takes: stands for the warehouse, the bank, the parcel service
    work: timedelta = timedelta(0)


def order_settings() -> OrderSettings:
    return OrderSettings(**getattr(settings, "ORDERS", {}))
