"""When a failed attempt is followed by another: one decision for activities and for runs."""

from datetime import datetime, timedelta

import msgspec

from wfcore.history.limits import DEFAULT_LIMITS
from wfcore.protocol.common import RetryPolicy
from wfcore.protocol.enums import RetryState, TimeoutType
from wfcore.protocol.failures import Failure

_ZERO = timedelta(0)
#: Longer waits are cut to it: no clock goes on for ever.
LONGEST_WAIT = DEFAULT_LIMITS.duration
_DEFAULT_INITIAL = timedelta(seconds=1)
_DEFAULT_COEFFICIENT = 2.0
_DEFAULT_MAXIMUM = 100
_TIMEOUT_PREFIX = "TemporalTimeout:"
#: Names of timeouts in `non_retryable_error_types`.
_TIMEOUT_NAMES = {
    TimeoutType.START_TO_CLOSE: "StartToClose",
    TimeoutType.SCHEDULE_TO_START: "ScheduleToStart",
    TimeoutType.SCHEDULE_TO_CLOSE: "ScheduleToClose",
    TimeoutType.HEARTBEAT: "Heartbeat",
}
#: Timeouts after which another attempt makes sense.
_RETRYABLE_TIMEOUTS = (TimeoutType.START_TO_CLOSE, TimeoutType.HEARTBEAT)


def timeout_name(kind: TimeoutType) -> str:
    """``StartToClose``, as it stands in messages and in `non_retryable_error_types`."""
    return _TIMEOUT_NAMES[kind]


def check_policy(policy: RetryPolicy | None) -> str:
    """What is wrong with a retry policy, in Temporal's words; empty when it is good."""
    if policy is None or policy.maximum_attempts == 1:
        return ""  # one attempt: the rest is never used
    initial = policy.initial_interval or _ZERO
    maximum = policy.maximum_interval or _ZERO
    if initial < _ZERO:
        return "invalid InitialInterval set on retry policy: negative duration"
    if policy.backoff_coefficient != 0 and policy.backoff_coefficient < 1:
        return "BackoffCoefficient cannot be less than 1 on retry policy."
    if maximum < _ZERO:
        return "invalid MaximumInterval set on retry policy: negative duration"
    if _ZERO < maximum < initial:
        return "MaximumInterval cannot be less than InitialInterval on retry policy."
    if policy.maximum_attempts < 0:
        return "MaximumAttempts cannot be negative on retry policy."
    for name in policy.non_retryable_error_types:
        if name.startswith(_TIMEOUT_PREFIX):
            kind = name.removeprefix(_TIMEOUT_PREFIX)
            if kind not in _TIMEOUT_NAMES.values():
                return f"Invalid timeout type value: {kind}."
    return ""


def fill_policy(policy: RetryPolicy | None) -> RetryPolicy:
    """The policy with Temporal's defaults where it says nothing: 1 s, 2.0, 100 times the initial
    interval, unlimited attempts."""
    policy = policy or RetryPolicy()
    initial = policy.initial_interval or _DEFAULT_INITIAL
    return msgspec.structs.replace(
        policy,
        initial_interval=initial,
        backoff_coefficient=policy.backoff_coefficient or _DEFAULT_COEFFICIENT,
        maximum_interval=policy.maximum_interval or _default_maximum(initial),
    )


def is_retryable(failure: Failure | None, policy: RetryPolicy) -> bool:
    """Whether the outermost failure allows another attempt; causes don't count."""
    if failure is None:
        return True
    excluded = policy.non_retryable_error_types
    if failure.terminated_failure_info is not None or failure.canceled_failure_info is not None:
        return False
    if (timeout := failure.timeout_failure_info) is not None:
        kind = timeout.timeout_type
        return kind in _RETRYABLE_TIMEOUTS and _TIMEOUT_PREFIX + timeout_name(kind) not in excluded
    if (server := failure.server_failure_info) is not None:
        return not server.non_retryable
    if (application := failure.application_failure_info) is not None:
        return not application.non_retryable and application.type not in excluded
    return True


def backoff(policy: RetryPolicy, attempt: int) -> timedelta:
    """The wait after the failure of this attempt, without jitter."""
    initial = policy.initial_interval or _DEFAULT_INITIAL
    maximum = min(policy.maximum_interval or _default_maximum(initial), LONGEST_WAIT)
    try:
        return min(initial * policy.backoff_coefficient ** (attempt - 1), maximum)
    except OverflowError:
        return maximum


def _default_maximum(initial: timedelta) -> timedelta:
    return max(min(initial, LONGEST_WAIT) * _DEFAULT_MAXIMUM, initial)


def decide(
    policy: RetryPolicy,
    attempt: int,
    failure: Failure | None,
    wait: timedelta,
    now: datetime,
    deadline: datetime | None,
) -> RetryState:
    """Whether this attempt, which has just failed, is followed by another after `wait`."""
    if not is_retryable(failure, policy):
        return RetryState.NON_RETRYABLE_FAILURE
    if 0 < policy.maximum_attempts <= attempt:
        return RetryState.MAXIMUM_ATTEMPTS_REACHED
    if deadline is not None and now + wait > deadline:
        return RetryState.TIMEOUT
    return RetryState.IN_PROGRESS
