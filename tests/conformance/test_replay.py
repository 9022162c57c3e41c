"""Recorded histories replay as their manifests say, and lived again give the commands recorded."""

import warnings
from collections.abc import Iterator

import pytest

from tests.support.reliving import relive
from tests.support.replaying import Case, cases
from wfcore.exceptions import HistoryMismatchError

#: What no history is replayed for, with the reason.
LEFT_OUT = {
    "recorded/repair/nexus-": "there is no Nexus",
    "recorded/children/child-unknown-type.child.json": "of a type that no module has",
}
#: What lives again otherwise than it was recorded, with the reason.
LIVES_OTHERWISE = {
    "golden/activity-options.json": "made by hand: a server would not say useWorkflowBuildId here",
    "golden/patched-old-history.json": "recorded before the patch that its code has",
    "recorded/golden/golden-deterministic.json": "tells the time in nanoseconds; ours has micro",
}

ALL = [case for folder in ("golden", "histories", "recorded") for case in cases(folder)]
REPLAYED = [case for case in ALL if not case.name.startswith(tuple(LEFT_OUT))]
LIVED = [
    case
    for case in REPLAYED
    # Code for the foreign histories is a stand-in: its arguments and results are others.
    if case.folder != "histories" and case.expect == "pass" and case.name not in LIVES_OTHERWISE
]


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    """Some scenarios end with handlers running, on purpose; some handlers have old forms."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("case", REPLAYED, ids=lambda case: case.name)
def test_a_recorded_history_is_judged_as_its_manifest_says(case: Case) -> None:
    error = case.replay()
    if case.expect == "pass":
        assert error is None, error
    else:
        assert isinstance(error, HistoryMismatchError)
        assert error.event_id > 0
        assert error.event_type
        assert f"event {error.event_id} ({error.event_type}" in str(error)
        assert error.command in str(error)
        assert "workflows.py:" in error.location


@pytest.mark.parametrize("case", LIVED, ids=lambda case: case.name)
def test_a_recorded_history_lived_again_asks_for_the_same(case: Case) -> None:
    assert relive(case) == []


def test_what_is_left_out_is_still_there() -> None:
    names = [case.name for case in ALL]
    assert [prefix for prefix in LEFT_OUT if not any(n.startswith(prefix) for n in names)] == []
    assert set(LIVES_OTHERWISE) <= set(names)
