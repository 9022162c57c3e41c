"""Starting runs: policies for workflow ids in use, and requests that come twice.

A start reads the current run without a lock, and makes a run only if that is still the current one
when it is stored; else it begins anew.
"""

from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from wfcore.exceptions import (
    StartContendedError,
    WorkflowExecutionAlreadyStartedError,
)
from wfcore.history import transition
from wfcore.history.change import Change
from wfcore.history.requests import (
    ENGINE_IDENTITY,
    AdmitUpdate,
    AttachStartRequest,
    ClaimTask,
    SignalRun,
    StartRun,
    TerminateRun,
)
from wfcore.history.retries import check_policy
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.enums import WorkflowIdConflictPolicy as Conflict
from wfcore.protocol.enums import WorkflowIdReusePolicy as Reuse
from wfcore.protocol.payloads import Payload, Payloads
from wfcore.protocol.rpc.info import OnConflictOptions
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse
from wfcore.protocol.rpc.workflows import (
    SignalWithStartWorkflowExecutionRequest,
    SignalWithStartWorkflowExecutionResponse,
    StartWorkflowExecutionRequest,
    StartWorkflowExecutionResponse,
)
from wfcore.service import validation, workflow_tasks
from wfcore.service.arriving import Outcome, arrive
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
from wfcore.service.validation import fail

