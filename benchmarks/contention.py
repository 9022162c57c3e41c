"""How arrivals meet the commits of their run: three protocols on one run, many senders, one worker.

    python -m benchmarks.contention [--seconds 8] [--senders 8]

The worker claims the workflow task, thinks, and answers; senders send as fast as they can. While
the task is started an arrival is a row of the inbox, else an event under the run's lock. The
protocols differ in how a sender learns which of the two it is:

optimistic  look; no task started: append under the lock; started: store, commit, look again under
            the lock, which is left by a rollback, since a commit would wait for the disk
committing  the same, but leave the lock by a commit
unlocked    the same, but look again without the lock, and take it only if the row is still there
            and the task is over. Not safe: a sender that looks before a commit that ends the task
            has been told that its fact is recorded, and nobody takes it in
advisory    look and store under a shared transaction-level advisory lock, which commits take
            exclusively
locked      look and store under the run's row lock

Told: what the worker's claims and answers waited for their locks (median, 99 %), the whole answers,
arrivals and tasks per second, and that no arrival was lost. A second part sends one arrival around
each answer, and counts those that stay in the inbox though no task is started.
"""

import argparse
import multiprocessing
import os
import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier, Event
from typing import Any

import django
import psycopg
from django.core.management import call_command
from django.db import connections

from benchmarks.measuring import percentile
from tools.services import services

RUN = (42, uuid.UUID("0195504c-2f1a-7000-8000-000000000001"))
SNAPSHOT = b"s" * 1_100
ATTRIBUTES = b'{"signalName":"go","input":{"payloads":[{"data":"' + b"x" * 150 + b'"}]}}'
COLUMNS = (
    "protocol",
    "claim's wait p50",
    "p99",
    "answer's wait p50",
    "p99",
    "answer p50",
    "p99",
    "arrivals/s",
    "tasks/s",
    "lost",
)
#: How long workflow code runs between the claim and the answer, and between two tasks.
THINKING, IDLE = 0.003, 0.001

LOCK = "SELECT task_started, next_event_id, snapshot FROM wfapp_executionstate "
LOCK += "WHERE shard = %s AND run_id = %s FOR UPDATE"
LOOK = "SELECT task_started FROM wfapp_executionstate WHERE shard = %s AND run_id = %s"
INBOX = "SELECT id, attributes FROM wfapp_inboxitem WHERE shard = %s AND run_id = %s ORDER BY id"
MINE = "SELECT 1 FROM wfapp_inboxitem WHERE id = %s"
PUT = (
    "INSERT INTO wfapp_inboxitem (shard, run_id, arrived_at, event_time, event_type, attributes) "
    "VALUES (%s, %s, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 0, 26, %s)"
)
EVENT = (
    "INSERT INTO wfapp_historyevent (shard, run_id, event_time, event_id, event_type, attributes)"
)
SAVE = (
    "UPDATE wfapp_executionstate SET task_started = %s, next_event_id = %s, snapshot = %s "
    "WHERE shard = %s AND run_id = %s"
)


