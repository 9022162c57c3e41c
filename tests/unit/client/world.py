"""A client over a service in memory, and a worker made of bare calls."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tests.support.waiting import wait_until
from wfcore.client import Client
from wfcore.converter import DataConverter
from wfcore.protocol.commands import Command
from wfcore.protocol.common import TaskQueue
from wfcore.protocol.payloads import Payloads
from wfcore.protocol.rpc.info import WorkflowQueryResult
from wfcore.protocol.rpc.workflow_tasks import (
    PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse,
    RespondQueryTaskCompletedRequest,
    RespondWorkflowTaskCompletedRequest,
)
from wfcore.service.workflow_service import WorkflowService
from wfcore.testing.clocks import SequentialIds, SimulatedClock
from wfcore.testing.memory_dispatcher import MemoryDispatcher
from wfcore.testing.memory_ports import MemoryStore

QUEUE = "shop"
_POLL = PollWorkflowTaskQueueRequest(
    namespace="default", task_queue=TaskQueue(name=QUEUE), identity="worker"
)
_converter = DataConverter.default.payload_converter


def payloads(*values: Any) -> Payloads:
    """Values as the default converter writes them."""
    return _converter.to_payloads_wrapper(values)


class World:
    """One service, its client, and what a worker would do by hand."""

    def __init__(self, **client: Any) -> None:
        self.clock = SimulatedClock(real_time=True)
        self.store = MemoryStore(self.clock)
        self.service = WorkflowService(self.store, MemoryDispatcher(self.clock), SequentialIds())
        self.client = Client(self.service, identity="tester", **client)

    def take_task(self) -> PollWorkflowTaskQueueResponse:
        """The workflow task or question that waits."""
        task = self.service.poll_workflow_task_queue(_POLL)
        assert task.task_token, "no workflow task waits"
        return task

    def poll_task(self) -> PollWorkflowTaskQueueResponse | None:
        """A workflow task with updates, if one waits."""
        task = self.service.poll_workflow_task_queue(_POLL)
        return task if task.messages else None

    def is_admitted(self, update_id: str, but: str | None = None) -> bool:
        """Whether the current run has this update; `but`: another run than that."""
        head = self.store.head("default", "cart-1")
        if head is None or head.key.run_id == but:
            return False
        return self.store.read_update(head.key, update_id) is not None

    def answer(self, *attributes: Any) -> PollWorkflowTaskQueueResponse:
        """Complete the workflow task that waits with these commands."""
        task = self.take_task()
        self.service.respond_workflow_task_completed(
            RespondWorkflowTaskCompletedRequest(
                task_token=task.task_token,
                commands=tuple(Command.of(item) for item in attributes),
                identity="worker",
            )
        )
        return task

    def _question(self) -> PollWorkflowTaskQueueResponse | None:
        task = self.service.poll_workflow_task_queue(_POLL)
        return task if task.query else None

    def answer_queries(self, answer: Callable[[str, Sequence[Any]], WorkflowQueryResult]) -> None:
        """Answer the next question, in a thread."""

        def work() -> None:
            task = wait_until(self._question)
            assert task.query is not None
            args = _converter.from_payloads_wrapper(task.query.query_args)
            result = answer(task.query.query_type, args)
            self.service.respond_query_task_completed(
                RespondQueryTaskCompletedRequest(
                    task_token=task.task_token,
                    completed_type=result.result_type,
                    query_result=result.answer,
                    error_message=result.error_message,
                )
            )

        threading.Thread(target=work, daemon=True).start()
