"""User data hidden from who may see runs but not what they carry.

A hidden payload keeps its place: lists keep their lengths, maps their keys. Search attributes stay,
since people find runs by them.
"""

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from wfcore.converter import PayloadCodec, encode_message
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Payload

M = TypeVar("M", bound=Message)
T = TypeVar("T")

#: The encoding of what stands in the place of a hidden payload.
HIDDEN_ENCODING = "binary/hidden"
HIDDEN = Payload(metadata={"encoding": HIDDEN_ENCODING.encode()})


def hide_payloads(message: M) -> M:
    """The message with every payload in it, headers included, replaced by `HIDDEN`."""
    return _at_once(encode_message(_HidingCodec(), message, headers=True))


class _HidingCodec(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [HIDDEN] * len(payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        raise NotImplementedError("what was hidden is not here")


def _at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("the coroutine waited")
