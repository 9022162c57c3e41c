"""Event groups: which commands, and so which events, belong together when a history is shown.

A command carries the groups of the scopes it was issued in, and the signal or update whose handler
issued it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from wfcore.converter import PayloadConverter
from wfcore.protocol.metadata import (
    EventGroupMarker,
    EventGroupMarkerInboundEvent,
    EventGroupMarkerInboundUpdate,
    EventGroupMarkerLabel,
)
from wfcore.workflow import _runtime


@dataclass(frozen=True)
class EventGroup:
    """A label for commands; made by `create_event_group`, never by hand."""

    id: str
    marker: EventGroupMarker

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Attach the group to each command issued in the block, by its tasks too; scopes nest."""
        _runtime.current()
        token = _active.set(_active.get().with_group(self))
        try:
            yield
        finally:
            _active.reset(token)


@dataclass(frozen=True)
class _Active:
    """The groups of the code that runs: its handler's cause first, then those it entered."""

    inbound: EventGroupMarker | None = None
    entered: tuple[EventGroup, ...] = ()

    def with_group(self, group: EventGroup) -> _Active:
        others = tuple(other for other in self.entered if other.id != group.id)
        return _Active(self.inbound, (*others, group))


_NONE = _Active()
_active: ContextVar[_Active] = ContextVar("wfcore_event_groups", default=_NONE)


def create_event_group(id: str, *, label: str | None = None) -> EventGroup:  # noqa: A002
    """Make a group of commands, for `event_groups=` or as a scope.

    Args:
        id: names the group inside the run; stored as plain text, so nothing secret.
        label: text for people.

    Raises:
        ValueError: the id or the label is empty.
    """
    _runtime.current()
    if not id:
        raise ValueError("Event group id cannot be empty")
    if label is not None and not label:
        raise ValueError("Event group label cannot be empty")
    payload = None if label is None else PayloadConverter.default.to_payload(label)
    return EventGroup(id, EventGroupMarker(label=EventGroupMarkerLabel(id=id, label=payload)))


def enter_signal(event_id: int) -> None:
    """From here on this context handles the signal of that event."""
    marker = EventGroupMarker(inbound_event=EventGroupMarkerInboundEvent(inbound_event_id=event_id))
    _active.set(_Active(marker))


def enter_update(update_id: str) -> None:
    """From here on this context handles that update."""
    marker = EventGroupMarker(
        inbound_update=EventGroupMarkerInboundUpdate(inbound_update_id=update_id)
    )
    _active.set(_Active(marker))


def markers(groups: Sequence[EventGroup] | None = None) -> tuple[EventGroupMarker, ...]:
    """The markers of a command that is issued now with these groups of its own.

    Raises:
        TypeError: a group is none that `create_event_group` made.
    """
    active = _active.get()
    if not groups and active is _NONE:
        return ()
    for group in groups or ():
        if not isinstance(group, EventGroup):
            raise TypeError("Event groups must be created with workflow.create_event_group()")
        active = active.with_group(group)
    inbound = (active.inbound,) if active.inbound else ()
    return (*inbound, *(group.marker for group in active.entered))
