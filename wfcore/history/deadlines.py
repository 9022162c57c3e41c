"""Every clock of a run. `next_deadline` is never later than the first of them, so that a sweep at
that time finds all that is due. Activities have a `due_at` of their own.
"""

from collections.abc import Iterator
from datetime import datetime

from wfcore.history.state import MutableState, Recorded


def next_deadline(state: MutableState) -> datetime | None:
    """The earliest time at which something of the run comes due; None when nothing can.

    A closed run may still have something to do to other workflow ids.
    """
    return min(_deadlines(state), default=None)


def run_ends_at(recorded: Recorded) -> datetime | None:
    """When the run timeout ends the run: it counts from the end of the first backoff, or from the
    reset that made the run.
    """
    if recorded.run_timeout is None:
        return None
    return (recorded.reset_at or recorded.execution_time) + recorded.run_timeout


def first_task_at(state: MutableState) -> datetime | None:
    """When a run that waits before its first workflow task gets it; None when it doesn't wait."""
    recorded = state.recorded
    if recorded.first_task_scheduled or state.volatile.waits_for_parent:
        return None
    return recorded.execution_time


def _deadlines(state: MutableState) -> Iterator[datetime]:
    for delivery in state.volatile.deliveries.values():
        yield delivery.due_at
    if not state.is_open:
        return
    recorded = state.recorded
    if recorded.expiration_time is not None:
        yield recorded.expiration_time
    if (run_end := run_ends_at(recorded)) is not None:
        yield run_end
    task = state.volatile.task
    if task is not None and task.started_at is not None:
        # timers and the end of a start delay wait for the end of the task
        yield task.started_at + task.start_to_close_timeout
        return
    if (first_task := first_task_at(state)) is not None:
        yield first_task
    if task is not None and task.schedule_to_start_due is not None:
        yield task.schedule_to_start_due
    if task is not None and task.dispatch_due is not None:
        yield task.dispatch_due
    for timer in recorded.timers.values():
        yield timer.fire_at
