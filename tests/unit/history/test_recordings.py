"""The state machine writes what a real server wrote: recorded histories, made again by requests."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.reenactment import obstacle, reenact
from wfcore.history.limits import DEFAULT_LIMITS, Limits
from wfcore.history.rebuild import rebuild
from wfcore.protocol import json_form
from wfcore.protocol.enums import EventType
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.events import CLOSING

RECORDED = Path(__file__).parents[2] / "conformance" / "recorded"
#: Of the second server on which the group `limits` was recorded.
LOW_LIMITS = Limits(
    history_events=40,
    history_events_suggest=12,
    pending_activities=2,
    blob_bytes=4000,
    memo_bytes=3000,
    buffered_events=4,
    signals=5,
)
_STARTED = "workflowExecutionStartedEventAttributes"
#: What stands in the way of a history, with the number of histories.
OBSTACLES: dict[str, int] = {}


def _load_compare() -> ModuleType:
    spec = importlib.util.spec_from_file_location("recorded_compare", RECORDED / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.sticky_as_normal = True  # type: ignore[attr-defined]
    return module


compare = _load_compare()


def _read(file: str) -> dict[str, Any]:
    history: dict[str, Any] = json.loads((RECORDED / file).read_text())
    return history


def _run_before(file: str) -> str:
    """The file of the run that a run of a chain follows; empty for a first run."""
    found = re.fullmatch(r"(.+?)([-.])run(\d+)\.json", file)
    if found is None:
        return ""
    stem, mark, number = found[1], found[2], int(found[3])
    return f"{stem}.json" if number == 2 else f"{stem}{mark}run{number - 1}.json"


def _cases() -> list[dict[str, Any]]:
    found = []
    for case in compare.manifest():
        file = case["file"]
        chain = [file]
        while before := _run_before(chain[-1]):
            chain.append(before)
        what = next(filter(None, map(obstacle, map(_read, chain))), "")
        if _read(chain[-1])["events"][0][_STARTED].get("continuedExecutionRunId"):
            what = "the run before it was not recorded"
        if what:
            OBSTACLES[what] = OBSTACLES.get(what, 0) + 1
        else:
            found.append(case | {"chain": chain[::-1]})
    return found


CASES = _cases()


@pytest.mark.parametrize("case", [pytest.param(case, id=case["file"]) for case in CASES])
def test_a_recorded_history_comes_out_again(case: dict[str, Any]) -> None:
    limits = LOW_LIMITS if case["file"].startswith("limits/") else DEFAULT_LIMITS
    run = reenact([_read(file) for file in case["chain"]], limits)
    written = json_form.history_to_json(run.events + run.tail())
    assert compare.compare(_read(case["file"]), written, case) == []


def test_every_recorded_history_can_be_rebuilt() -> None:
    for case in compare.manifest():
        events = json_form.history_from_json(_read(case["file"]))
        recorded = rebuild(events, namespace="default", workflow_id="w", run_id="r")
        assert recorded.next_event_id == len(events) + 1, case["file"]
        is_open = recorded.status in (Status.RUNNING, Status.PAUSED)
        assert is_open is (events[-1].event_type not in CLOSING), case["file"]
        closes = {
            EventType.WORKFLOW_EXECUTION_PAUSED: Status.PAUSED,
            EventType.WORKFLOW_EXECUTION_UNPAUSED: Status.RUNNING,
        }
        expected = closes.get(events[-1].event_type)
        assert expected is None or recorded.status is expected, case["file"]


def test_most_recordings_are_made_again() -> None:
    assert len(CASES) > 400
    assert "" not in OBSTACLES
