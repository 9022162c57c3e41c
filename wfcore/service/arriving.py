"""How a fact reaches an open run: appended under the run's lock, or stored in its inbox while a
workflow task is started.

A stored fact is never left behind: who stores it looks again after the commit and delivers it when
the workflow task is over by then, or withdraws it when the run is closed; whoever holds the lock
takes in what waits; the ticker delivers what remains.
"""

import logging
from enum import Enum, auto

from wfcore.exceptions import AbortedError, NotFoundError
from wfcore.history import sizes, transition
from wfcore.history.requests import (
    Arrive,
    AttachStartRequest,
    DeliverInbox,
    RequestCancelRun,
    SignalRun,
)
from wfcore.history.state import MutableState, PendingActivity
from wfcore.service import validation
from wfcore.service.host import Arrivals, Host
from wfcore.service.ports import RunKey, Transaction
from wfcore.service.transacting import TRIES, load_change, repeatedly, save

logger = logging.getLogger(__name__)

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


def arrive(
    host: Host,
    address: RunKey,
    fact: Fact,
    *,
    request_id: str = "",
    first_execution_run_id: str = "",
) -> Outcome:
    """Hand a fact to a run; an empty run id means the current one, and follows its chain.

    Inside a caller's transaction the fact is stored without a lock and delivered after the commit.

    Raises:
        NotFoundError: there is no such run, or it isn't of the chain that is named.
        InvalidArgumentError, ResourceExhaustedError: the run doesn't take it.
    """
    inside = host.store.inside_callers_transaction()
    seen = ""
    for _ in range(TRIES):
        state = host.store.read_state(address.namespace, address.workflow_id, address.run_id)
        if state is None:
            raise validation.not_found(address.workflow_id, address.run_id)
        recorded = state.recorded
        if first_execution_run_id not in ("", recorded.first_execution_run_id):
            raise NotFoundError("workflow execution not found")
        if not state.is_open or recorded.run_id == seen:
            return Outcome.CLOSED
        if isinstance(fact, RequestCancelRun) and recorded.cancel_requested:
            return Outcome.REPEATED
        key = RunKey(
            namespace=address.namespace, workflow_id=address.workflow_id, run_id=recorded.run_id
        )
        if inside:
            return _leave(host, key, state, fact, request_id)
        if host.arrivals is Arrivals.OPTIMISTIC and state.task_started:
            outcome = _store_and_look_again(host, key, state, fact, request_id)
        else:
            outcome = _append(host, key, fact, request_id)
        if outcome is not Outcome.CLOSED or address.run_id:
            return outcome
        seen = recorded.run_id
    raise AbortedError("runs of this workflow id change too fast; repeat the call")


def deliver(host: Host, key: RunKey) -> None:
    """Take in what waits in a run's inbox; on a closed run it is dropped and journalled."""

    def once() -> None:
        with host.store.transaction(key.namespace, key.workflow_id) as tx:
            state = tx.load(key.run_id)
            if state is not None:
                _take_in(host, tx, state)

    repeatedly(once)


def look_again(host: Host, key: RunKey) -> None:
    """After a commit that ended a workflow task: take in what was stored while it was under way.

    That commit has not seen such a row, and who stored it may have looked before the commit: so
    each of the two looks after its own.
    """
    try:
        if host.store.inbox_size(key, 1)[0]:
            deliver(host, key)
    except Exception:  # the answer is committed, and the row stays for the ticker
        logger.exception(
            "delivery after commit failed", extra={"action": "deliver", "run_id": key.run_id}
        )


