"""The demo without servers runs through, tells the right numbers and leaves its files."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLIGHTS, CANCELLED = 336_776, 8_255


@pytest.mark.timeout(240)
def test_the_embedded_demo_runs_through(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.demo", "--stack=embedded", f"--output={tmp_path}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    lines = done.stdout.splitlines()
    for number, status in {"1001": "shipped", "1003": "refused", "1004": "expired"}.items():
        assert any(line.startswith(f"order {number}  {status}") for line in lines)
    assert f"{FLIGHTS:,} flights, {CANCELLED:,} of them cancelled" in lines
    with (tmp_path / "delays.csv").open() as file:
        cells = list(csv.DictReader(file))
    assert sum(int(cell["flights"]) for cell in cells) == FLIGHTS
    assert sum(int(cell["cancelled"]) for cell in cells) == CANCELLED
    assert (tmp_path / "delays.svg").read_text().startswith("<svg ")
