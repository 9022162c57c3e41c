"""One transition in one transaction: load what it needs, apply it, save it once, announce after.

Effects leave the process, and other runs are touched, only after the commit that makes the change
visible.
"""

from collections.abc import Callable
from typing import TypeVar

from wfcore.exceptions import AbortedError, NotFoundError
from wfcore.history import transition
from wfcore.history.change import Change
from wfcore.history.effects import CarryOut, Effect
from wfcore.history.requests import Answer, Arrive, Request
from wfcore.history.state import MutableState, PendingActivity
from wfcore.protocol.events import ActivityTaskScheduled, WorkflowExecutionStarted
from wfcore.service.host import Host
from wfcore.service.ports import RunKey, StaleActivityError, Transaction

T = TypeVar("T")

#: How often a transaction that lost against another one begins anew.
TRIES = 10


def load_change(tx: Transaction, state: MutableState, request: Request) -> Change:
    """What the transition of a loaded run looks at."""
    run_id = state.recorded.run_id
    needs = transition.needs(state, request, tx.now)
    activities: dict[int, PendingActivity] = {}
    if isinstance(request, Arrive) and request.closes is not None:
        # not read again: the save itself refuses a row that changed meanwhile
        activities = {request.closes.scheduled_event_id: request.closes}
    elif needs.activities:
        # before the inbox: an activity that ends without the run's lock goes from here to there
        rows = tx.activities(run_id, scheduled_event_ids=needs.activities)
        activities = {row.scheduled_event_id: row for row in rows}
    change = Change(state=state, now=tx.now, activities=activities, inbox=tx.inbox(run_id))
    if needs.updates:
        updates = tx.updates(run_id, needs.updates)
        change.updates = {update.update_id: update for update in updates}
    if needs.start_event:
        started = tx.events(run_id, (1,))[0].attributes
        if isinstance(started, WorkflowExecutionStarted):
            change.start_event = started
    if needs.scheduled_events:
        for event in tx.events(run_id, needs.scheduled_events):
            if isinstance(event.attributes, ActivityTaskScheduled):
                change.scheduled_events[event.event_id] = event.attributes
    if needs.memo:
        change.current_memo = tx.memo(run_id)
    if needs.search_attributes:
        change.current_search_attributes = tx.search_attributes(run_id)
    return change


def save(host: Host, tx: Transaction, change: Change) -> None:
    """Store a change with the runs that follow it, and announce its effects after the commit."""
    effects: list[Effect] = []
    each: Change | None = change
    while each is not None:
        if each.is_new and not each.state.volatile.create_request_id:
            each.state.volatile.create_request_id = host.ids.request_id()
        effects += each.effects
        each = each.next_run
    tx.save(change)
    if change.events:
        recorded, events = change.state.recorded, tuple(change.events)
        tx.on_commit(lambda: host.recent.wrote(recorded.run_id, events, recorded.history_bytes))
    orders = [effect for effect in effects if isinstance(effect, CarryOut)]
    told = [effect for effect in effects if not isinstance(effect, CarryOut)]
    if told:
        tx.on_commit(lambda: host.dispatcher.dispatch(told))
    if orders:
        tx.on_commit(lambda: host.carrier.carry_out(host, orders))


def repeatedly(call: Callable[[], T]) -> T:
    """Begin a transaction anew when a pending activity changed under it.

    Raises:
        AbortedError: that happened `TRIES` times in a row.
    """
    for _ in range(TRIES):
        try:
            return call()
        except StaleActivityError:
            continue
    raise AbortedError("the run's activities change too fast; repeat the call")


def change_run(host: Host, key: RunKey, request: Request, missing: str) -> Answer:
    """Do one transition to a run under its lock.

    Raises:
        NotFoundError: there is no such run; `missing` is the text.
        RPCError: what the transition answers.
    """

    def once() -> Answer:
        with host.store.transaction(key.namespace, key.workflow_id) as tx:
            state = tx.load(key.run_id)
            if state is None:
                raise NotFoundError(missing)
            change = load_change(tx, state, request)
            answer = transition.apply(change, request, host.limits)
            save(host, tx, change)
        return answer

    answer = repeatedly(once)
    if answer.error is not None:
        raise answer.error
    return answer
