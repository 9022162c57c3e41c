"""What tickers do: sweep, and end the claims of workers that are dead or taken for dead."""

import random

from wfcore.testing.simulation.ledger import ask
from wfcore.testing.simulation.processes import LEASE, Ticker, Worker
from wfcore.testing.simulation.world import World


def sweep(world: World, ticker: Ticker, rng: random.Random) -> None:
    """Do what has come due, in batches of any size."""
    limit = rng.choice([1, 2, 10, 100])
    world.asked("sweep")
    ask(lambda: ticker.service.sweep(limit))


def lose_worker(world: World, ticker: Ticker, rng: random.Random) -> None:
    """End the claims of a worker whose lease is over."""
    worker = rng.choice(expired(world))
    limit = rng.choice([1, 3, 100])
    world.asked("lose a worker")
    ended = ask(lambda: ticker.service.lose_worker(worker.boot_id, "its lease is over", limit))
    if ended == 0 and worker in world.lost_workers:
        world.lost_workers.remove(worker)


def expired(world: World) -> list[Worker]:
    """Workers that may be judged dead; some of them live."""
    now = world.clock.now()
    return [
        worker
        for worker in world.lost_workers
        if worker.died_at is not None and now - worker.died_at >= LEASE
    ]
