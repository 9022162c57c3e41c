"""Make the state machine go through what a recorded history tells, and give the history it writes.

A recording holds when every fact arrived and what each workflow task asked for. Those become
requests, in the order of time; what the engine writes for them must be what the server wrote.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from tests.support.histories import Run, start_request, token_of
from wfcore.exceptions import InvalidArgumentError
from wfcore.history.limits import Limits
from wfcore.history.machines import activity
from wfcore.history.requests import (
    Arrive,
    AttachStartRequest,
    ClaimTask,
    CompleteTask,
    DeliverInbox,
    Due,
    FailTask,
    RequestCancelRun,
    SignalRun,
    StartRun,
    TerminateRun,
)
from wfcore.history.state import DeliveryKind, InboxItem, PendingActivity
from wfcore.history.step import CHILD_ENDS
from wfcore.history.transition import start
from wfcore.protocol import commands, json_form
from wfcore.protocol import events as ev
from wfcore.protocol.commands import Command
from wfcore.protocol.enums import TaskQueueKind, TimeoutType
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause
from wfcore.protocol.events import HistoryEvent

_INLINE = "request-from-RespondWorkflowTaskCompleted"
_ZERO = timedelta(0)


@dataclass(order=True)
class Act:
    at: int
    place: int
    event: HistoryEvent = field(compare=False)


def reenact(chain: list[dict[str, Any]], limits: Limits) -> Run:
    """Go through recorded histories of runs that follow each other; give the last one.

    None may have an `obstacle`.
    """
    run = None
    for place, recorded in enumerate(chain):
        play = _Play(recorded, limits, run.next_run if run else None)
        if place + 1 < len(chain):
            play.following = json_form.history_from_json(chain[place + 1])[0].attributes
        run = play.run_through()
    assert run is not None
    return run


class _Play:
    def __init__(self, recorded: dict[str, Any], limits: Limits, run: Run | None) -> None:
        self.events = json_form.history_from_json(recorded)
        self.nanos = [_nanos(event["eventTime"]) for event in recorded["events"]]
        self.limits = limits
        self.first = self.events[0]
        self.signal_of_start: HistoryEvent | None = None
        #: event 1 of the run that follows: it has what a closing event leaves out
        self.following: Any = None
        self.run = run or self._start()

    def run_through(self) -> Run:
        for act in sorted(self._acts()):
            self.run.now = max(self.run.now, act.event.event_time)
            _PLAYERS.get(type(act.event.attributes), _nothing)(
                self, act.event, act.event.attributes
            )
            self._bend_clocks()
        return self.run

    def _acts(self) -> Iterator[Act]:
        for place, event in enumerate(self.events[1:], 1):
            yield Act(self.nanos[place], place, event)

    # ---- the start

    def _start(self) -> Run:
        started = self.first.attributes
        assert isinstance(started, ev.WorkflowExecutionStarted)
        signal = None
        second = self.events[1] if len(self.events) > 1 else None
        backoff = started.first_workflow_task_backoff or _ZERO
        if second and isinstance(second.attributes, ev.WorkflowExecutionSignaled) and not backoff:
            self.signal_of_start = second
            signal = _signal(second.attributes)
        request = start_request(
            workflow_id=started.workflow_id,
            workflow_type=started.workflow_type,
            task_queue=started.task_queue,
            input=started.input,
            workflow_execution_timeout=started.workflow_execution_timeout,
            workflow_run_timeout=started.workflow_run_timeout,
            workflow_task_timeout=started.workflow_task_timeout,
            retry_policy=started.retry_policy,
            workflow_start_delay=None if started.cron_schedule else backoff,
            cron_schedule=started.cron_schedule,
            memo=started.memo,
            search_attributes=started.search_attributes,
            header=started.header,
            priority=started.priority,
            completion_callbacks=started.completion_callbacks,
            last_completion_result=started.last_completion_result,
            continued_failure=started.continued_failure,
            identity=started.identity,
            user_metadata=self.first.user_metadata,
            request_eager_execution=started.eager_execution_accepted,
        )
        eager = None
        if started.eager_execution_accepted:
            eager = ClaimTask(request_id="eager", identity=started.identity)
        change = start(
            self.first.event_time,
            StartRun(
                run_id=started.original_execution_run_id,
                request=request,
                signal=signal,
                first_workflow_task_backoff=backoff if started.cron_schedule else None,
                eager_claim=eager,
                parent_namespace=started.parent_workflow_namespace,
                parent_namespace_id=started.parent_workflow_namespace_id,
                parent=started.parent_workflow_execution,
                parent_initiated_event_id=started.parent_initiated_event_id,
                root=started.root_workflow_execution,
            ),
            self.limits,
        )
        run = Run(change, self.limits)
        run.claim = run.state.volatile.task if eager else None
        return run

    # ---- clocks

    def _bend_clocks(self) -> None:
        """The server's timers are up to a second late: have ours fire when its own did."""
        self.run.is_bent = True
        timers = self.run.state.recorded.timers
        for timer_id, timer in timers.items():
            fired = next(
                (
                    event.event_time
                    for event in self.events
                    if isinstance(event.attributes, ev.TimerFired)
                    and event.attributes.started_event_id == timer.started_event_id
                ),
                timer.fire_at + timedelta(days=365),
            )
            timers[timer_id] = msgspec.structs.replace(timer, fire_at=fired)

    # ---- workflow tasks

    def task_scheduled(self, event: HistoryEvent, attributes: ev.WorkflowTaskScheduled) -> None:
        if self.run.state.recorded.first_task_scheduled or attributes.attempt > 1:
            return
        self.run.now = max(self.run.now, self.run.state.recorded.execution_time)
        self.run.apply(Due())

    def task_started(self, event: HistoryEvent, attributes: ev.WorkflowTaskStarted) -> None:
        if attributes.request_id == _INLINE or self._started_eagerly(event):
            return
        scheduled = self.events[attributes.scheduled_event_id - 1].attributes
        assert isinstance(scheduled, ev.WorkflowTaskScheduled)
        run = self.run
        while True:
            answer = run.apply(
                ClaimTask(request_id=attributes.request_id, identity=attributes.identity)
            )
            run.claim = answer.claim
            assert run.claim is not None, "a task that is not there is started"
            if run.claim.attempt >= scheduled.attempt:
                return
            run.fail_task()

    def _started_eagerly(self, event: HistoryEvent) -> bool:
        started = self.first.attributes
        assert isinstance(started, ev.WorkflowExecutionStarted)
        return started.eager_execution_accepted and event.event_id == 3

    def task_completed(self, event: HistoryEvent, attributes: ev.WorkflowTaskCompleted) -> None:
        wanted: list[Command] = []
        place = event.event_id
        for follower in self.events[place:]:
            command = _command(follower)
            if command is None:
                break
            if self.following and isinstance(
                command.attributes, commands.ContinueAsNewWorkflowExecution
            ):
                again = msgspec.structs.replace(
                    command.attributes, retry_policy=self.following.retry_policy
                )
                command = msgspec.structs.replace(command, attributes=again)
            wanted.append(command)
            place += 1
        rest = self.events[place:]
        forced = bool(
            rest
            and isinstance(rest[0].attributes, ev.WorkflowTaskScheduled)
            and rest[0].attributes.attempt == 1
            and rest[0].event_time - event.event_time < timedelta(milliseconds=3)
            and not self.run.inbox
        )
        inline = next(
            (
                follower.attributes
                for follower in rest[:40]
                if isinstance(follower.attributes, ev.WorkflowTaskStarted)
            ),
            None,
        )
        takes = inline is not None and inline.request_id == _INLINE
        self._complete(
            wanted,
            identity=attributes.identity,
            force_create_new_workflow_task=forced,
            next_claim=ClaimTask(request_id=_INLINE, identity=inline.identity)
            if takes and inline
            else None,
            next_run_id=_next_run(self.events) or "next-run",
        )

    def _complete(self, wanted: list[Command], **options: Any) -> None:
        run = self.run
        assert run.claim is not None
        answer = run.apply(
            CompleteTask(token=token_of(run.claim), commands=tuple(wanted), **options)
        )
        run.claim = answer.claim

    def task_failed(self, event: HistoryEvent, attributes: ev.WorkflowTaskFailed) -> None:
        run = self.run
        if attributes.cause is Cause.FORCE_CLOSE_COMMAND:
            return
        if attributes.cause is Cause.UNHANDLED_COMMAND:
            try:
                self._complete(
                    [Command.of(commands.CompleteWorkflowExecution())],
                    identity=attributes.identity,
                )
            except InvalidArgumentError:
                return
            raise AssertionError("nothing was buffered")
        assert run.claim is not None
        run.apply(
            FailTask(
                token=token_of(run.claim),
                cause=attributes.cause,
                failure=attributes.failure,
                identity=attributes.identity,
            )
        )

    def task_timed_out(self, event: HistoryEvent, attributes: ev.WorkflowTaskTimedOut) -> None:
        self._until_due()
        self.run.apply(Due())

    def _until_due(self) -> None:
        task = self.run.state.volatile.task
        assert task is not None
        assert task.started_at is not None
        self.run.now = max(self.run.now, task.started_at + task.start_to_close_timeout)

    # ---- activities

    def activity_started(self, event: HistoryEvent, attributes: ev.ActivityTaskStarted) -> None:
        row = self.run.activities[attributes.scheduled_event_id]
        row = self._attempts_before(row, attributes)
        if not attributes.request_id:
            return  # made up by an answer by id
        decision = activity.claim(
            row, self.run.now, request_id=attributes.request_id, identity=attributes.identity
        )
        assert decision is not None
        self.run.settle(row, decision)

    def _attempts_before(
        self, row: PendingActivity, attributes: ev.ActivityTaskStarted
    ) -> PendingActivity:
        """Attempts that left no event: each fails as the last of them did."""
        failure = attributes.last_failure
        timed_out = failure is not None and failure.timeout_failure_info is not None
        while row.attempt < attributes.attempt:
            at = row.attempt_scheduled_at
            taken = activity.claim(row, at, request_id="before", identity=attributes.identity)
            assert taken is not None
            assert taken.row is not None
            if timed_out:
                assert failure is not None
                assert failure.timeout_failure_info is not None
                if failure.timeout_failure_info.timeout_type is TimeoutType.HEARTBEAT:
                    at += row.heartbeat_timeout
                else:
                    at += row.start_to_close_timeout
                    beaten = activity.heartbeat(taken.row, at, None).row
                    assert beaten is not None
                    taken = activity.Decision(row=beaten)
                assert taken.row is not None
                ended = activity.due(taken.row, at, self.limits)
            else:
                ended = activity.fail(taken.row, at, failure, attributes.identity)
            assert ended is not None
            assert ended.row is not None, ended
            row = msgspec.structs.replace(ended.row, attempt_scheduled_at=row.attempt_scheduled_at)
        self.run.activities[row.scheduled_event_id] = row
        return row

    def activity_completed(self, event: HistoryEvent, attributes: ev.ActivityTaskCompleted) -> None:
        row = self._ending(attributes)
        self._end(row, activity.complete(row, self.run.now, attributes.result, attributes.identity))

    def activity_failed(self, event: HistoryEvent, attributes: ev.ActivityTaskFailed) -> None:
        row = self._ending(attributes)
        self._end(row, activity.fail(row, self.run.now, attributes.failure, attributes.identity))

    def activity_canceled(self, event: HistoryEvent, attributes: ev.ActivityTaskCanceled) -> None:
        if attributes.scheduled_event_id not in self.run.activities:
            return  # nobody had taken it: the command ended it
        row = self._ending(attributes)
        self._end(row, activity.cancel(row, self.run.now, attributes.details, attributes.identity))

    def activity_timed_out(self, event: HistoryEvent, attributes: ev.ActivityTaskTimedOut) -> None:
        row = self._ending(attributes)
        failure = attributes.failure
        assert failure is not None
        assert failure.timeout_failure_info is not None
        details = failure.timeout_failure_info.last_heartbeat_details
        if details is not None and row.heartbeat_timeout:
            at = self.run.now - row.heartbeat_timeout
            beat = activity.heartbeat(row, at, details).row
            assert beat is not None
            row = self.run.activities[row.scheduled_event_id] = beat
        if failure.cause is not None and row.last_failure is None:
            row = self.run.activities[row.scheduled_event_id] = msgspec.structs.replace(
                row,
                last_failure=failure.cause,
                attempt=2,
                attempt_scheduled_at=row.attempt_scheduled_at + timedelta(seconds=1),
            )
        if row.due_at is not None and row.due_at > self.run.now:
            self.run.now = row.due_at
        decision = activity.due(row, self.run.now, self.limits)
        while decision is not None and decision.row is not None and decision.row.due_at:
            self.run.now = max(self.run.now, decision.row.due_at)
            row = self.run.activities[row.scheduled_event_id] = decision.row
            decision = activity.due(row, self.run.now, self.limits)
        assert decision is not None
        self._end(row, decision)

    def _ending(self, attributes: Any) -> PendingActivity:
        return self.run.activities[attributes.scheduled_event_id]

    def _end(self, row: PendingActivity, decision: activity.Decision) -> None:
        assert decision.item is not None, "the engine would try again"
        self.run.settle(row, decision)

    # ---- from outside

    def signaled(self, event: HistoryEvent, attributes: ev.WorkflowExecutionSignaled) -> None:
        if event is self.signal_of_start:
            return
        place = event.event_id
        following = self.events[place] if place < len(self.events) else None
        recorded = self.run.state.recorded
        ends_delay = (
            not recorded.first_task_scheduled
            and following is not None
            and isinstance(following.attributes, ev.WorkflowTaskScheduled)
            and following.event_time < recorded.execution_time
        )
        self.run.apply(_signal(attributes, ends_delay=ends_delay))
        if len(self.run.inbox) > self.limits.buffered_events:
            self.run.apply(DeliverInbox())

    def cancel_requested(
        self, event: HistoryEvent, attributes: ev.WorkflowExecutionCancelRequested
    ) -> None:
        self.run.apply(
            RequestCancelRun(
                identity=attributes.identity,
                reason=attributes.cause,
                external_initiated_event_id=attributes.external_initiated_event_id,
                external_workflow_execution=attributes.external_workflow_execution,
            )
        )

    def options_updated(
        self, event: HistoryEvent, attributes: ev.WorkflowExecutionOptionsUpdated
    ) -> None:
        self.run.apply(
            AttachStartRequest(
                request_id=attributes.attached_request_id,
                completion_callbacks=attributes.attached_completion_callbacks,
            )
        )

    # ---- other workflows

    def _answered(self, kind: DeliveryKind) -> Callable[[HistoryEvent, Any], None]:
        def answer(event: HistoryEvent, attributes: Any) -> None:
            self.run.acknowledge(kind, attributes.initiated_event_id, attributes)

        return answer

    def child_answered(self, event: HistoryEvent, attributes: Any) -> None:
        self._answered(DeliveryKind.START_CHILD)(event, attributes)

    def signal_answered(self, event: HistoryEvent, attributes: Any) -> None:
        self._answered(DeliveryKind.SIGNAL)(event, attributes)

    def cancel_answered(self, event: HistoryEvent, attributes: Any) -> None:
        self._answered(DeliveryKind.CANCEL)(event, attributes)

    def child_ended(self, event: HistoryEvent, attributes: Any) -> None:
        told = msgspec.structs.replace(attributes, started_event_id=0)
        self.run.apply(Arrive(item=InboxItem(event_time=event.event_time, attributes=told)))

    # ---- time

    def timer_fired(self, event: HistoryEvent, attributes: ev.TimerFired) -> None:
        self.run.apply(Due())

    def terminated(self, event: HistoryEvent, attributes: ev.WorkflowExecutionTerminated) -> None:
        if not self.run.state.is_open:
            return
        self.run.apply(
            TerminateRun(
                reason=attributes.reason, details=attributes.details, identity=attributes.identity
            )
        )

    def timed_out(self, event: HistoryEvent, attributes: ev.WorkflowExecutionTimedOut) -> None:
        due = self.run.last.next_deadline
        recorded = self.run.state.recorded
        ends = [
            end
            for end in (
                recorded.expiration_time,
                recorded.execution_time + recorded.run_timeout if recorded.run_timeout else None,
            )
            if end is not None
        ]
        assert due is not None
        self.run.now = max(self.run.now, min(ends))
        self.run.apply(Due(next_run_id=attributes.new_execution_run_id or "next-run"))


