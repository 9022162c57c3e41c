"""Django signals of runs, sent after the commit that makes them true; `docs/reference/signals.md`.

They come in the process that made the change. A receiver's error is logged and breaks nobody; a
process that dies between commit and signal sends none.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.dispatch import Signal

from wfcore.history.change import Change
from wfcore.history.effects import Journal

logger = logging.getLogger(__name__)

#: namespace, workflow_id, run_id, workflow_type
run_started = Signal()
#: the same, and status: a `wfcore.protocol.enums.WorkflowExecutionStatus`
run_closed = Signal()
#: namespace, workflow_id, run_id, text: what was recorded for a run that had closed when it came
signal_undeliverable = Signal()

#: The journal's kind of an arrival that a closed run could not take.
LATE_ARRIVAL = "late_arrival"


def announcements(change: Change) -> Iterator[Callable[[], None]]:
    """What to call after the commit of a change to one run: nothing where nobody listens."""
    state = change.state
    names = {
        "namespace": state.recorded.namespace,
        "workflow_id": state.recorded.workflow_id,
        "run_id": state.recorded.run_id,
    }
    kind = {"workflow_type": state.recorded.workflow_type}
    if change.is_new and run_started.has_listeners():
        yield lambda: _send(run_started, **names, **kind)
    if change.closed and run_closed.has_listeners():
        status = state.recorded.status
        yield lambda: _send(run_closed, **names, **kind, status=status)
    late = [entry for entry in change.journal if entry.kind == LATE_ARRIVAL]
    if late:
        yield lambda: _tell_late(late)


def _tell_late(entries: Sequence[Journal]) -> None:
    for entry in entries:
        logger.warning(
            "a run closed before what was recorded for it arrived",
            extra={
                "action": "late_arrival",
                "namespace": entry.namespace,
                "workflow_id": entry.workflow_id,
                "run_id": entry.run_id,
                "what": entry.text,
            },
        )
        _send(
            signal_undeliverable,
            namespace=entry.namespace,
            workflow_id=entry.workflow_id,
            run_id=entry.run_id,
            text=entry.text,
        )


def _send(signal: Signal, **facts: Any) -> None:
    """Send to all, whatever one of them raises: Django logs it."""
    signal.send_robust(None, **facts)
