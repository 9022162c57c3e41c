"""The living part of a simulated world: one call after another, while time passes, processes die,
and the broker forgets.

Each step draws from random numbers of its own, so that a step can be left out without changing
what the others do.
"""

import random
from datetime import timedelta
from functools import partial

from wfcore.testing.simulation.calls import Choice
from wfcore.testing.simulation.faults import Fault
from wfcore.testing.simulation.world import World

_SEED_STEP = 1_000_003
_PAUSES = (0.0, 0.0, 0.0, 0.01, 0.2, 0.2, 1.0, 1.0, 3.0, 11.0, 40.0)
_LONG_PAUSES = (300.0, 4_000.0)


def live(world: World, steps: int, skipped: frozenset[int] = frozenset()) -> None:
    """Let actors make so many calls; ends early when a rule is broken."""
    choice = Choice(world.profile.seed)
    for step in range(steps):
        if world.watch.report.violations:
            return
        world.turns.turn = step
        if step in skipped:
            continue
        rng = random.Random(world.profile.seed * _SEED_STEP + step)
        _disturb(world, rng)
        world.turns.resume_all()
        chosen = choice.choose(world, rng)
        if chosen is None:
            world.clock.advance(timedelta(seconds=1))
            continue
        call, actor = chosen
        world.begin(f"{step} {call.name}", actor, rng, partial(call.make, world, actor, rng))


def _disturb(world: World, rng: random.Random) -> None:
    """What happens between two calls."""
    _pass_time(world, rng)
    chance = rng.random()
    if chance < 0.015:
        _kill_worker(world, rng)
    elif chance < 0.025:
        _misjudge_worker(world, rng)
    elif chance < 0.035 and world.faults.allows(Fault.BROKER_EMPTIED):
        world.faults.note("broker", Fault.BROKER_EMPTIED)
        world.dispatcher.empty()
    elif chance < 0.045 and world.faults.allows(Fault.CLOCK_BACK):
        world.faults.note("clock", Fault.CLOCK_BACK)
        world.clock.shift = timedelta(seconds=-rng.choice([0.0, 0.5, 1.0]))


def _pass_time(world: World, rng: random.Random) -> None:
    chance = rng.random()
    if chance < 0.02:
        world.clock.advance(timedelta(seconds=rng.choice(_LONG_PAUSES)))
    elif chance < 0.2:
        due = world.store.next_due()
        if due is not None:
            world.clock.move_to(due + timedelta(seconds=rng.choice([-0.001, 0.0, 0.001])))
    else:
        world.clock.advance(timedelta(seconds=rng.choice(_PAUSES)))


def _kill_worker(world: World, rng: random.Random) -> None:
    if world.workers and world.faults.allows(Fault.WORKER_KILLED):
        worker = rng.choice(world.workers)
        world.faults.note(worker.name.split("-")[0], Fault.WORKER_KILLED)
        worker.die()


def _misjudge_worker(world: World, rng: random.Random) -> None:
    """A worker lives and works, but its lease was not renewed."""
    if world.workers and world.faults.allows(Fault.WORKER_MISJUDGED):
        worker = rng.choice(world.workers)
        world.faults.note("worker", Fault.WORKER_MISJUDGED)
        worker.died_at = world.clock.now()
        if worker not in world.lost_workers:
            world.lost_workers.append(worker)
