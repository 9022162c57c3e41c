"""Histories as they are exported: Temporal's JSON, read by short names.

history.kinds == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED"]
history.only("ACTIVITY_TASK_STARTED")["attempt"] == 3
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_PREFIX = "EVENT_TYPE_"
_ATTRIBUTES = "EventAttributes"


@dataclass(frozen=True)
class Event:
    """One event; `event["attempt"]` is an attribute, None when it is absent, as zeros are."""

    raw: Mapping[str, Any]

    @property
    def id(self) -> int:
        return int(self.raw["eventId"])

    @property
    def kind(self) -> str:
        """The type without its prefix."""
        return str(self.raw["eventType"]).removeprefix(_PREFIX)

    @property
    def time(self) -> datetime:
        return datetime.fromisoformat(self.raw["eventTime"])

    @property
    def attributes(self) -> Mapping[str, Any]:
        found: Mapping[str, Any]
        (found,) = [value for name, value in self.raw.items() if name.endswith(_ATTRIBUTES)]
        return found

    def __getitem__(self, name: str) -> Any:
        return self.attributes.get(name)

    def values(self, name: str) -> list[Any]:
        """The payloads of an attribute, decoded."""
        return decoded(self.attributes.get(name))


class History(Sequence[Event]):
    """The events of one run."""

    def __init__(self, exported: Mapping[str, Any]) -> None:
        self.exported = exported
        self._events = [Event(raw) for raw in exported["events"]]

    def __getitem__(self, index: Any) -> Any:
        return self._events[index]

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and self.exported == other.exported

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "\n".join(f"{each.id} {each.kind} {dict(each.attributes)}" for each in self)

    @property
    def kinds(self) -> list[str]:
        """The types of all events."""
        return [event.kind for event in self]

    def of(self, kind: str) -> list[Event]:
        """The events of a type."""
        return [event for event in self if event.kind == kind]

    def only(self, kind: str) -> Event:
        """The one event of a type."""
        found = self.of(kind)
        assert len(found) == 1, f"{len(found)} events {kind} in\n{self!r}"
        return found[0]


#: the types that close a run
CLOSING = frozenset(
    f"WORKFLOW_EXECUTION_{end}"
    for end in ("COMPLETED", "FAILED", "CANCELED", "TERMINATED", "CONTINUED_AS_NEW", "TIMED_OUT")
)


def faults(history: History, status: str) -> list[str]:
    """What no history may show: gaps, another beginning, a closing event elsewhere than last."""
    found = []
    if [event.id for event in history] != list(range(1, len(history) + 1)):
        found.append(f"ids {[event.id for event in history]}")
    if history.kinds[0] != "WORKFLOW_EXECUTION_STARTED":
        found.append(f"begins with {history.kinds[0]}")
    if any(kind in CLOSING for kind in history.kinds[:-1]):
        found.append("goes on behind its end")
    last = history.kinds[-1]
    if status != (last.removeprefix("WORKFLOW_EXECUTION_") if last in CLOSING else "RUNNING"):
        found.append(f"{status}, and ends with {last}")
    return found


def decoded(payloads: Mapping[str, Any] | None) -> list[Any]:
    """The values of payloads in their JSON form; what is no JSON stays bytes."""
    found = []
    for payload in (payloads or {}).get("payloads", ()):
        encoding = base64.b64decode(payload["metadata"]["encoding"])
        data = base64.b64decode(payload.get("data", ""))
        if encoding == b"binary/null":
            found.append(None)
        else:
            found.append(json.loads(data) if encoding.startswith(b"json/") else data)
    return found
