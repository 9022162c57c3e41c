"""Whatever happens in whatever order, what must hold of a run holds (`Run.check`, after each step).

And nothing is forgotten: whatever can come due stands in a deadline that is not later.
"""

from datetime import datetime
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.support.histories import (
    Run,
    a_failure,
    a_run,
    acceptance,
    cancel_activity,
    cancel_external,
    cancel_run,
    cancel_timer,
    complete_run,
    continue_as_new,
    fail_run,
    place,
    record_marker,
    rejection,
    response,
    schedule_activity,
    seconds,
    signal_external,
    start_child,
    start_timer,
    text,
    token_of,
)
from wfcore.exceptions import InvalidArgumentError, NotFoundError, RPCError
from wfcore.history.deadlines import next_deadline
from wfcore.history.limits import Limits
from wfcore.history.machines import activity, child, external
from wfcore.history.requests import Arrive, ClaimTask, CompleteTask, Due, FailTask, TaskLost
from wfcore.history.state import (
    ActivityState,
    DeliveryKind,
    InboxItem,
    MutableState,
    PendingActivity,
)
from wfcore.protocol import events as ev
from wfcore.protocol.commands import Command
from wfcore.protocol.common import RetryPolicy, WorkflowExecution
from wfcore.protocol.enums import ParentClosePolicy, RetryState, WorkflowTaskFailedCause
from wfcore.protocol.enums import SignalExternalWorkflowExecutionFailedCause as SignalFailed
from wfcore.protocol.updates import ProtocolMessage

LIMITS = Limits(
    buffered_events=6,
    pending_activities=5,
    history_events=120,
    updates_in_flight=3,
    updates=6,
    deliveries_at_once=2,
)
PAUSES = st.sampled_from([0.001, 0.3, 0.3, 1, 1, 2.5, 9, 40, -0.5])
IDS = st.sampled_from("abcdefghij")
TIMEOUTS = st.sampled_from([None, None, seconds(2), seconds(30)])
ACTIVITIES = st.builds(
    schedule_activity,
    IDS,
    start_to_close_timeout=st.sampled_from([seconds(1), seconds(20)]),
    schedule_to_close_timeout=TIMEOUTS,
    schedule_to_start_timeout=TIMEOUTS,
    heartbeat_timeout=TIMEOUTS,
    retry_policy=st.sampled_from([None, RetryPolicy(maximum_attempts=1), RetryPolicy()]),
    request_eager_execution=st.booleans(),
)
TIMERS = st.builds(start_timer, IDS, st.sampled_from([0, 0.5, 3, 100]))
OTHERS = st.one_of(
    st.builds(start_child, IDS, parent_close_policy=st.sampled_from([*ParentClosePolicy])),
    st.builds(signal_external, IDS),
    st.builds(cancel_external, st.sampled_from("xyz")),
)
CLOSES = st.sampled_from([complete_run(), fail_run(), cancel_run(), continue_as_new()])


