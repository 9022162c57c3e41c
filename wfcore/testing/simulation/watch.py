"""What must hold of a run after each commit, looked at before anybody is told of the commit.

What is due is computed here anew, from the fields of the state, so that a fault in the engine's own
sums doesn't hide itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from wfcore.history import recording
from wfcore.history.limits import Limits
from wfcore.history.state import ActivityState, MutableState, PendingActivity, Recorded
from wfcore.protocol import events as ev
from wfcore.protocol.events import CLOSING, HistoryEvent
from wfcore.service.ports import RunKey
from wfcore.testing.memory_ports import read_snapshot
from wfcore.testing.memory_rows import Run
from wfcore.testing.simulation import families
from wfcore.testing.simulation.chains import Chains
from wfcore.testing.simulation.ledger import Ledger
from wfcore.testing.simulation.violations import Report

_NONE = timedelta()
ENDS_OF_ACTIVITIES = (
    ev.ActivityTaskCompleted,
    ev.ActivityTaskFailed,
    ev.ActivityTaskTimedOut,
    ev.ActivityTaskCanceled,
)
#: Events whose time is that of their arrival, which may lie before the event in front.
_LATE = (
    *ENDS_OF_ACTIVITIES,
    ev.ActivityTaskStarted,
    ev.TimerFired,
    ev.WorkflowExecutionSignaled,
    ev.WorkflowExecutionCancelRequested,
    ev.WorkflowExecutionOptionsUpdated,
    *families.OUTCOMES,
)
#: Facts that workflow code must be told of.
_NEWS = (
    *ENDS_OF_ACTIVITIES,
    ev.TimerFired,
    ev.WorkflowExecutionSignaled,
    ev.WorkflowExecutionCancelRequested,
    *families.OUTCOMES,
)


@dataclass(kw_only=True, slots=True)
class Shadow:
    """A run as the events and rows seen so far make it."""

    recorded: Recorded | None = None
    snapshot: bytes = b""
    events: int = 0
    latest_time: datetime | None = None
    is_closed: bool = False
    #: the state has been seen closed
    has_ended: bool = False
    #: id of the last fact that workflow code must be told of
    news: int = 0
    signal_requests: set[str] = field(default_factory=set)
    rows: dict[int, PendingActivity] = field(default_factory=dict)
    #: attempts of activities that were handed out, by scheduled event id
    claims: dict[int, list[PendingActivity]] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    #: activities that were paused at some time
    held: set[int] = field(default_factory=set)
    #: CANCEL_REQUESTED events by scheduled event id
    cancels: dict[int, int] = field(default_factory=dict)


class Watch:
    """Looks at each commit; `report` has what it found wrong."""

    def __init__(self, ledger: Ledger, limits: Limits) -> None:
        self.report = Report()
        #: how many commits there were
        self.commits = 0
        self._ledger = ledger
        self._limits = limits
        self._shadows: dict[RunKey, Shadow] = {}
        #: activities of which somebody asked that their attempts are counted anew
        self._anew: set[tuple[RunKey, int]] = set()
        self._chains = Chains(ledger, self.report)

    def committed(self, runs: Sequence[Run]) -> None:
        """These runs were touched by one commit."""
        self.commits += bool(runs)
        for run in runs:
            shadow = self._shadows.get(run.key)
            if shadow is None:
                shadow = self._shadows[run.key] = Shadow()
                self._chains.began(run)
            self._events(run, shadow)
            if run.snapshot is not shadow.snapshot:
                shadow.snapshot = run.snapshot
                self._state(run, shadow, read_snapshot(run))
            if not run.closed:
                self._activities(run, shadow)
        self._chains.settle(runs)

    def may_begin_anew(self, key: RunKey, scheduled_event_id: int) -> None:
        """Somebody asks that an activity's attempts are counted from one again."""
        self._anew.add((key, scheduled_event_id))

    def latest(self, run: Run, shown: int = 4) -> str:
        """A run in one line, for traces."""
        state = read_snapshot(run)
        task = state.volatile.task
        kinds = " ".join(
            f"{event.event_id}:{type(event.attributes).__name__}" for event in run.events[-shown:]
        )
        stands = "no task"
        if task is not None:
            started = "started" if task.started_at is not None else "waits"
            stands = f"task {task.scheduled_event_id} attempt {task.attempt} {started}"
        rows = ", ".join(
            f"{key}/{row.attempt}{'*' if row.state is ActivityState.STARTED else ''}"
            for key, row in run.activities.items()
        )
        waits = f", {len(run.inbox)} wait" if run.inbox else ""
        return f"{run.key.workflow_id} {run.key.run_id[-4:]} {kinds} | {stands} | {rows}{waits}"

    # ---- events

    def _events(self, run: Run, shadow: Shadow) -> None:
        fail = self.report.of(run.key)
        if len(run.events) > shadow.events and shadow.is_closed:
            fail("nothing behind the closing event", f"{len(run.events) - shadow.events} more")
        for place, event in enumerate(run.events[shadow.events :], shadow.events + 1):
            if event.event_id != place:
                fail("event ids rise by one", f"event {event.event_id} in place {place}")
                return
            if shadow.is_closed:
                fail("nothing behind the closing event", f"event {place} {event.event_type.name}")
            self._time(run, shadow, event)
            self._event(run, shadow, event)
            self._record(run, shadow, event)
            shadow.is_closed |= event.event_type in CLOSING
        shadow.events = len(run.events)

    def _time(self, run: Run, shadow: Shadow, event: HistoryEvent) -> None:
        latest = shadow.latest_time or event.event_time
        if event.event_time < latest and not isinstance(event.attributes, _LATE):
            self.report.of(run.key)(
                "times don't turn around", f"event {event.event_id} lies before one in front"
            )
        shadow.latest_time = max(latest, event.event_time)

    def _record(self, run: Run, shadow: Shadow, event: HistoryEvent) -> None:
        key = run.key
        size = recording.event_bytes(recording.encode(event.attributes), event.user_metadata)
        if shadow.recorded is None:
            shadow.recorded = recording.begin(
                event, namespace=key.namespace, workflow_id=key.workflow_id, run_id=key.run_id
            )
            shadow.recorded.history_bytes = size
        else:
            recording.record(shadow.recorded, event, size)

    def _event(self, run: Run, shadow: Shadow, event: HistoryEvent) -> None:
        attributes = event.attributes
        if isinstance(attributes, _NEWS):
            shadow.news = event.event_id
        if shadow.recorded is not None:
            families.look(shadow.recorded, event, self.report.of(run.key))
        match attributes:
            case ev.ActivityTaskStarted():
                self._attempt(run, shadow, attributes)
            case (
                ev.ActivityTaskCompleted()
                | ev.ActivityTaskFailed()
                | ev.ActivityTaskTimedOut()
                | ev.ActivityTaskCanceled()
            ):
                self._end_of_activity(run, shadow, attributes.scheduled_event_id)
            case ev.ActivityTaskCancelRequested():
                shadow.cancels[attributes.scheduled_event_id] = event.event_id
            case ev.TimerFired() | ev.TimerCanceled():
                self._end_of_timer(run, shadow, event, attributes)
            case ev.WorkflowExecutionSignaled():
                self._signal(run, shadow, attributes)
            case ev.WorkflowTaskCompleted() | ev.WorkflowTaskFailed():
                self._answer(run, event, attributes)

    def _attempt(self, run: Run, shadow: Shadow, started: ev.ActivityTaskStarted) -> None:
        claims = shadow.claims.get(started.scheduled_event_id, [])
        last = claims[-1] if claims else None
        told = (started.attempt, started.identity, started.request_id)
        if last is None or told != (len(claims), last.identity, last.request_id):
            self.report.of(run.key)(
                "STARTED tells the attempts that were handed out",
                f"activity {started.scheduled_event_id}: {told}, handed out {len(claims)} times, "
                f"last to {last.identity if last else 'nobody'}",
            )

    def _end_of_activity(self, run: Run, shadow: Shadow, scheduled_event_id: int) -> None:
        if scheduled_event_id in shadow.ended:
            self.report.of(run.key)("an activity ends once", f"activity {scheduled_event_id}")
        shadow.ended.add(scheduled_event_id)

    def _end_of_timer(
        self,
        run: Run,
        shadow: Shadow,
        event: HistoryEvent,
        attributes: ev.TimerFired | ev.TimerCanceled,
    ) -> None:
        timers = shadow.recorded.timers if shadow.recorded is not None else {}
        timer = timers.get(attributes.timer_id)
        if timer is None or timer.started_event_id != attributes.started_event_id:
            self.report.of(run.key)("a timer ends once", f"timer {attributes.timer_id}")
        elif isinstance(attributes, ev.TimerFired) and event.event_time < timer.fire_at:
            self.report.of(run.key)("nothing happens before its time", f"event {event.event_id}")

    def _signal(self, run: Run, shadow: Shadow, signal: ev.WorkflowExecutionSignaled) -> None:
        wish = self._ledger.signals.get(signal.identity)
        request_id = wish.request_id if wish is not None else ""
        if request_id and request_id in shadow.signal_requests:
            self.report.of(run.key)("no request id twice", f"signal {request_id}")
        shadow.signal_requests.add(request_id)

    def _answer(
        self,
        run: Run,
        event: HistoryEvent,
        attributes: ev.WorkflowTaskCompleted | ev.WorkflowTaskFailed,
    ) -> None:
        """The answer that ended a workflow task belongs to the claim that was open."""
        answer = self._ledger.task_answers.get(attributes.binary_checksum)
        if answer is None:
            if isinstance(attributes, ev.WorkflowTaskCompleted):
                self.report.of(run.key)("only workers answer", f"event {event.event_id}")
            return
        token, named = answer.token, run.events[attributes.started_event_id - 1]
        scheduled = run.events[attributes.scheduled_event_id - 1].attributes
        attempt = scheduled.attempt if isinstance(scheduled, ev.WorkflowTaskScheduled) else 0
        stands = (attributes.scheduled_event_id, attributes.started_event_id, attempt)
        held = (token.scheduled_event_id, token.started_event_id, token.attempt)
        if token.run_id != run.key.run_id or stands != held or named.event_time != token.started_at:
            self.report.of(run.key)(
                "an answer belongs to the claim that stands",
                f"event {event.event_id} ends {stands}, answer {answer.tag} is for {held}",
            )

    # ---- the state

    def _state(self, run: Run, shadow: Shadow, state: MutableState) -> None:
        fail = self.report.of(run.key)
        if state.recorded != shadow.recorded:
            fail("the state follows from the events", _difference(state.recorded, shadow.recorded))
        if state.is_open == shadow.is_closed or run.closed != shadow.is_closed:
            fail("a run is closed by its last event", f"status {state.recorded.status.name}")
        if run.current.status is not state.recorded.status:
            fail("the current run is as it stands", f"{run.current.status.name}")
        if not state.is_open and not shadow.has_ended:
            shadow.has_ended = True
            families.check_close(state, fail)
        if not state.is_open and state.volatile.task is not None:
            fail("a closed run has no task", f"attempt {state.volatile.task.attempt}")
        clocks = list(_clocks_of_run(state))
        if clocks and (run.wakeup_at is None or run.wakeup_at > min(clocks)):
            fail("nothing due is forgotten", f"wakes at {run.wakeup_at}, due at {min(clocks)}")
        if not state.is_open or state.volatile.waits_for_parent:
            return
        task = state.volatile.task
        is_shown = task is not None or shadow.news <= state.recorded.previous_started_event_id
        if not is_shown and (state.recorded.first_task_scheduled or not self._may_wait(run)):
            fail("news lead to a task", f"event {shadow.news} was shown to nobody")
        if task is not None and task.started_at is None and task.dispatch_due is None:
            fail("a message may be lost", f"task {task.scheduled_event_id} is sent once only")

    @staticmethod
    def _may_wait(run: Run) -> bool:
        """During a start delay signals wait for its end."""
        return all(
            isinstance(event.attributes, ev.WorkflowExecutionSignaled | ev.WorkflowExecutionStarted)
            or not isinstance(event.attributes, _NEWS)
            for event in run.events
        )

    # ---- activities

    def _activities(self, run: Run, shadow: Shadow) -> None:
        fail = self.report.of(run.key)
        ending = [
            row.item.attributes.scheduled_event_id
            for row in run.inbox.values()
            if isinstance(row.item.attributes, ENDS_OF_ACTIVITIES)
        ]
        opened = set(shadow.recorded.open_activities) if shadow.recorded is not None else set()
        stands = [*ending, *run.activities]
        if len(stands) != len(set(stands)) or set(stands) != opened:
            fail(
                "an open activity has a row or an end that waits",
                f"open {sorted(opened)}, rows {sorted(run.activities)}, ending {sorted(ending)}",
            )
        for event_id, row in run.activities.items():
            before = shadow.rows.get(event_id)
            if before is not row:
                self._row(run, shadow, before, row)
        shadow.rows = dict(run.activities)

    def _row(
        self, run: Run, shadow: Shadow, before: PendingActivity | None, row: PendingActivity
    ) -> None:
        fail = self.report.of(run.key)
        name = f"activity {row.scheduled_event_id} attempt {row.attempt}"
        clocks = list(_clocks_of_activity(row))
        is_held = row.pause is not None
        if is_held and row.due_at is not None:
            fail("what is paused doesn't come due", f"{name} wakes at {row.due_at}")
        elif not is_held and (not clocks or row.due_at is None or row.due_at > min(clocks)):
            fail("nothing due is forgotten", f"{name} wakes at {row.due_at}, has {clocks}")
        if not is_held and row.state is ActivityState.SCHEDULED and row.dispatch_due is None:
            fail("a message may be lost", f"{name} is sent once only")
        if row.cancel_requested_event_id != shadow.cancels.get(row.scheduled_event_id, 0):
            fail("a cancel request stays", f"{name} knows event {row.cancel_requested_event_id}")
        if before is not None and (row.stamp < before.stamp or _standing_changed(before, row)):
            fail("a new standing has a new stamp", f"{name}: {before.stamp} to {row.stamp}")
        most = row.retry_policy.maximum_attempts
        if is_held:
            shadow.held.add(row.scheduled_event_id)
        # as on Temporal's server, a failure during a pause is followed by one more
        if 0 < most < row.attempt and row.scheduled_event_id not in shadow.held:
            fail("attempts are as many as the policy allows", f"{name} of {most}")
        if row.started_at is not None and row.started_at < row.attempt_scheduled_at:
            fail("nothing happens before its time", f"{name} was taken during its backoff")
        claims = shadow.claims.setdefault(row.scheduled_event_id, [])
        taken = row.state is ActivityState.STARTED
        if before is not None and row.attempt < before.attempt:
            if (run.key, row.scheduled_event_id) not in self._anew:
                fail("attempts rise", f"{name} after {before.attempt}")
            claims[:] = [row] if taken else []
        if taken and (not claims or claims[-1].request_id != row.request_id):
            if row.attempt == 1 and (run.key, row.scheduled_event_id) in self._anew:
                claims.clear()
            claims.append(row)
            if is_held and before is not None and before.pause is not None:
                fail("what is paused doesn't begin", name)
            if row.attempt != len(claims):
                fail("an attempt is handed out once", f"{name} is claim {len(claims)}")


