"""What runs have to do to other workflow ids: start a child, signal, cancel, tell a parent.

Each is a transaction on the other id, then one on the run's own, which takes the delivery away and
writes what came of it; never one within the other. Whoever dies in between leaves the delivery in
the state, and the ticker has it begun again: the other run knows it by its request id, or by what
it has recorded, so that it happens once.

Deliveries that one carried out makes (a child that is terminated has children of its own) are
carried out by the same call one after the other, not within each other.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from wfcore.exceptions import (
    AbortedError,
    InvalidArgumentError,
    NotFoundError,
    RPCError,
    WorkflowExecutionAlreadyStartedError,
)
from wfcore.history import transition
from wfcore.history.effects import CarryOut
from wfcore.history.machines import child, delivery, external
from wfcore.history.requests import (
    ENGINE_IDENTITY,
    Acknowledge,
    Arrive,
    BeginTasks,
    Delivered,
    RequestCancelRun,
    SignalRun,
    TerminateRun,
)
from wfcore.history.state import DeliveryKind, MutableState, Recorded
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import ParentClosePolicy
from wfcore.protocol.enums import SignalExternalWorkflowExecutionFailedCause as SignalFailed
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.message import Message
from wfcore.service import starting, validation
from wfcore.service.arriving import Outcome, arrive, deliver
from wfcore.service.host import Host
from wfcore.service.messaging import terminate_run
from wfcore.service.ports import RunKey
from wfcore.service.transacting import TRIES, change_run, load_change, repeatedly, save

logger = logging.getLogger(__name__)

#: Why a child is terminated, as Temporal words it, and when its parent never recorded it.
BY_POLICY = "by parent close policy"
NOT_RECORDED = "the parent closed before it recorded that this child had started"
#: Effects that one call carries out; the rest comes due by itself.
MOST_AT_ONCE = 100


class Courier:
    """Carries out deliveries after the commits that made them; one serves all threads."""

    def __init__(self) -> None:
        self._of_thread = threading.local()

    def carry_out(self, host: Host, effects: Sequence[CarryOut]) -> None:
        """Begin what the effects name. Never raises: what fails comes due again."""
        waiting: deque[CarryOut] | None = getattr(self._of_thread, "waiting", None)
        if waiting is not None:
            waiting.extend(effects)
            return
        waiting = self._of_thread.waiting = deque(effects)
        try:
            for _ in range(MOST_AT_ONCE):
                if not waiting:
                    return
                self._one(host, waiting.popleft())
        finally:
            self._of_thread.waiting = None

    def _one(self, host: Host, effect: CarryOut) -> None:
        try:
            _carry_out(host, effect)
        except Exception:  # whoever committed must not fail for what comes after
            logger.exception("delivery failed", extra=_fields(effect))


def _fields(effect: CarryOut) -> dict[str, object]:
    return {
        "action": "deliver",
        "workflow_id": effect.workflow_id,
        "run_id": effect.run_id,
        "event_ids": effect.deliveries,
    }


def _carry_out(host: Host, effect: CarryOut) -> None:
    key = RunKey(namespace=effect.namespace, workflow_id=effect.workflow_id, run_id=effect.run_id)
    state = host.store.read_state(key.namespace, key.workflow_id, key.run_id)
    if state is None:
        return
    done: list[Delivered] = []
    children: dict[int, RunKey] = {}
    for event_id, attempt in effect.deliveries:
        known = state.volatile.deliveries.get(event_id)
        if known is None or known.attempts != attempt:
            continue  # done, or begun again by another
        delivering = _Delivering(host=host, key=key, state=state, event_id=event_id)
        try:
            told = _KINDS[known.kind](delivering)
        except RPCError as error:
            fields = {**_fields(effect), "kind": known.kind.name, "error": str(error)}
            logger.warning("delivery comes again later", extra=fields)
            continue
        if told is not None:
            done.append(told)
        if delivering.child is not None:
            children[event_id] = delivering.child
    acknowledged = _acknowledge(host, key, done) if done else ()
    for event_id, made in children.items():
        if event_id in acknowledged:
            change_run(host, made, BeginTasks(), missing="the child is gone")
        else:
            _ask(host, key, event_id, made, made.run_id)


def _acknowledge(host: Host, key: RunKey, done: Sequence[Delivered]) -> tuple[int, ...]:
    """Take deliveries away and record what came of them; gives those that still stood there."""
    order = Acknowledge(done=tuple(done))

    def once() -> tuple[tuple[int, ...], bool]:
        with host.store.transaction(key.namespace, key.workflow_id) as tx:
            state = tx.load(key.run_id)
            if state is None:
                return (), False
            change = load_change(tx, state, order)
            answer = transition.apply(change, order, host.limits)
            for item in answer.to_inbox:
                host.store.put_inbox(key, item)
            save(host, tx, change)
            return answer.acknowledged, bool(answer.to_inbox)

    acknowledged, waits = repeatedly(once)
    if waits:
        limits = host.limits
        count, size = host.store.inbox_size(key, limits.buffered_events + 1)
        if count > limits.buffered_events or size > limits.buffered_bytes:
            deliver(host, key)  # fails the task, which doesn't end in time for so many
    return acknowledged


class _Delivering:
    """One delivery at work."""

    def __init__(self, *, host: Host, key: RunKey, state: MutableState, event_id: int) -> None:
        self.host = host
        self.key = key
        self.recorded: Recorded = state.recorded
        self.event_id = event_id
        self.delivery = state.volatile.deliveries[event_id]
        #: the child that was made, and waits to be told that its parent knows
        self.child: RunKey | None = None

    def event(self) -> HistoryEvent:
        """The event that the delivery belongs to."""
        return self.host.store.read_events(self.key, first=self.event_id, last=self.event_id)[0]

    def done(self, fact: Message | None = None) -> Delivered:
        """There is nothing more to do."""
        return Delivered(kind=self.delivery.kind, event_id=self.event_id, fact=fact)

    def refused(self, fact: Message) -> Delivered:
        """The other run doesn't take it, now: true only if this is the last attempt."""
        return Delivered(
            kind=self.delivery.kind,
            event_id=self.event_id,
            fact=fact,
            attempt=self.delivery.attempts,
        )

    @property
    def execution(self) -> WorkflowExecution:
        """The run that has something to do."""
        return WorkflowExecution(workflow_id=self.key.workflow_id, run_id=self.key.run_id)

    def other(self, workflow_id: str, run_id: str = "") -> RunKey:
        """A run of the same namespace."""
        return RunKey(namespace=self.key.namespace, workflow_id=workflow_id, run_id=run_id)


