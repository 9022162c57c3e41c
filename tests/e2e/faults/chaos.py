"""Does what the plan says to the running system, and notes what it hit."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil

from tests.e2e.faults.claims import Claim, claims, still_held
from tests.e2e.faults.patience import patiently
from tests.e2e.faults.plan import KILL_EVERY, Fault, Plan
from tools.services import Services
from tools.stack import Program, Stack

#: how long a claim is looked for before the run has failed
SEARCH_SECONDS = 60.0
LOOK_SECONDS = 0.02


class NothingToKillError(AssertionError):
    """No process held a claim for a minute, though orders are under way."""


@dataclass
class Damage:
    """What was done."""

    #: kills that hit a process with a claim, by fault and kind of claim
    kills: Counter[str] = field(default_factory=Counter)
    #: kills whose victim had just given its claim back; done again
    misses: int = 0
    others: Counter[str] = field(default_factory=Counter)
    #: seconds from the first fault to the last
    seconds: float = 0.0


class Chaos:
    """`start_worker` and `start_beat` replace what was killed."""

    def __init__(
        self,
        plan: Plan,
        *,
        stack: Stack,
        services: Services,
        start_worker: Callable[[str], Program],
        start_beat: Callable[[], Program],
        tell: Callable[[str], None],
    ) -> None:
        self.damage = Damage()
        self._plan = plan
        self._stack = stack
        self._services = services
        self._start_worker = start_worker
        self._start_beat = start_beat
        self._tell = tell
        self._chance = random.Random(plan.seed)

    def run(self, watch: Callable[[], None]) -> None:
        """All steps, one each three seconds; `watch` is called before each."""
        begin = time.monotonic()
        for number, step in enumerate(self._plan.faults):
            due = begin + (number + 1) * KILL_EVERY.total_seconds()
            time.sleep(max(0.0, due - time.monotonic()))
            watch()
            for fault in step:
                self._do(fault)
        self.damage.seconds = time.monotonic() - begin

    def _do(self, fault: Fault) -> None:
        if fault in (Fault.KILL_SLOT, Fault.KILL_WORKER):
            self._kill_a_claim(fault)
            return
        self._tell(fault)
        if fault is Fault.EMPTY_REDIS:
            self._services.redis.empty()
        elif fault is Fault.CRASH_POSTGRES:
            self._services.postgres.restart(crash=True)
        elif fault is Fault.KILL_BEAT:
            self._program("beat").kill()
            self._start_beat()
        self.damage.others[fault] += 1

    def _kill_a_claim(self, fault: Fault) -> None:
        """Kill until a claim was hit: one that its owner still has when it is dead."""
        while True:
            claim, worker = self._victim()
            if fault is Fault.KILL_WORKER:
                worker.kill()
            else:
                os.kill(claim.pid, signal.SIGKILL)
            hit = patiently(lambda claim=claim: still_held(claim))  # type: ignore[misc]  # bound now
            what = f"{fault} ({worker.name}, process {claim.pid}, {claim.kind})"
            self._tell(what if hit else f"{what}: it had just given it back")
            if fault is Fault.KILL_WORKER:
                self._start_worker(worker.name)
            if hit:
                self.damage.kills[f"{fault.name} {claim.kind}"] += 1
                return
            self.damage.misses += 1

    def _victim(self) -> tuple[Claim, Program]:
        deadline = time.monotonic() + SEARCH_SECONDS
        while time.monotonic() < deadline:
            held = patiently(claims)
            self._chance.shuffle(held)
            for claim in held:
                worker = self._worker_of(claim.pid)
                if worker:
                    return claim, worker
            time.sleep(LOOK_SECONDS)
        raise NothingToKillError(f"no claim of a living process for {SEARCH_SECONDS:.0f} s")

    def _worker_of(self, pid: int) -> Program | None:
        """The worker whose slot this process is; None if it is gone."""
        try:
            line = {pid, *(parent.pid for parent in psutil.Process(pid).parents())}
        except psutil.NoSuchProcess:
            return None
        for program in self._stack.programs:
            if program.name.startswith("worker") and program.pid in line:
                return program
        return None

    def _program(self, name: str) -> Program:
        return next(program for program in self._stack.programs if program.name == name)
