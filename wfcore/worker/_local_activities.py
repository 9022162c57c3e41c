"""Local activities: run in threads of this process, beside the workflow task that asked for them.

Each is told to its workflow task once: how it ended, or that it waits for longer than the worker
will. Nothing of it is stored before that task is committed, so a lost task repeats it from its
first attempt.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any

from wfcore.activity import ActivityCancellationDetails, Info
from wfcore.common import Priority, RetryPolicy
from wfcore.converter import ActivitySerializationContext, DataConverter
from wfcore.exceptions import ApplicationError, CancelledError, CompleteAsyncError
from wfcore.history.retries import backoff, decide, fill_policy
from wfcore.protocol.common import TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import RetryState, TimeoutType
from wfcore.protocol.failures import CanceledFailureInfo, Failure, TimeoutFailureInfo
from wfcore.protocol.payloads import Payloads
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse
from wfcore.replay.local_activities import LocalActivityOutcome, LocalActivityTask
from wfcore.worker._activity_attempt import Attempt
from wfcore.worker._alarms import Alarm, Alarms, shared_alarms
from wfcore.worker._conversion import decode_args, encode, encode_failure
from wfcore.worker._interceptors import Interceptor
from wfcore.worker._registry import Registry
from wfcore.workflow import ActivityCancellationType

#: Longest wait between two attempts that is waited for here, where a call names none.
DEFAULT_RETRY_THRESHOLD = timedelta(minutes=1)
#: So many run at once in a worker; Temporal's default.
MAX_CONCURRENT = 100
_EPOCH = datetime.fromtimestamp(0, UTC)


class Wake(Enum):
    """Why a workflow task that waits for its local activities goes on without an outcome."""

    #: it must be answered now, or it times out
    HEARTBEAT = auto()
    #: the worker waits no longer
    STOP = auto()


class LocalActivityRunner:
    """Runs the local activities of any number of workflow tasks at once.

    Args:
        client: what async activities get from `activity.client`.
        max_concurrent: so many run at once; others wait for one of them to end.
        in_thread: entered around each attempt in its thread, for what is bound to threads.
    """

    def __init__(
        self,
        registry: Registry,
        data_converter: DataConverter,
        client: Any = None,
        interceptors: Sequence[Interceptor] = (),
        *,
        namespace: str = "default",
        max_concurrent: int = MAX_CONCURRENT,
        alarms: Alarms | None = None,
        in_thread: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._registry = registry
        # Commands go through the codec as a whole; see `WorkflowTaskRunner`.
        self._data_converter = replace(data_converter, payload_codec=None)
        self._client = client
        self._interceptors = interceptors
        self._namespace = namespace
        self._max_concurrent = max_concurrent
        self._alarms = alarms
        self._in_thread = in_thread
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._open: set[LocalActivities] = set()
        self._running: set[Attempt] = set()
        self._shutting_down = False
        self._stopped = False

    @property
    def alarms(self) -> Alarms:
        """What rings when a wait or a time limit is over."""
        return self._alarms or shared_alarms()

    def begin(self, task: PollWorkflowTaskQueueResponse, interval: timedelta) -> LocalActivities:
        """Begin to run those of a workflow task; it is woken after each interval."""
        activities = LocalActivities(self, task, interval)
        with self._lock:
            self._open.add(activities)
            stopped = self._stopped
        if stopped:
            activities.wake(Wake.STOP)
        return activities

    def ended(self, activities: LocalActivities) -> None:
        """A workflow task waits no more."""
        with self._lock:
            self._open.discard(activities)

    def begin_shutdown(self) -> None:
        """Tell what runs, and what begins later, that the worker is stopping."""
        with self._lock:
            self._shutting_down = True
            running = list(self._running)
        for attempt in running:
            attempt.context.worker_shutdown.set()

    def stop(self) -> None:
        """Have the workflow tasks answered without waiting: another worker begins anew."""
        with self._lock:
            self._stopped = True
            waiting = list(self._open)
        for activities in waiting:
            activities.wake(Wake.STOP)

    def check(self, order: LocalActivityTask) -> None:
        """Refuse what this worker can't run.

        Raises:
            ValueError: there is no activity of this type.
        """
        if self._registry.activity(order.activity_type.name) is None:
            raise ValueError(
                f"Activity function {order.activity_type.name} is not registered on this worker, "
                f"available activities: {', '.join(self._registry.activity_names)}"
            )

    def submit(self, call: Callable[[], None]) -> None:
        """Make a call in a thread, when one is free."""
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._max_concurrent, "wfcore-local")
            threads = self._threads
        threads.submit(call)

    def converter(
        self, task: PollWorkflowTaskQueueResponse, order: LocalActivityTask
    ) -> DataConverter:
        """The converter for what goes into an activity and comes out of it."""
        execution = task.workflow_execution or WorkflowExecution()
        return self._data_converter.with_context(
            ActivitySerializationContext(
                namespace=self._namespace,
                activity_id=order.activity_id,
                activity_type=order.activity_type.name,
                activity_task_queue=_queue(task),
                workflow_id=execution.workflow_id,
                workflow_type=(task.workflow_type or WorkflowType()).name,
                is_local=True,
            )
        )

    def prepare(
        self,
        task: PollWorkflowTaskQueueResponse,
        order: LocalActivityTask,
        times: dict[str, Any],
    ) -> tuple[Attempt, list[Any]]:
        """An attempt and its arguments.

        Raises:
            ApplicationError: the arguments can't be decoded.
        """
        definition = self._registry.activity(order.activity_type.name)
        if definition is None:
            raise LookupError(f"activity {order.activity_type.name} was there a moment ago")
        converter = self.converter(task, order)
        attempt = Attempt(
            definition=definition,
            info=self._info(task, order, times),
            payload_converter=converter.payload_converter,
            client=self._client,
            interceptors=self._interceptors,
            alarms=self.alarms,
        )
        return attempt, decode_args(converter, definition, order.input)

    def call(self, attempt: Attempt, args: Sequence[Any], order: LocalActivityTask) -> Any:
        """Run an attempt in this thread."""
        with self._lock:
            self._running.add(attempt)
            if self._shutting_down:
                attempt.context.worker_shutdown.set()
        try:
            with self._in_thread():
                return attempt.run(args, order.header.fields)
        finally:
            with self._lock:
                self._running.discard(attempt)

    def _info(
        self, task: PollWorkflowTaskQueueResponse, order: LocalActivityTask, times: dict[str, Any]
    ) -> Info:
        execution = task.workflow_execution or WorkflowExecution()
        return Info(
            activity_id=order.activity_id,
            activity_type=order.activity_type.name,
            heartbeat_details=[],
            heartbeat_timeout=None,
            is_local=True,
            namespace=self._namespace,
            schedule_to_close_timeout=order.schedule_to_close_timeout,
            start_to_close_timeout=order.start_to_close_timeout,
            task_queue=_queue(task),
            task_token=b"",
            workflow_id=execution.workflow_id,
            workflow_namespace=self._namespace,
            workflow_run_id=execution.run_id,
            workflow_type=(task.workflow_type or WorkflowType()).name,
            priority=Priority.default,
            retry_policy=RetryPolicy.from_proto(fill_policy(order.retry_policy)),
            **times,
        )


class LocalActivities:
    """Those of one workflow task, and of the tasks that follow it to keep it alive.

    All but `tell` and `wake` is for the workflow task's thread.
    """

    def __init__(
        self, runner: LocalActivityRunner, task: PollWorkflowTaskQueueResponse, interval: timedelta
    ) -> None:
        self.runner = runner
        self._interval_seconds = interval.total_seconds()
        self._news: queue.SimpleQueue[tuple[LocalActivityOutcome | Wake, int]] = queue.SimpleQueue()
        self._activities: dict[int, _LocalActivity] = {}
        self._task_count = 0
        self._alarm: Alarm | None = None
        self._retries = 0
        self.follow(task)

    def follow(self, task: PollWorkflowTaskQueueResponse, received_at: float | None = None) -> None:
        """Go on within this task, which was received at this time of the alarms' clock."""
        clock = self.runner.alarms
        self.task = task
        self._received_at = clock.now() if received_at is None else received_at
        self._started_time = task.started_time or _EPOCH
        self._task_count += 1
        count = self._task_count
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = clock.call_at(
            self._received_at + self._interval_seconds,
            lambda: self._news.put((Wake.HEARTBEAT, count)),
        )

    def now(self) -> datetime:
        """The workflow's time: that of its task's start and what has passed here since then."""
        passed = max(self.runner.alarms.now() - self._received_at, 0.0)
        return self._started_time + timedelta(seconds=passed)

    def take(self, orders: Sequence[LocalActivityTask]) -> None:
        """Start what is new, cancel what is to be cancelled, let go of what is gone.

        Raises:
            ValueError: this worker doesn't know one of them.
        """
        for order in orders:
            if order.number not in self._activities:
                self.runner.check(order)
        gone = self._activities.keys() - {order.number for order in orders}
        for number in gone:
            self._activities.pop(number).let_go(ActivityCancellationDetails(cancel_requested=True))
        for order in orders:
            known = self._activities.get(order.number)
            if known is None:
                known = self._activities[order.number] = _LocalActivity(self, order)
                if not order.is_cancel_requested:
                    known.begin()
            if order.is_cancel_requested:
                known.request_cancel()

    def wait(self) -> LocalActivityOutcome | Wake:
        """The next outcome, or why there is none to wait for."""
        while True:
            news, count = self._news.get()
            if isinstance(news, LocalActivityOutcome):
                if self._activities.pop(news.number, None) is not None:
                    self._retries += count
                    return news
            elif news is Wake.STOP or count == self._task_count:
                return news

    def take_retries(self) -> int:
        """How many attempts after the first ones were made since this was last asked."""
        count, self._retries = self._retries, 0
        return count

    def close(self) -> None:
        """Let go of what is left."""
        if self._alarm is not None:
            self._alarm.cancel()
        for activity in self._activities.values():
            activity.let_go(ActivityCancellationDetails(not_found=True))
        self._activities.clear()
        self.runner.ended(self)

    def tell(self, outcome: LocalActivityOutcome, retries: int) -> None:
        """One has ended, after so many attempts more than one."""
        self._news.put((outcome, retries))

    def wake(self, why: Wake) -> None:
        """Have the workflow task go on."""
        self._news.put((why, 0))


