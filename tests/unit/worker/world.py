"""A service in memory with its client and a runner of workflow tasks, driven step by step."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from wfcore.client import Client
from wfcore.converter import DataConverter
from wfcore.protocol.common import TaskQueue
from wfcore.protocol.enums import EventType
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.rpc.activity_tasks import PollActivityTaskQueueRequest
from wfcore.protocol.rpc.workflow_tasks import (
    PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse,
)
from wfcore.service.workflow_service import WorkflowService
from wfcore.testing.clocks import SequentialIds, SimulatedClock
from wfcore.testing.memory_dispatcher import MemoryDispatcher
from wfcore.testing.memory_ports import MemoryStore
from wfcore.worker import ActivityTaskRunner, InstanceCache, Registry, WorkflowTaskRunner

QUEUE = "shop"


class World:
    """One service in memory, and what a worker of one queue does with it."""

    def __init__(
        self,
        workflows: Sequence[type],
        activities: Sequence[Callable[..., Any]] = (),
        *,
        data_converter: DataConverter = DataConverter.default,
        **runner: Any,
    ) -> None:
        self.clock = SimulatedClock(real_time=True)
        self.store = MemoryStore(self.clock)
        self.service = WorkflowService(self.store, MemoryDispatcher(self.clock), SequentialIds())
        self.client = Client(self.service, identity="tester", data_converter=data_converter)
        self.cache = InstanceCache(100)
        self.registry = Registry(workflows, activities)
        self.data_converter = data_converter
        self.runner = self.another_runner(**runner)
        self.activities = ActivityTaskRunner(
            self.service, self.registry, data_converter, "worker", task_queue=QUEUE
        )

    def another_runner(self, workflows: Sequence[type] = (), **options: Any) -> WorkflowTaskRunner:
        """A second worker of the queue; with workflows, one whose code has changed."""
        return WorkflowTaskRunner(
            options.pop("service", self.service),
            Registry(workflows) if workflows else self.registry,
            self.data_converter,
            "worker",
            options.pop("cache", self.cache),
            **options,
        )

    def workflow_task(self) -> PollWorkflowTaskQueueResponse:
        """The workflow task or question that waits; empty if none does."""
        return self.service.poll_workflow_task_queue(
            PollWorkflowTaskQueueRequest(
                namespace="default", task_queue=TaskQueue(name=QUEUE), identity="worker"
            )
        )

    def run_workflow_tasks(self) -> int:
        """Run what waits; how many tasks that were."""
        count = 0
        while (task := self.workflow_task()).task_token:
            self.runner.run(task)
            count += 1
        return count

    def run_activities(self) -> int:
        """Run the activities that wait; how many those were."""
        count = 0
        request = PollActivityTaskQueueRequest(
            namespace="default", task_queue=TaskQueue(name=QUEUE), identity="worker"
        )
        while (task := self.service.poll_activity_task_queue(request)).task_token:
            self.activities.run(task)
            count += 1
        return count

    def settle(self) -> None:
        """Run workflow tasks and activities until nothing waits."""
        while self.run_workflow_tasks() or self.run_activities():
            pass

    def pass_time(self, seconds: float) -> None:
        """Let time pass and do what has come due."""
        self.clock.advance(timedelta(seconds=seconds))
        self.service.sweep()


async def kinds(handle: Any) -> list[EventType]:
    """The events of a workflow, by their kinds."""
    return [event.event_type for event in (await handle.fetch_history()).events]


async def event_of(handle: Any, kind: EventType) -> HistoryEvent:
    """The last event of a kind."""
    events = (await handle.fetch_history()).events
    return [event for event in events if event.event_type is kind][-1]
