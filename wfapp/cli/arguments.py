"""What verbs take on the command line, and how texts become values."""

import argparse
import json
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from wfapp.cli.answers import VerbError
from wfcore.protocol.enums import WireEnum

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}


def duration(text: str) -> timedelta:
    """``90s``, ``1h30m``, ``2d``.

    Raises:
        ArgumentTypeError: it is none.
    """
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration; write 90s, 1h30m or 2d")
    total = timedelta()
    try:
        for number, unit in parts:
            total += float(number) * _UNITS[unit]
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} is longer than any clock runs") from None
    return total


def values(options: dict[str, Any]) -> list[Any]:
    """The arguments that ``--input`` and ``--input-file`` give, in their order.

    Raises:
        VerbError: one is no JSON, or a file can't be read.
    """
    found = [json_value(text, "--input") for text in options.get("input") or ()]
    for name in options.get("input_file") or ():
        try:
            text = Path(name).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise VerbError(f"--input-file {name} is no UTF-8: {error}") from error
        except OSError as error:
            raise VerbError(f"--input-file {name} can't be read: {error.strerror}") from error
        found.append(json_value(text, f"--input-file {name}"))
    return found


def json_value(text: str, option: str) -> Any:
    """A value of JSON.

    Raises:
        VerbError: it is none; the text says how to write a string.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise VerbError(
            f"{option} takes JSON, and {text!r} is none ({error}); a string needs its quotes: "
            f"'\"text\"'"
        ) from error


def named_values(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """``key=JSON`` pairs."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise VerbError(f"{option} takes KEY=JSON, not {pair!r}")
        found[key] = json_value(text, option)
    return found


def choices(kind: type[WireEnum]) -> list[str]:
    """CamelCase names of an enumeration, as Temporal's command line takes them."""
    return [
        "".join(part.capitalize() for part in name.split("_"))
        for name in kind.__members__
        if name != "UNSPECIFIED"
    ]


def add_run(parser: argparse.ArgumentParser) -> None:
    """The workflow id, first or by its flag, and the run."""
    parser.add_argument("id", nargs="?", default="", metavar="WORKFLOW_ID", help="workflow id")
    parser.add_argument("-w", "--workflow-id", default="", help="the same by a flag")
    parser.add_argument("-r", "--run-id", default="", help="run id; without it the newest run")


def add_input(parser: argparse.ArgumentParser) -> None:
    """Arguments of a workflow, signal or query."""
    parser.add_argument(
        "-i",
        "--input",
        action="append",
        default=[],
        metavar="JSON",
        help="an argument; repeat it for more",
    )
    parser.add_argument(
        "--input-file",
        action="append",
        default=[],
        metavar="FILE",
        help="a file that holds an argument in JSON",
    )


def add_reason(parser: argparse.ArgumentParser) -> None:
    """Why: kept in the audit log."""
    parser.add_argument("--reason", default="", help="why; kept in the audit log")
