"""A store in memory at whose every call something may go wrong or another actor may come first.

It isolates and locks as `MemoryStore` does; waiting for a lock lets other actors run.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from wfcore.service.ports import RunBusyError, RunKey, Store, Transaction
from wfcore.testing.clocks import SimulatedClock
from wfcore.testing.memory_ports import MemoryStore, MemoryTransaction
from wfcore.testing.memory_tables import DEFAULT_WAIT, Tables, Unit
from wfcore.testing.simulation.faults import Fault, Faults, disturbed

#: Calls that a host answers from memory: others may come first, but there is no connection to lose.
FROM_MEMORY = ("now", "namespace", "namespaces", "inside_callers_transaction", "on_commit")
#: Waits for locks that are this short often end in vain.
_IMPATIENT = timedelta(seconds=1)
_IMPATIENT_TIMEOUT = 0.5


class ShiftedClock(SimulatedClock):
    """A clock that can be put back, as when another machine takes over a database."""

    shift = timedelta()

    def now(self) -> datetime:
        return super().now() + self.shift


class SimulatedTables(Tables):
    """Rows whose locks are waited for without stopping others."""

    def __init__(
        self, clock: SimulatedClock, faults: Faults, seen: Callable[[Sequence[RunKey]], None]
    ) -> None:
        super().__init__()
        self._clock = clock
        self._faults = faults
        self._seen = seen
        self._waits: dict[Unit, tuple[Any, ...]] = {}
        #: what two transactions, none of them a caller's, waited for in a circle
        self.deadlocks: list[str] = []

    @property
    def is_locked(self) -> bool:
        """Whether any lock is held."""
        return bool(self._locks)

    def _commit(self, unit: Unit) -> None:
        fiber = self._faults.turns.current
        what = f"commit of {(fiber.last_call if fiber is not None else '') or 'nothing'}"
        self._faults.before_commit(what)
        super()._commit(unit)
        self._seen(list(dict.fromkeys(key for key, _ in unit.writes)))
        unit.calls.insert(0, lambda: self._faults.after_commit(what))

    def hold(self, unit: Unit, name: tuple[Any, ...], wait: timedelta = DEFAULT_WAIT) -> None:
        if self._locks.get(name) not in (None, unit):
            self._wait_for(unit, name, wait)
        super().hold(unit, name, wait)

    def _wait_for(self, unit: Unit, name: tuple[Any, ...], wait: timedelta) -> None:
        rate = self._faults.rates.lock_timeout if wait >= _IMPATIENT else _IMPATIENT_TIMEOUT
        if self._faults.happens(Fault.LOCK_TIMEOUT, rate, f"lock of {name[0]}"):
            raise RunBusyError(f"{name[1:]} stayed locked for {wait.total_seconds():g} s")
        self._waits[unit] = name
        try:
            self._check_circle(unit)
            until = self._clock.now() + wait
            free = self._faults.turns.wait(
                lambda: name not in self._locks, lambda: self._clock.now() >= until
            )
        finally:
            del self._waits[unit]
        if not free:
            raise RunBusyError(f"{name[1:]} stayed locked for {wait.total_seconds():g} s")

    def _check_circle(self, unit: Unit) -> None:
        """Give up if whoever holds the lock waits, by way of others, for this transaction."""
        units = [unit]
        while (holder := self._locks.get(self._waits[units[-1]])) is not unit:
            if holder is None or holder not in self._waits or holder in units:
                return
            units.append(holder)
        if not any(each.callers for each in units):
            names = [self._waits[each] for each in units]
            self.deadlocks.append(" and ".join(f"{name[0]} lock" for name in names))
        raise RunBusyError("deadlock detected")


@disturbed(Transaction, FROM_MEMORY)
class SimulatedTransaction(MemoryTransaction):
    """The `Transaction` port over simulated tables."""

    faults: Faults


@disturbed(Store, FROM_MEMORY)
class SimulatedStore(MemoryStore):
    """The `Store` port of a simulation.

    Args:
        seen: told which runs a commit touched, right after it and before its caller.
    """

    def __init__(
        self, clock: SimulatedClock, faults: Faults, seen: Callable[[Sequence[RunKey]], None]
    ) -> None:
        super().__init__(clock)
        self.faults = faults
        self.tables = self._tables = SimulatedTables(clock, faults, seen)

    def transaction(
        self, namespace: str, workflow_id: str, *, wait: timedelta | None = None
    ) -> SimulatedTransaction:
        opened = SimulatedTransaction(
            self._tables, self.clock, namespace, workflow_id, wait or DEFAULT_WAIT
        )
        opened.faults = self.faults
        return opened

    def now(self) -> datetime:
        fiber = self.faults.turns.current
        return self.clock.now() + (fiber.owner.skew if fiber is not None else timedelta())
