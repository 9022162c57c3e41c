"""User data in short JSON is read back as the very payload that it was."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfapp.presentation.payload_json import (
    read_payload,
    read_payloads,
    write_payload,
    write_payloads,
)
from wfcore.protocol.payloads import Payload, Payloads


def b64(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def payload(encoding: str, data: str | bytes = b"", **metadata: str) -> Payload:
    named = {"encoding": encoding.encode(), **{k: v.encode() for k, v in metadata.items()}}
    return Payload(metadata=named, data=data.encode() if isinstance(data, str) else data)


NULL = {"metadata": {"encoding": b64("binary/null")}}

# value in JSON, payload that it stands for
VALUES: list[tuple[Any, Payload]] = [
    ("text", payload("json/plain", '"text"')),
    (12345678901, payload("json/plain", "12345678901")),
    (1.25, payload("json/plain", "1.25")),
    (False, payload("json/plain", "false")),
    ([1, "two", None], payload("json/plain", '[1,"two",null]')),
    ([], payload("json/plain", "[]")),
    ({"b": 1, "a": {"d": {}, "c": []}}, payload("json/plain", '{"a":{"c":[],"d":{}},"b":1}')),
    ("ü", payload("json/plain", '"ü"')),
    ({"metadata": {}, "data": "MQ=="}, payload("json/plain", '{"data":"MQ==","metadata":{}}')),
    ({"data": "MQ=="}, payload("json/plain", '{"data":"MQ=="}')),
    (
        {"metadata": {"encoding": "x"}, "more": 1},
        payload("json/plain", '{"metadata":{"encoding":"x"},"more":1}'),
    ),
    ({"_protoMessageType": "a.B", "x": 1}, payload("json/protobuf", '{"x":1}', messageType="a.B")),
    (NULL, payload("binary/null")),
]


@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_values_stand_for_payloads_both_ways(value: Any, expected: Payload) -> None:
    assert read_payloads([value], short=True) == Payloads(payloads=(expected,))
    assert write_payloads(Payloads(payloads=(expected,)), short=True) == [value]
    assert read_payload(value, short=True) == expected
    assert write_payload(expected, short=True) == value


def test_null_is_a_payload_without_data() -> None:
    assert read_payload(None, short=True) == payload("binary/null")
    assert write_payload(payload("binary/null"), short=True) == NULL


@pytest.mark.parametrize(
    "odd",
    [
        payload("binary/plain", b"\x00\x01\x02"),
        payload("json/plain", "1", colour="blue"),
        payload("json/plain", "NaN"),
        payload("json/plain", "1e999"),
        payload("json/plain", "no json"),
        payload("json/plain", '{"a":1,"a":2}'),
        payload("json/plain", '"\\ud800"'),
        payload("json/plain", b"\xff"),
        payload("json/plain", "[" * 400 + "]" * 400),
        payload("json/protobuf", "[1]", messageType="a.B"),
        payload("json/protobuf", '{"_protoMessageType":1}', messageType="a.B"),
        payload("json/protobuf", "{}"),
        payload("binary/null", "1"),
        payload("", ""),
        Payload(),
    ],
)
def test_what_no_value_stands_for_turns_the_list_into_payloads(odd: Payload) -> None:
    both = Payloads(payloads=(payload("json/plain", "1"), odd))
    written = write_payloads(both, short=True)
    assert list(written) == ["payloads"]
    assert read_payloads(written, short=True) == both


@pytest.mark.parametrize(
    "value", ["null", '{"_protoMessageType":"a.B"}', '{"metadata":{"encoding":"YQ=="}}']
)
def test_a_value_that_would_be_taken_for_something_else_is_a_payload_in_the_list(
    value: str,
) -> None:
    one = payload("json/plain", value)
    written = write_payloads(Payloads(payloads=(one,)), short=True)
    assert written == [{"metadata": {"encoding": b64("json/plain")}, "data": b64(value)}]
    assert read_payloads(written, short=True) == Payloads(payloads=(one,))


def test_an_object_that_only_looks_like_a_payload_is_a_value() -> None:
    value = {"metadata": {"encoding": "***"}, "data": "***"}
    read = read_payload(value, short=True)
    assert read.metadata == {"encoding": b"json/plain"}
    assert json.loads(read.data) == value


@pytest.mark.parametrize("value", ["text", 1, None, True])
def test_a_list_of_payloads_is_a_list(value: Any) -> None:
    with pytest.raises(ValueError, match="expected a list, got"):
        read_payloads(value, short=True)


@pytest.mark.parametrize(
    "value",
    [
        [1],
        {"payload": []},
        {"payloads": [1]},
        {"payloads": 1},
        {"payloads": [{"metadata": {"encoding": "***"}}]},
        {"payloads": [{"metadata": 1}]},
        {"payloads": [{"metadata": {"a": 1}}]},
        {"payloads": [{"data": 1}]},
        {"payloads": [{"more": 1}]},
    ],
)
def test_the_long_form_is_read_strictly(value: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_payloads(value, short=False)


def test_the_long_form_leaves_out_what_is_empty() -> None:
    assert write_payloads(Payloads(), short=False) == {}
    assert write_payloads(Payloads(), short=True) == []
    assert write_payload(Payload(), short=False) == {}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "data", "encoding", "_protoMessageType", "a"])
            | st.text(max_size=3),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
PAYLOADS = st.builds(
    Payload,
    metadata=st.dictionaries(
        st.sampled_from(["encoding", "messageType", "x"]),
        st.sampled_from([b"json/plain", b"binary/null", b"json/protobuf", b"a.B", b""]),
        max_size=3,
    ),
    data=st.binary(max_size=6) | JSON.map(lambda value: json.dumps(value).encode()),
)


def _canonical(given: Payload) -> Payload:
    """Values lose the spaces and the order of keys of their JSON, nothing else."""
    try:
        again = json.dumps(
            json.loads(given.data), ensure_ascii=False, sort_keys=True, separators=(",", ":")
        )
    except ValueError:
        return given
    return Payload(metadata=given.metadata, data=again.encode())


@given(st.lists(PAYLOADS, max_size=3), st.booleans())
def test_any_payloads_come_back(payloads: list[Payload], short: bool) -> None:
    given_ = Payloads(payloads=tuple(payloads))
    written = json.loads(json.dumps(write_payloads(given_, short=short)))
    back = read_payloads(written, short=short)
    assert [_canonical(one) for one in back.payloads] == [_canonical(one) for one in payloads]
    if not short:
        assert back == given_


@given(st.lists(JSON, max_size=3))
def test_any_values_come_back(values: list[Any]) -> None:
    read = read_payloads(values, short=True)
    again = write_payloads(read, short=True)
    assert read_payloads(again, short=True) == read
