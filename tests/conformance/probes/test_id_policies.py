"""Reuse policy x conflict policy x state of the last run x request id: the recorded matrix."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.probing import Probe, Refusal
from tests.support.requests_json import values
from wfcore.service.host import Arrivals

ROWS = json.loads(Path(__file__).with_name("id_policies.json").read_text())
#: update-with-start needs updates, which this service doesn't have yet
TESTED = [row for row in ROWS if row["operation"] in ("start", "signal_with_start")]


def _name(row: dict[str, Any]) -> str:
    same = "-same-request" if row["request_id"] != "new" else ""
    parts = ("operation", "existing", "reuse_policy", "conflict_policy")
    return "-".join(row[part] for part in parts) + same


def _existing(probe: Probe, state: str, **fields: Any) -> tuple[str, str]:
    """The run that the start meets; its run id is that of the current run."""
    workflow_id = probe.workflow_id()
    if state == "NONE":
        return workflow_id, ""
    if state == "RUNNING":
        _, run_id = probe.run(workflow_id, **fields)
        probe.step()
        return workflow_id, run_id
    _, run_id = probe.closed(state, workflow_id, **fields)
    if state == "CONTINUED_AS_NEW":
        run_id = probe.describe(workflow_id).workflow_execution_info.execution.run_id
    return workflow_id, run_id


def _policies(row: dict[str, Any]) -> dict[str, str]:
    fields = {}
    if row["reuse_policy"] != "UNSPECIFIED":
        fields["workflowIdReusePolicy"] = "WORKFLOW_ID_REUSE_POLICY_" + row["reuse_policy"]
    if row["conflict_policy"] != "UNSPECIFIED":
        fields["workflowIdConflictPolicy"] = "WORKFLOW_ID_CONFLICT_POLICY_" + row["conflict_policy"]
    return fields


@pytest.mark.parametrize("arrivals", list(Arrivals))
@pytest.mark.parametrize("row", TESTED, ids=_name)
def test_a_start_meets_a_workflow_id_in_use(row: dict[str, Any], arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    same = {"requestId": "the-same"} if row["request_id"] != "new" else {}
    workflow_id, run_id = _existing(probe, row["existing"], **same)
    before = len(probe.events(workflow_id, run_id)) if run_id else 0
    request = {
        "workflowId": workflow_id,
        "workflowType": {"name": "wf"},
        "taskQueue": {"name": probe.queue},
        "requestId": "another-one",
        **same,
        **_policies(row),
    }
    if row["operation"] == "signal_with_start":
        request |= {"signalName": "s", "signalInput": values(1)}
    answer = probe.call(f"{row['operation']}_workflow_execution", request)

    seen: dict[str, Any] = {}
    if isinstance(answer, Refusal):
        seen = {key: answer[key] for key in ("code", "detail", "message")}
        if answer["detail_fields"]:
            # request ids are UUIDs in the recording
            seen["detail_fields"] = dict.fromkeys(answer["detail_fields"], "<uuid>")
    else:
        seen = {"code": "OK", "detail": None, "message": None, "started": answer.started}
        seen["run"] = "existing" if answer.run_id == run_id else "new"
        if row["operation"] == "start":
            first = answer.first_execution_run_id
            seen["response_status"] = answer.status.name
            seen["first_execution_run_id"] = "run_id" if first == answer.run_id else "other"
    if run_id:
        seen["existing_after"] = probe.status(workflow_id, run_id).name
        seen["events_added_to_existing"] = probe.types(workflow_id, run_id)[before:]
    if answer_exists := bool(probe.store.head("default", workflow_id)):
        seen["current_run_events"] = probe.types(workflow_id)
    assert answer_exists or row["current_run_events"] == "NOT_FOUND"
    seen.setdefault("current_run_events", "NOT_FOUND")

    given = ("operation", "request_id", "reuse_policy", "conflict_policy", "existing")
    assert seen == {key: item for key, item in row.items() if key not in given}


def test_every_row_of_these_calls_is_tested() -> None:
    left_out = {row["operation"] for row in ROWS} - {row["operation"] for row in TESTED}
    assert left_out == {"update_with_start"}
    assert len(TESTED) == 440
