"""What a running activity knows and may ask for; filled by the worker that runs it.

The context is found through a context variable, so it holds in the activity's own thread or task
and in what is started from there with a copied context.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NoReturn

from wfcore.common import MetricMeter, Priority, RetryPolicy
from wfcore.converter import PayloadConverter
from wfcore.exceptions import CompleteAsyncError


@dataclass(frozen=True)
class Info:
    """The running activity.

    `scheduled_time` is that of the activity, `current_attempt_scheduled_time` that of this
    attempt. The workflow's fields are None for an activity that no workflow called.
    """

    activity_id: str
    activity_type: str
    attempt: int
    current_attempt_scheduled_time: datetime
    heartbeat_details: Sequence[Any]
    heartbeat_timeout: timedelta | None
    is_local: bool
    namespace: str
    schedule_to_close_timeout: timedelta | None
    scheduled_time: datetime
    start_to_close_timeout: timedelta | None
    started_time: datetime
    task_queue: str
    task_token: bytes
    workflow_id: str | None
    workflow_namespace: str | None
    workflow_run_id: str | None
    workflow_type: str | None
    priority: Priority
    retry_policy: RetryPolicy | None
    """As the server has it, with its defaults filled in."""
    activity_run_id: str | None = None
    """Of a standalone activity."""

    @property
    def in_workflow(self) -> bool:
        """Whether a workflow called the activity."""
        return self.workflow_id is not None

    def log_details(self) -> Mapping[str, Any]:
        """What a log line says of the activity."""
        return {
            "activity_id": self.activity_id,
            "activity_type": self.activity_type,
            "attempt": self.attempt,
            "namespace": self.namespace,
            "task_queue": self.task_queue,
            "workflow_id": self.workflow_id,
            "workflow_run_id": self.workflow_run_id,
            "workflow_type": self.workflow_type,
        }


@dataclass(frozen=True)
class ActivityCancellationDetails:
    """Why an activity was cancelled."""

    not_found: bool = False  # the attempt is over: timed out, completed by another, or reset
    cancel_requested: bool = False
    paused: bool = False
    reset: bool = False
    timed_out: bool = False
    worker_shutdown: bool = False


class Signal:
    """A flag that threads and tasks of any event loop can wait for; set once, from anywhere."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def set(self) -> None:
        with self._lock:
            self._event.set()
            waiters, self._waiters = self._waiters, []
        for loop, waiter in waiters:
            if not loop.is_closed():
                loop.call_soon_threadsafe(waiter.set)

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait_sync(self, timeout_seconds: float | None = None) -> bool:
        """Block until it is set; whether it is set at the end."""
        return self._event.wait(timeout_seconds)

    async def wait(self) -> None:
        """Wait until it is set."""
        waiter = asyncio.Event()
        entry = (asyncio.get_running_loop(), waiter)
        with self._lock:
            if self._event.is_set():
                return
            self._waiters.append(entry)
        try:
            await waiter.wait()
        finally:
            with self._lock:
                if entry in self._waiters:
                    self._waiters.remove(entry)


@dataclass
class Context:
    """All that the functions of this module need; made by the worker or a test environment.

    Attributes:
        info: gives the activity's info, through the interceptors.
        heartbeat: sends one, through the interceptors.
        shield: keeps a cancellation out of a block; None if none is raised into the thread.
        client: the worker's client; None in a sync activity.
    """

    info: Callable[[], Info]
    heartbeat: Callable[..., None]
    payload_converter: PayloadConverter
    shield: Callable[[], AbstractContextManager[None]] | None = None
    metric_meter: MetricMeter = MetricMeter.noop
    client: Any = None
    cancelled: Signal = field(default_factory=Signal)
    worker_shutdown: Signal = field(default_factory=Signal)
    cancellation_details: ActivityCancellationDetails | None = None

    def cancel(self, details: ActivityCancellationDetails) -> None:
        """Tell the activity; only the first reason counts."""
        if not self.cancelled.is_set():
            self.cancellation_details = details
            self.cancelled.set()


_current: ContextVar[Context] = ContextVar("wfcore_activity")


