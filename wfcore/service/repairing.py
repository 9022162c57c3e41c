"""Repairs of runs: reset, which lets a run begin again from one of its workflow tasks."""

from collections.abc import Sequence

from wfcore.exceptions import StartContendedError
from wfcore.history import transition
from wfcore.history.change import Change
from wfcore.history.deadlines import next_deadline
from wfcore.history.requests import TerminateRun
from wfcore.history.resetting import ResetRun, check_point, reset
from wfcore.history.state import MutableState
from wfcore.protocol import events as ev
from wfcore.protocol.enums import ResetReapplyExcludeType as Exclude
from wfcore.protocol.enums import ResetReapplyType as Reapply
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.rpc.workflows import (
    ResetWorkflowExecutionRequest,
    ResetWorkflowExecutionResponse,
)
from wfcore.service import validation
from wfcore.service.host import Host
from wfcore.service.ports import (
    CurrentRun,
    CurrentRunChangedError,
    RunBusyError,
    RunKey,
    StaleActivityError,
    Transaction,
)
from wfcore.service.transacting import TRIES, load_change, save

#: Who has ended the run that was open.
IDENTITY = "history-resetter"


def reset_run(host: Host, request: ResetWorkflowExecutionRequest) -> ResetWorkflowExecutionResponse:
    """Make a run that goes on from an earlier workflow task of an open or closed one; the run of
    this workflow id that is open is terminated. Each call makes a run, whatever its request id.

    Raises:
        NotFoundError: there is no such run.
        InvalidArgumentError: the run can't be reset to this event, or the request asks for what is
            not supported.
        StartContendedError: other transactions were always first.
    """
    key = _checked(host, request)
    for _ in range(TRIES):
        try:
            with host.store.transaction(key.namespace, key.workflow_id, wait=host.start_wait) as tx:
                return ResetWorkflowExecutionResponse(run_id=_reset(host, tx, key, request))
        except (CurrentRunChangedError, StaleActivityError):
            continue
    raise StartContendedError(key.workflow_id, host.start_wait)


def _checked(host: Host, request: ResetWorkflowExecutionRequest) -> RunKey:
    """The run that is meant."""
    validation.namespace(host, request.namespace)
    target = validation.execution(request.workflow_execution)
    if not request.request_id:
        raise validation.fail("RequestId is not set on request.")
    validation.short(request.request_id, "RequestId", host.limits)
    for operation in request.post_reset_operations:
        if operation.signal_workflow is not None:
            name = "SignalWorkflow"
        elif operation.update_workflow_options is not None:
            name = "UpdateWorkflowOptions"
        else:
            continue
        raise validation.fail(
            f"unsupported post reset operation: *workflow.PostResetOperation_{name}_"
        )
    head = host.store.head(request.namespace, target.workflow_id, target.run_id)
    if head is None:
        raise validation.not_found(target.workflow_id, target.run_id)
    return head.key


def _reset(host: Host, tx: Transaction, key: RunKey, request: ResetWorkflowExecutionRequest) -> str:
    current = tx.current()
    if current is None:
        raise validation.not_found(key.workflow_id, key.run_id)
    state = _locked(host, tx, key, current)
    is_base = current.run_id == key.run_id
    base = state if is_base else tx.load(key.run_id)
    if base is None:
        raise CurrentRunChangedError(f"run {key.run_id} is gone; begin anew")
    run_id = host.ids.run_id(tx.now)
    events = host.store.read_events(key)
    check_point(events, request.workflow_task_finish_event_id)
    changes: list[Change] = []
    if not (is_base and state.is_open):
        changes.append(_noted(tx, base, run_id))
    if state.is_open:
        changes.append(_end(host, tx, state, request, run_id, is_base=is_base))
        if is_base:
            events += changes[-1].events
    made = _make(host, tx, base, _order(host, key, request, run_id, events))
    if is_base or state.is_open:
        changes[-1].next_run = made
    else:
        changes.append(made)
    for change in changes:
        save(host, tx, change)
    return run_id


def _make(host: Host, tx: Transaction, base: MutableState, order: ResetRun) -> Change:
    made = reset(tx.now, order, host.limits)
    # a start that is repeated finds the run that stands for the one it made
    made.state.volatile.create_request_id = base.volatile.create_request_id
    for event in made.events:
        attributes = event.attributes
        if isinstance(attributes, ev.WorkflowExecutionSignaled) and attributes.request_id:
            tx.seen_request(order.run_id, attributes.request_id)
    return made


def _noted(tx: Transaction, base: MutableState, run_id: str) -> Change:
    """A closed run that remembers which one was made of it."""
    base.volatile.reset_run_id = run_id
    return Change(state=base, now=tx.now, next_deadline=next_deadline(base))


def _locked(host: Host, tx: Transaction, key: RunKey, current: CurrentRun) -> MutableState:
    """The current run, which stays it."""
    try:
        state = tx.load(current.run_id)
        locked = tx.current(lock=True)
    except RunBusyError as error:
        raise StartContendedError(key.workflow_id, host.start_wait) from error
    if state is None or locked is None or locked.run_id != current.run_id:
        raise CurrentRunChangedError(f"run {current.run_id} is over; begin anew")
    return state


def _end(
    host: Host,
    tx: Transaction,
    state: MutableState,
    request: ResetWorkflowExecutionRequest,
    run_id: str,
    *,
    is_base: bool,
) -> Change:
    """Terminate the run that is open."""
    order = TerminateRun(
        reason=request.reason, identity=IDENTITY, reset_run_id=run_id, keeps_children=is_base
    )
    ended = load_change(tx, state, order)
    transition.apply(ended, order, host.limits)
    return ended


def _order(
    host: Host,
    key: RunKey,
    request: ResetWorkflowExecutionRequest,
    run_id: str,
    events: Sequence[HistoryEvent],
) -> ResetRun:
    excluded = set(request.reset_reapply_exclude_types)
    wanted = request.reset_reapply_type
    return ResetRun(
        namespace=key.namespace,
        workflow_id=key.workflow_id,
        base_run_id=key.run_id,
        run_id=run_id,
        reason=request.reason,
        events=events,
        later_runs=_later_runs(host, key, events),
        point=request.workflow_task_finish_event_id,
        signals=wanted is not Reapply.NONE and Exclude.SIGNAL not in excluded,
        updates=wanted in (Reapply.UNSPECIFIED, Reapply.ALL_ELIGIBLE)
        and Exclude.UPDATE not in excluded,
    )


def _later_runs(host: Host, key: RunKey, events: Sequence[HistoryEvent]) -> list[HistoryEvent]:
    """The events of the runs that have continued a run as new, in order."""
    found: list[HistoryEvent] = []
    while events and isinstance(events[-1].attributes, ev.WorkflowExecutionContinuedAsNew):
        next_run = events[-1].attributes.new_execution_run_id
        events = host.store.read_events(
            RunKey(namespace=key.namespace, workflow_id=key.workflow_id, run_id=next_run)
        )
        found += events
    return found