class _LocalActivity:
    """One, from its start to its end or to a long wait.

    An attempt that is over, by its own end or by a time limit, is known by its number: what it
    says later is not heard.
    """

    def __init__(self, owner: LocalActivities, order: LocalActivityTask) -> None:
        self._owner = owner
        self._order = order
        self._policy = fill_policy(order.retry_policy)
        self._lock = threading.Lock()
        self._attempt = order.attempt
        self._begun = order.attempt - 1
        self._running: Attempt | None = None
        self._alarm: Alarm | None = None
        self._is_cancel_requested = False
        self._is_over = False
        self._scheduled_at = order.original_schedule_time or owner.now()
        self._attempt_scheduled_at = owner.now()

    @property
    def _deadline(self) -> datetime | None:
        limit = self._order.schedule_to_close_timeout
        return self._scheduled_at + limit if limit else None

    # ---- from the workflow task

    def begin(self) -> None:
        """Have the first attempt made."""
        self._offer(self._attempt)

    def request_cancel(self) -> None:
        """The code waits for the end of an activity that it has cancelled."""
        with self._lock:
            if self._is_over or self._is_cancel_requested:
                return
            self._is_cancel_requested = True
            running = self._running
            begun = self._begun == self._attempt
            self._is_over = not begun
            if not begun:
                self._set_alarm(None)
        if not begun:
            self._tell(self._begun, failure=_cancelled("Activity cancelled"))
        elif running is not None:
            running.cancel(ActivityCancellationDetails(cancel_requested=True))

    def let_go(self, details: ActivityCancellationDetails) -> None:
        """Nobody waits for it any more; it is cancelled, unless the code abandoned it."""
        with self._lock:
            self._is_over = True
            self._set_alarm(None)
            running, self._running = self._running, None
        abandoned = self._order.cancellation_type is ActivityCancellationType.ABANDON
        if running is not None and not (abandoned and details.cancel_requested):
            running.cancel(details)

    # ---- attempts

    def _offer(self, number: int) -> None:
        """Let an attempt begin as soon as a thread is free."""
        owner, order = self._owner, self._order
        with self._lock:
            if self._is_stale(number):
                return
            now = self._attempt_scheduled_at = owner.now()
            limits = [(self._deadline, TimeoutType.SCHEDULE_TO_CLOSE)]
            if order.schedule_to_start_timeout:
                limits.append(
                    (now + order.schedule_to_start_timeout, TimeoutType.SCHEDULE_TO_START)
                )
            self._limit(number, now, limits)
        owner.runner.submit(lambda: self._run(number))

    def _run(self, number: int) -> None:
        owner, order = self._owner, self._order
        with self._lock:
            if self._is_stale(number):
                return
            now = owner.now()
            deadline = self._deadline
            is_late = deadline is not None and deadline <= now
            if not is_late:
                self._begun = number
                limits = [(deadline, TimeoutType.SCHEDULE_TO_CLOSE)]
                if order.start_to_close_timeout:
                    limits.append((now + order.start_to_close_timeout, TimeoutType.START_TO_CLOSE))
                self._limit(number, now, limits)
        if is_late:
            self._time_out(number, TimeoutType.SCHEDULE_TO_CLOSE)
            return
        try:
            result = self._call(number, now)
        except BaseException as err:  # noqa: BLE001 - whatever users' code raises ends the attempt
            self._fail(number, self._failure(err))
        else:
            self._succeed(number, result)

    def _call(self, number: int, now: datetime) -> Payloads:
        owner, order = self._owner, self._order
        times = {
            "attempt": number,
            "current_attempt_scheduled_time": self._attempt_scheduled_at,
            "scheduled_time": self._scheduled_at,
            "started_time": now,
        }
        attempt, args = owner.runner.prepare(owner.task, order, times)
        with self._lock:
            if self._is_stale(number):
                raise CancelledError("Cancelled")
            self._running = attempt
            is_cancelled = self._is_cancel_requested
        if is_cancelled:
            attempt.cancel(ActivityCancellationDetails(cancel_requested=True))
        result = owner.runner.call(attempt, args, order)
        return encode(owner.runner.converter(owner.task, order), [result])

    def _failure(self, err: BaseException) -> Failure:
        """What the code will see of an attempt's error."""
        if isinstance(err, CompleteAsyncError):
            err = ApplicationError(
                "A local activity can't be completed from outside: use execute_activity",
                type="CompleteAsyncError",
                non_retryable=True,
            )
        if self._is_cancel_requested and isinstance(err, asyncio.CancelledError | CancelledError):
            return _cancelled("Cancelled")
        converter = self._owner.runner.converter(self._owner.task, self._order)
        try:
            return encode_failure(converter, err)
        except Exception as inner:  # noqa: BLE001 - of a converter; the activity needs an end
            return Failure(message=f"Failed building exception result: {inner}")

    # ---- how an attempt ends

    def _succeed(self, number: int, result: Payloads) -> None:
        with self._lock:
            if self._is_stale(number):
                return
            self._end()
        self._tell(number, result=result)

    def _time_out(self, number: int, kind: TimeoutType) -> None:
        with self._lock:
            if self._is_stale(number):
                return
            running, self._running = self._running, None
        if running is not None:
            running.cancel(ActivityCancellationDetails(timed_out=True))
        self._fail(number, _timed_out(kind))

    def _fail(self, number: int, failure: Failure) -> None:
        """Another attempt, a long wait, or the end."""
        with self._lock:
            if self._is_stale(number):
                return
            wait, failure = self._verdict(failure)
            threshold = self._order.local_retry_threshold
            if threshold is None:
                threshold = DEFAULT_RETRY_THRESHOLD
            goes_on = wait is not None and wait <= threshold
            if goes_on:
                self._running = None
                self._attempt = following = number + 1
                self._set_alarm(wait, lambda: self._offer(following))
            else:
                self._end()
        if not goes_on:
            self._tell(number, failure=failure, wait=wait)

    def _verdict(self, failure: Failure) -> tuple[timedelta | None, Failure]:
        """The wait before the next attempt, None if none follows, and why this one failed."""
        if self._is_cancel_requested:
            return None, failure
        application = failure.application_failure_info
        wait = application.next_retry_delay if application is not None else None
        if wait is None:
            wait = backoff(self._policy, self._attempt)
        wait = max(wait, timedelta())
        now = self._owner.now()
        state = decide(self._policy, self._attempt, failure, wait, now, self._deadline)
        if state is RetryState.IN_PROGRESS:
            return wait, failure
        if state is RetryState.TIMEOUT and failure.timeout_failure_info is not None:
            # no attempt fits before the end: reported as that end
            failure = _timed_out(TimeoutType.SCHEDULE_TO_CLOSE)
        return None, failure

    def _tell(
        self,
        attempt: int,
        *,
        result: Payloads | None = None,
        failure: Failure | None = None,
        wait: timedelta | None = None,
    ) -> None:
        self._owner.tell(
            LocalActivityOutcome(
                number=self._order.number,
                attempt=attempt,
                complete_time=self._owner.now(),
                original_schedule_time=self._scheduled_at,
                result=result,
                failure=failure,
                backoff=wait,
            ),
            max(self._begun + 1 - max(self._order.attempt, 2), 0),
        )

    # ---- with the lock held

    def _is_stale(self, number: int) -> bool:
        return self._is_over or number != self._attempt

    def _end(self) -> None:
        self._is_over = True
        self._running = None
        self._set_alarm(None)

    def _limit(
        self, number: int, now: datetime, limits: Sequence[tuple[datetime | None, TimeoutType]]
    ) -> None:
        """Have the attempt time out at the first of these times."""
        known = [(at, kind) for at, kind in limits if at is not None]
        if not known:
            self._set_alarm(None)
            return
        at, kind = min(known)
        self._set_alarm(at - now, lambda: self._time_out(number, kind))

    def _set_alarm(self, wait: timedelta | None, call: Callable[[], None] | None = None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if wait is not None and call is not None:
            alarms = self._owner.runner.alarms
            self._alarm = alarms.call_at(alarms.now() + max(wait.total_seconds(), 0.0), call)


def _queue(task: PollWorkflowTaskQueueResponse) -> str:
    return (task.workflow_execution_task_queue or TaskQueue()).name


def _cancelled(message: str) -> Failure:
    return Failure(message=message, canceled_failure_info=CanceledFailureInfo())


def _timed_out(kind: TimeoutType) -> Failure:
    return Failure(
        message="Activity timed out", timeout_failure_info=TimeoutFailureInfo(timeout_type=kind)
    )
