"""Work that follows from what a thread has just done, and that it does at once, without a message.

The end of an activity mostly makes a workflow task ready. Who ran the activity takes it: a message
less for each step, and the run's code may still be in memory. Losing the process in between costs
what losing a message costs. What the activity's own code makes ready, a workflow that it starts and
may wait for, goes out by message at once.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from wfcore.history.effects import DispatchWorkflowTask, Effect


@dataclass
class _Following:
    serves: Callable[[str], bool]
    #: whether the activity's code has ended
    ended: bool = False
    tasks: list[DispatchWorkflowTask] = field(default_factory=list)


_following: ContextVar[_Following | None] = ContextVar("wfapp_following", default=None)


@contextmanager
def following(serves: Callable[[str], bool]) -> Iterator[list[DispatchWorkflowTask]]:
    """Keep the first workflow task that becomes ready after `end_of_code` within the block, if
    `serves` its queue.
    """
    kept = _Following(serves)
    reset = _following.set(kept)
    try:
        yield kept.tasks
    finally:
        _following.reset(reset)


def end_of_code() -> None:
    """The activity that this thread runs does nothing more: what comes now follows from its end."""
    kept = _following.get()
    if kept is not None:
        kept.ended = True


def keep(effect: Effect) -> bool:
    """Whether this thread will do what the effect announces, so that nobody need be told."""
    kept = _following.get()
    if kept is None or not kept.ended or kept.tasks:
        return False
    if not isinstance(effect, DispatchWorkflowTask) or effect.sent:
        return False
    if not kept.serves(effect.task_queue):
        return False
    kept.tasks.append(effect)
    return True
