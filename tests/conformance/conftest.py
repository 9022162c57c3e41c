"""The recorded scenarios are run once for each set of ports, whoever asks for their histories."""

import fcntl
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What became of all scenarios on one set of ports."""

    #: holds GROUP/NAME.json
    histories: Path
    verdicts: dict[str, Any]
    returncode: int
    output: str


@pytest.fixture(scope="session")
def run_scenarios(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Callable[[str], Ran]:
    """Runs them at the first call; the workers of pytest-xdist share what came of it."""
    shared = tmp_path_factory.getbasetemp()
    if hasattr(pytestconfig, "workerinput"):
        shared = shared.parent

    def run(ports: str) -> Ran:
        out = shared / "scenarios"
        out.mkdir(exist_ok=True)
        told = out / f"{ports}.json"
        with (out / f"{ports}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not told.exists():
                command = ["-m", "tests.conformance.run_scenarios", "--ports", ports, "--out", out]
                done = subprocess.run(
                    [sys.executable, *command],
                    cwd=ROOT,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                output = done.stdout[-4000:] + done.stderr[-4000:]
                told.write_text(json.dumps([done.returncode, output]))
        returncode, output = json.loads(told.read_text())
        verdicts = out / ports / "verdicts.json"
        return Ran(
            histories=out / ports,
            verdicts=json.loads(verdicts.read_text()) if verdicts.exists() else {},
            returncode=returncode,
            output=output,
        )

    return run