# ---- what a parent does


def _start_child(at: _Delivering) -> Delivered | None:
    parent, initiated = at.recorded, at.event()
    request = child.start_request(parent, initiated)
    if request.workflow_id == parent.workflow_id:
        return at.done(child.refused(initiated))
    order = starting.ChildStart(
        request=request,
        namespace_id=validation.namespace(at.host, parent.namespace).namespace_id,
        parent=at.execution,
        initiated_event_id=at.event_id,
        root=parent.root or at.execution,
        until=at.delivery.due_at,
    )
    try:
        run_id = starting.start_child(at.host, order)
    except starting.TooLateError:
        return None
    except WorkflowExecutionAlreadyStartedError:
        return at.refused(child.refused(initiated))
    at.child = at.other(request.workflow_id, run_id)
    return at.done(child.started(initiated, run_id))


def _close_child(at: _Delivering) -> Delivered | None:
    """Apply the parent close policy to the chain of runs that the child has become."""
    known = at.recorded.children[at.event_id]
    target = at.other(known.workflow_id)
    with suppress(NotFoundError):  # it has ended, or another chain has its workflow id
        if known.parent_close_policy is ParentClosePolicy.REQUEST_CANCEL:
            fact = external.close_of(at.recorded)
            outcome = _send(at, target, fact, first_execution_run_id=known.run_id)
            if outcome is Outcome.LATE:
                return None
        else:
            order = TerminateRun(reason=BY_POLICY, identity=ENGINE_IDENTITY)
            terminate_run(at.host, target, order, first_execution_run_id=known.run_id)
    return at.done()


# ---- what a run does to one that it need not know


def _signal(at: _Delivering) -> Delivered | None:
    initiated = at.event()
    fact = external.signal_of(at.recorded, initiated)
    cause = SignalFailed.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND
    try:
        outcome = _send(at, _target(at, external.target_of(initiated)), fact)
        if outcome is Outcome.LATE:
            return None
        if outcome is not Outcome.CLOSED:
            return at.done(external.signaled(at.recorded, initiated))
    except NotFoundError:
        pass
    except InvalidArgumentError:
        cause = SignalFailed.SIGNAL_COUNT_LIMIT_EXCEEDED
    return at.refused(external.not_signaled(at.recorded, initiated, cause))


def _cancel(at: _Delivering) -> Delivered | None:
    """A run that is closed counts as cancelled."""
    initiated = at.event()
    fact = external.cancel_of(at.recorded, initiated)
    try:
        if _send(at, _target(at, external.target_of(initiated)), fact) is Outcome.LATE:
            return None
    except NotFoundError:
        return at.refused(external.cancel_not_requested(at.recorded, initiated))
    return at.done(external.cancel_requested(at.recorded, initiated))


def _target(at: _Delivering, asked: external.Target) -> RunKey:
    """The run that is meant.

    Raises:
        NotFoundError: it is the sender's own, or no child of it although it should be.
    """
    workflow_id, run_id = asked.execution.workflow_id, asked.execution.run_id
    if workflow_id == at.key.workflow_id:
        raise validation.not_found(workflow_id, run_id)
    target = at.other(workflow_id, run_id)
    if asked.only_child:
        state = at.host.store.read_state(target.namespace, workflow_id, run_id)
        if state is not None and state.is_open and not _is_own_child(at, state.recorded):
            raise validation.not_found(workflow_id, run_id)
    return target


