"""User data as people read and write it: decoded by the project's converter and codecs."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from asgiref.sync import async_to_sync

from wfapp.presentation.masking import HIDDEN_ENCODING, hide_payloads
from wfcore.converter import DataConverter
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Payload, Payloads

M = TypeVar("M", bound=Message)

_READABLE = ("json/plain", "json/protobuf")


class Reader:
    """Shows user data to one person, who may see it or may not."""

    def __init__(self, converter: DataConverter, *, may_see: bool = True) -> None:
        self._converter = converter
        self.may_see = may_see

    def messages(self, messages: Sequence[M]) -> list[M]:
        """The messages with their payloads decoded, or hidden."""
        if not self.may_see:
            return [hide_payloads(message) for message in messages]
        if self._converter.payload_codec is None:
            return list(messages)

        async def decode() -> list[M]:
            return [await self._decoded(message) for message in messages]

        decoded: list[M] = async_to_sync(decode)()
        return decoded

    def message(self, message: M) -> M:
        """One message with its payloads decoded, or hidden."""
        return self.messages([message])[0]

    async def _decoded(self, message: M) -> M:
        try:
            return await self._converter.decode_message(message, headers=True)
        except Exception:  # noqa: BLE001 - a codec of the project; what it can't read is shown as it is
            return message


def encode(converter: DataConverter, values: Sequence[Any]) -> Payloads:
    """Payloads of values, as the project's workers read them."""
    payloads: Payloads = async_to_sync(converter.encode_wrapper)(values)
    return payloads


def text_of(payload: Payload) -> str:
    """A payload in one line: its JSON, or what it is."""
    encoding = payload.metadata.get("encoding", b"").decode(errors="replace")
    if encoding == HIDDEN_ENCODING:
        return "(hidden)"
    if encoding == "binary/null":
        return "null"
    if encoding in _READABLE:
        return payload.data.decode(errors="replace")
    return f"({encoding or 'no encoding'}, {len(payload.data):,} bytes)"


def texts_of(payloads: Payloads | None) -> list[str]:
    """Each payload of a list in a line."""
    return [text_of(payload) for payload in payloads.payloads] if payloads is not None else []


def value_of(payload: Payload) -> Any:
    """A payload as a value of JSON; what is none is told in words.

    Undone are only the encodings of JSON and null: a value of another converter stays what it is.
    """
    text = text_of(payload)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
