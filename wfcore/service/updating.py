"""Updates: admitted under the run's lock, answered by a worker's workflow task, waited for.

Who waits looks at what is committed, and looks again when he is told that something happened or
after a while. So the answer is found although the notice of it was lost, and by whoever asks with
the same id.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from wfcore.exceptions import (
    AbortedError,
    DeadlineExceededError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedCause,
    ResourceExhaustedError,
    WaitInsideTransactionError,
    WorkflowNotReadyError,
)
from wfcore.history import transition
from wfcore.history.requests import AdmitUpdate
from wfcore.history.updates import Update
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import UpdateWorkflowExecutionLifecycleStage as Stage
from wfcore.protocol.events import WorkflowExecutionUpdateCompleted
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.protocol.rpc.updates import (
    PollWorkflowExecutionUpdateRequest,
    PollWorkflowExecutionUpdateResponse,
    UpdateWorkflowExecutionRequest,
    UpdateWorkflowExecutionResponse,
)
from wfcore.protocol.updates import Meta, Outcome, Request, UpdateRef, WaitPolicy
from wfcore.service import validation
from wfcore.service.host import Host
from wfcore.service.ports import RunKey
from wfcore.service.transacting import TRIES, load_change, save
from wfcore.service.validation import fail

#: How long a call waits for the stage that it asks for before it tells the one reached.
LONG_POLL = timedelta(seconds=20)

_RUN_ENDED = Failure(
    message="Workflow Update failed because the Workflow completed before the Update completed.",
    source="Server",
    application_failure_info=ApplicationFailureInfo(
        type="AcceptedUpdateCompletedWorkflow", non_retryable=True
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Progress:
    """How far an update has come."""

    stage: Stage
    version: int
    outcome: Outcome | None = None


def update(
    host: Host, request: UpdateWorkflowExecutionRequest, timeout: timedelta | None = None
) -> UpdateWorkflowExecutionResponse:
    """Send an update, or find the one of this id, and wait; `timeout` is the caller's deadline.

    Raises:
        WaitInsideTransactionError: a worker would not see what the caller's transaction wrote.
        NotFoundError: there is no such run, or it is closed and has no such update.
        FailedPreconditionError, ResourceExhaustedError: the run takes no more updates.
        WorkflowNotReadyError: the run's workflow task fails.
        DeadlineExceededError: the stage was not reached in the caller's time.
    """
    refuse_to_wait(host, "update_workflow_execution")
    order, stage = checked(host, request)
    target = validation.execution(request.workflow_execution)
    address = RunKey(
        namespace=request.namespace, workflow_id=target.workflow_id, run_id=target.run_id
    )
    key = admit(host, address, order, request.first_execution_run_id)
    return answer(host, key, order.update_id, stage, timeout)


def poll(
    host: Host, request: PollWorkflowExecutionUpdateRequest, timeout: timedelta | None = None
) -> PollWorkflowExecutionUpdateResponse:
    """Wait for an update that was sent before; without a stage, tell how far it has come.

    Raises:
        WaitInsideTransactionError: waiting would hold the caller's transaction open.
        NotFoundError: there is no such run or update.
        DeadlineExceededError: the stage was not reached in the caller's time.
    """
    refuse_to_wait(host, "poll_workflow_execution_update")
    validation.namespace(host, request.namespace)
    key, update_id = _referred(host, request)
    stage = (request.wait_policy or WaitPolicy()).lifecycle_stage
    found = _wait(lambda: _progress(host, key, update_id), host, key, update_id, stage, timeout)
    return PollWorkflowExecutionUpdateResponse(
        outcome=found.outcome, stage=found.stage, update_ref=_ref(key, update_id)
    )


def refuse_to_wait(host: Host, call: str) -> None:
    """Raises: WaitInsideTransactionError: the caller holds a transaction open."""
    if host.store.inside_callers_transaction():
        raise WaitInsideTransactionError(call)


def checked(host: Host, request: UpdateWorkflowExecutionRequest) -> tuple[AdmitUpdate, Stage]:
    """The update of a request, with an id, and the stage that the caller waits for.

    Raises:
        InvalidArgumentError: something in it is missing or malformed.
        PermissionDeniedError: nobody can wait for the stage.
    """
    validation.namespace(host, request.namespace)
    validation.execution(request.workflow_execution)
    asked = request.request or Request()
    if asked.meta is None:
        raise fail("Update meta is not set on request.")
    if asked.input is None:
        raise fail("Update input is not set on request.")
    if not asked.input.name:
        raise fail("Update name is not set on request.")
    validation.short(asked.meta.update_id, "UpdateId", host.limits)
    stage = (request.wait_policy or WaitPolicy()).lifecycle_stage
    if stage is Stage.ADMITTED:
        raise PermissionDeniedError(
            "UpdateWorkflowExecution issued asynchronously and waiting on update admitted is not "
            "supported."
        )
    update_id = asked.meta.update_id or host.ids.request_id()
    meta = Meta(update_id=update_id, identity=asked.meta.identity)
    named = Request(
        meta=meta,
        input=asked.input,
        request_id=asked.request_id,
        links=asked.links,
    )
    order = AdmitUpdate(update_id=update_id, request=named)
    return order, Stage.COMPLETED if stage is Stage.UNSPECIFIED else stage


def admit(
    host: Host, address: RunKey, order: AdmitUpdate, first_execution_run_id: str = ""
) -> RunKey:
    """Hand an update to a run; an empty run id means the current one. Gives the run that has it.

    Raises:
        NotFoundError: there is no such run, or it isn't of the chain that is named, or it is closed
            and doesn't know the update.
        RPCError: the run doesn't take it.
    """
    for _ in range(TRIES):
        try:
            return _admit_once(host, address, order, first_execution_run_id)
        except _ClosedMeanwhileError:
            continue
    raise AbortedError("runs of this workflow id change too fast; repeat the call")


class _ClosedMeanwhileError(Exception):
    """The run that was current is closed, and another one is current."""


def _admit_once(
    host: Host, address: RunKey, order: AdmitUpdate, first_execution_run_id: str
) -> RunKey:
    with host.store.transaction(address.namespace, address.workflow_id) as tx:
        current = None if address.run_id else tx.current()
        run_id = current.run_id if current is not None else address.run_id
        state = tx.load(run_id) if run_id else None
        if state is None:
            raise validation.not_found(address.workflow_id, address.run_id)
        if first_execution_run_id not in ("", state.recorded.first_execution_run_id):
            raise NotFoundError("workflow execution not found")
        if not address.run_id and not state.is_open:
            newest = tx.current()
            if newest is not None and newest.run_id != run_id:
                raise _ClosedMeanwhileError
        change = load_change(tx, state, order)
        error = transition.apply(change, order, host.limits).error
        save(host, tx, change)
    if error is not None:
        raise error
    return RunKey(namespace=address.namespace, workflow_id=address.workflow_id, run_id=run_id)


def answer(
    host: Host, key: RunKey, update_id: str, stage: Stage, timeout: timedelta | None
) -> UpdateWorkflowExecutionResponse:
    """Wait for an update that was admitted, and tell what the caller of the update gets."""

    def look() -> _Progress:
        return _progress(host, key, update_id, is_callers=True)

    found = _wait(look, host, key, update_id, stage, timeout)
    return UpdateWorkflowExecutionResponse(
        update_ref=_ref(key, update_id), outcome=found.outcome, stage=found.stage
    )


def _wait(
    look: Callable[[], _Progress],
    host: Host,
    key: RunKey,
    update_id: str,
    stage: Stage,
    timeout: timedelta | None,
) -> _Progress:
    """How far an update has come when it is at a stage, or after the long poll's time."""
    began = host.store.now()
    longest = LONG_POLL if timeout is None else min(LONG_POLL, timeout)
    while True:
        found = look()
        if found.stage >= stage:
            return found
        left = began + longest - host.store.now()
        if left > timedelta():
            host.dispatcher.wait_update(key, update_id, found.version, left)
        elif timeout is not None and timeout < LONG_POLL:
            raise DeadlineExceededError(
                "no worker answered the update within the caller's time limit"
            )
        else:
            return found