def _signal(attributes: ev.WorkflowExecutionSignaled, *, ends_delay: bool = False) -> SignalRun:
    return SignalRun(
        signal_name=attributes.signal_name,
        input=attributes.input,
        identity=attributes.identity,
        header=attributes.header,
        request_id=attributes.request_id,
        external_workflow_execution=attributes.external_workflow_execution,
        ends_delay=ends_delay,
    )


def _next_run(events: list[HistoryEvent]) -> str:
    return getattr(events[-1].attributes, "new_execution_run_id", "")


def _command(event: HistoryEvent) -> Command | None:
    """The command that an event was made of; None when it was not made by a command."""
    attributes = event.attributes
    made: Callable[[Any], msgspec.Struct] | None = _COMMANDS.get(type(attributes))
    if made is None:
        return None
    wanted = made(attributes)
    return Command.of(wanted, event.user_metadata)  # type: ignore[arg-type]


def _same(kind: type[Any], *names: str) -> Callable[[Any], Any]:
    return lambda attributes: kind(**{name: getattr(attributes, name) for name in names})


_COMMANDS: dict[type[Any], Callable[[Any], Any]] = {
    ev.ActivityTaskScheduled: _same(
        commands.ScheduleActivityTask,
        "activity_id",
        "activity_type",
        "task_queue",
        "header",
        "input",
        "schedule_to_close_timeout",
        "schedule_to_start_timeout",
        "start_to_close_timeout",
        "heartbeat_timeout",
        "retry_policy",
        "use_workflow_build_id",
        "priority",
    ),
    ev.StartChildWorkflowExecutionInitiated: _same(
        commands.StartChildWorkflowExecution,
        "namespace",
        "workflow_id",
        "workflow_type",
        "task_queue",
        "input",
        "workflow_execution_timeout",
        "workflow_run_timeout",
        "workflow_task_timeout",
        "parent_close_policy",
        "workflow_id_reuse_policy",
        "retry_policy",
        "cron_schedule",
        "header",
        "memo",
        "search_attributes",
        "inherit_build_id",
        "priority",
    ),
    ev.SignalExternalWorkflowExecutionInitiated: lambda attributes: (
        commands.SignalExternalWorkflowExecution(
            namespace=attributes.namespace,
            execution=attributes.workflow_execution,
            signal_name=attributes.signal_name,
            input=attributes.input,
            child_workflow_only=attributes.child_workflow_only,
            header=attributes.header,
        )
    ),
    ev.RequestCancelExternalWorkflowExecutionInitiated: lambda attributes: (
        commands.RequestCancelExternalWorkflowExecution(
            namespace=attributes.namespace,
            workflow_id=attributes.workflow_execution.workflow_id,
            run_id=attributes.workflow_execution.run_id,
            child_workflow_only=attributes.child_workflow_only,
            reason=attributes.reason,
        )
    ),
    ev.ActivityTaskCancelRequested: _same(commands.RequestCancelActivityTask, "scheduled_event_id"),
    ev.TimerStarted: _same(commands.StartTimer, "timer_id", "start_to_fire_timeout"),
    ev.TimerCanceled: _same(commands.CancelTimer, "timer_id"),
    ev.MarkerRecorded: _same(commands.RecordMarker, "marker_name", "details", "header", "failure"),
    ev.UpsertWorkflowSearchAttributes: _same(
        commands.UpsertWorkflowSearchAttributes, "search_attributes"
    ),
    ev.WorkflowPropertiesModified: _same(commands.ModifyWorkflowProperties, "upserted_memo"),
    ev.WorkflowExecutionCompleted: _same(commands.CompleteWorkflowExecution, "result"),
    ev.WorkflowExecutionFailed: _same(commands.FailWorkflowExecution, "failure"),
    ev.WorkflowExecutionCanceled: _same(commands.CancelWorkflowExecution, "details"),
    ev.WorkflowExecutionContinuedAsNew: _same(
        commands.ContinueAsNewWorkflowExecution,
        "workflow_type",
        "task_queue",
        "input",
        "workflow_run_timeout",
        "workflow_task_timeout",
        "last_completion_result",
        "header",
        "memo",
        "search_attributes",
        "inherit_build_id",
    ),
}
_PLAYERS: dict[type[Any], Callable[..., None]] = {
    ev.WorkflowTaskScheduled: _Play.task_scheduled,
    ev.WorkflowTaskStarted: _Play.task_started,
    ev.WorkflowTaskCompleted: _Play.task_completed,
    ev.WorkflowTaskFailed: _Play.task_failed,
    ev.WorkflowTaskTimedOut: _Play.task_timed_out,
    ev.ActivityTaskStarted: _Play.activity_started,
    ev.ActivityTaskCompleted: _Play.activity_completed,
    ev.ActivityTaskFailed: _Play.activity_failed,
    ev.ActivityTaskCanceled: _Play.activity_canceled,
    ev.ActivityTaskTimedOut: _Play.activity_timed_out,
    ev.WorkflowExecutionSignaled: _Play.signaled,
    ev.WorkflowExecutionCancelRequested: _Play.cancel_requested,
    ev.WorkflowExecutionOptionsUpdated: _Play.options_updated,
    ev.ChildWorkflowExecutionStarted: _Play.child_answered,
    ev.StartChildWorkflowExecutionFailed: _Play.child_answered,
    ev.ExternalWorkflowExecutionSignaled: _Play.signal_answered,
    ev.SignalExternalWorkflowExecutionFailed: _Play.signal_answered,
    ev.ExternalWorkflowExecutionCancelRequested: _Play.cancel_answered,
    ev.RequestCancelExternalWorkflowExecutionFailed: _Play.cancel_answered,
    **dict.fromkeys(CHILD_ENDS, _Play.child_ended),
    ev.TimerFired: _Play.timer_fired,
    ev.WorkflowExecutionTerminated: _Play.terminated,
    ev.WorkflowExecutionTimedOut: _Play.timed_out,
}
_KNOWN = frozenset(_PLAYERS) | frozenset(_COMMANDS)