_OPEN = (Status.RUNNING, Status.PAUSED)
#: Last statuses after which ALLOW_DUPLICATE_FAILED_ONLY allows another run.
_FAILED = (Status.FAILED, Status.CANCELED, Status.TERMINATED, Status.TIMED_OUT)
_TERMINATION_REASON = "TerminateIfRunning WorkflowIdReusePolicy"


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    """Which run a start led to."""

    run_id: str
    first_execution_run_id: str
    started: bool
    status: Status = Status.RUNNING
    #: this call made it
    is_made: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildStart:
    """The start of a child, as its parent's event asks for it; checked when that was written."""

    request: StartWorkflowExecutionRequest
    #: of the parent's namespace
    namespace_id: str
    parent: WorkflowExecution
    initiated_event_id: int
    root: WorkflowExecution
    #: from this time on it may not be made: another attempt looks whether it is there
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A checked start with its policies resolved."""

    request: StartWorkflowExecutionRequest
    reuse: Reuse
    conflict: Conflict
    signal: SignalRun | None = None
    #: the caller named it, so that it is remembered to recognise a repetition
    signal_request_id: str = ""
    child: ChildStart | None = None
    #: what a run that is made begins with
    update: AdmitUpdate | None = None

    def with_update(self, update: AdmitUpdate) -> "Plan":
        """The same, for update-with-start."""
        return replace(self, update=update)


def start(host: Host, request: StartWorkflowExecutionRequest) -> StartWorkflowExecutionResponse:
    """Start a workflow, or find the run that its policies name."""
    wanted = plan(host, request)
    begun = begin(host, wanted)
    return StartWorkflowExecutionResponse(
        run_id=begun.run_id,
        first_execution_run_id=begun.first_execution_run_id,
        started=begun.started,
        status=begun.status,
        eager_workflow_task=_eager_task(host, wanted.request, begun),
    )


def _eager_task(
    host: Host, request: StartWorkflowExecutionRequest, begun: Begun
) -> PollWorkflowTaskQueueResponse | None:
    """The first task, which went to the caller with the start; a repeated request gets it again."""
    if not (request.request_eager_execution and begun.started):
        return None
    key = RunKey(namespace=request.namespace, workflow_id=request.workflow_id, run_id=begun.run_id)
    return workflow_tasks.held(host, key, request.request_id)


def plan(host: Host, request: StartWorkflowExecutionRequest) -> Plan:
    """A start that was checked, with its policies resolved.

    Raises:
        RPCError: it can't be made as it is.
    """
    request = _checked(host, request)
    reuse, conflict = _policies(request, default=Conflict.FAIL)
    return Plan(request=request, reuse=reuse, conflict=conflict)


def signal_with_start(
    host: Host, request: SignalWithStartWorkflowExecutionRequest
) -> SignalWithStartWorkflowExecutionResponse:
    """Signal the open run of a workflow id, or start one that begins with the signal."""
    plain = _checked(host, _plain_start(request))
    reuse, conflict = _policies(plain, default=Conflict.USE_EXISTING)
    if conflict is Conflict.FAIL:
        raise fail(
            f"Invalid WorkflowIDConflictPolicy: {conflict.wire_name} "
            "is not supported for this operation."
        )
    _check_signal(host, request)
    signal = SignalRun(
        signal_name=request.signal_name,
        input=request.signal_input,
        identity=request.identity,
        header=request.header,
        request_id=plain.request_id,
        links=request.links,
        ends_delay=True,
    )
    begun = begin(
        host,
        Plan(
            request=plain,
            reuse=reuse,
            conflict=conflict,
            signal=signal,
            signal_request_id=request.request_id,
        ),
    )
    return SignalWithStartWorkflowExecutionResponse(
        run_id=begun.run_id,
        first_execution_run_id=begun.first_execution_run_id,
        started=begun.started,
    )


class TooLateError(Exception):
    """The time is over by which a child had to be made; nothing was done."""


def start_child(host: Host, child: ChildStart) -> str:
    """Make a child, or find the one that the same request made, also if another run has followed
    it since; gives its run id.

    Its first workflow task waits for `BeginTasks`.

    Raises:
        WorkflowExecutionAlreadyStartedError: its workflow id is taken.
        TooLateError: the time is over by which it had to be made.
    """
    reuse, conflict = _policies(child.request, default=Conflict.FAIL)
    wanted = Plan(request=child.request, reuse=reuse, conflict=conflict, child=child)
    return begin(host, wanted).run_id


# ---- checks


def _plain_start(request: SignalWithStartWorkflowExecutionRequest) -> StartWorkflowExecutionRequest:
    names = set(StartWorkflowExecutionRequest.__struct_fields__)
    shared = (name for name in request.__struct_fields__ if name in names)
    return StartWorkflowExecutionRequest(**{name: getattr(request, name) for name in shared})


def _checked(host: Host, request: StartWorkflowExecutionRequest) -> StartWorkflowExecutionRequest:
    """The request, complete with a request id.

    Raises:
        InvalidArgumentError: something in it is missing or malformed.
        NamespaceNotFoundError: its namespace isn't registered.
    """
    limits = host.limits
    validation.namespace(host, request.namespace)
    validation.workflow_id(request.workflow_id, limits)
    name = request.workflow_type.name if request.workflow_type is not None else ""
    if not name:
        raise fail("WorkflowType is not set on request.")
    validation.short(name, "WorkflowType", limits)
    validation.task_queue(request.task_queue, limits)
    validation.short(request.request_id, "RequestId", limits)
    validation.duration(request.workflow_execution_timeout, "WorkflowExecutionTimeoutSeconds")
    validation.duration(request.workflow_run_timeout, "WorkflowRunTimeoutSeconds")
    validation.duration(request.workflow_task_timeout, "WorkflowTaskTimeoutSeconds")
    validation.duration(request.workflow_start_delay, "WorkflowStartDelaySeconds")
    if wrong := check_policy(request.retry_policy):
        raise fail(wrong)
    if request.cron_schedule:
        if request.workflow_start_delay:
            raise fail("CronSchedule and WorkflowStartDelay may not be used together.")
        validation.cron_schedule(request.cron_schedule)
    validation.priority(request.priority)
    validation.links(request.links)
    _check_conflict_options(request.on_conflict_options)
    validation.callbacks(request.completion_callbacks)
    validation.blob(request.input, limits)
    validation.memo(request.memo, limits)
    return msgspec.structs.replace(
        request,
        request_id=request.request_id or host.ids.request_id(),
        # in a caller's transaction the task could not be answered before that commits
        request_eager_execution=request.request_eager_execution
        and limits.eager_starts
        and not host.store.inside_callers_transaction(),
        search_attributes=validation.search_attributes(
            request.search_attributes, request.namespace, limits
        ),
    )


def _check_conflict_options(options: OnConflictOptions | None) -> None:
    if options is None or options.attach_request_id:
        return
    if options.attach_completion_callbacks:
        raise fail("attaching request ID is required for attaching completion callbacks")


def _check_signal(host: Host, request: SignalWithStartWorkflowExecutionRequest) -> None:
    if not request.signal_name:
        raise fail("signal not set")
    length, limit = len(request.signal_name.encode()), host.limits.id_bytes
    if length > limit:
        raise fail(f"signal name exceeds maximum allowed length ({length}/{limit})")
    validation.blob(request.signal_input, host.limits)


def _policies(
    request: StartWorkflowExecutionRequest, *, default: Conflict
) -> tuple[Reuse, Conflict]:
    """The policies that hold; TERMINATE_IF_RUNNING is two in one."""
    reuse, conflict = request.workflow_id_reuse_policy, request.workflow_id_conflict_policy
    if reuse is Reuse.TERMINATE_IF_RUNNING:
        if conflict is not Conflict.UNSPECIFIED:
            raise fail(
                f"Invalid WorkflowIDReusePolicy: {reuse.wire_name} "
                "cannot be used together with a WorkflowIDConflictPolicy"
            )
        return Reuse.ALLOW_DUPLICATE, Conflict.TERMINATE_EXISTING
    if reuse is Reuse.REJECT_DUPLICATE and conflict is Conflict.TERMINATE_EXISTING:
        raise fail(
            f"Invalid WorkflowIDReusePolicy: {reuse.wire_name} "
            f"cannot be used together with WorkflowIdConflictPolicy {conflict.wire_name}"
        )
    if reuse is Reuse.UNSPECIFIED:
        reuse = Reuse.ALLOW_DUPLICATE
    return reuse, default if conflict is Conflict.UNSPECIFIED else conflict


# ---- the start itself


def begin(host: Host, wanted: Plan) -> Begun:
    """Make a run, or find the one that the policies name.

    Raises:
        WorkflowExecutionAlreadyStartedError: the policies allow neither.
        StartContendedError: other transactions were always first.
    """
    request = wanted.request
    for _ in range(TRIES):
        try:
            with host.store.transaction(
                request.namespace, request.workflow_id, wait=host.start_wait
            ) as tx:
                current = tx.current()
                begun = _begin_in(host, tx, current, wanted)
        except (CurrentRunChangedError, StaleActivityError):
            continue
        if begun is None and current is not None:
            begun = _use(host, current, wanted)
        if begun is not None:
            return begun
    raise StartContendedError(request.workflow_id, host.start_wait)


def _begin_in(
    host: Host, tx: Transaction, current: CurrentRun | None, wanted: Plan
) -> Begun | None:
    """What can be done in one transaction; None: the open run is to be used."""
    if wanted.child is not None:
        if current is not None and (made := _made_before(host, current, wanted.request)):
            return made
        if wanted.child.until is not None and tx.now >= wanted.child.until:
            raise TooLateError
    if current is None:
        return _make(host, tx, wanted)
    if wanted.signal is None:
        repeated = _repeated(host, current, wanted.request)
        if repeated is not None:
            return repeated
    if current.status not in _OPEN:
        _check_reuse(current, wanted)
        return _make(host, tx, wanted)
    if wanted.conflict is Conflict.TERMINATE_EXISTING:
        return _replace(host, tx, current, wanted)
    if wanted.conflict is Conflict.FAIL:
        raise _already_started(
            current,
            "Workflow execution is already running. "
            f"WorkflowId: {wanted.request.workflow_id}, RunId: {current.run_id}.",
        )
    return None


def _repeated(
    host: Host, current: CurrentRun, request: StartWorkflowExecutionRequest
) -> Begun | None:
    """The run that this request made, or was attached to, before."""
    if current.create_request_id == request.request_id:
        return _begun(current, started=True, status=current.status)
    if current.status not in _OPEN:
        return None
    state = host.store.read_state(request.namespace, request.workflow_id, current.run_id)
    if state is not None and request.request_id in state.volatile.attached_request_ids:
        return _begun(current, started=False, status=current.status)
    return None


def _made_before(
    host: Host, current: CurrentRun, request: StartWorkflowExecutionRequest
) -> Begun | None:
    """The run that this request made, if the current one has followed it by retry or the like."""
    first = current.first_execution_run_id
    state = host.store.read_state(request.namespace, request.workflow_id, first)
    if state is None or state.volatile.create_request_id != request.request_id:
        return None
    return Begun(
        run_id=first, first_execution_run_id=first, started=True, status=state.recorded.status
    )


def _check_reuse(current: CurrentRun, wanted: Plan) -> None:
    """Whether another run may follow the closed one."""
    where = f"WorkflowId: {wanted.request.workflow_id}, RunId: {current.run_id}."
    if wanted.reuse is Reuse.REJECT_DUPLICATE:
        raise _already_started(
            current,
            f"Workflow execution already finished. {where} "
            "Workflow Id reuse policy: reject duplicate workflow Id.",
        )
    if wanted.reuse is Reuse.ALLOW_DUPLICATE_FAILED_ONLY and current.status not in _FAILED:
        raise _already_started(
            current,
            f"Workflow execution already finished successfully. {where} "
            "Workflow Id reuse policy: allow duplicate workflow Id if last run failed.",
        )


def _already_started(current: CurrentRun, text: str) -> WorkflowExecutionAlreadyStartedError:
    return WorkflowExecutionAlreadyStartedError(
        text,
        start_request_id=current.create_request_id,
        run_id=current.run_id,
        first_execution_run_id=current.first_execution_run_id,
    )


def _begun(current: CurrentRun, *, started: bool, status: Status = Status.RUNNING) -> Begun:
    return Begun(
        run_id=current.run_id,
        first_execution_run_id=current.first_execution_run_id,
        started=started,
        status=status,
    )


def _make(host: Host, tx: Transaction, wanted: Plan) -> Begun:
    run_id = host.ids.run_id(tx.now)
    save(host, tx, _new_run(host, tx, wanted, run_id))
    return Begun(run_id=run_id, first_execution_run_id=run_id, started=True, is_made=True)


def _new_run(host: Host, tx: Transaction, wanted: Plan, run_id: str) -> Change:
    request, claim = wanted.request, None
    if request.request_eager_execution:
        claim = ClaimTask(request_id=request.request_id, identity=request.identity)
    order = StartRun(
        run_id=run_id,
        request=request,
        signal=wanted.signal,
        update=wanted.update,
        eager_claim=claim,
    )
    if (child := wanted.child) is not None:
        order = replace(
            order,
            parent_namespace=wanted.request.namespace,
            parent_namespace_id=child.namespace_id,
            parent=child.parent,
            parent_initiated_event_id=child.initiated_event_id,
            root=child.root,
            waits_for_parent=True,
        )
    change = transition.start(tx.now, order, host.limits)
    change.state.volatile.create_request_id = wanted.request.request_id
    if wanted.signal_request_id:
        tx.seen_request(run_id, wanted.signal_request_id)
    return change


def _replace(host: Host, tx: Transaction, current: CurrentRun, wanted: Plan) -> Begun:
    """Terminate the open run and start another in its place, in one transaction."""
    try:
        state = tx.load(current.run_id)
        locked = tx.current(lock=True)
    except RunBusyError as error:
        raise StartContendedError(wanted.request.workflow_id, host.start_wait) from error
    if state is None or not state.is_open or locked is None or locked.run_id != current.run_id:
        raise CurrentRunChangedError(f"run {current.run_id} is over; begin anew")
    run_id = host.ids.run_id(tx.now)
    text = msgspec.json.encode(f"terminated by new runID: {run_id}")
    details = Payload(metadata={"encoding": b"json/plain"}, data=text)
    order = TerminateRun(
        reason=_TERMINATION_REASON,
        details=Payloads(payloads=(details,)),
        identity=ENGINE_IDENTITY,
    )
    ended = load_change(tx, state, order)
    transition.apply(ended, order, host.limits)
    ended.next_run = _new_run(host, tx, wanted, run_id)
    save(host, tx, ended)
    return Begun(run_id=run_id, first_execution_run_id=run_id, started=True, is_made=True)


def _use(host: Host, current: CurrentRun, wanted: Plan) -> Begun | None:
    """Take the open run: hand it the signal, or attach the request; None: it closed meanwhile."""
    request = wanted.request
    key = RunKey(
        namespace=request.namespace, workflow_id=request.workflow_id, run_id=current.run_id
    )
    if wanted.signal is not None:
        outcome = arrive(
            host, key, wanted.signal, request_id=wanted.signal_request_id, is_current=True
        )
        return None if outcome is Outcome.CLOSED else _begun(current, started=False)
    options = request.on_conflict_options or OnConflictOptions()
    if options == OnConflictOptions():
        return _begun(current, started=False)
    attached = AttachStartRequest(
        request_id=request.request_id if options.attach_request_id else "",
        completion_callbacks=(
            request.completion_callbacks if options.attach_completion_callbacks else ()
        ),
        links=request.links if options.attach_links else (),
    )
    outcome = arrive(host, key, attached)
    return None if outcome is Outcome.CLOSED else _begun(current, started=False)
