"""One run from empty servers to its verdict."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from examples.orders.models import Product
from tests.e2e.faults.chaos import Chaos, Damage
from tests.e2e.faults.customers import PRICE_CENTS, SKUS, STOCK, Customers
from tests.e2e.faults.evidence import Evidence, collect
from tests.e2e.faults.patience import patiently
from tests.e2e.faults.plan import Plan
from tools.services import Services
from tools.stack import BEAT_READY, WORKER_READY, Program, Stack
from wfapp.models import WorkflowExecution
from wfcore.protocol.enums import WorkflowExecutionStatus

WORKERS = ("worker-1", "worker-2")
SLOTS = 2
#: all must have ended by then, counted from the first order
LIMIT_SECONDS = 900.0
TELL_SECONDS = 10.0
LOOK_SECONDS = 0.25


@dataclass
class Outcome:
    """The figures of one run."""

    orders: int
    seed: int
    damage: Damage
    evidence: Evidence = field(default_factory=Evidence)
    #: from the first order to the last end
    seconds: float = 0.0
    #: from the last fault to the last end
    recovery_seconds: float = 0.0
    findings: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "damage": vars(self.damage),
            "evidence": vars(self.evidence),
        }


class Scene:
    """Holds what runs; `play` gives the figures."""

    def __init__(
        self, plan: Plan, *, services: Services, stack: Stack, tell: Callable[[str], None]
    ) -> None:
        self._plan = plan
        self._services = services
        self._stack = stack
        self._begin = time.monotonic()
        self._say = tell
        self._told_at = 0.0
        self._customers = Customers(plan)

    def play(self) -> Outcome:
        """Place and decide all orders under the plan's faults, wait for their ends, judge."""
        Product.objects.bulk_create(
            Product(sku=sku, name=sku.capitalize(), price_cents=PRICE_CENTS, available=STOCK)
            for sku in SKUS
        )
        for program in [*(self._start_worker(name) for name in WORKERS), self._start_beat()]:
            program.wait_for(BEAT_READY if program.name == "beat" else WORKER_READY)
        self._begin = time.monotonic()
        self._customers.start()
        chaos = Chaos(
            self._plan,
            stack=self._stack,
            services=self._services,
            start_worker=self._start_worker,
            start_beat=self._start_beat,
            tell=self._tell,
        )
        outcome = Outcome(orders=len(self._plan.orders), seed=self._plan.seed, damage=chaos.damage)
        try:
            chaos.run(self._watch)
            last_fault = time.monotonic()
            self._wait_for_all()
            outcome.seconds = time.monotonic() - self._begin
            outcome.recovery_seconds = time.monotonic() - last_fault
        except AssertionError as error:
            outcome.findings.append(str(error))
            return outcome
        finally:
            self._customers.stop()
        self._tell("all have ended; the witnesses are heard")
        outcome.evidence = collect(self._plan, self._stack.directory / "histories")
        outcome.findings += outcome.evidence.findings
        return outcome

    def _start_worker(self, name: str) -> Program:
        return self._stack.worker(name, slots=SLOTS)

    def _start_beat(self) -> Program:
        return self._stack.beat()

    def _wait_for_all(self) -> None:
        while self._customers.is_alive() or patiently(open_runs):
            self._watch()
            time.sleep(LOOK_SECONDS)
        self._watch()

    def _watch(self) -> None:
        """Tell now and then how it stands.

        Raises:
            AssertionError: it takes too long, or the customers' thread failed.
        """
        passed = time.monotonic() - self._begin
        if self._customers.error:
            raise AssertionError(f"the customers failed: {self._customers.error!r}")
        if passed > LIMIT_SECONDS:
            left = patiently(open_runs)
            raise AssertionError(f"{left} runs are still open after {LIMIT_SECONDS:.0f} s")
        if passed > self._told_at + TELL_SECONDS:
            self._told_at = passed
            placed, left = self._customers.placed, patiently(open_runs)
            self._tell(f"{placed} placed, {self._customers.decided} decided, {left} open")

    def _tell(self, text: str) -> None:
        self._say(f"{time.monotonic() - self._begin:6.1f} s  {text}")


def open_runs() -> int:
    """How many runs have not ended."""
    count: int = WorkflowExecution.objects.filter(
        status=WorkflowExecutionStatus.RUNNING.value
    ).count()
    connection.close()
    return count
