"""What a host provides. Two sets exist: in memory (`wfcore.testing`) and Django with Celery.

The contract suite in `wfcore.testing.port_contracts` holds for each. All methods are synchronous
and may be called from several threads; nothing here is called while user code runs in a
transaction.

Isolation is READ COMMITTED; what is written inside a caller's transaction is seen by that caller
only until it commits. Errors of this module are answers between the service and its ports; those
that reach a caller are in `wfcore.exceptions`.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from wfcore.exceptions import AbortedError, UnavailableError
from wfcore.history.change import Change
from wfcore.history.effects import Effect, Journal
from wfcore.history.state import InboxItem, MutableState, PendingActivity
from wfcore.history.updates import Update
from wfcore.protocol.enums import WorkflowExecutionStatus
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Memo, SearchAttributes
from wfcore.protocol.rpc.info import WorkflowExecutionInfo, WorkflowQuery, WorkflowQueryResult

#: How long a start waits for another open transaction on its workflow id.
START_WAIT = timedelta(seconds=5)


class SnapshotTooNewError(UnavailableError):
    """A newer release wrote this run's state: hand the work back to it, change nothing."""


class StaleActivityError(AbortedError):
    """A pending activity was claimed, retried or closed since it was read; load and begin anew."""


class CurrentRunChangedError(AbortedError):
    """Another start made a run of this workflow id since `Transaction.current` was read."""


class RunBusyError(UnavailableError):
    """The run's lock was not had within the time that the caller was ready to wait."""


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
    """What can be told of a run without a lock; may be old by the time it is looked at.

    A host is free to build it from the snapshot or from columns.
    """

    key: RunKey
    status: WorkflowExecutionStatus
    task_started: bool
    #: the run's code is about to learn that it is to cancel: none of its activities begins
    cancel_unseen: bool
    next_event_id: int
    workflow_type: str
    task_queue: str
    first_execution_run_id: str


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


class QueryTask(Message, frozen=True, kw_only=True):
    """A question for a worker of a queue; it travels as a message and leaves no trace."""

    query_id: str
    namespace: str
    workflow_id: str
    run_id: str
    workflow_type: str
    task_queue: str
    query: WorkflowQuery


