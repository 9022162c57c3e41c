"""The registry of cases: how the condition of a row is made, and the answer it leads to."""

from collections.abc import Callable, Iterable
from typing import Any

from tests.support.probing import Answer, Probe

Case = Callable[[Probe], Answer]

#: By request and condition, as they stand in `errors.json`.
CASES: dict[tuple[str, str], Case] = {}


def case(request: str, condition: str) -> Callable[[Case], Case]:
    """Register how a row's condition is made."""

    def register(make: Case) -> Case:
        add(request, condition, make)
        return make

    return register


def add(request: str, condition: str, make: Case) -> None:
    if (request, condition) in CASES:
        raise ValueError(f"two cases for {request}: {condition}")
    CASES[request, condition] = make


def add_each(
    request: str, rows: Iterable[tuple[str, Any]], make: Callable[[Probe, Any], Answer]
) -> None:
    """Register many conditions that differ in one value."""
    for condition, given in rows:
        add(request, condition, lambda probe, given=given: make(probe, given))
