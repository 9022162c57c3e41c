"""A Celery worker's life as the engine sees it: begin, take work, drain, end; on any pool.

On prefork the children claim and the parent keeps their leases, since a child's own thread starves
while C code holds the interpreter's lock. A child tells the parent its boot id through a pipe, so
that the parent needs nobody's row to know whom to keep alive. On other pools the process keeps its
own lease. Nothing is opened, asked or started before the pool has forked.
"""

import atexit
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, Protocol

from celery import bootsteps, signals
from celery.exceptions import TimeLimitExceeded

from wfapp.dispatch.claims import LeaseKeeper, Process, new_boot_id
from wfapp.dispatch.queues import QueueNames


class Stoppable(Protocol):
    """A thread or what owns one."""

    def stop(self) -> None:
        """End it; harmless when it has ended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hooks:
    """What the layers above give to a worker's life. All are called late, and once a process."""

    names: Callable[[], QueueNames]
    identity: Callable[[], str]
    #: makes the thread that keeps leases, from who lives and who was lost
    keeper: Callable[[Callable[[], Sequence[Process]], Callable[[], Sequence[str]]], LeaseKeeper]
    #: gives the claims of a process up
    lose_claims: Callable[[str], None]
    #: starts the ticker's thread, or gives None where another one ticks
    ticker: Callable[[], Stoppable | None]
    #: wraps the tracers of the app's tasks, after Celery has (re)built them
    wrap_tasks: Callable[[], None]
    #: begins to look after database connections, on this kind of pool
    keep_connections: Callable[[str], None]
    #: fails the activity whose Celery task of this id was ended by its time limit (seconds), if
    #: one of these processes holds it
    fail_timed_out: Callable[[Sequence[str], str, float], None]
    #: tells running activities that the worker is stopping
    begin_shutdown: Callable[[], None]
    #: a worker of a queue also takes its workflow tasks
    workflow_queues: Callable[[], bool]
    #: how long a stopping worker's tasks keep their claims
    drain: Callable[[], timedelta]


class Host:
    """This process as a worker: a pool's parent, one of its children, or all in one."""

    def __init__(self) -> None:
        self.draining = False
        self._hooks: Hooks | None = None
        self._boot_id = ""
        self._started_at = datetime.now(UTC)
        self._queues: Sequence[str] = ()
        self._workflow_queues: Sequence[str] = ()
        self._activity_queues: Sequence[str] = ()
        self._pool = ""
        self._slots = 1
        self._worker: Any | None = None
        self._children: _Children | None = None
        self._keeper: LeaseKeeper | None = None
        self._ticker: Stoppable | None = None
        self._draining_since = 0.0
        self._told = False
        self._given_up = False
        self._timed_out: list[tuple[str, float]] = []

    @property
    def boot_id(self) -> str:
        """The owner of claims that this process makes."""
        if not self._boot_id:
            self._boot_id = new_boot_id()
        return self._boot_id

    @property
    def hooks(self) -> Hooks:
        if self._hooks is None:
            raise RuntimeError("wfapp.tasks was not imported: it connects the worker's signals")
        return self._hooks

    def connect(self, hooks: Hooks) -> None:
        """Follow the signals of workers in this process."""
        self._hooks = hooks
        uid = "wfapp.dispatch.lifecycle"
        signals.worker_init.connect(self._on_init, weak=False, dispatch_uid=uid)
        signals.worker_process_init.connect(self._on_child, weak=False, dispatch_uid=uid)
        signals.worker_shutting_down.connect(self._on_draining, weak=False, dispatch_uid=uid)
        signals.worker_shutdown.connect(self._on_end, weak=False, dispatch_uid=uid)
        signals.task_failure.connect(self._on_failure, weak=False, dispatch_uid=uid)

    def serves_workflows(self, task_queue: str) -> bool:
        """Whether this worker takes workflow tasks of the queue."""
        return task_queue in self._workflow_queues

    def serves_activities(self, task_queue: str) -> bool:
        """Whether this worker takes activities of the queue."""
        return task_queue in self._activity_queues

    # --- the parent, or the only process -----------------------------------------------------

    def _on_init(self, sender: Any, **_: Any) -> None:
        self.leave()  # an earlier worker of this process, as tests and the embedded one make them
        self._worker = sender
        self._pool = pool_name(sender.pool_cls)
        self._slots = sender.concurrency if isinstance(sender.concurrency, int) else 1
        names = self.hooks.names()
        consume_too(sender, names, workflows=self.hooks.workflow_queues())
        consumed = list(sender.app.amqp.queues.consume_from)
        self._queues = sorted({name for name in map(names.task_queue, consumed) if name})
        self._workflow_queues = names.serve_workflows(consumed)
        self._activity_queues = names.serve_activities(consumed)
        if self._pool == "prefork":
            self._children = _Children()
        self.hooks.keep_connections(self._pool)
        sender.app.steps["worker"].add(_AfterPool)
        sender.app.steps["consumer"].add(_AfterTasks)

    def begin(self) -> None:
        """The pool stands: keep leases and tick."""
        if self._keeper is not None:
            return
        self._keeper = self.hooks.keeper(self._living, self._lost)
        self._keeper.start()
        self._ticker = self.hooks.ticker()
        atexit.register(self.end)  # a cold shutdown sends no signal

    def end(self) -> None:
        """The pool has ended: stop the threads; what is still claimed is given up."""
        ticker, self._ticker = self._ticker, None
        if ticker is not None:
            ticker.stop()
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.stop()
        self._begin_anew()

    def leave(self) -> None:
        """The pool ends without waiting for its tasks: stop the threads, give nothing up.

        Tasks of threads may still finish, and children have their parent's `end`.
        """
        if self._children is not None or self._keeper is None:
            return
        ticker, self._ticker = self._ticker, None
        if ticker is not None:
            ticker.stop()
        self._keeper.leave()
        self._keeper = None
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._boot_id = ""
        self._children = None
        self.draining = self._told = self._given_up = False

    def _on_draining(self, **_: Any) -> None:
        # In a signal handler: the threads do the rest.
        self.draining = True
        self._draining_since = monotonic()

    def _on_end(self, **_: Any) -> None:
        self.end()

    def _living(self) -> list[Process]:
        if self._children is None:
            living = [self._process(self.boot_id, os.getpid(), self._slots)]
        else:
            living = [
                self._process(boot_id, pid, 1)
                for pid, boot_id in self._children.living(self._pids())
            ]
        if self.draining:
            living = [replace(process, draining=True) for process in living]
            self._drain(living)
        return living

    def _on_failure(self, task_id: str, exception: BaseException, **_: Any) -> None:
        # In the parent, which ends the child next; what follows is the keeper's.
        if self._children is not None and isinstance(exception, TimeLimitExceeded):
            self._timed_out.append((task_id, float(exception.args[0])))

    def _lost(self) -> list[str]:
        if self._children is None:
            return []
        while self._timed_out:
            self.hooks.fail_timed_out(self._children.boot_ids, *self._timed_out[0])
            self._timed_out.pop(0)
        return self._children.lost(self._pids())

    def _drain(self, living: Sequence[Process]) -> None:
        """In the keeper's thread: what the signal handler could not do."""
        if not self._told and self._children is None:
            self.hooks.begin_shutdown()
        self._told = True
        waited = monotonic() - self._draining_since
        if not self._given_up and waited > self.hooks.drain().total_seconds():
            for process in living:
                self.hooks.lose_claims(process.boot_id)
            self._given_up = True

    def _pids(self) -> set[int]:
        pool = getattr(self._worker, "pool", None)
        if pool is None or pool._pool is None:  # noqa: SLF001 - asked by `info` itself, which fails
            return set()
        # The pool itself looks for the dead only every few seconds.
        return {pid for pid in pool.info["processes"] if not _has_ended(pid)}

    def _process(self, boot_id: str, pid: int, slots: int) -> Process:
        return Process(
            boot_id=boot_id,
            pid=pid,
            started_at=self._started_at,
            host=socket.gethostname(),
            identity=getattr(self._worker, "hostname", "") or self.hooks.identity(),
            pool=self._pool,
            slots=slots,
            queues=self._queues,
        )

    # --- a child of the prefork pool -----------------------------------------------------------

    def _on_child(self, **_: Any) -> None:
        self._boot_id = new_boot_id()
        self._keeper = self._ticker = None
        atexit.unregister(self.end)
        self.hooks.wrap_tasks()
        if self._children is not None:
            self._children.tell(self._boot_id)
            self._children = None
        else:  # a fresh interpreter, which has no pipe to the parent
            self._pool = "prefork"
            self.begin()


