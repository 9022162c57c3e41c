"""The OpenAPI description is the one that was agreed on.

After a change that is meant, write it anew:
    manage.py spectacular --validate --fail-on-warn --file tests/unit/api/openapi.yaml
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from wfapp.api.urls import _LONG
from wfcore.protocol.enums import WorkflowIdReusePolicy

GOLDEN = Path(__file__).parent / "openapi.yaml"


@pytest.fixture(scope="module")
def schema() -> Any:
    return SchemaGenerator().get_schema(request=None, public=True)


def test_it_is_as_agreed_on(schema: Any) -> None:
    assert schema == yaml.safe_load(GOLDEN.read_text())


def test_it_is_valid(schema: Any) -> None:
    validate_schema(schema)


def test_it_describes_each_operation_once(schema: Any) -> None:
    described = [
        (method.upper(), operation["operationId"])
        for methods in schema["paths"].values()
        for method, operation in methods.items()
    ]
    ours = {
        (method, operation.name)
        for view in _LONG.values()
        for method, operation in view.operations.items()
    }
    assert len(described) == len(set(described))
    assert ours <= set(described)


def test_types_are_those_of_the_protocol(schema: Any) -> None:
    parts = schema["components"]["schemas"]
    start = parts["StartWorkflowExecutionRequest"]["properties"]
    assert start["workflowRunTimeout"]["pattern"] == r"^-?\d+(\.\d{1,9})?s$"
    assert parts["WorkflowIdReusePolicy"]["enum"] == [m.wire_name for m in WorkflowIdReusePolicy]
    assert parts["RetryPolicy"]["properties"]["maximumAttempts"] == {
        "type": "integer",
        "format": "int32",
    }
    assert parts["HistoryEvent"]["properties"]["eventId"] == {"type": "string", "format": "int64"}
    assert "timerFiredEventAttributes" in parts["HistoryEvent"]["properties"]


def test_the_project_shows_it_to_who_is_logged_in() -> None:
    assert settings.SPECTACULAR_SETTINGS["SERVE_PERMISSIONS"] == [
        "rest_framework.permissions.IsAuthenticated"
    ]