class AnyOrder(RuleBasedStateMachine):
    """Requests, facts and time, in any order."""

    run: Run

    @initialize(
        delay=st.sampled_from([None, None, seconds(3)]),
        run_timeout=st.sampled_from([None, None, None, seconds(90)]),
        chain_timeout=st.sampled_from([None, None, None, seconds(200)]),
        retries=st.booleans(),
        is_child=st.booleans(),
    )
    def begin(
        self, delay: Any, run_timeout: Any, chain_timeout: Any, retries: bool, is_child: bool
    ) -> None:
        parent = WorkflowExecution(workflow_id="parent", run_id="p")
        self.run = a_run(
            LIMITS,
            {"parent": parent, "parent_initiated_event_id": 5} if is_child else None,
            workflow_start_delay=delay,
            workflow_run_timeout=run_timeout,
            workflow_execution_timeout=chain_timeout,
            retry_policy=RetryPolicy(maximum_attempts=3) if retries else None,
        )
        self.lengths = [len(self.run.events)]

    # ---- workflow tasks

    @rule()
    def claim(self) -> None:
        try:
            answer = self.run.apply(
                ClaimTask(request_id=self.run.new_id("poll"), identity="w", owner="boot-1")
            )
        except RPCError:
            return
        if answer.claim is not None:
            self.run.claim = answer.claim

    @precondition(lambda self: self.run.claim is not None)
    @rule(data=st.data(), close=CLOSES, forced=st.booleans(), inline=st.booleans())
    def answer(self, data: st.DataObject, close: Command, forced: bool, inline: bool) -> None:
        commands = [data.draw(self._wish()) for _ in range(data.draw(st.integers(0, 3)))]
        if data.draw(st.integers(0, 9)) == 0:
            commands.append(close)
        assert self.run.claim is not None
        messages = self._words(data)
        commands = [place(message) for message in messages if data.draw(st.booleans())] + commands
        request = CompleteTask(
            token=token_of(self.run.claim),
            commands=tuple(commands),
            messages=messages,
            can_forget_events=inline,
            identity="w",
            next_run_id=self.run.new_id("run"),
            force_create_new_workflow_task=forced,
            next_claim=ClaimTask(request_id=self.run.new_id("poll")) if inline else None,
            activity_request_id=self.run.new_id("poll"),
        )
        held = self._holds()
        try:
            answer = self.run.apply(request)
        except (InvalidArgumentError, NotFoundError):
            return
        assert held
        self.run.claim = answer.claim

    @rule(data=st.data(), close=CLOSES, forced=st.booleans(), inline=st.booleans())
    def work(self, data: st.DataObject, close: Command, forced: bool, inline: bool) -> None:
        self.claim()
        if self.run.claim is not None and self._holds():
            self.answer(data, close, forced, inline)

    def _wish(self) -> st.SearchStrategy[Command]:
        """A command; it may be one that can't be carried out, but mostly it isn't."""
        recorded = self.run.state.recorded
        fresh = IDS.filter(lambda name: name not in recorded.open_activities.values())
        wishes = [
            ACTIVITIES,
            ACTIVITIES,
            TIMERS,
            st.just(record_marker()),
            OTHERS,
            st.builds(schedule_activity, fresh),
        ]
        if recorded.timers:
            wishes.append(st.builds(cancel_timer, st.sampled_from(sorted(recorded.timers))))
        if recorded.open_activities:
            opened = sorted(recorded.open_activities)
            wishes.append(st.builds(cancel_activity, st.sampled_from(opened)))
        return st.one_of(wishes)

    def _words(self, data: st.DataObject) -> tuple[ProtocolMessage, ...]:
        """What the worker says about updates; most of the time it fits."""
        assert self.run.claim is not None
        words: list[ProtocolMessage] = []
        for update_id in self.run.claim.updates:
            said = data.draw(st.sampled_from([acceptance, rejection, response, None, "both"]))
            if said == "both":
                words += [acceptance(update_id), response(update_id)]
            elif said is not None:
                words.append(said(update_id))
        for update_id in self.run.state.recorded.open_updates:
            if data.draw(st.booleans()):
                words.append(response(update_id))
        return tuple(words)

    @precondition(lambda self: self.run.claim is not None and len(self.lengths) % 3 == 0)
    @rule()
    def fail(self) -> None:
        held = self._holds()
        assert self.run.claim is not None
        token = token_of(self.run.claim)
        cause = WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE
        try:
            self.run.apply(FailTask(token=token, cause=cause, failure=a_failure()))
        except RPCError:
            return
        assert held

    @rule()
    def worker_dies(self) -> None:
        self.run.apply(TaskLost(owner="boot-1"))
        for row in list(self.run.activities.values()):
            self._settle(row, activity.lost(row, self.run.now, "dead", LIMITS))

    def _holds(self) -> bool:
        task, claim = self.run.state.volatile.task, self.run.claim
        return task is not None and claim is not None and task.started_at == claim.started_at

    # ---- facts

    @rule(deliver=st.booleans())
    def signal(self, deliver: bool) -> None:
        try:
            self.run.signal()
            if deliver:
                self.run.deliver()
        except RPCError:
            return

    @rule(update_id=IDS)
    def update(self, update_id: str) -> None:
        try:
            self.run.update(update_id)
        except RPCError:
            return

    @precondition(lambda self: len(self.lengths) > 15)
    @rule()
    def cancel(self) -> None:
        self.run.request_cancel()

    @rule()
    def deliver(self) -> None:
        try:
            self.run.deliver()
        except RPCError:
            return

    @precondition(lambda self: len(self.lengths) > 40)
    @rule()
    def terminate(self) -> None:
        try:
            self.run.terminate()
        except NotFoundError:
            assert not self.run.state.is_open

    # ---- activities

    @precondition(lambda self: self.run.activities)
    @rule(
        data=st.data(),
        what=st.sampled_from(["claim", "claim", "beat", "complete", "fail", "cancel"]),
    )
    def someone_works(self, data: st.DataObject, what: str) -> None:
        row = data.draw(st.sampled_from(list(self.run.activities.values())))
        now = self.run.now
        if what == "claim":
            self._settle(row, activity.claim(row, now, request_id="p", identity="w"))
        elif what == "complete":
            self._settle(row, activity.complete(row, now, text("r"), "w", LIMITS))
        elif row.state is not ActivityState.STARTED:
            return
        elif what == "beat":
            self._settle(row, activity.heartbeat(row, now, text("h"), LIMITS))
        elif what == "fail":
            self._settle(row, activity.fail(row, now, a_failure(), "w", limits=LIMITS))
        elif row.cancel_requested_event_id:
            self._settle(row, activity.cancel(row, now, None, "w"))

    def _settle(self, row: PendingActivity, decision: activity.Decision | None) -> None:
        try:
            self.run.settle(row, decision)
        except RPCError:
            return

    # ---- other workflows

    @precondition(lambda self: self.run.state.volatile.deliveries)
    @rule(data=st.data(), succeeds=st.booleans())
    def something_is_delivered(self, data: st.DataObject, succeeds: bool) -> None:
        deliveries = self.run.state.volatile.deliveries
        event_id = data.draw(st.sampled_from(sorted(deliveries)))
        kind, event = deliveries[event_id].kind, self.run.events[event_id - 1]
        sender, fact = self.run.state.recorded, None
        if kind is DeliveryKind.START_CHILD:
            fact = child.started(event, f"run-{event_id}") if succeeds else child.refused(event)
        elif kind is DeliveryKind.SIGNAL:
            cause = SignalFailed.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND
            fact = (
                external.signaled(sender, event)
                if succeeds
                else external.not_signaled(sender, event, cause)
            )
        elif kind is DeliveryKind.CANCEL:
            fact = external.cancel_requested(sender, event)
        try:
            assert self.run.acknowledge(kind, event_id, fact).acknowledged == (event_id,)
        except InvalidArgumentError:
            return  # the history is full

    @precondition(lambda self: self.run.state.recorded.children)
    @rule(data=st.data(), twice=st.booleans())
    def a_child_ends(self, data: st.DataObject, twice: bool) -> None:
        event_id = data.draw(st.sampled_from(sorted(self.run.state.recorded.children)))
        begun = child.started(self.run.events[event_id - 1], f"run-{event_id}")
        told = ev.ChildWorkflowExecutionTimedOut(
            initiated_event_id=event_id, retry_state=RetryState.TIMEOUT
        )
        item = InboxItem(event_time=self.run.now, attributes=told, started=begun)
        try:
            for _ in range(1 + twice):
                self.run.apply(Arrive(item=item))
        except RPCError:
            return

    # ---- time

    @rule(pause=PAUSES)
    def time_passes(self, pause: float) -> None:
        self.run.wait(pause)

    @rule(pause=PAUSES)
    def sweep(self, pause: float) -> None:
        self.run.wait(pause)
        for row in list(self.run.activities.values()):
            if row.scheduled_event_id in self.run.activities:
                row = self.run.activities[row.scheduled_event_id]  # noqa: PLW2901
                self._settle(row, activity.due(row, self.run.now, LIMITS))
        try:
            self.run.apply(Due(next_run_id=self.run.new_id("run")))
        except RPCError:
            return
        left = len(self.run.state.volatile.deliveries) > LIMITS.deliveries_at_once
        if not left:
            due = next_deadline(self.run.state)
            assert due is None or due > self.run.now, "a sweep leaves nothing due behind"

    # ---- what must hold besides

    @invariant()
    def nothing_is_forgotten(self) -> None:
        if not hasattr(self, "run"):
            return
        self.lengths.append(len(self.run.events))
        assert self.lengths[-1] >= self.lengths[-2]
        state = self.run.state
        self._others_know(state)
        if not state.is_open:
            return
        due = next_deadline(state)
        for clock in self._clocks():
            assert due is not None
            assert due <= clock
        for row in self.run.activities.values():
            if row.state is ActivityState.SCHEDULED:
                assert row.due_at is not None, "a message may be lost"
                assert row.dispatch_due is not None
                assert row.due_at <= row.dispatch_due

    def _others_know(self, state: MutableState) -> None:
        """What is initiated and not answered is to be delivered, or its answer waits."""
        recorded, deliveries = state.recorded, state.volatile.deliveries
        answered = {getattr(item.attributes, "initiated_event_id", 0) for item in self.run.inbox}
        if not state.is_open:
            return
        for kind, pending in (
            (DeliveryKind.SIGNAL, set(recorded.external_signals)),
            (DeliveryKind.CANCEL, set(recorded.external_cancels)),
            (
                DeliveryKind.START_CHILD,
                {at for at, each in recorded.children.items() if not each.started_event_id},
            ),
        ):
            known = {at for at, each in deliveries.items() if each.kind is kind}
            assert pending - answered <= known

    def _clocks(self) -> list[datetime]:
        recorded, task = self.run.state.recorded, self.run.state.volatile.task
        clocks = []
        if recorded.run_timeout:
            clocks.append(recorded.execution_time + recorded.run_timeout)
        if recorded.expiration_time:
            clocks.append(recorded.expiration_time)
        if task is not None and task.started_at is not None:
            return [*clocks, task.started_at + task.start_to_close_timeout]
        if task is not None:
            assert task.dispatch_due is not None
            clocks.append(task.dispatch_due)
            if task.schedule_to_start_due is not None:
                clocks.append(task.schedule_to_start_due)
        if not recorded.first_task_scheduled:
            clocks.append(recorded.execution_time)
        clocks += [timer.fire_at for timer in recorded.timers.values()]
        return clocks


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=60)