class Session:
    """One connection and what every protocol does with it."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(
            url, autocommit=True, cursor_factory=psycopg.ClientCursor, prepare_threshold=None
        )

    def run(self, text: str, *params: Any) -> list[Any]:
        cursor = self.connection.execute(text, params)
        return cursor.fetchall() if cursor.description else []

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self.connection.transaction():
            yield

    def started(self) -> bool:
        return bool(self.run(LOOK, *RUN)[0][0])

    def append(self, next_event_id: int, count: int) -> int:
        if count:
            row = "(%s, %s, 0, %s, 26, %s)"
            params = [
                value
                for number in range(count)
                for value in (*RUN, next_event_id + number, ATTRIBUTES)
            ]
            self.run(f"{EVENT} VALUES {', '.join([row] * count)}", *params)
        return next_event_id + count

    def drain(self) -> int:
        """Take the waiting rows out, under the lock; gives how many."""
        found = self.run(INBOX, *RUN)
        if found:
            self.run("DELETE FROM wfapp_inboxitem WHERE id = ANY(%s)", [row[0] for row in found])
        return len(found)

    def deliver_or_put(self) -> None:
        """Under the lock: the arrival is a row while the task is started, else an event."""
        started, next_event_id, _ = self.run(LOCK, *RUN)[0]
        if started:
            self.run(PUT, *RUN, ATTRIBUTES)
        else:
            self.save(False, self.append(next_event_id, self.drain() + 1))

    def deliver(self) -> bool:
        """Under the lock: what waits becomes events, unless a task is started; whether any did."""
        started, next_event_id, _ = self.run(LOCK, *RUN)[0]
        count = 0 if started else self.drain()
        if count:
            self.save(False, self.append(next_event_id, count))
        return count > 0

    def save(self, started: bool, next_event_id: int) -> None:
        self.run(SAVE, started, next_event_id, SNAPSHOT, *RUN)


# --- protocols: how a sender sends, and what a commit locks before the row --------------------


def send_optimistic(session: Session) -> None:
    if not session.started():
        send_locked(session)
        return
    session.run(PUT, *RUN, ATTRIBUTES)
    with session.transaction():
        if not session.deliver():
            raise psycopg.Rollback


def send_committing(session: Session) -> None:
    if not session.started():
        send_locked(session)
        return
    session.run(PUT, *RUN, ATTRIBUTES)
    with session.transaction():
        session.deliver()


def send_unlocked(session: Session) -> None:
    if not session.started():
        send_locked(session)
        return
    item_id = session.run(f"{PUT} RETURNING id", *RUN, ATTRIBUTES)[0][0]
    if not session.started() and session.run(MINE, item_id):
        with session.transaction():
            session.deliver()


def send_advisory(session: Session) -> None:
    with session.transaction():
        session.run("SELECT pg_advisory_xact_lock_shared(%s)", RUN[0])
        if session.started():
            session.run(PUT, *RUN, ATTRIBUTES)
            return
    with session.transaction():
        lock_advisory(session)
        session.deliver_or_put()


def send_locked(session: Session) -> None:
    with session.transaction():
        session.deliver_or_put()


def lock_nothing(session: Session) -> None:
    """The row's own lock is enough."""


def lock_advisory(session: Session) -> None:
    session.run("SELECT pg_advisory_xact_lock(%s)", RUN[0])


PROTOCOLS: dict[str, tuple[Callable[[Session], None], Callable[[Session], None]]] = {
    "optimistic": (send_optimistic, lock_nothing),
    "committing": (send_committing, lock_nothing),
    "unlocked": (send_unlocked, lock_nothing),
    "advisory": (send_advisory, lock_advisory),
    "locked": (send_locked, lock_nothing),
}


# --- processes -------------------------------------------------------------------------------


@dataclass
class Times:
    """What the worker measured, in seconds."""

    claim_waits: list[float] = field(default_factory=list)
    answer_waits: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)


def work(url: str, protocol: str, begin: Barrier, stop: Event, answer: Connection) -> None:
    """Claim, think, answer, until told to stop."""
    session, times = Session(url), Times()
    lock = PROTOCOLS[protocol][1]
    begin.wait()
    while not stop.is_set():
        for starts in (True, False):
            first = time.perf_counter()
            with session.transaction():
                lock(session)
                _, next_event_id, _ = session.run(LOCK, *RUN)[0]
                waits = times.claim_waits if starts else times.answer_waits
                waits.append(time.perf_counter() - first)
                taken = 0 if starts else session.drain()
                session.save(starts, session.append(next_event_id, taken + 2))
            if not starts:
                times.answers.append(time.perf_counter() - first)
            time.sleep(THINKING if starts else IDLE)
    answer.send(times)


def send(url: str, protocol: str, begin: Barrier, stop: Event, answer: Connection) -> None:
    """Send until told to stop; answers how many were sent."""
    session, count = Session(url), 0
    one = PROTOCOLS[protocol][0]
    begin.wait()
    while not stop.is_set():
        one(session)
        count += 1
    answer.send(count)


