"""The workloads, the same for every system. A system is a `Peer` with a few methods.

W1  hello       one step; a closed batch, then one at a time
W2  seq(n)      n steps one after the other; fifty side by side, then one alone
W3  fan(n)      one step, n steps in parallel, one step
W4  timer(s)    one step, a wait of s seconds, one step: how late the second one is
W5  counter(n)  n signals, sent one after the other; the sum of their values comes back

A step does nothing and returns its number and the time, so that times within a workflow come from
its steps and a replay doesn't change them. Results are compared in every workload: a wrong one is a
failed workload.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.measuring import Bench, spread_ms

WARM_UP = 3
#: seconds that a row of single runs may take
ONE_AT_A_TIME_SECONDS = 60.0
#: how long a run may get going before it is sent signals
SETTLE_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much of each workload one run does."""

    batch: int = 1000
    one_at_a_time: int = 100
    side_by_side: int = 50
    lengths: tuple[int, ...] = (10, 100)
    fans: tuple[int, ...] = (100, 1000)
    timers: int = 200
    timer_seconds: float = 2.0
    signals: int = 1000


FULL = Sizes()
QUICK = Sizes(
    batch=100, one_at_a_time=10, side_by_side=10, lengths=(10,), fans=(100,), timers=20, signals=100
)


class Peer(Protocol):
    """One system. A handle is whatever it likes."""

    def start(self, name: str, *arguments: Any) -> Any:
        """Start a workflow; returns once the start is accepted for good."""

    def result(self, handle: Any) -> Any:
        """Wait for the result."""

    def run_batch(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Start all, as fast as the client can; returns their handles when all are completed."""

    def signal(self, handle: Any, value: int) -> None:
        """Returns once the signal is accepted for good."""


def run(bench: Bench, peer: Peer, sizes: Sizes, only: Sequence[str] = ()) -> None:
    """Run the workloads named, or all."""
    _one_at_a_time(peer, WARM_UP)
    for name, workload in WORKLOADS.items():
        if not only or name in only:
            workload(bench, peer, sizes)


def hello(bench: Bench, peer: Peer, sizes: Sizes) -> None:
    handles: list[Any] = []
    with bench.work("W1.batch", units=sizes.batch) as taken:
        begin = time.perf_counter()
        handles = peer.run_batch([("hello",)] * sizes.batch)
        taken.figures["workflows_per_s"] = sizes.batch / (time.perf_counter() - begin)
    with bench.check("W1.batch"):
        _expect(_results(peer, handles), ["hello"] * sizes.batch)
    with bench.work("W1.one") as taken:
        taken.figures.update(spread_ms(_one_at_a_time(peer, sizes.one_at_a_time)))


def seq(bench: Bench, peer: Peer, sizes: Sizes) -> None:
    for length in sizes.lengths:
        with bench.work(f"W2.one.{length}") as taken:
            begin = time.perf_counter()
            count, first, last = peer.result(peer.start("seq", length))
            taken.figures["end_to_end_s"] = time.perf_counter() - begin
            taken.figures["ms_per_step"] = 1000 * (last - first) / (length - 1)
            _expect(count, length)
        many = sizes.side_by_side
        handles: list[Any] = []
        with bench.work(f"W2.many.{length}", units=many * length) as taken:
            handles = peer.run_batch([("seq", length)] * many)
        with bench.check(f"W2.many.{length}"):
            results = _results(peer, handles)
            _expect([result[0] for result in results], [length] * many)
            inner = max(result[2] for result in results) - min(result[1] for result in results)
            taken.figures["steps_per_s"] = many * length / inner


def fan(bench: Bench, peer: Peer, sizes: Sizes) -> None:
    for width in sizes.fans:
        with bench.work(f"W3.{width}", units=width) as taken:
            begin = time.perf_counter()
            count, before, after = peer.result(peer.start("fan", width))
            taken.figures["end_to_end_s"] = time.perf_counter() - begin
            taken.figures["steps_per_s"] = width / (after - before)
            _expect(count, width)


def timer(bench: Bench, peer: Peer, sizes: Sizes) -> None:
    handles: list[Any] = []
    with bench.work("W4", units=sizes.timers) as taken:
        begin = time.perf_counter()
        handles = peer.run_batch([("timer", sizes.timer_seconds)] * sizes.timers)
        taken.figures["total_s"] = time.perf_counter() - begin
    with bench.check("W4"):
        late = _results(peer, handles)
        taken.figures.update(spread_ms(late))
        if min(late) < 0:
            raise AssertionError(f"a timer fired {-min(late)} s early")


def counter(bench: Bench, peer: Peer, sizes: Sizes) -> None:
    with bench.work("W5", units=sizes.signals) as taken:
        handle = peer.start("counter", sizes.signals)
        time.sleep(SETTLE_SECONDS)
        begin = time.perf_counter()
        accepted = []
        for value in range(sizes.signals):
            sent = time.perf_counter()
            peer.signal(handle, value)
            accepted.append(time.perf_counter() - sent)
        taken.figures["signals_per_s"] = sizes.signals / (time.perf_counter() - begin)
        total = peer.result(handle)
        taken.figures["end_to_end_s"] = time.perf_counter() - begin
        _expect(total, sum(range(sizes.signals)))
        taken.figures.update(spread_ms(accepted))


WORKLOADS = {"W1": hello, "W2": seq, "W3": fan, "W4": timer, "W5": counter}


def _one_at_a_time(peer: Peer, count: int) -> list[float]:
    durations: list[float] = []
    end = time.perf_counter() + ONE_AT_A_TIME_SECONDS
    while len(durations) < count and time.perf_counter() < end:
        begin = time.perf_counter()
        _expect(peer.result(peer.start("hello")), "hello")
        durations.append(time.perf_counter() - begin)
    return durations


def _results(peer: Peer, handles: Sequence[Any]) -> list[Any]:
    return [peer.result(handle) for handle in handles]


def _expect(got: Any, wanted: Any) -> None:
    if got != wanted:
        raise AssertionError(f"wrong result: {str(got)[:200]}")
