"""What a scripted worker answers to a workflow task: commands made up from the history and random
numbers, most of which can be carried out.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

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
from wfcore.protocol.enums import ParentClosePolicy
from wfcore.protocol.enums import WorkflowIdReusePolicy as Reuse
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Memo, Payload, Payloads, SearchAttributes

_CAUSES = (
    Cause.WORKFLOW_WORKER_UNHANDLED_FAILURE,
    Cause.WORKFLOW_WORKER_UNHANDLED_FAILURE,
    Cause.NON_DETERMINISTIC_ERROR,
    Cause.RESET_STICKY_TASK_QUEUE,
    Cause.BAD_BINARY,
)
#: Once in so many failures, one that ends the run.
_TOO_LARGE = 25


def seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


def failure(message: str, rng: random.Random) -> Failure:
    """A failure of an activity or a workflow; sometimes one that says how to go on."""
    delay = rng.choice([None, None, None, None, seconds(0), seconds(2), seconds(500)])
    return Failure(
        message=message,
        application_failure_info=ApplicationFailureInfo(
            type=rng.choice(["Broken", "Broken", "Refused"]),
            non_retryable=rng.random() < 0.1,
            next_retry_delay=delay,
        ),
    )


def retry_policy(rng: random.Random) -> RetryPolicy | None:
    """None is the server's, which never gives up."""
    return rng.choice(
        [
            None,
            RetryPolicy(maximum_attempts=1),
            RetryPolicy(maximum_attempts=3),
            RetryPolicy(initial_interval=seconds(0.2), maximum_attempts=4),
            RetryPolicy(
                initial_interval=seconds(3),
                backoff_coefficient=1.0,
                maximum_interval=seconds(3),
                maximum_attempts=2,
            ),
            RetryPolicy(maximum_attempts=5, non_retryable_error_types=("Refused",)),
        ]
    )


def activity(rng: random.Random, activity_id: str, queue: str, **given: object) -> Message:
    """An activity with some time limits."""
    start_to_close = rng.choice([seconds(2), seconds(10), seconds(120), None])
    to_close = rng.choice([None, None, seconds(8), seconds(60)])
    if start_to_close is None and to_close is None:
        start_to_close = seconds(30)
    return commands.ScheduleActivityTask(
        activity_id=activity_id,
        activity_type=ActivityType(name="chore"),
        task_queue=TaskQueue(name=queue),
        start_to_close_timeout=start_to_close,
        schedule_to_close_timeout=to_close,
        schedule_to_start_timeout=rng.choice([None, None, seconds(5), seconds(90)]),
        heartbeat_timeout=rng.choice([None, None, seconds(3), seconds(15)]),
        retry_policy=retry_policy(rng),
        request_eager_execution=rng.random() < 0.3,
    )


def _text(content: str) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=f'"{content}"'.encode())


@dataclass(kw_only=True, slots=True)
class Answer:
    """What to tell the service: commands, or why there are none."""

    commands: tuple[Command, ...] = ()
    force_new_task: bool = False
    return_new_task: bool = False
    is_sticky: bool = False
    cause: Cause | None = None


@dataclass(kw_only=True, slots=True)
class _Seen:
    """What is open as far as the history tells."""

    timers: list[str] = field(default_factory=list)
    #: scheduled event ids of activities that are not asked to be cancelled
    activities: list[int] = field(default_factory=list)
    #: workflow ids of children that have started
    children: list[str] = field(default_factory=list)
    cancel_requested: bool = False


