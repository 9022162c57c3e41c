"""The limit: what Celery alone does with the same steps on the same broker.

Nothing here is durable as a workflow is (a chain's state travels in its messages, Redis keeps
nothing), so these figures are what can't be passed, not what is to be beaten. Chains stand for
sequences, a chord for a fan, a countdown for a timer, single tasks for signals.
"""

import os
import time
import uuid
from collections.abc import Sequence
from typing import Any

import redis
from celery import Celery, chain, chord, group
from celery.result import AsyncResult

QUEUE = "limit"
RESULT_SECONDS = 300.0
POLL_SECONDS = 0.005

BROKER = os.environ.get("BENCHMARK_REDIS_URL", "memory://")

app = Celery("limit", broker=BROKER, backend=BROKER)
app.conf.update(
    task_acks_late=True,
    task_default_queue=QUEUE,
    result_expires=3600,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
)


@app.task
def step(earlier: Any = None) -> list[float]:
    """A step of a chain: how many steps there were, the times of the first and of this."""
    count, first = (int(earlier[0]), earlier[1]) if earlier else (0, time.time())
    return [count + 1, first, time.time()]


@app.task
def hello() -> str:
    return "hello"


@app.task
def member(before: list[float], _place: int) -> float:
    return before[2]


@app.task
def fan(before: list[float], width: int) -> None:
    """The step in front of the chord hands its time on to the members."""
    answer = f"fan:{fan.request.root_id}"
    chord(group(member.s(before, place) for place in range(width)), after.s(answer)).delay()


@app.task
def after(times: list[float], answer: str) -> None:
    store().rpush(answer, f"{len(times)} {times[0]!r} {time.time()!r}")


@app.task
def late(due: float) -> float:
    return time.time() - due


@app.task
def add(key: str, value: int) -> None:
    with store().pipeline() as pipe:
        pipe.incrby(f"{key}:sum", value)
        pipe.incr(f"{key}:count")
        pipe.execute()


_stores: dict[int, "redis.Redis"] = {}


def store() -> "redis.Redis":
    """A connection of this process; a fork must not share its parent's."""
    pid = os.getpid()
    if pid not in _stores:
        _stores[pid] = redis.Redis.from_url(BROKER, socket_timeout=None)
    return _stores[pid]


class CeleryPeer:
    """Plain Celery behind the methods of `workloads.Peer`."""

    def start(self, name: str, *arguments: Any) -> Any:
        return getattr(self, f"_start_{name}")(*arguments)

    def result(self, handle: Any) -> Any:
        if isinstance(handle, AsyncResult):
            return handle.get(timeout=RESULT_SECONDS)
        kind, *rest = handle
        return getattr(self, f"_result_{kind}")(*rest)

    def run_batch(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        handles = [self.start(*call) for call in calls]
        for handle in handles:
            self.result(handle)
        return handles

    def signal(self, handle: Any, value: int) -> None:
        add.delay(handle[1], value)

    def _start_hello(self) -> Any:
        return hello.delay()

    def _start_seq(self, length: int) -> Any:
        return chain(step.s(), *(step.s() for _ in range(length - 1))).apply_async()

    def _start_fan(self, width: int) -> Any:
        root = str(uuid.uuid4())
        chain(step.s(), fan.s(width)).apply_async(root_id=root)
        return "fan", f"fan:{root}"

    def _result_fan(self, answer: str) -> list[float]:
        got = store().blpop([answer], timeout=int(RESULT_SECONDS))
        if got is None:
            raise TimeoutError(answer)
        words = got[1].decode() if isinstance(got[1], bytes) else got[1]
        count, before, end = words.split()
        return [int(count), float(before), float(end)]

    def _start_timer(self, seconds: float) -> Any:
        return late.apply_async((time.time() + seconds,), countdown=seconds)

    def _start_counter(self, expected: int) -> Any:
        return "counter", f"counter:{uuid.uuid4()}", expected

    def _result_counter(self, key: str, expected: int) -> int:
        end = time.monotonic() + RESULT_SECONDS
        while int(store().get(f"{key}:count") or 0) < expected:
            if time.monotonic() > end:
                raise TimeoutError(key)
            time.sleep(POLL_SECONDS)
        return int(store().get(f"{key}:sum") or 0)
