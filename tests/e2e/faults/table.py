"""The figures of runs as a Markdown table, one line a run."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.e2e.faults.plan import Fault

COLUMNS = (
    "seed",
    "orders",
    "slots killed",
    "workers killed",
    "Redis emptied",
    "beat killed",
    "PostgreSQL crashed",
    "seconds",
    "after the last fault",
    "activities",
    "executions",
    "failures raised",
    "attempts lost",
    "cut short",
    "histories replayed",
    "wrong",
)


def table(outcomes: Sequence[Mapping[str, Any]]) -> str:
    lines = [COLUMNS, tuple("---:" for _ in COLUMNS), *(_line(each) for each in outcomes)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _line(outcome: Mapping[str, Any]) -> tuple[str, ...]:
    damage, evidence = outcome["damage"], outcome["evidence"]
    kills: Mapping[str, int] = damage["kills"]
    others: Mapping[str, int] = damage["others"]
    return (
        str(outcome["seed"]),
        str(outcome["orders"]),
        str(sum(count for kind, count in kills.items() if kind.startswith("KILL_SLOT"))),
        str(sum(count for kind, count in kills.items() if kind.startswith("KILL_WORKER"))),
        str(others.get(Fault.EMPTY_REDIS, 0)),
        str(others.get(Fault.KILL_BEAT, 0)),
        str(others.get(Fault.CRASH_POSTGRES, 0)),
        f"{outcome['seconds']:.0f}",
        f"{outcome['recovery_seconds']:.0f}",
        str(evidence["activities"]),
        str(evidence["executions"]),
        str(evidence["failures_raised"]),
        str(evidence["attempts_lost"]),
        str(evidence["cut_short"]),
        str(evidence["replayed"]),
        str(len(outcome["findings"])),
    )
