"""Spans, names and failures in few words, the same in the admin and on the command line."""

from datetime import UTC, datetime, timedelta

from wfcore.history.retries import fill_policy
from wfcore.protocol.common import RetryPolicy
from wfcore.protocol.enums import EventType, WireEnum
from wfcore.protocol.failures import Failure

_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_LINE = 300


def span(value: timedelta) -> str:
    """``380 ms``, ``40 s``, ``3 min``, ``5 h``, ``12 d``: as exact as a glance needs."""
    value = max(value, timedelta())
    if value < timedelta(seconds=1):
        return f"{value // timedelta(milliseconds=1)} ms"
    if value < 2 * _MINUTE:
        return f"{value // timedelta(seconds=1)} s"
    if value < 2 * _HOUR:
        return f"{value // _MINUTE} min"
    if value < 2 * _DAY:
        return f"{value // _HOUR} h"
    return f"{value // _DAY} d"


def moment(value: datetime) -> str:
    """A time in UTC, to the second."""
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def camel(member: WireEnum) -> str:
    """``ContinuedAsNew``, as Temporal's tools write members of its enumerations."""
    return "".join(part.capitalize() for part in member.name.split("_"))


def event_name(kind: EventType) -> str:
    """``ActivityTaskScheduled``."""
    return camel(kind)


def retry_line(policy: RetryPolicy | None) -> str:
    """``5 attempts, after 1 s, times 2, at most 100 s``; nothing without a policy."""
    if policy is None:
        return ""
    filled = fill_policy(policy)
    most = filled.maximum_attempts
    parts = [
        f"{most} attempt{'' if most == 1 else 's'}" if most else "attempts without limit",
        f"after {span(filled.initial_interval or timedelta())}",
        f"times {filled.backoff_coefficient:g}",
        f"at most {span(filled.maximum_interval or timedelta())}",
    ]
    if filled.non_retryable_error_types:
        parts.append(f"not for {', '.join(filled.non_retryable_error_types)}")
    return ", ".join(parts)


def one_line(text: str, length: int = _LINE) -> str:
    """A text without line breaks, cut to a length."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


def failure_line(failure: Failure | None) -> str:
    """What went wrong and why, in one line: ``ActivityError: … ← CardDeclined: no funds``."""
    parts = []
    while failure is not None:
        info = failure.application_failure_info
        kind = f"{info.type}: " if info is not None and info.type else ""
        parts.append(f"{kind}{failure.message}")
        failure = failure.cause
    return one_line(" ← ".join(parts))
