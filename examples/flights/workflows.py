"""Twelve months side by side, then one report."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from wfcore import workflow

with workflow.unsafe.imports_passed_through():
    from examples.flights import activities
    from examples.flights.summary import MonthSummary, merge


@dataclass
class ReportRequest:
    """Where the report goes, and over which months."""

    directory: str
    months: list[int]


@dataclass
class Report:
    csv_path: str
    svg_path: str
    flights: int
    cancelled: int


@workflow.defn
class FlightsReport:
    """One activity a month; a crash costs the months that were being read, no other."""

    def __init__(self) -> None:
        self._done: list[int] = []

    @workflow.query
    def months_done(self) -> list[int]:
        return sorted(self._done)

    @workflow.run
    async def run(self, request: ReportRequest) -> Report:
        months = await asyncio.gather(*(self._month(month) for month in request.months))
        totals = [month.totals for month in months]
        files = await workflow.execute_activity(
            activities.write_report,
            args=[request.directory, merge(months), totals],
            start_to_close_timeout=timedelta(seconds=30),
        )
        return Report(
            csv_path=files.csv_path,
            svg_path=files.svg_path,
            flights=sum(month.flights for month in totals),
            cancelled=sum(month.cancelled for month in totals),
        )

    async def _month(self, month: int) -> MonthSummary:
        summary = await workflow.execute_activity(
            activities.summarise_month,
            month,
            start_to_close_timeout=timedelta(minutes=2),
            heartbeat_timeout=timedelta(seconds=20),
        )
        self._done.append(month)
        return summary