def _progress(host: Host, key: RunKey, update_id: str, *, is_callers: bool = False) -> _Progress:
    """How far an update has come; `is_callers`: the caller could send it again.

    Raises:
        NotFoundError: the run has no such update, or ended without looking at it.
        ResourceExhaustedError: the same, and another run followed (BUSY_WORKFLOW).
        WorkflowNotReadyError: the task that should have answered it failed.
    """
    # read first: what a run that has ended tells of its updates is final
    head = host.store.head(key.namespace, key.workflow_id, key.run_id)
    row = host.store.read_update(key, update_id) if head is not None else None
    if head is None or row is None:
        raise NotFoundError(f'update "{update_id}" not found')
    if row.is_aborted:
        raise WorkflowNotReadyError(
            "Unable to perform workflow execution update due to unexpected workflow task failure."
        )
    if row.is_ended:
        return _Progress(
            stage=Stage.COMPLETED, version=row.version, outcome=_outcome(host, key, row)
        )
    if row.accepted_event_id:
        if validation.is_open(head.status):
            return _Progress(stage=Stage.ACCEPTED, version=row.version)
        return _Progress(
            stage=Stage.COMPLETED, version=row.version, outcome=Outcome(failure=_RUN_ENDED)
        )
    if validation.is_open(head.status):
        return _Progress(stage=Stage.ADMITTED, version=row.version)
    if is_callers and _is_followed(host, key):
        raise ResourceExhaustedError(
            "workflow operation can not be applied because workflow is closing",
            ResourceExhaustedCause.BUSY_WORKFLOW,
        )
    raise NotFoundError("workflow update was aborted by closing workflow")


def _is_followed(host: Host, key: RunKey) -> bool:
    state = host.store.read_state(key.namespace, key.workflow_id, key.run_id)
    return state is not None and bool(state.recorded.new_execution_run_id)


def _outcome(host: Host, key: RunKey, row: Update) -> Outcome | None:
    if row.rejection is not None:
        return Outcome(failure=row.rejection)
    event_id = row.completed_event_id
    for event in host.store.read_events(key, first=event_id, last=event_id):
        if isinstance(event.attributes, WorkflowExecutionUpdateCompleted):
            return event.attributes.outcome
    return None


def _referred(host: Host, request: PollWorkflowExecutionUpdateRequest) -> tuple[RunKey, str]:
    """The run and the id that a poll asks about."""
    if request.update_ref is None:
        raise fail("UpdateRef is not set on request.")
    target = request.update_ref.workflow_execution or WorkflowExecution()
    if not target.workflow_id:
        raise fail("Can't load workflow execution.  WorkflowId not set.")
    if target.run_id and not validation.is_uuid(target.run_id):
        raise fail("RunId is not valid UUID.")
    head = host.store.head(request.namespace, target.workflow_id, target.run_id)
    if head is None:
        raise validation.not_found(target.workflow_id, target.run_id)
    return head.key, request.update_ref.update_id


def _ref(key: RunKey, update_id: str) -> UpdateRef:
    return UpdateRef(
        workflow_execution=WorkflowExecution(workflow_id=key.workflow_id, run_id=key.run_id),
        update_id=update_id,
    )