def _read(events: Sequence[HistoryEvent]) -> _Seen:
    timers: dict[str, None] = {}
    activities: dict[int, None] = {}
    seen = _Seen()
    for event in events:
        match event.attributes:
            case ev.TimerStarted(timer_id=name):
                timers[name] = None
            case ev.TimerFired(timer_id=name) | ev.TimerCanceled(timer_id=name):
                timers.pop(name, None)
            case ev.ActivityTaskScheduled():
                activities[event.event_id] = None
            case (
                ev.ActivityTaskCancelRequested(scheduled_event_id=scheduled)
                | ev.ActivityTaskCompleted(scheduled_event_id=scheduled)
                | ev.ActivityTaskFailed(scheduled_event_id=scheduled)
                | ev.ActivityTaskTimedOut(scheduled_event_id=scheduled)
                | ev.ActivityTaskCanceled(scheduled_event_id=scheduled)
            ):
                activities.pop(scheduled, None)
            case ev.ChildWorkflowExecutionStarted(workflow_execution=child) if child:
                seen.children.append(child.workflow_id)
            case ev.WorkflowExecutionCancelRequested():
                seen.cancel_requested = True
    seen.timers, seen.activities = list(timers), list(activities)
    return seen


class Script:
    """Makes up answers to one task.

    Args:
        tag: a name that no other answer has; names of timers and activities begin with it.
        known: workflow ids that are in use.
        is_sociable: it mostly has to do with other workflows.
    """

    def __init__(
        self,
        events: Sequence[HistoryEvent],
        rng: random.Random,
        tag: str,
        queue: str,
        *,
        known: Sequence[str],
        is_sociable: bool,
    ) -> None:
        self._rng = rng
        self._tag = tag
        self._queue = queue
        self._known = known
        self._is_sociable = is_sociable
        self._seen = _read(events)
        self._is_first = sum(isinstance(e.attributes, ev.WorkflowTaskCompleted) for e in events) < 1
        #: id of the event that ends the task, if the answer is taken
        self._completed = events[-1].event_id + 1 if events else 0
        self._commands: list[Message] = []

    def end(self) -> Answer:
        """Whatever is open, the run is done."""
        return Answer(commands=(Command.of(commands.CompleteWorkflowExecution()),))

    def go_on(self) -> Answer:
        """Some more of whatever a workflow does."""
        rng = self._rng
        if rng.random() < 0.25:
            too_large = rng.randrange(_TOO_LARGE) == 0
            return Answer(cause=Cause.GRPC_MESSAGE_TOO_LARGE if too_large else rng.choice(_CAUSES))
        if rng.random() < 0.05:
            return Answer(force_new_task=True, return_new_task=rng.random() < 0.5, is_sticky=True)
        if self._is_first:  # something to do for the rest of its life
            self._commands += [activity(rng, f"{self._tag}-{n}", self._queue) for n in "ab"]
        for _ in range(rng.choice([0, 1, 2, 2, 3, 4, 5])):
            self._commands.append(self._wish())
        if rng.random() < 0.05:
            self._commands.insert(rng.randint(0, len(self._commands)), self._bad())
        if rng.random() < self._closing_rate():
            self._commands.append(self._close())
        return Answer(
            commands=tuple(Command.of(each) for each in self._commands),
            force_new_task=rng.random() < 0.1,
            return_new_task=rng.random() < 0.4,
            is_sticky=rng.random() < 0.7,
        )

    def _closing_rate(self) -> float:
        if self._seen.cancel_requested:
            return 0.3
        return 0.02 if self._is_first else 0.1

    def _wish(self) -> Message:
        rng, name = self._rng, f"{self._tag}-{len(self._commands)}"
        if rng.random() < (0.72 if self._is_sociable else 0.1):
            return self._to_others(name)
        kind = rng.choice(["timer", "timer", *["activity"] * 6, *["cancel"] * 7, *["note"] * 3])
        if kind == "activity":
            return activity(rng, name, self._queue)
        if kind == "cancel":
            found = self._cancellation()
            if found is not None:
                return found
        if kind == "note":
            return self._note(name)
        after = rng.choice([None, seconds(0), seconds(0.5), seconds(3), seconds(30), seconds(400)])
        return commands.StartTimer(timer_id=name, start_to_fire_timeout=after)

    def _cancellation(self) -> Message | None:
        """Of something that is open, or that this answer has just begun."""
        rng, seen = self._rng, self._seen
        begun = [
            self._completed + place
            for place, command in enumerate(self._commands, 1)
            if isinstance(command, commands.ScheduleActivityTask)
        ]
        open_activities = seen.activities + (begun if rng.random() < 0.3 else [])
        if open_activities and not (seen.timers and rng.random() < 0.6):
            scheduled = rng.choice(open_activities)
            if scheduled in seen.activities:
                seen.activities.remove(scheduled)
            return commands.RequestCancelActivityTask(scheduled_event_id=scheduled)
        if seen.timers:
            name = rng.choice(seen.timers)
            seen.timers.remove(name)
            return commands.CancelTimer(timer_id=name)
        return None

    def _to_others(self, name: str) -> Message:
        """Something about another workflow: one of those that clients start, a child, or itself."""
        rng = self._rng
        children = self._seen.children
        workflow_id = rng.choice(["nobody", rng.choice(self._known), *children, *children])
        only_child = rng.random() < 0.3
        kind = rng.choice(["child", "child", "signal", "signal", "cancel"])
        if kind == "signal":
            return commands.SignalExternalWorkflowExecution(
                execution=WorkflowExecution(workflow_id=workflow_id),
                signal_name="note",
                input=Payloads(payloads=(_text(name),)),
                child_workflow_only=only_child,
            )
        if kind == "cancel":
            return commands.RequestCancelExternalWorkflowExecution(
                workflow_id=workflow_id, child_workflow_only=only_child, reason=name
            )
        return commands.StartChildWorkflowExecution(
            workflow_id=rng.choice([workflow_id, f"child-{name}", f"child-{name}"]),
            workflow_type=WorkflowType(name="Script"),
            workflow_run_timeout=rng.choice([None, None, None, seconds(7)]),
            parent_close_policy=rng.choice([*ParentClosePolicy]),
            workflow_id_reuse_policy=rng.choice([*Reuse]),
            retry_policy=rng.choice([None, None, RetryPolicy(maximum_attempts=2)]),
        )

    def _note(self, name: str) -> Message:
        value = _text(name)
        empty = Payload(metadata={"encoding": b"json/plain"}, data=b"null")
        return self._rng.choice(
            [
                commands.RecordMarker(
                    marker_name="note", details={"data": Payloads(payloads=(value,))}
                ),
                commands.ModifyWorkflowProperties(
                    upserted_memo=Memo(fields={self._rng.choice("abc"): value, "d": empty})
                ),
                commands.UpsertWorkflowSearchAttributes(
                    search_attributes=SearchAttributes(
                        indexed_fields={
                            "CustomKeywordField": Payload(
                                metadata={"encoding": b"json/plain", "type": b"Keyword"},
                                data=f'"{name}"'.encode(),
                            )
                        }
                    )
                ),
            ]
        )

    def _bad(self) -> Message:
        """A command that can't be carried out."""
        return self._rng.choice(
            [
                commands.StartTimer(timer_id=""),
                commands.CancelTimer(timer_id="nobody's"),
                commands.RequestCancelActivityTask(scheduled_event_id=1),
                commands.ScheduleActivityTask(activity_id=f"{self._tag}-bad"),
                commands.RecordMarker(),
                commands.CompleteWorkflowExecution(),
                commands.SignalExternalWorkflowExecution(signal_name="nobody's"),
                commands.ContinueAsNewWorkflowExecution(workflow_run_timeout=seconds(-1)),
            ]
        )

    def _close(self) -> Message:
        rng = self._rng
        if self._seen.cancel_requested and rng.random() < 0.7:
            return commands.CancelWorkflowExecution()
        return rng.choice(
            [
                commands.CompleteWorkflowExecution(),
                commands.FailWorkflowExecution(failure=failure("the script fails", rng)),
                commands.FailWorkflowExecution(failure=failure("the script fails", rng)),
                commands.ContinueAsNewWorkflowExecution(
                    workflow_type=rng.choice([None, WorkflowType(name="Script")]),
                    backoff_start_interval=rng.choice([None, None, seconds(4)]),
                    retry_policy=rng.choice([None, RetryPolicy(maximum_attempts=2)]),
                ),
            ]
        )
