"""docs/reference/api.md names every path with what it needs, and every code with its status."""

import re
from pathlib import Path

from wfapp.api.problems import HTTP_STATUSES
from wfapp.api.urls import _LONG
from wfcore.exceptions import RPCStatusCode

REFERENCE = (Path(__file__).parents[3] / "docs" / "reference" / "api.md").read_text()
RUN = "/namespaces/{namespace}/workflows/{workflowId}"
NEEDS = {
    "view": "wfapp.view_workflowexecution",
    "view_payloads": "wfapp.view_payloads",
    "operate": "wfapp.operate",
}


def test_every_path_is_named_with_what_it_needs() -> None:
    documented = {
        (method, path.replace("RUN", RUN), name, tuple(NEEDS[need] for need in needs.split(", ")))
        for method, path, name, needs in re.findall(
            r"^\| (GET|POST) `([^`]+)` \| (\w+) \| ([\w, ]+) \|$", REFERENCE, re.MULTILINE
        )
    }
    ours = {
        (
            method,
            "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", route),
            operation.name,
            operation.permissions,
        )
        for route, view in _LONG.items()
        for method, operation in view.operations.items()
    }
    assert documented == ours


def test_every_permission_is_explained() -> None:
    assert set(re.findall(r"^\| `(wfapp\.\w+)` \|", REFERENCE, re.MULTILINE)) == set(NEEDS.values())


def test_every_code_is_named_with_its_status() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+) \| (\d+) \|$", REFERENCE, re.MULTILINE)
    documented = {RPCStatusCode(int(code)): (name, int(status)) for code, name, status in rows}
    assert documented == {
        code: (code.name, status)
        for code, status in HTTP_STATUSES.items()
        if code is not RPCStatusCode.OK
    }
