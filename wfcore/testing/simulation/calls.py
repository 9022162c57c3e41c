"""Which calls the actors of a simulated world make, how often, and when they make sense."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wfcore.history.effects import DispatchActivity, DispatchWorkflowTask
from wfcore.service.ports import QueryTask
from wfcore.testing.simulation import (
    client_calls,
    operation_calls,
    reading_calls,
    ticker_calls,
    update_calls,
    worker_calls,
)
from wfcore.testing.simulation.processes import Process, Worker
from wfcore.testing.simulation.world import World

When = Callable[[World], list[Any]]


@dataclass(frozen=True, slots=True)
class Call:
    """One kind of call. `actors` are those that could make it now."""

    name: str
    weight: float
    actors: When
    make: Callable[[World, Any, random.Random], None]


def _clients(world: World) -> list[Any]:
    return [client for client in world.clients if client.is_idle]


def _clients_if_few_runs(world: World) -> list[Any]:
    return _clients(world) if len(world.open_runs()) < 1 else []


def _clients_if_started(world: World) -> list[Any]:
    return _clients(world) if world.ledger.starts else []


def _clients_if_signaled(world: World) -> list[Any]:
    return _clients(world) if world.ledger.signals else []


def _clients_if_updated(world: World) -> list[Any]:
    return _clients(world) if world.ledger.updates else []


def _clients_if_any_run(world: World) -> list[Any]:
    return _clients(world) if world.store.tables.runs else []


def _clients_if_activities(world: World) -> list[Any]:
    return _clients(world) if operation_calls.runs_with_activities(world) else []


def _workers(world: World) -> list[Worker]:
    return [worker for worker in world.workers if worker.is_idle]


def _workers_if(holds: Callable[[Worker], object]) -> When:
    return lambda world: [worker for worker in _workers(world) if holds(worker)]


def _workers_if_message(*kinds: type) -> When:
    def actors(world: World) -> list[Any]:
        now = world.clock.now()
        arrived = any(
            isinstance(message.work, kinds) and message.due_at <= now
            for message in world.dispatcher.messages
        )
        return _workers(world) if arrived else []

    return actors


def _workers_if_task_waits(world: World) -> list[Any]:
    return _workers(world) if world.has_waiting_task() else []


def _workers_if_activity_waits(world: World) -> list[Any]:
    return _workers(world) if world.has_waiting_activity() else []


def _tickers(world: World) -> list[Any]:
    return [ticker for ticker in world.tickers if ticker.is_idle]


def _tickers_if_expired(world: World) -> list[Any]:
    return _tickers(world) if ticker_calls.expired(world) else []


CALLS = (
    Call("start", 1.5, _clients, client_calls.start),
    Call("first start", 12, _clients_if_few_runs, client_calls.start),
    Call("start again", 1.7, _clients_if_started, client_calls.start_again),
    Call("start inside", 1.7, _clients, client_calls.start_inside),
    Call("signal", 3.5, _clients_if_any_run, client_calls.signal),
    Call("signal again", 2.9, _clients_if_signaled, client_calls.signal_again),
    Call("signal inside", 1.8, _clients_if_any_run, client_calls.signal_inside),
    Call("signal with start", 1.5, _clients, client_calls.signal_with_start),
    Call("update", 3, _clients_if_any_run, update_calls.update),
    Call("update with start", 2.2, _clients, update_calls.update_with_start),
    Call("update again", 3.6, _clients_if_updated, update_calls.update_again),
    Call("poll update", 3.9, _clients_if_updated, update_calls.poll_update),
    Call("cancel", 2.2, _clients_if_any_run, client_calls.cancel),
    Call("terminate", 1.7, _clients_if_any_run, client_calls.terminate),
    Call("operate", 128, _clients_if_activities, operation_calls.operate),
    Call("query", 6.5, _clients_if_any_run, reading_calls.query),
    Call("describe", 1.6, _clients_if_any_run, reading_calls.describe),
    Call("history", 0.95, _clients_if_any_run, reading_calls.history),
    Call("history backwards", 1, _clients_if_any_run, reading_calls.history_backwards),
    Call("history awaited", 1.5, _clients_if_any_run, reading_calls.history_awaited),
    Call("list", 1.3, _clients, reading_calls.list_runs),
    Call("count", 1.5, _clients, reading_calls.count_runs),
    Call(
        "workflow task message",
        22,
        _workers_if_message(DispatchWorkflowTask, QueryTask),
        worker_calls.work_on_message,
    ),
    Call("query message", 40, _workers_if_message(QueryTask), worker_calls.work_on_query_message),
    Call("poll", 6, _workers_if_task_waits, worker_calls.poll),
    Call("poll in vain", 0.7, _workers, worker_calls.poll),
    Call("answer", 12, _workers_if(lambda worker: worker.tasks), worker_calls.answer),
    Call(
        "answer again", 2, _workers_if(lambda worker: worker.old_tasks), worker_calls.answer_again
    ),
    Call(
        "activity message",
        44,
        _workers_if_message(DispatchActivity),
        worker_calls.work_on_activity_message,
    ),
    Call("poll for an activity", 18, _workers_if_activity_waits, worker_calls.poll_for_activity),
    Call("poll for an activity in vain", 0.7, _workers, worker_calls.poll_for_activity),
    Call("heartbeat", 52, _workers_if(lambda worker: worker.activities), worker_calls.heartbeat),
    Call("end", 80, _workers_if(lambda worker: worker.activities), worker_calls.end_activity),
    Call(
        "end again",
        3,
        _workers_if(lambda worker: worker.old_activities),
        worker_calls.end_activity_again,
    ),
    Call("sweep", 6, _tickers, ticker_calls.sweep),
    Call("lose a worker", 4, _tickers_if_expired, ticker_calls.lose_worker),
)


#: What the weight of a call is multiplied with in one world, so that worlds differ.
_APPETITES = (0.2, 1.0, 1.0, 4.0)


class Choice:
    """Chooses calls in one world, which has likings of its own."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed + 3)
        self._weights = {call.name: call.weight * rng.choice(_APPETITES) for call in CALLS}

    def choose(self, world: World, rng: random.Random) -> tuple[Call, Process] | None:
        """A call that makes sense now, and who makes it; None when all are busy."""
        possible = [(call, actors) for call in CALLS if (actors := call.actors(world))]
        if not possible:
            return None
        weights = [self._weights[call.name] for call, _ in possible]
        call, actors = rng.choices(possible, weights)[0]
        return call, rng.choice(actors)