class Transaction(Protocol):
    """One transaction on one workflow id. Leaving the block commits; an error rolls back.

    Lock order: the run's row (`load`), then the current run. Inside a caller's transaction this is
    a savepoint of it: an error undoes only what was done here, locks stay until the outer end.
    """

    @property
    def now(self) -> datetime:
        """The store's clock, read with the last load; it never goes back within a transaction."""

    def current(self, *, lock: bool = False) -> CurrentRun | None:
        """The newest run; `lock` keeps it from changing (take the run's own lock before)."""

    def load(self, run_id: str) -> MutableState | None:
        """The state of a run, locked until the end; None when there is no such run.

        The value belongs to the caller, who may change it.

        Raises:
            SnapshotTooNewError: a newer release wrote it; hand the work back.
            RunBusyError: the lock was not had in time.
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
        """Those of the named activities that are open, in order of their scheduled event ids.

        Their rows are locked until the end, so that no heartbeat is overwritten.
        """

    def updates(self, run_id: str, update_ids: Sequence[str]) -> list[Update]:
        """Those of the named updates that the run knows, in any order; call it after `load`."""

    def events(self, run_id: str, event_ids: Sequence[int]) -> list[HistoryEvent]:
        """Some events by their ids, in order."""

    def memo(self, run_id: str) -> Memo | None:
        """The memo of a run as it is now."""

    def search_attributes(self, run_id: str) -> SearchAttributes | None:
        """The search attributes of a run as they are now."""

    def seen_request(self, run_id: str, request_id: str) -> bool:
        """Record a signal's request id; True when the run had it already. Kept with the run.

        The run may be one that this transaction makes and has not saved yet.
        """

    def save(self, change: Change) -> None:
        """Store a change and its `next_run`, each of which is saved once in a transaction.

        A new run becomes the current one, if the current run is still the one that `current` told
        in this transaction (or none, if it told none or was not asked). Its `create_request_id` is
        that of `Volatile`.

        `wakeup_at` is set to `next_deadline` when that is nearer than the stored one, when the
        stored one has come (not after `change.now`), or when they differ by more than a minute;
        else it may stay as it is, earlier than needed. It is never later than `next_deadline`.

        `reported_problems` becomes the search attribute TemporalReportedProblems: see
        `wfcore.service.infos.with_reported_problems`.

        `update_rows` replace what is stored of these updates, or remove it.

        A change that closes the run ends the standing of its activities that are still pending:
        `read_activities` goes on showing them, for all other calls they don't exist.

        Raises:
            StaleActivityError: a pending activity that `change.activities` holds and
                `activity_rows` replaces or removes has another stamp by now, or is gone.
            CurrentRunChangedError: another run of the workflow id came first; begin anew.
            StartContendedError: another open transaction makes a run of this workflow id.
        """

    def on_commit(self, call: Callable[[], None]) -> None:
        """Call after the commit that makes this visible; never after a rollback."""


class Store(Protocol):
    """The truth."""

    def transaction(
        self, namespace: str, workflow_id: str, *, wait: timedelta | None = None
    ) -> AbstractContextManager[Transaction]:
        """Open one; `wait` bounds the time spent on locks (None: the host's own bound)."""

    def now(self) -> datetime:
        """The store's clock, or what the host knows of it without asking: its own clock with the
        difference measured now and then. Hot paths ask often; a transaction has its own `now`.
        """

    def inside_callers_transaction(self) -> bool:
        """Whether the calling code holds a transaction of its own open, which ours would join."""

    def on_commit(self, call: Callable[[], None]) -> None:
        """Call after the caller's transaction commits, or at once when none is open."""

    # ---- reading, without locks

    def head(self, namespace: str, workflow_id: str, run_id: str = "") -> RunHead | None:
        """A run, or the current one; None when there is none."""

    def read_state(self, namespace: str, workflow_id: str, run_id: str = "") -> MutableState | None:
        """The state of a run, or of the current one, as last committed; None when there is none.

        Raises:
            SnapshotTooNewError: a newer release wrote it.
        """

    def read_activities(self, key: RunKey) -> list[PendingActivity]:
        """The pending activities of a run, in order of their scheduled event ids.

        Of a closed run: those that were pending when it closed.
        """

    def read_update(self, key: RunKey, update_id: str) -> Update | None:
        """An update of a run, open or closed, as last committed; None without one of this id."""

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

    def write_journal(self, entries: Sequence[Journal]) -> None:
        """Add entries that belong to no change."""

    def read_visibility(self, key: RunKey) -> tuple[Memo | None, SearchAttributes | None]:
        """Memo and search attributes as they are now."""

    def namespace(self, name: str) -> Namespace | None:
        """A registered namespace. Asked by every call: a host keeps it in memory."""

    def namespaces(self) -> list[Namespace]:
        """All registered namespaces, by name."""

    def list_runs(
        self, namespace: str, wanted: RunFilter, *, limit: int, after: bytes = b""
    ) -> tuple[list[WorkflowExecutionInfo], bytes]:
        """A page of runs, newest start first, and the token of the next page (empty: none).

        Raises:
            ValueError: `after` is no token of this store.
        """

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
        """Store an arrival and give its id, in one transaction, or in the open one of this thread.

        With `request_id`, None when the run had that id already. With `replaces`, that activity
        goes away if its stamp is still the same, else None and nothing is stored. Ids rise in the
        order in which rows of one run are taken in.
        """

    def inbox_size(self, key: RunKey, limit: int) -> tuple[int, int]:
        """How many arrivals of a run wait and their bytes; looks at no more than `limit` rows."""

    def requested_runs(self, namespace: str, workflow_id: str, request_id: str) -> Sequence[str]:
        """The runs of the workflow id that have kept this request id, by their ids."""

    def withdraw_inbox(self, key: RunKey, item_id: int, journal: Sequence[Journal] = ()) -> bool:
        """Take an arrival back and journal it; False, and nothing done, when it was taken in."""

    def read_activity(self, key: RunKey, scheduled_event_id: int) -> PendingActivity | None:
        """One open activity; None when it or its run is closed."""

    def replace_activity(
        self, old: PendingActivity, new: PendingActivity, journal: Sequence[Journal] = ()
    ) -> bool:
        """Replace if the stored stamp is still that of `old`; False when it isn't, or it closed.

        `new.stamp` is `old.stamp + 1` when the standing of the attempt changes (claim, retry), and
        `old.stamp` when only heartbeats, dispatch times or `due_at` do.
        """

    # ---- finding work; the host leaves out what a newer release wrote

    def due_runs(self, now: datetime, limit: int) -> list[RunKey]:
        """Runs whose `wakeup_at` has come, nearest first."""

    def due_activities(self, now: datetime, limit: int) -> list[PendingActivity]:
        """Pending activities whose `due_at` has come, nearest first."""

    def undelivered(self, before: datetime, limit: int) -> list[RunKey]:
        """Runs with arrivals stored before that time (by the store's clock) that nobody took in
        although no workflow task is started, oldest first.
        """

    def next_due(self) -> datetime | None:
        """The nearest `wakeup_at` or `due_at`."""

    def postpone_run(self, key: RunKey, until: datetime, journal: Journal) -> None:
        """Move `wakeup_at`, whatever the state, and journal why: the run's sweep failed."""

    def unclaimed_workflow_tasks(self, namespace: str, task_queue: str, limit: int) -> list[RunKey]:
        """Runs of a queue whose workflow task waits for a worker, oldest first."""

    def unclaimed_activities(
        self, namespace: str, task_queue: str, now: datetime, limit: int
    ) -> list[PendingActivity]:
        """Attempts of a queue that may start and wait for a worker, oldest first; none that are
        paused.
        """

    def claims_of(self, owner: str, limit: int) -> tuple[list[RunKey], list[PendingActivity]]:
        """What a worker process holds: started workflow tasks, started attempts."""


class Dispatcher(Protocol):
    """Tells workers and waiting readers. Never raises, never blocks long; may lose anything."""

    #: whether `worker_seen` is right at once, because workers stand in a list while they live;
    #: else they are seen only when they ask for work
    lists_workers: bool

    def dispatch(self, effects: Sequence[Effect]) -> None:
        """Announce, after the commit."""

    def wait_history(
        self,
        key: RunKey,
        next_event_id: int,
        timeout: timedelta,
        closed: bool = False,
    ) -> None:
        """Return when a run's history may have grown to `next_event_id` and beyond, at the latest
        after `timeout`. May return too early; who waits looks again. With `closed` only the run's
        end matters, so that a host need not wake the caller at each step.
        """

    def wait_update(self, key: RunKey, update_id: str, version: int, timeout: timedelta) -> None:
        """Return when an update may have a later `version` (`NotifyUpdate`), at the latest after
        `timeout`. May return too early; who waits looks again.
        """

    def wait_tasks(self, namespace: str, task_queue: str, timeout: timedelta) -> None:
        """Return when work may wait in a queue, at the latest after `timeout`."""

    # ---- queries: a message to a worker, and a reply that is not stored

    def dispatch_query(self, task: QueryTask) -> None:
        """Ask a worker of the task's queue."""

    def take_query(self, namespace: str, task_queue: str) -> QueryTask | None:
        """The oldest question that waits in a queue, for a poller. A host whose messages bring
        questions to workers by themselves answers None.
        """

    def answer_query(self, query_id: str, answer: WorkflowQueryResult) -> bool:
        """Hand an answer to who asked; False if it is known that nobody waits any more."""

    def wait_answer(self, query_id: str, timeout: timedelta) -> WorkflowQueryResult | None:
        """The answer, or None after `timeout`; the question may be asked about again."""

    def forget_query(self, query_id: str) -> None:
        """Nobody waits for an answer any more."""

    # ---- who works

    def note_worker(self, namespace: str, task_queue: str) -> None:
        """A worker of this queue asked for workflow tasks now."""

    def worker_seen(self, namespace: str, task_queue: str) -> bool:
        """Whether a worker asked for work of this queue lately; True if that is unknown."""


class Ids(Protocol):
    """Where run ids and request ids come from, so that a simulation can repeat itself."""

    def run_id(self, now: datetime) -> str:
        """A UUIDv7 of this time."""

    def request_id(self) -> str:
        """A UUIDv4."""
