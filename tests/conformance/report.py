"""Writes docs/conformance.md from the verdicts of the scenario runs.

python -m tests.conformance.report DIR
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.conformance import scope
from tests.conformance.run_random import MODEL_ERRS, UNDETERMINED

PAGE = Path(__file__).resolve().parents[2] / "docs" / "conformance.md"
MODES = {"memory": "in memory", "postgres": "PostgreSQL, Redis and a Celery worker"}

HEAD = """# Conformance

Made by `make conformance`. The scenarios of `tests/conformance/recorded` were run on Temporal
server 1.32.0 with temporalio 1.35.0. Here the same workflows, activities and drivers run on this
engine, and its histories are held against the server's by `compare.py --ignore-sticky`.

- *equal*: types, order, attributes, values and references of all events are the same;
- *different*: the reason stands beside it;
- *later*: it needs a feature that does not exist yet.

"""

RANDOM = """
## Random programs

Programs of `tests/conformance/random_programs`, made from seeds, each of one workflow, its children
and activities, with signals, updates, queries and cancel requests at chosen moments; size is the
number of their steps. Each is judged by a model that knows how it must end, by the real server's
histories of the same program (`diff.py`), and by Temporal's own Replayer, which reads ours.
"""
RANDOM_MODES = {"memory": "in memory", "celery": "PostgreSQL, Redis, two Celery worker processes"}


def state(name: str, verdicts: dict[str, Any]) -> str:
    """One cell of the table."""
    found = verdicts.get(name)
    if found is None:
        return "not run"
    return "different" if found["findings"] else "equal"


def page(verdicts: dict[str, dict[str, Any]], chance: str) -> str:
    """The whole document; `chance` is what it says of random programs."""
    names = sorted(
        {(found["group"], name) for run in verdicts.values() for name, found in run.items()}
    )
    lines = [HEAD, "## In short\n", "| ports | equal | different |", "| --- | --- | --- |"]
    for mode, run in verdicts.items():
        differ = sum(bool(found["findings"]) for found in run.values())
        lines.append(f"| {MODES[mode]} | {len(run) - differ} | {differ} |")
    lines.append(
        f"\nLater: {len(scope.LATER_REASON)} scenarios of the groups {', '.join(scope.GROUPS)}.\n"
    )
    lines.append("## Different, with reasons\n")
    lines += [f"- `{name}`: {reason}." for name, reason in scope.DIFFERENT.items()]
    lines += [
        f"- `{name}` ({MODES[mode]}): {reason}."
        for mode, reasons in scope.DIFFERENT_ON.items()
        for name, reason in reasons.items()
    ]
    lines += [f"- `{name}` (at times): {reason}." for name, (_, reason) in scope.RACES.items()]
    lines += ["\n## Later\n", "| needs | scenarios |", "| --- | --- |"]
    lines += [f"| {reason} | {', '.join(names_)} |" for reason, names_ in scope.LATER.items()]
    lines.append(chance.rstrip("\n"))
    lines += [
        "\n## Scenario by scenario\n",
        "| group | scenario | " + " | ".join(MODES[m] for m in verdicts) + " |",
    ]
    lines.append("| --- | --- |" + " --- |" * len(verdicts))
    for group, name in names:
        cells = " | ".join(state(name, run) for run in verdicts.values())
        lines.append(f"| {group} | {name} | {cells} |")
    return "\n".join(lines) + "\n"


def random_rows(verdicts: list[dict[str, Any]]) -> list[str]:
    """A line of the table for each set of ports and size, over all ranges of seeds."""
    heads = (
        "ports",
        "seeds",
        "size",
        "programs",
        "as the model says",
        "run again",
        "histories",
        "events",
        "differ from the server's",
        "refused by the Replayer",
    )
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict["ports"], verdict["size"]), []).append(verdict)
    order = list(RANDOM_MODES)
    for (ports, size), runs in sorted(
        groups.items(), key=lambda item: (order.index(item[0][0]), item[0][1])
    ):
        runs.sort(key=lambda run: int(run["seeds"].split("-")[0]))

        def total(name: str, runs: list[dict[str, Any]] = runs) -> int:
            return sum(len(x) if isinstance(x := run[name], list | dict) else x for run in runs)

        compared = all("differ" in run for run in runs)
        cells = [
            RANDOM_MODES[ports],
            ", ".join(run["seeds"] for run in runs),
            size,
            total("programs"),
            total("programs") - total("wrong"),
            total("repeated"),
            f"{total('histories'):,}",
            f"{total('events'):,}",
            total("differ") if compared else "not recorded",
            total("refused"),
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def random_section(verdicts: list[dict[str, Any]]) -> str:
    """What became of the random programs, and which are left out."""
    lines = [RANDOM, *random_rows(verdicts), "\nLeft out:\n"]
    for size in sorted({verdict["size"] for verdict in verdicts}):
        of_size = [verdict for verdict in verdicts if verdict["size"] == size]
        lines += [
            f"- {seed} of size {size}: {reason}."
            for (other, seed), reason in UNDETERMINED.items()
            if other == size and any(seed in v["undetermined"] for v in of_size)
        ]
    lines += [
        f"\nProgram {seed} of size {size} is held against the server alone: {reason}."
        for (size, seed), reason in MODEL_ERRS.items()
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Command line."""
    out = Path(sys.argv[1])
    verdicts = {
        mode: json.loads((out / mode / "verdicts.json").read_text())
        for mode in MODES
        if (out / mode / "verdicts.json").exists()
    }
    found = sorted((out / "random").glob("*/verdict.json"))
    chance = [json.loads(path.read_text()) for path in found]
    PAGE.write_text(page(verdicts, random_section(chance) if chance else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
