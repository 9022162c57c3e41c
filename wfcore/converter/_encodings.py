"""One converter for each encoding of a payload.

The bytes are those that Temporal's Python converter writes, so that histories compare and codecs
of either side work on the other's data.
"""

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from wfcore.converter._typed_values import JSONTypeConverter, value_to_type
from wfcore.protocol.payloads import Payload


class EncodingPayloadConverter(ABC):
    """Converts what one encoding can express."""

    @property
    @abstractmethod
    def encoding(self) -> str:
        """The name in the payload's metadata."""

    @abstractmethod
    def to_payload(self, value: Any) -> Payload | None:
        """The payload, or None if this encoding is not for such values.

        Raises:
            TypeError: the encoding is for such values, but can't express this one.
        """

    @abstractmethod
    def from_payload(self, payload: Payload, type_hint: Any = None) -> Any:
        """The value of a payload of this encoding.

        Raises:
            RuntimeError: the bytes are malformed.
            TypeError: the value doesn't fit the hint.
        """


class BinaryNullPayloadConverter(EncodingPayloadConverter):
    """None."""

    _payload = Payload(metadata={"encoding": b"binary/null"})

    @property
    def encoding(self) -> str:
        return "binary/null"

    def to_payload(self, value: Any) -> Payload | None:
        return self._payload if value is None else None

    def from_payload(self, payload: Payload, type_hint: Any = None) -> Any:
        if payload.data:
            raise RuntimeError("Expected empty data set for binary/null")
        return None


class BinaryPlainPayloadConverter(EncodingPayloadConverter):
    """Bytes."""

    @property
    def encoding(self) -> str:
        return "binary/plain"

    def to_payload(self, value: Any) -> Payload | None:
        if not isinstance(value, bytes):
            return None
        return Payload(metadata={"encoding": b"binary/plain"}, data=value)

    def from_payload(self, payload: Payload, type_hint: Any = None) -> Any:
        return payload.data


class AdvancedJSONEncoder(json.JSONEncoder):
    """JSON of what stands in workflow data beside the plain types.

    Times as ISO 8601, dataclasses as objects, UUIDs as text, any iterable as a list, and objects
    with a method ``dict()`` (pydantic's models of version 1) as what it returns.
    """

    def default(self, o: Any) -> Any:
        if isinstance(o, datetime):
            return o.isoformat()
        if dataclasses.is_dataclass(o) and not isinstance(o, type):
            return dataclasses.asdict(o)
        if callable(as_dict := getattr(o, "dict", None)):
            return as_dict()
        if isinstance(o, UUID):
            return str(o)
        if isinstance(o, Iterable) and not isinstance(o, list):
            return list(o)
        return super().default(o)


class JSONPlainPayloadConverter(EncodingPayloadConverter):
    """Everything that JSON can express, decoded by type hint.

    Args:
        encoder: a subclass of `json.JSONEncoder` for more types.
        decoder: a subclass of `json.JSONDecoder`.
        encoding: the name of the encoding.
        custom_type_converters: hooks asked before `value_to_type` decides.
    """

    def __init__(
        self,
        *,
        encoder: type[json.JSONEncoder] | None = AdvancedJSONEncoder,
        decoder: type[json.JSONDecoder] | None = None,
        encoding: str = "json/plain",
        custom_type_converters: Sequence[JSONTypeConverter] = (),
    ) -> None:
        self._encoder = (encoder or json.JSONEncoder)(separators=(",", ":"), sort_keys=True)
        self._decoder = decoder() if decoder else json.JSONDecoder()
        self._encoding = encoding
        self._encoding_bytes = encoding.encode()
        self._custom_type_converters = custom_type_converters

    @property
    def encoding(self) -> str:
        return self._encoding

    def to_payload(self, value: Any) -> Payload | None:
        return Payload(
            metadata={"encoding": self._encoding_bytes}, data=self._encoder.encode(value).encode()
        )

    def from_payload(self, payload: Payload, type_hint: Any = None) -> Any:
        try:
            value = self._decoder.decode(payload.data.decode())
        except ValueError as err:  # of bytes that are no UTF-8, and of text that is no JSON
            raise RuntimeError("Failed parsing") from err
        if type_hint is None:
            return value
        return value_to_type(type_hint, value, self._custom_type_converters)
