"""Actors that take turns: threads of which exactly one runs at any time, so that a run repeats
itself whatever the machine does.

A fiber runs until it pauses, waits or ends; then whoever started or resumed it goes on. The code
inside is plain blocking code, with locals of its thread as anywhere else.
"""

import random
import threading
from collections.abc import Callable
from datetime import timedelta
from enum import Enum, auto
from types import TracebackType
from typing import Protocol, Self


class Killed(BaseException):
    """The process in which this ran is dead: nothing of it happens any more."""


class State(Enum):
    """What a fiber does."""

    NEW = auto()
    PAUSED = auto()
    WAITING = auto()
    DONE = auto()


class Owner(Protocol):
    """What a fiber belongs to; it ends with it."""

    @property
    def name(self) -> str:
        """As it stands in traces."""

    @property
    def is_alive(self) -> bool:
        """Whether its fibers go on."""

    @property
    def skew(self) -> timedelta:
        """How far its clock is ahead of the store's."""

    def die(self) -> None:
        """End: its fibers do nothing more."""


class Fiber:
    """One actor's call in progress.

    Attributes:
        rng: what happens to this fiber is drawn from it alone, so that other fibers can be left out
            without changing it.
        wake_at: the turn from which on a paused fiber goes on.
        ready: whether what a waiting fiber waits for has happened.
        last_call: the call of a port that it made last.
        gives_up: whether it has waited long enough.
    """

    __slots__ = (
        "call",
        "error",
        "gives_up",
        "last_call",
        "name",
        "owner",
        "ready",
        "rng",
        "state",
        "wake_at",
    )

    def __init__(
        self, name: str, owner: Owner, rng: random.Random, call: Callable[[], object]
    ) -> None:
        self.name = name
        self.owner = owner
        self.rng = rng
        self.call = call
        self.state = State.NEW
        self.error: BaseException | None = None
        self.wake_at = 0
        self.last_call = ""
        self.ready: Callable[[], bool] = _never
        self.gives_up: Callable[[], bool] = _never

    def may_go_on(self, turn: int) -> bool:
        """Whether resuming the fiber makes sense now."""
        if not self.owner.is_alive:
            return True
        if self.state is State.PAUSED:
            return self.wake_at <= turn
        return self.ready() or self.gives_up()


class _Thread:
    """Runs fibers one after another; waits for its baton in between."""

    def __init__(self, number: int, back: threading.Lock) -> None:
        self.fiber: Fiber | None = None
        self.baton = threading.Lock()
        self.baton.acquire()
        self._back = back
        name = f"simulated-{number}"
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while True:
            self.baton.acquire()
            fiber = self.fiber
            if fiber is None:
                return
            try:
                fiber.call()
            except Killed:
                pass
            except BaseException as error:  # noqa: BLE001 - whoever resumed the fiber looks at it
                fiber.error = error
            fiber.state = State.DONE
            self.fiber = None
            self._back.release()


class Turns:
    """Hands the right to run to one fiber after another. Close it when done with it."""

    def __init__(self) -> None:
        self._back = threading.Lock()
        self._back.acquire()
        self._threads: list[_Thread] = []
        self._idle: list[_Thread] = []
        self._at: dict[Fiber, _Thread] = {}
        #: the fiber that runs now; None outside of all
        self.current: Fiber | None = None
        #: in the order in which they were started
        self.alive: list[Fiber] = []
        #: counts what pauses are measured in
        self.turn = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all threads; fibers that are left are killed."""
        self.drop_all()
        for thread in self._idle:
            thread.baton.release()
        for thread in self._threads:
            thread.thread.join()
        self._threads, self._idle = [], []

    # ---- from outside

    def drop_all(self) -> None:
        """Kill all fibers."""
        for fiber in list(self.alive):
            fiber.owner = _Dead(fiber.name)
            self._go_on(fiber)

    def start(self, fiber: Fiber) -> None:
        """Run a new fiber until it pauses, waits or ends."""
        if not self._idle:
            thread = _Thread(len(self._threads), self._back)
            self._threads.append(thread)
            self._idle.append(thread)
        thread = self._at[fiber] = self._idle.pop()
        thread.fiber = fiber
        self.alive.append(fiber)
        self._go_on(fiber)

    def resume_all(self) -> None:
        """Let all that may go on do so, until none may."""
        progress = True
        while progress:
            progress = False
            for fiber in list(self.alive):
                if fiber.state is not State.DONE and fiber.may_go_on(self.turn):
                    self._go_on(fiber)
                    progress = True

    def _go_on(self, fiber: Fiber) -> None:
        thread = self._at[fiber]
        before, self.current = self.current, fiber
        thread.baton.release()
        self._back.acquire()
        self.current = before
        if fiber.state is State.DONE:
            self.alive.remove(fiber)
            del self._at[fiber]
            self._idle.append(thread)
            error = fiber.error
            if error is not None and not isinstance(fiber.owner, _Dead):
                raise error

    # ---- from inside

    def pause(self, turns: int) -> None:
        """Let others run for so many turns. Outside of a fiber nothing happens."""
        fiber = self.current
        if fiber is None:
            return
        fiber.state, fiber.wake_at = State.PAUSED, self.turn + turns
        self._give_back(fiber)

    def wait(self, ready: Callable[[], bool], gives_up: Callable[[], bool]) -> bool:
        """Let others run until one of the two is true; gives the last `ready()`.

        Raises:
            RuntimeError: outside of a fiber nobody could make it true.
        """
        fiber = self.current
        if fiber is None:
            raise RuntimeError("only a fiber can wait: nothing else runs outside of them")
        while not ready():
            if gives_up():
                return False
            fiber.state, fiber.ready, fiber.gives_up = State.WAITING, ready, gives_up
            self._give_back(fiber)
        return True

    def _give_back(self, fiber: Fiber) -> None:
        thread = self._at[fiber]
        self._back.release()
        thread.baton.acquire()
        if not fiber.owner.is_alive:
            raise Killed


class _Dead:
    is_alive = False
    skew = timedelta()

    def __init__(self, name: str) -> None:
        self.name = name

    def die(self) -> None:
        """It is dead."""


def _never() -> bool:
    return False
