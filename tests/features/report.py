"""A plugin of pytest that writes docs/features.md: what came of each row, in each mode.

python -m pytest tests/features -p tests.features.report --features-report docs/features.md
"""

from collections import defaultdict
from pathlib import Path

import pytest

from tests.features.rows import BY_NUMBER, GROUPS, ROWS, Row

MODES = {"memory": "in memory", "postgres": "PostgreSQL, Redis"}

HEAD = """# Features

Made by `make test-features`. One row for each feature of Temporal's workflows and the test that
shows it, on the ports in memory and on Django's store with Celery's messages. The time is
simulated, the histories are those that are exported.

- *passes*: the history, or the call's answer, is what the row says;
- *differs*: it does not quite, for the reason given, and the test holds it to that;
- *later*: it needs what does not exist yet.

WFT is a workflow task, H the run's history.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--features-report", type=Path, help="where to write the table of features")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--features-report")
    whole = config.getoption("--stack") != "embedded"  # the table tells of PostgreSQL
    if path is not None and whole and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FeaturesReport(path), "features-report")


class FeaturesReport:
    """Collects outcomes by row and mode, and writes the page at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._outcomes: dict[tuple[str, str], set[str]] = defaultdict(set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A row passes in a mode when all its tests do."""
        properties = list(report.user_properties)
        modes = [str(value) for name, value in properties if name == "mode"] or list(MODES)
        if report.when == "call" or report.outcome != "passed":
            for name, number in properties:
                if name == "feature":
                    for mode in modes:
                        self._outcomes[str(number), mode].add(report.outcome)

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(self.page())

    def state(self, row: Row, mode: str) -> str:
        """One cell of the table."""
        if row.later:
            return "later"
        found = self._outcomes.get((row.number, mode), set())
        if not found:
            return "not run"
        if "failed" in found:
            return "fails"
        if "skipped" in found:
            return "not run"
        return "differs" if row.differs else "passes"

    def page(self) -> str:
        """The whole document."""
        lines = [HEAD, "## In short\n", "| ports | passes | differs | later | not run, fails |"]
        lines.append("| --- | --- | --- | --- | --- |")
        for mode, name in MODES.items():
            states = [self.state(row, mode) for row in ROWS]
            counts = [states.count(each) for each in ("passes", "differs", "later")]
            rest = len(states) - sum(counts)
            lines.append(f"| {name} | {' | '.join(map(str, counts))} | {rest} |")
        for group, title in GROUPS.items():
            lines += [f"\n## {group}. {title}\n", "| no | feature | shown by | "]
            lines[-1] += " | ".join(MODES.values()) + " | reason |"
            lines.append("| --- | --- | --- |" + " --- |" * (len(MODES) + 1))
            lines += [self._line(row) for row in ROWS if row.group == group]
        return "\n".join(lines) + "\n"

    def _line(self, row: Row) -> str:
        cells = [row.number, row.feature, row.observed]
        cells += [self.state(row, mode) for mode in MODES]
        cells.append(row.later or row.differs)
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def unknown(numbers: set[str]) -> set[str]:
    """Those that are no rows."""
    return numbers - BY_NUMBER.keys()
