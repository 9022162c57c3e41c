"""A hundred orders under ten kills; `python -m tests.e2e.faults` does more of it by hand."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ORDERS, KILLS = 100, 10


@pytest.mark.timeout(420)
def test_orders_end_right_whatever_is_killed(stack: str) -> None:
    if stack == "embedded":
        pytest.skip("one process has no other that could be killed")
    # In a process of its own, with servers of its own: it crashes them.
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.faults", f"--orders={ORDERS}", f"--kills={KILLS}"],
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, "the findings stand above, behind WRONG"
