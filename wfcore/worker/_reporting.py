"""Reporting a task's outcome to the service: tried again while the service is out of reach."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from wfcore.exceptions import (
    AbortedError,
    NotFoundError,
    ResourceExhaustedError,
    RPCError,
    UnavailableError,
)

_T = TypeVar("_T")

_log = logging.getLogger(__name__)
_PASSING = (UnavailableError, ResourceExhaustedError, AbortedError)
_FIRST_WAIT_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 5.0
_WAITS = 8  # 0.1 + 0.2 + ... + 5 + 5: some sixteen seconds


def report(
    what: str, call: Callable[[], _T], *, sleep: Callable[[float], None] = time.sleep
) -> _T | None:
    """Make the call; its answer, or None if the service didn't take it.

    An outcome that comes too late is refused and only logged: a time limit has ended the attempt.
    So is one that can't be delivered, since then a time limit will end the attempt.
    """
    wait_seconds = _FIRST_WAIT_SECONDS
    for remaining in range(_WAITS, -1, -1):
        try:
            return call()
        except NotFoundError as err:
            _log.info("%s came too late: %s", what, err, extra={"action": "late_outcome"})
            return None
        except _PASSING as err:
            if not remaining:
                _log.error(
                    "%s could not be reported: %s", what, err, extra={"action": "outcome_lost"}
                )
                return None
            sleep(wait_seconds)
            wait_seconds = min(wait_seconds * 2, _LONGEST_WAIT_SECONDS)
        except RPCError:
            _log.exception("%s was refused", what, extra={"action": "outcome_refused"})
            return None
    return None
