"""Cron schedules: what is taken, when it comes next, and clock changes."""

from datetime import UTC, datetime, timedelta

import pytest

from wfcore.schedules.cron import CronError, parse

NEVER = "invalid CronSchedule, no time can be found to satisfy the schedule"


def at(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def following(spec: str, moment: str, count: int = 1) -> list[str]:
    schedule = parse(spec)
    found, last = [], at(moment)
    for _ in range(count):
        following = schedule.next_after(last)
        assert following is not None
        last = following
        found.append(last.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"))
    return found


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("* * * * *", "2026-03-01T12:01:00"),
        ("*/15 * * * *", "2026-03-01T12:15:00"),
        ("5/20 * * * *", "2026-03-01T12:05:00"),
        ("30 6 1 1 *", "2027-01-01T06:30:00"),
        ("0 0 29 2 *", "2028-02-29T00:00:00"),
        ("0 9 ? * mon-fri", "2026-03-02T09:00:00"),
        ("0 0 * JUN,dec *", "2026-06-01T00:00:00"),
        ("0 0 13 * FRI", "2026-03-06T00:00:00"),
        ("0 0 */20 * 3", "2026-03-04T00:00:00"),
        ("0 0 */20 * *", "2026-03-21T00:00:00"),
        ("0 0 * * 5/1", "2026-03-06T00:00:00"),
        ("@hourly", "2026-03-01T13:00:00"),
        ("@daily", "2026-03-02T00:00:00"),
        ("@midnight", "2026-03-02T00:00:00"),
        ("@weekly", "2026-03-08T00:00:00"),
        ("@monthly", "2026-04-01T00:00:00"),
        ("@yearly", "2027-01-01T00:00:00"),
        ("@annually", "2027-01-01T00:00:00"),
        ("@every 90s", "2026-03-01T12:01:30"),
        ("@every 1h30m", "2026-03-01T13:30:00"),
        ("@every 1.5s", "2026-03-01T12:00:01"),
        ("@every 500ms", "2026-03-01T12:00:01"),
        ("@every -5s", "2026-03-01T12:00:01"),
        ("@every 0", "2026-03-01T12:00:01"),
        ("CRON_TZ=Europe/Berlin 30 6 * * *", "2026-03-02T05:30:00"),
        ("TZ=America/New_York 0 0 * * *", "2026-03-02T05:00:00"),
        ("TZ=Europe/Berlin @daily", "2026-03-01T23:00:00"),
    ],
)
def test_the_next_time(spec: str, expected: str) -> None:
    assert following(spec, "2026-03-01T12:00:00.25") == [expected]


@pytest.mark.parametrize(
    "spec",
    [
        "nonsense",
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 7",
        "* * * * 1-7",
        "* * * * 07",
        "*/0 * * * *",
        "5-1 * * * *",
        "1,,2 * * * *",
        "* * L * *",
        "* * LW * *",
        "* * * * 5L",
        "* * * * MON#2",
        "* * * MOO *",
        "@every",
        "@every ",
        "@every 5",
        "@every 5 s",
        "@every 5x",
        "@every 9999999999h",
        "@noon",
        "CRON_TZ=Nowhere/Land 0 0 * * *",
        "CRON_TZ=../../etc/passwd 0 0 * * *",
        "CRON_TZ=Europe/Berlin",
        "\u0661 * * * *",
    ],
)
def test_what_is_no_schedule_is_refused(spec: str) -> None:
    with pytest.raises(CronError, match=r"^invalid CronSchedule\.$"):
        parse(spec)


@pytest.mark.parametrize("spec", ["0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_a_day_that_never_comes_is_refused(spec: str) -> None:
    with pytest.raises(CronError) as caught:
        parse(spec)
    assert str(caught.value) == NEVER


def test_an_hour_that_is_left_out_has_no_match() -> None:
    spec = "CRON_TZ=Europe/Berlin 30 2 * * *"
    assert following(spec, "2026-03-28T00:00", 3) == [
        "2026-03-28T01:30:00",
        "2026-03-30T00:30:00",
        "2026-03-31T00:30:00",
    ]


def test_an_hour_that_comes_twice_matches_twice() -> None:
    spec = "CRON_TZ=Europe/Berlin 30 2 * * *"
    assert following(spec, "2026-10-24T12:00", 3) == [
        "2026-10-25T00:30:00",
        "2026-10-25T01:30:00",
        "2026-10-26T01:30:00",
    ]
    each = "CRON_TZ=Europe/Berlin */30 * * * *"
    assert following(each, "2026-10-24T23:59", 6) == [
        "2026-10-25T00:00:00",
        "2026-10-25T00:30:00",
        "2026-10-25T01:00:00",
        "2026-10-25T01:30:00",
        "2026-10-25T02:00:00",
        "2026-10-25T02:30:00",
    ]


@pytest.mark.parametrize(
    ("spec", "previous", "now", "seconds"),
    [
        # the first run: due at the first match from now on
        ("* * * * *", "12:00:37.3", "12:00:37.3", 23),
        ("@every 10s", "12:00:00.9", "12:00:00.9", 10),
        # on time
        ("* * * * *", "12:01:00", "12:01:10", 50),
        ("@every 10s", "12:00:00", "12:00:03.5", 7),
        # times that were missed are left out
        ("* * * * *", "12:01:00", "12:05:59.5", 1),
        ("@every 10s", "12:00:00", "12:00:35", 5),
        # a match that is now counts, but the same one doesn't come again
        ("* * * * *", "12:01:00", "12:02:00", 0),
        ("* * * * *", "12:02:00", "12:02:00", 60),
        ("@every 10s", "12:00:00", "12:00:10", 0),
    ],
)
def test_the_wait_of_a_run(spec: str, previous: str, now: str, seconds: int) -> None:
    wait = parse(spec).wait(at(f"2026-03-01T{previous}"), at(f"2026-03-01T{now}"))
    assert wait == timedelta(seconds=seconds)
