"""The live account: one line for each thing that happens, in the words of its domain."""

import base64
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

#: a terminal gets colours, a file doesn't
STYLES = {"fault": "\033[1;31m", "head": "\033[1m", "end": "\033[32m", "plain": ""}
RESET = "\033[0m"
NAME_WIDTH = 14

Event = Mapping[str, Any]


class Account:
    """Prints lines with the seconds since the begin; several threads may tell."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._lock = threading.Lock()
        self._colours = sys.stdout.isatty()

    def head(self, text: str) -> None:
        """Begin a part."""
        self._write("", "head")
        self._write(text, "head")

    def say(self, text: str = "") -> None:
        self._write(text)

    def tell(self, who: str, what: str, style: str = "plain") -> None:
        """Something happened, now."""
        self._write(f"{time.monotonic() - self._begin:6.1f} s  {who:<{NAME_WIDTH}} {what}", style)

    def _write(self, text: str, style: str = "plain") -> None:
        if self._colours and STYLES[style]:
            text = f"{STYLES[style]}{text}{RESET}"
        with self._lock:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()


class Follower:
    """Reads one run's history as it grows and tells what is new."""

    def __init__(self, name: str, account: Account, history: Callable[[], list[Event]]) -> None:
        self.closed = False
        self.done: list[str] = []
        self._name = name
        self._account = account
        self._history = history
        self._seen = 0
        self._activities: dict[str, str] = {}

    def look(self) -> None:
        events = self._history()
        for event in events[self._seen :]:
            for text in self._words(event):
                style = "end" if self.closed else "plain"
                self._account.tell(self._name, text, style)
        self._seen = len(events)

    def _words(self, event: Event) -> Iterator[str]:
        kind = event["eventType"].removeprefix("EVENT_TYPE_")
        attributes: Mapping[str, Any] = next(
            (value for key, value in event.items() if key.endswith("EventAttributes")), {}
        )
        if kind == "ACTIVITY_TASK_SCHEDULED":
            self._activities[event["eventId"]] = _named(attributes)
        elif kind.startswith("ACTIVITY_TASK_"):
            name = self._activities[attributes["scheduledEventId"]]
            yield from self._activity_words(kind, name, attributes)
        elif kind == "TIMER_STARTED":
            yield f"waits, at most {attributes['startToFireTimeout']}"
        elif kind == "TIMER_FIRED":
            yield "nobody answered in time"
        elif kind == "WORKFLOW_EXECUTION_SIGNALED":
            yield f"signal: {attributes['signalName']}"
        elif kind.startswith("WORKFLOW_EXECUTION_"):
            self.closed = kind != "WORKFLOW_EXECUTION_STARTED"
            yield kind.removeprefix("WORKFLOW_EXECUTION_").lower().replace("_", " ")

    def _activity_words(self, kind: str, name: str, attributes: Mapping[str, Any]) -> Iterator[str]:
        if kind == "ACTIVITY_TASK_STARTED":
            attempt = int(attributes.get("attempt", 1))
            if attempt > 1:
                before = attributes.get("lastFailure", {}).get("message", "")
                yield f"{name}: attempt {attempt} came through, the one before ended with: {before}"
        else:
            self.done.append(name)
            yield f"{name} {kind.removeprefix('ACTIVITY_TASK_').lower()}"


def _named(scheduled: Mapping[str, Any]) -> str:
    """An activity's name, with its argument if that is a number."""
    name: str = scheduled["activityType"]["name"].rpartition(".")[2]
    payloads = scheduled.get("input", {}).get("payloads", [])
    argument = base64.b64decode(payloads[0].get("data", "")).decode() if payloads else ""
    return f"{name}({argument})" if argument.isdigit() else name
