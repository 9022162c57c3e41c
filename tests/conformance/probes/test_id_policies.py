"""Reuse policy x conflict policy x state of the last run x request id: the recorded matrix."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.probing import Answer, Probe, Refusal
from tests.support.requests_json import Json, accepted, values
from wfcore.service.host import Arrivals

ROWS = json.loads(Path(__file__).with_name("id_policies.json").read_text())


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


def _send(probe: Probe, operation: str, request: Json) -> Answer:
    """The call; a worker accepts the update that it brings."""
    if operation == "start":
        return probe.call("start_workflow_execution", request)
    if operation == "signal_with_start":
        signal = {"signalName": "s", "signalInput": values(1)}
        return probe.call("signal_with_start_workflow_execution", request | signal)
    update = {
        "namespace": "default",
        "workflowExecution": {"workflowId": request["workflowId"]},
        "waitPolicy": {"lifecycleStage": "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED"},
        "request": {"meta": {"updateId": "u1"}, "input": {"name": "u", "args": values(1)}},
    }
    probe.dispatcher.wait_update = lambda *_: probe.say(accepted)  # type: ignore[method-assign]
    operations = [
        {"startWorkflow": {"namespace": "default", **request}},
        {"updateWorkflow": update},
    ]
    return probe.call("execute_multi_operation", {"operations": operations})


def _plain(probe: Probe, told: Any, name: str = "") -> Any:
    """Fields of a detail without the ids in them; request ids are UUIDs in the recording."""
    if isinstance(told, dict):
        return {key: _plain(probe, item, key) for key, item in told.items()}
    if isinstance(told, list):
        return [_plain(probe, item) for item in told]
    if name in ("startRequestId", "runId", "firstExecutionRunId"):
        return "<uuid>" if told else told
    return probe.normal(told) if isinstance(told, str) else told


def _told(probe: Probe, operation: str, answer: Answer, run_id: str) -> dict[str, Any]:
    """What an answer says, as the recording keeps it."""
    if isinstance(answer, Refusal):
        told = {key: answer[key] for key in ("code", "detail", "message")}
        if answer["detail_fields"]:
            told["detail_fields"] = _plain(probe, answer["detail_fields"])
        return told
    told = {"code": "OK", "detail": None, "message": None}
    if operation == "update_with_start":
        told["update_stage"] = answer.responses[1].update_workflow.stage.name
        answer = answer.responses[0].start_workflow
    told["started"] = answer.started
    told["run"] = "existing" if answer.run_id == run_id else "new"
    if operation != "signal_with_start":
        told["response_status"] = answer.status.name
        first = answer.first_execution_run_id
        told["first_execution_run_id"] = {"": "", answer.run_id: "run_id"}.get(first, "other")
    return told


@pytest.mark.parametrize("arrivals", list(Arrivals))
@pytest.mark.parametrize("row", ROWS, ids=_name)
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
    answer = _send(probe, row["operation"], request)

    seen = _told(probe, row["operation"], answer, run_id)
    if run_id:
        seen["existing_after"] = probe.status(workflow_id, run_id).name
        seen["events_added_to_existing"] = probe.types(workflow_id, run_id)[before:]
    if answer_exists := bool(probe.store.head("default", workflow_id)):
        seen["current_run_events"] = probe.types(workflow_id)
    assert answer_exists or row["current_run_events"] == "NOT_FOUND"
    seen.setdefault("current_run_events", "NOT_FOUND")

    given = ("operation", "request_id", "reuse_policy", "conflict_policy", "existing")
    assert seen == {key: item for key, item in row.items() if key not in given}


def test_the_whole_matrix_is_there() -> None:
    count = Counter(row["operation"] for row in ROWS)
    assert count == {"start": 220, "signal_with_start": 220, "update_with_start": 220}
