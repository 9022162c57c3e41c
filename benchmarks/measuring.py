"""How each figure is taken: wall time, CPU of every process group, commits and log of PostgreSQL.

On a shared machine compare CPU per unit first: it moves least with the load of others, which is
noted beside each figure.
"""

import contextlib
import math
import os
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psutil
import psycopg

SAMPLE_SECONDS = 0.5
#: a backend of PostgreSQL reports its counters at most once a second
COUNTERS_SETTLE_SECONDS = 1.2


def percentile(values: Sequence[float], share: float) -> float:
    """By linear interpolation; `share` in 0..100."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share / 100
    low, high = math.floor(place), math.ceil(place)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread_ms(seconds: Sequence[float]) -> dict[str, float]:
    """Percentiles of some durations, in milliseconds."""
    values = [1000 * second for second in seconds]
    named = {f"p{share}_ms": percentile(values, share) for share in (50, 95, 99)}
    return {**named, "max_ms": max(values), "mean_ms": statistics.fmean(values)}


@dataclass
class Measurement:
    """The figures of one workload and what it cost."""

    figures: dict[str, float] = field(default_factory=dict)
    units: int = 0
    wall_seconds: float = 0.0
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    peak_mb: dict[str, float] = field(default_factory=dict)
    postgres: dict[str, int] = field(default_factory=dict)
    #: cores that other processes of the machine used meanwhile
    foreign_cores: float = 0.0
    error: str = ""

    def finish(self) -> None:
        """Derive what is told per unit."""
        if not self.units or self.error:
            return
        self.figures["cpu_ms_per_unit"] = 1000 * sum(self.cpu_seconds.values()) / self.units
        for name, count in self.postgres.items():
            self.figures[f"{name}_per_unit"] = count / self.units


class Bench:
    """Takes the measurements of one system."""

    def __init__(
        self, system: str, groups: Mapping[str, Sequence[int]], database: str = ""
    ) -> None:
        self.system = system
        self.results: dict[str, Measurement] = {}
        self._groups = dict(groups)
        self._database = database

    @contextlib.contextmanager
    def work(self, name: str, units: int = 0) -> Iterator[Measurement]:
        """Measure the block. An error of the block is a result: noted, not raised."""
        taken = Measurement(units=units)
        counters = self._counters()
        cpu = {group: _cpu_seconds(pids) for group, pids in self._groups.items()}
        own, busy, begin = _own_cpu_seconds(), _machine_busy_seconds(), time.perf_counter()
        with _peak_memory(self._groups, taken.peak_mb):
            try:
                yield taken
            except Exception as error:  # noqa: BLE001 - a failed workload is a result
                taken.error = f"{type(error).__name__}: {error}"[:500]
        taken.wall_seconds = time.perf_counter() - begin
        busy, own = _machine_busy_seconds() - busy, _own_cpu_seconds() - own
        taken.cpu_seconds = {
            group: _cpu_seconds(pids) - cpu[group] for group, pids in self._groups.items()
        }
        taken.cpu_seconds["client"] = own
        spent = sum(taken.cpu_seconds.values())
        taken.foreign_cores = max(0.0, busy - spent) / taken.wall_seconds
        if counters:
            time.sleep(COUNTERS_SETTLE_SECONDS)
            taken.postgres = {key: count - counters[key] for key, count in self._counters().items()}
        taken.finish()
        self.results[name] = taken
        self._tell(name, taken)

    @contextlib.contextmanager
    def check(self, name: str) -> Iterator[None]:
        """Look at a workload's results outside of its time; a wrong one is its error."""
        taken = self.results[name]
        try:
            yield
        except Exception as error:  # noqa: BLE001 - a failed workload is a result
            taken.error = taken.error or f"{type(error).__name__}: {error}"[:500]
            self._tell(name, taken)

    def _counters(self) -> dict[str, int]:
        if not self._database:
            return {}
        with psycopg.connect(self._database, autocommit=True) as connection:
            row = connection.execute(
                "SELECT (SELECT sum(xact_commit) FROM pg_stat_database)::bigint,"
                " wal_bytes::bigint FROM pg_stat_wal"
            ).fetchone()
        commits, wal_bytes = row or (0, 0)
        return {"transactions": commits, "wal_bytes": wal_bytes}

    def _tell(self, name: str, taken: Measurement) -> None:
        figures = ", ".join(f"{key} {value:,.2f}" for key, value in taken.figures.items())
        print(
            f"[{self.system}] {name}: {taken.error or figures}"
            f" ({taken.wall_seconds:.1f} s, others used {taken.foreign_cores:.2f} cores)",
            file=sys.stderr,
            flush=True,
        )


def as_json(bench: Bench) -> dict[str, Any]:
    return {name: vars(taken) for name, taken in bench.results.items()}


def _tree(pids: Sequence[int]) -> Iterator[psutil.Process]:
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            yield process
            yield from process.children(recursive=True)


def _cpu_seconds(pids: Sequence[int]) -> float:
    """Of these processes and their children, ended ones included."""
    total = 0.0
    for process in _tree(pids):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def _own_cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system


def _machine_busy_seconds() -> float:
    times = psutil.cpu_times()
    parts = ("user", "nice", "system", "irq", "softirq", "steal")
    return sum(float(getattr(times, part, 0.0)) for part in parts)


def _resident_mb(pids: Sequence[int]) -> float:
    """Private memory of each process, and once the largest shared part: forks share theirs."""
    private = shared = 0
    for process in _tree(pids):
        with contextlib.suppress(psutil.Error):
            memory = process.memory_info()
            common = getattr(memory, "shared", 0)
            private += memory.rss - common
            shared = max(shared, common)
    return (private + shared) / 1e6


@contextlib.contextmanager
def _peak_memory(groups: Mapping[str, Sequence[int]], peak: dict[str, float]) -> Iterator[None]:
    stop = threading.Event()

    def sample() -> None:
        while not stop.is_set():
            for group, pids in groups.items():
                peak[group] = max(peak.get(group, 0.0), _resident_mb(pids))
            stop.wait(SAMPLE_SECONDS)

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
