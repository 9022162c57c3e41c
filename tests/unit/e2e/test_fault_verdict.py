"""The fault test's verdict finds what is wrong: each rule has a run that breaks it."""

from typing import Any

import pytest

from tests.e2e.faults.verdict import Execution, activities_of, judge

SCHEDULED, STARTED, COMPLETED = 5, 6, 7


def a_history(*, attempt: int = 1) -> dict[str, Any]:
    """A run of one activity that completed at this attempt."""
    return {
        "events": [
            {
                "eventId": str(SCHEDULED),
                "eventType": "EVENT_TYPE_ACTIVITY_TASK_SCHEDULED",
                "activityTaskScheduledEventAttributes": {
                    "activityId": "1",
                    "activityType": {"name": "charge"},
                },
            },
            {
                "eventId": str(STARTED),
                "eventType": "EVENT_TYPE_ACTIVITY_TASK_STARTED",
                "activityTaskStartedEventAttributes": {
                    "scheduledEventId": str(SCHEDULED),
                    "attempt": attempt,
                },
            },
            {
                "eventId": str(COMPLETED),
                "eventType": "EVENT_TYPE_ACTIVITY_TASK_COMPLETED",
                "activityTaskCompletedEventAttributes": {"scheduledEventId": str(SCHEDULED)},
            },
        ]
    }


def ran(attempt: int, *, has_end: bool = True, failure: str = "") -> Execution:
    return Execution(activity_id="1", attempt=attempt, has_end=has_end, failure=failure)


def test_one_good_execution_is_right() -> None:
    assert judge(a_history(), [ran(1)], {}) == []


def test_a_failure_and_a_lost_attempt_each_allow_one_more() -> None:
    ledger = [ran(1, failure="declined"), ran(2, has_end=False), ran(3)]
    assert judge(a_history(attempt=3), ledger, {SCHEDULED: 1}) == []


def test_an_attempt_lost_before_its_first_line_leaves_a_gap() -> None:
    assert judge(a_history(attempt=2), [ran(2)], {SCHEDULED: 1}) == []


@pytest.mark.parametrize(
    ("history", "ledger", "finding"),
    [
        (a_history(attempt=2), [ran(1), ran(2)], "ran 2 times"),
        (a_history(attempt=2), [ran(2), ran(2)], "ran more than once"),
        (a_history(attempt=1), [ran(1, failure="declined"), ran(2)], "the ledger's last is 2"),
        (a_history(attempt=1), [], "the ledger's last is 0"),
        (a_history(attempt=1), [ran(1, has_end=False)], "no good end"),
        ({"events": a_history()["events"][:1]}, [], "closed by nothing"),
        ({"events": []}, [ran(1)], "the history not"),
    ],
)
def test_what_doesnt_agree_is_found(
    history: dict[str, Any], ledger: list[Execution], finding: str
) -> None:
    assert finding in "\n".join(judge(history, ledger, {}))


def test_activities_are_read_off_the_history() -> None:
    (activity,) = activities_of(a_history(attempt=3)).values()
    assert (activity.activity_type, activity.started_attempt) == ("charge", 3)
