"""Command line of the fault test; exit status 0 when every run ended right."""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import django

from tests.e2e.faults.plan import make_plan
from tests.e2e.faults.table import table
from tools.services import Services, Source
from tools.stack import Stack

SETTINGS = "tests.e2e.faults.settings"


def parse(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.e2e.faults", description="Orders end right whatever is killed."
    )
    parser.add_argument("--orders", type=int, default=500)
    parser.add_argument("--kills", type=int, default=30, help="processes with a claim to kill")
    parser.add_argument("--seed", type=int, help="repeat the plan of an earlier run")
    parser.add_argument("--runs", type=int, default=1, help="one after the other, then a table")
    parser.add_argument("--json", type=Path, help="write the figures of all runs here")
    return parser.parse_args(given)


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def play(arguments: argparse.Namespace) -> dict[str, Any]:
    """One run in this process, whose Django is set up for the run's database."""
    seed = random.randrange(10**6) if arguments.seed is None else arguments.seed
    plan = make_plan(orders=arguments.orders, kills=arguments.kills, seed=seed)
    directory = Path(tempfile.mkdtemp(prefix="wf-faults-"))
    tell(f"{arguments.orders} orders, {plan.kills} kills, seed {seed}; logs in {directory}")
    with Services.begin(sources=[Source.INSTALLED, Source.WHEELS]) as services:
        environment = {**services.environment(), "DJANGO_SETTINGS_MODULE": SETTINGS}
        os.environ.update(environment)
        django.setup()
        from tests.e2e.faults.scene import Scene

        with Stack(directory, environment) as stack:
            stack.manage("migrate", "--verbosity=0")
            outcome = Scene(plan, services=services, stack=stack, tell=tell).play()
    if not outcome.findings:
        shutil.rmtree(directory)
    return outcome.as_json()


def play_apart(arguments: argparse.Namespace) -> dict[str, Any]:
    """One run in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        figures = Path(scratch) / "figures.json"
        given = (f"--orders={arguments.orders}", f"--kills={arguments.kills}", f"--json={figures}")
        command = [sys.executable, "-m", "tests.e2e.faults", *given]
        subprocess.run(command, check=False)
        outcome: dict[str, Any] = json.loads(figures.read_text())
        return outcome


def main(given: Sequence[str] | None = None) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    arguments = parse(given)
    if arguments.runs == 1:
        outcomes = [play(arguments)]
    else:
        outcomes = [play_apart(arguments) for _ in range(arguments.runs)]
    if arguments.json:
        figures = outcomes[0] if arguments.runs == 1 else outcomes
        arguments.json.write_text(json.dumps(figures, indent=1, default=str) + "\n")
    tell(table(outcomes))
    findings = [finding for outcome in outcomes for finding in outcome["findings"]]
    for finding in findings:
        tell(f"WRONG  {finding}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
