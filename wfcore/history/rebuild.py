"""The recorded state from the events alone: the same function applies an event live and here."""

from collections.abc import Iterable

from wfcore.history.state import MutableState, Recorded
from wfcore.protocol.events import HistoryEvent


def rebuild(
    events: Iterable[HistoryEvent], *, namespace: str, workflow_id: str, run_id: str
) -> Recorded:
    """What follows from a history.

    Raises:
        ValueError: the history doesn't begin with WORKFLOW_EXECUTION_STARTED, or ids have gaps.
    """
    raise NotImplementedError


def visible_tail(state: MutableState) -> list[HistoryEvent]:
    """SCHEDULED and STARTED of a transient workflow task, which readers of an open run see behind
    the stored events although they are written on success only."""
    raise NotImplementedError
