"""The project's processes: Celery workers, beat, the web server; each is a child of this process.

A program leads a process group of its own, so that its children end with it: a worker's slots are
processes too. Nothing stays: leaving the block ends them all, the hard way after a while; if this
process is killed, a keeper kills what it had started.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[1]
LOOPBACK = "127.0.0.1"
START_SECONDS = 60.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.05


class ProgramError(RuntimeError):
    """A program ended or didn't get ready; the text has the end of its log."""


class Program:
    """One started program and its log."""

    def __init__(
        self, name: str, log: Path, log_begin: int, process: "subprocess.Popen[bytes]"
    ) -> None:
        self.name = name
        self.log = log
        self._log_begin = log_begin
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_for(self, words: str, *, seconds: float = START_SECONDS) -> None:
        """Return when the log has these words.

        Raises:
            ProgramError: it ended before, or the time is over.
        """
        deadline = time.monotonic() + seconds
        while words not in self.output():
            if not self.is_running:
                raise ProgramError(
                    f"{self.name} ended with {self._process.returncode}: {self.tail()}"
                )
            if time.monotonic() > deadline:
                raise ProgramError(f"{self.name} wasn't ready in {seconds:.0f} s: {self.tail()}")
            time.sleep(POLL_SECONDS)

    def output(self) -> str:
        """What this start wrote; an earlier one of the same name wrote before."""
        return self.log.read_bytes()[self._log_begin :].decode(errors="replace")

    def tail(self) -> str:
        return self.output()[-2000:]

    def kill(self) -> None:
        """SIGKILL to the program and all of its children, at once."""
        self._signal_group(signal.SIGKILL)
        self._process.wait()

    def ask_to_stop(self) -> None:
        """SIGTERM to the program alone: it ends its children itself."""
        if self.is_running:
            self._process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float) -> None:
        """Wait for its end; then, or when the time is over, nothing of its group is left."""
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, signum: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signum)


class Stack:
    """Starts programs of the project, with one environment and one directory of logs."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self.directory = directory
        self.environment = {**os.environ, **environment, "PYTHONUNBUFFERED": "1"}
        self._programs: dict[str, Program] = {}
        self._keeper: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        # In a session of its own: Ctrl-C reaches this process, the keeper goes on.
        self._keeper = subprocess.Popen(
            [sys.executable, "-S", "-m", "tools.stack"],
            stdin=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def programs(self) -> list[Program]:
        return list(self._programs.values())

    def start(self, name: str, *arguments: str) -> Program:
        """Start `python -m ARGUMENTS`; one program of a name runs at a time."""
        earlier = self._programs.get(name)
        if earlier and earlier.is_running:
            raise ProgramError(f"{name} runs already, as process {earlier.pid}")
        log = self.directory / f"{name}.log"
        begin = log.stat().st_size if log.exists() else 0
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._tell_keeper(f"+{process.pid}")
        if earlier:
            self._tell_keeper(f"-{earlier.pid}")
        self._programs[name] = Program(name, log, begin, process)
        return self._programs[name]

    def worker(
        self, name: str, *, slots: int = 2, queues: Sequence[str] = (), extra: Sequence[str] = ()
    ) -> Program:
        """A Celery worker on the prefork pool; `wait_for(READY)` tells when it takes work."""
        return self.start(
            name,
            *("celery", "-A", "settings", "worker", "--pool=prefork", f"--concurrency={slots}"),
            *(f"--hostname={name}@localhost", "--loglevel=INFO"),
            *((f"--queues={','.join(queues)}",) if queues else ()),
            *extra,
        )

    def beat(self, name: str = "beat", *, extra: Sequence[str] = ()) -> Program:
        return self.start(
            name,
            *("celery", "-A", "settings", "beat", "--loglevel=INFO"),
            "--scheduler=wfapp.beat.scheduler:TickingScheduler",
            f"--schedule={self.directory / 'beat-schedule'}",
            "--pidfile=",
            *extra,
        )

    def web(self, port: int) -> Program:
        return self.start(
            "web",
            *("uvicorn", "settings.asgi:application", "--host", LOOPBACK, "--port", str(port)),
        )

    def manage(self, *arguments: str) -> str:
        """Run `manage.py ARGUMENTS` to its end and give what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            output = (done.stdout + done.stderr)[-3000:]
            raise ProgramError(f"manage.py {' '.join(arguments)} failed: {output}")
        return done.stdout

    def stop(self) -> None:
        """End all programs: asked first, all at once; killed if they don't listen."""
        deadline = time.monotonic() + STOP_SECONDS
        for program in self.programs:
            program.ask_to_stop()
        for program in self.programs:
            program.wait(max(0.1, deadline - time.monotonic()))
            self._tell_keeper(f"-{program.pid}")
        self._programs.clear()
        keeper, self._keeper = self._keeper, None
        if keeper and keeper.stdin:
            keeper.stdin.close()
            keeper.wait()

    def _tell_keeper(self, line: str) -> None:
        if self._keeper and self._keeper.stdin:
            self._keeper.stdin.write(f"{line}\n")
            self._keeper.stdin.flush()


#: what a Celery worker and uvicorn log when they take work
WORKER_READY = "ready."
BEAT_READY = "beat: Starting"
WEB_READY = "Application startup complete"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def keep() -> None:
    """The keeper: hear which programs run until the owner ends, then kill those that are left."""
    groups: set[int] = set()
    for line in sys.stdin:
        if line.startswith("+"):
            groups.add(int(line[1:]))
        else:
            groups.discard(int(line[1:]))
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    keep()
