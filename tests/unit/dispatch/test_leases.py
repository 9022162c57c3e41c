"""Leases: what a keeper does when the database is away, and when it may judge again."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError

from wfapp.dispatch.claims import Health, Judge, LeaseKeeper, Process
from wfcore.exceptions import UnavailableError

LEASE = timedelta(seconds=10)
ONE = Process(boot_id="one", pid=1, started_at=datetime(2026, 1, 1, tzinfo=UTC))


class Table:
    """A lease table that only remembers."""

    lease = LEASE

    def __init__(self) -> None:
        self.renewals = 0
        self.forgotten: list[str] = []
        self.dead: list[str] = []

    def renew(self, processes: Sequence[Process]) -> None:
        self.renewals += 1

    def forget(self, boot_ids: Sequence[str]) -> None:
        self.forgotten += boot_ids

    def expired(self) -> list[str]:
        return self.dead

    def without_row(self) -> set[str]:
        return set()


@pytest.mark.parametrize(
    "error", [UnavailableError("database 'default' can't be reached"), OperationalError("gone")]
)
def test_a_worker_that_ends_without_its_database_says_so_in_a_line(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(boot_id: str) -> None:
        raise error

    table: Any = Table()
    keeper = LeaseKeeper(
        table, Health(lease=LEASE), living=lambda: [ONE], lost=list, lose_claims=fails
    )
    keeper.look()
    with caplog.at_level(logging.WARNING):
        keeper.start()
        keeper.stop()
    (record,) = caplog.records
    assert record.__dict__["action"] == "lease_not_ended"
    assert record.exc_info is None


def test_nobody_is_judged_until_a_lease_has_passed_since_the_outage() -> None:
    now = 100.0
    table: Any = Table()
    table.dead = ["one"]
    lost: list[str] = []
    health = Health(lease=LEASE, clock=lambda: now)
    judge = Judge(table, health, lost.append, clock=lambda: now)
    health.reached()
    now += 9.9
    health.reached()
    assert judge.judge() == []
    now += 0.2
    health.reached()
    assert judge.judge() == ["one"]
    health.missed()
    health.reached()
    assert judge.judge() == []
    assert (lost, table.forgotten) == (["one"], ["one"])


def test_the_living_are_renewed_between_the_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("wfapp.dispatch.claims.time", SimpleNamespace(monotonic=lambda: now))
    table: Any = Table()
    dead = ["two", "three", "four", "five"]

    def slowly(_: str) -> None:
        nonlocal now
        now += 2  # as where another transaction holds what is to be given up

    def lost() -> list[str]:
        found, dead[:] = dead[:], []
        return found

    health = Health(lease=LEASE, clock=lambda: now)
    keeper = LeaseKeeper(table, health, living=lambda: [ONE], lost=lost, lose_claims=slowly)
    renewals = []
    while len(table.forgotten) < 4:
        keeper.look()
        renewals.append(table.renewals)
    assert renewals == [1, 2]
    assert sorted(table.forgotten) == ["five", "four", "three", "two"]