@contextmanager
def entered(context: Context) -> Iterator[None]:
    """Make this the context of the code within."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def _context() -> Context:
    context = _current.get(None)
    if context is None:
        raise RuntimeError(
            "Not in activity context: call this from an activity's own thread or task, or run "
            "the function in wfcore.testing.ActivityEnvironment"
        )
    return context


def in_activity() -> bool:
    """Whether the caller runs inside an activity."""
    return _current.get(None) is not None


def info() -> Info:
    """The running activity.

    Raises:
        RuntimeError: not in an activity; so do the other functions of this module.
    """
    return _context().info()


def client() -> Any:
    """The worker's client, for async activities.

    Raises:
        RuntimeError: not in an activity, or in a sync one.
    """
    found = _context().client
    if found is None:
        raise RuntimeError(
            "No client available. A client is given to async activities only; pass one to the "
            "object whose method this activity is"
        )
    return found


def heartbeat(*details: Any) -> None:
    """Say that the activity is alive, and how far it is.

    The next attempt finds the details in ``info().heartbeat_details``. A heartbeat is also how the
    activity learns that it was cancelled. Calls are cheap: they are sent at most once in 0.8 of
    the heartbeat timeout.
    """
    _context().heartbeat(*details)


def cancellation_details() -> ActivityCancellationDetails | None:
    """Why the activity was cancelled; None if it was not."""
    return _context().cancellation_details


def is_cancelled() -> bool:
    """Whether cancellation was asked for."""
    return _context().cancelled.is_set()


async def wait_for_cancelled() -> None:
    """Wait until cancellation is asked for."""
    await _context().cancelled.wait()


def wait_for_cancelled_sync(timeout: timedelta | float | None = None) -> None:
    """Block until cancellation is asked for, or the timeout (seconds or timedelta) is over."""
    _context().cancelled.wait_sync(_seconds(timeout))


def is_worker_shutdown() -> bool:
    """Whether the worker is stopping."""
    return _context().worker_shutdown.is_set()


async def wait_for_worker_shutdown() -> None:
    """Wait until the worker is stopping."""
    await _context().worker_shutdown.wait()


def wait_for_worker_shutdown_sync(timeout: timedelta | float | None = None) -> None:
    """Block until the worker is stopping, or the timeout (seconds or timedelta) is over."""
    _context().worker_shutdown.wait_sync(_seconds(timeout))


def _seconds(timeout: timedelta | float | None) -> float | None:
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout


def raise_complete_async() -> NoReturn:
    """End the function now; the result comes later through the client's activity handle."""
    raise CompleteAsyncError


def shield_thread_cancel_exception() -> AbstractContextManager[None]:
    """Keep the cancellation that is raised into a sync activity's thread out of a block.

    If cancellation came meanwhile, it is raised at the end of the outermost such block.
    """
    shield = _context().shield
    return shield() if shield else nullcontext()


def payload_converter() -> PayloadConverter:
    """The payload converter with the activity's context."""
    return _context().payload_converter


def metric_meter() -> MetricMeter:
    """A meter whose values carry namespace, task queue and activity type."""
    return _context().metric_meter


class LoggerAdapter(logging.LoggerAdapter[logging.Logger]):
    """Adds the running activity to log lines.

    Attributes:
        activity_info_on_message: append a dictionary to the message.
        activity_info_on_extra: put that dictionary into ``extra["temporal_activity"]``.
        full_activity_info_on_extra: put the `Info` into ``extra["activity_info"]``.
    """

    def __init__(self, logger: logging.Logger, extra: Mapping[str, Any] | None) -> None:
        super().__init__(logger, extra or {})
        self.activity_info_on_message = True
        self.activity_info_on_extra = True
        self.full_activity_info_on_extra = False

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the details; outside of an activity nothing is added."""
        context = _current.get(None)
        extra = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        if context is not None:
            running = context.info()
            if self.activity_info_on_message:
                msg = f"{msg} ({running.log_details()})"
            if self.activity_info_on_extra:
                extra["temporal_activity"] = running.log_details()
            if self.full_activity_info_on_extra:
                extra["activity_info"] = running
        return msg, {**kwargs, "extra": extra}

    @property
    def base_logger(self) -> logging.Logger:
        """The logger behind it, which adds nothing."""
        return self.logger


logger = LoggerAdapter(logging.getLogger("wfcore.activity"), None)
