"""The `Store` port on Django: its parts put together, and where transactions begin."""

from collections.abc import Callable
from datetime import datetime, timedelta

from wfapp.store.database import Database
from wfapp.store.facts import Facts
from wfapp.store.finding import WorkFinder
from wfapp.store.listing import RunLists
from wfapp.store.namespaces import Namespaces
from wfapp.store.queries import RunReader
from wfapp.store.transaction import DjangoTransaction
from wfcore.service.ports import START_WAIT


class DjangoStore(RunReader, RunLists, Namespaces, Facts, WorkFinder):
    """The truth, on one alias of Django's: PostgreSQL or SQLite.

    One serves all threads of a process; making it opens no connection. `clock` replaces the
    database's time, for tests. `longest_wait` bounds every wait for a run's lock, whatever is asked
    for.
    """

    def __init__(
        self,
        alias: str = "default",
        *,
        lock_wait: timedelta = START_WAIT,
        longest_wait: timedelta | None = None,
        clock: Callable[[], datetime] | None = None,
        database: Database | None = None,
    ) -> None:
        super().__init__(database or Database(alias, lock_wait=lock_wait, clock=clock))
        self.longest_wait = longest_wait

    @property
    def database(self) -> Database:
        """The connections of the alias."""
        return self._database

    @property
    def alias(self) -> str:
        """The database that holds the workflows."""
        return self._database.alias

    @property
    def lock_wait(self) -> timedelta:
        """How long a transaction waits for locks when its caller doesn't say."""
        return self._database.lock_wait

    def transaction(
        self, namespace: str, workflow_id: str, *, wait: timedelta | None = None
    ) -> DjangoTransaction:
        """As `Store.transaction`."""
        return DjangoTransaction(self._database, namespace, workflow_id, self.bounded(wait))

    def bounded(self, wait: timedelta | None) -> timedelta | None:
        """How long a transaction waits for locks; None: `lock_wait`."""
        if self.longest_wait is None:
            return wait
        return min(self.lock_wait if wait is None else wait, self.longest_wait)

    def now(self) -> datetime:
        """As `Store.now`."""
        return self._database.now()

    def inside_callers_transaction(self) -> bool:
        """As `Store.inside_callers_transaction`; a TestCase's own block is not a caller's."""
        return self._database.callers

    def open_elsewhere(self) -> str:
        """Another alias on which the calling code has a transaction open; empty if none.

        What is recorded then doesn't commit together with the caller's data.
        """
        return self._database.open_elsewhere()

    def on_commit(self, call: Callable[[], None]) -> None:
        """As `Store.on_commit`."""
        self._database.on_commit(call)
