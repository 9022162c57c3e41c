"""User data in JSON: plain values where a payload can be told from them, else payloads.

What is written short is read back as the same payload. In the long form payloads stand as they are:
``{"metadata": {"encoding": …}, "data": …}``, all of it base64. In the short form

- a list of payloads is a JSON list, each item a value, or a whole payload where a value would be
  read back as something else;
- a plain value is a payload of ``json/plain``, null one of ``binary/null``;
- an object with ``_protoMessageType`` is a payload of ``json/protobuf``;
- a list that holds any other payload is written ``{"payloads": […]}`` as a whole.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from wfapp.presentation import json_text
from wfcore.protocol.payloads import Payload, Payloads

NULL = "binary/null"
PLAIN = "json/plain"
PROTOBUF = "json/protobuf"
#: Key of an object that stands for a protobuf message in JSON.
MESSAGE_TYPE_KEY = "_protoMessageType"

_NULL_METADATA = {"encoding": NULL.encode()}
_PLAIN_METADATA = {"encoding": PLAIN.encode()}


# ---- reading


def read_payloads(data: Any, *, short: bool) -> Payloads:
    """A list of payloads, in the short form if that is allowed, else in the long one.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(data, Mapping):
        unknown = set(data) - {"payloads"}
        items = data.get("payloads", [])
        if unknown:
            raise ValueError(f'unknown field "{min(unknown)}"')
        if not isinstance(items, list):
            raise ValueError("payloads must be a list")
        return Payloads(payloads=tuple(read_payload(item, short=False) for item in items))
    if short and isinstance(data, list):
        return Payloads(payloads=tuple(read_payload(item, short=True) for item in data))
    expected = "a list" if short else 'an object with "payloads"'
    raise ValueError(f"expected {expected}, got {shown(data)}")


def read_payload(data: Any, *, short: bool) -> Payload:
    """One payload, or the value that stands for it.

    Raises:
        ValueError: the long form is asked for, and this isn't it.
    """
    if not short:
        return _whole(data)
    if data is None:
        return Payload(metadata=_NULL_METADATA)
    if isinstance(data, Mapping):
        if _looks_whole(data):
            try:
                return _whole(data)
            except ValueError:
                return _plain(data)  # its texts are no base64: a value that only looks alike
        message_type = data.get(MESSAGE_TYPE_KEY)
        if isinstance(message_type, str):
            rest = {key: value for key, value in data.items() if key != MESSAGE_TYPE_KEY}
            metadata = {"encoding": PROTOBUF.encode(), "messageType": message_type.encode()}
            return Payload(metadata=metadata, data=_bytes(rest))
    return _plain(data)


def _plain(value: Any) -> Payload:
    return Payload(metadata=_PLAIN_METADATA, data=_bytes(value))


def _looks_whole(data: Mapping[str, Any]) -> bool:
    """Whether an object has the keys and types of a payload."""
    metadata = data.get("metadata")
    return (
        set(data) <= {"metadata", "data"}
        and isinstance(metadata, Mapping)
        and "encoding" in metadata
        and all(isinstance(value, str) for value in metadata.values())
        and isinstance(data.get("data", ""), str)
    )


def _whole(data: Any) -> Payload:
    if not isinstance(data, Mapping):
        raise ValueError(f"expected a payload, got {shown(data)}")
    unknown = set(data) - {"metadata", "data"}
    if unknown:
        raise ValueError(f'unknown field "{min(unknown)}"')
    metadata = data.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise ValueError(f"metadata must be an object, not {shown(metadata)}")
    return Payload(
        metadata={key: read_bytes(value) for key, value in metadata.items()},
        data=read_bytes(data.get("data") or ""),
    )


def read_bytes(value: Any) -> bytes:
    """What a text in base64 holds, in either of its two alphabets, padded or not.

    Raises:
        ValueError: it is no base64.
    """
    if not isinstance(value, str):
        raise ValueError(f"expected a text in base64, got {shown(value)}")
    text = value.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"illegal base64 data: {error}") from error


# ---- writing


def write_payloads(payloads: Payloads, *, short: bool) -> Any:
    """The JSON of a list of payloads."""
    if short:
        items = [_short(payload) for payload in payloads.payloads]
        if all(known for known, _ in items):
            return [item for _, item in items]
    long = [_long(payload) for payload in payloads.payloads]
    return {"payloads": long} if long else {}


def write_payload(payload: Payload, *, short: bool) -> Any:
    """The JSON of one payload."""
    if short:
        known, item = _short(payload)
        if known:
            return item
    return _long(payload)


def _long(payload: Payload) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if payload.metadata:
        out["metadata"] = {key: _base64(value) for key, value in payload.metadata.items()}
    if payload.data:
        out["data"] = _base64(payload.data)
    return out


def _short(payload: Payload) -> tuple[bool, Any]:
    """The item of a list, and whether there is one that is read back as this very payload."""
    metadata = payload.metadata
    if metadata == _NULL_METADATA and not payload.data:
        return True, _long(payload)
    try:
        if metadata == _PLAIN_METADATA:
            value = _value(payload.data)
            return True, _long(payload) if _is_ambiguous(value) else value
        if (
            set(metadata) == {"encoding", "messageType"}
            and metadata["encoding"] == b"json/protobuf"
        ):
            value = _value(payload.data)
            if isinstance(value, dict) and MESSAGE_TYPE_KEY not in value:
                return True, {MESSAGE_TYPE_KEY: metadata["messageType"].decode(), **value}
    except ValueError:
        return False, None
    return False, None


def _is_ambiguous(value: Any) -> bool:
    """Whether a plain value, read back, would be taken for something else."""
    if isinstance(value, dict):
        return MESSAGE_TYPE_KEY in value or _looks_whole(value)
    return value is None


def _value(data: bytes) -> Any:
    return json_text.read(data.decode())


def _bytes(value: Any) -> bytes:
    """The very bytes that Temporal's converters make: compact, keys in order."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def shown(value: Any) -> str:
    """A value in an error's text, shortened."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