def _nothing(_play: _Play, _event: HistoryEvent, _attributes: Any) -> None:
    """Written by what came before."""


def _nanos(time: str) -> int:
    """Nanoseconds of a recorded time; the engine has only microseconds."""
    whole, _, fraction = time.removesuffix("Z").partition(".")
    second = int(datetime.fromisoformat(whole + "+00:00").timestamp())
    return second * 10**9 + int(fraction.ljust(9, "0") or 0)


def obstacle(recorded: dict[str, Any]) -> str:
    """What in a recording requests to one run can't bring about here; empty when nothing does."""
    events = json_form.history_from_json(recorded)
    by_id = {event.event_id: event for event in events}
    for event in events:
        attributes = event.attributes
        match attributes:
            case ev.WorkflowTaskFailed(cause=Cause.RESET_WORKFLOW):
                return "reset"
            case ev.WorkflowTaskFailed() if (
                _is_sticky(by_id[attributes.scheduled_event_id])
                and attributes.cause is not Cause.FORCE_CLOSE_COMMAND
                and attributes.cause is not Cause.UNHANDLED_COMMAND
            ):
                return "failure on a sticky queue"
            case ev.WorkflowTaskTimedOut() if _is_sticky(by_id[attributes.scheduled_event_id]):
                return "time-out on a sticky queue"
            case ev.WorkflowTaskFailed(failure=failure) if (
                failure is not None
                and failure.server_failure_info is not None
                and attributes.cause is not Cause.UNHANDLED_COMMAND
            ):
                return "bad command"
            case ev.ActivityTaskStarted() if attributes.attempt > 1 and not attributes.last_failure:
                return "activity operation"
            case ev.WorkflowExecutionOptionsUpdated() if attributes.identity:
                return "options updated"
        if event.event_id > 1 and type(attributes) not in _KNOWN:
            return event.event_type.name
    return ""


def _is_sticky(event: HistoryEvent) -> bool:
    queue = getattr(event.attributes, "task_queue", None)
    return queue is not None and queue.kind is TaskQueueKind.STICKY
