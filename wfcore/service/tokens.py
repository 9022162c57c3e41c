"""Task tokens: opaque bytes that say which claim an answer belongs to.

A token is checked against the state when it comes back; it proves nothing by itself.
"""

from datetime import datetime
from typing import TypeVar

import msgspec

from wfcore.exceptions import InvalidArgumentError


class WorkflowToken(
    msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="w", forbid_unknown_fields=True
):
    """A claimed workflow task."""

    namespace: str
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    started_event_id: int
    attempt: int
    started_at: datetime


class ActivityToken(
    msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="a", forbid_unknown_fields=True
):
    """A claimed attempt of an activity. Operations on the activity change its row's stamp without
    ending the attempt, so that only the attempt and its claim count: after a reset its number comes
    again."""

    namespace: str
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    attempt: int
    #: request id of the claim; empty in tokens that were not handed out
    claim: str = ""


class QueryToken(
    msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="q", forbid_unknown_fields=True
):
    """A question handed to a worker."""

    namespace: str
    query_id: str


Token = WorkflowToken | ActivityToken | QueryToken
T = TypeVar("T", WorkflowToken, ActivityToken, QueryToken)

_decode = msgspec.json.Decoder(Token).decode

#: The bytes that a worker gets and gives back.
encode = msgspec.json.Encoder().encode


def decode(token: bytes, kind: type[T]) -> T:
    """Read a token of one kind.

    Raises:
        InvalidArgumentError: it is empty, no token, or one of another kind.
    """
    if not token:
        raise InvalidArgumentError("Task token not set on request.")
    try:
        found = _decode(token)
    except msgspec.DecodeError as error:
        raise InvalidArgumentError("Error deserializing task token.") from error
    if not isinstance(found, kind):
        raise InvalidArgumentError("Error deserializing task token.")
    return found
