"""Eager activities: claimed by the commit that schedules them, for the worker that commits.

So many are asked for as there is room for, and room that is not used is given back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from wfcore.protocol.commands import Command, ScheduleActivityTask
from wfcore.protocol.rpc.activity_tasks import PollActivityTaskQueueResponse
from wfcore.protocol.rpc.workflow_tasks import RespondWorkflowTaskCompletedResponse


class EagerActivities(Protocol):
    """Where a worker has room for activities that its own workflow task schedules."""

    def reserve(self, activities: Sequence[ScheduleActivityTask]) -> Sequence[bool]:
        """Which of them to claim with the commit; room is kept for those."""

    def run(self, task: PollActivityTaskQueueResponse) -> None:
        """Run one that was claimed, in a thread of its own."""

    def give_back(self, count: int) -> None:
        """So many that were to be claimed were not."""


def reserve(
    eager: EagerActivities | None, commands: tuple[Command, ...]
) -> tuple[tuple[Command, ...], int]:
    """The commands, asking only for those activities that there is room for, and how many."""
    wanted = [
        (index, command.attributes)
        for index, command in enumerate(commands)
        if isinstance(command.attributes, ScheduleActivityTask)
        and command.attributes.request_eager_execution
    ]
    if not wanted:
        return commands, 0
    activities = [activity for _, activity in wanted]
    granted = eager.reserve(activities) if eager else [False] * len(wanted)
    changed = list(commands)
    for (index, activity), is_granted in zip(wanted, granted, strict=True):
        if not is_granted:
            lazy = msgspec.structs.replace(activity, request_eager_execution=False)
            changed[index] = msgspec.structs.replace(commands[index], attributes=lazy)
    return tuple(changed), sum(granted)


def start(
    eager: EagerActivities | None,
    answer: RespondWorkflowTaskCompletedResponse | None,
    reserved: int,
) -> None:
    """Run the activities that came with the answer, and give back the room for the others."""
    if eager is None or not reserved:
        return
    tasks = answer.activity_tasks if answer is not None else ()
    eager.give_back(reserved - len(tasks))
    for task in tasks:
        eager.run(task)
