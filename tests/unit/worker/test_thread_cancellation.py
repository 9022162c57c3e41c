"""Cancelling code that runs in a thread."""

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.waiting import wait_until
from wfcore.exceptions import CancelledError
from wfcore.worker._thread_cancellation import ThreadCancellation


def _busy(until: threading.Event) -> str:
    while not until.is_set():
        until.wait(0.001)
    return "finished"


def _counted(rounds: int) -> int:
    count = 0
    for _ in range(rounds):
        count += 1
    return count


def test_a_running_function_is_interrupted() -> None:
    cancellation = ThreadCancellation()
    never = threading.Event()
    threading.Timer(0.01, cancellation.cancel).start()
    with pytest.raises(CancelledError):
        cancellation.call(_busy, [never])


def test_what_was_cancelled_before_does_not_run_to_its_end() -> None:
    cancellation = ThreadCancellation()
    cancellation.cancel()
    with pytest.raises(CancelledError):
        cancellation.call(_busy, [threading.Event()])


def test_after_the_call_nothing_is_raised() -> None:
    cancellation = ThreadCancellation()
    assert cancellation.call(lambda: "done", []) == "done"
    cancellation.cancel()
    assert sum(range(1000)) == 499500


@pytest.mark.timeout(10)
def test_code_in_a_greenlet_is_left_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    # gevent's get_ident tells greenlets apart, which Python knows nothing of.
    monkeypatch.setattr("wfcore.worker._thread_cancellation.threading.get_ident", lambda: 1)
    cancellation = ThreadCancellation()

    def asks() -> str:
        cancellation.cancel()
        return _busy_once()

    assert cancellation.call(asks, []) == "finished"


def _busy_once() -> str:
    return "finished" if _counted(10_000) else ""


def test_it_is_raised_once() -> None:
    cancellation = ThreadCancellation()

    def swallow_and_go_on() -> str:
        try:
            cancellation.cancel()
            _busy(threading.Event())
        except CancelledError:
            cancellation.cancel()
            return "went on"
        return "not reached"

    assert cancellation.call(swallow_and_go_on, []) == "went on"


def test_nested_shields_hold_until_the_outermost_ends() -> None:
    cancellation = ThreadCancellation()
    passed: list[str] = []

    def shielded() -> None:
        with cancellation.shield():
            with cancellation.shield():
                cancellation.cancel()
                passed.append("inner")
            passed.append("outer")
        passed.append("not reached")

    with pytest.raises(CancelledError):
        cancellation.call(shielded, [])
    assert passed == ["inner", "outer"]


def test_a_shield_without_a_cancellation_raises_nothing() -> None:
    cancellation = ThreadCancellation()

    def shielded() -> str:
        with cancellation.shield():
            pass
        return "finished"

    assert cancellation.call(shielded, []) == "finished"


@pytest.fixture
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_switching_often")
def test_a_cancellation_at_any_moment_never_reaches_what_follows_the_call() -> None:
    """The canceller and the end of the function race; whoever wins, the thread stays usable."""
    outcomes: list[Any] = []

    def work() -> None:
        for rounds in range(500):
            cancellation = ThreadCancellation()
            canceller = threading.Thread(target=cancellation.cancel)
            canceller.start()
            try:
                outcomes.append(cancellation.call(_counted, [rounds * 40]))
            except CancelledError:
                outcomes.append("cancelled")
            canceller.join()
            assert _counted(200) == 200
        outcomes.append("end")

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: not thread.is_alive())
    assert outcomes[-1] == "end"
    assert len(outcomes) == 501
    assert all(o in ("cancelled", n * 40) for n, o in enumerate(outcomes[:-1]))
