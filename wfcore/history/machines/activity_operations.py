"""Operations on pending activities. They leave no events: they change rows, and the search
attribute that names the types of paused activities.

What is done to several activities by one order is done to all of them or to none.
"""

import zlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from wfcore.exceptions import FailedPreconditionError, InvalidArgumentError, NotFoundError
from wfcore.history import activity_options, search_attributes
from wfcore.history.activity_orders import (
    OperateActivities,
    Order,
    Pause,
    Reset,
    Unpause,
    UpdateOptions,
)
from wfcore.history.machines.activity import with_due_at
from wfcore.history.machines.chain import queue_fault
from wfcore.history.retries import backoff, check_policy, fill_policy
from wfcore.history.state import ActivityPause, ActivityState, PendingActivity
from wfcore.history.step import Step
from wfcore.protocol.common import TaskQueue
from wfcore.protocol.payloads import Payload, SearchAttributes
from wfcore.protocol.rpc.info import ActivityOptions

_ZERO = timedelta(0)
PAUSE_INFO = "TemporalPauseInfo"
UNKNOWN = (
    "Can't find pending activity with such ID. Invalid activityID or activity already completed"
)


def operate(step: Step, request: OperateActivities) -> list[PendingActivity]:
    """Carry an order out; the activities that it means, as they are now.

    Raises:
        NotFoundError: there is none.
        FailedPreconditionError: one is paused by another request.
        InvalidArgumentError: the new options can't be.
    """
    rows = [row for row in step.change.activities.values() if _is_meant(row, request)]
    if not rows:
        raise NotFoundError(UNKNOWN)
    carry_out = _ORDERS[type(request.order)]
    changed = [(row, carry_out(step, row, request.order)) for row in rows]
    for row, new in changed:
        if new is not row:
            # a claim or a heartbeat that was decided before must not take this back
            step.change.activity_rows[row.scheduled_event_id] = with_due_at(
                msgspec.structs.replace(new, stamp=row.stamp + 1)
            )
    _name_paused_types(step)
    return [step.activity(row.scheduled_event_id) or row for row in rows]


def options_of(row: PendingActivity) -> ActivityOptions:
    """The options that hold for an activity."""
    return ActivityOptions(
        task_queue=TaskQueue(name=row.task_queue),
        schedule_to_close_timeout=row.schedule_to_close_timeout,
        schedule_to_start_timeout=row.schedule_to_start_timeout,
        start_to_close_timeout=row.start_to_close_timeout,
        heartbeat_timeout=row.heartbeat_timeout,
        retry_policy=row.retry_policy,
        priority=row.priority,
    )


def _is_meant(row: PendingActivity, request: OperateActivities) -> bool:
    if request.activity_id:
        return row.activity_id == request.activity_id
    return request.activity_type in ("", row.activity_type)


# ---- orders


def _pause(step: Step, row: PendingActivity, order: Pause) -> PendingActivity:
    if row.pause is not None:
        if row.pause.request_id == order.request_id:
            return row
        raise FailedPreconditionError("activity is already paused")
    pause = ActivityPause(
        at=step.now,
        identity=order.identity,
        reason=order.reason,
        request_id=order.request_id,
    )
    return msgspec.structs.replace(row, pause=pause)


def _unpause(step: Step, row: PendingActivity, order: Unpause) -> PendingActivity:
    if row.pause is None:
        return row
    changed: dict[str, Any] = {"pause": None}
    if order.reset_attempts:
        changed["attempt"] = 1
    if order.reset_heartbeat:
        changed |= {"heartbeat_details": None, "last_heartbeat_at": None}
    row = msgspec.structs.replace(row, **changed)
    return row if _runs(row) else _offered(step, row, order.jitter)


def _reset(step: Step, row: PendingActivity, order: Reset) -> PendingActivity:
    if order.restore_original:
        row = _with_original_options(step, row)
    stays_paused = row.pause is not None and order.keep_paused
    row = msgspec.structs.replace(row, attempt=1, pause=row.pause if stays_paused else None)
    if _runs(row):
        # its details are the running attempt's; the next one begins without them
        return msgspec.structs.replace(
            row,
            reset_requested=True,
            resets_heartbeat=row.resets_heartbeat or order.reset_heartbeat,
        )
    if order.reset_heartbeat:
        row = msgspec.structs.replace(row, heartbeat_details=None, last_heartbeat_at=None)
    return row if stays_paused else _offered(step, row, order.jitter)


