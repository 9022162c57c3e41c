"""The way into the state machine: a table of machines. Every transition goes through here.

`start` and `apply` leave a `Change` whose events, rows, effects and next deadline belong together. A
typed error raised by them means that nothing happened: the change is to be thrown away. An error
that stands in the answer is raised after the change has been saved.
"""

from dataclasses import dataclass
from datetime import datetime

from wfcore.history.change import Change
from wfcore.history.limits import DEFAULT_LIMITS, Limits
from wfcore.history.requests import Answer, Request, StartRun
from wfcore.history.state import InboxItem, MutableState


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """What a store must load for a transition besides state and inbox."""

    #: pending activities by scheduled event id, for `Change.activities`
    activities: tuple[int, ...] = ()
    #: event 1 of the run, for `Change.start_event`: the run may be followed by another one
    start_event: bool = False


def needs(state: MutableState, request: Request) -> Needs:
    """What `apply` of this request looks at."""
    raise NotImplementedError


def start(now: datetime, request: StartRun, limits: Limits = DEFAULT_LIMITS) -> Change:
    """Make a run: STARTED, the signal that came with it, and WORKFLOW_TASK_SCHEDULED without a
    backoff."""
    raise NotImplementedError


def apply(change: Change, request: Request, limits: Limits = DEFAULT_LIMITS) -> Answer:
    """Do to a run what is asked, at `change.now`.

    While no workflow task is started, what waits in the inbox and what has come due is taken in
    first.

    Raises:
        NotFoundError: the run is closed, or the workflow task that is answered is over.
        InvalidArgumentError: the whole answer or request is refused.
        ResourceExhaustedError: a signal while the run is about to close (BUSY_WORKFLOW).
    """
    raise NotImplementedError


def waiting_item(
    state: MutableState,
    now: datetime,
    request: Request,
    limits: Limits = DEFAULT_LIMITS,
    waiting: int = 0,
) -> InboxItem:
    """What to store for a request while a workflow task is started, without the run's lock.

    `waiting` is the number of arrivals that wait already.

    Raises:
        NotFoundError, InvalidArgumentError, ResourceExhaustedError: as `apply`.
    """
    raise NotImplementedError
