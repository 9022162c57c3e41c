"""The faults: each is a small patch of the engine, made at run time and taken back afterwards."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import msgspec
import pytest

from wfcore.history import buffer, transition
from wfcore.history.change import Change
from wfcore.history.machines import (
    activity,
    activity_commands,
    child,
    closing,
    delivery,
    table,
    timer,
    update,
    workflow,
    workflow_task,
)
from wfcore.history.requests import Request
from wfcore.history.state import (
    DeliveryKind,
    InboxItem,
    MutableState,
    PendingActivity,
)
from wfcore.history.step import Step
from wfcore.protocol.common import RetryPolicy
from wfcore.protocol.enums import CommandType, RetryState
from wfcore.replay import runtime
from wfcore.service import arriving, delivering, starting, transacting, workflow_tasks
from wfcore.service.ports import Transaction
from wfcore.testing import memory_ports, memory_rows
from wfcore.testing.memory_ports import MemoryTransaction
from wfcore.testing.simulation.store import SimulatedStore

#: Runs within which a fault must be found that shows only when three things meet.
RARE = 2_000

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A fault, and within how many runs it must be found."""

    name: str
    what: str
    plant: Plant
    runs: int = 500


PLANTED: list[Planted] = []


def planted(what: str, runs: int = 500) -> Callable[[Plant], Plant]:
    """Register a fault."""

    def register(plant: Plant) -> Plant:
        name = plant.__name__.replace("_", "-")
        PLANTED.append(Planted(name=name, what=what, plant=plant, runs=runs))
        return plant

    return register


# ---- workflow tasks


@planted("an answer to a workflow task is taken whatever claim its token names")
def token_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(workflow_task, "is_held", lambda step, token: step.started_task is not None)


@planted("a workflow task is announced without a time by which a claim must have followed")
def no_resend(patch: pytest.MonkeyPatch) -> None:
    announce = workflow_task.announce

    def once(step: Step, task: Any) -> None:
        announce(step, task)
        step.volatile.task = msgspec.structs.replace(step.volatile.task, dispatch_due=None)

    patch.setattr(workflow_task, "announce", once)


@planted("an attempt that was not stored is not written out when it succeeds")
def transient_attempt_left_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(workflow_task, "write_out", lambda step, task: None)


