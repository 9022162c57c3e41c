"""Deterministic event loop: callbacks run in the order in which they became ready.

Nothing but workflow code and the jobs of an activation makes a callback ready: there is no I/O, no
clock and no thread. A delay becomes a timer of the workflow, so it is recorded and replayed.
"""

import asyncio
import contextvars
import ctypes
import logging
from asyncio.events import _get_running_loop, _set_running_loop
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol, TypeVar

from wfcore.exceptions import ReadOnlyContextError, RestrictedWorkflowAccessError

_T = TypeVar("_T")
_Callback = Callable[..., object]
_ErrorContext = dict[str, Any]
_ErrorHandler = Callable[[asyncio.AbstractEventLoop, _ErrorContext], object]

_logger = logging.getLogger(__name__)
#: A coroutine is closed again as often as its clean-up code waits for something.
_CLOSE_ATTEMPTS = 10
#: Ended tasks are dropped from the list when it has grown by this many.
_PRUNE_AFTER = 64


class TimerService(Protocol):
    """Turns delays into recorded timers."""

    def start_timer(
        self,
        delay: float,
        callback: _Callback,
        args: tuple[Any, ...],
        context: contextvars.Context | None,
    ) -> asyncio.TimerHandle:
        """Start a timer of so many seconds."""

    def cancel_timer(self, handle: asyncio.TimerHandle) -> None:
        """Cancel what `start_timer` gave."""


