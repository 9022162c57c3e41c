"""Programs of the project end with their owner, however that ends."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.waiting import wait_until
from tools.stack import ProgramError, Stack

OWNER = """
import sys, time
from pathlib import Path
from tools.stack import Stack

with Stack(Path(sys.argv[1]), {}) as stack:
    print(stack.start("sleeper", "http.server", "0", "--bind", "127.0.0.1").pid, flush=True)
    time.sleep(60)
"""


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_programs_end_with_the_block(tmp_path: Path) -> None:
    with Stack(tmp_path, {}) as stack:
        program = stack.start("server", "http.server", "0", "--bind", "127.0.0.1")
        program.wait_for("Serving HTTP")
        with pytest.raises(ProgramError, match="server runs already"):
            stack.start("server", "http.server", "0")
    assert is_gone(program.pid)


def test_a_killed_program_is_replaced(tmp_path: Path) -> None:
    with Stack(tmp_path, {}) as stack:
        first = stack.start("server", "http.server", "0", "--bind", "127.0.0.1")
        first.wait_for("Serving HTTP")
        first.kill()
        assert not first.is_running
        second = stack.start("server", "http.server", "0", "--bind", "127.0.0.1")
        second.wait_for("Serving HTTP")
        assert second.pid != first.pid


def test_what_ends_too_soon_tells_why(tmp_path: Path) -> None:
    with (
        Stack(tmp_path, {}) as stack,
        pytest.raises(ProgramError, match=r"ended with 1: .*No module named no_such_module"),
    ):
        stack.start("broken", "no_such_module").wait_for("ready")


def test_programs_of_a_killed_owner_are_killed(tmp_path: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert owner.stdout
    pid = int(owner.stdout.readline())
    assert not is_gone(pid)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    wait_until(lambda: is_gone(pid), what="the end of the program")
