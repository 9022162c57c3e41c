"""Columns that several tables share, and the two numbers that make their keys.

`shard` comes first in the key of every table of a run, so that rows of one run lie together and a
database that is cut into shards finds them in one place.
"""

import hashlib
import secrets
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import models

#: Namespaces, ids, names and queues have 1,000 bytes at most (Temporal's `limit.maxIDLength`).
NAME_LENGTH = 1_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def shard_of(namespace: str, workflow_id: str) -> int:
    """The 64-bit signed hash of a workflow id: the first bytes of BLAKE2b, for ever the same."""
    text = f"{namespace}\0{workflow_id}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


def to_micros(value: datetime) -> int:
    """UTC microseconds since 1970."""
    return (value - _EPOCH) // _MICROSECOND


def from_micros(value: int) -> datetime:
    """The aware UTC time of a number of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=value)


def entry_id(micros: int, order: int = 0) -> uuid.UUID:
    """A UUIDv7 of that time: entries sort by time, and by `order` (below 256) within one writing.

    No sequence, which all runs would share.
    """
    millis, rest = divmod(micros, 1_000)
    value = millis << 80 | 0x7 << 76 | (rest * 4096 // 1_000) << 64 | 0x2 << 62
    return uuid.UUID(int=value | (order & 0xFF) << 54 | secrets.randbits(54))


def new_entry_id() -> uuid.UUID:
    """A UUIDv7 of this moment."""
    return entry_id(to_micros(datetime.now(UTC)))


def name_column(verbose_name: Any = None, **options: Any) -> "models.CharField[str, str]":
    """A name or id that people choose."""
    return models.CharField(verbose_name, max_length=NAME_LENGTH, **options)
