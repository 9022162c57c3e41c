"""Local activities: run by the worker inside a workflow task, recorded as markers.

A recorded one is not run again: its marker tells how it ended, and after how many turns of the code
in its task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from wfcore.converter import ActivitySerializationContext, retry_policy_to_protocol
from wfcore.protocol.common import ActivityType, RetryPolicy
from wfcore.protocol.enums import RetryState
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.failures import ActivityFailureInfo, CanceledFailureInfo, Failure
from wfcore.protocol.payloads import Header, Payloads
from wfcore.replay.interceptors import StartLocalActivityInput
from wfcore.replay.markers import LocalActivityRecord, local_activity_marker, read_local_activity
from wfcore.replay.pending import elapsed, settled
from wfcore.replay.state import Job, RunState
from wfcore.workflow import ActivityCancellationType
from wfcore.workflow._event_groups import markers


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalActivityTask:
    """An attempt, or a row of attempts, that the worker is to make now.

    Answer with `WorkflowInstance.resolve_local_activity`. A wait before the next attempt that is
    longer than `local_retry_threshold` is not waited for in the worker, but answered as a back-off.
    `original_schedule_time` is that of the first attempt; None if this is the first row.
    """

    number: int
    activity_id: str
    activity_type: ActivityType
    input: Payloads | None
    header: Header
    attempt: int
    original_schedule_time: datetime | None
    schedule_to_close_timeout: timedelta | None
    schedule_to_start_timeout: timedelta | None
    start_to_close_timeout: timedelta | None
    retry_policy: RetryPolicy | None
    local_retry_threshold: timedelta | None
    cancellation_type: ActivityCancellationType
    is_cancel_requested: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalActivityOutcome:
    """How a local activity ended, or that it is to go on after a back-off.

    `failure` is the last attempt's, as the code will see it; with `backoff` set it is kept in the
    marker only.
    """

    number: int
    attempt: int
    complete_time: datetime
    original_schedule_time: datetime
    result: Payloads | None = None
    failure: Failure | None = None
    backoff: timedelta | None = None


class _BackoffError(BaseException):
    """Wakes the handle's coroutine up for the next row of attempts."""

    def __init__(self, record: LocalActivityRecord) -> None:
        self.record = record


