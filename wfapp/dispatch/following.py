"""Work that follows from what a thread has just done, and that it does at once, without a message.

The end of an activity mostly makes a workflow task ready, and a workflow task mostly schedules an
activity. Who did the one takes the other: a message less for each, and the run's code may still be
in memory. Nothing is done that was not committed before, and losing the process in between costs
what losing any claim or message costs. A chain is bounded in time and length, so that nobody waits
long behind one run. What an activity's own code makes ready, a workflow that it starts and may wait
for, goes out by message at once.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from wfcore.history.effects import DispatchWorkflowTask, Effect
from wfcore.protocol.commands import ScheduleActivityTask
from wfcore.protocol.rpc.activity_tasks import PollActivityTaskQueueResponse
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse

#: A chain takes no further activity after so many seconds, and so many activities.
CHAIN_SECONDS = 0.5
CHAIN_ACTIVITIES = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimedTask:
    """A workflow task that was claimed together with the end of an activity."""

    namespace: str
    task: PollWorkflowTaskQueueResponse


Following = DispatchWorkflowTask | ClaimedTask

# ---- workflow tasks that follow an activity


@dataclass
class _Kept:
    serves: Callable[[str], bool]
    #: whether the activity's code has ended
    ended: bool = False
    tasks: list[Following] = field(default_factory=list)


_kept: ContextVar[_Kept | None] = ContextVar("wfapp_following", default=None)


@contextmanager
def following(serves: Callable[[str], bool]) -> Iterator[list[Following]]:
    """Keep the first workflow task that becomes ready after `end_of_code` within the block, if
    `serves` its queue.
    """
    kept = _Kept(serves)
    reset = _kept.set(kept)
    try:
        yield kept.tasks
    finally:
        _kept.reset(reset)


def end_of_code() -> None:
    """The activity that this thread runs does nothing more: what comes now follows from its end."""
    kept = _kept.get()
    if kept is not None:
        kept.ended = True


def keep(effect: Effect) -> bool:
    """Whether this thread will do what the effect announces, so that nobody need be told."""
    kept = _kept.get()
    if kept is None or not kept.ended or kept.tasks:
        return False
    if not isinstance(effect, DispatchWorkflowTask) or effect.sent:
        return False
    if not kept.serves(effect.task_queue):
        return False
    kept.tasks.append(effect)
    return True


def kept_queues() -> Callable[[str], bool] | None:
    """Of which task queues this thread can take a workflow task now; None: of none."""
    kept = _kept.get()
    return kept.serves if kept is not None and not kept.tasks else None


def keep_claimed(task: ClaimedTask) -> None:
    """This thread has claimed a workflow task and will run it."""
    kept = _kept.get()
    if kept is None:
        raise RuntimeError("nobody would run the task")
    kept.tasks.append(task)


# ---- activities that follow a workflow task


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimedActivity:
    """An activity that was claimed by the commit that scheduled it."""

    task_queue: str
    task: PollActivityTaskQueueResponse


@dataclass(kw_only=True)
class Chain:
    """What one message leads to in one thread."""

    ends_at: float
    activities_left: int
    #: task queue of the activity that is about to be claimed
    reserved: str | None = None
    activities: deque[ClaimedActivity] = field(default_factory=deque)

    def has_room(self) -> bool:
        """Whether the thread would go on with another activity."""
        idle = self.reserved is None and not self.activities
        return idle and self.activities_left > 0 and time.monotonic() < self.ends_at


_chain: ContextVar[Chain | None] = ContextVar("wfapp_chain", default=None)


@contextmanager
def chained(seconds: float = CHAIN_SECONDS, activities: int = CHAIN_ACTIVITIES) -> Iterator[Chain]:
    """Let activities that are scheduled within the block come to this thread."""
    chain = Chain(ends_at=time.monotonic() + seconds, activities_left=activities)
    reset = _chain.set(chain)
    try:
        yield chain
    finally:
        _chain.reset(reset)


class OwnSlot:
    """Room for eager activities: for one, in the thread that runs the workflow task.

    `takes` gives the task queue of an activity that this worker can run so, or None.
    """

    def __init__(self, takes: Callable[[ScheduleActivityTask], str | None]) -> None:
        self._takes = takes

    def reserve(self, activities: Sequence[ScheduleActivityTask]) -> Sequence[bool]:
        """The first one that can be run here; the others go to whoever is free."""
        granted = [False] * len(activities)
        chain = _chain.get()
        if chain is None or not chain.has_room():
            return granted
        for place, activity in enumerate(activities):
            if (task_queue := self._takes(activity)) is not None:
                chain.reserved = task_queue
                granted[place] = True
                break
        return granted

    def run(self, task: PollActivityTaskQueueResponse) -> None:
        """Go on with it when the workflow task is over."""
        chain = _chain.get()
        if chain is None or chain.reserved is None:
            raise RuntimeError("no room was kept for the activity")
        chain.activities.append(ClaimedActivity(task_queue=chain.reserved, task=task))
        chain.activities_left -= 1
        chain.reserved = None

    def give_back(self, count: int) -> None:
        """The activity was not claimed."""
        chain = _chain.get()
        if chain is not None and count:
            chain.reserved = None
