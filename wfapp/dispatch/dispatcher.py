"""The engine's Dispatcher over Celery: announces after a commit, never raises or blocks long."""

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from wfapp.dispatch import messages
from wfapp.dispatch.following import keep
from wfapp.dispatch.messages import Outgoing
from wfapp.dispatch.notices import (
    Notices,
    closed_topic,
    history_topic,
    tasks_topic,
    update_topic,
)
from wfapp.dispatch.publisher import Backlog, Publisher
from wfapp.dispatch.queues import DEFAULT_TASK_QUEUE, QueueNames
from wfcore.history.effects import (
    DispatchActivity,
    DispatchWorkflowTask,
    Effect,
    NotifyHistory,
    NotifyUpdate,
    WakeTicker,
)
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.rpc.info import WorkflowQueryResult
from wfcore.service.ports import QueryTask, RunKey, Store

logger = logging.getLogger(__name__)

#: A ticker looks at least this often, so that only nearer deadlines need a hint.
TICKER_POLL = timedelta(seconds=1)
OPEN = (Status.RUNNING, Status.PAUSED)


class HistoryNotices:
    """The half of a Dispatcher that is the same however work travels: waiting and questions.

    `resting` lets go of this thread's database connection: who waits for long needs none.
    """

    lists_workers = False

    def __init__(
        self, notices: Notices, store: Store, resting: Callable[[], None] = lambda: None
    ) -> None:
        self.notices = notices
        self._store = store
        self._resting = resting

    def wait_history(
        self, key: RunKey, next_event_id: int, timeout: timedelta, closed: bool = False
    ) -> None:
        """Return when the history may have grown so far; see `wfcore.service.ports.Dispatcher`."""

        def happened() -> bool:
            head = self._store.head(key.namespace, key.workflow_id, key.run_id)
            if head is None or head.status not in OPEN:
                return True
            return not closed and head.next_event_id > next_event_id

        topic = closed_topic(key.run_id) if closed else history_topic(key.run_id)
        self.notices.wait(topic, timeout, happened, self._resting)

    def wait_update(self, key: RunKey, update_id: str, version: int, timeout: timedelta) -> None:
        """Return when an update may have a later version."""
        topic = update_topic(key.run_id)

        def happened() -> bool:
            return self.has_moved(key, update_id, version)

        self.notices.wait(topic, timeout, happened, self._resting)

    def has_moved(self, key: RunKey, update_id: str, version: int) -> bool:
        """Whether something happened to an update, or to its run."""
        update = self._store.read_update(key, update_id)
        if update is None or update.version > version:
            return True
        head = self._store.head(key.namespace, key.workflow_id, key.run_id)
        return head is None or head.status not in OPEN

    def wait_tasks(self, namespace: str, task_queue: str, timeout: timedelta) -> None:
        """Return when work may wait in a queue."""
        topic = tasks_topic(namespace, task_queue)
        self.notices.wait(topic, timeout, lambda: False, self._resting)

    def answer_query(self, query_id: str, answer: WorkflowQueryResult) -> bool:
        """Hand an answer to who asked."""
        return self.notices.reply(query_id, msgspec.json.encode(answer))

    def wait_answer(self, query_id: str, timeout: timedelta) -> WorkflowQueryResult | None:
        """The answer, or None after `timeout`."""
        answer = self.notices.take_reply(query_id, timeout, self._resting)
        return msgspec.json.decode(answer, type=WorkflowQueryResult) if answer else None

    def forget_query(self, query_id: str) -> None:
        """Nobody waits for an answer any more."""
        self.notices.forget_reply(query_id)

    def notify(self, effects: Sequence[Effect]) -> None:
        """Wake who waits for what these effects announce."""
        topics = []
        for effect in effects:
            match effect:
                case NotifyHistory():
                    topics.append(history_topic(effect.run_id))
                    if effect.closed:
                        topics.append(closed_topic(effect.run_id))
                case NotifyUpdate():
                    topics.append(update_topic(effect.run_id))
                case DispatchWorkflowTask() | DispatchActivity():
                    topics.append(tasks_topic(effect.namespace, effect.task_queue))
                case WakeTicker(at=at) if at - datetime.now(UTC) < TICKER_POLL:
                    self.notices.wake_ticker()
        if topics:
            self.notices.publish(list(dict.fromkeys(topics)))