def measure(url: str, protocol: str, senders: int, seconds: float) -> str:
    """One line of the table."""
    reset(url)
    context = multiprocessing.get_context("fork")
    begin, stop = context.Barrier(senders + 2), context.Event()
    ends: list[Connection] = []
    processes = []
    for role in (work, *[send] * senders):
        mine, theirs = context.Pipe()
        process = context.Process(target=role, args=(url, protocol, begin, stop, theirs))
        process.start()
        processes.append(process)
        ends.append(mine)
    begin.wait()
    first = time.perf_counter()
    time.sleep(seconds)
    stop.set()
    times, *counts = [end.recv() for end in ends]
    lasted = time.perf_counter() - first
    for process in processes:
        process.join()
    session = Session(url)
    with session.transaction():
        session.deliver()
    events = session.run("SELECT count(*) FROM wfapp_historyevent")[0][0]
    lost = sum(counts) + 4 * len(times.answers) - events
    spreads = [
        f"{percentile(values, share) * 1000:.1f}"
        for values in (times.claim_waits, times.answer_waits, times.answers)
        for share in (50, 99)
    ]
    rates = [f"{sum(counts) / lasted:,.0f}", f"{len(times.answers) / lasted:,.0f}"]
    return f"| {' | '.join([protocol, *spreads, *rates, str(lost)])} |"


# --- the second part: who delivers what was stored while a commit was under way ---------------


def left_behind(url: str, protocol: str, rounds: int) -> int:
    """Arrivals that stay in the inbox of a run without a started task, sent one a round."""
    reset(url)
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()
    sender = context.Process(target=send_once_each, args=(url, protocol, theirs))
    sender.start()
    session, left = Session(url), 0
    for _ in range(rounds):
        with session.transaction():
            _, next_event_id, _ = session.run(LOCK, *RUN)[0]
            session.save(True, next_event_id)
        mine.send(random.uniform(0, 0.004))
        time.sleep(0.002)
        with session.transaction():
            _, next_event_id, _ = session.run(LOCK, *RUN)[0]
            session.save(False, session.append(next_event_id, session.drain() + 2))
        mine.recv()
        left += len(session.run(INBOX, *RUN))
        session.run("DELETE FROM wfapp_inboxitem")
    mine.send(None)
    sender.join()
    return left


def send_once_each(url: str, protocol: str, orders: Connection) -> None:
    """Send one arrival after each wait that is asked for."""
    session = Session(url)
    while (wait := orders.recv()) is not None:
        time.sleep(wait)
        PROTOCOLS[protocol][0](session)
        orders.send(True)


# --- the database ----------------------------------------------------------------------------


def make_tables(url: str) -> None:
    os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "settings.local"}
    django.setup()
    call_command("migrate", "wfapp", verbosity=0, skip_checks=True)
    connections.close_all()


def reset(url: str) -> None:
    session = Session(url)
    session.run("TRUNCATE wfapp_historyevent, wfapp_inboxitem, wfapp_executionstate")
    session.run(
        "INSERT INTO wfapp_executionstate (shard, run_id, next_event_id, status, format, "
        "task_started, first_execution_run_id, namespace, workflow_id, workflow_type, task_queue, "
        "owner, snapshot) VALUES (%s, %s, 1, 1, 1, false, %s, 'n', 'w', 't', 'q', '', %s)",
        *RUN,
        RUN[1],
        SNAPSHOT,
    )
    session.run("VACUUM ANALYZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--senders", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=1_000, help="of the second part")
    given = parser.parse_args()
    with services(durable=True) as running:
        url = running.database_url
        make_tables(url)
        print("Milliseconds; commits wait for the disk.\n")
        print(f"| {' | '.join(COLUMNS)} |\n{'| --- ' * len(COLUMNS)}|")
        for protocol in PROTOCOLS:
            print(measure(url, protocol, given.senders, given.seconds), flush=True)
        print(f"\nLeft in the inbox without a started task, of {given.rounds:,}:")
        for protocol in ("optimistic", "unlocked"):
            print(f"{protocol}: {left_behind(url, protocol, given.rounds)}", flush=True)


if __name__ == "__main__":
    main()
