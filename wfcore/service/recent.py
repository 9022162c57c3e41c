"""What this process has just committed, so that it need not be read again.

Events never change once they are committed. A claimed activity is believed only where the store
compares its stamp when it is written.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from wfcore.history.state import PendingActivity
from wfcore.protocol.events import HistoryEvent

RUNS = 256
EVENTS = 64
#: Bytes of history that are kept of a run, at most.
BYTES = 64 * 1024
ACTIVITIES = 1000


@dataclass(kw_only=True, slots=True)
class _Tail:
    """The last events of a run that were written here, without a gap."""

    next_event_id: int
    history_bytes: int
    bytes: int = 0
    events: list[HistoryEvent] = field(default_factory=list)


class Recent:
    """Kept in memory by all threads of a process; bounded in runs, events and bytes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tails: OrderedDict[str, _Tail] = OrderedDict()
        self._activities: OrderedDict[tuple[str, int], PendingActivity] = OrderedDict()

    def wrote(self, run_id: str, events: Sequence[HistoryEvent], history_bytes: int) -> None:
        """These events have been committed, and the history has this size now."""
        with self._lock:
            before = self._tails.pop(run_id, None)
            tail = _Tail(next_event_id=events[-1].event_id + 1, history_bytes=history_bytes)
            if before is not None and before.next_event_id == events[0].event_id:
                tail.events = [*before.events, *events]
                tail.bytes = before.bytes + history_bytes - before.history_bytes
            elif history_bytes <= BYTES:
                tail.events = list(events)
                tail.bytes = history_bytes
            if tail.bytes > BYTES or len(tail.events) > EVENTS:
                tail.events, tail.bytes = [], 0
            self._tails[run_id] = tail
            while len(self._tails) > RUNS:
                self._tails.popitem(last=False)

    def events(self, run_id: str, first: int, last: int) -> list[HistoryEvent] | None:
        """The events from `first` to `last`; None unless all of them are known."""
        with self._lock:
            tail = self._tails.get(run_id)
            kept = tail.events if tail is not None else []
            if not kept or first < kept[0].event_id or last > kept[-1].event_id:
                return None
            offset = kept[0].event_id
            return kept[first - offset : last - offset + 1]

    def claimed(self, row: PendingActivity) -> None:
        """This process has claimed an activity."""
        with self._lock:
            self._activities[(row.run_id, row.scheduled_event_id)] = row
            while len(self._activities) > ACTIVITIES:
                self._activities.popitem(last=False)

    def take_claimed(self, run_id: str, event_id: int, attempt: int) -> PendingActivity | None:
        """The row of an attempt that was claimed here, once."""
        with self._lock:
            row = self._activities.pop((run_id, event_id), None)
        return row if row is not None and row.attempt == attempt else None
