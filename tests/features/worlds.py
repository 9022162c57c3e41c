"""The engine and its workers in the test's own thread, on a clock that only the test moves.

Two sets of ports: in memory; and the project's own, which is Django's store on PostgreSQL and
Celery's messages in Redis, taken one by one and handed to the task worker that a Celery worker has.
A task runs when the test settles the world, lets time pass, or waits for something; a queue that
nobody serves keeps its work, to be taken by hand.
"""

import uuid
from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from tests.features.histories import History, faults
from wfcore.client import Client, InlineCalls, WorkflowHandle, run_inline
from wfcore.converter import DataConverter
from wfcore.history.limits import Limits
from wfcore.protocol.commands import Command
from wfcore.protocol.common import TaskQueue, WorkflowType
from wfcore.protocol.enums import IndexedValueType, WorkflowTaskFailedCause
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Payloads
from wfcore.protocol.rpc import activity_tasks, workflow_tasks, workflows
from wfcore.service.ids import RandomIds
from wfcore.service.ports import RunKey
from wfcore.service.workflow_service import WorkflowService
from wfcore.testing.clocks import SimulatedClock
from wfcore.worker import Registry

T = TypeVar("T")

NAMESPACE = "default"
CLIENT = "tester"
WORKER = "worker"
#: so many deadlines may pass in a row, with nothing to run, before a wait is given up
PATIENCE = 500
#: search attributes that every world has registered
ATTRIBUTES = {
    "Colour": IndexedValueType.KEYWORD,
    "Size": IndexedValueType.INT,
    "Weight": IndexedValueType.DOUBLE,
    "Ready": IndexedValueType.BOOL,
    "Due": IndexedValueType.DATETIME,
    "Tags": IndexedValueType.KEYWORD_LIST,
    "Note": IndexedValueType.TEXT,
}

_converter = DataConverter.default.payload_converter


def values(*given: Any) -> Payloads:
    """Values as the default converter writes them."""
    return _converter.to_payloads_wrapper(given)


def read(payloads: Payloads | None) -> list[Any]:
    """The values of payloads."""
    return list(_converter.from_payloads_wrapper(payloads)) if payloads is not None else []


def failure(
    message: str = "no",
    *,
    type: str = "Error",  # noqa: A002 - Temporal's name
    final: bool = False,
    delay: float | None = None,
) -> Failure:
    """What a worker reports of an exception; `delay` is its next retry delay in seconds."""
    info = ApplicationFailureInfo(
        type=type,
        non_retryable=final,
        next_retry_delay=None if delay is None else timedelta(seconds=delay),
    )
    return Failure(message=message, source="Python", application_failure_info=info)


def do(call: Coroutine[Any, Any, T]) -> T:
    """The result of a client's call; the world works while it waits."""
    return run_inline(call)


class Worker:
    """What serves one queue; its code stays in memory until it is told to forget it."""

    def __init__(self, world: "World", queue: str, registry: Registry) -> None:
        self.world = world
        self.queue = queue
        self.registry = registry

    def run(self, message: Any) -> None:
        """Do what a message names, if it is still to be done."""
        raise NotImplementedError

    def forget(self) -> None:
        """Lose the live instances of all runs, as a new process has none."""
        raise NotImplementedError

    def stop(self) -> None:
        """Take nothing more from the queue, as a process that has ended."""
        self.world.workers.pop(self.queue, None)
        self.forget()


