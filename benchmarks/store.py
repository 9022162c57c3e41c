"""What each kind of transition costs in the database: statements, and microseconds with the disk.

    python -m benchmarks.store [--runs 300] [--sqlite]

One connection, one transition after another, so that times are latencies and not throughput. The
state machine's part is in them.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmarks.measuring import percentile
from tools.services import services

WRITES = ("INSERT", "UPDATE", "DELETE", "WITH")


@dataclass
class Kind:
    """One kind of transition."""

    seconds: list[float] = field(default_factory=list)
    reads: int = 0
    writes: int = 0


class Bench:
    """Takes the time of calls by kind, and the statements of the first of each."""

    def __init__(self) -> None:
        self.kinds: dict[str, Kind] = {}

    def __call__(self, name: str, call: Callable[[], Any]) -> Any:
        if name not in self.kinds:
            kind = self.kinds[name] = Kind()
            with CaptureQueriesContext(connection) as captured:
                answer = call()
            words = [query["sql"].split(" ", 1)[0] for query in captured.captured_queries]
            kind.reads = words.count("SELECT")
            kind.writes = sum(word in WRITES for word in words)
            return answer
        first = time.perf_counter()
        answer = call()
        self.kinds[name].seconds.append(time.perf_counter() - first)
        return answer

    def table(self) -> str:
        lines = ["| transition | writes | reads | p50 µs | p99 µs |", "| --- " * 5 + "|"]
        for name, kind in self.kinds.items():
            times = [f"{percentile(kind.seconds, share) * 1e6:,.0f}" for share in (50, 99)]
            lines.append(f"| {name} | {kind.writes} | {kind.reads} | {' | '.join(times)} |")
        return "\n".join(lines)


def measure(runs: int) -> Bench:
    """Lives of runs: start, timer, activities, signals, close."""
    # Models can be imported once Django is set up.
    from wfapp.store import DjangoStore  # noqa: PLC0415
    from wfcore.protocol import commands  # noqa: PLC0415
    from wfcore.testing.clocks import SequentialIds  # noqa: PLC0415
    from wfcore.testing.port_builders import Builder, signal  # noqa: PLC0415

    store = DjangoStore()
    build = Builder(store, SequentialIds())
    bench = Bench()
    timer = commands.StartTimer(timer_id="t", start_to_fire_timeout=timedelta(hours=1))
    close = commands.CompleteWorkflowExecution()
    for _ in range(runs):
        key = bench("start", build.start)
        token = bench("claim a workflow task", lambda key=key: build.claim(key))
        bench("answer: a timer", lambda key=key, token=token: build.answer(key, token, timer))
        bench("signal, appended", lambda key=key: build.signal(key))
        token = build.claim(key)
        for number in range(3):
            item = signal(f"s{number}", store.now())
            bench(
                "signal, into the inbox",
                lambda key=key, item=item, number=number: store.put_inbox(
                    key, item, request_id=f"r{number}"
                ),
            )
        asked = [build.activity(f"a{number}") for number in range(3)]
        bench(
            "answer: 3 activities, 3 signals drained",
            lambda key=key, token=token, asked=asked: build.answer(key, token, *asked),
        )
        row = store.read_activities(key)[0]
        started = build.claimed(row)
        bench(
            "claim an activity",
            lambda row=row, started=started: store.replace_activity(row, started),
        )
        token = build.claim(key)
        item = build.completion(started)
        bench(
            "activity completes, into the inbox",
            lambda key=key, item=item, started=started: store.put_inbox(
                key, item, replaces=started
            ),
        )
        build.answer(key, token)
        token = build.claim(key)
        bench("answer: close", lambda key=key, token=token: build.answer(key, token, close))
        bench("read the head", lambda key=key: store.head(key.namespace, key.workflow_id))
        bench("read the history", lambda key=key: store.read_events(key))
    return bench


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--sqlite", action="store_true")
    given = parser.parse_args()
    with ExitStack() as stack:
        if given.sqlite:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            url = f"sqlite:///{folder}/store.sqlite3"
        else:
            url = stack.enter_context(services(durable=True)).database_url
        os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "settings.local"}
        settings.DEBUG = False  # else each statement is kept
        django.setup()
        call_command("migrate", "wfapp", verbosity=0, skip_checks=True)
        print(measure(given.runs).table())
        connection.close()


if __name__ == "__main__":
    main()
