"""One run with all that people want to see of it, read in a handful of queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from wfapp.presentation.diagnosis import Diagnosis, Evidence, diagnose, queues_of
from wfapp.presentation.pending_updates import PendingUpdate, pending_updates
from wfapp.presentation.queue_facts import queue_facts
from wfapp.presentation.values import Reader
from wfapp.presentation.words import failure_line
from wfcore.history.effects import Journal
from wfcore.history.state import InboxItem, MutableState, PendingActivity
from wfcore.protocol import events as ev
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.payloads import Memo, SearchAttributes
from wfcore.service import validation
from wfcore.service.ports import RunKey
from wfcore.service.workflow_service import WorkflowService

#: How far from the end of a history the failure of the last workflow task is looked for.
_TAIL = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class RunView:
    """A run at one moment. User data in it is decoded, or hidden from who may not see it."""

    key: RunKey
    now: datetime
    state: MutableState
    activities: Sequence[PendingActivity]
    inbox: Sequence[InboxItem]
    updates: Sequence[PendingUpdate]
    journal: Sequence[Journal]
    memo: Memo
    search_attributes: SearchAttributes
    diagnosis: Diagnosis


def load_run(
    service: WorkflowService, namespace: str, workflow_id: str, run_id: str, reader: Reader
) -> RunView:
    """A run, or the newest one of a workflow id.

    Raises:
        NotFoundError: there is none.
    """
    store = service.host.store
    state = store.read_state(namespace, workflow_id, run_id)
    if state is None:
        raise validation.not_found(workflow_id, run_id)
    key = RunKey(namespace=namespace, workflow_id=workflow_id, run_id=state.recorded.run_id)
    memo, search_attributes = store.read_visibility(key)
    activities = store.read_activities(key)
    inbox = store.read_inbox(key) if state.is_open else []
    return RunView(
        key=key,
        now=store.now(),
        state=state,
        activities=reader.messages(activities),
        inbox=reader.messages(inbox),
        updates=pending_updates(store, key, state),
        journal=store.read_journal(key),
        memo=reader.message(memo or Memo()),
        search_attributes=search_attributes or SearchAttributes(),
        diagnosis=_diagnose(service, key, state, activities, inbox),
    )


def explain(service: WorkflowService, namespace: str, workflow_id: str, run_id: str) -> Diagnosis:
    """Why a run is not moving.

    Raises:
        NotFoundError: there is no such run.
    """
    store = service.host.store
    state = store.read_state(namespace, workflow_id, run_id)
    if state is None:
        raise validation.not_found(workflow_id, run_id)
    key = RunKey(namespace=namespace, workflow_id=workflow_id, run_id=state.recorded.run_id)
    inbox = store.read_inbox(key) if state.is_open else []
    return _diagnose(service, key, state, store.read_activities(key), inbox)


def _diagnose(
    service: WorkflowService,
    key: RunKey,
    state: MutableState,
    activities: Sequence[PendingActivity],
    inbox: Sequence[InboxItem],
) -> Diagnosis:
    now = service.host.store.now()
    queues = queue_facts(queues_of(state, activities), now) if state.is_open else {}
    return diagnose(
        Evidence(
            state=state,
            now=now,
            activities=activities if state.is_open else (),
            inbox=inbox,
            queues=queues,
            task_failure=_task_failure(service, key, state),
        )
    )


def _task_failure(service: WorkflowService, key: RunKey, state: MutableState) -> str:
    """The message of the failing attempt that stands in the history: the first one does."""
    if not state.volatile.task_problems:
        return ""
    tail = service.host.store.read_events(key, limit=_TAIL, reverse=True)
    return next((text for event in tail if (text := _failure(event))), "")


def _failure(event: HistoryEvent) -> str:
    attributes = event.attributes
    return failure_line(attributes.failure) if isinstance(attributes, ev.WorkflowTaskFailed) else ""
