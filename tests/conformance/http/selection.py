"""Which recorded steps our API is held against, and why others of the same groups are not.

`exchanges.json` is as it was recorded. A step stands in `LEFT_OUT` only if it needs what the engine
doesn't have yet, or shows a habit of the recorded server that its own description calls a mistake.
"""

from typing import Any

GROUPS = (
    "system",
    "start",
    "start-errors",
    "json",
    "content-types",
    "payloads",
    "describe",
    "history",
    "query",
    "signal",
    "signal-with-start",
    "cancel",
    "terminate",
    "reset",
    "update",
    "activity",
    "activity-options",
    "namespaces",
)

_CAPABILITIES = "tells of schedules and Nexus, which are not there: what is claimed is"
_EMPTY_LIST = "the recorded server writes an empty list as null, a mistake that loses data"

LEFT_OUT: dict[str, str] = {
    "system/system-info": _CAPABILITIES,
    "system/system-info-short-path": _CAPABILITIES,
    "namespaces/describe": _CAPABILITIES,
    "namespaces/describe-short-path": _CAPABILITIES,
    "query/empty": _EMPTY_LIST,
    "query/empty-body": _EMPTY_LIST,
}


#: What must be seen before a step is sent: the path of a describe, and the attempt of its activity.
#: Here the attempt that unpausing begins must be over. A reset that met it would refuse its answer,
#: as on the recorded server, where the attempt was quicker than the next request.
BEFORE = {
    "activity-options/reset": ("/api/v1/namespaces/{{ns}}/workflows/{{tag}}-opt", 3),
}


def steps(document: dict[str, Any], group: str) -> list[dict[str, Any]]:
    """The steps of a group that are run, in their order."""
    return [
        step
        for step in document["steps"]
        if step["group"] == group and step["name"] not in LEFT_OUT
    ]
