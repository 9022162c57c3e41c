"""A store that writes a note in the very transaction in which a run is changed.

The note and the change commit together or not at all, without a transaction of the caller's: what
waits, or is handed out at once, works as over the store itself. The first change is noted; what
follows it, such as deliveries after the commit, is not.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Protocol, Self

from wfapp.store.django_store import DjangoStore
from wfapp.store.transaction import DjangoTransaction
from wfcore.history.change import Change
from wfcore.history.effects import Journal
from wfcore.history.state import InboxItem, PendingActivity
from wfcore.service.ports import RunKey


class Note(Protocol):
    """What is written beside a change; each call runs in the transaction of the change."""

    def write(self, run_id: str) -> None:
        """Write it; the run is the one that was changed, or made."""

    def take_back(self) -> None:
        """Remove it: what it tells of was refused after all."""


class NotingStore(DjangoStore):
    """Another store's twin, for one call of the service.

    Attributes:
        is_noted: the note stands.
    """

    def __init__(self, twin: DjangoStore, note: Note) -> None:
        super().__init__(
            twin.alias,
            lock_wait=twin.lock_wait,
            longest_wait=twin.longest_wait,
            database=twin.database,
        )
        self._note = note
        self.is_noted = False

    def note(self, run_id: str) -> None:
        """Write the note unless it stands."""
        if not self.is_noted:
            self._note.write(run_id)
            self.is_noted = True

    def transaction(
        self, namespace: str, workflow_id: str, *, wait: timedelta | None = None
    ) -> DjangoTransaction:
        return _NotingTransaction(self, namespace, workflow_id, self.bounded(wait))

    def put_inbox(
        self,
        key: RunKey,
        item: InboxItem,
        *,
        request_id: str = "",
        replaces: PendingActivity | None = None,
    ) -> int | None:
        with self._together():
            item_id = super().put_inbox(key, item, request_id=request_id, replaces=replaces)
            if item_id is not None:
                self.note(key.run_id)
        return item_id

    def withdraw_inbox(self, key: RunKey, item_id: int, journal: Sequence[Journal] = ()) -> bool:
        with self._together():
            withdrawn = super().withdraw_inbox(key, item_id, journal)
            if withdrawn and self.is_noted:
                self._note.take_back()
                self.is_noted = False
        return withdrawn

    def replace_activity(
        self, old: PendingActivity, new: PendingActivity, journal: Sequence[Journal] = ()
    ) -> bool:
        with self._together():
            replaced = super().replace_activity(old, new, journal)
            if replaced:
                self.note(old.run_id)
        return replaced

    @contextmanager
    def _together(self) -> Iterator[None]:
        """A transaction; what it undoes was not noted."""
        before = self.is_noted
        try:
            with self.database.unit():
                yield
        except BaseException:
            self.is_noted = before
            raise


class _NotingTransaction(DjangoTransaction):
    """Notes its change, if it wrote anything: what is refused is saved as it was."""

    def __init__(
        self, store: NotingStore, namespace: str, workflow_id: str, wait: timedelta | None
    ) -> None:
        super().__init__(store.database, namespace, workflow_id, wait)
        self._store = store

    def __enter__(self) -> Self:
        self._before = self._store.is_noted
        return super().__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        is_committed = False
        try:
            super().__exit__(kind, error, trace)
            is_committed = error is None
        finally:
            if not is_committed:
                self._store.is_noted = self._before

    def save(self, change: Change) -> None:
        with self._store.database.watched() as writes:
            super().save(change)
        while change.next_run is not None:
            change = change.next_run
        if writes.seen:
            self._store.note(change.state.recorded.run_id)
