"""Every recorded answer to a bad or borderline request: same code, same detail, same text."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

# importing them fills the registry
from tests.conformance.probes import (
    cases_activities,
    cases_by_id,
    cases_lists,
    cases_operations,
    cases_queries,
    cases_requests,
    cases_updates,
)
from tests.conformance.probes.cases import CASES
from tests.conformance.probes.cases_commands import COMMANDS, COMPLETED, answer_and_effect
from tests.support.probing import Answer, Probe, Refusal
from wfcore.service.host import Arrivals

HERE = Path(__file__).parent
ROWS: list[dict[str, Any]] = json.loads((HERE / "errors.json").read_text())
LEFT_OUT: list[dict[str, str]] = json.loads((HERE / "left_out.json").read_text())
REGISTERED = (
    cases_activities,
    cases_by_id,
    cases_lists,
    cases_operations,
    cases_queries,
    cases_requests,
    cases_updates,
)

#: What the server does a moment after the recording looked is done here at once.
DONE_AT_ONCE = {
    "timer: zero": ["TIMER_FIRED", "WORKFLOW_TASK_SCHEDULED"],
    "timer: no duration": ["TIMER_FIRED", "WORKFLOW_TASK_SCHEDULED"],
}


def _key(row: dict[str, Any]) -> tuple[str, str]:
    return row["request"], row["condition"]


def _is_commands(row: dict[str, Any]) -> bool:
    return row["request"] == COMPLETED and row["condition"] in COMMANDS


def _is_left_out(row: dict[str, Any]) -> list[str]:
    """The reasons for which a row waits."""
    return [
        entry["reason"]
        for entry in LEFT_OUT
        if all(row[name] == entry[name] for name in entry if name != "reason")
    ]


TESTED = [row for row in ROWS if _key(row) in CASES or _is_commands(row)]


def _seen(answer: Answer) -> dict[str, Any]:
    if not isinstance(answer, Refusal):
        return {"code": "OK", "detail": None, "message": None}
    seen = {key: answer[key] for key in ("code", "detail", "message")}
    if answer["detail_fields"]:
        seen["detail_fields"] = answer["detail_fields"]
    return seen


@pytest.mark.parametrize("arrivals", list(Arrivals))
@pytest.mark.parametrize("row", TESTED, ids=lambda row: ": ".join(_key(row)))
def test_a_request_is_answered_as_by_the_server(row: dict[str, Any], arrivals: Arrivals) -> None:
    probe = Probe(row["server"], arrivals)
    expected = {key: row[key] for key in ("code", "detail", "message")}
    if "detail_fields" in row:
        expected["detail_fields"] = row["detail_fields"]
    if _is_commands(row):
        answer, effect = answer_and_effect(probe, row["condition"])
        sooner = DONE_AT_ONCE.get(row["condition"], [])
        expected_effect = copy.deepcopy(row["effect"])
        expected_effect["events_after_the_start"] += sooner
        assert effect == expected_effect
    else:
        answer = CASES[_key(row)](probe)
    seen = _seen(answer)
    if expected["code"] == "NO_ANSWER":
        # the recording's caller gave up; here the deadline is part of the call
        del expected["message"], seen["message"]
    assert seen == expected


def test_every_row_is_tested_or_left_out_for_a_reason() -> None:
    keys = {_key(row) for row in TESTED}
    unknown = [row for row in ROWS if _key(row) not in keys and not _is_left_out(row)]
    assert [_key(row) for row in unknown] == []
    both = [row for row in TESTED if _is_left_out(row)]
    assert [_key(row) for row in both] == []


def test_every_reason_and_every_case_has_its_row() -> None:
    for entry in LEFT_OUT:
        assert entry["reason"]
        names = [name for name in entry if name != "reason"]
        assert any(all(row[n] == entry[n] for n in names) for row in ROWS), entry
    known = {_key(row) for row in ROWS}
    made = set(CASES) | {(COMPLETED, condition) for condition in COMMANDS}
    assert made <= known
