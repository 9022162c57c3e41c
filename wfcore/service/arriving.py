"""How a fact reaches an open run: appended under the run's lock, or stored in its inbox while a
workflow task is started.

A fact that was accepted is never lost: a commit that ends a task reads the inbox under the lock,
and who stored a fact without the lock looks again under it, when every commit that has not seen the
row is over. It then delivers the fact if the task is over, or withdraws it if the run is closed.
What a sender that died left behind is delivered by the next who holds the lock, or by the ticker.
On a closed run the ticker drops what it finds, so that a sender who looks late, or who repeats a
request that another one is sending, asks the history whether the fact is in it.
"""

import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto

from wfcore.exceptions import AbortedError, NotFoundError
from wfcore.history import sizes, transition
from wfcore.history.effects import Journal
from wfcore.history.machines import activity, child
from wfcore.history.requests import (
    Answer,
    Arrive,
    AttachStartRequest,
    DeliverInbox,
    RequestCancelRun,
    SignalRun,
)
from wfcore.history.state import MutableState, PendingActivity
from wfcore.protocol.events import (
    WorkflowExecutionCancelRequested,
    WorkflowExecutionOptionsUpdated,
    WorkflowExecutionSignaled,
)
from wfcore.protocol.message import Message
from wfcore.service import validation
from wfcore.service.follow import Follow, Taken
from wfcore.service.host import Arrivals, Host
from wfcore.service.ports import RunKey, StaleActivityError, Transaction
from wfcore.service.transacting import TRIES, load_change, repeatedly, save

logger = logging.getLogger(__name__)

#: Events that are read at a time to find one.
_PAGE = 256

Fact = SignalRun | RequestCancelRun | AttachStartRequest | Arrive


class Outcome(Enum):
    """What became of a fact."""

    RECORDED = auto()
    #: its request id was recorded before, or it asks for what was asked for
    REPEATED = auto()
    #: the run is closed
    CLOSED = auto()
    #: the activity that it ends was claimed, retried or ended meanwhile
    STALE = auto()
    #: the time in which it might be recorded is over
    LATE = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sent:
    """A fact on its way to a run."""

    address: RunKey
    fact: Fact
    request_id: str
    first_execution_run_id: str
    #: bounds the time spent on the run's lock; None: as the store does
    wait: timedelta | None
    follow: Follow | None
    #: from this time on it may not be recorded; None: whenever
    until: datetime | None
    #: the address names the run only because it was found as the current one
    is_current: bool

    def key(self, state: MutableState) -> RunKey:
        """The run that the address means now."""
        return RunKey(
            namespace=self.address.namespace,
            workflow_id=self.address.workflow_id,
            run_id=state.recorded.run_id,
        )

    def refusal(self, state: MutableState) -> Outcome | None:
        """Why the fact is not for this run, if it isn't."""
        recorded = state.recorded
        if self.first_execution_run_id not in ("", recorded.first_execution_run_id):
            raise NotFoundError("workflow execution not found")
        if not state.is_open:
            return Outcome.CLOSED
        if isinstance(self.fact, RequestCancelRun) and recorded.cancel_requested:
            return Outcome.REPEATED
        if isinstance(self.fact, Arrive) and child.is_report(self.fact.item):
            known = child.initiated_by(self.fact.item) in recorded.children
            return None if known else Outcome.REPEATED
        return None

    def with_claim(self, state: MutableState) -> Fact:
        """The fact, with the claim of who follows it."""
        if self.follow is None or not isinstance(self.fact, Arrive):
            return self.fact
        return replace(self.fact, next_claim=self.follow.claim_for(state))

    @property
    def closes(self) -> PendingActivity | None:
        """The activity that ends by this."""
        return self.fact.closes if isinstance(self.fact, Arrive) else None

    def not_found(self) -> NotFoundError:
        return validation.not_found(self.address.workflow_id, self.address.run_id)


