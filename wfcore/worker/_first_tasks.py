"""First workflow tasks, which come with the answer to a start made in this process."""

from __future__ import annotations

import threading

from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse
from wfcore.worker._polling import Poller, Slots


class FirstTasks:
    """Room for them in a worker's slots; a `wfcore.service.local_workers.LocalWorker`."""

    def __init__(
        self,
        poller: Poller[PollWorkflowTaskQueueResponse],
        slots: Slots,
        stopping: threading.Event,
    ) -> None:
        self._poller = poller
        self._slots = slots
        self._stopping = stopping

    def reserve_workflow_task(self) -> bool:
        """Take a slot, if one is free and the worker isn't about to end."""
        if not self._slots.take(0):
            return False
        # looked at with the slot taken: a worker that stops from now on waits for it
        if self._stopping.is_set():
            self._slots.give_back()
            return False
        return True

    def run_workflow_task(self, task: PollWorkflowTaskQueueResponse) -> None:
        """Run a task in the slot that was taken."""
        self._poller.start(task)

    def give_back_workflow_task(self) -> None:
        """Free the slot."""
        self._slots.give_back()
