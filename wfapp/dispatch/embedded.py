"""A worker in threads of this process: for a laptop, a demo, and whoever needs no second process.

It is a Celery worker like any other, on the threads pool. With a broker in memory it is the only
one that can be reached; with Redis it works beside others.
"""

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from celery import Celery
from celery.worker import WorkController, state

START_SECONDS = 30
STOP_SECONDS = 30


class EmbeddedWorkerError(RuntimeError):
    """The worker did not start; the log says why."""


@contextmanager
def embedded_worker(app: Celery, *, slots: int = 4, queues: Sequence[str] = ()) -> Iterator[None]:
    """Run a worker in threads for the length of the block; tasks that run then are waited for.

    Logging, signal handlers and Celery's banner are left to the process that it lives in.

    Raises:
        EmbeddedWorkerError: it did not start.
    """
    ready = threading.Event()
    options: dict[str, Any] = {
        "app": app,
        "hostname": f"embedded-{os.getpid()}@{socket.gethostname()}",
        "pool": "threads",
        "concurrency": slots,
        "queues": list(queues) or None,
        "ready_callback": lambda consumer: ready.set(),
        "without_gossip": True,
        "without_mingle": True,
        "without_heartbeat": True,
    }
    worker = WorkController(**options)
    thread = threading.Thread(target=worker.start, name="wfapp-embedded-worker", daemon=True)
    thread.start()
    try:
        if not ready.wait(START_SECONDS):
            raise EmbeddedWorkerError(f"the worker did not start within {START_SECONDS} s")
        yield
    finally:
        state.should_stop = 0  # type: ignore[assignment]  # a warm shutdown, as SIGTERM asks for
        thread.join(STOP_SECONDS)
        state.should_stop = None
