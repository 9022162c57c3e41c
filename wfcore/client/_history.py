"""The history of a run as a value that can be kept in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from wfcore.protocol.events import HistoryEvent, WorkflowExecutionStarted
from wfcore.protocol.json_form import history_from_json, history_to_json


class WorkflowHistoryEventFilterType(IntEnum):
    """Which events are asked for."""

    ALL_EVENT = 1
    CLOSE_EVENT = 2  # the last event of a closed run


@dataclass(frozen=True)
class WorkflowHistory:
    """A workflow's id, which a history need not hold, and its events."""

    workflow_id: str
    events: Sequence[HistoryEvent]

    @property
    def run_id(self) -> str:
        """The id of the run that wrote it.

        Raises:
            RuntimeError: there is no first event, or it isn't the start.
        """
        if not self.events:
            raise RuntimeError("No events")
        first = self.events[0].attributes
        if not isinstance(first, WorkflowExecutionStarted):
            raise RuntimeError("First event is not workflow start")
        return first.original_execution_run_id

    @staticmethod
    def from_json(workflow_id: str, history: str | Mapping[str, Any]) -> WorkflowHistory:
        """Read a history in Temporal's JSON, as text or parsed.

        Older spellings are read too: names of events in CamelCase, numbers as numbers.

        Raises:
            ValueError: it is no history, or an event is malformed.
        """
        parsed = json.loads(history) if isinstance(history, str) else history
        return WorkflowHistory(workflow_id, history_from_json(parsed))

    def to_json(self) -> str:
        """The history as Temporal's tools export it."""
        return json.dumps(self.to_json_dict())

    def to_json_dict(self) -> dict[str, Any]:
        """The history as Temporal's tools export it, before it is made text."""
        return history_to_json(self.events)
