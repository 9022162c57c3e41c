"""Python values to payloads and back: encodings are tried in order, the first that fits wins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from wfcore.common import RawValue
from wfcore.converter._encodings import (
    BinaryNullPayloadConverter,
    BinaryPlainPayloadConverter,
    EncodingPayloadConverter,
    JSONPlainPayloadConverter,
)
from wfcore.converter._protobuf import BinaryProtoPayloadConverter, JSONProtoPayloadConverter
from wfcore.converter._serialization_context import SerializationContext, WithSerializationContext
from wfcore.protocol.payloads import Payload, Payloads


class PayloadConverter(ABC):
    """Turns values into payloads and back; works without waiting, so that workflow code may."""

    default: ClassVar[PayloadConverter]

    @abstractmethod
    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        """One payload for each value.

        Raises:
            Exception: a value can't be converted.
        """

    @abstractmethod
    def from_payloads(
        self, payloads: Sequence[Payload], type_hints: Sequence[Any] | None = None
    ) -> list[Any]:
        """One value for each payload; hints may be fewer than payloads, None means no hint.

        Raises:
            Exception: a payload can't be converted.
        """

    def to_payloads_wrapper(self, values: Sequence[Any]) -> Payloads:
        """The payloads of the values as one message."""
        return Payloads(payloads=tuple(self.to_payloads(values)))

    def from_payloads_wrapper(
        self, payloads: Payloads | None, type_hints: Sequence[Any] | None = None
    ) -> list[Any]:
        """The values of a message's payloads; none if there is no message."""
        if payloads is None or not payloads.payloads:
            return []
        return self.from_payloads(payloads.payloads, type_hints)

    def to_payload(self, value: Any) -> Payload:
        """The payload of one value."""
        return self.to_payloads([value])[0]

    def from_payload(self, payload: Payload, type_hint: Any = None) -> Any:
        """The value of one payload."""
        return self.from_payloads([payload], None if type_hint is None else [type_hint])[0]


class CompositePayloadConverter(PayloadConverter, WithSerializationContext):
    """Asks converters in order; the first that gives a payload wins."""

    converters: Mapping[bytes, EncodingPayloadConverter]

    def __init__(self, *converters: EncodingPayloadConverter) -> None:
        self.converters = {converter.encoding.encode(): converter for converter in converters}

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        """One payload for each value; a `RawValue` is passed as it is.

        Raises:
            RuntimeError: no converter is for such values.
        """
        return [self._encoded(index, value) for index, value in enumerate(values)]

    def _encoded(self, index: int, value: Any) -> Payload:
        if isinstance(value, RawValue):
            raw: Payload = value.payload
            return raw
        for converter in self.converters.values():
            payload = converter.to_payload(value)
            if payload is not None:
                return payload
        raise RuntimeError(f"Value at index {index} of type {type(value)} has no known converter")

    def from_payloads(
        self, payloads: Sequence[Payload], type_hints: Sequence[Any] | None = None
    ) -> list[Any]:
        """One value for each payload; the hint `RawValue` leaves a payload as it is.

        Raises:
            KeyError: no converter knows the encoding.
            RuntimeError: a payload is malformed.
            TypeError, ValueError: a value doesn't fit its hint.
        """
        hints = type_hints or ()
        return [
            self._decoded(index, payload, hints[index] if index < len(hints) else None)
            for index, payload in enumerate(payloads)
        ]

    def _decoded(self, index: int, payload: Payload, hint: Any) -> Any:
        if hint is RawValue:
            return RawValue(payload)
        encoding = payload.metadata.get("encoding", b"<unknown>")
        converter = self.converters.get(encoding)
        if converter is None:
            raise KeyError(f"Unknown payload encoding {encoding.decode(errors='replace')}")
        try:
            return converter.from_payload(payload, hint)
        except RuntimeError as err:
            raise RuntimeError(
                f"Payload at index {index} with encoding {encoding.decode()} could not be converted"
            ) from err

    def with_context(self, context: SerializationContext) -> Self:
        """A converter whose parts know the context; itself if none of them wants to."""
        converters = self.get_converters_with_context(context)
        if converters is None:
            return self
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        CompositePayloadConverter.__init__(copy, *converters)
        return copy

    def get_converters_with_context(
        self, context: SerializationContext
    ) -> list[EncodingPayloadConverter] | None:
        """The parts for this context, or None if none of them takes one."""
        if not any(isinstance(part, WithSerializationContext) for part in self.converters.values()):
            return None
        return [
            part.with_context(context) if isinstance(part, WithSerializationContext) else part
            for part in self.converters.values()
        ]


class DefaultPayloadConverter(CompositePayloadConverter):
    """None, bytes, protobuf messages, and JSON for everything else."""

    default_encoding_payload_converters: ClassVar[tuple[EncodingPayloadConverter, ...]]

    def __init__(self) -> None:
        super().__init__(*DefaultPayloadConverter.default_encoding_payload_converters)


DefaultPayloadConverter.default_encoding_payload_converters = (
    BinaryNullPayloadConverter(),
    BinaryPlainPayloadConverter(),
    JSONProtoPayloadConverter(),
    BinaryProtoPayloadConverter(),
    JSONPlainPayloadConverter(),
)
PayloadConverter.default = DefaultPayloadConverter()
