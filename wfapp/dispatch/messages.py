"""The messages by which work is announced: a wire format that two releases read side by side.

A message is a hint. It holds ids and no user data, except a question with its arguments, and a
worker claims in the database what it names. Names and fields are never changed or taken away; new
fields have defaults, and a reader skips those that it doesn't know. See docs/reference/messages.md.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec

from wfcore.history.effects import DispatchActivity, DispatchWorkflowTask
from wfcore.service.ports import QueryTask, RunKey

FORMAT = 1

WORKFLOW_TASK = "wfapp.workflow_task"
ACTIVITY = "wfapp.activity"
QUERY = "wfapp.query"
TICK = "wfapp.tick"

#: Header of a message that asks a task of the project's own to run as an activity.
HINT_HEADER = "wfapp"

#: Seconds. Celery takes an absent limit, and zero, from the app; ours bound nothing.
NO_TIME_LIMIT = 10 * 365 * 24 * 3600
#: Seconds after which nobody waits for the answer to a question.
QUERY_EXPIRES = 60

_ACTIVITY_IDS = uuid.UUID("6a3b1c52-6a0f-5d0c-9d51-5a6c2f9f7f10")


class MessageTooNewError(Exception):
    """A newer release wrote this message; what it announces stays for a worker of that release."""

    def __init__(self, task: str, message_format: object) -> None:
        self.task = task
        self.message_format = message_format
        super().__init__(
            f"{task} came in format {message_format!r}, this release reads up to {FORMAT}. Nothing "
            "is lost: the work stays in the database. Upgrade the workers of this queue"
        )


class WorkflowTaskHint(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow task of a run waits."""

    namespace: str
    workflow_id: str
    run_id: str
    scheduled_event_id: int = 0
    attempt: int = 1
    task_queue: str = ""

    @classmethod
    def of(cls, effect: DispatchWorkflowTask) -> Self:
        """The content of the message that announces it."""
        return cls(
            namespace=effect.namespace,
            workflow_id=effect.workflow_id,
            run_id=effect.run_id,
            scheduled_event_id=effect.scheduled_event_id,
            attempt=effect.attempt,
            task_queue=effect.task_queue,
        )

    @property
    def effect(self) -> DispatchWorkflowTask:
        """As the engine announces it."""
        return DispatchWorkflowTask(
            namespace=self.namespace,
            workflow_id=self.workflow_id,
            run_id=self.run_id,
            task_queue=self.task_queue,
            scheduled_event_id=self.scheduled_event_id,
            attempt=self.attempt,
        )

    @property
    def key(self) -> RunKey:
        return RunKey(namespace=self.namespace, workflow_id=self.workflow_id, run_id=self.run_id)


class ActivityHint(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of an activity may start; `stamp` names the version of its row."""

    namespace: str
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    activity_type: str
    attempt: int = 1
    stamp: int = 0
    task_queue: str = ""

    @classmethod
    def of(cls, effect: DispatchActivity) -> Self:
        """The content of the message that announces it."""
        return cls(
            namespace=effect.namespace,
            workflow_id=effect.workflow_id,
            run_id=effect.run_id,
            scheduled_event_id=effect.scheduled_event_id,
            activity_type=effect.activity_type,
            attempt=effect.attempt,
            stamp=effect.stamp,
            task_queue=effect.task_queue,
        )

    @property
    def effect(self) -> DispatchActivity:
        """As the engine announces it."""
        return DispatchActivity(
            namespace=self.namespace,
            workflow_id=self.workflow_id,
            run_id=self.run_id,
            task_queue=self.task_queue,
            scheduled_event_id=self.scheduled_event_id,
            activity_type=self.activity_type,
            attempt=self.attempt,
            stamp=self.stamp,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Outgoing:
    """A message to publish; `shown` is what Flower and logs print in place of the arguments."""

    task: str
    queue: str
    task_id: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, Any] = field(default_factory=dict)
    shown: str = "{}"
    #: seconds; None: it never expires
    expires: int | None = None
    #: seconds; None: those of the task itself
    time_limit: int | None = NO_TIME_LIMIT


def workflow_task_message(effect: DispatchWorkflowTask, queue: str) -> Outgoing:
    """Announce a workflow task."""
    return Outgoing(
        task=WORKFLOW_TASK,
        queue=queue,
        task_id=str(uuid.uuid4()),
        kwargs=_fields(WorkflowTaskHint.of(effect)),
        shown=f"{effect.workflow_id!r} task {effect.scheduled_event_id}",
    )


def activity_message(effect: DispatchActivity, queue: str) -> Outgoing:
    """Announce an attempt of an activity that is defined with `wfcore.activity`."""
    return Outgoing(
        task=ACTIVITY,
        queue=queue,
        task_id=str(uuid.uuid4()),
        kwargs=_fields(ActivityHint.of(effect)),
        shown=_shown(effect),
    )


def celery_task_message(effect: DispatchActivity, queue: str) -> Outgoing:
    """Announce an attempt of an activity that is a Celery task of the project.

    The message has the task's own name, so that its limits, signals and views hold for it. It
    carries no arguments: they are read with the claim.
    """
    return Outgoing(
        task=effect.activity_type,
        queue=queue,
        task_id=activity_task_id(effect.run_id, effect.scheduled_event_id),
        headers={HINT_HEADER: _fields(ActivityHint.of(effect))},
        shown=_shown(effect),
        time_limit=None,
    )


def query_message(task: QueryTask, queue: str) -> Outgoing:
    """Ask a worker a question."""
    return Outgoing(
        task=QUERY,
        queue=queue,
        task_id=task.query_id,
        kwargs={"v": FORMAT, "query": msgspec.to_builtins(task)},
        shown=f"{task.workflow_id!r} query {task.query.query_type}",
        expires=QUERY_EXPIRES,
    )


def activity_task_id(run_id: str, scheduled_event_id: int) -> str:
    """The Celery task id of an activity: one for all attempts, as Celery's retries keep it."""
    return str(uuid.uuid5(_ACTIVITY_IDS, f"{run_id}/{scheduled_event_id}"))


def read_workflow_task(fields: Mapping[str, Any]) -> WorkflowTaskHint:
    """The content of a workflow task's message."""
    _check(WORKFLOW_TASK, fields)
    return msgspec.convert(fields, WorkflowTaskHint)


def read_activity(fields: Mapping[str, Any], task: str = ACTIVITY) -> ActivityHint:
    """The content of an activity's message, from its arguments or its header."""
    _check(task, fields)
    return msgspec.convert(fields, ActivityHint)


def read_query(fields: Mapping[str, Any]) -> QueryTask:
    """The content of a question's message."""
    _check(QUERY, fields)
    return msgspec.convert(fields["query"], QueryTask)


def _fields(hint: WorkflowTaskHint | ActivityHint) -> dict[str, Any]:
    return {"v": FORMAT, **msgspec.to_builtins(hint)}


def _shown(effect: DispatchActivity) -> str:
    return (
        f"{effect.activity_type} {effect.scheduled_event_id} of {effect.workflow_id!r}, "
        f"attempt {effect.attempt}"
    )


def _check(task: str, fields: Mapping[str, Any]) -> None:
    written = fields.get("v", FORMAT)
    if not isinstance(written, int) or written > FORMAT:
        raise MessageTooNewError(task, written)
