"""User data as the engine stores it: payloads and maps of them. Nothing here looks inside."""

from wfcore.protocol.message import Message


class PayloadExternalPayloadDetails(Message, frozen=True):
    """Payload external payload details."""

    size_bytes: int = 0


class Payload(Message, frozen=True):
    """An encoded value: `metadata` says how, `data` has the bytes."""

    metadata: dict[str, bytes] = {}
    data: bytes = b""
    external_payloads: tuple[PayloadExternalPayloadDetails, ...] = ()


class Payloads(Message, frozen=True):
    """A list of encoded values: arguments, results, details."""

    payloads: tuple[Payload, ...] = ()


class Memo(Message, frozen=True):
    """Unindexed values shown with a run."""

    fields: dict[str, Payload] = {}


class SearchAttributes(Message, frozen=True):
    """Indexed values of a run."""

    indexed_fields: dict[str, Payload] = {}


class Header(Message, frozen=True):
    """Context that travels with calls."""

    fields: dict[str, Payload] = {}


class UserMetadata(Message, frozen=True):
    """Summary and details that people read."""

    summary: Payload | None = None
    details: Payload | None = None
