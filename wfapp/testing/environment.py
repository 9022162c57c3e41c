"""Workflows in the test's own thread and transaction: real histories, no broker, no waiting.

Whoever waits for something works for it meanwhile: workflow tasks and activities that stand in the
database are run, and when there is nothing to run the clock moves to the next deadline. So it holds
in Django's TestCase, which never commits, and leaves nothing behind when that rolls back.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self

from django.db import DatabaseError, connections, transaction

from wfapp import wiring
from wfapp.conf import config
from wfapp.dispatch.celery_tasks import extend_tasks
from wfapp.dispatch.claims import new_boot_id
from wfapp.dispatch.discovery import ProjectRegistry
from wfapp.dispatch.dispatcher import HistoryNotices
from wfapp.dispatch.messages import ActivityHint, WorkflowTaskHint
from wfapp.dispatch.notices import LocalNotices
from wfapp.dispatch.resending import unclaimed
from wfapp.dispatch.running import TaskWorker
from wfapp.store import DjangoStore
from wfcore.activity import Definition
from wfcore.history.effects import DispatchActivity, DispatchWorkflowTask, Effect
from wfcore.protocol.rpc.info import WorkflowQueryResult
from wfcore.service.arriving import deliver
from wfcore.service.ids import RandomIds
from wfcore.service.ports import QueryTask, RunKey
from wfcore.service.workflow_service import WorkflowService
from wfcore.worker import Alarm

_BATCH = 100


class NothingToDoError(AssertionError):
    """A test waits for a run that waits for nothing that time brings: for a signal, or an answer
    from outside. Send what it waits for, before the call that waits.
    """


class TestClock:
    """Stands still until it is moved."""

    __test__ = False  # no test, whatever its name begins with

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        """The time; it rises a little each time it is asked, so that nothing happens at once."""
        self._now += timedelta(microseconds=1)
        return self._now

    def move_to(self, at: datetime) -> None:
        """Forward; never back."""
        self._now = max(self._now, at)


class WorkflowEnvironment:
    """An engine of its own for a test, in place of the process's; `get_client()` talks to it.

    Activities run in the thread that waits. Async ones run on a loop in another thread, whose
    database connection sees nothing that a TestCase has not committed.

    Args:
        start: where the clock stands at first; the real time by default.
        skip_time: whether waiting moves the clock; else only `sleep` does.
    """

    def __init__(self, *, start: datetime | None = None, skip_time: bool = True) -> None:
        self.clock = TestClock(start or datetime.now(UTC))
        self.skip_time = skip_time
        self._alias = config().database
        self._stack = ExitStack()
        self._store = DjangoStore(self._alias, clock=self.clock.now)
        self._dispatcher = _Pump(self)
        self.service = WorkflowService(
            self._store, self._dispatcher, RandomIds(), limits=config().limits
        )

    def __enter__(self) -> Self:
        extend_tasks()
        registry = _Registry(wiring.get_celery_app(), wiring.get_registry(), self._alias)
        self._stack.enter_context(
            wiring.replaced(
                store=self._store,
                dispatcher=self._dispatcher,
                service=self.service,
                registry=registry,
            )
        )
        boot_id = new_boot_id()
        self._worker = TaskWorker(
            service=self.service,
            dispatcher=self._dispatcher,
            registry=registry,
            converter=wiring.get_converter(),
            alias=self._alias,
            identity=wiring.get_identity,
            owner=lambda: boot_id,
            draining=lambda: False,
            sends_itself=lambda name: False,
            serves=lambda task_queue: False,
            alarms=_NoAlarms(),
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._worker.forget()
        self._stack.close()

    def now(self) -> datetime:
        """The time as workflows see it."""
        return self.clock.now()

    def sleep(self, duration: timedelta) -> None:
        """Let time pass, and all happen that comes due meanwhile."""
        until = self.clock.now() + duration
        self.run_until_idle()
        while (due := self._store.next_due()) is not None and due <= until:
            self.clock.move_to(due)
            self.service.sweep()
            self.run_until_idle()
        self.clock.move_to(until)
        self.run_until_idle()

    def run_until_idle(self) -> None:
        """Run all that can run now, without letting time pass."""
        while self.step():
            pass

    def step(self) -> bool:
        """Run what waits now; whether there was anything."""
        worked = False
        for key in self._store.undelivered(self.clock.now(), _BATCH):
            deliver(self.service.host, key)
            worked = True
        for effect in list(unclaimed(self._store, self._alias)):
            self._run(effect)
            worked = True
        return worked

    def advance(self) -> bool:
        """Move the clock to the next deadline and do what is due; False if there is none."""
        due = self._store.next_due()
        if due is None:
            return False
        self.clock.move_to(due)
        self.service.sweep()
        return True

    def answer(self, task: QueryTask) -> None:
        """Run a question that was asked."""
        self._worker.ask(task)

    def _run(self, effect: DispatchWorkflowTask | DispatchActivity) -> None:
        if isinstance(effect, DispatchWorkflowTask):
            self._worker.run_workflow_task(WorkflowTaskHint.of(effect))
        else:
            self._worker.claim_and_run(ActivityHint.of(effect))


class _NoAlarms:
    """Heartbeats are sent by nobody: another thread would not see the test's transaction, and take
    the attempt for over. What was recorded last goes to the next attempt with the failure.
    """

    def now(self) -> float:
        """No time passes while an activity runs."""
        return 0.0

    def call_at(self, at: float, call: Callable[[], None]) -> Alarm:
        """An alarm that nobody rings."""
        return Alarm(at, call)


class _Pump(HistoryNotices):
    """A Dispatcher that announces nothing: who waits looks for work in the database himself."""

    def __init__(self, environment: WorkflowEnvironment) -> None:
        super().__init__(LocalNotices(), environment._store)  # noqa: SLF001 - its other half
        self._environment = environment
        self._questions: dict[str, QueryTask] = {}

    def dispatch(self, effects: Sequence[Effect]) -> None:
        """Nothing."""

    def wait_history(
        self, key: RunKey, next_event_id: int, timeout: timedelta, closed: bool = False
    ) -> None:
        """Work, and let time pass, until the history has grown.

        Raises:
            NothingToDoError: nothing that is due can make it grow.
        """
        self._work_until(lambda: self._has_grown(key, next_event_id), key, timeout)

    def wait_update(self, key: RunKey, update_id: str, version: int, timeout: timedelta) -> None:
        """Work, and let time pass, until something happened to the update.

        Raises:
            NothingToDoError: nothing that is due can make it happen.
        """
        self._work_until(lambda: self.has_moved(key, update_id, version), key, timeout)

    def _work_until(self, happened: Callable[[], bool], key: RunKey, timeout: timedelta) -> None:
        environment = self._environment
        until = environment.clock.now() + timeout
        while not happened():
            if environment.step():
                continue
            if not environment.skip_time:
                environment.clock.move_to(until)
                return
            if not environment.advance():
                raise NothingToDoError(
                    f"workflow {key.workflow_id!r} waits for something that neither time nor an "
                    "activity brings: a signal, or an answer from outside. Send it before the "
                    "call that waits"
                )

    def wait_tasks(self, namespace: str, task_queue: str, timeout: timedelta) -> None:
        """Nothing: tasks are run by who waits for them."""

    def dispatch_query(self, task: QueryTask) -> None:
        """Keep the question."""
        self._questions[task.query_id] = task

    def take_query(self, namespace: str, task_queue: str) -> QueryTask | None:
        """None: who asked answers."""

    def wait_answer(self, query_id: str, timeout: timedelta) -> WorkflowQueryResult | None:
        """Answer the question, then give the answer."""
        question = self._questions.pop(query_id, None)
        if question is not None:
            self._environment.answer(question)
        return super().wait_answer(query_id, timedelta())

    def note_worker(self, namespace: str, task_queue: str) -> None:
        """Nothing."""

    def worker_seen(self, namespace: str, task_queue: str) -> bool:
        """Always: it is who asks."""
        return True

    def _has_grown(self, key: RunKey, next_event_id: int) -> bool:
        head = self._store.head(key.namespace, key.workflow_id, key.run_id)
        return head is None or head.next_event_id > next_event_id


class _Registry(ProjectRegistry):
    """The project's, whose activities undo a broken statement as a worker's connection would.

    In a TestCase's transaction an error of the database would else spoil all that follows.
    """

    def __init__(self, app: Any, project: ProjectRegistry, alias: str) -> None:
        super().__init__(app)
        self._project = project
        self._alias = alias

    def workflow(self, name: str) -> Any:
        """The project's."""
        return self._project.workflow(name)

    def celery_queue(self, name: str) -> str | None:
        """The project's."""
        return self._project.celery_queue(name)

    def activity(self, name: str) -> Definition | None:
        """The project's, in a savepoint."""
        found = self._project.activity(name)
        if found is None or found.is_async:
            return found
        return replace(found, fn=self._in_savepoint(found.fn))

    @property
    def workflow_names(self) -> list[str]:
        """The project's."""
        return self._project.workflow_names

    @property
    def activity_names(self) -> list[str]:
        """The project's."""
        return self._project.activity_names

    def _in_savepoint(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            connection = connections[self._alias]
            if not connection.in_atomic_block:
                return fn(*args)
            savepoint = transaction.savepoint(using=self._alias)
            try:
                result = fn(*args)
            except DatabaseError:
                transaction.savepoint_rollback(savepoint, using=self._alias)
                connection.needs_rollback = False
                raise
            transaction.savepoint_commit(savepoint, using=self._alias)
            return result

        return call


def environments() -> Iterator[WorkflowEnvironment]:
    """For fixtures: one environment, left at the end."""
    with WorkflowEnvironment() as environment:
        yield environment
