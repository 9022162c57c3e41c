"""The figures side by side, and what the engine reaches of what Celery alone does."""

from collections.abc import Iterator, Sequence

from benchmarks.measuring import Bench

#: label, workload (`*` stands for its sizes), figure, decimals
ROWS = (
    ("W1 hello, closed batch: workflows/s", "W1.batch", "workflows_per_s", 0),
    ("W1 hello, one at a time: p50 ms", "W1.one", "p50_ms", 1),
    ("W1 hello, one at a time: p95 ms", "W1.one", "p95_ms", 1),
    ("W1 hello, one at a time: p99 ms", "W1.one", "p99_ms", 1),
    ("W2 side by side, {} steps each: steps/s", "W2.many.*", "steps_per_s", 0),
    ("W2 one workflow of {} steps: ms/step", "W2.one.*", "ms_per_step", 2),
    ("W3 fan-out to {}: steps/s", "W3.*", "steps_per_s", 0),
    ("W3 fan-out to {}: end to end s", "W3.*", "end_to_end_s", 2),
    ("W4 timers: lateness p50 ms", "W4", "p50_ms", 0),
    ("W4 timers: lateness p99 ms", "W4", "p99_ms", 0),
    ("W4 timers: lateness max ms", "W4", "max_ms", 0),
    ("W5 signals: accepted/s", "W5", "signals_per_s", 0),
    ("W5 signals: end to end s", "W5", "end_to_end_s", 2),
    ("   CPU ms per hello, all processes", "W1.batch", "cpu_ms_per_unit", 2),
    ("   CPU ms per step, {} each side by side", "W2.many.*", "cpu_ms_per_unit", 2),
    ("   CPU ms per fan-out step, {}", "W3.*", "cpu_ms_per_unit", 2),
    ("   PostgreSQL transactions per hello (reads too)", "W1.batch", "transactions_per_unit", 1),
    ("   PostgreSQL transactions per step, {} each", "W2.many.*", "transactions_per_unit", 1),
    ("   PostgreSQL transactions per signal", "W5", "transactions_per_unit", 1),
    ("   log bytes of PostgreSQL per step, {} each", "W2.many.*", "wal_bytes_per_unit", 0),
)


def table(benches: Sequence[Bench]) -> str:
    """Markdown; the last column is the first system's figure divided by the second's."""
    head = ["workload", *(bench.system for bench in benches)]
    if len(benches) == 2:
        head.append(f"{benches[0].system} / {benches[1].system}")
    rows = [head, ["---", *("---:" for _ in head[1:])], *_rows(benches)]
    errors = [
        f"FAILED {bench.system} {name}: {taken.error}"
        for bench in benches
        for name, taken in bench.results.items()
        if taken.error
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
    lines = [
        "| " + " | ".join(_cell(cell, widths[n], n) for n, cell in enumerate(row)) + " |"
        for row in rows
    ]
    return "\n".join([*lines, *errors])


def _rows(benches: Sequence[Bench]) -> Iterator[list[str]]:
    for label, workload, figure, decimals in ROWS:
        for name, size in _matching(benches, workload):
            values = [_value(bench, name, figure) for bench in benches]
            if all(value is None for value in values):
                continue
            cells = ["" if value is None else f"{value:,.{decimals}f}" for value in values]
            if len(values) == 2:
                first, second = values
                cells.append(f"{first / second:.2f}" if first and second else "")
            yield [label.format(size), *cells]


def _matching(benches: Sequence[Bench], workload: str) -> Iterator[tuple[str, str]]:
    """Names of the workload with its sizes, in the order in which they ran."""
    if not workload.endswith("*"):
        yield workload, ""
        return
    prefix = workload.removesuffix("*")
    names = dict.fromkeys(name for bench in benches for name in bench.results)
    for name in names:
        if name.startswith(prefix):
            yield name, name.removeprefix(prefix)


def _value(bench: Bench, name: str, figure: str) -> float | None:
    taken = bench.results.get(name)
    return None if taken is None or taken.error else taken.figures.get(figure)


def _cell(text: str, width: int, place: int) -> str:
    return text.rjust(width) if place else text.ljust(width)
