"""Sums that can be merged: whole numbers only, so that the order of merging never shows."""

from collections.abc import Iterable
from dataclasses import dataclass

from examples.flights.dataset import UNKNOWN


@dataclass
class Cell:
    """One carrier in one hour of the day (of the planned departure)."""

    carrier: str
    hour: int
    flights: int = 0
    cancelled: int = 0
    #: over those that departed; an early departure counts below zero
    delay_minutes: int = 0

    @property
    def mean_delay(self) -> float | None:
        """Minutes; None when nothing departed."""
        departed = self.flights - self.cancelled
        return self.delay_minutes / departed if departed else None


@dataclass
class MonthSummary:
    month: int
    cells: list[Cell]

    @property
    def totals(self) -> "MonthTotals":
        return MonthTotals(
            month=self.month,
            flights=sum(cell.flights for cell in self.cells),
            cancelled=sum(cell.cancelled for cell in self.cells),
        )


@dataclass
class MonthTotals:
    month: int
    flights: int
    cancelled: int


def summarise(month: int, rows: Iterable[dict[str, str]]) -> MonthSummary:
    """Sum up rows of the table. A flight without a departure time was cancelled."""
    cells: dict[tuple[str, int], Cell] = {}
    for row in rows:
        key = row["carrier"], int(row["hour"])
        cell = cells.get(key) or cells.setdefault(key, Cell(*key))
        cell.flights += 1
        if row["dep_time"] == UNKNOWN:
            cell.cancelled += 1
        else:
            cell.delay_minutes += int(row["dep_delay"])
    return MonthSummary(month, _ordered(cells.values()))


def merge(months: Iterable[MonthSummary]) -> list[Cell]:
    """The sums over all months."""
    total: dict[tuple[str, int], Cell] = {}
    for month in months:
        for cell in month.cells:
            key = cell.carrier, cell.hour
            into = total.get(key) or total.setdefault(key, Cell(*key))
            into.flights += cell.flights
            into.cancelled += cell.cancelled
            into.delay_minutes += cell.delay_minutes
    return _ordered(total.values())


def _ordered(cells: Iterable[Cell]) -> list[Cell]:
    return sorted(cells, key=lambda cell: (cell.carrier, cell.hour))
