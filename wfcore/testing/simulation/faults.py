"""What goes wrong, and when: at each call of a port a process may die, lose its connection, or be
overtaken by another actor. All of it is drawn from the random numbers of the fiber that makes the
call.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import Any, TypeVar

from wfcore.testing.simulation.fibers import Killed, Turns


class ConnectionLostError(Exception):
    """The database didn't answer: what was asked for may or may not have been done."""


class Fault(StrEnum):
    """Kinds of faults, by which they are counted and left out."""

    OVERTAKEN = "overtaken"
    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    FAILURE = "failure"
    UNKNOWN_OUTCOME = "unknown outcome"
    LOCK_TIMEOUT = "lock timeout"
    MESSAGE_LOST = "message lost"
    MESSAGE_DOUBLED = "message doubled"
    MESSAGE_DELAYED = "message delayed"
    MESSAGE_REORDERED = "message reordered"
    BROKER_EMPTIED = "broker emptied"
    WORKER_KILLED = "worker killed"
    WORKER_MISJUDGED = "worker misjudged"
    CLOCK_BACK = "clock back"
    CLOCK_SKEW = "clock skew"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """How likely each fault is at one call, one commit or one message."""

    overtaken: float = 0.07
    overtaken_in_commit: float = 0.25
    crash: float = 0.003
    failure: float = 0.004
    crash_at_commit: float = 0.012
    failure_at_commit: float = 0.012
    lock_timeout: float = 0.05
    message_lost: float = 0.15
    message_doubled: float = 0.1
    message_delayed: float = 0.15
    message_reordered: float = 0.3

    @property
    def at_commit(self) -> float:
        """That anything happens right before a commit, or right after it."""
        return self.overtaken_in_commit + self.crash_at_commit + self.failure_at_commit


#: Calls at which ways cross that lead to the same rows: others come first so many times as often.
_CROSSROADS = {
    "Store.put_inbox": 3,
    "Store.replace_activity": 3,
    "Store.withdraw_inbox": 3,
    "Transaction.activities": 3,
    "Transaction.inbox": 3,
    "Transaction.save": 2,
}
#: How many turns of others a fiber may be overtaken for.
_LONGEST_PAUSE = 6


class Faults:
    """Decides at each call of a port what goes wrong there.

    Attributes:
        counts: how often what went wrong, by call and kind.
        is_calm: nothing goes wrong any more.
        left_out: kinds that do not happen at all.
    """

    def __init__(
        self,
        turns: Turns,
        rates: Rates,
        *,
        left_out: frozenset[Fault] = frozenset(),
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.turns = turns
        self.rates = rates
        self.counts: Counter[tuple[str, Fault]] = Counter()
        self.is_calm = False
        self.left_out = left_out
        self._tell = tell

    def allows(self, fault: Fault) -> bool:
        """Whether faults of this kind happen at all."""
        return not self.is_calm and fault not in self.left_out

    def happens(self, fault: Fault, rate: float, where: str) -> bool:
        """Whether it happens here; if so it is counted."""
        fiber = self.turns.current
        if fiber is None or fiber.rng.random() >= rate or not self.allows(fault):
            return False
        self._note(where, fault)
        return True

    def note(self, where: str, fault: Fault) -> None:
        """Count one that was decided elsewhere."""
        self._note(where, fault)

    # ---- the points at which things go wrong

    def at_call(self, call: str, *, may_fail: bool = True) -> None:
        """In front of a call of a port.

        Raises:
            Killed: the process is dead.
            ConnectionLostError: the call didn't reach the store.
        """
        fiber = self.turns.current
        if fiber is None:
            return
        if not fiber.owner.is_alive:
            raise Killed
        if may_fail:
            fiber.last_call = call
        rates = self.rates
        overtaken = rates.overtaken * _CROSSROADS.get(call, 1)
        chance = fiber.rng.random()
        if chance >= overtaken + rates.crash + rates.failure or self.is_calm:
            return
        if chance < overtaken:
            self._overtake(call)
        elif chance < overtaken + rates.crash:
            self._crash(call, Fault.CRASH_BEFORE)
        elif may_fail and self.allows(Fault.FAILURE):
            self._note(call, Fault.FAILURE)
            raise ConnectionLostError(f"connection lost at {call}")

    def before_commit(self, what: str) -> None:
        """When all is written and nothing is committed.

        Raises:
            Killed: the process is dead; nothing is committed.
            ConnectionLostError: nothing is committed.
        """
        self._at_commit(what, Fault.CRASH_BEFORE, Fault.FAILURE)

    def after_commit(self, what: str) -> None:
        """When all is committed and nobody has been told.

        Raises:
            Killed: the process is dead; what it wrote stays.
            ConnectionLostError: what was written stays, and the caller doesn't know it.
        """
        self._at_commit(what, Fault.CRASH_AFTER, Fault.UNKNOWN_OUTCOME)

    def _at_commit(self, what: str, crash: Fault, failure: Fault) -> None:
        fiber = self.turns.current
        if fiber is None:
            return
        if not fiber.owner.is_alive:
            raise Killed
        rates = self.rates
        chance = fiber.rng.random()
        if self.is_calm:
            return
        if chance < rates.overtaken_in_commit:
            self._overtake(what)
        elif chance < rates.overtaken_in_commit + rates.crash_at_commit:
            self._crash(what, crash)
        elif chance < rates.at_commit and self.allows(failure):
            self._note(what, failure)
            raise ConnectionLostError(f"connection lost: {failure} of {what}")

    def _overtake(self, where: str) -> None:
        fiber = self.turns.current
        turns = fiber.rng.randint(1, _LONGEST_PAUSE) if fiber is not None else 0
        if self.allows(Fault.OVERTAKEN):
            self._note(where, Fault.OVERTAKEN, f"for {turns} turns")
            self.turns.pause(turns)

    def _crash(self, where: str, fault: Fault) -> None:
        fiber = self.turns.current
        if fiber is None or not self.allows(fault):
            return
        self._note(where, fault)
        fiber.owner.die()
        raise Killed

    def _note(self, where: str, fault: Fault, more: str = "") -> None:
        self.counts[where, fault] += 1
        fiber = self.turns.current
        self._tell(f"{fiber.name if fiber else '-'}: {fault} at {where} {more}".rstrip())


# ---- ports


C = TypeVar("C", bound=type)


def calls_of(port: type) -> list[str]:
    """The methods of a port."""
    return [name for name, value in vars(port).items() if callable(value) and name[0] != "_"]


def disturbed(port: type, from_memory: Sequence[str]) -> Callable[[C], C]:
    """A class whose methods of a port let something go wrong before they do their work; those that
    answer from memory have no connection to lose. Its objects have `faults`.
    """

    def disturb(kind: C) -> C:
        for name in calls_of(port):
            label, may_fail = f"{port.__name__}.{name}", name not in from_memory
            setattr(kind, name, _disturbed(getattr(kind, name), label, may_fail))
        return kind

    return disturb


def _disturbed(plain: Callable[..., Any], label: str, may_fail: bool) -> Callable[..., Any]:
    @wraps(plain)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        self.faults.at_call(label, may_fail=may_fail)
        return plain(self, *args, **options)

    return call
