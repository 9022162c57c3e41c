"""Ids as a host without a simulation makes them: random, and run ids in the order of their time."""

import secrets
import uuid
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class RandomIds:
    """The `Ids` port over the system's randomness."""

    def run_id(self, now: datetime) -> str:
        """A UUIDv7 (RFC 9562): rows of runs that start together lie together."""
        millis = (now - _EPOCH) // _MILLISECOND
        value = (millis << 80) | secrets.randbits(80)
        value = value & ~(0xF << 76) | (0x7 << 76)
        value = value & ~(0x3 << 62) | (0x2 << 62)
        return str(uuid.UUID(int=value))

    def request_id(self) -> str:
        """A UUIDv4."""
        return str(uuid.uuid4())
