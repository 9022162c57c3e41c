"""What a slot has claimed it runs, also when the work before it failed."""

from collections.abc import Sequence
from typing import Any

import pytest

from wfapp.dispatch.following import ClaimedActivity, ClaimedTask, Following, chained
from wfapp.dispatch.running import TaskWorker
from wfcore.protocol.commands import ScheduleActivityTask
from wfcore.protocol.common import ActivityType, TaskQueue
from wfcore.protocol.rpc.activity_tasks import PollActivityTaskQueueResponse
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse


class Registry:
    def activity(self, name: str) -> object | None:
        return None if name == "unknown" else object()


class Worker(TaskWorker):
    """Each workflow task claims an activity, until there were three; the second one fails then."""

    def __init__(self, draining: bool = False) -> None:
        nothing: Any = None
        registry: Any = Registry()
        super().__init__(
            service=nothing,
            dispatcher=nothing,
            registry=registry,
            converter=nothing,
            alias="default",
            identity=lambda: "me",
            owner=lambda: "boot",
            draining=lambda: draining,
            sends_itself=lambda name: name == "shop.task",
            serves=lambda task_queue: True,
            eager=lambda task_queue: task_queue == "default",
        )
        self.done: list[str] = []

    def begin(self) -> None:
        self._go_on(lambda: [ClaimedTask(namespace="default", task=_task())])

    def room(self, *activities: ScheduleActivityTask) -> Sequence[bool]:
        slot: Any = self._eager
        with chained():
            granted: Sequence[bool] = slot.reserve(activities)
            return granted

    def _run_following(self, task: Following) -> None:
        slot: Any = self._eager
        number = sum(done.startswith("task") for done in self.done) + 1
        self.done.append(f"task {number}")
        if number <= 3:
            assert slot.reserve([activity()]) == [True]
            slot.run(PollActivityTaskQueueResponse(activity_id=str(number)))
        if number == 2:
            raise ValueError("the second task fails behind its commit")

    def _followed(self, run: Any) -> Sequence[Following]:
        run()
        return [ClaimedTask(namespace="default", task=_task())]

    def _run_claimed(self, claimed: ClaimedActivity) -> None:
        self.done.append(f"activity {claimed.task.activity_id} of {claimed.task_queue}")


def _task() -> PollWorkflowTaskQueueResponse:
    return PollWorkflowTaskQueueResponse()


def activity(name: str = "greet", task_queue: str = "default") -> ScheduleActivityTask:
    return ScheduleActivityTask(
        activity_type=ActivityType(name=name), task_queue=TaskQueue(name=task_queue)
    )


def test_what_is_claimed_is_run_and_the_failure_told_afterwards() -> None:
    worker = Worker()
    with pytest.raises(ValueError, match="second task"):
        worker.begin()
    assert worker.done == [
        "task 1",
        "activity 1 of default",
        "task 2",
        "activity 2 of default",
        "task 3",
        "activity 3 of default",
        "task 4",
    ]


def test_a_slot_takes_what_this_worker_would_run_from_a_message() -> None:
    foreign = activity(task_queue="elsewhere")
    celery, unknown = activity("shop.task"), activity("unknown")
    assert Worker().room(foreign, celery, unknown) == [False, False, False]
    assert Worker().room(foreign, activity(), activity()) == [False, True, False]
    assert Worker(draining=True).room(activity()) == [False]