class WorkflowFuture(asyncio.Future[_T]):
    """A future whose place in a set is the same on each replay."""

    def __init__(self, loop: "WorkflowLoop") -> None:
        self._number = loop.next_number()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class WorkflowTask(asyncio.Task[_T]):
    """A task whose place in a set and whose default name are the same on each replay.

    `asyncio.wait` and `asyncio.TaskGroup` keep tasks in sets: hashed by address, they would be
    cancelled in another order on replay.
    """

    def __init__(
        self,
        coro: Coroutine[Any, Any, _T],
        *,
        loop: "WorkflowLoop",
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> None:
        self._number = loop.next_number()
        #: Kept, so that an evicted coroutine can be closed in the context that it ran in.
        self.context = contextvars.copy_context() if context is None else context
        super().__init__(coro, loop=loop, name=name or loop.task_name(), context=self.context)
        # An evicted run's tasks are closed by hand; that they are pending is no news.
        self._log_destroy_pending = False

    def __hash__(self) -> int:
        return self._number


class WorkflowLoop(asyncio.AbstractEventLoop):
    """The part of asyncio's loop that is deterministic; the rest raises, naming what to use.

    Attributes:
        workflow_runtime: what `wfcore.workflow` calls inside this loop.
        read_only: a query handler, validator or the like runs: nothing may be scheduled.
        evicting: the run is being thrown out of memory: what is scheduled is dropped.
        guarded: calls that break replay are refused, see `wfcore.replay.sandbox`.
        seconds: the workflow's time since the epoch.
    """

    def __init__(self, *, salt: int, timers: TimerService, guarded: bool) -> None:
        self.workflow_runtime: Any = None
        self.read_only = False
        self.evicting = False
        self.guarded = guarded
        self.seconds = 0.0
        self.report_error: Callable[[_ErrorContext], None] = _ignore
        self._timers = timers
        self._ready: deque[asyncio.Handle] = deque()
        self._tasks: list[WorkflowTask[Any]] = []
        self._prune_at = _PRUNE_AFTER
        self._salt = salt & 0x7FFF_FFFF_FFFF_FFFF
        self._numbered = 0
        self._named = 0
        self._error_handler: _ErrorHandler | None = None

    # --- running --------------------------------------------------------------------------------

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This loop is the thread's running one inside the block."""
        before = _get_running_loop()
        _set_running_loop(self)
        try:
            yield
        finally:
            _set_running_loop(before)

    def run_ready(self, has_failed: Callable[[], bool]) -> None:
        """Run callbacks until none is ready, or until one made `has_failed` true."""
        ready = self._ready
        while ready:
            handle = ready.popleft()
            if handle.cancelled():
                continue
            handle._run()  # noqa: SLF001 - loops are what calls it
            if has_failed():
                return

    def make_ready(self, handle: asyncio.Handle) -> None:
        """Let a callback run that waited for a timer."""
        self._ready.append(handle)

    def has_ready(self) -> bool:
        """Whether a callback waits to run."""
        return bool(self._ready)

    def open_tasks(self) -> list[WorkflowTask[Any]]:
        """Tasks that have not ended, oldest first."""
        self._tasks = [task for task in self._tasks if not task.done()]
        self._prune_at = len(self._tasks) + _PRUNE_AFTER
        return self._tasks

    def close_tasks(self) -> None:
        """Close each coroutine where it stands; what it schedules meanwhile is dropped.

        Raises:
            ValueError: one of them is running now, in another thread.
        """
        self.evicting = True
        with self.entered():
            # The list grows while clean-up code starts tasks of its own.
            for task in self.open_tasks():
                self._close(task)
        self._tasks.clear()
        self._ready.clear()

    def _close(self, task: "WorkflowTask[Any]") -> None:
        close = task.get_coro().close
        for _ in range(_CLOSE_ATTEMPTS):
            try:
                task.context.run(close)
            except RuntimeError:
                continue  # it awaits in a `finally`: it is left where it waits now
            except Exception as error:  # noqa: BLE001 - any error of the code's own clean-up
                self.report_error({"message": "Clean-up code failed", "exception": error})
            return
        _logger.error(
            "Workflow code can't be ended: it catches BaseException and goes on",
            extra={"action": "eviction_failed", "task": task.get_name()},
        )
        # Python would close it again when it is freed, outside of the loop, where such code spins
        # without ever waiting. So it is never freed.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(task.get_coro()))

    def next_number(self) -> int:
        """A number for the next future or task, the same on each replay of this run.

        The salt keeps runs apart in sets that asyncio holds for all loops.
        """
        self._numbered += 1
        return self._salt ^ self._numbered

    def task_name(self) -> str:
        """A name for a task that got none."""
        self._named += 1
        return f"Task-{self._named}"

    def add_task(self, task: WorkflowTask[Any]) -> None:
        """Hold a task, since asyncio itself refers to it only weakly."""
        tasks = self._tasks
        tasks.append(task)
        if len(tasks) > self._prune_at:
            self.open_tasks()

    # --- what asyncio calls ---------------------------------------------------------------------

    def call_soon(  # type: ignore[override]
        self, callback: _Callback, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        if self.read_only:
            raise ReadOnlyContextError(
                "Only reading is allowed here (query handler, validator or condition), "
                "but the code tried to schedule a task"
            )
        handle = asyncio.Handle(callback, args, self, context)
        if not self.evicting:
            self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: _Callback,
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self._timers.start_timer(delay, callback, args, context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: _Callback,
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        # asyncio adds a delay to time(); the sum has lost digits, so the difference is rounded.
        return self._timers.start_timer(round(when - self.seconds, 3), callback, args, context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self._timers.cancel_timer(handle)

    def time(self) -> float:
        return self.seconds

    def create_future(self) -> asyncio.Future[Any]:
        return WorkflowFuture(self)

    def create_task(
        self,
        coro: Generator[Any, None, _T] | Coroutine[Any, Any, _T],
        *,
        name: object = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[_T]:
        task = WorkflowTask(
            coro,  # type: ignore[arg-type]
            loop=self,
            name=None if name is None else str(name),
            context=context,
        )
        self.add_task(task)
        return task

    def get_task_factory(self) -> None:
        return None

    def get_exception_handler(self) -> _ErrorHandler | None:
        return self._error_handler

    def set_exception_handler(self, handler: _ErrorHandler | None) -> None:
        self._error_handler = handler

    def default_exception_handler(self, context: _ErrorContext) -> None:
        self.report_error(context)

    def call_exception_handler(self, context: _ErrorContext) -> None:
        if self.evicting:
            return
        if self._error_handler is None:
            self.report_error(context)
            return
        try:
            self._error_handler(self, context)
        except Exception as error:  # noqa: BLE001 - a handler must not end the loop
            self.report_error(
                {"message": "The exception handler failed", "exception": error, "context": context}
            )

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:
        pass

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<WorkflowLoop of {self.workflow_runtime!r}>"


def current_loop() -> WorkflowLoop | None:
    """The loop of the workflow code that runs in this thread, if any."""
    loop = _get_running_loop()
    return loop if isinstance(loop, WorkflowLoop) else None


def _ignore(_context: _ErrorContext) -> None:
    pass


# --- what is refused ----------------------------------------------------------------------------

_IO = "Do I/O in an activity (workflow.execute_activity)."
_REFUSED = {
    "run_in_executor": "Run blocking code, asyncio.to_thread included, as an activity "
    "(workflow.execute_activity).",
    "set_default_executor": "Run blocking code as an activity (workflow.execute_activity).",
    "shutdown_default_executor": "There is no executor to shut down.",
    "call_soon_threadsafe": "Threads can't reach a workflow: send it a signal, or have an activity "
    "return the result.",
    "run_forever": "The loop already runs.",
    "run_until_complete": "The loop already runs: await the coroutine.",
    "stop": "Return from the workflow's run method instead.",
    "close": "Return from the workflow's run method instead.",
    "shutdown_asyncgens": "Close an asynchronous generator with aclose().",
    "set_task_factory": "Tasks must be the loop's own, so that their order is recorded.",
    "add_signal_handler": "Workflows get signals by @workflow.signal.",
    "remove_signal_handler": "Workflows get signals by @workflow.signal.",
    "subprocess_exec": "Start processes in an activity (workflow.execute_activity).",
    "subprocess_shell": "Start processes in an activity (workflow.execute_activity).",
    **dict.fromkeys(
        (
            "add_reader",
            "remove_reader",
            "add_writer",
            "remove_writer",
            "connect_accepted_socket",
            "connect_read_pipe",
            "connect_write_pipe",
            "create_connection",
            "create_datagram_endpoint",
            "create_server",
            "create_unix_connection",
            "create_unix_server",
            "getaddrinfo",
            "getnameinfo",
            "sendfile",
            "sock_accept",
            "sock_connect",
            "sock_recv",
            "sock_recv_into",
            "sock_recvfrom",
            "sock_recvfrom_into",
            "sock_sendall",
            "sock_sendfile",
            "sock_sendto",
            "start_tls",
        ),
        _IO,
    ),
}


def _refusal(name: str, advice: str) -> Callable[..., NoReturn]:
    def refused(self: WorkflowLoop, *args: object, **kwargs: object) -> NoReturn:
        raise RestrictedWorkflowAccessError(f"loop.{name}()", advice)

    refused.__name__ = name
    refused.__doc__ = f"Refused. {advice}"
    return refused


for _name, _advice in _REFUSED.items():
    setattr(WorkflowLoop, _name, _refusal(_name, _advice))
