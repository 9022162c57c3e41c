"""Timers and activities that the code waits for, and their futures.

An operation has an event id from the moment its command is recorded. Cancelled before that, command
and cancellation cancel out and leave no trace.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

from wfcore.converter import (
    ActivitySerializationContext,
    priority_to_protocol,
    retry_policy_to_protocol,
)
from wfcore.protocol import commands, events
from wfcore.protocol.common import ActivityType, TaskQueue
from wfcore.protocol.enums import RetryState
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.failures import ActivityFailureInfo, CanceledFailureInfo, Failure
from wfcore.protocol.metadata import EventGroupMarker
from wfcore.protocol.payloads import Header, UserMetadata
from wfcore.replay.flags import LangFlag
from wfcore.replay.interceptors import StartActivityInput
from wfcore.replay.loop import WorkflowTask
from wfcore.replay.state import Job, RunState
from wfcore.workflow import ActivityCancellationType, ActivityHandle, VersioningIntent
from wfcore.workflow._event_groups import markers

_Options = tuple[UserMetadata | None, tuple[EventGroupMarker, ...] | None]

#: Summary and groups of the timer that is started next in this context.
timer_options: contextvars.ContextVar[_Options] = contextvars.ContextVar(
    "wfcore_timer_options", default=(None, None)
)


async def settled(
    state: RunState,
    result: asyncio.Future[Any],
    on_cancel: Callable[[asyncio.CancelledError], None],
    *,
    rule: LangFlag | None = None,
    reraises: Callable[[], bool] | None = None,
) -> Any:
    """Wait for an operation's result; a cancellation of the waiting task becomes a request.

    Args:
        state: the run.
        result: what is waited for.
        on_cancel: asks for cancellation.
        rule: the flag by which a cancellation that meets the result is raised, not lost.
        reraises: whether to raise the cancellation besides.
    """
    while True:
        released = state.loop.create_future()
        release = partial(_release, released)
        result.add_done_callback(release)
        try:
            await released
            return result.result()
        except asyncio.CancelledError as error:
            if result.done():
                if state.flags.lang(LangFlag.ONE_BATCH):
                    raise
                if rule is not None and state.flags.lang(rule):
                    raise
            on_cancel(error)
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()  # or the next await would raise at once
            if reraises is not None and reraises():
                raise
        finally:
            result.remove_done_callback(release)


def _release(waiting: asyncio.Future[None], _result: asyncio.Future[Any] | None = None) -> None:
    if not waiting.done():
        waiting.set_result(None)


# --- timers -------------------------------------------------------------------------------------


class Timer(asyncio.TimerHandle):
    """A timer of the loop, recorded as one of the workflow."""

    def __init__(
        self,
        state: RunState,
        delay: float,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
        context: contextvars.Context | None,
    ) -> None:
        super().__init__(state.loop.seconds + delay, callback, args, state.loop, context)
        metadata, groups = timer_options.get()
        self.timer_id = str(state.next_number("timer"))
        self.event_id = 0
        self.is_open = True
        self.issued = state.commands.add(
            commands.StartTimer(
                timer_id=self.timer_id,
                start_to_fire_timeout=timedelta(microseconds=int(delay * 1e9) // 1000),
            ),
            self,
            metadata,
            markers() if groups is None else groups,
        )
        self._state = state

    def recorded(self, event: HistoryEvent) -> None:
        """TIMER_STARTED, or TIMER_CANCELED, which ends it."""
        if self.is_open:
            self.event_id = event.event_id
            self._state.operations[event.event_id] = self

    def fired(self, _event: HistoryEvent) -> Job:
        """TIMER_FIRED: from now on a cancellation comes too late."""
        self.is_open = False
        self._state.operations.pop(self.event_id, None)
        return partial(self._state.loop.make_ready, self)


class Timers:
    """Starts and cancels timers for the loop."""

    def __init__(self) -> None:
        self.state: RunState = None  # type: ignore[assignment]  # set by the state's owner

    def start_timer(
        self,
        delay: float,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
        context: contextvars.Context | None,
    ) -> asyncio.TimerHandle:
        """Start a timer of so many seconds.

        Raises:
            RuntimeError: the delay is negative.
        """
        state = self.state
        state.check_may_act("start a timer")
        if delay < 0:
            raise RuntimeError("Attempting to schedule timer with negative delay")
        return Timer(state, delay, callback, args, context)

    def cancel_timer(self, handle: asyncio.TimerHandle) -> None:
        """Cancel a timer; nothing happens if it has fired."""
        state = self.state
        if not isinstance(handle, Timer) or not handle.is_open or state.loop.evicting:
            return
        state.check_may_act("cancel a timer")
        handle.is_open = False
        if not handle.event_id:
            state.commands.drop(handle.issued)
            return
        del state.operations[handle.event_id]
        state.commands.add(
            commands.CancelTimer(timer_id=handle.timer_id),
            handle,
            handle.issued.metadata,
            handle.issued.markers,
        )


async def elapsed(
    state: RunState,
    seconds: float,
    groups: tuple[EventGroupMarker, ...],
    metadata: UserMetadata | None = None,
) -> None:
    """Wait for a timer that has this summary and these groups."""
    future = state.loop.create_future()
    token = timer_options.set((metadata, groups))
    try:
        timer = state.loop.call_later(seconds, _release, future)
    finally:
        timer_options.reset(token)
    future.add_done_callback(lambda done: timer.cancel() if done.cancelled() else None)
    await future


# --- activities ---------------------------------------------------------------------------------


class Activity:
    """An activity from its command to its result."""

    __slots__ = (
        "_is_cancel_requested",
        "_issued",
        "_state",
        "_values",
        "activity_id",
        "call",
        "event_id",
        "is_awaited",
        "is_open",
        "result",
    )

    def __init__(self, state: RunState, call: StartActivityInput) -> None:
        self._state = state
        self.call = call
        number = state.next_number("activity")  # taken even if the code gave an id of its own
        self.activity_id = call.activity_id or str(number)
        self.event_id = 0
        self.is_open = True
        self.is_awaited = False
        self.result = state.loop.create_future()
        self._is_cancel_requested = False
        self._values = state.values.for_activity(self._context)
        self._issued = state.commands.add(
            _schedule_command(state, call, self.activity_id, self._values),
            self,
            self._values.metadata(call.summary),
            markers(call.event_groups),
        )

    def recorded(self, event: HistoryEvent) -> None:
        """ACTIVITY_TASK_SCHEDULED; the events of a cancel request change nothing."""
        if not self.event_id:
            self.event_id = event.event_id
            self._state.operations[event.event_id] = self

    def closed(self, event: HistoryEvent) -> Job | None:
        """The activity ended; what the code was already told stands."""
        del self._state.operations[self.event_id]
        if not self.is_open:
            return None
        self.is_open = False
        return partial(self._tell, event.attributes)

    def request_cancel(self, _error: asyncio.CancelledError | None = None) -> None:
        """Cancel it, as its cancellation type says."""
        state = self._state
        state.check_may_act("cancel an activity")
        if not self.is_open or self._is_cancel_requested:
            return
        kind = self.call.cancellation_type
        if not self.event_id:
            state.commands.drop(self._issued)
        elif kind is not ActivityCancellationType.ABANDON:
            self._is_cancel_requested = True
            state.commands.add(
                commands.RequestCancelActivityTask(scheduled_event_id=self.event_id),
                self,
                self._issued.metadata,
                self._issued.markers,
            )
            if kind is ActivityCancellationType.WAIT_CANCELLATION_COMPLETED:
                return
        self.is_open = False
        failure = self._failure(
            "Activity cancelled",
            Failure(canceled_failure_info=CanceledFailureInfo()),
            ActivityFailureInfo(retry_state=RetryState.CANCEL_REQUESTED),
        )
        state.follow_ups.append(partial(self._fail, failure))

    async def run(self) -> Any:
        """What the handle does."""
        self.is_awaited = True
        return await settled(
            self._state, self.result, self.request_cancel, rule=LangFlag.CANCEL_MEETS_RESULT
        )

    def _tell(self, event: object) -> None:
        match event:
            case events.ActivityTaskCompleted():
                self._succeed(event)
            case events.ActivityTaskFailed():
                info = ActivityFailureInfo(
                    scheduled_event_id=event.scheduled_event_id,
                    started_event_id=event.started_event_id,
                    identity=event.identity,
                    retry_state=event.retry_state,
                )
                self._fail(self._failure("Activity task failed", event.failure, info))
            case events.ActivityTaskTimedOut():
                info = ActivityFailureInfo(
                    scheduled_event_id=event.scheduled_event_id,
                    started_event_id=event.started_event_id,
                    retry_state=event.retry_state,
                )
                self._fail(self._failure("Activity task timed out", event.failure, info))
            case events.ActivityTaskCanceled():
                info = ActivityFailureInfo(
                    scheduled_event_id=event.scheduled_event_id,
                    started_event_id=event.started_event_id,
                    identity=event.identity,
                    retry_state=RetryState.CANCEL_REQUESTED,
                )
                cause = Failure(canceled_failure_info=CanceledFailureInfo(details=event.details))
                self._fail(self._failure("Activity cancelled", cause, info))

    def _succeed(self, event: events.ActivityTaskCompleted) -> None:
        hint = self.call.ret_type
        found = self._values.decode(
            event.result, None if hint is None else [hint], self._state.is_failure
        )
        self.result.set_result(found[0] if found else None)

    def _fail(self, failure: Failure) -> None:
        # A handle that was cancelled before its first step never looks at its result.
        if self.is_awaited:
            self.result.set_exception(self._values.from_failure(failure))

    def _failure(self, message: str, cause: Failure | None, info: ActivityFailureInfo) -> Failure:
        return Failure(
            message=message,
            cause=cause,
            activity_failure_info=ActivityFailureInfo(
                scheduled_event_id=info.scheduled_event_id,
                started_event_id=info.started_event_id,
                identity=info.identity,
                activity_type=ActivityType(name=self.call.activity),
                activity_id=self.activity_id,
                retry_state=info.retry_state,
            ),
        )

    def _context(self) -> ActivitySerializationContext:
        info = self._state.info
        return ActivitySerializationContext(
            namespace=info.namespace,
            activity_id=self.call.activity_id,
            activity_type=self.call.activity,
            activity_task_queue=self.call.task_queue or info.task_queue,
            workflow_id=info.workflow_id,
            workflow_type=info.workflow_type,
            is_local=False,
        )


class _Cancellable(Protocol):
    """An activity of either kind."""

    call: Any
    is_awaited: bool

    def request_cancel(self, error: asyncio.CancelledError | None = None, /) -> None: ...


class ActivityTask(WorkflowTask[Any], ActivityHandle[Any]):
    """The handle of an activity."""

    def __init__(
        self, state: RunState, operation: _Cancellable, coro: Coroutine[Any, Any, Any]
    ) -> None:
        self._operation = operation
        self._loop_state = state
        super().__init__(coro, loop=state.loop, name=f"activity: {operation.call.activity}")
        state.loop.add_task(self)

    def cancel(self, msg: Any = None) -> bool:
        """Ask the activity to stop, in the way its cancellation type says."""
        if not self._loop_state.loop.evicting:
            self._loop_state.check_may_act("cancel an activity")
            if not self._operation.is_awaited and not self.done():
                self._operation.request_cancel()  # its coroutine won't run, so won't notice
        return super().cancel(msg)


def _schedule_command(
    state: RunState, call: StartActivityInput, activity_id: str, values: Any
) -> commands.ScheduleActivityTask:
    return commands.ScheduleActivityTask(
        activity_id=activity_id,
        activity_type=ActivityType(name=call.activity),
        task_queue=TaskQueue(name=call.task_queue or state.info.task_queue),
        header=Header(fields=dict(call.headers)),
        input=values.encode(call.args),
        schedule_to_close_timeout=call.schedule_to_close_timeout or None,
        schedule_to_start_timeout=call.schedule_to_start_timeout or None,
        start_to_close_timeout=call.start_to_close_timeout or None,
        heartbeat_timeout=call.heartbeat_timeout or None,
        retry_policy=retry_policy_to_protocol(call.retry_policy) if call.retry_policy else None,
        request_eager_execution=not call.disable_eager_execution,
        use_workflow_build_id=inherits_build_id(state, call.task_queue, call.versioning_intent),
        priority=priority_to_protocol(call.priority),
    )


def inherits_build_id(
    state: RunState, task_queue: str | None, intent: VersioningIntent | None
) -> bool:
    """Whether a command is for workers of this worker's build: where nothing else is said, on the
    workflow's own queue."""
    if intent is None:
        return not task_queue or task_queue == state.info.task_queue
    return intent is VersioningIntent.COMPATIBLE
