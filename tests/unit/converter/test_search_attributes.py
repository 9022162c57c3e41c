"""Search attributes to payloads and back; Temporal's own functions are the measure."""

from datetime import UTC, datetime
from typing import Any

import pytest
import temporalio.api.common.v1 as temporal_api
import temporalio.common as temporal_common
import temporalio.converter as temporal

from wfcore.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from wfcore.converter import (
    decode_search_attributes,
    decode_typed_search_attributes,
    encode_search_attribute_updates,
    encode_search_attribute_values,
    encode_search_attributes,
    encode_typed_search_attribute_value,
)
from wfcore.protocol.payloads import Payload, SearchAttributes

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
LOCAL = datetime(2026, 1, 2, 12)  # noqa: DTZ001 - it has to be refused


@pytest.mark.parametrize(
    ("maker", "value"),
    [
        ("for_text", "x"),
        ("for_keyword", "x"),
        ("for_int", 5),
        ("for_float", 1.5),
        ("for_bool", True),
        ("for_datetime", NOON),
        ("for_keyword_list", ["x", "y"]),
        ("for_int", None),
    ],
)
def test_a_typed_value_is_written_as_temporal_writes_it(maker: str, value: Any) -> None:
    expected = temporal.encode_typed_search_attribute_value(
        getattr(temporal_common.SearchAttributeKey, maker)("A"), value
    )
    found = encode_typed_search_attribute_value(getattr(SearchAttributeKey, maker)("A"), value)
    assert (found.metadata, found.data) == (dict(expected.metadata), expected.data)


@pytest.mark.parametrize(
    ("maker", "value", "error", "message"),
    [
        ("for_int", "x", TypeError, "not suitable"),
        ("for_float", 1, TypeError, "not suitable"),
        ("for_datetime", LOCAL, ValueError, "Timezone must be present"),
        ("for_keyword_list", [1], TypeError, "must be strings"),
        ("for_keyword_list", "xy", TypeError, "must be strings"),
    ],
)
def test_a_value_of_another_type_is_refused(
    maker: str, value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        encode_typed_search_attribute_value(getattr(SearchAttributeKey, maker)("A"), value)


@pytest.mark.parametrize("values", [["x"], [1, 2], [1.5], [True], [NOON], []])
def test_untyped_values_are_written_as_temporal_writes_them(values: Any) -> None:
    expected = temporal.encode_search_attribute_values(values)
    found = encode_search_attribute_values(values)
    assert (found.metadata, found.data) == (dict(expected.metadata), expected.data)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ("x", TypeError, "must be lists"),
        (["x", 1], TypeError, "must have the same type"),
        ([object()], TypeError, "type object not one of"),
        ([LOCAL], ValueError, "Timezone must be present"),
    ],
)
def test_untyped_values_must_be_alike(values: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        encode_search_attribute_values(values)


def _stored(kind: bytes, data: bytes) -> Payload:
    return Payload(metadata={"encoding": b"json/plain", "type": kind}, data=data)


STORED = {
    "count": _stored(b"Int", b"5"),
    "when": _stored(b"Datetime", b'"2026-01-02T12:00:00Z"'),
    "exact": _stored(b"Datetime", b'"2026-01-02T12:00:00.123456789Z"'),
    "tags": _stored(b"KeywordList", b'["a"]'),
    "wrapped": _stored(b"Keyword", b'["a"]'),
    "two": _stored(b"Keyword", b'["a","b"]'),
    "whole": _stored(b"Double", b"1"),
    "wrong": _stored(b"Int", b'"x"'),
    "untyped": Payload(metadata={"encoding": b"json/plain"}, data=b'"s"'),
    "removed": Payload(metadata={"encoding": b"binary/null"}),
}


def test_stored_attributes_are_read_as_temporal_reads_them() -> None:
    proto = temporal_api.SearchAttributes(
        indexed_fields={
            name: temporal_api.Payload(metadata=p.metadata, data=p.data)
            for name, p in STORED.items()
        }
    )
    attributes = SearchAttributes(indexed_fields=STORED)
    expected = [
        (pair.key.name, pair.key.indexed_value_type.name, pair.value)
        for pair in temporal.decode_typed_search_attributes(proto)
    ]
    found = [
        (pair.key.name, pair.key.indexed_value_type.name, pair.value)
        for pair in decode_typed_search_attributes(attributes)
    ]
    assert found == expected
    assert decode_search_attributes(attributes) == temporal.decode_search_attributes(proto)


def test_a_malformed_time_is_left_out() -> None:
    stored = {"when": _stored(b"Datetime", b'"noon"'), "tags": _stored(b"KeywordList", b'"a"')}
    assert len(decode_typed_search_attributes(stored)) == 0


def test_attributes_survive_storing() -> None:
    attributes = TypedSearchAttributes(
        [
            SearchAttributePair(SearchAttributeKey.for_int("Size"), 5),
            SearchAttributePair(SearchAttributeKey.for_keyword_list("Tags"), ["a", "b"]),
        ]
    )
    assert decode_typed_search_attributes(encode_search_attributes(attributes)) == attributes
    untyped = encode_search_attributes({"Size": [5]})
    assert decode_search_attributes(untyped) == {"Size": [5]}
    assert decode_typed_search_attributes(None) == TypedSearchAttributes.empty


def test_a_removal_is_a_null() -> None:
    stored = encode_search_attribute_updates([SearchAttributeKey.for_int("Size").value_unset()])
    assert stored.indexed_fields["Size"].metadata == {"encoding": b"binary/null"}
