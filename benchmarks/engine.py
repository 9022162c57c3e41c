"""The engine behind the methods of `workloads.Peer`: the sync client, as a view uses it."""

import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection

from wfapp.client import get_client
from wfapp.models import WorkflowExecution
from wfcore.protocol.enums import WorkflowExecutionStatus

#: start calls in flight while a batch is started
START_THREADS = 8
LIMIT_SECONDS = 600.0
LOOK_SECONDS = 0.01
TASK_QUEUE = "default"


class EnginePeer:
    """Starts from eight threads; sees that a batch is completed by counting open runs."""

    def start(self, name: str, *arguments: Any) -> Any:
        return get_client().start_workflow(
            name, args=list(arguments), id=f"{name}-{uuid.uuid4()}", task_queue=TASK_QUEUE
        )

    def result(self, handle: Any) -> Any:
        return handle.result()

    def run_batch(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        with ThreadPoolExecutor(START_THREADS) as threads:
            handles = list(threads.map(lambda call: self.start(*call), calls))
            threads.map(lambda _: connection.close(), range(START_THREADS))
        end = time.monotonic() + LIMIT_SECONDS
        while open_runs():
            if time.monotonic() > end:
                raise TimeoutError(f"{open_runs()} runs are open after {LIMIT_SECONDS:.0f} s")
            time.sleep(LOOK_SECONDS)
        return handles

    def signal(self, handle: Any, value: int) -> None:
        handle.signal("add", value)


def open_runs() -> int:
    count: int = WorkflowExecution.objects.filter(
        status=WorkflowExecutionStatus.RUNNING.value
    ).count()
    return count
