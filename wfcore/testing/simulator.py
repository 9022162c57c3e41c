"""A deterministic simulator of the whole system: service, store, broker, clock, and all who use
them, with everything going wrong that can.

A run is made by its seed alone and repeats itself exactly. What must hold is looked at after each
commit and at the end (`simulation.watch`, `simulation.verdict`). A run that breaks a rule is
repeated with ever less in it, until nothing more can be left out.
"""

import logging
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from wfcore.exceptions import RPCError
from wfcore.testing.simulation.ending import end
from wfcore.testing.simulation.faults import ConnectionLostError, Fault
from wfcore.testing.simulation.fibers import Turns
from wfcore.testing.simulation.living import live
from wfcore.testing.simulation.profile import profile_of
from wfcore.testing.simulation.verdict import HistoryCheck, Verdict
from wfcore.testing.simulation.violations import Report, Violation
from wfcore.testing.simulation.world import World

STEPS = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Which run: its seed, how many calls its actors make, and what is left out of it."""

    seed: int
    steps: int = STEPS
    skipped: frozenset[int] = frozenset()
    left_out: frozenset[Fault] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Simulated:
    """What came of a run."""

    plan: Plan
    violations: list[Violation]
    requests: Counter[str] = field(default_factory=Counter)
    faults: Counter[tuple[str, Fault]] = field(default_factory=Counter)
    #: runs of workflows, and their events
    workflow_runs: int = 0
    events: int = 0
    trace: list[str] = field(default_factory=list)

    @property
    def broken_rule(self) -> str:
        """The first rule that was broken; empty if all hold."""
        return self.violations[0].rule if self.violations else ""


def simulate(
    plan: Plan, turns: Turns, *, checks: Sequence[HistoryCheck] = (), is_traced: bool = False
) -> Simulated:
    """One run. `checks` look at each history besides what is looked at anyway."""
    world = World(profile_of(plan.seed), turns, left_out=plan.left_out, is_traced=is_traced)
    report = world.watch.report
    with _overhearing(report):
        try:
            live(world, plan.steps, plan.skipped)
            if not report.violations:
                end(world)
            if not report.violations:
                Verdict(world).give(checks)
        except Exception:  # noqa: BLE001 - whatever it is, no caller should meet it
            report.fail("no error but those that are documented", traceback.format_exc())
        finally:
            world.close()
    return Simulated(
        plan=plan,
        violations=report.violations,
        requests=world.requests,
        faults=world.faults.counts,
        workflow_runs=len(world.runs()),
        events=sum(len(run.events) for run in world.runs()),
        trace=world.trace,
    )


def shrink(found: Simulated, turns: Turns, *, checks: Sequence[HistoryCheck] = ()) -> Simulated:
    """The same rule broken with as little as possible; its trace says how."""
    rule, plan = found.broken_rule, found.plan

    def still(smaller: Plan) -> bool:
        return simulate(smaller, turns, checks=checks).broken_rule == rule

    for fault in Fault:
        smaller = replace(plan, left_out=plan.left_out | {fault})
        if still(smaller):
            plan = smaller
    size = plan.steps // 2
    while size:
        before = plan
        for place in range(0, plan.steps, size):
            part = frozenset(range(place, min(place + size, plan.steps))) - plan.skipped
            smaller = replace(plan, skipped=plan.skipped | part)
            if part and still(smaller):
                plan = smaller
        if size > 1 or plan == before:  # single steps until none is left that may go
            size //= 2
    return simulate(plan, turns, checks=checks, is_traced=True)


@contextmanager
def _overhearing(report: Report) -> Iterator[None]:
    """Errors that the engine logs instead of raising them count like others."""
    logger = logging.getLogger("wfcore")
    handler = _Overheard(report)
    before = (logger.propagate, logger.level)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate, _ = before


class _Overheard(logging.Handler):
    def __init__(self, report: Report) -> None:
        super().__init__(level=logging.WARNING)
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is None or isinstance(error, ConnectionLostError | RPCError):
            return
        text = f"{record.getMessage()}: " + "".join(traceback.format_exception(error))
        self._report.fail("no error but those that are documented", text)
