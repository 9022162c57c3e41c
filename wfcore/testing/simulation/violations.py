"""What was found wrong in a simulated world."""

from collections.abc import Callable
from dataclasses import dataclass

from wfcore.service.ports import RunKey

#: Reports a broken rule, and how it was broken.
Fail = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that was broken, and how."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


class Report:
    """All violations, in the order in which they were found."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []

    def fail(self, rule: str, text: str) -> None:
        """A rule is broken."""
        self.violations.append(Violation(rule, text))

    def of(self, key: RunKey) -> Fail:
        """The same, with the name of a run in front."""
        name = f"run {key.run_id[-4:]} of {key.workflow_id}"
        return lambda rule, text: self.fail(rule, f"{name}: {text}")
