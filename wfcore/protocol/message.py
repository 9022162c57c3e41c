"""The base of every stored value: frozen, keyword-only, camelCase, defaults left out."""

from typing import Annotated

import msgspec

#: A 32-bit integer: a number in Temporal's JSON, where plain integers are strings.
Int32 = Annotated[int, msgspec.Meta(extra={"bits": 32})]


class Message(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A value of Temporal's API, field for field.

    ``None`` means that a nested message is absent; all else has protobuf's defaults.
    Durations are `datetime.timedelta`, times aware `datetime` in UTC.
    """
