"""Histories that came about with everything going wrong replay under Temporal's own SDK."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support import replay_check
from wfcore.protocol.events import HistoryEvent, WorkflowExecutionStarted
from wfcore.protocol.json_form import history_to_json
from wfcore.testing.simulation import errands
from wfcore.testing.simulation.fibers import Turns
from wfcore.testing.simulation.profile import profile_of
from wfcore.testing.simulation.world import ERRAND
from wfcore.testing.simulator import Plan, simulate

HISTORIES = 200
#: Fewer events are those of a run that did nothing.
_WORTH_IT = 12
#: Temporal's SDK has no way out of this state when an abandoned activity fails or times out later,
#: which its own server lets happen too.
_ABANDONED = "ActivityMachine in state Canceled says the transition is invalid"


def histories() -> Iterator[list[HistoryEvent]]:
    """Of real workflow code, from as many seeds as are needed."""
    found: list[list[HistoryEvent]] = []

    def collect(events: Sequence[HistoryEvent]) -> list[str]:
        first = events[0].attributes
        kind = first.workflow_type if isinstance(first, WorkflowExecutionStarted) else None
        if kind is not None and kind.name == ERRAND and len(events) >= _WORTH_IT:
            found.append(list(events))
        return []

    with Turns() as turns:
        for seed in range(100_000):
            if profile_of(seed).real_share:
                simulate(Plan(seed=seed), turns, checks=[collect])
                yield from found
                found.clear()


@pytest.mark.timeout(600)
def test_histories_replay_under_temporals_sdk(tmp_path: Path) -> None:
    code = tmp_path / "errands.py"
    ours = Path(errands.__file__).read_text()
    code.write_text(ours.replace("from wfcore", "from temporalio"))
    files = [tmp_path / f"history-{number}.json" for number in range(HISTORIES)]
    for file, events in zip(files, histories(), strict=False):
        file.write_text(json.dumps(history_to_json(events)))
    judge = [sys.executable, replay_check.__file__, str(code), *map(str, files), "--quiet"]
    judged = subprocess.run(judge, capture_output=True, text=True, check=False)
    refused = judged.stdout.count("FAIL ")
    assert refused == judged.stdout.count(_ABANDONED), judged.stdout + judged.stderr
    good = HISTORIES - refused
    assert f"{good} of {HISTORIES} histories as expected" in judged.stdout
    assert good > HISTORIES * 0.95
