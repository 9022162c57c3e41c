"""What happens in one run, decided before it begins: which orders, which end, which faults when."""

import random
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

KILL_EVERY = timedelta(seconds=3)
#: how late a decision comes; the slower ones are reminded of
DECISION_WITHIN = timedelta(seconds=8)
REMIND_EVERY = timedelta(seconds=3)
#: who never hears anything gives up after this
SILENCE = timedelta(seconds=7)
#: and who will hear waits through every outage
PATIENCE = timedelta(hours=1)
#: how long each step works: long enough to be hit in it
WORK = timedelta(seconds=0.1)

#: of ten orders one is refused and one never hears anything
REFUSED, SILENT = 3, 7
WORKER_KILLED_EVERY = 5
REDIS_EMPTIED = 3
BEAT_KILLED = 2


class End(StrEnum):
    """How an order must end; the values are those of its status."""

    SHIPPED = "shipped"
    REFUSED = "refused"
    EXPIRED = "expired"


class Fault(StrEnum):
    """What is done to the system, beside its number."""

    KILL_SLOT = "a slot's process that holds a claim"
    KILL_WORKER = "a whole worker, one of whose slots holds a claim"
    EMPTY_REDIS = "Redis emptied"
    KILL_BEAT = "beat killed"
    CRASH_POSTGRES = "PostgreSQL crashed and started again"


@dataclass(frozen=True, kw_only=True)
class PlannedOrder:
    number: str
    end: End
    #: after the order's start; None: nobody decides
    decided_after: timedelta | None
    #: after the run's begin
    placed_after: timedelta

    @property
    def approval_timeout(self) -> timedelta:
        return SILENCE if self.decided_after is None else PATIENCE


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Orders are placed while the faults happen, so that there is always work to hit."""

    orders: list[PlannedOrder]
    faults: list[list[Fault]]
    seed: int

    @property
    def kills(self) -> int:
        return sum(
            fault in (Fault.KILL_SLOT, Fault.KILL_WORKER) for step in self.faults for fault in step
        )


def make_plan(*, orders: int, kills: int, seed: int) -> Plan:
    """One step of faults each three seconds: a kill, and beside some of them something else."""
    if kills < REDIS_EMPTIED + BEAT_KILLED + 1:
        raise ValueError(f"{kills} kills leave no room for the other faults")
    chance = random.Random(seed)
    faults = [[_kill(step)] for step in range(kills)]
    others = [Fault.EMPTY_REDIS] * REDIS_EMPTIED + [Fault.KILL_BEAT] * BEAT_KILLED
    others.append(Fault.CRASH_POSTGRES)
    chance.shuffle(others)
    # Spread over the run, none in its first step.
    for place, fault in enumerate(others):
        faults[1 + place * (kills - 1) // len(others)].append(fault)
    span = KILL_EVERY * kills
    return Plan(
        orders=[_order(place, span * place / orders, chance) for place in range(orders)],
        faults=faults,
        seed=seed,
    )


def _kill(step: int) -> Fault:
    whole = step % WORKER_KILLED_EVERY == WORKER_KILLED_EVERY - 1
    return Fault.KILL_WORKER if whole else Fault.KILL_SLOT


def _order(place: int, placed_after: timedelta, chance: random.Random) -> PlannedOrder:
    end = {REFUSED: End.REFUSED, SILENT: End.EXPIRED}.get(place % 10, End.SHIPPED)
    decided_after = None if end is End.EXPIRED else DECISION_WITHIN * chance.random()
    return PlannedOrder(
        number=f"F{place:04d}",
        end=end,
        decided_after=decided_after,
        placed_after=placed_after,
    )
