"""Why a run is not moving: one sentence, the most telling first.

Pure: it looks at what was read of the run and of its queues, and at the time of that. What is told
as a fault stands before what merely takes its time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from wfapp.presentation.queue_facts import QueueFacts
from wfapp.presentation.words import camel, failure_line, moment, one_line, span
from wfcore.history.state import (
    ActivityPause,
    ActivityState,
    DeliveryKind,
    InboxItem,
    MutableState,
    PendingActivity,
    Recorded,
)
from wfcore.protocol.enums import ContinueAsNewInitiator
from wfcore.protocol.enums import WorkflowExecutionStatus as Status

#: How long work may wait for a worker before that is worth a word.
GRACE = timedelta(seconds=2)
#: From this attempt on a failing workflow task counts as stuck.
STUCK_ATTEMPT = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What a diagnosis looks at."""

    state: MutableState
    now: datetime
    activities: Sequence[PendingActivity] = ()
    inbox: Sequence[InboxItem] = ()
    queues: Mapping[str, QueueFacts] | None = None
    #: message of the last failure of a workflow task, if one stands in the history
    task_failure: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """The answer to "why is it not moving?"."""

    sentence: str
    #: further things that the run waits for
    others: tuple[str, ...] = ()
    #: somebody must do something
    is_trouble: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class _Finding:
    weight: int
    text: str


#: Weights of findings; those from `_TROUBLE` on need a person.
_IDLE, _TIMER, _RUNNING, _RETRYING, _BUSY, _TROUBLE, _UNSERVED, _STUCK = range(8)


def diagnose(evidence: Evidence) -> Diagnosis:
    """Why the run is where it is."""
    recorded = evidence.state.recorded
    if not evidence.state.is_open:
        return Diagnosis(sentence=_closed(evidence))
    if recorded.status is Status.PAUSED:
        return Diagnosis(sentence="paused: nothing happens until it is unpaused")
    findings = sorted(
        (
            *_of_task(evidence),
            *_of_activities(evidence),
            *_of_others(evidence),
            *_of_timers(evidence),
        ),
        key=lambda finding: -finding.weight,
    )
    if not findings:
        text = "waits for a signal: no activity, timer or workflow task is outstanding"
        findings = [_Finding(weight=_IDLE, text=text)]
    texts = [finding.text for finding in findings]
    if recorded.cancel_requested:
        texts.append("cancellation is requested; the workflow's code decides what to do")
    if evidence.inbox:
        texts.append(f"{_count(len(evidence.inbox), 'message')} not read yet")
    return Diagnosis(
        sentence=texts[0],
        others=tuple(texts[1:]),
        is_trouble=findings[0].weight >= _TROUBLE,
    )


def _closed(evidence: Evidence) -> str:
    recorded = evidence.state.recorded
    closed_at = recorded.close_time or evidence.now
    words = camel(recorded.status)
    took = span(closed_at - recorded.start_time)
    return f"closed: {words}, {span(evidence.now - closed_at)} ago, after {took}"


# ---- the workflow task


def _of_task(evidence: Evidence) -> Iterator[_Finding]:
    recorded, volatile = evidence.state.recorded, evidence.state.volatile
    task, now = volatile.task, evidence.now
    if task is None:
        if not recorded.first_task_scheduled and recorded.execution_time > now:
            yield _Finding(weight=_TIMER, text=_start(recorded, now))
        return
    if task.attempt >= STUCK_ATTEMPT:
        yield _Finding(weight=_STUCK, text=_stuck(evidence))
    if task.started_at is not None:
        yield _Finding(
            weight=_RUNNING,
            text=f"the workflow task runs since {span(now - task.started_at)}{_by(task.identity)}",
        )
        return
    waits = now - task.scheduled_at
    if waits < timedelta():
        yield _Finding(weight=_RUNNING, text=f"the next workflow task is due in {span(-waits)}")
    elif waits > GRACE:
        weight, reason = _unclaimed(evidence, recorded.task_queue, waits, workflow=True)
        yield _Finding(
            weight=weight, text=f"the workflow task is due since {span(waits)}, {reason}"
        )
    else:
        yield _Finding(weight=_RUNNING, text="the workflow task was just sent to a worker")


def _start(recorded: Recorded, now: datetime) -> str:
    """When a run begins that waits for its first task, and why it waits."""
    wait = span(recorded.execution_time - now)
    if recorded.initiator is ContinueAsNewInitiator.RETRY:
        most = recorded.retry_policy.maximum_attempts if recorded.retry_policy is not None else 0
        of = f" of {most}" if most else ""
        return f"attempt {recorded.attempt}{of} of the workflow starts in {wait}"
    if recorded.cron_schedule:
        return f"starts in {wait}, by the cron schedule {recorded.cron_schedule}"
    return f"starts in {wait}"


def _stuck(evidence: Evidence) -> str:
    volatile = evidence.state.volatile
    attempts = volatile.task.attempt if volatile.task is not None else 0
    causes = [part.partition("=")[2] for part in volatile.last_problem if part.startswith("cause=")]
    cause = causes[0].removeprefix("WorkflowTaskFailedCause") if causes else "unknown cause"
    message = f": {one_line(evidence.task_failure, 200)}" if evidence.task_failure else ""
    return (
        f"stuck: the workflow task is at attempt {attempts}, the last one failed ({cause}){message}"
    )


# ---- activities


def _of_activities(evidence: Evidence) -> Iterator[_Finding]:
    for row in evidence.activities:
        yield _of_activity(evidence, row)


