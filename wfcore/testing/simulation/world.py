"""One simulated world: its store, its broker, its clock, and the processes that live in it."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta

from wfcore.protocol.payloads import Payload, Payloads
from wfcore.service.ports import RunKey
from wfcore.service.workflow_service import WorkflowService
from wfcore.testing.clocks import SequentialIds
from wfcore.testing.memory_rows import Run
from wfcore.testing.simulation.dispatcher import SimulatedDispatcher
from wfcore.testing.simulation.faults import Fault, Faults
from wfcore.testing.simulation.fibers import Fiber, Turns
from wfcore.testing.simulation.ledger import Ledger
from wfcore.testing.simulation.processes import Client, Process, Ticker, Worker
from wfcore.testing.simulation.profile import Profile
from wfcore.testing.simulation.store import ShiftedClock, SimulatedStore
from wfcore.testing.simulation.watch import Watch
from wfcore.worker import InstanceCache

NAMESPACE = "default"
QUEUE = "simulated"
#: Workflow types: made up command by command, and real code.
SCRIPT = "Script"
ERRAND = "Errand"


class World:
    """What one run of the simulator is made of.

    Attributes:
        requests: how often each kind of request was made.
        trace: what happened, if it is wanted.
        is_ending: workflows that can end do so now.
    """

    def __init__(
        self,
        profile: Profile,
        turns: Turns,
        *,
        left_out: frozenset[Fault] = frozenset(),
        is_traced: bool = False,
    ) -> None:
        self.profile = profile
        self.turns = turns
        self.trace: list[str] = []
        self._is_traced = is_traced
        self.clock = ShiftedClock()
        self.faults = Faults(turns, profile.rates, left_out=left_out, tell=self.tell)
        self.ledger = Ledger()
        self.watch = Watch(self.ledger, profile.limits)
        self.store = SimulatedStore(self.clock, self.faults, self._seen)
        self.dispatcher = SimulatedDispatcher(self.clock, self.faults)
        self.ids = SequentialIds(profile.seed)
        self.requests: Counter[str] = Counter()
        self.is_ending = False
        self._rng = random.Random(profile.seed + 1)
        self._names: Counter[str] = Counter()
        self.clients: list[Client] = []
        self.workers: list[Worker] = []
        self.tickers: list[Ticker] = []
        #: dead, or taken for dead, with claims that nobody has ended yet
        self.lost_workers: list[Worker] = []
        #: live instances of workflow code, of dead workers too: code that is left to the garbage
        #: collector would end in the middle of something else
        self.caches: list[InstanceCache] = []
        for _ in range(profile.clients):
            self.add_client()
        for _ in range(profile.workers):
            self.add_worker()
        for _ in range(profile.tickers):
            self.add_ticker()

    def close(self) -> None:
        """Let go of all that is left of it."""
        self.turns.drop_all()
        for cache in self.caches:
            cache.clear()

    # ---- processes

    def add_client(self) -> Client:
        """Another client."""
        client = Client(self._name("client"), self._service(), self._skew(), self._replace_dead)
        self.clients.append(client)
        return client

    def add_worker(self) -> Worker:
        """Another worker."""
        worker = Worker(self._name("worker"), self._service(), self._skew(), self._replace_dead)
        self.workers.append(worker)
        return worker

    def add_ticker(self) -> Ticker:
        """Another ticker."""
        ticker = Ticker(self._name("ticker"), self._service(), self._skew(), self._replace_dead)
        self.tickers.append(ticker)
        return ticker

    def _replace_dead(self) -> None:
        for client in [each for each in self.clients if not each.is_alive]:
            self.clients.remove(client)
            self.add_client()
        for worker in [each for each in self.workers if not each.is_alive]:
            worker.died_at = self.clock.now()
            self.workers.remove(worker)
            self.lost_workers.append(worker)
            self.add_worker()
        for ticker in [each for each in self.tickers if not each.is_alive]:
            self.tickers.remove(ticker)
            self.add_ticker()

    def _name(self, kind: str) -> str:
        self._names[kind] += 1
        return f"{kind}-{self._names[kind]}"

    def _service(self) -> WorkflowService:
        profile = self.profile
        return WorkflowService(
            self.store, self.dispatcher, self.ids, profile.limits, profile.arrivals
        )

    def _skew(self) -> timedelta:
        allowed = Fault.CLOCK_SKEW not in self.faults.left_out
        return self.profile.skew * self._rng.uniform(-1, 1) if allowed else timedelta()

    # ---- calls

    def begin(
        self, name: str, process: Process, rng: random.Random, call: Callable[[], None]
    ) -> None:
        """Let a process make a call, until it ends, pauses or waits."""

        def tracked() -> None:
            process.calls += 1
            try:
                call()
            finally:
                process.calls -= 1

        self.turns.start(Fiber(f"{name} of {process.name}", process, rng, tracked))

    def asked(self, kind: str) -> None:
        """Count a request."""
        self.requests[kind] += 1
        fiber = self.turns.current
        if self._is_traced:
            self.tell(f"{fiber.name if fiber is not None else 'end'}: {kind}")

    def tell(self, text: str) -> None:
        """Write into the trace."""
        if self._is_traced:
            at = self.clock.now().strftime("%H:%M:%S.%f")[:-3]
            self.trace.append(f"[{self.turns.turn:>3}] {at} {text}")

    # ---- looking without a call

    def runs(self) -> list[Run]:
        """All committed runs, in the order in which they were made."""
        return list(self.store.tables.runs.values())

    def open_runs(self) -> list[Run]:
        """Those that may still change."""
        return [run for run in self.runs() if not run.closed]

    def has_waiting_task(self) -> bool:
        """Whether a workflow task waits for a worker."""
        return any(queue.first() for queue in self.store.tables.waiting_tasks.values())

    def has_waiting_activity(self) -> bool:
        """Whether an attempt of an activity may start and waits for a worker."""
        now = self.clock.now()
        firsts = (queue.first() for queue in self.store.tables.waiting_activities.values())
        return any(first is not None and first <= now for first in firsts)

    def has_work_for_ticker(self) -> bool:
        """Whether a sweep would find anything."""
        now, tables = self.clock.now(), self.store.tables
        due = (tables.due_runs.first(), tables.due_activities.first())
        return bool(tables.with_inbox) or any(at is not None and at <= now for at in due)

    def run(self, key: RunKey) -> Run | None:
        """One run."""
        return self.store.tables.runs.get(key)

    def tag(self, kind: str) -> str:
        """A name that nothing else has."""
        return self._name(kind)

    def _seen(self, keys: Sequence[RunKey]) -> None:
        runs = [self.store.tables.runs[key] for key in keys]
        self.watch.committed(runs)
        if self._is_traced:
            for run in runs:
                self.tell(f"  committed: {self.watch.latest(run)}")


def text(value: str) -> Payloads:
    """A value."""
    return Payloads(
        payloads=(Payload(metadata={"encoding": b"json/plain"}, data=f'"{value}"'.encode()),)
    )
