"""Waiting for what another thread or process does; a test never sleeps for luck."""

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def wait_until(
    condition: Callable[[], Result], *, seconds: float = 20.0, what: str = "condition"
) -> Result:
    """Ask until the answer is true, and return it; fail with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain for: {what}")
        time.sleep(0.02)
    return answer
