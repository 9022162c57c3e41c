"""What must hold of a run when all is over, from three witnesses that don't know of each other.

The ledger was written by the steps themselves, the journal and the history by the engine.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CLOSING = {
    "EVENT_TYPE_ACTIVITY_TASK_COMPLETED": "activityTaskCompletedEventAttributes",
    "EVENT_TYPE_ACTIVITY_TASK_FAILED": "activityTaskFailedEventAttributes",
    "EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT": "activityTaskTimedOutEventAttributes",
    "EVENT_TYPE_ACTIVITY_TASK_CANCELED": "activityTaskCanceledEventAttributes",
}


@dataclass(frozen=True, kw_only=True)
class Execution:
    """One line of the ledger."""

    activity_id: str
    attempt: int
    has_end: bool
    failure: str = ""


@dataclass(kw_only=True)
class RecordedActivity:
    """One activity as the history tells it."""

    activity_id: str
    activity_type: str
    scheduled_event_id: int
    #: of its ActivityTaskStarted, which stands beside the closing event
    started_attempt: int = 0
    closed_by: str = ""


def activities_of(history: Mapping[str, Any]) -> dict[str, RecordedActivity]:
    """A history's activities, by activity id."""
    scheduled: dict[int, RecordedActivity] = {}
    for event in history["events"]:
        kind = event["eventType"]
        if kind == "EVENT_TYPE_ACTIVITY_TASK_SCHEDULED":
            attributes = event["activityTaskScheduledEventAttributes"]
            number = int(event["eventId"])
            scheduled[number] = RecordedActivity(
                activity_id=attributes["activityId"],
                activity_type=attributes["activityType"]["name"],
                scheduled_event_id=number,
            )
        elif kind == "EVENT_TYPE_ACTIVITY_TASK_STARTED":
            attributes = event["activityTaskStartedEventAttributes"]
            activity = scheduled[int(attributes["scheduledEventId"])]
            activity.started_attempt = attributes["attempt"]
        elif kind in CLOSING:
            activity = scheduled[int(event[CLOSING[kind]]["scheduledEventId"])]
            activity.closed_by = kind
    return {activity.activity_id: activity for activity in scheduled.values()}


def judge(
    history: Mapping[str, Any], ledger: Iterable[Execution], lost: Mapping[int, int]
) -> list[str]:
    """What is wrong with a closed run; empty when all three witnesses agree.

    `lost` has, by scheduled event id, how many attempts the journal calls lost.
    """
    findings = []
    activities = activities_of(history)
    executions: dict[str, list[Execution]] = {name: [] for name in activities}
    for execution in ledger:
        if execution.activity_id in executions:
            executions[execution.activity_id].append(execution)
        else:
            findings.append(f"the ledger has activity {execution.activity_id}, the history not")
    for name, activity in activities.items():
        found = _judge_activity(
            activity, executions[name], lost.get(activity.scheduled_event_id, 0)
        )
        findings += [f"{activity.activity_type} ({name}): {finding}" for finding in found]
    return findings


def _judge_activity(
    activity: RecordedActivity, executions: Sequence[Execution], lost: int
) -> list[str]:
    findings = []
    raised = sum(bool(execution.failure) for execution in executions)
    if len(executions) > 1 + lost + raised:
        findings.append(
            f"ran {len(executions)} times, with {lost} attempts lost and {raised} failures raised"
        )
    twice = [n for n, count in Counter(e.attempt for e in executions).items() if count > 1]
    if twice:
        findings.append(f"attempts {twice} ran more than once")
    last = max((execution.attempt for execution in executions), default=0)
    if activity.started_attempt != last:
        findings.append(
            f"ActivityTaskStarted has attempt {activity.started_attempt}, "
            f"the ledger's last is {last}"
        )
    if activity.closed_by != "EVENT_TYPE_ACTIVITY_TASK_COMPLETED":
        findings.append(f"closed by {activity.closed_by or 'nothing'}")
    elif not any(e.attempt == last and e.has_end and not e.failure for e in executions):
        findings.append(f"completed, but attempt {last} has no good end in the ledger")
    return findings