class World:
    """One engine; `queue` is what starts and workers use that name none."""

    mode = ""
    clock: SimulatedClock
    store: Any
    service: WorkflowService

    def __init__(self, name: str) -> None:
        self.queue = name
        self.workers: dict[str, Worker] = {}
        self._ids = 0
        self._idle = 0

    def _connect(self, dispatcher: Any, limits: Limits) -> None:
        self.dispatcher = dispatcher
        self.service = WorkflowService(self.store, dispatcher, RandomIds(), limits=limits)
        self.client = self.connect()

    def connect(self, **options: Any) -> Client:
        """Another client of this engine."""
        options = {"identity": CLIENT, "namespace": NAMESPACE, **options}
        return Client(self.service, calls=InlineCalls(), **options)

    def close(self) -> None:
        """End the workers, and let go of what the world stands on."""
        for worker in list(self.workers.values()):
            worker.stop()

    # ---- workers and messages

    def serve(
        self,
        workflows: Iterable[type] = (),
        activities: Iterable[Callable[..., Any]] = (),
        *,
        queue: str = "",
        cached: bool = True,
        **options: Any,
    ) -> Worker:
        """A worker of a queue, in the place of the one before it.

        Args:
            cached: whether code stays in memory between its tasks.
            options: interceptors, build_id, identity.
        """
        registry = Registry(list(workflows), list(activities))
        name = queue or self.queue
        if name in self.workers:
            self.workers[name].stop()
        self.workers[name] = self._make_worker(name, registry, 1000 if cached else 0, options)
        return self.workers[name]

    def _make_worker(
        self, queue: str, registry: Registry, cache: int, options: dict[str, Any]
    ) -> Worker:
        raise NotImplementedError

    def take_message(self, queue: str) -> Any:
        """The oldest message of a queue; None without one."""
        raise NotImplementedError

    def lose_messages(self, queue: str = "") -> int:
        """Empty a queue; how many messages it had."""
        count = 0
        while self.take_message(queue or self.queue) is not None:
            count += 1
        return count

    # ---- time and work

    def now(self) -> datetime:
        return self.clock.now()

    def step(self) -> bool:
        """Run one task of a queue that is served; whether there was one."""
        for queue, worker in list(self.workers.items()):
            message = self.take_message(queue)
            if message is not None:
                worker.run(message)
                return True
        return False

    def settle(self) -> None:
        """Run all that can run now."""
        while self.step():
            pass

    def advance(self, by: float | timedelta) -> None:
        """Let time pass, and all happen that comes due meanwhile, each at its time."""
        until = self.now() + (by if isinstance(by, timedelta) else timedelta(seconds=by))
        self.settle()
        while self._tick(until):
            self.settle()
        self.clock.move_to(until)

    def _tick(self, until: datetime) -> bool:
        """Move to the next deadline up to a time and do what is due; False if there is none."""
        due = self.store.next_due()
        if due is None or due > until:
            return False
        self.clock.move_to(due)
        report = self.service.sweep()
        assert report.next_due is None or report.next_due > self.now() or report.more, report
        return True

    def wait(self, happened: Callable[[], bool], what: str = "something") -> None:
        """Work, and let time pass, until it happened."""
        for _ in range(PATIENCE):
            self.settle()
            if happened():
                return
            assert self._tick(self.now() + timedelta(days=36_500)), f"nothing brings {what}"
        raise AssertionError(f"{what} did not happen")

    def work_until(
        self,
        happened: Callable[[], bool],
        timeout: timedelta,
        what: str = "",
        *,
        patient: bool = False,
    ) -> None:
        """For the dispatcher: work, and let time pass, until it happened or for so long.

        For the next event of a history it may last longer: a caller who gets no answer would ask
        again until the next deadline, and nothing else could happen meanwhile.

        Raises:
            AssertionError: `what` is waited for, and nothing brings it.
        """
        until = self.now() + timeout
        while not happened():
            if self.step():
                self._idle = 0
                continue
            self._idle += 1
            assert self._idle < PATIENCE, f"time alone does not bring {what or 'an answer'}"
            if not self._tick(max(until, self.store.next_due() or until) if patient else until):
                assert not what or self.store.next_due() is not None, f"nothing brings {what}"
                self.clock.move_to(until)
                return

    # ---- runs

    def start(
        self,
        workflow: Any,
        *args: Any,
        id: str = "",  # noqa: A002 - Temporal's name
        queue: str = "",
        **options: Any,
    ) -> "Run":
        """Start a workflow, by its run method or its type's name."""
        return Run(self, do(self.starting(workflow, *args, id=id, queue=queue, **options)))

    def starting(
        self,
        workflow: Any,
        *args: Any,
        id: str = "",  # noqa: A002 - Temporal's name
        queue: str = "",
        **options: Any,
    ) -> Coroutine[Any, Any, WorkflowHandle[Any, Any]]:
        """The same, as the client's call."""
        return self.client.start_workflow(
            workflow,
            args=args,
            id=id or self.new_id(),
            task_queue=queue or self.queue,
            **options,
        )

    def call_start(
        self, workflow_type: str, workflow_id: str = "", **fields: Any
    ) -> workflows.StartWorkflowExecutionResponse:
        """The bare call, for what a client never sends."""
        request = workflows.StartWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_id=workflow_id or self.new_id(),
            workflow_type=WorkflowType(name=workflow_type),
            task_queue=TaskQueue(name=self.queue),
            identity=CLIENT,
            request_id=str(uuid.uuid4()),
        )
        request = msgspec.structs.replace(request, **fields)
        return self.service.start_workflow_execution(request)

    def new_id(self) -> str:
        """A workflow id that the test has not used."""
        self._ids += 1
        return f"{self.queue}-{self._ids}"

    def run(self, workflow_id: str, run_id: str = "") -> "Run":
        """A run that exists; the current one of its id if none is named."""
        handle = self.client.get_workflow_handle(workflow_id, run_id=run_id or None)
        return Run(self, handle)

    @staticmethod
    def key(run: "Run") -> RunKey:
        """What names a run to the store."""
        return RunKey(namespace=NAMESPACE, workflow_id=run.id, run_id=run.run_id)

    def runs(self, query: str = "") -> list[Any]:
        """What a list with this filter shows, newest first."""

        async def collect() -> list[Any]:
            return [found async for found in self.client.list_workflows(query or None)]

        return do(collect())

    def check_histories(self, most: int = 150) -> int:
        """Look at the histories of the newest runs; how many there were.

        Raises:
            AssertionError: one is not as every history must be.
        """
        found = self.runs()[:most]
        for info in found:
            history = self.run(info.id, info.run_id).history()
            wrong = faults(history, info.status.name)
            assert not wrong, f"{info.id} {wrong}\n{history!r}"
        return len(found)

    # ---- a worker's calls, by hand

    def poll(self, queue: str = "") -> workflow_tasks.PollWorkflowTaskQueueResponse:
        """The workflow task that waits in a queue; one without a token if none does."""
        return self.service.poll_workflow_task_queue(
            workflow_tasks.PollWorkflowTaskQueueRequest(
                namespace=NAMESPACE,
                task_queue=TaskQueue(name=queue or self.queue),
                identity=WORKER,
            )
        )

    def answer(
        self,
        task: workflow_tasks.PollWorkflowTaskQueueResponse,
        *commands: Message,
        **fields: Any,
    ) -> workflow_tasks.RespondWorkflowTaskCompletedResponse:
        """Complete a workflow task with commands, given by their attributes; what names no task
        queue gets that of the run, as from Temporal's SDKs.
        """
        run_queue = task.workflow_execution_task_queue or TaskQueue(name=self.queue)
        asked = [
            msgspec.structs.replace(each, task_queue=TaskQueue(name=run_queue.name))
            if getattr(each, "task_queue", self) is None
            else each
            for each in commands
        ]
        return self.service.respond_workflow_task_completed(
            workflow_tasks.RespondWorkflowTaskCompletedRequest(
                namespace=NAMESPACE,
                task_token=task.task_token,
                commands=tuple(Command.of(each) for each in asked),
                identity=WORKER,
                **fields,
            )
        )

    def answer_next(self, *commands: Message, queue: str = "", **fields: Any) -> Any:
        """Take the workflow task that waits and complete it; the task."""
        task = self.poll(queue)
        assert task.task_token, "no workflow task waits"
        self.answer(task, *commands, **fields)
        return task

    def fail(
        self,
        task: workflow_tasks.PollWorkflowTaskQueueResponse,
        cause: WorkflowTaskFailedCause = (
            WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE
        ),
        message: str = "no",
    ) -> None:
        """Fail a workflow task."""
        self.service.respond_workflow_task_failed(
            workflow_tasks.RespondWorkflowTaskFailedRequest(
                namespace=NAMESPACE,
                task_token=task.task_token,
                cause=cause,
                failure=failure(message),
                identity=WORKER,
            )
        )

    def poll_activity(self, queue: str = "") -> activity_tasks.PollActivityTaskQueueResponse:
        """The attempt that waits in a queue; one without a token if none does."""
        return self.service.poll_activity_task_queue(
            activity_tasks.PollActivityTaskQueueRequest(
                namespace=NAMESPACE,
                task_queue=TaskQueue(name=queue or self.queue),
                identity=WORKER,
            )
        )

    def take_activity(self, queue: str = "") -> activity_tasks.PollActivityTaskQueueResponse:
        """The attempt that waits, which must be one."""
        task = self.poll_activity(queue)
        assert task.task_token, "no attempt waits"
        return task

    def complete_activity(self, task: Any, *result: Any) -> None:
        """Report an attempt's result."""
        self.service.respond_activity_task_completed(
            activity_tasks.RespondActivityTaskCompletedRequest(
                namespace=NAMESPACE,
                task_token=task.task_token,
                result=values(*result) if result else None,
                identity=WORKER,
            )
        )

    def fail_activity(self, task: Any, reason: Failure | None = None) -> None:
        """Report an attempt's failure."""
        self.service.respond_activity_task_failed(
            activity_tasks.RespondActivityTaskFailedRequest(
                namespace=NAMESPACE,
                task_token=task.task_token,
                failure=reason or failure(),
                identity=WORKER,
            )
        )

    def cancel_activity(self, task: Any, *details: Any) -> None:
        """Report that an attempt ended because it was asked to."""
        self.service.respond_activity_task_canceled(
            activity_tasks.RespondActivityTaskCanceledRequest(
                namespace=NAMESPACE,
                task_token=task.task_token,
                details=values(*details) if details else None,
                identity=WORKER,
            )
        )

    def beat(self, task: Any, *details: Any) -> activity_tasks.RecordActivityTaskHeartbeatResponse:
        """Report that an attempt is alive."""
        return self.service.record_activity_task_heartbeat(
            activity_tasks.RecordActivityTaskHeartbeatRequest(
                namespace=NAMESPACE,
                task_token=task.task_token,
                details=values(*details) if details else None,
                identity=WORKER,
            )
        )


