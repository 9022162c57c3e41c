"""The recorded scenarios, on both sets of ports: our histories say what the server's say."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance import scope
from tests.conformance.conftest import Ran

RECORDED = Path(__file__).resolve().parent / "recorded"


def in_scope() -> set[str]:
    """Scenarios of the manifest that must be equal."""
    cases = json.loads((RECORDED / "manifest.json").read_text())["cases"]
    return {
        case["scenario"]
        for case in cases
        if case["file"].split("/")[0] in scope.GROUPS and case["scenario"] not in scope.LATER_REASON
    }


@pytest.mark.timeout(600)
@pytest.mark.parametrize("ports", ["memory", "postgres"])
def test_histories_are_the_servers(ports: str, run_scenarios: Callable[[str], Ran]) -> None:
    ran = run_scenarios(ports)
    differ = {
        name: found["findings"]
        for name, found in ran.verdicts.items()
        if found["findings"] and not scope.is_race(name, found["findings"])
    }
    known = scope.different(ports)
    assert not {name: found for name, found in differ.items() if name not in known}
    assert set(differ) == set(known)
    assert ran.returncode == 0, ran.output
    assert set(ran.verdicts) == in_scope()


def test_few_scenarios_differ_and_each_has_a_reason() -> None:
    for ports in ("memory", "postgres"):
        known = scope.different(ports)
        assert len(known) <= 5
        assert all(known.values())
        assert not set(known) & {*scope.LATER_REASON, *scope.RACES}
    assert len(scope.RACES) <= 2


@pytest.mark.timeout(300)
def test_the_comparer_notices_every_tampering() -> None:
    run = subprocess.run(
        [sys.executable, "compare.py", "--self-test"],
        cwd=RECORDED,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-2000:]
