"""The workflow task that an activity's end makes ready, claimed by the commit that records the end.

Who ran the activity mostly runs the workflow task next. Taking both in one transaction saves one,
and nobody need be told of the task.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from wfcore.history.requests import ClaimTask
from wfcore.history.state import MutableState, TaskClaim
from wfcore.history.updates import Update
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """A claim that was committed."""

    state: MutableState
    claim: TaskClaim
    updates: dict[str, Update]


@dataclass(kw_only=True, slots=True)
class Follow:
    """What a worker offers with an activity's end.

    Args:
        claim: who would take the task, by a request id that a repeated call keeps.
        serves: whether the worker takes workflow tasks of a task queue.
        known_event_id: the last event of a run that the worker holds; the task brings later ones.
    """

    claim: ClaimTask
    serves: Callable[[str], bool]
    known_event_id: Callable[[str], int] = field(default=lambda run_id: 0)
    #: what was claimed, if anything was
    taken: Taken | None = None
    #: an earlier call has recorded the end and made the claim; its answer was lost
    is_repeated: bool = False
    #: the same, as a worker gets it
    task: PollWorkflowTaskQueueResponse | None = None

    def claim_for(self, state: MutableState) -> ClaimTask | None:
        """The claim, if the worker runs this run's code."""
        return self.claim if self.serves(state.recorded.task_queue) else None
