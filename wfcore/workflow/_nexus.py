"""Names of Temporal's Nexus, so that imports of them do no harm; there is no Nexus here."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Generic, NoReturn

from wfcore.exceptions import UnimplementedError
from wfcore.workflow._types import AnyType, ReturnType

_REFUSED = (
    "there is no Nexus here: call the other service from an activity, or start a workflow of its "
    "own task queue as a child"
)


class NexusOperationCancellationType(IntEnum):
    """What cancelling a Nexus operation would do."""

    ABANDON = 1
    TRY_CANCEL = 2
    WAIT_REQUESTED = 3
    WAIT_COMPLETED = 0


class NexusOperationHandle(Generic[ReturnType]):
    """A started Nexus operation; there are none."""


class NexusClient(Generic[AnyType]):
    """A Nexus service; there are none."""


def create_nexus_client(*, service: type[Any] | str, endpoint: str) -> NoReturn:
    """Refused.

    Raises:
        UnimplementedError: always.
    """
    raise UnimplementedError(f"can't call {service!r} at {endpoint!r}: {_REFUSED}")
