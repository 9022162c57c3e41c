"""Writes docs/conformance.md from the verdicts of the scenario runs.

python -m tests.conformance.report DIR
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.conformance import scope

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


def state(name: str, verdicts: dict[str, Any]) -> str:
    """One cell of the table."""
    found = verdicts.get(name)
    if found is None:
        return "not run"
    return "different" if found["findings"] else "equal"


def page(verdicts: dict[str, dict[str, Any]]) -> str:
    """The whole document."""
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
    lines += ["\n## Later\n", "| needs | scenarios |", "| --- | --- |"]
    lines += [f"| {reason} | {', '.join(names_)} |" for reason, names_ in scope.LATER.items()]
    lines += [
        "\n## Scenario by scenario\n",
        "| group | scenario | " + " | ".join(MODES[m] for m in verdicts) + " |",
    ]
    lines.append("| --- | --- |" + " --- |" * len(verdicts))
    for group, name in names:
        cells = " | ".join(state(name, run) for run in verdicts.values())
        lines.append(f"| {group} | {name} | {cells} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Command line."""
    out = Path(sys.argv[1])
    verdicts = {
        mode: json.loads((out / mode / "verdicts.json").read_text())
        for mode in MODES
        if (out / mode / "verdicts.json").exists()
    }
    PAGE.write_text(page(verdicts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
