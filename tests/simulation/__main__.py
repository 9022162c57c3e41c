"""As many runs of the simulator as wanted.

    python -m tests.simulation --runs 20000 --seed 1
    python -m tests.simulation --runs 1 --seed 4711 --trace

Exit status: 0 all rules hold, 1 some run broke one.
"""

import argparse
import sys
import time
from collections.abc import Sequence

from tests.simulation.checks import well_formed
from wfcore.testing.simulation.fibers import Turns
from wfcore.testing.simulation.tally import Tally
from wfcore.testing.simulator import STEPS, Plan, Simulated, shrink, simulate

#: Runs between two lines that tell how far it is.
_TELL_EVERY = 1_000


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    tally = Tally()
    began = time.monotonic()
    with Turns() as turns:
        for seed in range(given.seed, given.seed + given.runs):
            plan = Plan(seed=seed, steps=given.steps)
            found = simulate(plan, turns, checks=[well_formed], is_traced=given.trace)
            tally.add(found.requests, found.faults, found.workflow_runs, found.events)
            _tell(*found.trace)
            if found.violations:
                _tell(*explain(found, turns))
                return 1
            if tally.runs % _TELL_EVERY == 0:
                _tell(f"{tally.runs} runs, {_speed(tally, began)}")
    _tell(*tally.lines(), _speed(tally, began))
    return 0


def explain(found: Simulated, turns: Turns) -> list[str]:
    """How to repeat a run that broke a rule, and what is left of it when all else is left out."""
    plan = found.plan
    smaller = shrink(found, turns, checks=[well_formed])
    kept = [step for step in range(plan.steps) if step not in smaller.plan.skipped]
    return [
        f"seed {plan.seed} breaks a rule: {found.violations[0]}",
        f"again: python -m tests.simulation --runs 1 --seed {plan.seed} --steps {plan.steps}",
        f"steps {kept}, without faults of the kinds {sorted(smaller.plan.left_out)}:",
        *smaller.trace,
        *map(str, smaller.violations),
    ]


def _tell(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def _speed(tally: Tally, began: float) -> str:
    seconds = time.monotonic() - began
    return f"{tally.runs / seconds:.1f} runs per second, {seconds:.0f} s"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--runs", type=int, default=1_000, help="how many runs")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first run")
    parser.add_argument("--steps", type=int, default=STEPS, help="calls of actors in a run")
    parser.add_argument("--trace", action="store_true", help="tell what happens")
    return parser


if __name__ == "__main__":
    sys.exit(main())
