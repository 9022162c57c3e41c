"""Activities. Decisions about one pending activity look at its row alone, so that claims, heartbeats
and retries never touch the run; the run learns of an activity by the `InboxItem` that ends it.
"""

from dataclasses import dataclass, field
from datetime import datetime

from wfcore.history.effects import DispatchActivity, Effect, Journal
from wfcore.history.limits import DEFAULT_LIMITS, Limits
from wfcore.history.state import InboxItem, PendingActivity
from wfcore.protocol.failures import Failure
from wfcore.protocol.payloads import Payloads


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What becomes of a pending activity: another row, or the fact that ends it.

    Store `row` with `Store.replace_activity`; hand `item` on with `put_inbox(replaces=row)` while a
    workflow task is started, else with `Arrive(item=item, closes=row)`.
    """

    row: PendingActivity | None = None
    item: InboxItem | None = None
    effects: tuple[Effect, ...] = ()
    journal: tuple[Journal, ...] = ()
    #: for the answer of a heartbeat
    cancel_requested: bool = False


def claim(
    row: PendingActivity, now: datetime, *, request_id: str, identity: str = "", owner: str = ""
) -> Decision | None:
    """A worker takes the attempt. None: it runs already or may not start yet. The same poll again
    gets the row as it is."""
    raise NotImplementedError


def check_attempt(row: PendingActivity | None, attempt: int | None = None) -> PendingActivity:
    """The row of a started attempt; `attempt` is that of a task token, None when named by id.

    Raises:
        NotFoundError: it is over, another one runs, or none does.
    """
    raise NotImplementedError


def heartbeat(
    row: PendingActivity, now: datetime, details: Payloads | None, limits: Limits = DEFAULT_LIMITS
) -> Decision:
    """The attempt is alive. The stamp stays. Details above the limit fail the activity."""
    raise NotImplementedError


def complete(
    row: PendingActivity,
    now: datetime,
    result: Payloads | None,
    identity: str = "",
    limits: Limits = DEFAULT_LIMITS,
) -> Decision:
    """The activity succeeded; also for one that nobody took (by id), whose start is made up."""
    raise NotImplementedError


def fail(
    row: PendingActivity,
    now: datetime,
    failure: Failure | None,
    identity: str = "",
    last_heartbeat_details: Payloads | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Decision:
    """The attempt failed: another one, or the end.

    Raises:
        InvalidArgumentError: the failure is no ApplicationFailure.
    """
    raise NotImplementedError


def cancel(
    row: PendingActivity, now: datetime, details: Payloads | None, identity: str = ""
) -> Decision:
    """The attempt reports that it was cancelled.

    Raises:
        InvalidArgumentError: nobody asked for its cancellation.
    """
    raise NotImplementedError


def due(row: PendingActivity, now: datetime, limits: Limits = DEFAULT_LIMITS) -> Decision | None:
    """Timeouts, the end of a backoff, a message to send again. None: nothing is due."""
    raise NotImplementedError


def lost(
    row: PendingActivity, now: datetime, why: str, limits: Limits = DEFAULT_LIMITS
) -> Decision | None:
    """The process that ran the attempt is dead: it counts as one, failed by a TimeoutFailure of type
    HEARTBEAT "worker lost: " + `why`. None: no attempt runs."""
    raise NotImplementedError


def dispatch(row: PendingActivity) -> DispatchActivity:
    """The message by which workers learn of an attempt."""
    raise NotImplementedError
