"""A run in a test: a store of one run, in memory, around the pure state machine.

    run = a_run()
    run.work(schedule_activity("a"), start_timer("t", 5))
    run.take_activity("a")
    run.complete_activity("a")
    assert run.kinds()[-3:] == ["ACTIVITY_TASK_STARTED", ...]

Every step checks what must hold after every transition.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from wfcore.history.change import Change
from wfcore.history.deadlines import next_deadline
from wfcore.history.effects import Effect, Journal
from wfcore.history.limits import DEFAULT_LIMITS, Limits
from wfcore.history.machines import activity, child, update
from wfcore.history.machines.activity import Decision
from wfcore.history.rebuild import rebuild, visible_tail
from wfcore.history.requests import (
    Acknowledge,
    AdmitUpdate,
    Answer,
    Arrive,
    ClaimTask,
    CompleteTask,
    Delivered,
    DeliverInbox,
    Due,
    FailTask,
    RequestCancelRun,
    SignalRun,
    StartRun,
    TaskToken,
    TerminateRun,
)
from wfcore.history.state import (
    DeliveryKind,
    InboxItem,
    MutableState,
    PendingActivity,
    TaskClaim,
)
from wfcore.history.step import CHILD_ENDS
from wfcore.history.transition import apply, needs, start, waiting_item
from wfcore.history.updates import Update
from wfcore.protocol import commands
from wfcore.protocol import events as ev
from wfcore.protocol.commands import Command
from wfcore.protocol.common import (
    ActivityType,
    RetryPolicy,
    TaskQueue,
    WorkflowExecution,
    WorkflowType,
)
from wfcore.protocol.enums import WorkflowTaskFailedCause
from wfcore.protocol.events import CLOSING, HistoryEvent
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Memo, Payload, Payloads, SearchAttributes
from wfcore.protocol.rpc.workflows import StartWorkflowExecutionRequest
from wfcore.protocol.updates import (
    Acceptance,
    Input,
    Meta,
    Outcome,
    ProtocolMessage,
    Rejection,
    Request,
    Response,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMESPACE = "default"
QUEUE = "orders"
#: What becomes of things done to other workflows.
EXTERNAL_FACTS = (
    ev.ChildWorkflowExecutionStarted,
    ev.StartChildWorkflowExecutionFailed,
    ev.ExternalWorkflowExecutionSignaled,
    ev.SignalExternalWorkflowExecutionFailed,
    ev.ExternalWorkflowExecutionCancelRequested,
    ev.RequestCancelExternalWorkflowExecutionFailed,
)
#: Kinds whose time may lie before that of the event in front.
LATE_KINDS = (
    ev.ActivityTaskStarted,
    ev.ActivityTaskCompleted,
    ev.ActivityTaskFailed,
    ev.ActivityTaskTimedOut,
    ev.ActivityTaskCanceled,
    ev.TimerFired,
    ev.WorkflowExecutionSignaled,
    ev.WorkflowExecutionCancelRequested,
    ev.WorkflowExecutionOptionsUpdated,
    *EXTERNAL_FACTS,
    *CHILD_ENDS,
)


def seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


def text(value: str) -> Payloads:
    return Payloads(
        payloads=(Payload(metadata={"encoding": b"json/plain"}, data=f'"{value}"'.encode()),)
    )


def blob(size: int) -> Payloads:
    """One value of that many bytes."""
    return Payloads(payloads=(Payload(metadata={"encoding": b"binary/plain"}, data=b"x" * size),))


def a_failure(kind: str = "Broken", message: str = "broke", **info: Any) -> Failure:
    return Failure(
        message=message, application_failure_info=ApplicationFailureInfo(type=kind, **info)
    )


def schedule_activity(activity_id: str = "a", **options: Any) -> Command:
    options.setdefault("start_to_close_timeout", seconds(10))
    options.setdefault("task_queue", TaskQueue(name=QUEUE))
    options.setdefault("activity_type", ActivityType(name="charge"))
    return Command.of(commands.ScheduleActivityTask(activity_id=activity_id, **options))


def cancel_activity(scheduled_event_id: int) -> Command:
    return Command.of(commands.RequestCancelActivityTask(scheduled_event_id=scheduled_event_id))


def start_timer(timer_id: str = "t", after: float | timedelta | None = 5) -> Command:
    duration = seconds(after) if isinstance(after, int | float) else after
    return Command.of(commands.StartTimer(timer_id=timer_id, start_to_fire_timeout=duration))


def cancel_timer(timer_id: str = "t") -> Command:
    return Command.of(commands.CancelTimer(timer_id=timer_id))


def complete_run(result: Payloads | None = None) -> Command:
    return Command.of(commands.CompleteWorkflowExecution(result=result))


def fail_run(failure: Failure | None = None) -> Command:
    return Command.of(commands.FailWorkflowExecution(failure=failure or a_failure()))


def cancel_run(details: Payloads | None = None) -> Command:
    return Command.of(commands.CancelWorkflowExecution(details=details))


def continue_as_new(**options: Any) -> Command:
    return Command.of(commands.ContinueAsNewWorkflowExecution(**options))


def record_marker(name: str = "note", **options: Any) -> Command:
    return Command.of(commands.RecordMarker(marker_name=name, **options))


def upsert_memo(**fields: Payload) -> Command:
    return Command.of(commands.ModifyWorkflowProperties(upserted_memo=Memo(fields=fields)))


def upsert_search_attributes(**fields: Payload) -> Command:
    return Command.of(
        commands.UpsertWorkflowSearchAttributes(
            search_attributes=SearchAttributes(indexed_fields=fields)
        )
    )


def start_child(workflow_id: str = "child-1", **options: Any) -> Command:
    options.setdefault("workflow_type", WorkflowType(name="Item"))
    return Command.of(commands.StartChildWorkflowExecution(workflow_id=workflow_id, **options))


def signal_external(workflow_id: str = "other-1", name: str = "note", **options: Any) -> Command:
    options.setdefault("execution", WorkflowExecution(workflow_id=workflow_id))
    return Command.of(commands.SignalExternalWorkflowExecution(signal_name=name, **options))


def cancel_external(workflow_id: str = "other-1", **options: Any) -> Command:
    return Command.of(
        commands.RequestCancelExternalWorkflowExecution(workflow_id=workflow_id, **options)
    )


def place(message: ProtocolMessage) -> Command:
    """The command that gives a message its place."""
    return Command.of(commands.ProtocolMessage(message_id=message.id))


def update_request(update_id: str = "u", args: Payloads | None = None) -> Request:
    return Request(
        meta=Meta(update_id=update_id, identity="client"),
        input=Input(name="set", args=args or text("new")),
    )


def acceptance(update_id: str = "u", **fields: Any) -> ProtocolMessage:
    fields.setdefault("accepted_request_message_id", f"{update_id}/request")
    body = Acceptance(**fields)
    return ProtocolMessage(id=f"{update_id}/accept", protocol_instance_id=update_id, body=body)


def rejection(update_id: str = "u", failure: Failure | None = None) -> ProtocolMessage:
    body = Rejection(failure=failure or a_failure("Rejected", "no"))
    return ProtocolMessage(id=f"{update_id}/reject", protocol_instance_id=update_id, body=body)


def response(update_id: str = "u", outcome: Outcome | None = None) -> ProtocolMessage:
    body = Response(
        meta=Meta(update_id=update_id, identity="client"),
        outcome=outcome or Outcome(success=text("done")),
    )
    return ProtocolMessage(id=f"{update_id}/complete", protocol_instance_id=update_id, body=body)


def token_of(claim: TaskClaim) -> TaskToken:
    return TaskToken(
        scheduled_event_id=claim.scheduled_event_id,
        started_event_id=claim.started_event_id,
        attempt=claim.attempt,
        started_at=claim.started_at,
    )


def start_request(**options: Any) -> StartWorkflowExecutionRequest:
    options.setdefault("namespace", NAMESPACE)
    options.setdefault("workflow_id", "order-1")
    options.setdefault("workflow_type", WorkflowType(name="Order"))
    options.setdefault("task_queue", TaskQueue(name=QUEUE))
    options.setdefault("request_id", "start-1")
    options.setdefault("identity", "client")
    return StartWorkflowExecutionRequest(**options)


class Run:
    """A run with everything that a store keeps of it."""

    def __init__(self, change: Change, limits: Limits) -> None:
        self.limits = limits
        self.now = change.now
        self.state: MutableState = change.state
        self.events: list[HistoryEvent] = []
        self.activities: dict[int, PendingActivity] = {}
        self.updates: dict[str, Update] = {}
        self.inbox: list[InboxItem] = []
        self.memo: Memo | None = None
        self.search_attributes: SearchAttributes | None = None
        self.effects: list[Effect] = []
        self.journal: list[Journal] = []
        self.reported_problems: tuple[str, ...] = ()
        self.next_run: Run | None = None
        self.claim: TaskClaim | None = None
        self.last: Change = change
        #: a test has changed what no request here changes: clocks of timers, a pause
        self.is_bent = False
        self._items = 0
        self._requests = 0
        self._save(change)

    # ---- a store in small

    def apply(self, request: Any) -> Answer:
        """One transaction, as a service makes it; the answer's error is raised after it."""
        wanted = needs(self.state, request, self.now)
        first = self.events[0].attributes
        assert isinstance(first, ev.WorkflowExecutionStarted)
        change = Change(
            state=msgspec.json.decode(msgspec.json.encode(self.state), type=MutableState),
            now=self.now,
            activities={
                key: self.activities[key] for key in wanted.activities if key in self.activities
            },
            updates={key: self.updates[key] for key in wanted.updates if key in self.updates},
            inbox=list(self.inbox),
            start_event=first if wanted.start_event else None,
            current_memo=self.memo if wanted.memo else None,
            current_search_attributes=self.search_attributes if wanted.search_attributes else None,
        )
        before = self.state
        answer = apply(change, request, self.limits)
        if answer.waiting is not None:
            assert msgspec.to_builtins(change.state) == msgspec.to_builtins(before)
            assert not change.events
            assert not change.activity_rows
            self.put(answer.waiting)
        else:
            self._save(change)
            for item in answer.to_inbox:
                self.put(item)
        if answer.error is not None:
            raise answer.error
        return answer

    def put(self, item: InboxItem) -> None:
        self._items += 1
        self.inbox.append(msgspec.structs.replace(item, item_id=self._items))

    def _save(self, change: Change) -> None:
        self.last = change
        self.state = change.state
        self.events += change.events
        self.effects = change.effects
        self.journal += change.journal
        for key, row in change.activity_rows.items():
            if row is None:
                del self.activities[key]
            else:
                self.activities[key] = row
        for update_id, updated in change.update_rows.items():
            if updated is None:
                del self.updates[update_id]
            else:
                self.updates[update_id] = updated
        taken = set(change.inbox_taken)
        assert len(taken) == len(change.inbox_taken)
        self.inbox = [item for item in self.inbox if item.item_id not in taken]
        self.memo = change.memo or self.memo
        self.search_attributes = change.search_attributes or self.search_attributes
        if change.reported_problems is not None:
            self.reported_problems = change.reported_problems
        if change.closed:
            self.activities = {}
        if change.next_run is not None:
            self.next_run = Run(change.next_run, self.limits)
        self.check(change)

    def check(self, change: Change) -> None:
        """What must hold after every transition."""
        recorded = self.state.recorded
        again = rebuild(
            self.events,
            namespace=recorded.namespace,
            workflow_id=recorded.workflow_id,
            run_id=recorded.run_id,
        )
        if self.is_bent:
            again.timers, again.status = recorded.timers, recorded.status
        assert again == recorded
        assert [event.event_id for event in self.events] == list(range(1, len(self.events) + 1))
        closes = [place for place, event in enumerate(self.events) if event.event_type in CLOSING]
        assert closes == ([] if self.state.is_open else [len(self.events) - 1])
        assert len(change.events) == len(change.encoded)
        high = self.events[0].event_time
        for event in self.events:
            assert event.event_time >= high or isinstance(event.attributes, LATE_KINDS)
            high = max(high, event.event_time)
        assert change.next_deadline == next_deadline(self.state)
        for event_id, delivery in self.state.volatile.deliveries.items():
            assert 1 <= event_id <= len(self.events)
            assert change.next_deadline is not None
            assert change.next_deadline <= delivery.due_at
        if not self.state.is_open:
            kinds = {delivery.kind for delivery in self.state.volatile.deliveries.values()}
            assert kinds <= {DeliveryKind.CLOSE_CHILD, DeliveryKind.REPORT}
            assert (change.next_deadline is None) is (not kinds)
            assert self.state.volatile.task is None
            return
        ending = {
            item.attributes.scheduled_event_id
            for item in self.inbox
            if isinstance(item.attributes, activity.CLOSING)
        }
        assert not ending & set(self.activities)
        assert ending | set(self.activities) == set(recorded.open_activities)
        for row in self.activities.values():
            assert row.activity_id == recorded.open_activities[row.scheduled_event_id]
            assert row.due_at is None or row.due_at >= row.scheduled_at
        self.check_updates()
        task = self.state.volatile.task
        if task is not None and task.stored:
            assert recorded.task is not None
            assert recorded.task.scheduled_event_id == task.scheduled_event_id
        if self.state.task_started:
            assert task is not None
            assert len(self.events) < task.scheduled_event_id + (2 if task.stored else 0) + 100

    def check_updates(self) -> None:
        """The rows of an open run's updates are as its state says."""
        recorded, volatile = self.state.recorded, self.state.volatile
        waiting, accepted, answered = {}, {}, set()
        for update_id, row in self.updates.items():
            assert row.update_id == update_id
            if row.rejection is not None or row.is_aborted:
                answered.add(update_id)
            elif not row.accepted_event_id:
                waiting[update_id] = row.admission
            elif not row.completed_event_id:
                accepted[update_id] = row.accepted_event_id
            assert (row.request is not None) == (update_id in waiting)
        assert waiting == {key: item.admission for key, item in volatile.updates.items()}
        assert accepted == recorded.open_updates
        assert answered == set(volatile.answered_updates)
        assert len(self.updates) == recorded.update_count + len(waiting) + len(answered)
        if volatile.updates:
            assert volatile.task is not None

    # ---- time

    def wait(self, duration: float) -> "Run":
        """Let time pass; nobody looks."""
        self.now += seconds(duration)
        return self

    def tick(self, duration: float = 0) -> "Run":
        """Let time pass; then whoever sweeps does what is due."""
        self.wait(duration)
        for row in list(self.activities.values()):
            if row.due_at is not None and row.due_at <= self.now:
                self.settle(row, activity.due(row, self.now, self.limits))
        due = next_deadline(self.state)
        if due is not None and due <= self.now:
            self.apply(Due(next_run_id=self.new_id("run")))
        return self

    def new_id(self, kind: str) -> str:
        self._requests += 1
        return f"{kind}-{self._requests}"

    # ---- workflow tasks

    def take_task(self, identity: str = "worker", owner: str = "boot-1") -> TaskClaim:
        answer = self.apply(
            ClaimTask(request_id=self.new_id("poll"), identity=identity, owner=owner)
        )
        assert answer.claim is not None, "no workflow task to take"
        self.claim = answer.claim
        return answer.claim

    def answer(self, *wanted: Command, **options: Any) -> Answer:
        """Answer the task that was taken last."""
        assert self.claim is not None
        options.setdefault("identity", "worker")
        options.setdefault("next_run_id", self.new_id("run"))
        answer = self.apply(CompleteTask(token=token_of(self.claim), commands=wanted, **options))
        self.claim = answer.claim
        return answer

    def work(self, *wanted: Command, **options: Any) -> Answer:
        """Take a task and answer it."""
        self.take_task()
        return self.answer(*wanted, **options)

    def fail_task(
        self,
        cause: WorkflowTaskFailedCause = WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE,
        failure: Failure | None = None,
    ) -> Answer:
        assert self.claim is not None
        return self.apply(
            FailTask(
                token=token_of(self.claim),
                cause=cause,
                failure=failure or a_failure("ValueError", "a bug"),
                identity="worker",
            )
        )

    # ---- from outside

    def signal(self, name: str = "note", **options: Any) -> "Run":
        options.setdefault("identity", "client")
        options.setdefault("request_id", self.new_id("signal"))
        self.apply(SignalRun(signal_name=name, **options))
        return self

    def signal_without_lock(self, name: str = "note") -> "Run":
        request = SignalRun(signal_name=name, request_id=self.new_id("signal"))
        item = waiting_item(self.state, self.now, request, self.limits, len(self.inbox))
        assert item is not None
        self.put(item)
        return self

    def request_cancel(self, reason: str = "") -> "Run":
        self.apply(RequestCancelRun(identity="client", reason=reason))
        return self

    def terminate(self, reason: str = "enough") -> "Run":
        self.apply(TerminateRun(reason=reason, identity="client"))
        return self

    def update(self, update_id: str = "u", args: Payloads | None = None) -> "Run":
        self.apply(AdmitUpdate(update_id=update_id, request=update_request(update_id, args)))
        return self

    def delivered(self) -> tuple[ProtocolMessage, ...]:
        """What the task that was taken last brought to its worker."""
        assert self.claim is not None
        return update.messages(self.claim, self.updates)

    def deliver(self) -> "Run":
        self.apply(DeliverInbox())
        return self

    # ---- other workflows

    def initiated(self, event_id: int = 0) -> HistoryEvent:
        """The event that asked for a child, a signal or a cancel; the last one if not named."""
        pending = self.state.recorded.children or self.state.volatile.deliveries
        return self.events[(event_id or max(pending)) - 1]

    def acknowledge(self, kind: DeliveryKind, event_id: int, fact: Message | None) -> Answer:
        """One delivery is done."""
        return self.apply(Acknowledge(done=(Delivered(kind=kind, event_id=event_id, fact=fact),)))

    def child_starts(self, event_id: int = 0, run_id: str = "child-run") -> Answer:
        initiated = self.initiated(event_id)
        fact = child.started(initiated, run_id)
        return self.acknowledge(DeliveryKind.START_CHILD, initiated.event_id, fact)

    def child_is_refused(self, event_id: int = 0) -> Answer:
        initiated = self.initiated(event_id)
        fact = child.refused(initiated)
        return self.acknowledge(DeliveryKind.START_CHILD, initiated.event_id, fact)

    def child_ends(self, closing: "Run", event_id: int = 0, run_id: str = "") -> Answer:
        """The child tells how it has ended; with `run_id` its start too."""
        initiated = self.initiated(event_id)
        begun = child.started(initiated, run_id) if run_id else None
        recorded = msgspec.structs.replace(
            closing.state.recorded, parent_initiated_event_id=initiated.event_id
        )
        return self.apply(Arrive(item=child.report(recorded, closing.events[-1], begun, self.now)))

    # ---- activities

    def row(self, activity_id: str = "a") -> PendingActivity:
        return next(row for row in self.activities.values() if row.activity_id == activity_id)

    def take_activity(self, activity_id: str = "a", owner: str = "boot-1") -> PendingActivity:
        decision = activity.claim(
            self.row(activity_id),
            self.now,
            request_id=self.new_id("poll"),
            identity="worker",
            owner=owner,
        )
        assert decision is not None, "the attempt may not start"
        self.settle(self.row(activity_id), decision)
        return self.row(activity_id)

    def complete_activity(self, activity_id: str = "a", result: Payloads | None = None) -> "Run":
        return self._end(activity_id, activity.complete, result)

    def fail_activity(self, activity_id: str = "a", failure: Failure | None = None) -> "Run":
        return self._end(activity_id, activity.fail, failure or a_failure())

    def report_canceled(self, activity_id: str = "a") -> "Run":
        return self._end(activity_id, activity.cancel, None)

    def lose_worker(self, activity_id: str = "a") -> "Run":
        row = self.row(activity_id)
        return self.settle(row, activity.lost(row, self.now, "boot-1 is gone", self.limits))

    def settle(self, old: PendingActivity, decision: Decision | None) -> "Run":
        """Store what was decided about an activity."""
        if decision is None:
            return self
        self.effects = list(decision.effects)
        self.journal += decision.journal
        if decision.row is not None:
            assert decision.row.stamp - old.stamp in (0, 1)
            self.activities[old.scheduled_event_id] = decision.row
        if decision.item is not None:
            if self.state.task_started:
                del self.activities[old.scheduled_event_id]
                self.put(decision.item)
            else:
                self.apply(Arrive(item=decision.item, closes=old))
        return self

    def _end(self, activity_id: str, decide: Callable[..., Decision], what: Any) -> "Run":
        row = self.row(activity_id)
        return self.settle(row, decide(row, self.now, what, "worker"))

    # ---- reading

    def kinds(self, first: int = 1) -> list[str]:
        """Kinds of the events from that one on, shortened as people say them."""
        return [
            event.event_type.name.replace("WORKFLOW_EXECUTION_", "").replace(
                "WORKFLOW_TASK", "TASK"
            )
            for event in self.events[first - 1 :]
        ]

    def shown(self) -> list[str]:
        """Kinds as a reader of the history sees them."""
        tail = [event.event_type.name.replace("WORKFLOW_TASK", "TASK") for event in self.tail()]
        return self.kinds() + tail

    def tail(self) -> list[HistoryEvent]:
        return visible_tail(self.state)

    def event(self, event_id: int) -> Any:
        """Attributes of an event; negative numbers count from the end."""
        place = event_id - 1 if event_id > 0 else event_id
        return self.events[place].attributes

    def sent(self, kind: type[Effect]) -> list[Any]:
        """What the last transition had the host do, of one kind."""
        return [effect for effect in self.effects if isinstance(effect, kind)]


def a_run(
    limits: Limits = DEFAULT_LIMITS, start_options: dict[str, Any] | None = None, **request: Any
) -> Run:
    """A run that was started at noon."""
    options = start_options or {}
    request_ = start_request(**request)
    return Run(start(NOON, StartRun(run_id="run-0", request=request_, **options), limits), limits)


def one_attempt() -> RetryPolicy:
    return RetryPolicy(maximum_attempts=1)
