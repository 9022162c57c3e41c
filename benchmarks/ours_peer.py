"""The engine as one more system of the peers' harness; `benchmarks.peers` has it run.

The harness gives PostgreSQL and Redis; here are two Celery worker processes of two slots and beat,
with the default settings, and the sync client in threads, as views use it.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# in place of this folder, whose modules have names of the harness's
sys.path.remove(str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import django
from common import Bench, peer_args  # type: ignore[import-not-found]  # of the harness
from workloads import Peer, run  # type: ignore[import-not-found]

from tools.stack import BEAT_READY, WORKER_READY, Stack

WORKERS = 2
SLOTS = 2
SLEEP_SECONDS = 300.0
VERSIONS = ("django", "celery", "redis", "psycopg")


def ours(threads: ThreadPoolExecutor) -> Any:
    """The harness's peer; models load only when Django is set up."""
    from benchmarks.engine import EnginePeer, sleeping_runs  # noqa: PLC0415

    engine = EnginePeer()

    async def call(do: Callable[..., Any], *given: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(threads, do, *given)

    class Ours(Peer):  # type: ignore[misc]
        workloads = (*Peer.workloads, "W3remote")

        async def start(self, name: str, *given: Any) -> Any:
            # any worker takes any activity
            return await call(engine.start, "fan" if name == "fan_remote" else name, *given)

        async def result(self, handle: Any) -> Any:
            return await call(engine.result, handle)

        async def execute(self, name: str, *given: Any) -> Any:
            return await self.result(await self.start(name, *given))

        async def run_batch(self, calls: Sequence[tuple[Any, ...]]) -> tuple[list[Any], float]:
            began = time.perf_counter()
            handles = await self.start_many(calls)
            took = time.perf_counter() - began
            await call(engine.wait_until_closed, [handle.id for handle in handles])
            return handles, took

        async def signal(self, handle: Any, value: int) -> None:
            await call(engine.signal, handle, value)

        async def wait_sleeping(self, n: int) -> None:
            end = time.monotonic() + SLEEP_SECONDS
            while (asleep := await call(sleeping_runs)) < n:
                if time.monotonic() > end:
                    raise TimeoutError(f"{asleep} of {n} asleep after {SLEEP_SECONDS:.0f} s")
                await asyncio.sleep(0.1)

    return Ours()


def bench(measured: Bench, config: dict[str, Any]) -> None:
    """The harness's entry: all workloads against a stack of our own."""
    environment = {
        "DATABASE_URL": config["pg"],
        "REDIS_URL": config["redis"],
        "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
    }
    os.environ.update(environment)
    django.setup()
    measured.add_versions(*VERSIONS)
    measured.versions.update(postgres=config["pg_version"], redis=config["redis_version"])
    measured.config = {"mode": f"{WORKERS} prefork workers of {SLOTS} slots, beat, client process"}
    measured.watch_pg = True
    directory = Path(config["scratch"]) / "stack"
    directory.mkdir()
    with Stack(directory, environment) as stack, ThreadPoolExecutor(8) as threads:
        stack.manage("migrate", "--verbosity=0")
        workers = [stack.worker(f"worker-{place}", slots=SLOTS) for place in range(WORKERS)]
        beat = stack.beat()
        for worker in workers:
            worker.wait_for(WORKER_READY)
        beat.wait_for(BEAT_READY)
        measured.watch = {
            "workers": [worker.pid for worker in workers],
            "beat": [beat.pid],
            "postgres": [config["pg_pid"]],
            "redis": [config["redis_pid"]],
        }
        asyncio.run(run(measured, ours(threads), config["sizes"]))


if __name__ == "__main__":
    peer_args("ours", bench=bench)
