"""A dispatcher that loses, doubles, delays and shuffles what it is given, as a broker may.

It never raises; a process that dies while it dispatches is dead, which is no answer.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from wfcore.history.effects import (
    DispatchActivity,
    DispatchWorkflowTask,
    Effect,
    NotifyHistory,
    NotifyUpdate,
)
from wfcore.protocol.rpc.info import WorkflowQueryResult
from wfcore.service.ports import Dispatcher, QueryTask, RunKey
from wfcore.testing.clocks import SimulatedClock
from wfcore.testing.simulation.faults import Fault, Faults, calls_of, disturbed

Work = DispatchWorkflowTask | DispatchActivity | QueryTask

_LONGEST_DELAY_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Message:
    """Something on its way to a worker."""

    work: Work
    due_at: datetime


@disturbed(Dispatcher, calls_of(Dispatcher))
class SimulatedDispatcher:
    """The `Dispatcher` port of a simulation; workers take messages from it."""

    lists_workers = False
    #: How long ago a worker may have asked to count as seen.
    RECENT = timedelta(seconds=30)

    def __init__(self, clock: SimulatedClock, faults: Faults) -> None:
        self._clock = clock
        self.faults = faults
        self.messages: list[Message] = []
        self._lengths: dict[tuple[str, str, str], int] = {}
        self._versions: dict[tuple[str, str, str, str], int] = {}
        self._answers: dict[str, WorkflowQueryResult | None] = {}
        self._workers: dict[tuple[str, str], datetime] = {}

    # ---- what workers do

    def take(self, rng: random.Random, *kinds: type[Work]) -> Work | None:
        """A message of one of these kinds that has arrived: mostly the oldest."""
        now = self._clock.now()
        arrived = [
            message
            for message in self.messages
            if isinstance(message.work, kinds) and message.due_at <= now
        ]
        if not arrived:
            return None
        place = 0
        if len(arrived) > 1 and self.faults.happens(
            Fault.MESSAGE_REORDERED, self.faults.rates.message_reordered, "broker"
        ):
            place = rng.randrange(len(arrived))
        self.messages.remove(arrived[place])
        return arrived[place].work

    def next_arrival(self) -> datetime | None:
        """When the next message arrives that has not yet."""
        return min((message.due_at for message in self.messages), default=None)

    def empty(self) -> None:
        """The broker lost everything."""
        self.messages.clear()

    # ---- the port

    def dispatch(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, DispatchWorkflowTask | DispatchActivity):
                self._send(effect)
            elif isinstance(effect, NotifyHistory) and not self._loses("NotifyHistory"):
                name = (effect.namespace, effect.workflow_id, effect.run_id)
                self._lengths[name] = max(self._lengths.get(name, 0), effect.next_event_id)
            elif isinstance(effect, NotifyUpdate) and not self._loses("NotifyUpdate"):
                update = (effect.namespace, effect.workflow_id, effect.run_id, effect.update_id)
                self._versions[update] = max(self._versions.get(update, 0), effect.version)

    def wait_history(
        self, key: RunKey, next_event_id: int, timeout: timedelta, closed: bool = False
    ) -> None:
        del closed  # waking at each step does no harm
        name = (key.namespace, key.workflow_id, key.run_id)
        until = self._clock.now() + timeout
        self.faults.turns.wait(
            lambda: self._lengths.get(name, 0) > next_event_id,
            lambda: self._clock.now() >= until,
        )

    def wait_update(self, key: RunKey, update_id: str, version: int, timeout: timedelta) -> None:
        update = (key.namespace, key.workflow_id, key.run_id, update_id)
        until = self._clock.now() + timeout
        self.faults.turns.wait(
            lambda: self._versions.get(update, 0) > version,
            lambda: self._clock.now() >= until,
        )

    def wait_tasks(self, namespace: str, task_queue: str, timeout: timedelta) -> None:
        """Simulated workers come back by themselves."""

    def dispatch_query(self, task: QueryTask) -> None:
        self._answers.setdefault(task.query_id, None)
        self._send(task)

    def take_query(self, namespace: str, task_queue: str) -> QueryTask | None:
        now = self._clock.now()
        for message in self.messages:
            if isinstance(message.work, QueryTask) and message.due_at <= now:
                self.messages.remove(message)
                return message.work
        return None

    def answer_query(self, query_id: str, answer: WorkflowQueryResult) -> bool:
        if query_id not in self._answers:
            return False
        if not self._loses("answer"):
            self._answers[query_id] = answer
        return True

    def wait_answer(self, query_id: str, timeout: timedelta) -> WorkflowQueryResult | None:
        until = self._clock.now() + timeout
        self.faults.turns.wait(
            lambda: self._answers.get(query_id) is not None,
            lambda: self._clock.now() >= until,
        )
        return self._answers.get(query_id)

    def forget_query(self, query_id: str) -> None:
        self._answers.pop(query_id, None)

    def note_worker(self, namespace: str, task_queue: str) -> None:
        self._workers[namespace, task_queue] = self._clock.now()

    def worker_seen(self, namespace: str, task_queue: str) -> bool:
        at = self._workers.get((namespace, task_queue))
        return at is not None and self._clock.now() - at < self.RECENT

    # ---- the broker

    def _loses(self, what: str) -> bool:
        return self.faults.happens(Fault.MESSAGE_LOST, self.faults.rates.message_lost, what)

    def _send(self, work: Work) -> None:
        what, rates = type(work).__name__, self.faults.rates
        if self._loses(what):
            return
        doubled = self.faults.happens(Fault.MESSAGE_DOUBLED, rates.message_doubled, what)
        for _ in range(2 if doubled else 1):
            due_at = self._clock.now()
            fiber = self.faults.turns.current
            if fiber is not None and self.faults.happens(
                Fault.MESSAGE_DELAYED, rates.message_delayed, what
            ):
                due_at += timedelta(seconds=fiber.rng.uniform(0, _LONGEST_DELAY_SECONDS))
            self.messages.append(Message(work, due_at))
