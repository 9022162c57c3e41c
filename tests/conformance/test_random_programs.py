"""Random workflow programs on both sets of ports: a model, a real server and its SDK judge."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "conformance" / "random_programs"


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("ports", "seeds"), [("memory", "1-60"), ("celery", "1-20")])
def test_programs_end_and_their_histories_read_as_on_the_real_server(
    ports: str, seeds: str, tmp_path: Path
) -> None:
    command = ["-m", "tests.conformance.run_random", "--ports", ports, "--seeds", seeds]
    run = subprocess.run(
        [sys.executable, *command, "--out", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    told = tmp_path / "random" / f"{ports}-{seeds}-12" / "verdict.json"
    assert told.exists(), run.stdout[-4000:] + run.stderr[-4000:]
    verdict = json.loads(told.read_text())
    assert verdict["wrong"] == {}
    assert verdict["differ"] == {}
    assert verdict["refused"] == []
    assert run.returncode == 0
    assert verdict["programs"] + len(verdict["undetermined"]) == int(seeds.split("-")[1])
    assert verdict["histories"] > verdict["programs"]


def test_the_comparison_notices_tampering(tmp_path: Path) -> None:
    with tarfile.open(PROGRAMS / "recorded" / "0001-0060-12.tar.xz") as members:
        chosen = [member for member in members if member.name.startswith("000")]
        members.extractall(tmp_path, members=chosen, filter="data")
    run = subprocess.run(
        [sys.executable, "mutate.py", tmp_path, "--each", "1"],
        cwd=PROGRAMS,
        capture_output=True,
        text=True,
        check=False,
    )
    sequential, side_by_side = run.stdout.splitlines()[-2:]
    assert "(100.0 %)" in sequential, run.stdout + run.stderr
    # Where branches run side by side, fewer workflow tasks than the server's are right too.
    noticed, tried = (int(word) for word in side_by_side.split() if word.isdigit())
    assert tried > 50
    assert noticed > 0.9 * tried