@planted("a command that closes the run passes by what waits in the inbox")
def close_passes_by(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(closing, "_check_unhandled", lambda step, completed: None)


@planted("a termination leaves out what waits in the inbox")
def termination_leaves_out(patch: pytest.MonkeyPatch) -> None:
    force_close = workflow_task.force_close

    def without_flush(step: Step) -> None:
        inbox, step.change.inbox = step.change.inbox, []
        force_close(step)
        step.change.inbox = inbox

    patch.setattr(workflow_task, "force_close", without_flush)


@planted("what waited in the inbox is written in front of the answer that it waited for")
def facts_before_answer(patch: pytest.MonkeyPatch) -> None:
    carry_out = transition._carry_out

    def flush_first(step: Step, task: Any, request: Any) -> None:
        if step.change.inbox and task.stored:
            buffer.flush(step, None)
        carry_out(step, task, request)

    patch.setattr(transition, "_carry_out", flush_first)


@planted("the random numbers of workflow code are others after an eviction")
def random_numbers_differ(patch: pytest.MonkeyPatch) -> None:
    seeds = count()
    patch.setattr(runtime, "random_seed", lambda run_id: next(seeds))


# ---- arrivals


@planted("a commit deletes inbox rows up to the highest that it read", RARE)
def inbox_by_watermark(patch: pytest.MonkeyPatch) -> None:
    apply_change = memory_rows.apply_change

    def by_watermark(run: Any, change: Change, state: Any, snapshot: bytes) -> None:
        apply_change(run, change, state, snapshot)
        for item_id in [each for each in run.inbox if each <= max(change.inbox_taken, default=0)]:
            del run.inbox[item_id]

    patch.setattr(memory_ports, "apply_change", by_watermark)


@planted("who stored an arrival without the lock doesn't look again")
def no_second_look(patch: pytest.MonkeyPatch) -> None:
    def store(host: Any, sent: Any, state: MutableState) -> arriving.Outcome:
        count, _ = arriving._waiting(host, sent.key(state))
        item_id = arriving._put(host, sent, state, host.store.now(), sent.request_id, count)
        return arriving.Outcome.RECORDED if item_id is not None else arriving._not_stored(sent)

    patch.setattr(arriving, "_store_and_look", store)


@planted("a sender whose arrival the ticker dropped is told that it is recorded", RARE)
def dropped_but_acknowledged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(arriving, "_is_recorded", lambda host, key, fact: True)


@planted("nobody takes care of arrivals whose senders died")
def arrivals_of_the_dead(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedStore, "undelivered", lambda store, before, limit: [])


@planted("a signal's request id is not remembered when it waits in the inbox")
def request_id_forgotten(patch: pytest.MonkeyPatch) -> None:
    put = arriving._put

    def anonymous(
        host: Any, sent: Any, state: Any, now: datetime, request_id: str, waiting: int
    ) -> int | None:
        return put(host, sent, state, now, "", waiting)

    patch.setattr(arriving, "_put", anonymous)


@planted("what waited in the inbox is taken in backwards")
def inbox_backwards(patch: pytest.MonkeyPatch) -> None:
    taken = buffer._taken

    def backwards(step: Step) -> list[InboxItem]:
        return taken(step)[::-1]

    patch.setattr(buffer, "_taken", backwards)


# ---- activities


@planted("the row of an activity that nobody had taken stays when it is cancelled")
def row_stays_on_cancel(patch: pytest.MonkeyPatch) -> None:
    kind = CommandType.REQUEST_CANCEL_ACTIVITY_TASK
    carry, cause = table.COMMANDS[kind]

    def keep(step: Step, *given: Any) -> None:
        carry(step, *given)
        rows = step.change.activity_rows
        step.change.activity_rows = {key: row for key, row in rows.items() if row is not None}

    patch.setitem(table.COMMANDS, kind, (keep, cause))


@planted("a retry has no time at which the ticker looks at it")
def retry_without_due_at(patch: pytest.MonkeyPatch) -> None:
    retry = activity._retry

    def forgetful(*given: Any) -> activity.Decision:
        decision = retry(*given)
        row = msgspec.structs.replace(decision.row, due_at=None)
        return activity.Decision(row=row, effects=decision.effects)

    patch.setattr(activity, "_retry", forgetful)


@planted("an attempt that runs is handed out once more")
def attempt_handed_out_twice(patch: pytest.MonkeyPatch) -> None:
    def claim(row: PendingActivity, now: datetime, **claimer: str) -> activity.Decision | None:
        if row.attempt_scheduled_at > now:
            return None
        return activity.Decision(row=activity.started(row, now, **claimer))

    patch.setattr(activity, "claim", claim)


@planted("a pending activity is replaced whatever its stamp")
def stamp_not_compared(patch: pytest.MonkeyPatch) -> None:
    def stands(run: Any, row: PendingActivity) -> bool:
        return not run.closed and row.scheduled_event_id in run.activities

    patch.setattr(memory_ports, "_stands", stands)


@planted("a request to cancel an activity leaves its stamp, so that a heartbeat takes it away")
def cancel_without_stamp(patch: pytest.MonkeyPatch) -> None:
    def keep(row: PendingActivity, event_id: int) -> PendingActivity:
        return msgspec.structs.replace(row, cancel_requested_event_id=event_id)

    patch.setattr(activity_commands.activity, "cancel_requested", keep)


@planted("a commit reads the inbox before the activities that end into it", RARE)
def inbox_before_activities(patch: pytest.MonkeyPatch) -> None:
    load_change = transacting.load_change

    def load(tx: Transaction, state: MutableState, request: Request) -> Change:
        inbox = tx.inbox(state.recorded.run_id)
        change = load_change(tx, state, request)
        change.inbox = inbox
        return change

    for module in (transacting, arriving, workflow_tasks):
        patch.setattr(module, "load_change", load)


@planted("activities are tried once more than their policies allow")
def one_attempt_too_many(patch: pytest.MonkeyPatch) -> None:
    decide = activity.decide

    def generous(policy: RetryPolicy, attempt: int, *given: Any) -> RetryState:
        return decide(policy, attempt - 1, *given)

    patch.setattr(activity, "decide", generous)


# ---- starts and time


@planted("a start that is repeated is a new one")
def start_request_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(starting, "_repeated", lambda host, current, request: None)


@planted("a new run becomes the current one whichever was the current one")
def current_run_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryTransaction, "_make_current", lambda tx, expected: tx._lock())


