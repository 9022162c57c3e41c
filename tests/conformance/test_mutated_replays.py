"""Histories of ours replay under Temporal's own SDK, and tampered ones do not.

The workflows' twins are the very files: `recorded/sdk.py` puts Temporal's SDK or ours in place,
and `golden/workflows.py` has the names of its imports replaced.
"""

import functools
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import Ran
from tests.support import replay_check
from tests.support.tampering import TAMPERINGS, JsonObject

CONFORMANCE = Path(__file__).resolve().parent
RECORDED = CONFORMANCE / "recorded"

#: feature -> histories that show it (without .json), and the events that it must have left there
FEATURES: dict[str, dict[str, tuple[str, ...]]] = {
    "updates": {
        "messages/update-three": ("WORKFLOW_EXECUTION_UPDATE_COMPLETED",),
        "messages/update-fails": ("WORKFLOW_EXECUTION_UPDATE_COMPLETED",),
        "messages/update-by-activity": ("WORKFLOW_EXECUTION_UPDATE_ACCEPTED",),
        "messages/update-rejected-then-accepted": ("WORKFLOW_EXECUTION_UPDATE_ACCEPTED",),
        "messages/update-ends-run": ("WORKFLOW_EXECUTION_UPDATE_ACCEPTED",),
    },
    "update-with-start": {
        "messages/update-with-start": ("WORKFLOW_EXECUTION_UPDATE_COMPLETED",),
        "messages/update-with-start-running": ("WORKFLOW_EXECUTION_UPDATE_COMPLETED",),
        "messages/update-with-start-uncached": ("WORKFLOW_EXECUTION_UPDATE_COMPLETED",),
    },
    "parent close policies": {
        "children/parent-closes-terminate": ("START_CHILD_WORKFLOW_EXECUTION_INITIATED",),
        "children/parent-closes-abandon": ("START_CHILD_WORKFLOW_EXECUTION_INITIATED",),
        "children/parent-closes-request-cancel": ("START_CHILD_WORKFLOW_EXECUTION_INITIATED",),
        "children/parent-closes-request-cancel.child": ("WORKFLOW_EXECUTION_CANCEL_REQUESTED",),
    },
    "cancellation types of children": {
        f"children/child-cancel-{kind}": ("START_CHILD_WORKFLOW_EXECUTION_INITIATED", *events)
        for kind, events in {
            "abandon": (),
            "try": ("REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED",),
            "requested": ("EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED",),
            "wait": ("CHILD_WORKFLOW_EXECUTION_CANCELED",),
        }.items()
    },
    "ends of children": {
        "children/child-ok": ("CHILD_WORKFLOW_EXECUTION_COMPLETED",),
        "children/child-fails": ("CHILD_WORKFLOW_EXECUTION_FAILED",),
        "children/child-terminated": ("CHILD_WORKFLOW_EXECUTION_TERMINATED",),
        "children/child-times-out": ("CHILD_WORKFLOW_EXECUTION_TIMED_OUT",),
        "children/child-id-taken": ("START_CHILD_WORKFLOW_EXECUTION_FAILED",),
        "children/child-of-child.child": ("CHILD_WORKFLOW_EXECUTION_COMPLETED",),
        "children/child-continues-as-new": ("CHILD_WORKFLOW_EXECUTION_COMPLETED",),
    },
    "signals to others": {
        "children/external-signal": ("EXTERNAL_WORKFLOW_EXECUTION_SIGNALED",),
        "children/external-signal-missing": ("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED",),
        "children/child-signalled": ("EXTERNAL_WORKFLOW_EXECUTION_SIGNALED",),
    },
    "cancel requests to others": {
        "children/external-cancel": ("EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED",),
        "children/external-cancel-missing": ("REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED",),
    },
    "cron": {
        "chains/cron": ("WORKFLOW_EXECUTION_COMPLETED",),
        "chains/cron.run2": ("WORKFLOW_EXECUTION_COMPLETED",),
        "chains/cron-failing": ("WORKFLOW_EXECUTION_COMPLETED",),
        "children/child-cron": ("START_CHILD_WORKFLOW_EXECUTION_INITIATED",),
    },
    "workflow retry": {
        "chains/retry-three-runs": ("WORKFLOW_EXECUTION_FAILED",),
        "chains/retry-three-runs-run3": ("WORKFLOW_EXECUTION_COMPLETED",),
    },
    "continue-as-new": {
        "chains/continue-keeps": (
            "WORKFLOW_EXECUTION_CONTINUED_AS_NEW",
            "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES",
            "WORKFLOW_PROPERTIES_MODIFIED",
        ),
        "chains/continue-twice-run2": ("WORKFLOW_EXECUTION_CONTINUED_AS_NEW",),
        "chains/continue-other-type": ("WORKFLOW_EXECUTION_CONTINUED_AS_NEW",),
    },
    "local activities": {
        "local/local-ok": ("MARKER_RECORDED",),
        "local/local-retries": ("MARKER_RECORDED",),
        "local/local-long-backoff": ("MARKER_RECORDED", "TIMER_STARTED"),
        "local/local-then-remote": ("MARKER_RECORDED", "ACTIVITY_TASK_COMPLETED"),
    },
    "asynchronous completion": {
        "activities/outside-complete": ("ACTIVITY_TASK_COMPLETED",),
        "activities/outside-complete-token": ("ACTIVITY_TASK_COMPLETED",),
        "activities/outside-fail": ("ACTIVITY_TASK_FAILED",),
        "activities/outside-cancelled": ("ACTIVITY_TASK_COMPLETED",),
    },
    "patches": {
        "golden/golden-patched": ("MARKER_RECORDED", "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES"),
        "golden/golden-patch-deprecated": ("MARKER_RECORDED",),
        "metadata/upsert-after-patch": ("MARKER_RECORDED",),
    },
    "search attributes and memo": {
        "metadata/upsert-attributes": ("UPSERT_WORKFLOW_SEARCH_ATTRIBUTES",),
        "metadata/upsert-every-type": ("UPSERT_WORKFLOW_SEARCH_ATTRIBUTES",),
        "metadata/upsert-memo": ("WORKFLOW_PROPERTIES_MODIFIED",),
    },
    "timers": {
        "golden/golden-sleep-twice": ("TIMER_FIRED",),
        "golden/golden-timer-race": ("TIMER_CANCELED",),
        "golden/golden-wait-condition-times-out": ("TIMER_FIRED",),
    },
    "cancellation types of activities": {
        "activities/cancel-abandon": ("ACTIVITY_TASK_SCHEDULED",),
        "activities/cancel-try": ("ACTIVITY_TASK_CANCEL_REQUESTED",),
        "activities/cancel-wait": ("ACTIVITY_TASK_CANCELED",),
        "activities/cancel-in-backoff": ("ACTIVITY_TASK_CANCELED",),
    },
    "reset": {
        "repair/reset-signal.reset": ("WORKFLOW_TASK_FAILED", "WORKFLOW_EXECUTION_SIGNALED"),
        "repair/reset-update.reset": (
            "WORKFLOW_EXECUTION_UPDATE_ADMITTED",
            "WORKFLOW_EXECUTION_UPDATE_ACCEPTED",
        ),
        "repair/reset-twice.reset": ("WORKFLOW_TASK_FAILED",),
        "repair/reset-pending.reset": ("ACTIVITY_TASK_COMPLETED",),
    },
    "operations on activities": {
        "activities/operation-pause": ("ACTIVITY_TASK_COMPLETED",),
        "activities/operation-pause-running": ("ACTIVITY_TASK_COMPLETED",),
        "activities/operation-reset": ("ACTIVITY_TASK_COMPLETED",),
        "activities/operation-options": ("ACTIVITY_TASK_COMPLETED",),
    },
}


