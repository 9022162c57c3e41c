"""User data as values: what can't be read as JSON is shown as it is."""

import pytest

from wfapp.admin.forms import SignalForm
from wfapp.presentation.values import value_of
from wfcore.protocol.payloads import Payload

DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("data", "value"), [(b'{"a": 1}', {"a": 1}), (b"no JSON", "no JSON"), (DEEP.encode(), DEEP)]
)
def test_a_payload_as_a_value(data: bytes, value: object) -> None:
    assert value_of(Payload(metadata={"encoding": b"json/plain"}, data=data)) == value


def test_arguments_that_are_nested_beyond_reason_are_an_error_of_the_form() -> None:
    form = SignalForm({"name": "go", "reason": "why", "arguments": DEEP})
    assert "no JSON" in str(form.errors["arguments"])
