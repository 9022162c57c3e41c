"""What kind of world a seed makes: settings, limits, how many actors, and how much goes wrong."""

import random
from dataclasses import dataclass, replace
from datetime import timedelta

from wfcore.history.limits import Limits
from wfcore.service.host import Arrivals
from wfcore.testing.simulation.faults import Rates

#: Limits low enough to be met by a run of some dozen events.
_LOW = Limits(
    buffered_events=4,
    pending_activities=5,
    pending_children=3,
    pending_signals=3,
    pending_cancels=2,
    deliveries_at_once=2,
    reported_problems=2,
    workflow_task_heartbeat=timedelta(seconds=30),
)
#: Limits at which runs are ended by the engine, or signals refused.
_TIGHT = replace(
    _LOW,
    history_events=45,
    history_events_suggest=20,
    history_bytes_suggest=3_000,
    signals=6,
    buffered_bytes=1_500,
)
_WITHOUT_CRASHES = Rates(
    crash=0, failure=0, crash_at_commit=0, failure_at_commit=0, lock_timeout=0.01
)
_CROWDED = Rates(overtaken=0.15, overtaken_in_commit=0.5, crash=0.001, failure=0.001)
_ROUGH = Rates(
    overtaken=0.12,
    overtaken_in_commit=0.3,
    crash=0.006,
    failure=0.01,
    crash_at_commit=0.03,
    failure_at_commit=0.03,
    message_lost=0.3,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """The constant part of a simulated world."""

    seed: int
    arrivals: Arrivals
    limits: Limits
    rates: Rates
    clients: int
    workers: int
    tickers: int
    workflow_ids: int
    #: how many of the runs are made of real workflow code
    real_share: float
    #: workers that are left without messages poll; else all work is found through messages alone
    polls: bool
    #: dead workers are found by their leases; else timeouts alone bring their work back
    leases: bool
    #: clocks of processes differ from the store's by at most this
    skew: timedelta
    #: runs mostly have to do with each other
    is_sociable: bool


def profile_of(seed: int) -> Profile:
    """The world of a seed."""
    rng = random.Random(seed)
    return Profile(
        seed=seed,
        arrivals=rng.choice([Arrivals.OPTIMISTIC, Arrivals.OPTIMISTIC, Arrivals.LOCKED]),
        limits=rng.choice([Limits(), _LOW, _LOW, _TIGHT]),
        rates=rng.choice([Rates(), _CROWDED, _ROUGH, _WITHOUT_CRASHES]),
        clients=rng.randint(2, 4),
        workers=rng.randint(1, 3),
        tickers=rng.randint(1, 3),
        workflow_ids=rng.choice([1, 1, 2, 3]),
        real_share=rng.choice([0.0, 0.0, 0.0, 0.3, 1.0]),
        polls=rng.random() < 0.5,
        leases=rng.random() < 0.7,
        skew=timedelta(seconds=rng.choice([0.0, 0.0, 0.0, 0.3])),
        is_sociable=rng.random() < 0.5,
    )