def _is_own_child(at: _Delivering, other: Recorded) -> bool:
    """Whether a run is the sender's child; after a reset the child knows the parent's old run."""
    return other.parent == at.execution or any(
        known.workflow_id == other.workflow_id and known.run_id == other.first_execution_run_id
        for known in at.recorded.children.values()
    )


def _send(
    at: _Delivering,
    target: RunKey,
    fact: SignalRun | RequestCancelRun,
    *,
    first_execution_run_id: str = "",
) -> Outcome:
    """Hand a fact to a run, once: it may have come before, to a run that has another follow it.

    Never after the next attempt is due, which may find that there is no such run.
    """
    host, request_id = at.host, delivery.request_id(at.key.run_id, at.event_id)
    if at.delivery.attempts <= 1 or target.run_id:
        return arrive(
            host,
            target,
            fact,
            request_id=request_id,
            first_execution_run_id=first_execution_run_id,
            until=at.delivery.due_at,
        )
    for _ in range(TRIES):
        head = host.store.head(target.namespace, target.workflow_id)
        if head is None:
            raise validation.not_found(target.workflow_id, "")
        # after this run began nothing more was recorded by those before it
        if host.store.requested_runs(target.namespace, target.workflow_id, request_id):
            return Outcome.REPEATED
        outcome = arrive(
            host,
            head.key,
            fact,
            request_id=request_id,
            first_execution_run_id=first_execution_run_id,
            until=at.delivery.due_at,
        )
        again = host.store.head(target.namespace, target.workflow_id)
        if outcome is not Outcome.CLOSED or again is None or again.key == head.key:
            return outcome
    raise AbortedError("runs of this workflow id change too fast; it is tried again later")


# ---- what a child does


def _report(at: _Delivering) -> Delivered | None:
    """Tell the parent how the chain has ended; one that is closed, or knows better, isn't told."""
    host, recorded = at.host, at.recorded
    parent, state = _open_parent(at)
    if state is None:
        return at.done()
    initiated_id = recorded.parent_initiated_event_id
    known = state.recorded.children.get(initiated_id)
    if known is None or known.run_id not in ("", recorded.first_execution_run_id):
        return at.done()
    begun = None
    if not known.run_id:
        (initiated,) = host.store.read_events(parent, first=initiated_id, last=initiated_id)
        begun = child.started(initiated, recorded.first_execution_run_id)
    item = child.report(recorded, at.event(), begun, host.store.now())
    if arrive(host, parent, Arrive(item=item)) is Outcome.CLOSED:
        return None  # perhaps by a reset, whose run wants to know
    return at.done()


def _open_parent(at: _Delivering) -> tuple[RunKey, MutableState | None]:
    """The parent's run, or the one that a reset has put in its place; None: it is over."""
    host, parent = at.host, _parent(at)
    state = host.store.read_state(parent.namespace, parent.workflow_id, parent.run_id)
    if state is not None and not state.is_open:
        known = state.recorded.original_execution_run_id
        state = host.store.read_state(parent.namespace, parent.workflow_id)
        if state is not None and state.recorded.original_execution_run_id != known:
            state = None  # another run has followed it, not by a reset
    if state is None or not state.is_open:
        return parent, None
    return at.other(parent.workflow_id, state.recorded.run_id), state


def _ask_parent(at: _Delivering) -> Delivered | None:
    recorded = at.recorded
    initiated = recorded.parent_initiated_event_id
    _ask(at.host, _parent(at), initiated, at.key, recorded.first_execution_run_id)
    return None


def _parent(at: _Delivering) -> RunKey:
    recorded = at.recorded
    if recorded.parent is None:
        raise LookupError(f"run {at.key.run_id} has no parent")
    return RunKey(
        namespace=recorded.parent_namespace,
        workflow_id=recorded.parent.workflow_id,
        run_id=recorded.parent.run_id,
    )


def _ask(host: Host, parent: RunKey, initiated: int, waits: RunKey, first_run_id: str) -> None:
    """Whether the parent has recorded a child that waits for it: then it begins. It ends when the
    parent will never record it, and goes on waiting otherwise.
    """
    state = host.store.read_state(parent.namespace, parent.workflow_id, parent.run_id)
    known = state.recorded.children.get(initiated) if state is not None else None
    if known is not None and known.run_id == first_run_id:
        change_run(host, waits, BeginTasks(), missing="the child is gone")
    elif known is None or known.run_id or state is None or not state.is_open:
        order = TerminateRun(reason=NOT_RECORDED, identity=ENGINE_IDENTITY)
        with suppress(NotFoundError):  # it has ended meanwhile
            terminate_run(host, waits, order)


_KINDS: dict[DeliveryKind, Callable[[_Delivering], Delivered | None]] = {
    DeliveryKind.START_CHILD: _start_child,
    DeliveryKind.SIGNAL: _signal,
    DeliveryKind.CANCEL: _cancel,
    DeliveryKind.CLOSE_CHILD: _close_child,
    DeliveryKind.REPORT: _report,
    DeliveryKind.ASK_PARENT: _ask_parent,
}
