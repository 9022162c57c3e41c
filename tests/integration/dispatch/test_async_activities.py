"""Activities that Django code completes from outside, also inside its own transaction."""

import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from wfapp import wiring
from wfapp.client import AsyncActivityHandle, get_client
from wfcore.exceptions import ApplicationError, NotFoundError
from wfcore.protocol import commands
from wfcore.protocol.commands import Command
from wfcore.protocol.common import ActivityType, RetryPolicy, TaskQueue
from wfcore.protocol.enums import EventType
from wfcore.protocol.rpc.activity_tasks import PollActivityTaskQueueRequest
from wfcore.protocol.rpc.workflow_tasks import (
    PollWorkflowTaskQueueRequest,
    RespondWorkflowTaskCompletedRequest,
)

pytestmark = pytest.mark.usefixtures("transactional_db", "celery_broker")


class TakeBackError(Exception):
    """Rolls a block back."""


class Waiting:
    """A run that waits for an activity, which a worker has taken."""

    def __init__(self) -> None:
        self.id = str(uuid.uuid4())
        self.queue = TaskQueue(name=f"nobody-{self.id}")
        service = wiring.get_service()
        self.handle = get_client().start_workflow("Order", id=self.id, task_queue=self.queue.name)
        task = service.poll_workflow_task_queue(
            PollWorkflowTaskQueueRequest(namespace="default", task_queue=self.queue)
        )
        schedule = commands.ScheduleActivityTask(
            activity_id="pay",
            activity_type=ActivityType(name="pay"),
            task_queue=self.queue,
            start_to_close_timeout=timedelta(minutes=5),
            retry_policy=RetryPolicy(maximum_attempts=1),
        )
        service.respond_workflow_task_completed(
            RespondWorkflowTaskCompletedRequest(
                task_token=task.task_token, commands=(Command.of(schedule),)
            )
        )
        self.taken = service.poll_activity_task_queue(
            PollActivityTaskQueueRequest(namespace="default", task_queue=self.queue)
        )
        assert self.taken.task_token

    @property
    def named(self) -> AsyncActivityHandle:
        return get_client().get_async_activity_handle(workflow_id=self.id, activity_id="pay")

    @property
    def kinds(self) -> list[EventType]:
        return [event.event_type for event in self.handle.fetch_history().events]


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    wiring.reset()
    yield Waiting()
    wiring.reset()


def test_it_is_completed_by_name(waiting: Waiting) -> None:
    waiting.named.heartbeat("half")
    waiting.named.complete({"paid": 5})
    assert EventType.ACTIVITY_TASK_COMPLETED in waiting.kinds
    with pytest.raises(NotFoundError):
        waiting.named.complete()


def test_it_fails_by_token(waiting: Waiting) -> None:
    token = waiting.taken.task_token
    get_client().get_async_activity_handle(task_token=token).fail(ApplicationError("declined"))
    assert EventType.ACTIVITY_TASK_FAILED in waiting.kinds


def test_inside_a_transaction_it_is_completed_if_that_commits(waiting: Waiting) -> None:
    try:
        with transaction.atomic():
            waiting.named.complete(1)
            raise TakeBackError
    except TakeBackError:
        assert EventType.ACTIVITY_TASK_COMPLETED not in waiting.kinds
    with transaction.atomic():
        waiting.named.complete(2)
        assert EventType.ACTIVITY_TASK_COMPLETED not in waiting.kinds
    assert EventType.ACTIVITY_TASK_COMPLETED in waiting.kinds


def test_coroutines_have_the_twins(waiting: Waiting) -> None:
    async def complete() -> Any:
        await waiting.named.aheartbeat()
        await waiting.named.acomplete(3)

    async_to_sync(complete)()
    assert EventType.ACTIVITY_TASK_COMPLETED in waiting.kinds