def _append(host: Host, key: RunKey, fact: Fact, request_id: str) -> Outcome:
    """Under the lock: nothing can end or start a workflow task meanwhile."""

    def once() -> Outcome:
        with host.store.transaction(key.namespace, key.workflow_id) as tx:
            state = tx.load(key.run_id)
            if state is None or not state.is_open:
                return Outcome.CLOSED
            if request_id and tx.seen_request(key.run_id, request_id):
                return Outcome.REPEATED
            change = load_change(tx, state, fact)
            closes = _closes(fact)
            if closes is not None:
                row = change.activities.get(closes.scheduled_event_id)
                if row is None or row.stamp != closes.stamp:
                    return Outcome.STALE
            answer = transition.apply(change, fact, host.limits)
            if answer.waiting is None:
                save(host, tx, change)
                errors.append(answer.error)
                return Outcome.RECORDED
            count, size = host.store.inbox_size(key, host.limits.buffered_events + 1)
            if host.store.put_inbox(key, answer.waiting, replaces=closes) is None:
                return Outcome.STALE
            if _overflows(host, fact, count, size):
                _take_in(host, tx, state)
            return Outcome.RECORDED

    errors: list[Exception | None] = []
    outcome = repeatedly(once)
    if errors and errors[-1] is not None:
        raise errors[-1]
    return outcome


def _store_and_look_again(
    host: Host, key: RunKey, state: MutableState, fact: Fact, request_id: str
) -> Outcome:
    """Without a lock: a commit that ended the workflow task before ours has not seen the row."""
    count, size = host.store.inbox_size(key, host.limits.buffered_events + 1)
    item_id = _put(host, key, state, fact, request_id, count)
    if item_id is None:
        return _not_stored(fact)
    now = host.store.read_state(key.namespace, key.workflow_id, key.run_id)
    overflows = _overflows(host, fact, count, size)
    if now is not None and now.is_open and now.task_started and not overflows:
        return Outcome.RECORDED

    def once() -> Outcome:
        with host.store.transaction(key.namespace, key.workflow_id) as tx:
            held = tx.load(key.run_id)
            if held is None or not held.is_open:
                withdrawn = host.store.withdraw_inbox(key, item_id)
                return Outcome.CLOSED if withdrawn else Outcome.RECORDED
            _take_in(host, tx, held)
            return Outcome.RECORDED

    return repeatedly(once)


def _leave(host: Host, key: RunKey, state: MutableState, fact: Fact, request_id: str) -> Outcome:
    """In the caller's transaction: it becomes true with the caller's data."""
    count, _ = host.store.inbox_size(key, host.limits.buffered_events + 1)
    if _put(host, key, state, fact, request_id, count) is None:
        return _not_stored(fact)
    host.store.on_commit(lambda: _deliver_after_commit(host, key))
    return Outcome.RECORDED


def _deliver_after_commit(host: Host, key: RunKey) -> None:
    try:
        deliver(host, key)
    except Exception:  # the caller's data is committed and its row stays for the ticker
        logger.exception(
            "delivery after commit failed", extra={"action": "deliver", "run_id": key.run_id}
        )


def _put(
    host: Host, key: RunKey, state: MutableState, fact: Fact, request_id: str, waiting: int
) -> int | None:
    if isinstance(fact, Arrive):
        return host.store.put_inbox(key, fact.item, replaces=fact.closes)
    item = transition.waiting_item(state, host.store.now(), fact, host.limits, waiting)
    return host.store.put_inbox(key, item, request_id=request_id) if item is not None else None


def _take_in(host: Host, tx: Transaction, state: MutableState) -> None:
    """Deliver all that waits, if the machine lets it in."""
    request = DeliverInbox()
    change = load_change(tx, state, request)
    if change.inbox:
        transition.apply(change, request, host.limits)
        save(host, tx, change)


def _closes(fact: Fact) -> PendingActivity | None:
    return fact.closes if isinstance(fact, Arrive) else None


def _not_stored(fact: Fact) -> Outcome:
    """Why nothing was stored: an activity's end is stale, anything else is known already."""
    return Outcome.STALE if isinstance(fact, Arrive) else Outcome.REPEATED


def _overflows(host: Host, fact: Fact, count: int, size: int) -> bool:
    """Whether more waits, with this fact, than a run's inbox may hold."""
    own = sizes.payloads_bytes(fact.input) if isinstance(fact, SignalRun) else 0
    limits = host.limits
    return count >= limits.buffered_events or size + own > limits.buffered_bytes
