"""Options of an activity: what is wrong with them, their defaults and caps, and changes of some.

Commands and operators give the same options under the same names.
"""

from datetime import timedelta
from typing import Any, Protocol

import msgspec

from wfcore.exceptions import InvalidArgumentError
from wfcore.history.retries import check_policy, fill_policy
from wfcore.protocol.common import Priority, RetryPolicy, TaskQueue
from wfcore.protocol.rpc.info import ActivityOptions

_ZERO = timedelta(0)
_FAIRNESS_KEY_BYTES = 64
_TIMEOUTS = {
    "schedule_to_close_timeout": "ScheduleToCloseTimeout",
    "schedule_to_start_timeout": "ScheduleToStartTimeout",
    "start_to_close_timeout": "StartToCloseTimeout",
    "heartbeat_timeout": "HeartbeatTimeout",
}
#: Options of which single fields may be changed, with their kinds and names in errors.
_GROUPS: dict[str, tuple[type[Any], str]] = {
    "task_queue": (TaskQueue, "TaskQueue"),
    "retry_policy": (RetryPolicy, "RetryPolicy"),
    "priority": (Priority, "Priority"),
}


class Timeouts(Protocol):
    """The time limits of a command, of options, or of a SCHEDULED event."""

    @property
    def schedule_to_close_timeout(self) -> timedelta | None: ...

    @property
    def schedule_to_start_timeout(self) -> timedelta | None: ...

    @property
    def start_to_close_timeout(self) -> timedelta | None: ...

    @property
    def heartbeat_timeout(self) -> timedelta | None: ...


def timeouts_fault(given: Timeouts, activity_id: str, activity_type: str) -> str:
    """What is wrong with time limits, in Temporal's words; empty when they are good."""
    for field, name in _TIMEOUTS.items():
        duration = getattr(given, field)
        if duration is not None and duration < _ZERO:
            return f"invalid {name}: negative duration"
    if not given.schedule_to_close_timeout and not given.start_to_close_timeout:
        return (
            "a valid StartToCloseTimeout or ScheduleToCloseTimeout must be set on the activity. "
            f"ActivityId={activity_id} ActivityType={activity_type}"
        )
    return ""


def effective_timeouts(
    given: Timeouts, run_timeout: timedelta | None, longest: timedelta
) -> tuple[timedelta, timedelta, timedelta, timedelta]:
    """Schedule-to-close, schedule-to-start, start-to-close and heartbeat timeout, after defaulting
    and capping; zero is none."""
    run = run_timeout or _ZERO
    to_close, to_start, start_to_close, beat = (
        min(value or _ZERO, longest)
        for value in (
            given.schedule_to_close_timeout,
            given.schedule_to_start_timeout,
            given.start_to_close_timeout,
            given.heartbeat_timeout,
        )
    )
    if to_close:
        to_start = min(to_start or to_close, to_close)
        start_to_close = min(start_to_close or to_close, to_close)
    else:
        to_close = run
        to_start = to_start or run
    if run:
        to_close, to_start, start_to_close, beat = (
            min(value, run) for value in (to_close, to_start, start_to_close, beat)
        )
    return to_close, to_start, start_to_close, min(beat, start_to_close)


def priority_fault(priority: Priority | None) -> str:
    """What is wrong with a priority; empty when it is good."""
    if priority is None:
        return ""
    if priority.priority_key < 0:
        return "priority key can't be negative"
    if len(priority.fairness_key.encode()) > _FAIRNESS_KEY_BYTES:
        return "fairness key length exceeds limit"
    if priority.fairness_weight < 0:
        return "must be greater than zero"
    return ""


def inherited_priority(own: Priority | None, parents: Priority | None) -> Priority | None:
    """A priority whose unset parts are those of the workflow."""
    if parents is None or parents == Priority():
        return own
    own = own or Priority()
    return Priority(
        priority_key=own.priority_key or parents.priority_key,
        fairness_key=own.fairness_key or parents.fairness_key,
        fairness_weight=own.fairness_weight or parents.fairness_weight,
    )


def merged(
    current: ActivityOptions, given: ActivityOptions, paths: tuple[str, ...]
) -> ActivityOptions:
    """The current options with those changed that the paths name; unknown paths count nothing.

    Raises:
        InvalidArgumentError: a path leads into something that is not given.
    """
    changed: dict[str, Any] = {}
    for path in paths:
        group, _, field = path.partition(".")
        if not field and group in _TIMEOUTS:
            changed[group] = getattr(given, group) or _ZERO
        elif group in _GROUPS:
            kind, name = _GROUPS[group]
            source = getattr(given, group)
            if field in kind.__struct_fields__:
                if source is None:
                    raise InvalidArgumentError(f"{name} is not provided")
                target = changed.get(group, getattr(current, group)) or kind()
                value = getattr(source, field)
                changed[group] = msgspec.structs.replace(target, **{field: value})
            elif not field and group != "task_queue":
                changed[group] = source
    if isinstance(policy := changed.get("retry_policy"), RetryPolicy):
        changed["retry_policy"] = policy if check_policy(policy) else fill_policy(policy)
    return msgspec.structs.replace(current, **changed)
