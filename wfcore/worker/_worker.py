"""A worker in this process: takes the tasks of one queue and runs them in threads.

Each kind of task has one polling thread. It takes a task only when a slot is free, so what is
claimed runs at once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Protocol, Self, TypedDict

from wfcore.common import HeaderCodecBehavior
from wfcore.converter import DataConverter
from wfcore.protocol.commands import ScheduleActivityTask
from wfcore.protocol.common import ActivityType, TaskQueue
from wfcore.protocol.rpc.activity_tasks import (
    PollActivityTaskQueueRequest,
    PollActivityTaskQueueResponse,
)
from wfcore.protocol.rpc.workflow_tasks import (
    PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse,
)
from wfcore.replay.cache import InstanceCache
from wfcore.service.workflow_service import WorkflowService
from wfcore.worker._activities import (
    DEFAULT_HEARTBEAT_THROTTLE,
    MAX_HEARTBEAT_THROTTLE,
    ActivityTaskRunner,
)
from wfcore.worker._async_loop import in_daemon_thread
from wfcore.worker._first_tasks import FirstTasks
from wfcore.worker._interceptors import Interceptor
from wfcore.worker._local_activities import MAX_CONCURRENT, LocalActivityRunner
from wfcore.worker._polling import Announcements, Poller, Slots
from wfcore.worker._registry import Registry
from wfcore.worker._runners import DEFAULT_RUNNER, WorkflowRunner
from wfcore.worker._watchdog import DEADLOCK_TIMEOUT
from wfcore.worker._workflow_tasks import WorkflowTaskRunner

#: How long one wait for an announcement lasts, so that the worker can stop between two.
_WAIT = timedelta(seconds=0.5)
_DEFAULT_WORKFLOW_TASKS = 8
_DEFAULT_ACTIVITIES = 32
#: So many activities of one workflow task are claimed with it; Temporal's default.
_MOST_EAGER = 3


class WorkerClient(Protocol):
    """What a worker needs of a client."""

    @property
    def service(self) -> WorkflowService: ...

    @property
    def namespace(self) -> str: ...

    @property
    def identity(self) -> str: ...

    @property
    def data_converter(self) -> DataConverter: ...

    @property
    def interceptors(self) -> Sequence[Any]: ...

    @property
    def header_codec_behavior(self) -> HeaderCodecBehavior: ...


class WorkerConfig(TypedDict, total=False):
    """The settings of a worker, as `Worker.config` gives them and `Worker` takes them."""

    client: Any
    task_queue: str
    activities: Sequence[Callable[..., Any]]
    workflows: Sequence[type]
    activity_executor: Executor | None
    workflow_runner: WorkflowRunner
    interceptors: Sequence[Interceptor]
    build_id: str | None
    identity: str | None
    max_cached_workflows: int
    max_concurrent_workflow_tasks: int | None
    max_concurrent_activities: int | None
    max_concurrent_local_activities: int | None
    no_remote_activities: bool
    max_heartbeat_throttle_interval: timedelta
    default_heartbeat_throttle_interval: timedelta
    max_activities_per_second: float | None
    graceful_shutdown_timeout: timedelta
    workflow_failure_exception_types: Sequence[type[BaseException]]
    debug_mode: bool
    max_eager_activity_reservations_per_workflow_task: int
    disable_eager_activity_execution: bool
    on_fatal_error: Callable[[BaseException], Awaitable[None]] | None


#: Settings of Temporal's worker that concern its core, Nexus or versioned deployments.
_WITHOUT_EFFECT = frozenset(
    {
        "activity_task_poller_behavior",
        "deployment_config",
        "disable_payload_error_limit",
        "disable_safe_workflow_eviction",
        "max_concurrent_activity_task_polls",
        "max_concurrent_nexus_tasks",
        "max_concurrent_workflow_task_polls",
        "max_task_queue_activities_per_second",
        "max_workflow_task_external_storage_concurrency",
        "nexus_task_executor",
        "nexus_task_poller_behavior",
        "nonsticky_to_sticky_poll_ratio",
        "patch_activation_callback",
        "plugin_shutdown_timeout",
        "shared_state_manager",
        "sticky_queue_schedule_to_start_timeout",
        "tuner",
        "unsandboxed_workflow_runner",
        "use_worker_versioning",
        "workflow_task_executor",
        "workflow_task_poller_behavior",
    }
)


class Worker:
    """Runs workflows and activities of one task queue.

    Used as ``async with Worker(...)`` or by awaiting `run`. With Celery it isn't needed: Celery's
    workers take the tasks there.

    Args:
        client: gives the service, the namespace and the converter.
        task_queue: the queue whose tasks it takes.
        activities: callables decorated with ``@activity.defn``.
        workflows: classes decorated with ``@workflow.defn``.
        activity_executor: a thread pool for sync activities, by default one of its own.
        workflow_runner: whether calls that break replay are refused.
        interceptors: hooks, after those that the client has.
        build_id: of this worker's code, recorded with workflow tasks.
        identity: who acts, in histories; by default that of the client.
        max_cached_workflows: how many runs are kept in memory.
        max_concurrent_workflow_tasks: how many run at once; likewise for activities and local
            activities.
        no_remote_activities: take workflow tasks only.
        max_activities_per_second: how many activities start in a second.
        graceful_shutdown_timeout: how long running activities may go on before they are cancelled,
            and workflow tasks may wait for their local ones.
        workflow_failure_exception_types: exceptions that fail a workflow instead of its task.
        debug_mode: don't give up workflow code that takes long, for use with a debugger.
        max_eager_activity_reservations_per_workflow_task: how many activities of this worker are
            claimed together with the workflow task that schedules them.
        disable_eager_activity_execution: claim none so.
        on_fatal_error: awaited with the error that ends the worker.
        without_effect: further settings of Temporal's worker, accepted and ignored.

    Raises:
        ValueError: there is nothing to run, or names collide.
        TypeError: a setting is unknown, or something isn't decorated.
    """

    def __init__(
        self,
        client: WorkerClient,
        *,
        task_queue: str,
        activities: Sequence[Callable[..., Any]] = (),
        nexus_service_handlers: Sequence[Any] = (),
        workflows: Sequence[type] = (),
        activity_executor: Executor | None = None,
        workflow_runner: WorkflowRunner = DEFAULT_RUNNER,
        plugins: Sequence[Any] = (),
        interceptors: Sequence[Interceptor] = (),
        build_id: str | None = None,
        identity: str | None = None,
        max_cached_workflows: int = 1000,
        max_concurrent_workflow_tasks: int | None = None,
        max_concurrent_activities: int | None = None,
        max_concurrent_local_activities: int | None = None,
        no_remote_activities: bool = False,
        max_heartbeat_throttle_interval: timedelta = MAX_HEARTBEAT_THROTTLE,
        default_heartbeat_throttle_interval: timedelta = DEFAULT_HEARTBEAT_THROTTLE,
        max_activities_per_second: float | None = None,
        graceful_shutdown_timeout: timedelta = timedelta(),
        workflow_failure_exception_types: Sequence[type[BaseException]] = (),
        debug_mode: bool = False,
        max_eager_activity_reservations_per_workflow_task: int = _MOST_EAGER,
        disable_eager_activity_execution: bool = False,
        on_fatal_error: Callable[[BaseException], Awaitable[None]] | None = None,
        **without_effect: Any,
    ) -> None:
        self._config = WorkerConfig(
            client=client,
            task_queue=task_queue,
            activities=activities,
            workflows=workflows,
            activity_executor=activity_executor,
            workflow_runner=workflow_runner,
            interceptors=interceptors,
            build_id=build_id,
            identity=identity,
            max_cached_workflows=max_cached_workflows,
            max_concurrent_workflow_tasks=max_concurrent_workflow_tasks,
            max_concurrent_activities=max_concurrent_activities,
            max_concurrent_local_activities=max_concurrent_local_activities,
            no_remote_activities=no_remote_activities,
            max_heartbeat_throttle_interval=max_heartbeat_throttle_interval,
            default_heartbeat_throttle_interval=default_heartbeat_throttle_interval,
            max_activities_per_second=max_activities_per_second,
            graceful_shutdown_timeout=graceful_shutdown_timeout,
            workflow_failure_exception_types=workflow_failure_exception_types,
            debug_mode=debug_mode,
            max_eager_activity_reservations_per_workflow_task=(
                max_eager_activity_reservations_per_workflow_task
            ),
            disable_eager_activity_execution=disable_eager_activity_execution,
            on_fatal_error=on_fatal_error,
        )
        _check_options(nexus_service_handlers, plugins, without_effect)
        _check_executor(activity_executor)
        self._registry = Registry(workflows, activities)
        if not self._registry.has_workflows and not self._registry.activities:
            raise ValueError("At least one activity or workflow must be specified")
        self._service = client.service
        self._identity = identity or client.identity
        hooks = [hook for hook in client.interceptors if isinstance(hook, Interceptor)]
        hooks += interceptors
        self._announcements = Announcements()
        self._stopping = threading.Event()
        self._workflow_slots = Slots(max_concurrent_workflow_tasks or _DEFAULT_WORKFLOW_TASKS)
        self.activity_slots = Slots(max_concurrent_activities or _DEFAULT_ACTIVITIES)
        self._activity_runner = self._make_activity_runner(hooks)
        self._activity_poller: Poller[PollActivityTaskQueueResponse] | None = None
        self._eager = None
        if not disable_eager_activity_execution:
            self._eager = _OwnActivities(self, max_eager_activity_reservations_per_workflow_task)
        self._first_tasks: FirstTasks | None = None
        self._local_runner = LocalActivityRunner(
            self._registry,
            client.data_converter,
            client,
            hooks,
            namespace=client.namespace,
            max_concurrent=max_concurrent_local_activities or MAX_CONCURRENT,
        )
        self._cache = InstanceCache(max_cached_workflows)
        self._workflow_runner = self._make_workflow_runner(hooks)
        self._ended: asyncio.Event | None = None
        self._running: asyncio.Task[None] | None = None
        self._leaving = False
        self._cancelled_block: asyncio.Task[Any] | None = None

    def _make_activity_runner(self, hooks: Sequence[Interceptor]) -> ActivityTaskRunner:
        config, client = self._config, self._config["client"]
        return ActivityTaskRunner(
            self._service,
            self._registry,
            client.data_converter,
            self._identity,
            client,
            hooks,
            namespace=client.namespace,
            task_queue=config["task_queue"],
            max_heartbeat_throttle_interval=config["max_heartbeat_throttle_interval"],
            default_heartbeat_throttle_interval=config["default_heartbeat_throttle_interval"],
        )

    def _make_workflow_runner(self, hooks: Sequence[Interceptor]) -> WorkflowTaskRunner:
        config, client = self._config, self._config["client"]
        return WorkflowTaskRunner(
            self._service,
            self._registry,
            client.data_converter,
            self._identity,
            self._cache,
            namespace=client.namespace,
            interceptors=hooks,
            workflow_failure_exception_types=config["workflow_failure_exception_types"],
            build_id=config["build_id"] or "",
            guarded=config["workflow_runner"].guarded,
            header_codec_behavior=client.header_codec_behavior,
            deadlock_timeout=None if config["debug_mode"] else DEADLOCK_TIMEOUT,
            eager=self._eager,
            local_activities=self._local_runner,
        )

    # --- what users see ---

    @property
    def task_queue(self) -> str:
        """The queue whose tasks it takes."""
        return self._config["task_queue"]

    @property
    def client(self) -> Any:
        """The client that it was made with."""
        return self._config["client"]

    @property
    def is_running(self) -> bool:
        """Whether it takes or finishes tasks now."""
        return self._ended is not None and not self._ended.is_set()

    @property
    def is_shutdown(self) -> bool:
        """Whether it has ended."""
        return self._ended is not None and self._ended.is_set()

    def config(self, *, active_config: bool = False) -> WorkerConfig:
        """The settings, with which another worker can be made."""
        del active_config  # plugins, which could change them, are refused
        return self._config.copy()

    async def run(self) -> None:
        """Run until `shutdown`, or until an error ends it.

        Raises:
            RuntimeError: it was started before.
            Exception: the error that ended it.
        """
        if self._ended is not None:
            raise RuntimeError("Already started")
        self._ended = asyncio.Event()
        executors: list[ThreadPoolExecutor] = []
        pollers = self._pollers(executors)
        whole = asyncio.create_task(self._run_to_the_end(self._ended, pollers, executors))
        try:
            await asyncio.shield(whole)
        except asyncio.CancelledError:
            self._stop()
            await whole
            raise

    async def shutdown(self) -> None:
        """Take no more tasks, and wait until those that run have ended."""
        self._stop()
        if self._ended is not None:
            await self._ended.wait()

    async def __aenter__(self) -> Self:
        block = asyncio.current_task()

        def end_block(running: asyncio.Task[None]) -> None:
            if self._leaving or running.cancelled() or running.exception() is None:
                return
            if block is not None:
                self._cancelled_block = block
                block.cancel()

        self._running = asyncio.create_task(self.run())
        self._running.add_done_callback(end_block)
        await asyncio.sleep(0)  # so that it runs when the block begins
        return self

    async def __aexit__(self, *error: object) -> None:
        self._leaving = True
        if self._cancelled_block is not None:
            self._cancelled_block.uncancel()  # the worker's error takes the cancellation's place
        await self.shutdown()
        if self._running is not None:
            await self._running

    # --- running ---

    async def _run_to_the_end(
        self,
        ended: asyncio.Event,
        pollers: list[Poller[Any]],
        executors: list[ThreadPoolExecutor],
    ) -> None:
        try:
            # It notices the end when its wait is over; nobody needs to wait for that.
            listening = asyncio.ensure_future(in_daemon_thread(self._listen))
            outcomes = await asyncio.gather(
                *(in_daemon_thread(poller.take_tasks) for poller in pollers),
                return_exceptions=True,
            )
            self._take_no_first_tasks()
            self._activity_runner.begin_shutdown()
            self._local_runner.begin_shutdown()
            await in_daemon_thread(self._drain)
            # Else the garbage collector would end the code, wherever it comes upon it.
            await in_daemon_thread(self._cache.clear)
        finally:
            for executor in executors:
                executor.shutdown(wait=False)
            ended.set()
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if listening.done():
            errors += [error for error in [listening.exception()] if error is not None]
        else:
            listening.cancel()
        if errors:
            on_fatal_error = self._config["on_fatal_error"]
            if on_fatal_error is not None:
                await on_fatal_error(errors[0])
            raise errors[0]

    def _pollers(self, executors: list[ThreadPoolExecutor]) -> list[Poller[Any]]:
        pollers: list[Poller[Any]] = []
        if self._registry.has_workflows:
            pool = ThreadPoolExecutor(self._workflow_slots.size, "wfcore-workflow")
            executors.append(pool)
            workflow_poller = self._make_workflow_poller(pool)
            pollers.append(workflow_poller)
            self._take_first_tasks(workflow_poller)
        if self._registry.activities and not self._config["no_remote_activities"]:
            pool = ThreadPoolExecutor(self.activity_slots.size, "wfcore-activity")
            executors.append(pool)
            self._activity_poller = self._make_activity_poller(pool)
            pollers.append(self._activity_poller)
        return pollers

    def _take_first_tasks(self, poller: Poller[PollWorkflowTaskQueueResponse]) -> None:
        """Let starts in this process bring their first task here."""
        self._first_tasks = FirstTasks(poller, self._workflow_slots, self._stopping)
        self._service.local_workers.add(self.client.namespace, self.task_queue, self._first_tasks)

    def _take_no_first_tasks(self) -> None:
        if self._first_tasks is not None:
            self._service.local_workers.remove(
                self.client.namespace, self.task_queue, self._first_tasks
            )

    def _make_workflow_poller(self, pool: Executor) -> Poller[PollWorkflowTaskQueueResponse]:
        request = PollWorkflowTaskQueueRequest(
            namespace=self.client.namespace,
            task_queue=TaskQueue(name=self.task_queue),
            identity=self._identity,
        )

        def poll() -> PollWorkflowTaskQueueResponse | None:
            task = self._service.poll_workflow_task_queue(request)
            return task if task.task_token else None

        return Poller(
            poll=poll,
            run=self._workflow_runner.run,
            executor_for=lambda _: pool,
            slots=self._workflow_slots,
            announcements=self._announcements,
            stopping=self._stopping,
        )

    def _make_activity_poller(self, pool: Executor) -> Poller[PollActivityTaskQueueResponse]:
        request = PollActivityTaskQueueRequest(
            namespace=self.client.namespace,
            task_queue=TaskQueue(name=self.task_queue),
            identity=self._identity,
        )
        for_sync = self._config["activity_executor"] or pool

        def poll() -> PollActivityTaskQueueResponse | None:
            task = self._service.poll_activity_task_queue(request)
            return task if task.task_token else None

        def executor_for(task: PollActivityTaskQueueResponse) -> Executor:
            found = self._registry.activity((task.activity_type or ActivityType()).name)
            return pool if found is None or found.is_async else for_sync

        return Poller(
            poll=poll,
            run=self._activity_runner.run,
            executor_for=executor_for,
            slots=self.activity_slots,
            announcements=self._announcements,
            stopping=self._stopping,
            per_second=self._config["max_activities_per_second"],
        )

    def takes(self, activity: ScheduleActivityTask) -> bool:
        """Whether an activity is one of this worker's own."""
        queue = (activity.task_queue or TaskQueue()).name
        name = (activity.activity_type or ActivityType()).name
        return (
            self._activity_poller is not None
            and not self._stopping.is_set()
            and queue in ("", self.task_queue)
            and self._registry.activity(name) is not None
        )

    def start_activity(self, task: PollActivityTaskQueueResponse) -> None:
        """Run a claimed activity for which a slot was taken."""
        if self._activity_poller is not None:
            self._activity_poller.start(task)

    def _listen(self) -> None:
        """Pass announcements of the queue on to the pollers, until told to stop."""
        wait = self._service.host.dispatcher.wait_tasks
        try:
            while not self._stopping.is_set():
                wait(self.client.namespace, self.task_queue, _WAIT)
                self._announcements.announce()
        finally:
            self._stop()  # an error ends the pollers too

    def _stop(self) -> None:
        self._stopping.set()
        self._announcements.announce()

    def _drain(self) -> None:
        """Wait for what runs; after the grace activities are cancelled, and waited for again."""
        grace_seconds = self._config["graceful_shutdown_timeout"].total_seconds()
        end = time.monotonic() + grace_seconds
        if not self._workflow_slots.wait_all_free(grace_seconds):
            self._local_runner.stop()
            self._workflow_slots.wait_all_free(None)
        if not self.activity_slots.wait_all_free(max(end - time.monotonic(), 0.0)):
            self._activity_runner.cancel_all()
            self.activity_slots.wait_all_free(None)


