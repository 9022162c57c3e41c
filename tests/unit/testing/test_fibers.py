"""Fibers: one runs at a time, in an order that depends on nothing but what they say."""

import random
import threading
from datetime import timedelta

import pytest

from wfcore.testing.simulation.fibers import Fiber, Killed, Turns


class Owner:
    name = "owner"
    skew = timedelta()

    def __init__(self) -> None:
        self.is_alive = True

    def die(self) -> None:
        self.is_alive = False


def begin(turns: Turns, call: object, owner: Owner | None = None) -> Fiber:
    assert callable(call)
    fiber = Fiber("f", owner or Owner(), random.Random(1), call)
    turns.start(fiber)
    return fiber


def test_a_paused_fiber_goes_on_when_its_turns_are_over() -> None:
    said: list[str] = []
    with Turns() as turns:

        def slow() -> None:
            said.append("begins")
            turns.pause(2)
            said.append("goes on")

        begin(turns, slow)
        for turn in range(3):
            turns.turn = turn
            turns.resume_all()
            said.append(f"turn {turn}")
        assert turns.alive == []
    assert said == ["begins", "turn 0", "turn 1", "goes on", "turn 2"]


def test_a_waiting_fiber_goes_on_when_another_makes_it_true() -> None:
    said: list[object] = []
    with Turns() as turns:
        begin(turns, lambda: said.append(turns.wait(lambda: "ready" in said, lambda: False)))
        begin(turns, lambda: said.append("ready"))
        turns.resume_all()
    assert said == ["ready", True]


def test_a_waiting_fiber_may_give_up() -> None:
    said: list[object] = []
    with Turns() as turns:
        begin(turns, lambda: said.append(turns.wait(lambda: False, lambda: turns.turn > 3)))
        turns.resume_all()
        assert said == []
        turns.turn = 4
        turns.resume_all()
    assert said == [False]


def test_a_fiber_of_a_dead_owner_unwinds() -> None:
    said: list[str] = []
    owner = Owner()
    with Turns() as turns:

        def call() -> None:
            try:
                turns.pause(0)
                said.append("goes on")
            except Killed:
                said.append("killed")
                raise
            finally:
                said.append("unwinds")

        begin(turns, call, owner)
        owner.die()
        turns.resume_all()
        assert turns.alive == []
    assert said == ["killed", "unwinds"]


def test_an_error_comes_out_where_the_fiber_was_resumed() -> None:
    with Turns() as turns:

        def call() -> None:
            turns.pause(0)
            raise KeyError("lost")

        begin(turns, call)
        with pytest.raises(KeyError, match="lost"):
            turns.resume_all()


def test_outside_of_fibers_nothing_pauses_and_nobody_can_wait() -> None:
    with Turns() as turns:
        turns.pause(5)
        with pytest.raises(RuntimeError, match="only a fiber can wait"):
            turns.wait(lambda: False, lambda: False)


def test_threads_are_used_again_and_end_with_the_turns() -> None:
    names: set[str] = set()
    with Turns() as turns:
        for _ in range(5):
            begin(turns, lambda: names.add(threading.current_thread().name))
        begin(turns, lambda: turns.pause(10))
    assert len(names) == 1
    assert not [each for each in threading.enumerate() if each.name in names]
