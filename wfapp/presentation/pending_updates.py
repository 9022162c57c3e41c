"""Updates of a run that have not ended: admitted ones wait for a worker, accepted ones run."""

from dataclasses import dataclass
from datetime import datetime

from wfcore.history.state import MutableState
from wfcore.protocol import events as ev
from wfcore.protocol.enums import UpdateWorkflowExecutionLifecycleStage as Stage
from wfcore.protocol.updates import Request
from wfcore.service.ports import RunKey, Store


@dataclass(frozen=True, kw_only=True, slots=True)
class PendingUpdate:
    """An update that has not ended. A run has few at a time, by its limits."""

    update_id: str
    name: str
    stage: Stage
    #: when it was accepted
    since: datetime | None = None


def pending_updates(store: Store, key: RunKey, state: MutableState) -> list[PendingUpdate]:
    """Those of a run, accepted ones first, each in the order of its stage; one query for each."""
    if not state.is_open:
        return []
    accepted = (
        _accepted(store, key, update_id, event_id)
        for update_id, event_id in state.recorded.open_updates.items()
    )
    admitted = (_admitted(store, key, update_id) for update_id in state.volatile.updates)
    return [*accepted, *admitted]


def _accepted(store: Store, key: RunKey, update_id: str, event_id: int) -> PendingUpdate:
    request, since = None, None
    for event in store.read_events(key, first=event_id, last=event_id):
        since = event.event_time
        if isinstance(event.attributes, ev.WorkflowExecutionUpdateAccepted):
            request = event.attributes.accepted_request
    return PendingUpdate(
        update_id=update_id, name=_name(request), stage=Stage.ACCEPTED, since=since
    )


def _admitted(store: Store, key: RunKey, update_id: str) -> PendingUpdate:
    row = store.read_update(key, update_id)
    request = row.request if row is not None else None
    return PendingUpdate(update_id=update_id, name=_name(request), stage=Stage.ADMITTED)


def _name(request: Request | None) -> str:
    return request.input.name if request is not None and request.input is not None else ""
