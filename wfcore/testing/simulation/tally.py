"""Sums over many runs: how many of what was asked for, and how often what went wrong where."""

from collections import Counter
from collections.abc import Iterator

from wfcore.service.ports import Dispatcher, Store, Transaction
from wfcore.testing.simulation.faults import Fault, calls_of
from wfcore.testing.simulation.store import FROM_MEMORY

_PORTS = (Store, Transaction, Dispatcher)
#: Calls of ports, as faults name them.
PORT_CALLS = tuple(f"{port.__name__}.{name}" for port in _PORTS for name in calls_of(port))


class Tally:
    """Counts of some runs of the simulator."""

    def __init__(self) -> None:
        self.runs = 0
        self.workflow_runs = 0
        self.events = 0
        #: fewest requests of one run
        self.fewest = 0
        self.requests: Counter[str] = Counter()
        self.faults: Counter[tuple[str, Fault]] = Counter()

    def add(
        self,
        requests: Counter[str],
        faults: Counter[tuple[str, Fault]],
        workflow_runs: int,
        events: int,
    ) -> None:
        """One more run."""
        self.runs += 1
        self.workflow_runs += workflow_runs
        self.events += events
        made = sum(requests.values())
        self.fewest = min(self.fewest, made) if self.runs > 1 else made
        self.requests += requests
        self.faults += faults

    def shares(self) -> dict[str, float]:
        """The part that each kind of request has, largest first."""
        total = sum(self.requests.values())
        return {kind: count / total for kind, count in self.requests.most_common()}

    def faults_by_kind(self) -> Counter[Fault]:
        """How often each kind of fault happened."""
        kinds: Counter[Fault] = Counter()
        for (_, kind), count in self.faults.items():
            kinds[kind] += count
        return kinds

    def calls_without(self, fault: Fault) -> list[str]:
        """Calls of ports at which this could happen and never did."""
        return [
            call
            for call in PORT_CALLS
            if not self.faults[call, fault] and (fault is not Fault.FAILURE or _may_fail(call))
        ]

    def lines(self) -> Iterator[str]:
        """All of it, for people."""
        runs = max(self.runs, 1)
        made = sum(self.requests.values())
        yield (
            f"{self.runs} runs, {made / runs:.1f} requests each, {self.fewest} at least; "
            f"{self.workflow_runs / runs:.1f} workflow runs with {self.events / runs:.1f} events"
        )
        yield "requests by kind:"
        for kind, share in self.shares().items():
            yield f"  {self.requests[kind]:>9}  {share:6.2%}  {kind}"
        yield "faults by kind:"
        for fault, count in self.faults_by_kind().most_common():
            yield f"  {count:>9}  {count / runs:6.2f} a run  {fault}"
        for fault in (Fault.OVERTAKEN, Fault.CRASH_BEFORE, Fault.FAILURE):
            missed = self.calls_without(fault)
            yield f"calls of ports without {fault}: {', '.join(missed) or 'none'}"
        for fault in (Fault.CRASH_AFTER, Fault.UNKNOWN_OUTCOME):
            where = sorted(call for call, kind in self.faults if kind is fault)
            yield f"{fault}: {', '.join(where) or 'none'}"


def _may_fail(call: str) -> bool:
    port, name = call.split(".")
    return port != Dispatcher.__name__ and name not in FROM_MEMORY