class Run:
    """One run and the calls that a client makes of it, in the test's own thread."""

    def __init__(self, world: World, handle: WorkflowHandle[Any, Any]) -> None:
        self.world = world
        self.handle = handle
        self.id = handle.id
        self.run_id = handle.run_id or handle.result_run_id or ""

    def result(self, **options: Any) -> Any:
        """Wait for the end of the run and those that follow it; its result."""
        return do(self.handle.result(**options))

    def signal(self, signal: Any, *args: Any) -> None:
        do(self.handle.signal(signal, args=args))

    def query(self, query: Any, *args: Any, **options: Any) -> Any:
        return do(self.handle.query(query, args=args, **options))

    def update(self, update: Any, *args: Any, **options: Any) -> Any:
        """Send an update and wait for its result."""
        return do(self.handle.execute_update(update, args=args, **options))

    def cancel(self) -> None:
        do(self.handle.cancel())

    def terminate(self, *details: Any, reason: str | None = None) -> None:
        do(self.handle.terminate(*details, reason=reason))

    def describe(self) -> Any:
        """This run, described."""
        return do(self._this.describe())

    @property
    def pending_task(self) -> Any:
        """Its outstanding workflow task, described; None without one."""
        return self.describe().raw_description.pending_workflow_task

    @property
    def pending_activities(self) -> list[Any]:
        """Its open activities, described."""
        return list(self.describe().raw_description.pending_activities)

    @property
    def status(self) -> str:
        """The name of its status."""
        found: str = self.describe().status.name
        return found

    def history(self) -> History:
        """Its history as it is exported."""
        return History(do(self._this.fetch_history()).to_json_dict())

    def kinds(self) -> list[str]:
        """The types of its events."""
        return self.history().kinds

    def current(self) -> "Run":
        """The newest run of the workflow id."""
        found = self.world.run(self.id)
        return self.world.run(self.id, found.describe().run_id)

    def next(self) -> "Run":
        """The run that its last event names."""
        run_id = self.history()[-1]["newExecutionRunId"]
        assert run_id, f"no run follows\n{self.history()!r}"
        return self.world.run(self.id, run_id)

    def chain(self) -> list["Run"]:
        """This run and those that follow it."""
        found = [self]
        while found[-1].history()[-1]["newExecutionRunId"]:
            found.append(found[-1].next())
        return found

    @property
    def _this(self) -> WorkflowHandle[Any, Any]:
        client = self.world.client
        return client.get_workflow_handle(self.id, run_id=self.run_id or None)


def wait_history(world: World, key: RunKey, next_event_id: int, timeout: timedelta) -> None:
    """For dispatchers: work until the history has grown."""

    def grown() -> bool:
        head = world.store.head(key.namespace, key.workflow_id, key.run_id)
        return head is None or head.next_event_id > next_event_id

    what = f"an event after {next_event_id - 1} of {key.workflow_id}"
    world.work_until(grown, timeout, what, patient=True)


def wait_update(
    world: World, key: RunKey, update_id: str, version: int, timeout: timedelta
) -> None:
    """For dispatchers: work until something happened to the update."""

    def moved() -> bool:
        update = world.store.read_update(key, update_id)
        if update is None or update.version > version:
            return True
        state = world.store.read_state(key.namespace, key.workflow_id, key.run_id)
        return state is None or not state.is_open

    world.work_until(moved, timeout, f"an answer of update {update_id}")