def arrive(
    host: Host,
    address: RunKey,
    fact: Fact,
    *,
    request_id: str = "",
    first_execution_run_id: str = "",
    wait: timedelta | None = None,
    follow: Follow | None = None,
    until: datetime | None = None,
    is_current: bool = False,
) -> Outcome:
    """Hand a fact to a run; an empty run id means the current one, and follows its chain.

    Inside a caller's transaction the fact is stored without a lock and delivered after the commit.
    `wait` bounds the time spent on the run's lock; `follow` takes the workflow task that an
    activity's end makes ready. With `until` it is recorded under that lock before this time, or
    not at all. `is_current`: a named run was found as the current one.

    Raises:
        NotFoundError: there is no such run, or it isn't of the chain that is named.
        InvalidArgumentError, ResourceExhaustedError: the run doesn't take it.
    """
    sent = _Sent(
        address=address,
        fact=fact,
        request_id=request_id,
        first_execution_run_id=first_execution_run_id,
        wait=wait,
        follow=follow,
        until=until,
        is_current=is_current,
    )
    inside = host.store.inside_callers_transaction()
    closed = ""
    for _ in range(TRIES):
        if not inside and (host.arrivals is Arrivals.LOCKED or until is not None):
            run_id, outcome = _append(host, sent, address.run_id)
        else:
            state = host.store.read_state(address.namespace, address.workflow_id, address.run_id)
            if state is None:
                raise sent.not_found()
            refusal = sent.refusal(state)
            if refusal is not None:
                return refusal
            if (inside or state.task_started) and _came_before(host, sent, state):
                return Outcome.REPEATED
            if inside:
                return _leave(host, sent, state)
            run_id = state.recorded.run_id
            if state.task_started:
                outcome = _store_and_look(host, sent, state)
            else:
                run_id, outcome = _append(host, sent, run_id)
        if outcome is not Outcome.CLOSED or address.run_id or run_id == closed:
            return outcome
        closed = run_id  # it was the current one; look once whether another has followed it
    raise AbortedError("runs of this workflow id change too fast; repeat the call")


def deliver(host: Host, key: RunKey, wait: timedelta | None = None) -> None:
    """Take in what waits in a run's inbox; on a closed run it is dropped and journalled."""

    def once() -> None:
        with host.store.transaction(key.namespace, key.workflow_id, wait=wait) as tx:
            state = tx.load(key.run_id)
            if state is not None:
                _take_in(host, tx, state)

    repeatedly(once)


def _append(host: Host, sent: _Sent, run_id: str) -> tuple[str, Outcome]:
    """Under the lock, where no workflow task can start or end; gives the run that was meant."""
    address, answers, taken = sent.address, list[Answer](), list[Taken]()

    def once() -> tuple[str, Outcome]:
        with host.store.transaction(address.namespace, address.workflow_id, wait=sent.wait) as tx:
            current = None if run_id else tx.current()
            meant = current.run_id if current is not None else run_id
            state = tx.load(meant) if meant else None
            if state is None:
                raise sent.not_found()
            refusal = sent.refusal(state)
            if refusal is not None:
                return meant, refusal
            if sent.until is not None and tx.now >= sent.until:
                return meant, Outcome.LATE
            if sent.request_id and tx.seen_request(meant, sent.request_id):
                return meant, Outcome.REPEATED
            if _came_before(host, sent, state):
                return meant, Outcome.REPEATED
            if state.task_started:
                return meant, _store_under_lock(host, tx, sent, state)
            fact = sent.with_claim(state)
            change = load_change(tx, state, fact)
            answers.append(transition.apply(change, fact, host.limits))
            save(host, tx, change)
            if sent.follow is not None and (claim := answers[-1].claim) is not None:
                taken.append(Taken(state=change.state, claim=claim, updates=change.updates))
            return meant, Outcome.RECORDED

    try:
        found = once() if sent.closes is not None else repeatedly(once)
    except StaleActivityError:
        return run_id, Outcome.STALE
    if answers and (error := answers[-1].error) is not None:
        raise error
    if sent.follow is not None and taken:
        sent.follow.taken = taken[-1]
    return found


def _came_before(host: Host, sent: _Sent, state: MutableState) -> bool:
    """Whether another run of the chain has recorded the request: who repeats it, because the answer
    got lost, doesn't know that another run has followed.
    """
    recorded, key = state.recorded, sent.key(state)
    is_named = sent.address.run_id and not sent.is_current
    if not sent.request_id or is_named or not recorded.continued_execution_run_id:
        return False
    runs = host.store.requested_runs(key.namespace, key.workflow_id, sent.request_id)
    # One that stored it and then closed without it has kept the id too.
    return any(
        _is_recorded(host, replace(key, run_id=run_id), sent.fact)
        for run_id in runs
        if run_id != key.run_id
    )


def _store_under_lock(host: Host, tx: Transaction, sent: _Sent, state: MutableState) -> Outcome:
    """The task's commit comes after ours, and reads the row."""
    count, size = _waiting(host, sent.key(state))
    if _put(host, sent, state, tx.now, "", count) is None:
        return _not_stored(sent)
    if _overflows(host, sent.fact, count, size):
        _take_in(host, tx, state)
    return Outcome.RECORDED


