"""Workflow tasks: one outstanding at most. Of attempts that fail in a row only the first is stored;
later ones live in `Volatile` and are written whole when one succeeds. So does a speculative task,
made for updates alone, which is written when it leads to something.
"""

import zlib
from datetime import datetime, timedelta

import msgspec

from wfcore.history import buffer, task_events
from wfcore.history.effects import DispatchWorkflowTask
from wfcore.history.faults import cause_name
from wfcore.history.limits import Limits
from wfcore.history.requests import ENGINE_IDENTITY, ClaimTask, TaskToken
from wfcore.history.state import Recorded, TaskClaim
from wfcore.history.step import Step
from wfcore.protocol import events
from wfcore.protocol.enums import SuggestContinueAsNewReason as Reason
from wfcore.protocol.enums import TimeoutType
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message

#: Attempts that get the plain timeout; from the next on it grows, so that a failing run backs off.
_PLAIN_ATTEMPTS = 3
_GROWTH = timedelta(seconds=5)
_JITTER = 0.2
_MOST_DOUBLINGS = 30


def schedule(
    step: Step,
    *,
    attempt: int = 1,
    original_scheduled_at: datetime | None = None,
    speculative: bool = False,
) -> None:
    """Have a worker look at the run, unless a task is outstanding, the run is paused or its parent
    has not recorded it yet.

    Attempt 1 is stored at once, unless it is speculative; a speculative one that waits for a worker
    is stored when another is asked for. `original_scheduled_at` is that of a chain of heartbeats.
    """
    recorded, waiting = step.recorded, step.volatile.task
    if waiting is not None:
        if waiting.is_speculative and waiting.started_at is None and not speculative:
            step.store_task(waiting)
        return
    if recorded.status is not Status.RUNNING:
        return
    if step.volatile.waits_for_parent:
        return
    timeout = start_to_close(recorded, attempt, step.limits)
    stored = attempt == 1 and not speculative
    event_id = recorded.next_event_id
    if stored:
        step.append(task_events.scheduled(recorded, timeout, attempt))
    step.volatile.task = TaskClaim(
        scheduled_event_id=event_id,
        scheduled_at=step.now,
        original_scheduled_at=original_scheduled_at or step.now,
        attempt=attempt,
        start_to_close_timeout=timeout,
        stored=stored,
        schedule_to_start_due=step.now + step.limits.speculative_task_wait if speculative else None,
    )
    step.announce = True


def start_to_close(recorded: Recorded, attempt: int, limits: Limits) -> timedelta:
    """How long an attempt may take: longer from the fourth on, by 5 s, 10 s, 20 s and so on.

    The jitter of up to a fifth comes from the run and the attempt, so that it repeats itself.
    """
    if attempt <= _PLAIN_ATTEMPTS:
        return recorded.workflow_task_timeout
    doublings: int = min(attempt - _PLAIN_ATTEMPTS - 1, _MOST_DOUBLINGS)
    growth = min(_GROWTH * (1 << doublings), limits.workflow_task_retry_max)
    chance = zlib.crc32(f"{recorded.run_id}/{attempt}".encode()) / 2**32
    return recorded.workflow_task_timeout + growth * (1 - _JITTER * chance)


def claim(step: Step, request: ClaimTask, *, history_bytes: int | None = None) -> TaskClaim | None:
    """Give the outstanding task to a worker; None when there is none to give.

    `history_bytes` is what the worker is told, if not the history's size.
    """
    task = step.volatile.task
    if task is None or step.recorded.status is not Status.RUNNING:
        return None
    if task.started_at is not None:
        return task if task.request_id == request.request_id else None
    recorded = step.recorded
    if not task.stored and task.scheduled_event_id != recorded.next_event_id:
        # events came between: what was a retry is a task like any other again
        timeout = start_to_close(recorded, 1, step.limits)
        task = msgspec.structs.replace(
            task,
            scheduled_event_id=step.append(task_events.scheduled(recorded, timeout, 1)),
            scheduled_at=step.now,
            attempt=1,
            start_to_close_timeout=timeout,
            stored=True,
        )
    started_event_id = recorded.next_event_id if task.stored else task.scheduled_event_id + 1
    task = msgspec.structs.replace(
        task,
        started_event_id=started_event_id,
        started_at=step.now,
        request_id=request.request_id,
        identity=request.identity,
        owner=request.owner,
        history_bytes=recorded.history_bytes if history_bytes is None else history_bytes,
        suggest_reasons=_reasons(recorded, started_event_id, step.limits),
        updates=tuple(
            update_id for update_id, each in step.volatile.updates.items() if not each.event_id
        ),
        schedule_to_start_due=None,
        dispatch_due=None,
        sent=0,
    )
    if task.stored:
        step.append(task_events.started(task))
    step.volatile.task = task
    step.announce = False
    return task


def is_held(step: Step, token: TaskToken) -> bool:
    """Whether an answer belongs to the task that is started now."""
    task = step.started_task
    return (
        task is not None
        and task.scheduled_event_id == token.scheduled_event_id
        and task.started_event_id == token.started_event_id
        and task.attempt == token.attempt
        and token.started_at in (None, task.started_at)
    )