@functools.cache
def manifest() -> dict[str, JsonObject]:
    """The scenarios' histories, by name without .json."""
    cases = json.loads((RECORDED / "manifest.json").read_text())["cases"]
    return {case["file"].removesuffix(".json"): case for case in cases}


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden histories' workflows on Temporal's SDK."""
    twins = tmp_path_factory.mktemp("twins") / "golden_workflows.py"
    ours = (CONFORMANCE / "golden" / "workflows.py").read_text()
    twins.write_text(ours.replace("from wfcore", "from temporalio"))
    return twins


def case_of(name: str, history: Path, twins: Path, **more: Any) -> JsonObject:
    """A line of the judge's manifest: the history with the file of its workflow."""
    case = manifest()[name]
    module = twins if name.startswith("golden/") else RECORDED / case["module"]
    return case | {"file": str(history), "module": str(module)} | more


def judge(cases: Sequence[JsonObject], folder: Path, *options: str) -> list[JsonObject]:
    """What Temporal's Replayer and the comparison of all attributes say."""
    (folder / "manifest.json").write_text(json.dumps({"cases": cases}))
    answer = folder / "answer.json"
    done = subprocess.run(
        [
            *(sys.executable, replay_check.__file__),
            *("--manifest", str(folder / "manifest.json"), "--json", str(answer), *options),
        ],
        env=os.environ | {"SCENARIO_SDK": "sdk_temporal"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.exists(), done.stdout + done.stderr
    rows: list[JsonObject] = json.loads(answer.read_text())
    assert len(rows) == len(cases)
    return rows


def kinds(history: Path) -> Counter[str]:
    events = json.loads(history.read_text())["events"]
    return Counter(event["eventType"].removeprefix("EVENT_TYPE_") for event in events)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("ports", ["memory", "postgres"])
def test_every_history_replays_and_every_tampered_one_is_refused(
    ports: str, run_scenarios: Callable[[str], Ran], twins: Path, tmp_path: Path
) -> None:
    folder = run_scenarios(ports).histories
    files = {name: folder / f"{name}.json" for name in manifest()}
    there = {name: file for name, file in files.items() if file.exists()}
    shown = {name for histories in FEATURES.values() for name in histories}
    assert shown <= set(there)
    cases = [case_of(name, file, twins, complete=name in shown) for name, file in there.items()]
    rows = judge(cases, tmp_path, "--mutate")
    assert not [row for row in rows if not row["ok"]]
    assert len(rows) > 400
    assert sum(row.get("mutants", 0) for row in rows) > 500


@pytest.mark.timeout(900)
def test_each_feature_leaves_its_events_and_no_command_of_them_can_be_changed(
    run_scenarios: Callable[[str], Ran], twins: Path, tmp_path: Path
) -> None:
    folder = run_scenarios("postgres").histories
    cases: list[JsonObject] = []
    tampered: Counter[str] = Counter()
    for histories in FEATURES.values():
        for name, events in histories.items():
            file = folder / f"{name}.json"
            assert set(events) <= set(kinds(file)), name
            history = json.loads(file.read_text())
            for number, tampering in enumerate(TAMPERINGS):
                changed = tampering.apply(history)
                if changed is None:
                    continue
                tampered[tampering.name] += 1
                copy = tmp_path / f"{name.replace('/', '-')}-{number}.json"
                copy.write_text(json.dumps(changed))
                # The structure alone would give some away: that is not what is asked.
                cases.append(case_of(name, copy, twins, expect="fail", skip=["lint"]))
    rows = judge(cases, tmp_path)
    assert not [row["file"] for row in rows if not row["ok"]]
    assert set(tampered) == {tampering.name for tampering in TAMPERINGS}