HOST = Host()


class _Children:
    """Who the pool's children are: each writes its boot id into a pipe that all inherit."""

    LINE = 64

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._boot_ids: dict[int, str] = {}

    def tell(self, boot_id: str) -> None:
        """In the child. A line of this length is written in one piece."""
        line = f"{os.getpid()} {boot_id}".ljust(self.LINE - 1) + "\n"
        os.write(self._writing, line.encode())

    @property
    def boot_ids(self) -> list[str]:
        """In the parent: all that were told and not yet reported as lost."""
        self._read()
        return list(self._boot_ids.values())

    def living(self, pids: set[int]) -> list[tuple[int, str]]:
        """In the parent: those of these processes that have told their boot ids."""
        self._read()
        return [(pid, boot_id) for pid, boot_id in self._boot_ids.items() if pid in pids]

    def lost(self, pids: set[int]) -> list[str]:
        """In the parent: boot ids of those that are gone, each once."""
        self._read()
        gone = [pid for pid in self._boot_ids if pid not in pids]
        return [self._boot_ids.pop(pid) for pid in gone]

    def _read(self) -> None:
        while True:
            try:
                line = os.read(self._reading, self.LINE)
            except BlockingIOError:
                return
            pid, boot_id = line.decode().split()
            self._boot_ids[int(pid)] = boot_id


class _AfterPool(bootsteps.StartStopStep):
    """Begins when the pool has forked."""

    requires = ("celery.worker.components:Pool",)

    def start(self, parent: Any) -> None:
        HOST.begin()

    def terminate(self, parent: Any) -> None:
        HOST.leave()


class _AfterTasks(bootsteps.StartStopStep):
    """Celery builds the tracers anew each time its consumer connects; ours go around them."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: Any) -> None:
        HOST.hooks.wrap_tasks()


def _has_ended(pid: int) -> bool:
    """Whether a child has ended; it is left for its parent's pool to be waited for."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def pool_name(pool: Any) -> str:
    """``prefork``, ``threads``, ``solo``, ``gevent``, ...: from what the worker was given."""
    name = pool if isinstance(pool, str) else pool.__module__
    name = name.partition(":")[0].rpartition(".")[2]
    return {"processes": "prefork", "thread": "threads"}.get(name, name)


def consume_too(worker: Any, names: QueueNames, *, workflows: bool) -> None:
    """Add to a worker's queues those that go with them."""
    queues = worker.app.amqp.queues
    beside = [names.tick, *(names.beside(queues.consume_from) if workflows else [])]
    for name in beside:
        queues.select_add(queues[name] if name in queues else queues.new_missing(name))
