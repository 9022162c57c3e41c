"""Protobuf messages as payloads, for programs that pass them; protobuf itself is optional.

Nothing is imported unless a message or a payload of these encodings turns up.
"""

import json
from importlib import import_module
from typing import Any

from wfcore.converter._encodings import EncodingPayloadConverter
from wfcore.protocol.payloads import Payload


def _is_message(value: Any) -> bool:
    return hasattr(type(value), "DESCRIPTOR") and hasattr(value, "SerializeToString")


def _new_message(payload: Payload, type_hint: Any) -> Any:
    """An empty message of the payload's type."""
    name = payload.metadata.get("messageType", b"<unknown>").decode()
    descriptor = getattr(type_hint, "DESCRIPTOR", None)
    if descriptor is not None and descriptor.full_name == name:
        return type_hint()
    factory = import_module("google.protobuf.message_factory")
    pool = import_module("google.protobuf.descriptor_pool").Default()
    try:
        return factory.GetMessageClass(pool.FindMessageTypeByName(name))()
    except KeyError as err:
        raise RuntimeError(
            f"Unknown Protobuf type {name}: import the module that defines it"
        ) from err


def _metadata(encoding: bytes, message: Any) -> dict[str, bytes]:
    return {"encoding": encoding, "messageType": message.DESCRIPTOR.full_name.encode()}


class JSONProtoPayloadConverter(EncodingPayloadConverter):
    """Protobuf messages in their JSON form."""

    def __init__(self, ignore_unknown_fields: bool = False) -> None:
        self._ignore_unknown_fields = ignore_unknown_fields

    @property
    def encoding(self) -> str:
        return "json/protobuf"

    def to_payload(self, value: Any) -> Payload | None:
        if not _is_message(value):
            return None
        fields = import_module("google.protobuf.json_format").MessageToDict(value)
        return Payload(
            metadata=_metadata(b"json/protobuf", value),
            data=json.dumps(fields, separators=(",", ":"), sort_keys=True).encode(),
        )

    def from_payload(self, payload: Payload, type_hint: Any = None) -> Any:
        message = _new_message(payload, type_hint)
        json_format = import_module("google.protobuf.json_format")
        try:
            return json_format.Parse(
                payload.data, message, ignore_unknown_fields=self._ignore_unknown_fields
            )
        except json_format.ParseError as err:
            raise RuntimeError("Failed parsing") from err


class BinaryProtoPayloadConverter(EncodingPayloadConverter):
    """Protobuf messages in their binary form."""

    @property
    def encoding(self) -> str:
        return "binary/protobuf"

    def to_payload(self, value: Any) -> Payload | None:
        if not _is_message(value):
            return None
        return Payload(
            metadata=_metadata(b"binary/protobuf", value), data=value.SerializeToString()
        )

    def from_payload(self, payload: Payload, type_hint: Any = None) -> Any:
        message = _new_message(payload, type_hint)
        try:
            message.ParseFromString(payload.data)
        except import_module("google.protobuf.message").DecodeError as err:
            raise RuntimeError("Failed parsing") from err
        return message