@planted("the time at which the ticker looks at a run is not moved to an earlier one")
def wakeup_not_moved(patch: pytest.MonkeyPatch) -> None:
    def wakeup(stored: datetime | None, needed: datetime | None, now: datetime) -> datetime | None:
        return needed if stored is None or stored <= now else stored

    patch.setattr(memory_rows, "_wakeup", wakeup)


@planted("a timer fires five seconds early")
def timer_fires_early(patch: pytest.MonkeyPatch) -> None:
    due = timer.due

    def early(step: Step, floor: datetime) -> list[InboxItem]:
        now, step.now = step.now, step.now + timedelta(seconds=5)
        found = due(step, floor)
        step.now = now
        return [
            msgspec.structs.replace(item, event_time=min(item.event_time, now)) for item in found
        ]

    patch.setattr(timer, "due", early)


@planted("a closed run takes facts")
def closed_run_takes_facts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transition, "_check_open", lambda step: None)
    patch.setattr(arriving._Sent, "refusal", lambda sent, state: None)


@planted("an update whose id the run knows is admitted once more")
def update_id_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(update, "is_known", lambda *_given: False)


@planted("updates that wait are not told that the run is over")
def updates_outlive_the_run(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(update, "end_all", lambda step: None)


# ---- other workflows


@planted("a child works before its parent has recorded it")
def child_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    first_task = workflow.first_task

    def at_once(step: Step, eager: Any = None) -> None:
        step.volatile.waits_for_parent = False
        first_task(step, eager)

    patch.setattr(workflow, "first_task", at_once)


@planted("what a run has to do to others is forgotten once it was begun", runs=1_000)
def delivery_begun_is_done(patch: pytest.MonkeyPatch) -> None:
    begin = delivery.begin

    def forget(step: Step) -> None:
        begin(step)
        for event_id, each in list(step.volatile.deliveries.items()):
            if each.attempts:
                del step.volatile.deliveries[event_id]

    patch.setattr(delivery, "begin", forget)


@planted("what a run has to do to others has no time at which it is begun again")
def delivery_is_not_begun_again(patch: pytest.MonkeyPatch) -> None:
    begin = delivery.begin

    def once(step: Step) -> None:
        takes_up, step.takes_up = step.takes_up, False
        begin(step)
        step.takes_up = takes_up

    patch.setattr(delivery, "begin", once)


@planted("the end of a child's run is told although another run follows")
def child_tells_too_early(patch: pytest.MonkeyPatch) -> None:
    close = delivery.close

    def tell(step: Step) -> None:
        close(step)
        if step.recorded.parent is not None and step.recorded.new_execution_run_id:
            delivery.add(step, DeliveryKind.REPORT, step.recorded.next_event_id - 1)

    patch.setattr(delivery, "close", tell)


@planted("the start of a child that its end has told is recorded once more", 1_500)
def child_starts_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(child, "is_news", lambda step, done: True)


@planted("a parent that closes leaves its children as they are")
def close_policy_ignored(patch: pytest.MonkeyPatch) -> None:
    close = delivery.close

    def leave(step: Step) -> None:
        close(step)
        for event_id, each in list(step.volatile.deliveries.items()):
            if each.kind is DeliveryKind.CLOSE_CHILD:
                del step.volatile.deliveries[event_id]

    patch.setattr(delivery, "close", leave)


@planted("a signal that may have arrived is sent once more as another one", runs=3_000)
def signal_sent_again(patch: pytest.MonkeyPatch) -> None:
    arrive = delivering.arrive

    def without_id(*given: Any, request_id: str = "", **named: Any) -> Any:
        return arrive(*given, **named)

    patch.setattr(delivering, "arrive", without_id)
