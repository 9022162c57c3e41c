"""Threads of a process don't survive a fork: a Celery child makes its own."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import asyncio, os, sys
from datetime import timedelta
from wfcore.worker._alarms import shared_alarms
from wfcore.worker._async_loop import run_blocking
from wfcore.worker._watchdog import HungCodeInterrupt, WatchedCall


async def answer():
    await asyncio.sleep(0)
    return 42


def hang():
    while True:
        pass


def use():
    assert run_blocking(answer()) == 42
    import threading
    rung = threading.Event()
    shared_alarms().call_at(shared_alarms().now(), rung.set)
    assert rung.wait(10)
    try:
        WatchedCall(lambda stack: None).make(hang, (), timedelta(milliseconds=20))
    except HungCodeInterrupt:
        return
    raise AssertionError("not interrupted")


use()
child = os.fork()
if not child:
    use()
    os._exit(7)
_, status = os.waitpid(child, 0)
sys.exit(0 if os.waitstatus_to_exitcode(status) == 7 else 1)
"""


def test_a_forked_child_has_a_loop_alarms_and_a_watchdog_of_its_own() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=root,
        timeout=30,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
