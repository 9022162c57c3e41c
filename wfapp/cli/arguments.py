"""What verbs take on the command line, and how texts become values."""

import argparse
import json
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from wfapp.cli.answers import VerbError
from wfcore.protocol.common import Priority
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


def values(options: dict[str, Any], prefix: str = "") -> list[Any]:
    """The arguments that ``--input`` and ``--input-file`` give, in their order.

    Args:
        prefix: stands before the names of the two, such as ``update-``.

    Raises:
        VerbError: one is no JSON, or a file can't be read.
    """
    dest = f"{prefix}input".replace("-", "_")
    flag, file = f"--{prefix}input", f"--{prefix}input-file"
    found = [json_value(text, flag) for text in options.get(dest) or ()]
    for name in options.get(f"{dest}_file") or ():
        try:
            text = Path(name).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise VerbError(f"{file} {name} is no UTF-8: {error}") from error
        except OSError as error:
            raise VerbError(f"{file} {name} can't be read: {error.strerror}") from error
        found.append(json_value(text, f"{file} {name}"))
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


def add_input(parser: argparse.ArgumentParser, prefix: str = "", of: str = "") -> None:
    """Arguments of a workflow, signal, query or update."""
    short = () if prefix else ("-i",)
    parser.add_argument(
        *short,
        f"--{prefix}input",
        action="append",
        default=[],
        metavar="JSON",
        help=f"an argument{of}; repeat it for more",
    )
    parser.add_argument(
        f"--{prefix}input-file",
        action="append",
        default=[],
        metavar="FILE",
        help=f"a file that holds an argument{of} in JSON",
    )


def add_retry(parser: argparse.ArgumentParser, what: str) -> None:
    """Parts of a retry policy; those that are not given are the server's defaults."""
    parser.add_argument(
        "--retry-initial-interval", type=duration, metavar="DURATION", help=f"of {what}"
    )
    parser.add_argument("--retry-backoff-coefficient", type=float, metavar="NUMBER")
    parser.add_argument("--retry-maximum-interval", type=duration, metavar="DURATION")
    parser.add_argument(
        "--retry-maximum-attempts", type=int, metavar="COUNT", help="0: no limit but the timeouts"
    )


#: Fields of a retry policy by their flags.
RETRY = (
    "retry_initial_interval",
    "retry_backoff_coefficient",
    "retry_maximum_interval",
    "retry_maximum_attempts",
)


def retry_fields(options: dict[str, Any]) -> dict[str, Any]:
    """Those fields of a `RetryPolicy` that are given."""
    return {
        name.removeprefix("retry_"): options[name] for name in RETRY if options[name] is not None
    }


def add_priority(parser: argparse.ArgumentParser) -> None:
    """Order among the tasks of a queue."""
    parser.add_argument("--priority-key", type=int, metavar="1-5", help="1 comes first")
    parser.add_argument("--fairness-key", metavar="KEY", help="who shares the queue with others")
    parser.add_argument("--fairness-weight", type=float, metavar="NUMBER", help="of that key")


def priority(options: dict[str, Any]) -> Priority | None:
    """The priority that is given, if any is."""
    names = ("priority_key", "fairness_key", "fairness_weight")
    given = {name: options[name] for name in names if options[name] is not None}
    return Priority(**given) if given else None


def add_reason(parser: argparse.ArgumentParser) -> None:
    """Why: kept in the audit log."""
    parser.add_argument("--reason", default="", help="why; kept in the audit log")
