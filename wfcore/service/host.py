"""The ports and settings that every call works with, as one value."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from wfcore.history.limits import DEFAULT_LIMITS, Limits
from wfcore.service.ports import START_WAIT, Dispatcher, Ids, Store


class Arrivals(StrEnum):
    """How a fact for a run meets the commits of that run. Both lose nothing."""

    #: look without a lock; while a workflow task is started, store, commit and look again
    OPTIMISTIC = "optimistic"
    #: always hold the run's lock
    LOCKED = "locked"


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """What the service stands on."""

    store: Store
    dispatcher: Dispatcher
    ids: Ids
    limits: Limits = DEFAULT_LIMITS
    arrivals: Arrivals = Arrivals.OPTIMISTIC
    #: how long a start waits for another open transaction on its workflow id
    start_wait: timedelta = START_WAIT
