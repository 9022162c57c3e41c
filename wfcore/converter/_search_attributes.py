"""Search attributes to payloads and back: plain JSON, never through a codec, since it is indexed.

A typed attribute's payload names its type in the metadata; without it there is only a guess.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from wfcore.common import (
    SearchAttributeIndexedValueType,
    SearchAttributeKey,
    SearchAttributePair,
    SearchAttributes,
    SearchAttributeUpdate,
    SearchAttributeValues,
    TypedSearchAttributes,
)
from wfcore.converter._payload_converters import DefaultPayloadConverter
from wfcore.protocol import payloads as protocol
from wfcore.protocol.payloads import Payload

_converter = DefaultPayloadConverter()
_TYPE_NAMES = (str, int, float, bool, datetime)


def encode_search_attributes(
    attributes: SearchAttributes | TypedSearchAttributes,
) -> protocol.SearchAttributes:
    """The stored form of search attributes.

    Raises:
        TypeError: a value has not the type that its key or its list demands.
        ValueError: a time has no time zone.
    """
    if isinstance(attributes, TypedSearchAttributes):
        return protocol.SearchAttributes(
            indexed_fields={
                pair.key.name: encode_typed_search_attribute_value(pair.key, pair.value)
                for pair in attributes
            }
        )
    return protocol.SearchAttributes(
        indexed_fields={
            name: encode_search_attribute_values(values) for name, values in attributes.items()
        }
    )


def encode_search_attribute_updates(
    updates: Sequence[SearchAttributeUpdate[Any]],
) -> protocol.SearchAttributes:
    """The stored form of changes; a removal is a null."""
    return protocol.SearchAttributes(
        indexed_fields={
            update.key.name: encode_typed_search_attribute_value(update.key, update.value)
            for update in updates
        }
    )


def encode_typed_search_attribute_value(key: SearchAttributeKey[Any], value: Any) -> Payload:
    """The payload of one value, or of None, which removes the attribute.

    Raises:
        TypeError: the value has not the key's type.
        ValueError: a time has no time zone.
    """
    if value is None:
        return _converter.to_payload(None)
    if not isinstance(value, key.origin_value_type):
        raise TypeError(
            f"Value of type {value} not suitable for indexed value type {key.indexed_value_type}"
        )
    item: Any = value
    if key.indexed_value_type is SearchAttributeIndexedValueType.KEYWORD_LIST:
        if isinstance(item, str) or not all(isinstance(word, str) for word in item):
            raise TypeError("All values of a keyword list must be strings")
        item = list(item)
    elif isinstance(item, datetime):
        item = _time(item)
    payload = _converter.to_payload(item)
    metadata = {**payload.metadata, "type": key.indexed_value_type.metadata_type.encode()}
    return Payload(metadata=metadata, data=payload.data)


def encode_search_attribute_values(vals: SearchAttributeValues) -> Payload:
    """The payload of an untyped attribute's values.

    Raises:
        TypeError: it is no list, or the values are of several types or of one that isn't indexed.
        ValueError: a time has no time zone.
    """
    if not isinstance(vals, list):
        raise TypeError("Search attribute values must be lists")
    kinds = set()
    for value in vals:
        if not isinstance(value, _TYPE_NAMES):
            raise TypeError(
                f"Search attribute value of type {type(value).__name__} not one of "
                "str, int, float, bool, or datetime"
            )
        kinds.add(type(value))
    if len(kinds) > 1:
        raise TypeError("Search attribute values must have the same type for the same key")
    return _converter.to_payload(
        [_time(value) if isinstance(value, datetime) else value for value in vals]
    )


def _time(value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError("Timezone must be present on all search attribute dates")
    return value.isoformat()


def decode_search_attributes(
    api: protocol.SearchAttributes | Mapping[str, Payload] | None,
) -> dict[str, Any]:
    """All attributes as lists, without types but for times."""
    decoded: dict[str, Any] = {}
    for name, payload in _fields(api).items():
        value = _converter.from_payload(payload)
        values = value if isinstance(value, list) else [value]
        if payload.metadata.get("type") == b"Datetime":
            values = [datetime.fromisoformat(item) for item in values]
        decoded[name] = values
    return decoded


def decode_typed_search_attributes(
    api: protocol.SearchAttributes | Mapping[str, Payload] | None,
) -> TypedSearchAttributes:
    """The attributes whose payload names a type and whose value fits it; others are left out."""
    pairs: list[SearchAttributePair[Any]] = []
    for name, payload in _fields(api).items():
        key = SearchAttributeKey.from_metadata_type(
            name, payload.metadata.get("type", b"").decode(errors="replace")
        )
        if key is None:
            continue
        value = json.loads(payload.data) if payload.data else None
        is_list = key.indexed_value_type is SearchAttributeIndexedValueType.KEYWORD_LIST
        if isinstance(value, list) and not is_list and len(value) == 1:
            value = value[0]
        value = _typed(key, value)
        if isinstance(value, key.origin_value_type):
            pairs.append(SearchAttributePair(key, value))
    return TypedSearchAttributes(pairs)


def _typed(key: SearchAttributeKey[Any], value: Any) -> Any:
    """What JSON gave, in the key's type where the two differ; None if it is malformed."""
    if key.value_type is float and isinstance(value, int):
        return float(value)
    if key.value_type is datetime and isinstance(value, str):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, str) and key.origin_value_type is not str:
        return None  # text is a Sequence too, but no list of keywords
    return value


def _fields(
    api: protocol.SearchAttributes | Mapping[str, Payload] | None,
) -> Mapping[str, Payload]:
    if api is None:
        return {}
    return api.indexed_fields if isinstance(api, protocol.SearchAttributes) else api
