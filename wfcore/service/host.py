"""The ports and settings that every call works with, as one value."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from wfcore.history.effects import CarryOut
from wfcore.history.limits import DEFAULT_LIMITS, Limits
from wfcore.service.ports import START_WAIT, Dispatcher, Ids, Store
from wfcore.service.recent import Recent


class Arrivals(StrEnum):
    """How a fact for a run meets the commits of that run. Both lose nothing."""

    #: look without a lock; while a workflow task is started, store, commit and look again
    OPTIMISTIC = "optimistic"
    #: always hold the run's lock
    LOCKED = "locked"


class Carrier(Protocol):
    """Does what runs have to do to other workflow ids, after the commits that say so."""

    def carry_out(self, host: "Host", effects: Sequence[CarryOut]) -> None:
        """Begin what the effects name; never raises, and may lose anything."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """What the service stands on."""

    store: Store
    dispatcher: Dispatcher
    ids: Ids
    carrier: Carrier
    limits: Limits = DEFAULT_LIMITS
    arrivals: Arrivals = Arrivals.OPTIMISTIC
    #: how long a start waits for another open transaction on its workflow id
    start_wait: timedelta = START_WAIT
    recent: Recent = field(default_factory=Recent)
