"""Runs as big as Temporal's limits let them be, each alone, to their end.

    python -m benchmarks.big_runs                          # all, about half an hour
    python -m benchmarks.big_runs --only history --scale 0.1

history     one run of 50,000 events: rounds of ten activities
activities  one run with 2,000 activities pending at once
children    one run with 2,000 children open at once

Told: how long it took, the workers' most memory, the database's time and log for each commit, and
the same for the first and the last fifth of the events: what grows with a run shows in their ratio.
The limits are Temporal's defaults (51,200 events, 2,000 pending of each kind), so that no setting
is changed; bigger runs need `WORKFLOWS["LIMITS"]` (`docs/reference/settings.md`).
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import django
import psycopg

from benchmarks.measuring import Bench, Measurement
from tools.services import services
from tools.stack import WORKER_READY, Stack

SETTINGS = "benchmarks.settings"
WORKERS = 2
SLOTS = 2
SAMPLE_SECONDS = 1.0
#: children wait so long that the last has begun before the first ends
CHILD_WAIT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Size:
    """One run: its workflow, what is counted, how many at full size, and what must come out."""

    workflow: str
    count: int
    arguments: tuple[Any, ...] = ()


SIZES = {
    "history": Size(workflow="big_history", count=50_000),
    "activities": Size(workflow="many_activities", count=2_000),
    "children": Size(workflow="many_children", count=2_000, arguments=(CHILD_WAIT_SECONDS,)),
}


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The database's counters at one moment of a run."""

    at: float
    events: int
    commits: int
    active_ms: float
    wal_bytes: int


class Sampler:
    """Looks at the counters each second while a run is under way."""

    def __init__(self, database: str) -> None:
        self.samples: list[Sample] = []
        self._database = database
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        with psycopg.connect(self._database, autocommit=True) as connection:
            while not self._stop.wait(SAMPLE_SECONDS):
                row = connection.execute(
                    "SELECT (SELECT count(*) FROM wfapp_historyevent), xact_commit, active_time,"
                    " (SELECT wal_bytes FROM pg_stat_wal)::bigint"
                    " FROM pg_stat_database WHERE datname = current_database()"
                ).fetchone()
                events, commits, active_ms, wal_bytes = row or (0, 0, 0.0, 0)
                self.samples.append(
                    Sample(
                        at=time.monotonic(),
                        events=events,
                        commits=commits,
                        active_ms=active_ms,
                        wal_bytes=wal_bytes,
                    )
                )


def between(first: Sample, last: Sample) -> dict[str, float]:
    """What the time between two samples cost."""
    events = max(last.events - first.events, 1)
    commits = max(last.commits - first.commits, 1)
    return {
        "ms_per_event": 1000 * (last.at - first.at) / events,
        "database_ms_per_commit": (last.active_ms - first.active_ms) / commits,
        "wal_bytes_per_commit": (last.wal_bytes - first.wal_bytes) / commits,
        "wal_bytes_per_event": (last.wal_bytes - first.wal_bytes) / events,
    }


def fifths(samples: Sequence[Sample]) -> tuple[dict[str, float], dict[str, float]]:
    """The costs of the first and of the last fifth of the events."""
    begin, total = samples[0].events, samples[-1].events - samples[0].events

    def at(share: float) -> Sample:
        return next(one for one in samples if one.events >= begin + share * total)

    return between(at(0), at(0.2)), between(at(0.8), at(1))


def measure(bench: Bench, name: str, scale: float, database: str) -> dict[str, Any]:
    # Models load only now: Django is set up for this run's servers.
    from wfapp.client import get_client  # noqa: PLC0415

    size = SIZES[name]
    count = round(size.count * scale)
    with Sampler(database) as sampler, bench.work(name, units=count) as taken:
        handle = get_client().start_workflow(
            size.workflow, args=[count, *size.arguments], id=name, task_queue="default"
        )
        done = handle.result()
        if name != "history" and done != count:
            raise AssertionError(f"{done} of {count} are done")
    events = handle.describe().history_length
    return {"count": count, "events": events, **told(taken, sampler.samples)}


def told(taken: Measurement, samples: Sequence[Sample]) -> dict[str, Any]:
    """The figures of a run."""
    if taken.error:
        return {"error": taken.error}
    first, last = fifths(samples)
    return {
        "seconds": taken.wall_seconds,
        "worker_mb": taken.peak_mb["workers"],
        "worker_cpu_seconds": taken.cpu_seconds["workers"],
        "others_cores": taken.foreign_cores,
        **between(samples[0], samples[-1]),
        "commits": samples[-1].commits - samples[0].commits,
        "first_fifth": first,
        "last_fifth": last,
    }


ROWS = {
    "events": ("events of the run", "{:,.0f}"),
    "seconds": ("seconds", "{:,.0f}"),
    "worker_cpu_seconds": ("CPU seconds of the workers", "{:,.0f}"),
    "worker_mb": ("most memory of the workers, MB", "{:,.0f}"),
    "commits": ("transactions of PostgreSQL", "{:,.0f}"),
    "database_ms_per_commit": ("database's ms per transaction", "{:.2f}"),
    "wal_bytes_per_commit": ("log bytes per transaction", "{:,.0f}"),
}
GROWTH = {
    "ms_per_event": ("ms per event", "{:.2f}"),
    "database_ms_per_commit": ("database's ms per transaction", "{:.2f}"),
    "wal_bytes_per_event": ("log bytes per event", "{:,.0f}"),
}


def table(found: dict[str, dict[str, Any]]) -> str:
    """Markdown."""
    good = {name: figures for name, figures in found.items() if "error" not in figures}
    lines = [
        "| | " + " | ".join(f"{figures['count']:,} {name}" for name, figures in good.items()) + " |"
    ]
    lines.append("| --- |" + " ---: |" * len(good))
    for key, (label, form) in ROWS.items():
        cells = [form.format(figures[key]) for figures in good.values()]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    for key, (label, form) in GROWTH.items():
        cells = [
            f"{form.format(one['first_fifth'][key])} / {form.format(one['last_fifth'][key])}"
            for one in good.values()
        ]
        lines.append(f"| {label}: first / last fifth | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.big_runs")
    parser.add_argument("--only", action="append", choices=list(SIZES), default=[])
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full size")
    parser.add_argument("--json", type=Path, help="write all figures here")
    arguments = parser.parse_args(given)
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as scratch, services() as running:
        environment = {**running.environment(), "DJANGO_SETTINGS_MODULE": SETTINGS}
        os.environ.update(environment)
        django.setup()
        with Stack(Path(scratch), environment) as stack:
            stack.manage("migrate", "--verbosity=0")
            workers = [stack.worker(f"worker-{place}", slots=SLOTS) for place in range(WORKERS)]
            for worker in workers:
                worker.wait_for(WORKER_READY)
            groups = {"workers": [worker.pid for worker in workers]}
            bench = Bench("engine", groups, running.database_url)
            for name in arguments.only or SIZES:
                found[name] = measure(bench, name, arguments.scale, running.database_url)
                print(name, json.dumps(found[name]), file=sys.stderr)
            if any("error" in figures for figures in found.values()):
                print("\n".join(worker.tail() for worker in workers), file=sys.stderr)
    print(table(found))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if any("error" in figures for figures in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
