"""The one setting: `WORKFLOWS = {...}`, read lazily, checked once, into one frozen object.

All else of the app gets values from `config()` and reads no setting. Keys are the names of the
fields in upper case; groups (`TICKER`, `LIMITS`) are dictionaries within. What is wrong is told by
the system checks in words; using a wrong setting raises `ImproperlyConfigured`.
"""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from enum import StrEnum
from functools import cache
from typing import Any, get_type_hints

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from wfcore.history.limits import Limits
from wfcore.protocol.enums import IndexedValueType
from wfcore.service.host import Arrivals
from wfcore.service.ports import START_WAIT

SETTING = "WORKFLOWS"
#: Types of search attributes by name.
_TYPES = Mapping[str, IndexedValueType] | None
_TYPES_WANTED = "None, or a dictionary of names and types: " + ", ".join(
    repr(kind.name.title().replace("_", "")) for kind in IndexedValueType if kind
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ticker:
    """What looks for work that has come due."""

    #: every worker process group runs a ticker thread; False where beat's scheduler does it
    thread: bool = True
    #: the longest sleep between two looks, though nothing is known to come due
    interval: timedelta = timedelta(seconds=1)
    #: rows that one look takes on at most
    batch: int = 100
    #: how long a tick may hold celery-beat
    budget: timedelta = timedelta(milliseconds=200)


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Every key of the setting, with its default. `docs/reference/settings.md` explains them."""

    #: alias of the database that holds the workflows
    database: str = "default"
    #: namespace of clients that name none; made by `migrate`
    namespace: str = "default"
    #: how long closed runs of that namespace are kept, from the moment it is made
    retention: timedelta = timedelta(days=30)
    #: task queue of who names none; empty: the Celery app's `task_default_queue`
    task_queue: str = ""
    #: put in front of every Celery queue's name, for apps that share a broker
    queue_prefix: str = ""
    #: what histories call a worker; empty: process id and host name
    identity: str = ""
    #: what histories call the code of this process's workers; empty: nothing
    build_id: str = ""

    #: a worker process that was not heard of for this long is dead, and its claims are lost
    lease: timedelta = timedelta(seconds=10)
    #: how long the tasks of a worker that is told to stop keep their claims; then others begin anew
    drain: timedelta = timedelta(days=3650)
    #: a worker of a queue also takes its workflow tasks; False where others do
    workflow_queues: bool = True
    #: local activities that a worker process runs at once, each in a thread
    local_activities: int = 20
    #: a worker goes on with an activity that its workflow task schedules, without a message
    eager_activities: bool = True
    #: an activity's heartbeats are sent at least this often, whatever its heartbeat timeout
    max_heartbeat_throttle: timedelta = timedelta(seconds=60)
    #: how long a transaction waits for another one that holds the same run or workflow id
    lock_wait: timedelta = START_WAIT
    #: how long a client's call outside of a transaction waits for a database that is away
    database_wait: timedelta = timedelta(seconds=1)
    #: how facts for a run meet its commits: without its lock where they can, or always with it
    arrivals: Arrivals = Arrivals.OPTIMISTIC
    #: connecting and sending to the broker may each take this long
    publish_timeout: timedelta = timedelta(seconds=1)
    #: after a failed publication nothing is published for this long; the ticker sends later
    publish_pause: timedelta = timedelta(seconds=5)

    #: dotted path of a `wfcore.converter.DataConverter`, or of what makes one when it is called
    data_converter: str = "wfcore.converter.default"
    #: dotted path of a `PayloadCodec` for it, or of its class; empty: the converter's own
    payload_codec: str = ""

    ticker: Ticker = field(default_factory=Ticker)
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """What is wrong with one key; `unknown` if there is no such key."""

    key: str
    text: str
    hint: str
    unknown: bool = False


@cache
def config() -> Config:
    """The setting as it stands.

    Raises:
        ImproperlyConfigured: a key is unknown, or its value can't be used; the text says which.
    """
    value = getattr(settings, SETTING, {})
    for problem in problems(value):
        raise ImproperlyConfigured(f"{SETTING}: {problem.text} {problem.hint}")
    built: Config = _build(Config, value)
    return built


def problems(value: object) -> list[Problem]:
    """All that is wrong with a value of the setting."""
    return list(_problems(Config, value, ""))


def keys(kind: type[Any] = Config, prefix: str = "") -> list[str]:
    """All keys, those of groups with the group's name and a dot in front."""
    found: list[str] = []
    for name, hint in _hints(kind).items():
        key = f"{prefix}{name.upper()}"
        found += keys(hint, f"{key}.") if _is_group(hint) else [key]
    return found


def _forget(*, setting: str, **_: Any) -> None:
    if setting == SETTING:
        config.cache_clear()


setting_changed.connect(_forget, dispatch_uid="wfapp.conf")


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Ticker | Limits)


