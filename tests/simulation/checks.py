"""What histories of a Temporal server keep besides, by the judge of the conformance tests."""

from collections.abc import Sequence

from tests.support.replay_check import lint
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.json_form import history_to_json


def well_formed(events: Sequence[HistoryEvent]) -> list[str]:
    """What the structural lint finds in a history, in Temporal's JSON."""
    return lint(history_to_json(events))
