"""What a host provides. Two sets exist: in memory (`wfcore.testing`) and Django with Celery.

The contract suite in `wfcore.testing.port_contracts` holds for each. All methods are synchronous and
may be called from several threads; nothing here is called while user code runs in a transaction.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from wfcore.history.change import Change
from wfcore.history.effects import Effect, Journal
from wfcore.history.state import InboxItem, MutableState, PendingActivity
from wfcore.protocol.enums import WorkflowExecutionStatus
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.payloads import Memo, SearchAttributes
from wfcore.protocol.rpc.info import WorkflowExecutionInfo


@dataclass(frozen=True, kw_only=True, slots=True)
class RunKey:
    """Names one run."""

    namespace: str
    workflow_id: str
    run_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CurrentRun:
    """The newest run of a workflow id."""

    run_id: str
    status: WorkflowExecutionStatus
    #: request id of the start that made it
    create_request_id: str
    first_execution_run_id: str
    start_time: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class RunHead:
    """What can be told of a run without a lock; may be old by the time it is looked at."""

    key: RunKey
    status: WorkflowExecutionStatus
    task_started: bool
    next_event_id: int
    workflow_type: str
    task_queue: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFilter:
    """Which runs a list asks for; empty parts don't restrict."""

    workflow_id: str = ""
    run_id: str = ""
    workflow_type: str = ""
    task_queue: str = ""
    statuses: tuple[WorkflowExecutionStatus, ...] = ()
    started_after: datetime | None = None
    started_before: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Namespace:
    """Isolates runs; retention belongs to it."""

    name: str
    namespace_id: str
    retention: timedelta
    description: str = ""
    owner_email: str = ""


class Transaction(Protocol):
    """One transaction on one workflow id. Leaving the block commits; an error rolls back."""

    @property
    def now(self) -> datetime:
        """The store's clock, read with the last load; it never goes back within a transaction."""

    def current(self, *, lock: bool = False) -> CurrentRun | None:
        """The newest run; `lock` keeps it from changing (take the run's own lock before)."""

    def load(self, run_id: str) -> MutableState | None:
        """The state of a run, locked until the end; None when there is no such run.

        Raises:
            SnapshotTooNewError: a newer release wrote it; hand the work back.
        """

    def inbox(self, run_id: str) -> list[InboxItem]:
        """What arrived while a workflow task was started, in order; call it after `load`."""

    def activities(
        self,
        run_id: str,
        *,
        scheduled_event_ids: Sequence[int] = (),
        activity_ids: Sequence[str] = (),
    ) -> list[PendingActivity]:
        """Those of the named activities that are open."""

    def events(self, run_id: str, event_ids: Sequence[int]) -> list[HistoryEvent]:
        """Some events by their ids."""

    def seen_request(self, run_id: str, request_id: str) -> bool:
        """Record a signal's request id; True when the run had it already. Kept with the run."""

    def save(self, change: Change) -> None:
        """Store a change, and the run that follows it; a new run becomes the current one.

        Raises:
            StaleActivityError: a pending activity was replaced meanwhile; nothing is stored.
        """

    def on_commit(self, call: Callable[[], None]) -> None:
        """Call after the commit that makes this visible; never after a rollback."""