class CeleryDispatcher(HistoryNotices):
    """Work travels as Celery messages.

    `celery_task` gives the Celery queue to which the app routes the task of this name, or None when
    the app has no such task. `serving` tells whether a live worker takes work of a task queue.
    """

    lists_workers = True

    def __init__(
        self,
        *,
        publisher: Publisher,
        names: QueueNames,
        notices: Notices,
        store: Store,
        celery_task: Callable[[str], str | None],
        serving: Callable[[str], bool],
        resting: Callable[[], None],
    ) -> None:
        super().__init__(notices, store, resting)
        self._serving = serving
        self._publisher = publisher
        self._names = names
        self._celery_task = celery_task
        self._backlog = Backlog(publisher)

    def dispatch(self, effects: Sequence[Effect]) -> None:
        """Announce, after the commit."""
        try:
            outgoing = [
                message
                for effect in effects
                if isinstance(effect, DispatchWorkflowTask | DispatchActivity)
                and not keep(effect)
                and (message := self._message(effect)) is not None
            ]
            self._publisher.publish(outgoing)
            self.notify(effects)
        except Exception:  # the caller has committed: whatever went wrong here, the ticker repeats
            logger.exception("announcing failed", extra={"action": "dispatch_failed"})

    def dispatch_into_empty(
        self, effects: Iterable[DispatchWorkflowTask | DispatchActivity]
    ) -> int:
        """Announce again what belongs into queues in which nothing stands; how many were sent."""
        outgoing: list[Outgoing] = []
        empty: dict[str, bool] = {}
        for effect in effects:
            message = self._message(msgspec.structs.replace(effect, sent=0))
            if message is None:
                continue
            if message.queue not in empty:
                empty[message.queue] = self._publisher.length(message.queue) == 0
            if empty[message.queue]:
                outgoing.append(message)
        return len(outgoing) if self._publisher.publish(outgoing) else 0

    def dispatch_query(self, task: QueryTask) -> None:
        """Ask a worker of the task's queue."""
        message = messages.query_message(task, self._names.workflows(task.task_queue))
        self._publisher.publish([message])

    def take_query(self, namespace: str, task_queue: str) -> QueryTask | None:
        """None: messages bring questions to workers by themselves."""

    def note_worker(self, namespace: str, task_queue: str) -> None:
        """Nothing: workers are seen by their leases."""

    def worker_seen(self, namespace: str, task_queue: str) -> bool:
        """Whether a live worker takes workflow tasks of this queue, in whatever namespace."""
        return self._serving(task_queue)

    def _message(self, effect: DispatchWorkflowTask | DispatchActivity) -> Outgoing | None:
        if isinstance(effect, DispatchWorkflowTask):
            message = messages.workflow_task_message(
                effect, self._names.workflows(effect.task_queue)
            )
        else:
            message = self._activity_message(effect)
        if effect.sent and not self._backlog.may_send_again(
            message.queue, lambda limit: self._unclaimed(effect, limit)
        ):
            return None
        return message

    def _activity_message(self, effect: DispatchActivity) -> Outgoing:
        routed = self._celery_task(effect.activity_type)
        if routed is None:
            return messages.activity_message(effect, self._names.activities(effect.task_queue))
        if effect.task_queue != DEFAULT_TASK_QUEUE:
            routed = self._names.activities(effect.task_queue)
        return messages.celery_task_message(effect, routed)

    def _unclaimed(self, effect: DispatchWorkflowTask | DispatchActivity, limit: int) -> int:
        if isinstance(effect, DispatchWorkflowTask):
            found: Sequence[object] = self._store.unclaimed_workflow_tasks(
                effect.namespace, effect.task_queue, limit
            )
        else:
            found = self._store.unclaimed_activities(
                effect.namespace, effect.task_queue, self._store.now(), limit
            )
        return len(found)
