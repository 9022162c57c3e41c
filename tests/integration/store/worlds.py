"""A service over the store under test, and what a worker does, in a line each."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connections
from django.test.utils import CaptureQueriesContext

from wfapp.store import DjangoStore
from wfapp.store.database import TOGETHER
from wfcore.protocol.commands import (
    Command,
    CompleteWorkflowExecution,
    ScheduleActivityTask,
    StartTimer,
)
from wfcore.protocol.common import ActivityType, TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.payloads import Memo, Payload, SearchAttributes
from wfcore.protocol.rpc.activity_tasks import (
    PollActivityTaskQueueRequest,
    PollActivityTaskQueueResponse,
    RespondActivityTaskCompletedRequest,
)
from wfcore.protocol.rpc.workflow_tasks import (
    PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse,
    RespondWorkflowTaskCompletedRequest,
)
from wfcore.protocol.rpc.workflows import (
    SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
)
from wfcore.service.ids import RandomIds
from wfcore.service.ports import RunKey
from wfcore.service.workflow_service import WorkflowService
from wfcore.testing.clocks import SimulatedClock
from wfcore.testing.memory_dispatcher import MemoryDispatcher

NAMESPACE = "default"
QUEUE = "queue"


class World:
    """The service on one alias, with a dispatcher that tells nobody."""

    def __init__(self, alias: str, **options: Any) -> None:
        self.alias = alias
        self.store = DjangoStore(alias, **options)
        self.service = WorkflowService(
            self.store, MemoryDispatcher(SimulatedClock(real_time=True)), RandomIds()
        )
        with_namespace(alias)

    # ---- a client

    def start(self, workflow_id: str = "wf", **parts: Any) -> RunKey:
        answer = self.service.start_workflow_execution(
            StartWorkflowExecutionRequest(
                namespace=NAMESPACE,
                workflow_id=workflow_id,
                workflow_type=WorkflowType(name="Order"),
                task_queue=TaskQueue(name=QUEUE),
                **parts,
            )
        )
        return RunKey(namespace=NAMESPACE, workflow_id=workflow_id, run_id=answer.run_id)

    def signal(self, key: RunKey, name: str = "go", request_id: str = "") -> None:
        self.service.signal_workflow_execution(
            SignalWorkflowExecutionRequest(
                namespace=NAMESPACE,
                workflow_execution=WorkflowExecution(
                    workflow_id=key.workflow_id, run_id=key.run_id
                ),
                signal_name=name,
                request_id=request_id,
            )
        )

    def history(self, key: RunKey) -> list[str]:
        """Kinds of the run's events."""
        return [
            event.event_type.name.removeprefix("WORKFLOW_EXECUTION_")
            for event in self.store.read_events(key)
        ]

    # ---- a worker

    def claim(self, owner: str = "boot-1") -> PollWorkflowTaskQueueResponse:
        return self.service.poll_workflow_task_queue(
            PollWorkflowTaskQueueRequest(
                namespace=NAMESPACE, task_queue=TaskQueue(name=QUEUE), identity="worker"
            ),
            owner=owner,
        )

    def complete(self, task: PollWorkflowTaskQueueResponse, *commands: Command) -> None:
        self.service.respond_workflow_task_completed(
            RespondWorkflowTaskCompletedRequest(
                namespace=NAMESPACE, task_token=task.task_token, commands=commands
            )
        )

    def claim_activity(self, owner: str = "boot-1") -> PollActivityTaskQueueResponse:
        return self.service.poll_activity_task_queue(
            PollActivityTaskQueueRequest(
                namespace=NAMESPACE, task_queue=TaskQueue(name=QUEUE), identity="worker"
            ),
            owner=owner,
        )

    def complete_activity(self, task: PollActivityTaskQueueResponse) -> None:
        self.service.respond_activity_task_completed(
            RespondActivityTaskCompletedRequest(namespace=NAMESPACE, task_token=task.task_token)
        )


def with_namespace(alias: str) -> None:
    from wfapp.models import Namespace

    Namespace.objects.using(alias).get_or_create(
        name=NAMESPACE, defaults={"retention_micros": 86_400_000_000}
    )


def activity(name: str = "a") -> Command:
    return Command.of(
        ScheduleActivityTask(
            activity_id=name,
            activity_type=ActivityType(name="Charge"),
            task_queue=TaskQueue(name=QUEUE),
            start_to_close_timeout=timedelta(minutes=1),
            heartbeat_timeout=timedelta(seconds=30),
        )
    )


def timer(name: str = "t", seconds: float = 60) -> Command:
    return Command.of(StartTimer(timer_id=name, start_to_fire_timeout=timedelta(seconds=seconds)))


def close() -> Command:
    return Command.of(CompleteWorkflowExecution())


def payload(text: str) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=text.encode())


def memo(**fields: str) -> Memo:
    return Memo(fields={name: payload(text) for name, text in fields.items()})


def search_attributes(**fields: str) -> SearchAttributes:
    return SearchAttributes(indexed_fields={name: payload(text) for name, text in fields.items()})


# ---- statements


class Counted:
    """How many statements of each kind a block made."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    @property
    def reads(self) -> int:
        return sum(text.startswith("SELECT") for text in self.texts)

    @property
    def writes(self) -> int:
        return sum(
            text.split(" ", 1)[0] in ("INSERT", "UPDATE", "DELETE", "WITH") for text in self.texts
        )


@contextmanager
def counting(alias: str) -> Iterator[Counted]:
    counted = Counted()
    with CaptureQueriesContext(connections[alias]) as captured:
        yield counted
    counted.texts = [
        text for query in captured.captured_queries for text in query["sql"].split(TOGETHER)
    ]


# ---- threads


def together(*calls: Callable[[], Any], seconds: float = 30) -> list[Any]:
    """Results or errors of calls in threads that begin at once, each with its own connections."""
    answers: list[Any] = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def run(place: int, call: Callable[[], Any]) -> None:
        try:
            barrier.wait(seconds)
            answers[place] = call()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            answers[place] = error
        finally:
            connections.close_all()

    threads = [
        threading.Thread(target=run, args=(place, call), daemon=True)
        for place, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive(), "a thread hangs"
    return answers
