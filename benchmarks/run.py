"""Runs the workloads on the engine and on plain Celery, one after the other, and prints both.

Both have the same servers (PostgreSQL waits for the disk at each commit), the same two worker
processes of two slots and the same client machine.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import django

from benchmarks.measuring import Bench, as_json
from benchmarks.table import table
from benchmarks.workloads import FULL, QUICK, WORKLOADS, run
from tools.services import Postgres, Redis, Services, services
from tools.stack import BEAT_READY, WORKER_READY, Stack

SETTINGS = "benchmarks.settings"
WORKERS = 2
SLOTS = 2
SIZES = {"full": FULL, "quick": QUICK}


def parse(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="The engine beside plain Celery."
    )
    parser.add_argument("--sizes", choices=list(SIZES), default="full")
    parser.add_argument("--only", action="append", choices=list(WORKLOADS), default=[])
    parser.add_argument("--systems", choices=["engine", "celery", "both"], default="both")
    parser.add_argument("--json", type=Path, help="write all figures here")
    return parser.parse_args(given)


def measure_engine(running: Services, arguments: argparse.Namespace, scratch: Path) -> Bench:
    environment = {**running.environment(), "DJANGO_SETTINGS_MODULE": SETTINGS}
    os.environ.update(environment)
    django.setup()
    # Models load only now: Django is set up for this run's servers.
    from benchmarks.engine import EnginePeer  # noqa: PLC0415

    with Stack(scratch, environment) as stack:
        stack.manage("migrate", "--verbosity=0")
        workers = [stack.worker(f"worker-{place}", slots=SLOTS) for place in range(WORKERS)]
        beat = stack.beat()
        for worker in workers:
            worker.wait_for(WORKER_READY)
        beat.wait_for(BEAT_READY)
        groups = {"workers": [worker.pid for worker in workers], "beat": [beat.pid]}
        bench = Bench("engine", groups | server_pids(running), running.database_url)
        run(bench, EnginePeer(), SIZES[arguments.sizes], arguments.only)
    return bench


def measure_celery(running: Services, arguments: argparse.Namespace, scratch: Path) -> Bench:
    # A Redis database of its own.
    url = f"{running.redis_url.removesuffix('/0')}/1"
    os.environ["BENCHMARK_REDIS_URL"] = url
    from benchmarks.plain_celery import CeleryPeer  # noqa: PLC0415

    with Stack(scratch, {"BENCHMARK_REDIS_URL": url}) as stack:
        workers = [
            stack.start(
                f"plain-{place}",
                *("celery", "-A", "benchmarks.plain_celery", "worker", "--pool=prefork"),
                *(f"--concurrency={SLOTS}", f"--hostname=plain-{place}@localhost"),
                "--loglevel=WARNING",
            )
            for place in range(WORKERS)
        ]
        wait_for_plain_workers()
        groups = {"workers": [worker.pid for worker in workers]}
        bench = Bench("celery", groups | server_pids(running))
        run(bench, CeleryPeer(), SIZES[arguments.sizes], arguments.only)
    return bench


def server_pids(running: Services) -> dict[str, list[int]]:
    """The servers' processes; one that was given is not ours to look into."""
    files = {}
    if isinstance(running.postgres, Postgres):
        files["postgres"] = running.postgres.data / "postmaster.pid"
    if isinstance(running.redis, Redis):
        files["redis"] = running.redis.directory / "pid"
    return {name: [int(file.read_text().split()[0])] for name, file in files.items()}


def wait_for_plain_workers() -> None:
    from benchmarks.plain_celery import app  # noqa: PLC0415

    end = time.monotonic() + 60
    while len(app.control.ping(timeout=0.5) or []) < WORKERS:
        if time.monotonic() > end:
            raise TimeoutError("the plain workers don't answer")


def main(given: Sequence[str] | None = None) -> int:
    arguments = parse(given)
    measures = {"engine": measure_engine, "celery": measure_celery}
    wanted = list(measures) if arguments.systems == "both" else [arguments.systems]
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as scratch, services() as running:
        about: dict[str, Any] = {
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "postgres": running.postgres.version,
            "redis": running.redis.version,
            "sizes": arguments.sizes,
        }
        benches = [measures[system](running, arguments, Path(scratch)) for system in wanted]
    print(table(benches))
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    if arguments.json:
        figures = {bench.system: as_json(bench) for bench in benches}
        arguments.json.write_text(json.dumps({"about": about, **figures}, indent=1) + "\n")
    failed = [taken for bench in benches for taken in bench.results.values() if taken.error]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