def write_out(step: Step, task: TaskClaim) -> None:
    """Store SCHEDULED and STARTED of a task that led to something."""
    if task.stored:
        return
    timeout = task.start_to_close_timeout
    step.append(task_events.scheduled(step.recorded, timeout, task.attempt), at=task.scheduled_at)
    step.append(task_events.started(task), at=task.started_at)


def succeed(step: Step) -> None:
    """The started task is over, and with it the row of problems."""
    volatile = step.volatile
    volatile.task = None
    volatile.closing = False
    if volatile.task_problems >= step.limits.reported_problems:
        step.change.reported_problems = ()
    volatile.task_problems = 0
    volatile.last_problem = ()
    volatile.last_problem_at = None


def time_out(step: Step, task: TaskClaim) -> None:
    """The started task took too long, or whoever held it died."""
    attributes = events.WorkflowTaskTimedOut(
        scheduled_event_id=task.scheduled_event_id,
        started_event_id=task.started_event_id,
        timeout_type=TimeoutType.START_TO_CLOSE,
    )
    problem = ("category=WorkflowTaskTimedOut", "cause=WorkflowTaskTimedOutCauseStartToClose")
    flushed = _end_attempt(step, task, attributes, problem)
    schedule(step, attempt=1 if flushed else task.attempt + 1)


def not_taken(step: Step, task: TaskClaim) -> None:
    """No worker took a speculative task in time: one that waits for ever takes its place."""
    step.store_task(task)
    step.append(
        events.WorkflowTaskTimedOut(
            scheduled_event_id=task.scheduled_event_id, timeout_type=TimeoutType.SCHEDULE_TO_START
        )
    )
    step.volatile.task = None
    schedule(step)


def fail(
    step: Step,
    task: TaskClaim,
    cause: Cause,
    failure: Failure | None,
    identity: str,
    *,
    binary_checksum: str = "",
    overflow: bool = False,
    last: bool = False,
) -> None:
    """The started task failed; what waits in the inbox is delivered with the next one.

    `overflow`: the buffer was full, which doesn't make the next task a first attempt. `last`: no
    task follows, since the run ends.
    """
    attributes = events.WorkflowTaskFailed(
        scheduled_event_id=task.scheduled_event_id,
        started_event_id=task.started_event_id,
        cause=cause,
        failure=failure,
        identity=identity,
        binary_checksum=binary_checksum,
    )
    problem = ("category=WorkflowTaskFailed", f"cause=WorkflowTaskFailedCause{cause_name(cause)}")
    flushed = _end_attempt(step, task, attributes, problem)
    if not last:
        schedule(step, attempt=1 if flushed and not overflow else task.attempt + 1)


def force_close(step: Step) -> None:
    """The run ends: a started task fails, what waits is written, no task follows."""
    task = step.started_task
    step.volatile.task = None
    if task is not None and (task.stored or task.is_speculative):
        write_out(step, task)
        step.append(
            events.WorkflowTaskFailed(
                scheduled_event_id=task.scheduled_event_id,
                started_event_id=task.started_event_id,
                cause=Cause.FORCE_CLOSE_COMMAND,
                identity=ENGINE_IDENTITY,
            )
        )
    buffer.flush(step, task.started_at if task else None)


def announce(step: Step, task: TaskClaim) -> None:
    """Tell workers of an unclaimed task, and remember by when one must have taken it."""
    recorded = step.recorded
    step.effect(
        DispatchWorkflowTask(
            namespace=recorded.namespace,
            workflow_id=recorded.workflow_id,
            run_id=recorded.run_id,
            task_queue=recorded.task_queue,
            scheduled_event_id=task.scheduled_event_id,
            attempt=task.attempt,
            sent=task.sent,
        )
    )
    sent = task.sent + 1
    step.volatile.task = msgspec.structs.replace(
        task, sent=sent, dispatch_due=step.now + step.limits.resend_after(sent)
    )


def transient_events(recorded: Recorded, task: TaskClaim) -> list[Message]:
    """SCHEDULED and STARTED of a task that is not stored; none once other events came between."""
    if task.stored or task.scheduled_event_id != recorded.next_event_id:
        return []
    timeout = task.start_to_close_timeout
    shown: list[Message] = [task_events.scheduled(recorded, timeout, task.attempt)]
    if task.started_at is not None:
        # the server leaves the worker's identity out of what it does not store
        shown.append(msgspec.structs.replace(task_events.started(task), identity=""))
    return shown


def _end_attempt(
    step: Step, task: TaskClaim, attributes: Message, problem: tuple[str, ...]
) -> bool:
    """End a task that led to nothing; whether something waited for its end."""
    volatile = step.volatile
    volatile.task = None
    if task.stored or task.is_speculative:
        write_out(step, task)
        step.append(attributes)
    volatile.closing = False
    volatile.task_problems += 1
    volatile.last_problem = problem
    volatile.last_problem_at = step.now
    if volatile.task_problems >= step.limits.reported_problems:
        step.change.reported_problems = problem
    return bool(buffer.flush(step, task.started_at or step.now))


def _reasons(recorded: Recorded, event_count: int, limits: Limits) -> tuple[Reason, ...]:
    reasons: tuple[Reason, ...] = ()
    if recorded.history_bytes >= limits.history_bytes_suggest:
        reasons += (Reason.HISTORY_SIZE_TOO_LARGE,)
    if event_count >= limits.history_events_suggest:
        reasons += (Reason.TOO_MANY_HISTORY_EVENTS,)
    return reasons
