"""What the parts of one live run share: plain data, and the one question whether code may act."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from wfcore.exceptions import ReadOnlyContextError
from wfcore.protocol.events import WorkflowExecutionStarted
from wfcore.protocol.payloads import Payload
from wfcore.replay.flags import Flags
from wfcore.replay.loop import WorkflowLoop
from wfcore.replay.markers import LocalActivityRecord
from wfcore.replay.matching import CommandQueue
from wfcore.replay.values import Values
from wfcore.workflow import Info

if TYPE_CHECKING:
    from wfcore.replay.pending import Timers

_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)
#: Something that has happened, ready to be told to the code.
Job = Callable[[], None]


class RunState:
    """One run between two events.

    Attributes:
        operations: what waits for an event, by the id of the event that its command became.
        follow_ups: what the current task's own commands brought about, told to the code in the
            same task.
        error: what fails the workflow task, found while code ran.
        cancellation_reason: why cancellation was asked for; None if it was not.
    """

    def __init__(self, *, salt: int, values: Values, guarded: bool, timers: Timers) -> None:
        # What is abstract in typeshed's loop refuses at run time.
        self.loop = WorkflowLoop(salt=salt, timers=timers, guarded=guarded)  # type: ignore[abstract]
        self.commands = CommandQueue()
        self.flags = Flags()
        self.values = values
        self.operations: dict[int, Any] = {}
        self.follow_ups: list[Job] = []
        self.conditions: list[tuple[Callable[[], bool], asyncio.Future[Any]]] = []
        #: The memo as it is now; `info.raw_memo` is the same object.
        self.memo: dict[str, Payload] = {}
        self.error: BaseException | None = None
        self.cancellation_reason: str | None = None
        self.is_replaying = False
        #: Whether the current task accepted an update.
        self.has_accepted = False
        self.is_failure: Callable[[BaseException], bool] = _never
        #: Local activities that have not ended, and recorded ends of them that the code was not
        #: told yet, by number; how often the code has run in the current task.
        self.local_activities: dict[int, Any] = {}
        self.recorded_local_activities: dict[int, LocalActivityRecord] = {}
        self.turns = 0
        #: The workflow's time in nanoseconds since the epoch.
        self.time_ns = 0
        #: Search attributes as they are now; what patches write there is the run's alone.
        self.search_attributes: dict[str, Payload] = {}
        self._numbers: dict[str, int] = {}
        # Known from the first activation on.
        self.info: Info = None  # type: ignore[assignment]
        self.started: WorkflowExecutionStarted = None  # type: ignore[assignment]

    def next_number(self, kind: str) -> int:
        """The next number of a kind of command, from 1; ids in histories are made of it."""
        number = self._numbers.get(kind, 0) + 1
        self._numbers[kind] = number
        return number

    @property
    def now(self) -> datetime:
        """The workflow's time."""
        return _EPOCH + timedelta(microseconds=self.time_ns // 1000)

    def set_time(self, now: datetime) -> None:
        """Let the workflow's time go on to this; it never goes back.

        A local activity tells its end by the worker's clock, the task after it begins by the
        engine's.
        """
        self.time_ns = max((now - _EPOCH) // _MICROSECOND * 1000, self.time_ns)
        self.loop.seconds = self.time_ns / 1e9

    def check_may_act(self, what: str) -> None:
        """Refuse what changes the run where only reading is allowed.

        Raises:
            ReadOnlyContextError: a query handler or validator runs.
        """
        if self.loop.read_only:
            raise ReadOnlyContextError(
                f"A query handler or validator must only read, but this one tried to {what}"
            )


def _never(_error: BaseException) -> bool:
    return False
