"""The engine behind the methods of `workloads.Peer`: the sync client, as a view uses it."""

import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection

from wfapp.client import get_client
from wfapp.models import HistoryEvent, WorkflowExecution
from wfcore.protocol.enums import EventType, WorkflowExecutionStatus

#: start calls in flight while a batch is started
START_THREADS = 8
LIMIT_SECONDS = 600.0
LOOK_SECONDS = 0.01
#: runs that one look is about
AT_A_TIME = 50
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
        self.wait_until_closed([handle.id for handle in handles])
        return handles

    def wait_until_closed(self, workflow_ids: Sequence[str]) -> None:
        """Raises TimeoutError when some are open after ten minutes."""
        end = time.monotonic() + LIMIT_SECONDS
        left = list(workflow_ids)
        while left:
            # a few at a time, since all are waited for: looking must cost little
            if not open_runs(left[:AT_A_TIME]):
                del left[:AT_A_TIME]
                continue
            if time.monotonic() > end:
                raise TimeoutError(f"runs are open after {LIMIT_SECONDS:.0f} s, as {left[0]}")
            time.sleep(LOOK_SECONDS)

    def signal(self, handle: Any, value: int) -> None:
        handle.signal("add", value)


def open_runs(workflow_ids: Sequence[str]) -> int:
    """How many of these are open."""
    count: int = WorkflowExecution.objects.filter(
        status=WorkflowExecutionStatus.RUNNING.value, workflow_id__in=workflow_ids
    ).count()
    return count


def sleeping_runs() -> int:
    """How many open runs have begun a timer."""
    running = WorkflowExecution.objects.filter(status=WorkflowExecutionStatus.RUNNING.value)
    count: int = HistoryEvent.objects.filter(
        event_type=EventType.TIMER_STARTED.value, run_id__in=running.values("run_id")
    ).count()
    return count
