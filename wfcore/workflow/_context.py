"""What workflow code asks about its run: facts, time, chance, memo, patches.

Everything here comes from the history, so a replay gets the same answers.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from random import Random
from typing import Any, overload

from wfcore.common import (
    UNSET,
    MetricMeter,
    SearchAttributes,
    SearchAttributeUpdate,
)
from wfcore.converter import PayloadConverter
from wfcore.workflow import _runtime
from wfcore.workflow._event_groups import EventGroup
from wfcore.workflow._info import Info, UpdateInfo
from wfcore.workflow._types import AnyType, ParamType

_update_info: ContextVar[UpdateInfo | None] = ContextVar("wfcore_update_info", default=None)


def in_workflow() -> bool:
    """Whether the caller runs inside a workflow."""
    return _runtime.maybe_current() is not None


def info() -> Info:
    """The facts of the running workflow."""
    return _runtime.current().info()


def instance() -> Any:
    """The object of the running workflow's class."""
    return _runtime.current().workflow_object


def current_update_info() -> UpdateInfo | None:
    """The update that is being handled, in its handler and the tasks that this started."""
    return _update_info.get()


def enter_update(update: UpdateInfo) -> None:
    """From here on this context handles that update."""
    _update_info.set(update)


def cancellation_reason() -> str | None:
    """Why cancelling this workflow was asked for; may be empty. None if it was not asked for."""
    return _runtime.current().cancellation_reason


def is_failure_exception(err: BaseException) -> bool:
    """Whether this exception would fail the workflow; any other fails only the workflow task."""
    return _runtime.current().is_failure_exception(err)


def payload_converter() -> PayloadConverter:
    """The converter that knows the running workflow's context."""
    return _runtime.current().payload_converter


def metric_meter() -> MetricMeter:
    """A meter that records nothing on replay."""
    return _runtime.current().metric_meter


def extern_functions() -> Mapping[str, Callable[..., Any]]:
    """Functions that interceptors handed in."""
    return _runtime.current().extern_functions


# --- time ---------------------------------------------------------------------------------------


def now() -> datetime:
    """The workflow's time, in UTC: when the current workflow task began."""
    return datetime.fromtimestamp(time(), UTC)


def time() -> float:
    """`now` in seconds since the epoch."""
    return time_ns() / 1e9


def time_ns() -> int:
    """`now` in nanoseconds since the epoch."""
    return _runtime.current().time_ns


# --- chance -------------------------------------------------------------------------------------


def random() -> Random:
    """A generator that gives the same numbers on replay; not for secrets."""
    return _runtime.current().random


def random_seed() -> int:
    """The seed of `random`."""
    return _runtime.current().seed


def register_random_seed_callback(callback: Callable[[int], None]) -> None:
    """Be called with the new seed when a reset changes it."""
    _runtime.current().on_new_seed(callback)


def new_random(name: str | None = None) -> Random:
    """A further generator, seeded anew whenever the workflow's seed changes.

    Args:
        name: makes the numbers differ from those of `random` and of other names.
    """

    def seed_of(seed: int) -> int | str:
        return seed if name is None else f"{seed}:{name}"

    made = Random(seed_of(random_seed()))  # noqa: S311 - must be repeatable
    register_random_seed_callback(lambda seed: made.seed(seed_of(seed)))
    return made


def uuid4() -> uuid.UUID:
    """A random UUID that is the same on replay; not for secrets."""
    return uuid.UUID(int=random().getrandbits(128), version=4)


def uuid7() -> uuid.UUID:
    """A UUID that sorts by workflow time and is the same on replay; not for secrets."""
    milliseconds = (time_ns() // 1_000_000) & 0xFFFF_FFFF_FFFF
    generator = random()
    high, low = generator.getrandbits(12), generator.getrandbits(62)
    version, variant = 0x7, 0b10
    return uuid.UUID(int=milliseconds << 80 | version << 76 | high << 64 | variant << 62 | low)


# --- memo, search attributes, what the run before left ------------------------------------------


def memo() -> Mapping[str, Any]:
    """The memo, decoded without type hints."""
    return _runtime.current().memo()


@overload
def memo_value(key: str, default: Any = UNSET) -> Any: ...


@overload
def memo_value(key: str, *, type_hint: type[ParamType]) -> ParamType: ...


@overload
def memo_value(
    key: str, default: AnyType, *, type_hint: type[ParamType]
) -> AnyType | ParamType: ...


def memo_value(key: str, default: Any = UNSET, *, type_hint: Any = None) -> Any:
    """One entry of the memo, decoded by the hint.

    Raises:
        KeyError: there is no such entry and no default is given.
    """
    return _runtime.current().memo_value(key, default, type_hint)


def upsert_memo(
    updates: Mapping[str, Any], *, event_groups: Sequence[EventGroup] | None = None
) -> None:
    """Change entries of the memo; None removes one, what is not named stays."""
    _runtime.current().upsert_memo(updates, event_groups)


def upsert_search_attributes(
    attributes: SearchAttributes | Sequence[SearchAttributeUpdate[Any]],
    *,
    event_groups: Sequence[EventGroup] | None = None,
) -> None:
    """Change search attributes.

    Args:
        attributes: updates that keys made, `KEY.value_set(...)` or `KEY.value_unset()`; or, in
            the old form, lists of values by name.
        event_groups: groups of this command.
    """
    if attributes:
        _runtime.current().upsert_search_attributes(attributes, event_groups)


def has_last_completion_result() -> bool:
    """Whether the run before, of a cron or schedule, left a result."""
    return _runtime.current().has_last_completion_result()


@overload
def get_last_completion_result() -> Any | None: ...


@overload
def get_last_completion_result(type_hint: type[ParamType]) -> ParamType | None: ...


def get_last_completion_result(type_hint: Any = None) -> Any | None:
    """The result of the run before; None if there is none or it was None."""
    return _runtime.current().last_completion_result(type_hint)


def get_last_failure() -> BaseException | None:
    """The failure of the run before, or of the attempt before."""
    return _runtime.current().last_failure()


def get_current_details() -> str:
    """The text that is shown for the running workflow."""
    return _runtime.current().current_details


def set_current_details(description: str) -> None:
    """Change the text that is shown for the running workflow; Markdown, several lines."""
    _runtime.current().set_current_details(description)


# --- changed code -------------------------------------------------------------------------------


def patched(id: str, *, event_groups: Sequence[EventGroup] | None = None) -> bool:  # noqa: A002
    """Whether to run the new code: yes for new runs, and where the history has this patch.

    Example:
        ``if workflow.patched("ship-before-charge"): ...  # new`` and in ``else`` the old code.
    """
    return _runtime.current().patch(id, deprecated=False, event_groups=event_groups)


def deprecate_patch(
    id: str,  # noqa: A002 - Temporal's name
    *,
    event_groups: Sequence[EventGroup] | None = None,
) -> None:
    """Say that only the new code is left, once no run needs the old one any more."""
    _runtime.current().patch(id, deprecated=True, event_groups=event_groups)