def _store_and_look(host: Host, sent: _Sent, state: MutableState) -> Outcome:
    """Without the lock, which is then taken for a look only."""
    key = sent.key(state)
    count, size = _waiting(host, key)
    item_id = _put(host, sent, state, host.store.now(), sent.request_id, count)
    if item_id is None and sent.closes is not None:
        return Outcome.STALE
    overflows = item_id is not None and _overflows(host, sent.fact, count, size)
    stored = Outcome.RECORDED if item_id is not None else Outcome.REPEATED

    def once() -> Outcome:
        with host.store.transaction(key.namespace, key.workflow_id, wait=sent.wait) as tx:
            held = tx.load(key.run_id)
            if held is None or not held.is_open:
                # told to operators too: whoever repeated the request in a caller's transaction
                # meanwhile took it for sent
                late = _late(key, sent.fact, tx.now)
                if item_id is not None and host.store.withdraw_inbox(key, item_id, (late,)):
                    return Outcome.CLOSED
                return stored if _is_recorded(host, key, sent.fact) else Outcome.CLOSED
            if overflows or not held.task_started:
                _take_in(host, tx, held)
            return stored

    return repeatedly(once)


def _late(key: RunKey, fact: Fact, at: datetime) -> Journal:
    kind = type(fact.item.attributes if isinstance(fact, Arrive) else fact).__name__
    return Journal(
        namespace=key.namespace,
        workflow_id=key.workflow_id,
        run_id=key.run_id,
        at=at,
        kind="late_arrival",
        text=f"{kind} came when the run was closed and was refused",
    )


def _is_recorded(host: Host, key: RunKey, fact: Fact) -> bool:
    """Whether the history of a closed run has a fact."""
    last: int | None = None
    while events := host.store.read_events(key, last=last, limit=_PAGE, reverse=True):
        if any(_is_event_of(fact, event.attributes) for event in events):
            return True
        last = events[-1].event_id - 1
    return False


def _is_event_of(fact: Fact, attributes: Message) -> bool:
    match fact, attributes:
        case SignalRun(request_id=name), WorkflowExecutionSignaled(request_id=recorded):
            return name == recorded
        case AttachStartRequest(request_id=name), WorkflowExecutionOptionsUpdated():
            return name == attributes.attached_request_id
        case RequestCancelRun(), WorkflowExecutionCancelRequested():
            return True
        case Arrive(closes=PendingActivity() as row), _ if isinstance(attributes, activity.CLOSING):
            return row.scheduled_event_id == attributes.scheduled_event_id
        case Arrive(item=item, closes=None), _:
            return item.attributes == attributes
    return False


def _leave(host: Host, sent: _Sent, state: MutableState) -> Outcome:
    """In the caller's transaction: it becomes true with the caller's data."""
    key = sent.key(state)
    count, _ = _waiting(host, key)
    if _put(host, sent, state, host.store.now(), sent.request_id, count) is None:
        return _not_stored(sent)
    host.store.on_commit(lambda: _deliver_after_commit(host, key))
    return Outcome.RECORDED


def _deliver_after_commit(host: Host, key: RunKey) -> None:
    try:
        deliver(host, key)
    except Exception:  # the caller's data is committed and its row stays for the ticker
        logger.exception(
            "delivery after commit failed", extra={"action": "deliver", "run_id": key.run_id}
        )


def _waiting(host: Host, key: RunKey) -> tuple[int, int]:
    """How many arrivals wait and their bytes, as far as the limit cares."""
    return host.store.inbox_size(key, host.limits.buffered_events + 1)


def _put(
    host: Host, sent: _Sent, state: MutableState, now: datetime, request_id: str, waiting: int
) -> int | None:
    """Store a fact; None when it is stale or known already."""
    key, fact = sent.key(state), sent.fact
    if isinstance(fact, Arrive):
        return host.store.put_inbox(key, fact.item, replaces=fact.closes)
    item = transition.waiting_item(state, now, fact, host.limits, waiting)
    return host.store.put_inbox(key, item, request_id=request_id) if item is not None else None


def _not_stored(sent: _Sent) -> Outcome:
    """Why: an activity's end is stale, anything else is known already."""
    return Outcome.STALE if sent.closes is not None else Outcome.REPEATED


def _take_in(host: Host, tx: Transaction, state: MutableState) -> None:
    """Deliver all that waits, if the machine lets it in."""
    request = DeliverInbox()
    change = load_change(tx, state, request)
    if change.inbox:
        transition.apply(change, request, host.limits)
        save(host, tx, change)


def _overflows(host: Host, fact: Fact, count: int, size: int) -> bool:
    """Whether more waits, with this fact, than a run's inbox may hold."""
    own = sizes.payloads_bytes(fact.input) if isinstance(fact, SignalRun) else 0
    limits = host.limits
    return count >= limits.buffered_events or size + own > limits.buffered_bytes