def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def _build(kind: type[Any], value: Mapping[str, Any]) -> Any:
    given: dict[str, Any] = {}
    for key, item in value.items():
        name = key.lower()
        hint = _hints(kind)[name]
        if _is_group(hint):
            given[name] = _build(hint, item)
        else:
            given[name] = _read(hint, item)
    return kind(**given)


def _read(hint: Any, item: Any) -> Any:
    if hint is Arrivals:
        return Arrivals(item)
    if hint == _TYPES and item is not None:
        return {name: IndexedValueType.from_wire(kind) for name, kind in item.items()}
    return item


def _problems(kind: type[Any], value: object, prefix: str) -> Iterator[Problem]:
    place = f"{SETTING}[{prefix[:-1]!r}]" if prefix else SETTING
    if not isinstance(value, Mapping):
        yield Problem(
            key=prefix[:-1],
            text=f"{place} is {type(value).__name__}.",
            hint="It must be a dictionary; leave it out to have the defaults.",
        )
        return
    known = {name.upper(): (name, hint) for name, hint in _hints(kind).items()}
    for key, item in value.items():
        if key not in known:
            near = difflib.get_close_matches(str(key).upper(), known, n=1, cutoff=0.5)
            yield Problem(
                key=f"{prefix}{key}",
                text=f"{place} has the unknown key {key!r}.",
                hint=f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}.",
                unknown=True,
            )
            continue
        name, hint = known[key]
        if _is_group(hint):
            yield from _problems(hint, item, f"{prefix}{key}.")
        elif wrong := _wrong(hint, item):
            default = getattr(kind(), name)
            yield Problem(
                key=f"{prefix}{key}",
                text=f"{place} has {key!r}: {item!r}.",
                hint=f"It must be {wrong}; the default is {default!r}.",
            )


def _are_types(item: Any) -> bool:
    try:
        for name, kind in item.items():
            if not (isinstance(name, str) and IndexedValueType.from_wire(kind)):
                return False
    except (AttributeError, ValueError):
        return False
    return True


def _wrong(hint: Any, item: Any) -> str:
    """What the value should have been; empty if it is right."""
    if hint is bool:
        return "" if isinstance(item, bool) else "True or False"
    if hint is int:
        right = isinstance(item, int) and not isinstance(item, bool) and item > 0
        return "" if right else "a whole number above 0"
    if hint is timedelta:
        right = isinstance(item, timedelta) and item > timedelta()
        return "" if right else "a positive datetime.timedelta, such as timedelta(seconds=10)"
    if hint is str:
        return "" if isinstance(item, str) else "a string"
    if hint == _TYPES:
        return "" if item is None or _are_types(item) else _TYPES_WANTED
    if issubclass(hint, StrEnum):
        return "" if item in list(hint) else f"one of {', '.join(repr(str(each)) for each in hint)}"
    raise TypeError(f"no rule for settings of type {hint!r}")