class Store(Protocol):
    """The truth."""

    def transaction(
        self, namespace: str, workflow_id: str
    ) -> AbstractContextManager[Transaction]: ...

    def now(self) -> datetime:
        """The store's clock."""

    def inside_callers_transaction(self) -> bool:
        """Whether the calling code holds a transaction of its own open, which ours would join."""

    # ---- reading, without locks

    def head(self, namespace: str, workflow_id: str, run_id: str = "") -> RunHead | None:
        """A run, or the current one; None when there is none."""

    def read_state(self, key: RunKey) -> MutableState | None:
        """The state as last committed."""

    def read_activities(self, key: RunKey) -> list[PendingActivity]:
        """All open activities of a run, in order of their scheduled event ids."""

    def read_inbox(self, key: RunKey) -> list[InboxItem]:
        """All waiting arrivals of a run, in order."""

    def read_events(
        self,
        key: RunKey,
        *,
        first: int = 1,
        last: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> list[HistoryEvent]:
        """Events by id, both ends included."""

    def read_journal(self, key: RunKey) -> list[Journal]:
        """What operators must know of a run, oldest first."""

    def read_visibility(self, key: RunKey) -> tuple[Memo | None, SearchAttributes | None]:
        """Memo and search attributes as they are now."""

    def namespace(self, name: str) -> Namespace | None:
        """A registered namespace."""

    def namespaces(self) -> list[Namespace]:
        """All registered namespaces, by name."""

    def list_runs(
        self, namespace: str, wanted: RunFilter, *, limit: int, after: bytes = b""
    ) -> tuple[list[WorkflowExecutionInfo], bytes]:
        """A page of runs, newest start first, and the token of the next page (empty: none)."""

    def count_runs(
        self, namespace: str, wanted: RunFilter, *, by_status: bool = False
    ) -> dict[WorkflowExecutionStatus | None, int]:
        """How many runs there are; the key None holds the sum when not grouped."""

    # ---- facts that need no lock on the run

    def put_inbox(
        self,
        key: RunKey,
        item: InboxItem,
        *,
        request_id: str = "",
        replaces: PendingActivity | None = None,
    ) -> int | None:
        """Store an arrival and give its id; atomic with what follows.

        With `request_id`, None when the run had that id already. With `replaces`, that activity
        goes away if its stamp is still the same, else None and nothing is stored.
        """

    def withdraw_inbox(self, key: RunKey, item_id: int) -> bool:
        """Take an arrival back; False when it has been taken in already."""

    def read_activity(self, key: RunKey, scheduled_event_id: int) -> PendingActivity | None:
        """One open activity."""

    def replace_activity(
        self, old: PendingActivity, new: PendingActivity, journal: Sequence[Journal] = ()
    ) -> bool:
        """Replace if the stored stamp is still that of `old`; False when it isn't, or it closed.

        `new.stamp` must be `old.stamp + 1`, except for a heartbeat, which keeps it.
        """

    # ---- finding work

    def due_runs(self, now: datetime, limit: int) -> list[RunKey]:
        """Runs whose `wakeup_at` has come, nearest first."""

    def due_activities(self, now: datetime, limit: int) -> list[PendingActivity]:
        """Pending activities whose `due_at` has come, nearest first."""

    def undelivered(self, before: datetime, limit: int) -> list[RunKey]:
        """Runs with arrivals older than `before` that nobody took in."""

    def next_due(self) -> datetime | None:
        """The nearest `wakeup_at` or `due_at`."""

    def set_wakeup(self, key: RunKey, at: datetime | None, expected_next_event_id: int) -> None:
        """Move `wakeup_at` of a run that was found early, if it hasn't changed."""

    def unclaimed_workflow_tasks(self, namespace: str, task_queue: str, limit: int) -> list[RunKey]:
        """Runs of a queue whose workflow task waits for a worker, oldest first."""

    def unclaimed_activities(
        self, namespace: str, task_queue: str, now: datetime, limit: int
    ) -> list[PendingActivity]:
        """Attempts of a queue that may start and wait for a worker, oldest first."""

    def claims_of(self, owner: str, limit: int) -> tuple[list[RunKey], list[PendingActivity]]:
        """What a worker process holds."""


class Dispatcher(Protocol):
    """Tells workers and waiting readers. Never raises, never blocks long; may lose anything."""

    def dispatch(self, effects: Sequence[Effect]) -> None:
        """Announce, after the commit."""

    def wait_history(self, key: RunKey, next_event_id: int, timeout: float) -> None:
        """Return when a run's history may have grown past `next_event_id`, or after `timeout` s."""

    def wait_tasks(self, namespace: str, task_queue: str, timeout: float) -> None:
        """Return when work may wait in a queue, or after `timeout` s."""


class Ids(Protocol):
    """Where run ids and request ids come from, so that a simulation can repeat itself."""

    def run_id(self, now: datetime) -> str:
        """A UUIDv7 of this time."""

    def request_id(self) -> str:
        """A UUIDv4."""
