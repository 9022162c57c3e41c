"""docs/reference/client.md names every method of the client, and each has its twin."""

import re
from pathlib import Path

import pytest

from wfapp.client import (
    AsyncActivityHandle,
    WorkflowClient,
    WorkflowHandle,
    WorkflowUpdateHandle,
)

REFERENCE = (Path(__file__).parents[3] / "docs" / "reference" / "client.md").read_text()
#: They neither wait nor write.
WITHOUT_TWIN = {
    "get_workflow_handle",
    "get_workflow_handle_for",
    "get_async_activity_handle",
    "get_update_handle",
    "get_update_handle_for",
}


def methods(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("client", WorkflowClient),
        ("handle of a workflow", WorkflowHandle),
        ("handle of an activity", AsyncActivityHandle),
    ],
)
def test_every_method_is_explained(title: str, kind: type) -> None:
    _, _, rest = REFERENCE.partition(f"| {title} | does |")
    table = rest.partition("\n\n")[0]
    first_cells = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    named = {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}
    ours = methods(kind)
    assert named == {name for name in ours if f"a{name}" in ours or name in WITHOUT_TWIN}


@pytest.mark.parametrize(
    "kind", [WorkflowClient, WorkflowHandle, WorkflowUpdateHandle, AsyncActivityHandle]
)
def test_every_method_that_waits_or_writes_has_a_twin(kind: type) -> None:
    ours = methods(kind)
    twins = {name for name in ours if name.startswith("a") and name[1:] in ours}
    assert {name for name in ours - twins if f"a{name}" not in ours} <= WITHOUT_TWIN
