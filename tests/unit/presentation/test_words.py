from datetime import timedelta

import pytest

from wfapp.presentation.words import camel, failure_line, one_line, retry_line, span
from wfcore.protocol.common import RetryPolicy
from wfcore.protocol.enums import EventType, WorkflowExecutionStatus
from wfcore.protocol.failures import ApplicationFailureInfo, Failure


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 ms"),
        (0.38, "380 ms"),
        (1, "1 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7199, "119 min"),
        (7200, "2 h"),
        (47 * 3600, "47 h"),
        (48 * 3600, "2 d"),
        (400 * 86400, "400 d"),
    ],
)
def test_spans(seconds: float, text: str) -> None:
    assert span(timedelta(seconds=seconds)) == text


def test_names_are_written_as_temporals_tools_write_them() -> None:
    assert camel(WorkflowExecutionStatus.CONTINUED_AS_NEW) == "ContinuedAsNew"
    assert camel(EventType.ACTIVITY_TASK_SCHEDULED) == "ActivityTaskScheduled"


def test_a_failure_leads_to_its_cause() -> None:
    cause = Failure(
        message="no funds", application_failure_info=ApplicationFailureInfo(type="CardDeclined")
    )
    assert failure_line(Failure(message="activity error", cause=cause)) == (
        "activity error ← CardDeclined: no funds"
    )
    assert failure_line(None) == ""


def test_a_line_is_one_line() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("x" * 500, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (None, ""),
        (RetryPolicy(), "attempts without limit, after 1 s, times 2, at most 100 s"),
        (RetryPolicy(maximum_attempts=1), "1 attempt, after 1 s, times 2, at most 100 s"),
        (
            RetryPolicy(
                initial_interval=timedelta(seconds=5),
                backoff_coefficient=1.5,
                maximum_interval=timedelta(hours=3),
                maximum_attempts=4,
                non_retryable_error_types=("NoLuck", "NoFunds"),
            ),
            "4 attempts, after 5 s, times 1.5, at most 3 h, not for NoLuck, NoFunds",
        ),
    ],
)
def test_a_retry_policy_in_a_line(policy: RetryPolicy | None, text: str) -> None:
    assert retry_line(policy) == text
