"""The report's two files, each written whole or not at all: a draft takes the old one's place."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from examples.flights.plot import draw
from examples.flights.summary import Cell, MonthTotals

COLUMNS = ("carrier", "hour", "flights", "cancelled", "mean_departure_delay_minutes")


def write_csv(path: Path, cells: Sequence[Cell]) -> None:
    """One line per carrier and hour of the day."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for cell in cells:
        mean = "" if cell.mean_delay is None else f"{cell.mean_delay:.2f}"
        writer.writerow((cell.carrier, cell.hour, cell.flights, cell.cancelled, mean))
    _replace(path, text.getvalue())


def write_svg(path: Path, cells: Sequence[Cell], months: Sequence[MonthTotals]) -> None:
    """A map of delays by carrier and hour over bars of cancellations by month."""
    _replace(path, draw(cells, months))


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