def _update_options(step: Step, row: PendingActivity, order: UpdateOptions) -> PendingActivity:
    if order.restore_original:
        row = _with_original_options(step, row)
    else:
        wanted = activity_options.merged(options_of(row), order.options, order.paths)
        row = _with_options(step, row, wanted)
    if _runs(row) or row.pause is not None:
        return row
    at = row.attempt_scheduled_at
    if row.last_attempt_completed_at is not None and row.attempt > 1:
        # as on Temporal's server, the wait is that after the attempt that comes
        at = row.last_attempt_completed_at + backoff(row.retry_policy, row.attempt)
    return msgspec.structs.replace(
        row, attempt_scheduled_at=at, last_failure=None, dispatch_due=at, sent=0
    )


_ORDERS: dict[type[Order], Callable[[Step, PendingActivity, Any], PendingActivity]] = {
    Pause: _pause,
    Unpause: _unpause,
    Reset: _reset,
    UpdateOptions: _update_options,
}


# ---- rows


def _runs(row: PendingActivity) -> bool:
    return row.state is ActivityState.STARTED


def _offered(step: Step, row: PendingActivity, jitter: timedelta) -> PendingActivity:
    """The row of an attempt that may start now, or somewhat later, whatever it waited for."""
    at = step.now + jitter * _chance(row)
    return msgspec.structs.replace(
        row, attempt_scheduled_at=at, last_failure=None, dispatch_due=at, sent=0
    )


def _chance(row: PendingActivity) -> float:
    """From 0 to 1, and the same again when the same is done again."""
    name = f"{row.run_id}/{row.scheduled_event_id}/{row.stamp}"
    return zlib.crc32(name.encode()) / 2**32


def _with_original_options(step: Step, row: PendingActivity) -> PendingActivity:
    event = step.change.scheduled_events.get(row.scheduled_event_id)
    if event is None:
        raise LookupError("the SCHEDULED event is asked for: load what transition.needs() says")
    return msgspec.structs.replace(
        row,
        task_queue=event.task_queue.name if event.task_queue else row.task_queue,
        schedule_to_close_timeout=event.schedule_to_close_timeout or _ZERO,
        schedule_to_start_timeout=event.schedule_to_start_timeout or _ZERO,
        start_to_close_timeout=event.start_to_close_timeout or _ZERO,
        heartbeat_timeout=event.heartbeat_timeout or _ZERO,
        retry_policy=event.retry_policy or fill_policy(None),
        priority=event.priority,
    )


def _with_options(step: Step, row: PendingActivity, wanted: ActivityOptions) -> PendingActivity:
    queue = wanted.task_queue.name if wanted.task_queue else ""
    fault = (
        queue_fault(queue, step.limits.id_bytes)
        or check_policy(wanted.retry_policy)
        or activity_options.timeouts_fault(wanted, row.activity_id, row.activity_type)
        or activity_options.priority_fault(wanted.priority)
    )
    if fault:
        raise InvalidArgumentError(fault)
    to_close, to_start, start_to_close, beat = activity_options.effective_timeouts(
        wanted, step.recorded.run_timeout, step.limits.duration
    )
    return msgspec.structs.replace(
        row,
        task_queue=queue,
        schedule_to_close_timeout=to_close,
        schedule_to_start_timeout=to_start,
        start_to_close_timeout=start_to_close,
        heartbeat_timeout=beat,
        retry_policy=wanted.retry_policy or fill_policy(None),
        priority=wanted.priority,
    )


# ---- what is shown


def _name_paused_types(step: Step) -> None:
    """Let TemporalPauseInfo name the types of the activities that are paused now."""
    change = step.change
    rows = (step.activity(event_id) for event_id in change.activities)
    types = sorted({row.activity_type for row in rows if row is not None and row.pause is not None})
    before = change.current_search_attributes
    known = before.indexed_fields.get(PAUSE_INFO) if before is not None else None
    data = (
        msgspec.json.encode([f"property:activityType={name}" for name in types]) if types else b""
    )
    if data == (known.data if known is not None else b""):
        return
    payload = Payload(metadata={"encoding": b"json/plain", "type": b"KeywordList"}, data=data)
    change.search_attributes = search_attributes.merged(
        before, SearchAttributes(indexed_fields={PAUSE_INFO: payload})
    )
