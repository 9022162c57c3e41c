"""Patches: markers in the history say which side of a changed piece of code a run took."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from wfcore.converter import PayloadConverter
from wfcore.protocol import commands
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.metadata import EventGroupMarker
from wfcore.protocol.payloads import Payload, SearchAttributes
from wfcore.replay.flags import CoreFlag
from wfcore.replay.markers import CHANGE_VERSION, patch_marker, read_patch
from wfcore.replay.state import RunState

#: A search attribute's value that reaches this size isn't written; the marker alone counts.
_ATTRIBUTE_LIMIT_BYTES = 2048
_logger = logging.getLogger(__name__)


class Patches:
    """The patches of one run."""

    __slots__ = ("_answers", "_recorded", "_state")

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._recorded: set[str] = set()
        self._answers: dict[str, bool] = {}

    def announce(self, command_events: Iterable[HistoryEvent]) -> None:
        """Take note of the markers that the task which is about to be replayed recorded."""
        for event in command_events:
            found = read_patch(event.attributes)
            if found is not None:
                self._recorded.add(found.id)

    def ask(self, patch_id: str, *, deprecated: bool, groups: tuple[EventGroupMarker, ...]) -> bool:
        """Whether the patched code runs; the first answer stays that of the run."""
        state = self._state
        state.check_may_act("ask for a patch")
        known = self._answers.get(patch_id)
        if known is not None:
            return known
        answer = not state.is_replaying or patch_id in self._recorded
        self._answers[patch_id] = answer
        if answer:
            self._record(patch_id, deprecated=deprecated, groups=groups)
        return answer

    def _record(
        self, patch_id: str, *, deprecated: bool, groups: tuple[EventGroupMarker, ...]
    ) -> None:
        state = self._state
        state.commands.add(patch_marker(patch_id, deprecated=deprecated), None, None, groups)
        if state.flags.core(CoreFlag.UPSERT_ON_PATCH):
            self._upsert(patch_id, groups)

    def _upsert(self, patch_id: str, groups: tuple[EventGroupMarker, ...]) -> None:
        ids = sorted(name for name, answer in self._answers.items() if answer)
        payload = PayloadConverter.default.to_payload(ids)
        if len(payload.data) >= _ATTRIBUTE_LIMIT_BYTES:
            _logger.warning(
                "A patch is not shown in the search attributes, whose value would get too long",
                extra={"action": "patch_not_shown", "patch_id": patch_id},
            )
            return
        typed = Payload(metadata={**payload.metadata, "type": b"KeywordList"}, data=payload.data)
        fields = {CHANGE_VERSION: typed}
        self._state.commands.add(
            commands.UpsertWorkflowSearchAttributes(
                search_attributes=SearchAttributes(indexed_fields=fields)
            ),
            None,
            None,
            groups,
        )
