"""The three parts of conversion together: payload converter, codec, failure converter.

Values pass the converter and then the codec on the way out, and back in the opposite order.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from wfcore.common import UNSET
from wfcore.converter._codecs import M, PayloadCodec, decode_message, encode_message
from wfcore.converter._failures import DefaultFailureConverter, FailureConverter
from wfcore.converter._payload_converters import DefaultPayloadConverter, PayloadConverter
from wfcore.converter._serialization_context import SerializationContext, WithSerializationContext
from wfcore.protocol.failures import Failure
from wfcore.protocol.payloads import Memo, Payload, Payloads


@dataclass(frozen=True)
class DataConverter(WithSerializationContext):
    """How user data is stored.

    Change one with `dataclasses.replace`; classes are given, not instances, since workflow code
    has instances of its own. `payload_converter` and `failure_converter` are instances of the
    classes, for use without waiting; they leave the codec out.

    Example:
        ``dataclasses.replace(DataConverter.default, payload_codec=EncryptionCodec(key))``
    """

    payload_converter_class: Callable[[], PayloadConverter] = DefaultPayloadConverter
    payload_codec: PayloadCodec | None = None
    failure_converter_class: Callable[[], FailureConverter] = DefaultFailureConverter
    payload_converter: PayloadConverter = field(init=False)
    failure_converter: FailureConverter = field(init=False)

    default: ClassVar[DataConverter]

    def __post_init__(self) -> None:
        object.__setattr__(self, "payload_converter", self.payload_converter_class())
        object.__setattr__(self, "failure_converter", self.failure_converter_class())

    async def encode(self, values: Sequence[Any]) -> list[Payload]:
        """Payloads of the values; a codec may make them fewer or more."""
        payloads = self.payload_converter.to_payloads(values)
        return await self.payload_codec.encode(payloads) if self.payload_codec else payloads

    async def decode(
        self, payloads: Sequence[Payload], type_hints: Sequence[Any] | None = None
    ) -> list[Any]:
        """Values of the payloads, by the hints where there are any."""
        if self.payload_codec:
            payloads = await self.payload_codec.decode(payloads)
        return self.payload_converter.from_payloads(payloads, type_hints)

    async def encode_wrapper(self, values: Sequence[Any]) -> Payloads:
        """`encode` into one message."""
        return Payloads(payloads=tuple(await self.encode(values)))

    async def decode_wrapper(
        self, payloads: Payloads | None, type_hints: Sequence[Any] | None = None
    ) -> list[Any]:
        """`decode` of one message; no values if there is none."""
        if payloads is None or not payloads.payloads:
            return []
        return await self.decode(payloads.payloads, type_hints)

    async def encode_failure(self, exception: BaseException) -> Failure:
        """The failure that records an exception."""
        failure = self.failure_converter.to_failure(exception, self.payload_converter)
        return await self.payload_codec.encode_failure(failure) if self.payload_codec else failure

    async def decode_failure(self, failure: Failure) -> BaseException:
        """The exception that a failure records."""
        if self.payload_codec:
            failure = await self.payload_codec.decode_failure(failure)
        return self.failure_converter.from_failure(failure, self.payload_converter)

    async def encode_memo(self, memo: Mapping[str, Any]) -> Memo:
        """A memo of the values; payloads and raw values are passed as they are."""
        return Memo(fields={key: (await self.encode([value]))[0] for key, value in memo.items()})

    async def decode_memo(self, memo: Memo | None) -> dict[str, Any]:
        """All values of a memo."""
        fields = memo.fields if memo else {}
        return {key: (await self.decode([payload]))[0] for key, payload in fields.items()}

    async def decode_memo_field(
        self, memo: Memo | None, key: str, default: Any = UNSET, type_hint: Any = None
    ) -> Any:
        """One value of a memo.

        Raises:
            KeyError: there is no such key and no default is given.
        """
        payload = memo.fields.get(key) if memo else None
        if payload is None:
            if default is UNSET:
                raise KeyError(f"Memo does not have a value for key {key}")
            return default
        return (await self.decode([payload], [type_hint] if type_hint else None))[0]

    async def encode_message(self, message: M, *, headers: bool = False) -> M:
        """A message whose values were converted without waiting, with the codec applied."""
        if not self.payload_codec:
            return message
        return await encode_message(self.payload_codec, message, headers=headers)

    async def decode_message(self, message: M, *, headers: bool = False) -> M:
        """The inverse of `encode_message`."""
        if not self.payload_codec:
            return message
        return await decode_message(self.payload_codec, message, headers=headers)

    def with_context(self, context: SerializationContext) -> Self:
        """A converter whose parts know the context; itself if none of them wants to."""
        changes: dict[str, Any] = {}
        for name in ("payload_converter", "payload_codec", "failure_converter"):
            part = getattr(self, name)
            if isinstance(part, WithSerializationContext):
                with_context = part.with_context(context)
                if with_context is not part:
                    changes[name] = with_context
        if not changes:
            return self
        changed = copy.copy(self)  # dataclasses.replace would make the other parts anew
        for name, part in changes.items():
            object.__setattr__(changed, name, part)
        return changed


DataConverter.default = DataConverter()


def default() -> DataConverter:
    """The default converter."""
    return DataConverter.default