def _standing_changed(before: PendingActivity, row: PendingActivity) -> bool:
    """Whether the attempt became another one under the same stamp."""
    if row.stamp != before.stamp:
        return False
    return (row.state, row.attempt, row.request_id, row.cancel_requested_event_id) != (
        before.state,
        before.attempt,
        before.request_id,
        before.cancel_requested_event_id,
    )


def _clocks_of_run(state: MutableState) -> Iterator[datetime]:
    recorded, task = state.recorded, state.volatile.task
    for delivery in state.volatile.deliveries.values():
        yield delivery.due_at
    if not state.is_open:
        return
    if recorded.expiration_time is not None:
        yield recorded.expiration_time
    if recorded.run_timeout:
        yield recorded.execution_time + recorded.run_timeout
    if task is not None and task.started_at is not None:
        yield task.started_at + task.start_to_close_timeout
        return
    if not recorded.first_task_scheduled and not state.volatile.waits_for_parent:
        yield recorded.execution_time
    if task is not None and task.schedule_to_start_due is not None:
        yield task.schedule_to_start_due
    if task is not None and task.dispatch_due is not None:
        yield task.dispatch_due
    for timer in recorded.timers.values():
        yield timer.fire_at


def _clocks_of_activity(row: PendingActivity) -> Iterator[datetime]:
    if row.schedule_to_close_timeout:
        yield row.scheduled_at + row.schedule_to_close_timeout
    if row.started_at is None:
        if row.schedule_to_start_timeout:
            yield row.attempt_scheduled_at + row.schedule_to_start_timeout
        if row.dispatch_due is not None:
            yield row.dispatch_due
        return
    if row.start_to_close_timeout:
        yield row.started_at + row.start_to_close_timeout
    if row.heartbeat_timeout:
        alive = max(row.last_heartbeat_at or row.started_at, row.started_at)
        yield alive + row.heartbeat_timeout


def _difference(one: Recorded, other: Recorded | None) -> str:
    """The fields in which two states differ."""
    names = [
        name
        for name in one.__struct_fields__
        if other is None or getattr(one, name) != getattr(other, name)
    ]
    return ", ".join(
        f"{name}: stored {getattr(one, name)!r}, from events {getattr(other, name, None)!r}"
        for name in names
    )
