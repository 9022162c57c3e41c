"""Workers in the caller's process, which get the first task of a run with the answer to its start.

Room in a worker is kept before the start is made, so a task that comes along runs at once.
"""

from __future__ import annotations

import threading
from typing import Protocol, Self

from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse


class LocalWorker(Protocol):
    """A worker that may have room for a workflow task. Called from any thread."""

    def reserve_workflow_task(self) -> bool:
        """Keep room for one, if there is some; never waits."""

    def run_workflow_task(self, task: PollWorkflowTaskQueueResponse) -> None:
        """Run one that was claimed, in the room that was kept."""

    def give_back_workflow_task(self) -> None:
        """There is none to run."""


class Place:
    """Room for one workflow task. It is given back at the end of a `with` block, unless filled."""

    def __init__(self, worker: LocalWorker) -> None:
        self._worker: LocalWorker | None = worker

    def fill(self, task: PollWorkflowTaskQueueResponse) -> None:
        """Run the task there."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.run_workflow_task(task)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.give_back_workflow_task()


class LocalWorkers:
    """Who runs workflows in this process, by namespace and task queue."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: dict[tuple[str, str], list[LocalWorker]] = {}

    def add(self, namespace: str, task_queue: str, worker: LocalWorker) -> None:
        """It takes tasks from now on."""
        with self._lock:
            self._workers.setdefault((namespace, task_queue), []).append(worker)

    def remove(self, namespace: str, task_queue: str, worker: LocalWorker) -> None:
        """It takes no more."""
        with self._lock:
            workers = self._workers.get((namespace, task_queue), [])
            if worker in workers:
                workers.remove(worker)
            if not workers:
                self._workers.pop((namespace, task_queue), None)

    def reserve(self, namespace: str, task_queue: str) -> Place | None:
        """Room in one of them; None if there is none."""
        with self._lock:
            workers = tuple(self._workers.get((namespace, task_queue), ()))
        for worker in workers:
            if worker.reserve_workflow_task():
                return Place(worker)
        return None
