"""The `Dispatcher` port in memory. It keeps no work: only who waits, and for what."""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from wfcore.history.effects import (
    DispatchActivity,
    DispatchWorkflowTask,
    Effect,
    NotifyHistory,
    NotifyUpdate,
)
from wfcore.protocol.rpc.info import WorkflowQueryResult
from wfcore.service.ports import QueryTask, RunKey
from wfcore.testing.clocks import SimulatedClock


class MemoryDispatcher:
    """The `Dispatcher` port in memory.

    `on_dispatch` sees every effect that is announced, for simulators that deliver messages.
    """

    lists_workers = False
    #: How long ago a worker may have asked to count as seen.
    RECENT = timedelta(seconds=30)
    #: Announcements of a queue that are kept for who comes to wait.
    UNHEARD = 100
    #: Runs of which the length of the history is remembered, so that no reader waits in vain, and
    #: updates of which the version is.
    REMEMBERED = 10_000

    def __init__(
        self,
        clock: SimulatedClock,
        on_dispatch: Callable[[Effect], None] | None = None,
    ) -> None:
        self._clock = clock
        self._on_dispatch = on_dispatch
        self._changed = threading.Condition()
        self._lengths: OrderedDict[tuple[str, str, str], int] = OrderedDict()
        self._versions: OrderedDict[tuple[str, str, str, str], int] = OrderedDict()
        self._announced: dict[tuple[str, str], int] = {}
        self._questions: dict[tuple[str, str], deque[QueryTask]] = {}
        self._answers: dict[str, WorkflowQueryResult | None] = {}
        self._workers: dict[tuple[str, str], datetime] = {}

    def dispatch(self, effects: Sequence[Effect]) -> None:
        with self._changed:
            for effect in effects:
                if isinstance(effect, NotifyHistory):
                    name = (effect.namespace, effect.workflow_id, effect.run_id)
                    # Threads may announce their commits in another order than they made them.
                    known = self._lengths.get(name, 0)
                    self._lengths[name] = max(known, effect.next_event_id)
                    self._lengths.move_to_end(name)
                elif isinstance(effect, NotifyUpdate):
                    update = _update_of(effect, effect.update_id)
                    self._versions[update] = max(self._versions.get(update, 0), effect.version)
                    self._versions.move_to_end(update)
                elif isinstance(effect, DispatchWorkflowTask | DispatchActivity):
                    queue = (effect.namespace, effect.task_queue)
                    self._announced[queue] = min(self._announced.get(queue, 0) + 1, self.UNHEARD)
            while len(self._lengths) > self.REMEMBERED:
                self._lengths.popitem(last=False)
            while len(self._versions) > self.REMEMBERED:
                self._versions.popitem(last=False)
            self._changed.notify_all()
        if self._on_dispatch is not None:
            for effect in effects:
                self._on_dispatch(effect)

    def wait_history(
        self, key: RunKey, next_event_id: int, timeout: timedelta, closed: bool = False
    ) -> None:
        del closed  # waking at each step does no harm
        name = (key.namespace, key.workflow_id, key.run_id)
        with self._changed:
            self._clock.wait_for(
                self._changed, lambda: self._lengths.get(name, 0) > next_event_id, timeout
            )

    def wait_update(self, key: RunKey, update_id: str, version: int, timeout: timedelta) -> None:
        update = _update_of(key, update_id)
        with self._changed:
            self._clock.wait_for(
                self._changed, lambda: self._versions.get(update, 0) > version, timeout
            )

    def wait_tasks(self, namespace: str, task_queue: str, timeout: timedelta) -> None:
        queue = (namespace, task_queue)
        self.note_worker(namespace, task_queue)
        with self._changed:
            self._clock.wait_for(
                self._changed,
                lambda: bool(self._announced.get(queue) or self._questions.get(queue)),
                timeout,
            )
            self._announced[queue] = max(self._announced.get(queue, 0) - 1, 0)
        self.note_worker(namespace, task_queue)

    # ---- queries

    def dispatch_query(self, task: QueryTask) -> None:
        with self._changed:
            self._answers.setdefault(task.query_id, None)
            self._questions.setdefault((task.namespace, task.task_queue), deque()).append(task)
            self._changed.notify_all()

    def take_query(self, namespace: str, task_queue: str) -> QueryTask | None:
        with self._changed:
            questions = self._questions.get((namespace, task_queue))
            while questions:
                task = questions.popleft()
                if task.query_id in self._answers:
                    return task
            return None

    def answer_query(self, query_id: str, answer: WorkflowQueryResult) -> bool:
        with self._changed:
            if query_id not in self._answers:
                return False
            self._answers[query_id] = answer
            self._changed.notify_all()
            return True

    def wait_answer(self, query_id: str, timeout: timedelta) -> WorkflowQueryResult | None:
        with self._changed:
            self._clock.wait_for(
                self._changed, lambda: self._answers.get(query_id) is not None, timeout
            )
            return self._answers.get(query_id)

    def forget_query(self, query_id: str) -> None:
        with self._changed:
            self._answers.pop(query_id, None)

    # ---- who works

    def note_worker(self, namespace: str, task_queue: str) -> None:
        with self._changed:
            self._workers[namespace, task_queue] = self._clock.now()

    def worker_seen(self, namespace: str, task_queue: str) -> bool:
        with self._changed:
            at = self._workers.get((namespace, task_queue))
        return at is not None and self._clock.now() - at < self.RECENT


def _update_of(run: RunKey | NotifyUpdate, update_id: str) -> tuple[str, str, str, str]:
    return (run.namespace, run.workflow_id, run.run_id, update_id)