class LocalActivity:
    """A local activity from its call to its result, over all its rows of attempts."""

    def __init__(self, state: RunState, call: StartLocalActivityInput) -> None:
        self._state = state
        self.call = call
        self.is_awaited = False
        self.is_open = True
        self.is_cancel_requested = False
        self._groups = markers(call.event_groups)
        self.number = state.next_number("activity")
        self._values = state.values.for_activity(self._context)
        self._input = self._values.encode(call.args)
        self._attempt = 1
        self._original_schedule_time: datetime | None = None
        self._called_at = state.now
        self.result: asyncio.Future[Any] = state.loop.create_future()
        state.local_activities[self.number] = self

    @property
    def activity_id(self) -> str:
        """Its id; by default its number, which a back-off changes."""
        return self.call.activity_id or str(self.number)

    def recorded(self, event: HistoryEvent) -> None:
        """MARKER_RECORDED: nothing follows from it any more."""

    def task(self) -> LocalActivityTask:
        """What the worker has to do."""
        call = self.call
        return LocalActivityTask(
            number=self.number,
            activity_id=self.activity_id,
            activity_type=ActivityType(name=call.activity),
            input=self._input,
            header=Header(fields=dict(call.headers)),
            attempt=self._attempt,
            original_schedule_time=self._original_schedule_time,
            schedule_to_close_timeout=call.schedule_to_close_timeout or None,
            schedule_to_start_timeout=call.schedule_to_start_timeout or None,
            start_to_close_timeout=call.start_to_close_timeout or None,
            retry_policy=retry_policy_to_protocol(call.retry_policy) if call.retry_policy else None,
            local_retry_threshold=call.local_retry_threshold,
            cancellation_type=call.cancellation_type,
            is_cancel_requested=self.is_cancel_requested,
        )

    def ended(self, record: LocalActivityRecord, turn: int) -> Job:
        """It ended, or backs off: leave a marker, and tell the code."""
        self._leave_marker(record, turn)
        return partial(self._tell, record)

    def request_cancel(self, _error: asyncio.CancelledError | None = None) -> None:
        """Cancel it, as its cancellation type says."""
        state = self._state
        state.check_may_act("cancel a local activity")
        if not self.is_open or self.is_cancel_requested:
            return
        self.is_cancel_requested = True
        waits = self.call.cancellation_type is ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
        if waits or self.number in state.recorded_local_activities:
            return  # the worker, or the history, says how it ended
        record = LocalActivityRecord(
            number=self.number,
            attempt=0,
            activity_id=self.activity_id,
            activity_type=self.call.activity,
            original_schedule_time=self._original_schedule_time or self._called_at,
            failure=Failure(
                message="Activity cancelled", canceled_failure_info=CanceledFailureInfo()
            ),
        )
        state.follow_ups.append(self.ended(record, state.turns + 1))

    async def run(self) -> Any:
        """What the handle does."""
        self.is_awaited = True
        while True:
            try:
                return await settled(self._state, self.result, self.request_cancel)
            except _BackoffError as pause:
                await elapsed(
                    self._state,
                    (pause.record.backoff or timedelta(0)).total_seconds(),
                    self._groups,
                )
                self._attempt = pause.record.attempt + 1
                self._original_schedule_time = pause.record.original_schedule_time
                self.is_open = True
                self._state.local_activities[self.number] = self

    def _tell(self, record: LocalActivityRecord) -> None:
        state = self._state
        if record.complete_time is not None:
            state.set_time(record.complete_time)
        state.local_activities.pop(self.number, None)
        self.is_open = False
        if record.backoff is not None:
            self.number = state.next_number("activity")
            before, self.result = self.result, state.loop.create_future()
            before.set_exception(_BackoffError(record))
        elif record.failure is not None:
            if self.is_awaited:
                self.result.set_exception(self._values.from_failure(self._failure(record.failure)))
        else:
            hint = self.call.ret_type
            found = self._values.decode(
                record.result, None if hint is None else [hint], state.is_failure
            )
            self.result.set_result(found[0] if found else None)

    def _failure(self, failure: Failure) -> Failure:
        """What the code sees: the activity's own failure, unless it was cancelled."""
        if failure.canceled_failure_info is None:
            return failure
        return Failure(
            message="Local Activity cancelled",
            cause=failure,
            activity_failure_info=ActivityFailureInfo(
                activity_type=ActivityType(name=self.call.activity),
                activity_id=self.activity_id,
                retry_state=RetryState.CANCEL_REQUESTED,
            ),
        )

    def _leave_marker(self, record: LocalActivityRecord, turn: int) -> None:
        self._state.commands.add(
            local_activity_marker(record, turn),
            self,
            self._values.metadata(self.call.summary),
            self._groups,
        )

    def _context(self) -> ActivitySerializationContext:
        info = self._state.info
        return ActivitySerializationContext(
            namespace=info.namespace,
            activity_id=self.call.activity_id,
            activity_type=self.call.activity,
            activity_task_queue=info.task_queue,
            workflow_id=info.workflow_id,
            workflow_type=info.workflow_type,
            is_local=True,
        )


class LocalActivities:
    """Ends of local activities, as the history records or the worker says them."""

    __slots__ = ("_state",)

    def __init__(self, state: RunState) -> None:
        self._state = state

    def announce(self, command_events: Iterable[HistoryEvent]) -> None:
        """Take note of the markers that the task which is about to be replayed recorded."""
        recorded = self._state.recorded_local_activities
        recorded.clear()
        for event in command_events:
            record = read_local_activity(event.attributes)
            if record is not None:
                recorded[record.number] = record

    def due(self, *, anyway: bool) -> list[Job]:
        """Recorded ends that the code is told now: those of this turn, or `anyway` the next."""
        state = self._state
        waiting = [
            r
            for r in state.recorded_local_activities.values()
            if r.number in state.local_activities
        ]
        is_forced = anyway and waiting
        turn = min(record.turn for record in waiting) if is_forced else state.turns
        return [self._end(record) for record in waiting if record.turn <= turn]

    def end(self, outcome: LocalActivityOutcome) -> Job:
        """What the worker says."""
        operation: LocalActivity = self._state.local_activities[outcome.number]
        return operation.ended(
            LocalActivityRecord(
                number=outcome.number,
                attempt=outcome.attempt,
                activity_id=operation.activity_id,
                activity_type=operation.call.activity,
                complete_time=outcome.complete_time,
                original_schedule_time=outcome.original_schedule_time,
                backoff=outcome.backoff,
                result=outcome.result,
                failure=outcome.failure,
            ),
            self._state.turns,
        )

    def _end(self, record: LocalActivityRecord) -> Job:
        operation: LocalActivity = self._state.local_activities[record.number]
        del self._state.recorded_local_activities[record.number]
        return operation.ended(record, record.turn)
