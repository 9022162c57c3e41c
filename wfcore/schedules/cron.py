"""Cron schedules of workflows: five fields, ``@hourly`` and its like, ``@every 90s``, each with an
optional prefix ``CRON_TZ=Europe/Berlin`` or ``TZ=...`` (else UTC).

Times are matched against the clock on the wall, without regard to daylight saving, as in Temporal:
an hour that is left out has no match, one that comes twice matches twice.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

_NO_SCHEDULE = "invalid CronSchedule."
_NEVER = "invalid CronSchedule, no time can be found to satisfy the schedule"
_SECOND = timedelta(seconds=1)
_ZERO = timedelta(0)
#: The most by which clocks are put back, and a match may repeat itself.
_OVERLAP = timedelta(hours=3)
_NAMED: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_PREFIX = re.compile(r"(?:CRON_)?TZ=(\S*) +(.*)")
_TERM = re.compile(r"(\*|(?:\d+|[A-Z]{3})(?:-(?:\d+|[A-Z]{3}))?)(?:/(\d+))?", re.ASCII)
#: First and last value of day of month and day of week.
_DAYS = {2: (1, 31), 4: (0, 6)}
#: Seconds of Go's units of time.
_UNITS: Mapping[str, Decimal] = {
    "h": Decimal(3_600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("1e-3"),
    "us": Decimal("1e-6"),
    "\N{MICRO SIGN}s": Decimal("1e-6"),
    "\N{GREEK SMALL LETTER MU}s": Decimal("1e-6"),
    "ns": Decimal("1e-9"),
}
_AMOUNT = rf"(\d+\.?\d*|\.\d+)({'|'.join(sorted(_UNITS, key=len, reverse=True))})"
_DURATION = re.compile(rf"[+-]?(?:(?:{_AMOUNT})+|0)", re.ASCII)
#: The longest of Go's durations.
_LONGEST = Decimal(2**63 - 1) / 10**9
#: A day in the past on which each field is tried by itself.
_ANY_DAY = datetime(2000, 1, 1)  # noqa: DTZ001 - a time on the wall


class CronError(ValueError):
    """The text is no cron schedule, or one that never comes; in the words of Temporal's server."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CronSchedule:
    """A parsed schedule: a fixed interval, or five fields in a time zone."""

    fields: str = ""
    zone: tzinfo = UTC
    interval: timedelta = _ZERO

    def next_after(self, moment: datetime) -> datetime | None:
        """The first match after a moment; None if there is none for decades.

        An interval counts from the moment's whole second.
        """
        if self.interval:
            return moment.replace(microsecond=0) + self.interval
        found: datetime | None = None
        begin = moment.astimezone(self.zone).replace(tzinfo=None) - _OVERLAP
        end = datetime.max  # noqa: DTZ901 - a time on the wall
        for wall in CronSim(self.fields, begin):
            if wall > end:
                break
            for match in _moments(wall, self.zone):
                if match > moment and (found is None or match < found):
                    found, end = match, min(end, wall + _OVERLAP)
        return found

    def wait(self, previous: datetime, now: datetime) -> timedelta | None:
        """How long a run waits that begins now, after one that was due at `previous`.

        It is due at the first match after `previous` that is not before now; the wait is rounded
        up to whole seconds. None: there is no match.
        """
        if self.interval:
            begin = previous.replace(microsecond=0)
            missed = max(-((begin - now) // self.interval), 1)
            due: datetime | None = begin + missed * self.interval
        else:
            due = self.next_after(max(previous, now - timedelta(microseconds=1)))
        return None if due is None else -((now - due) // _SECOND) * _SECOND


def parse(text: str) -> CronSchedule:
    """Read a schedule.

    Raises:
        CronError: it is none, or can never match.
    """
    zone: tzinfo = UTC
    if text.startswith(("TZ=", "CRON_TZ=")):
        prefix = _PREFIX.fullmatch(text)
        if prefix is None:
            raise CronError(_NO_SCHEDULE)
        zone, text = _zone(prefix[1]), prefix[2].strip()
    if text.startswith("@every "):
        return CronSchedule(interval=_interval(text.removeprefix("@every ")), zone=zone)
    fields = _NAMED.get(text, text).upper().replace("?", "*").split()
    if len(fields) != 5:
        raise CronError(_NO_SCHEDULE)
    written = " ".join(_written(place, field) for place, field in enumerate(fields))
    schedule = CronSchedule(fields=written, zone=zone)
    _check(schedule)
    return schedule


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name) if name else UTC
    except (ValueError, KeyError, OSError) as error:  # all of them say: no such zone
        raise CronError(_NO_SCHEDULE) from error


def _interval(text: str) -> timedelta:
    """A duration in Go's form, in whole seconds; less than one second acts as one."""
    if _DURATION.fullmatch(text) is None:
        raise CronError(_NO_SCHEDULE)
    amounts = re.findall(_AMOUNT, text)
    total = sum((Decimal(amount) * _UNITS[unit] for amount, unit in amounts), Decimal(0))
    if total > _LONGEST:
        raise CronError(_NO_SCHEDULE)
    return _SECOND if text.startswith("-") else timedelta(seconds=max(int(total), 1))


def _written(place: int, field: str) -> str:
    """A field in the parser's dialect, which has more than ours and reads steps of days otherwise.

    Days of month and of week that are both named are alternatives; a field that begins with a star
    counts as not named. ``*/2`` names days.
    """
    terms: list[str] = []
    for term in field.split(","):
        parts = _TERM.fullmatch(term)
        if parts is None:
            raise CronError(_NO_SCHEDULE)
        values, step = parts[1], parts[2]
        if place == 4 and any(value.isdigit() and int(value) > 6 for value in values.split("-")):
            raise CronError(_NO_SCHEDULE)  # Sunday is 0
        if values == "*" and step in (None, "1"):
            return "*"
        if step and place in _DAYS and "-" not in values:
            first, last = _DAYS[place]
            values = f"{first if values == '*' else values}-{last}"
        terms.append(f"{values}/{step}" if step else values)
    return ",".join(terms)


def _check(schedule: CronSchedule) -> None:
    """Refuse fields that say nothing, then fields that never come together."""
    fields = schedule.fields.split()
    try:
        for place in range(5):
            alone = [field if at == place else "*" for at, field in enumerate(fields)]
            CronSim(" ".join(alone), _ANY_DAY)
    except CronSimError as error:
        raise CronError(_NO_SCHEDULE) from error
    try:
        next(CronSim(schedule.fields, _ANY_DAY))
    except (CronSimError, StopIteration) as error:
        raise CronError(_NEVER) from error


def _moments(wall: datetime, zone: tzinfo) -> Iterator[datetime]:
    """When a clock shows this time: once, twice or never."""
    seen: set[datetime] = set()
    for fold in (0, 1):
        moment = wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)
        if moment not in seen and moment.astimezone(zone).replace(tzinfo=None) == wall:
            seen.add(moment)
            yield moment
