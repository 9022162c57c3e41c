"""Threads in which the client waits, when nobody waits for them any more."""

import asyncio
import threading

import pytest

from wfapp.dispatch import calls
from wfcore.exceptions import DeadlineExceededError


@pytest.mark.parametrize("fails", [False, True])
async def test_a_call_that_was_given_up_ends_in_peace(fails: bool) -> None:
    go_on, ended = threading.Event(), threading.Event()

    def call() -> int:
        go_on.wait(10)
        threading.current_thread().name = "given-up"
        if fails:
            raise RuntimeError("too late for anybody")
        return 1

    waiting = calls.in_thread(call)
    waiting.add_done_callback(lambda _: ended.set())
    with pytest.raises(DeadlineExceededError):
        await calls._awaited(waiting, 0.01)
    go_on.set()
    assert await asyncio.to_thread(ended.wait, 10)
    for thread in threading.enumerate():
        if thread.name == "given-up":
            thread.join(10)  # an error in it would fail this test
    assert (waiting.exception() is not None) is fails