def _of_activity(evidence: Evidence, row: PendingActivity) -> _Finding:
    now = evidence.now
    name = f"activity {row.activity_type} ({row.activity_id})"
    if row.state == ActivityState.STARTED:
        attempt = f", attempt {row.attempt}" if row.attempt > 1 else ""
        beat = ""
        if row.last_heartbeat_at is not None:
            beat = f", last heartbeat {span(now - row.last_heartbeat_at)} ago"
        since = span(now - row.started_at) if row.started_at is not None else "a while"
        then = "; it is paused after this attempt" if row.pause is not None else ""
        return _Finding(
            weight=_RUNNING,
            text=f"{name} runs since {since}{_by(row.identity)}{attempt}{beat}{then}",
        )
    if row.pause is not None:
        return _Finding(weight=_TROUBLE, text=f"{name} {_paused(row.pause, now)}")
    waits = now - row.attempt_scheduled_at
    failed = ""
    if row.last_failure is not None:
        failed = (
            f"; attempt {row.attempt - 1} failed: {one_line(failure_line(row.last_failure), 200)}"
        )
    if waits < timedelta():
        limit = row.retry_policy.maximum_attempts
        attempt = f"attempt {row.attempt} of {limit}" if limit else f"attempt {row.attempt}"
        return _Finding(weight=_RETRYING, text=f"{name} waits {span(-waits)} for {attempt}{failed}")
    if waits <= GRACE:
        return _Finding(weight=_RUNNING, text=f"{name} was just sent to a worker{failed}")
    weight, reason = _unclaimed(evidence, row.task_queue, waits, workflow=False)
    return _Finding(weight=weight, text=f"{name} is due since {span(waits)}, {reason}{failed}")


def _paused(pause: ActivityPause, now: datetime) -> str:
    by = f" by {pause.identity}" if pause.identity else ""
    reason = f": {one_line(pause.reason, 200)}" if pause.reason else ""
    return f"is paused since {span(now - pause.at)}{by}{reason}; unpause it"


def _unclaimed(
    evidence: Evidence, queue: str, waits: timedelta, *, workflow: bool
) -> tuple[int, str]:
    """Why nobody has taken what is due."""
    text = f"no worker has claimed from queue {queue} for {span(waits)}"
    facts = (evidence.queues or {}).get(queue)
    if facts is None:
        return _TROUBLE, text
    if not facts.is_served:
        return _UNSERVED, f"{text}: no worker process serves it"
    workers = _count(facts.workers, "worker process", "worker processes")
    if not facts.is_full:
        return (
            _TROUBLE,
            f"{text}, though {workers} serve it with free slots: is the broker reached?",
        )
    busy = f"{text}: all {_count(facts.slots, 'slot')} of {workers} are taken"
    if workflow and facts.activities >= facts.slots:
        busy += " by activities; start a worker of its own for workflow tasks"
    return _BUSY, busy


# ---- other workflows


def _of_others(evidence: Evidence) -> Iterator[_Finding]:
    recorded, volatile = evidence.state.recorded, evidence.state.volatile
    if volatile.waits_for_parent and recorded.parent is not None:
        text = f"waits until its parent {recorded.parent.workflow_id} has recorded its start"
        yield _Finding(weight=_RUNNING, text=text)
    for event_id, delivery in volatile.deliveries.items():
        if delivery.attempts > STUCK_ATTEMPT:
            yield _Finding(
                weight=_TROUBLE,
                text=f"{_TO_DO[delivery.kind]} of event {event_id} has failed "
                f"{_count(delivery.attempts - 1, 'time')}: see the ticker's log",
            )
    for what, targets in (
        ("the signal", recorded.external_signals),
        ("the cancel request", recorded.external_cancels),
    ):
        for target in targets.values():
            text = f"{what} to workflow {target} is on its way"
            yield _Finding(weight=_RUNNING, text=text)
    children = list(recorded.children.values())
    if children:
        more = f" and {len(children) - 1} more" if len(children) > 1 else ""
        yield _Finding(
            weight=_TIMER, text=f"waits for child workflow {children[0].workflow_id}{more}"
        )
    for update_id in volatile.updates:
        yield _Finding(weight=_RUNNING, text=f"update {update_id} waits for a worker's word")
    for update_id in recorded.open_updates:
        yield _Finding(weight=_IDLE, text=f"update {update_id} is accepted and has not ended")


_TO_DO = {
    DeliveryKind.START_CHILD: "the start of the child",
    DeliveryKind.SIGNAL: "the signal",
    DeliveryKind.CANCEL: "the cancel request",
    DeliveryKind.CLOSE_CHILD: "the parent close policy for the child",
    DeliveryKind.REPORT: "the report to the parent",
    DeliveryKind.ASK_PARENT: "the question to the parent, about the start",
}


# ---- timers


def _of_timers(evidence: Evidence) -> Iterator[_Finding]:
    timers = evidence.state.recorded.timers
    if not timers:
        return
    timer_id, timer = min(timers.items(), key=lambda item: item[1].fire_at)
    left = timer.fire_at - evidence.now
    more = f" (and {len(timers) - 1} later ones)" if len(timers) > 1 else ""
    if left >= timedelta():
        text = f"waits for timer {timer_id} in {span(left)}, at {moment(timer.fire_at)} UTC{more}"
        yield _Finding(weight=_TIMER, text=text)
    elif evidence.state.task_started or -left <= GRACE:
        yield _Finding(weight=_TIMER, text=f"timer {timer_id} fires now{more}")
    else:
        text = f"timer {timer_id} is due since {span(-left)}, and no ticker has fired it"
        yield _Finding(weight=_TROUBLE, text=f"{text}: run beat or a worker with its ticker{more}")


# ---- words


def _by(identity: str) -> str:
    return f" on {identity}" if identity else ""


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def queues_of(state: MutableState, activities: Iterable[PendingActivity]) -> set[str]:
    """The queues that a diagnosis wants to know of."""
    return {state.recorded.task_queue, *(row.task_queue for row in activities)}
