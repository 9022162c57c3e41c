"""Each planted fault is found by the simulator within its number of runs, and the table is true."""

import re
from pathlib import Path

import pytest

from tests.mutations.planted import PLANTED, Planted
from wfcore.testing.simulation.fibers import Turns
from wfcore.testing.simulator import Plan, Simulated, simulate

TABLE = Path(__file__).with_name("README.md")


def first_found(runs: int) -> Simulated | None:
    """The first run that breaks a rule."""
    with Turns() as turns:
        for seed in range(1, runs + 1):
            found = simulate(Plan(seed=seed), turns)
            if found.violations:
                return found
    return None


@pytest.mark.timeout(600)
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_fault_is_found(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.plant(monkeypatch)
    found = first_found(planted.runs)
    assert found is not None, f"no rule was broken in {planted.runs} runs: {planted.what}"


def test_the_table_lists_all_of_them() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+?) \|", TABLE.read_text(), flags=re.MULTILINE)
    assert rows == [(planted.name, planted.what) for planted in PLANTED]
