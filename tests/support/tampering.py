"""Histories with one thing changed that the workflow's code decided: a replay must refuse them."""

import base64
import copy
from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]

#: a value that no workflow of the tests gives
_OTHER = {
    "metadata": {"encoding": base64.b64encode(b"json/plain").decode()},
    "data": base64.b64encode(b'"TAMPERED"').decode(),
}
_OTHERS = {"payloads": [_OTHER]}
_NOBODY = "nobody"


@dataclass(frozen=True)
class Tampering:
    """One field of the events of one type, and what is put there instead."""

    event_type: str
    path: tuple[str, ...]
    value: Any
    #: events that have this field are left alone
    unless: str = ""

    @property
    def name(self) -> str:
        return f"{self.event_type}.{'.'.join(self.path)}"

    def apply(self, history: JsonObject) -> JsonObject | None:
        """A copy with the first such event changed; None when there is none that has the field."""
        changed = copy.deepcopy(history)
        for event in changed["events"]:
            if event["eventType"] == f"EVENT_TYPE_{self.event_type}":
                node = next(value for key, value in event.items() if key.endswith("Attributes"))
                if self.unless in node:
                    continue
                for key in self.path[:-1]:
                    node = node.get(key) or {}
                if self.path[-1] in node and node[self.path[-1]] != self.value:
                    node[self.path[-1]] = self.value
                    return changed
        return None


#: What `replay_check --mutate` changes is not repeated here.
TAMPERINGS = (
    Tampering("ACTIVITY_TASK_SCHEDULED", ("startToCloseTimeout",), "12345s"),
    Tampering("TIMER_STARTED", ("timerId",), "77"),
    Tampering("TIMER_CANCELED", ("timerId",), "77"),
    Tampering("TIMER_FIRED", ("timerId",), "77"),
    Tampering("START_CHILD_WORKFLOW_EXECUTION_INITIATED", ("workflowType", "name"), _NOBODY),
    Tampering("START_CHILD_WORKFLOW_EXECUTION_INITIATED", ("input",), _OTHERS),
    Tampering("START_CHILD_WORKFLOW_EXECUTION_INITIATED", ("cronSchedule",), "1 1 2 2 *"),
    Tampering(
        "START_CHILD_WORKFLOW_EXECUTION_INITIATED",
        ("parentClosePolicy",),
        "PARENT_CLOSE_POLICY_REQUEST_CANCEL",
    ),
    Tampering("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED", ("signalName",), _NOBODY),
    Tampering("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED", ("input",), _OTHERS),
    Tampering(
        "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED",
        ("workflowExecution", "workflowId"),
        _NOBODY,
    ),
    Tampering(
        "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED",
        ("workflowExecution", "workflowId"),
        _NOBODY,
        unless="childWorkflowOnly",  # there it is the child's, which the code doesn't repeat
    ),
    Tampering(
        "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES",
        ("searchAttributes",),
        {"indexedFields": {"Other": _OTHER}},
    ),
    Tampering("WORKFLOW_PROPERTIES_MODIFIED", ("upsertedMemo",), {"fields": {"other": _OTHER}}),
    Tampering("MARKER_RECORDED", ("markerName",), _NOBODY),
    Tampering("WORKFLOW_EXECUTION_UPDATE_ACCEPTED", ("acceptedRequest", "input", "name"), _NOBODY),
    Tampering("WORKFLOW_EXECUTION_UPDATE_COMPLETED", ("outcome",), {"success": _OTHERS}),
    Tampering("WORKFLOW_EXECUTION_CONTINUED_AS_NEW", ("input",), _OTHERS),
    Tampering("WORKFLOW_EXECUTION_FAILED", ("failure", "message"), "tampered"),
)
