"""Reading and writing: what a workflow leaves to its activities."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from examples.flights import dataset, report
from examples.flights.summary import Cell, MonthSummary, MonthTotals, summarise
from wfcore import activity

#: rows between two signs of life
HEARTBEAT_ROWS = 5000


@dataclass
class ReportFiles:
    csv_path: str
    svg_path: str


@activity.defn
def summarise_month(month: int) -> MonthSummary:
    """Delays and cancellations of one month, by carrier and hour."""
    return summarise(month, _with_heartbeats(dataset.flights_of(month)))


@activity.defn
def write_report(directory: str, cells: list[Cell], months: list[MonthTotals]) -> ReportFiles:
    """The CSV file and the plot."""
    files = ReportFiles(
        csv_path=str(Path(directory) / "delays.csv"), svg_path=str(Path(directory) / "delays.svg")
    )
    report.write_csv(Path(files.csv_path), cells)
    report.write_svg(Path(files.svg_path), cells, months)
    return files


def _with_heartbeats(rows: Iterator[dict[str, str]]) -> Iterator[dict[str, str]]:
    for count, row in enumerate(rows):
        if count % HEARTBEAT_ROWS == 0:
            activity.heartbeat(count)
        yield row
