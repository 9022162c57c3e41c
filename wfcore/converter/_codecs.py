"""Codecs change the bytes of payloads on their way in and out, for encryption or compression.

They may wait, so they work outside workflow code. Our values are frozen, so the methods for whole
messages return the changed message.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec

from wfcore.protocol.commands import RecordMarker
from wfcore.protocol.events.marker import MarkerRecorded
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Header, Payload, Payloads, SearchAttributes

M = TypeVar("M", bound=Message)
_Apply = Callable[[Sequence[Payload]], Awaitable[list[Payload]]]


class PayloadCodec(ABC):
    """Encodes payloads before they are sent and decodes them after they are received."""

    @abstractmethod
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """The encoded payloads; may be fewer or more than were given."""

    @abstractmethod
    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """What `encode` was given; payloads that it didn't encode must be passed through."""

    async def encode_wrapper(self, payloads: Payloads) -> Payloads:
        """`encode` for a message of payloads."""
        return Payloads(payloads=tuple(await self.encode(payloads.payloads)))

    async def decode_wrapper(self, payloads: Payloads) -> Payloads:
        """`decode` for a message of payloads."""
        return Payloads(payloads=tuple(await self.decode(payloads.payloads)))

    async def encode_failure(self, failure: Failure) -> Failure:
        """`encode` for all payloads of a failure and its causes."""
        return await encode_message(self, failure)

    async def decode_failure(self, failure: Failure) -> Failure:
        """`decode` for all payloads of a failure and its causes."""
        return await decode_message(self, failure)


async def encode_message(codec: PayloadCodec, message: M, *, headers: bool = False) -> M:
    """A message of the protocol with all its user data encoded.

    Search attributes are indexed and the engine's own markers are read by it, so both stay as
    they are; headers too unless asked for.
    """
    changed: M = await _changed(message, codec.encode, headers)
    return changed


async def decode_message(codec: PayloadCodec, message: M, *, headers: bool = False) -> M:
    """The inverse of `encode_message`."""
    changed: M = await _changed(message, codec.decode, headers)
    return changed


#: Details of the markers that patches and local activities leave.
_ENGINE_MARKER_DETAILS = frozenset({"patch-data", "data"})


async def _changed(value: Any, apply: _Apply, headers: bool) -> Any:
    """The value with `apply` done to every list of payloads and every single one."""
    match value:
        case Payload():
            (payload,) = await apply([value])
            return payload
        case Payloads():
            return Payloads(payloads=tuple(await apply(value.payloads)))
        case SearchAttributes():
            return value
        case Header() if not headers:
            return value
        case RecordMarker() | MarkerRecorded():
            engine = {k: v for k, v in value.details.items() if k in _ENGINE_MARKER_DETAILS}
            fields = await _changed_fields(value, apply, headers)
            fields["details"] = {**fields.get("details", value.details), **engine}
            return msgspec.structs.replace(value, **fields)
        case Message():
            fields = await _changed_fields(value, apply, headers)
            return msgspec.structs.replace(value, **fields) if fields else value
        case tuple():
            return tuple([await _changed(item, apply, headers) for item in value])
        case dict():
            return {key: await _changed(item, apply, headers) for key, item in value.items()}
    return value


async def _changed_fields(message: Message, apply: _Apply, headers: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in message.__struct_fields__:
        item = getattr(message, name)
        if isinstance(item, Message | tuple | dict) and item:
            changed = await _changed(item, apply, headers)
            if changed is not item:
                fields[name] = changed
    return fields