class _OwnActivities:
    """Activities of this worker's queue that its workflow tasks schedule, while slots are free."""

    def __init__(self, worker: Worker, most: int) -> None:
        self._worker = worker
        self._most = most

    def reserve(self, activities: Sequence[ScheduleActivityTask]) -> Sequence[bool]:
        worker, granted = self._worker, 0
        answers: list[bool] = []
        for activity in activities:
            fits = granted < self._most and worker.takes(activity)
            answers.append(fits and worker.activity_slots.take(0))
            granted += answers[-1]
        return answers

    def give_back(self, count: int) -> None:
        for _ in range(count):
            self._worker.activity_slots.give_back()

    def run(self, task: PollActivityTaskQueueResponse) -> None:
        self._worker.start_activity(task)


def _check_options(
    nexus_service_handlers: Sequence[Any], plugins: Sequence[Any], without_effect: dict[str, Any]
) -> None:
    unknown = without_effect.keys() - _WITHOUT_EFFECT
    if unknown:
        raise TypeError(f"unknown settings: {', '.join(sorted(unknown))}")
    if nexus_service_handlers:
        raise ValueError("Nexus is not supported: call the operation from an activity")
    if plugins:
        raise ValueError(
            "plugins are not supported: give the worker what the plugin would set, such as "
            "interceptors and activities"
        )


def _check_executor(executor: Executor | None) -> None:
    if executor is not None and not isinstance(executor, ThreadPoolExecutor):
        raise ValueError(
            f"activity_executor is a {type(executor).__name__}, but only a ThreadPoolExecutor is "
            "supported. For processes run the activities in Celery's prefork pool"
        )
