"""Both servers in one directory; the keeper ends them however their owner ends.

Everything that must be known stands in that directory, so that other processes of the owner (the
workers of pytest-xdist) attach to it: who needs a server first starts it, under a lock.
"""

import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

from tools.services.finding import ALL_SOURCES, ServiceError, Source
from tools.services.servers import STOP_SECONDS, GivenServer, Postgres, Redis

ROOT = Path(__file__).resolve().parents[2]


class Services:
    """PostgreSQL and Redis, each started by its first use; `stop()` ends both."""

    def __init__(
        self,
        directory: Path,
        *,
        durable: bool,
        sources: Sequence[Source],
        keeper: "subprocess.Popen[bytes] | None" = None,
    ) -> None:
        self.directory = directory
        self.durable = durable
        self.sources = tuple(sources)
        self._keeper = keeper

    @classmethod
    def begin(cls, *, durable: bool = True, sources: Sequence[Source] = ALL_SOURCES) -> Self:
        """Take a directory; nothing is started yet.

        Durable: commits wait for the disk, as benchmarks and demo must. Tests turn it off.
        """
        directory = Path(tempfile.mkdtemp(prefix="wf-services-"))
        # Another account may have to run PostgreSQL in it.
        directory.chmod(0o711)
        options = {"durable": durable, "sources": list(sources)}
        (directory / "options.json").write_text(json.dumps(options))
        keeper = _start_keeper(directory)
        return cls(directory, durable=durable, sources=sources, keeper=keeper)

    @classmethod
    def attach(cls, directory: Path) -> Self:
        """The same servers, from another process of their owner, who alone stops them."""
        options = json.loads((directory / "options.json").read_text())
        sources = [Source(source) for source in options["sources"]]
        return cls(directory, durable=options["durable"], sources=sources)

    @cached_property
    def postgres(self) -> Postgres | GivenServer:
        given = self._given("DATABASE_URL")
        if given:
            return given
        with self._place("postgres") as place:
            if place.exists():
                return Postgres.attach(place)
            return Postgres.create(place, sources=self.sources, durable=self.durable)

    @cached_property
    def redis(self) -> Redis | GivenServer:
        given = self._given("REDIS_URL")
        if given:
            return given
        with self._place("redis") as place:
            if place.exists():
                return Redis.attach(place)
            return Redis.create(place, sources=self.sources)

    @property
    def database_url(self) -> str:
        return self.postgres.url

    @property
    def redis_url(self) -> str:
        return self.redis.url

    def environment(self) -> dict[str, str]:
        """Start both; the variables by which processes of the project find them."""
        return {"DATABASE_URL": self.database_url, "REDIS_URL": self.redis_url}

    def stop(self) -> None:
        """Stop what runs and remove the directory; once more does nothing."""
        if self._keeper is None:
            return
        keeper, self._keeper = self._keeper, None
        # The keeper would do it too; done here, errors reach the caller.
        try:
            _stop_in(self.directory)
        finally:
            if keeper.stdin:
                keeper.stdin.close()
            keeper.wait(timeout=2 * STOP_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _given(self, variable: str) -> GivenServer | None:
        url = os.environ.get(variable) if Source.ENVIRONMENT in self.sources else None
        return GivenServer(url=url, variable=variable) if url else None

    @contextlib.contextmanager
    def _place(self, name: str) -> Iterator[Path]:
        """A server's directory, under the lock; what failed to start leaves none behind."""
        place = self.directory / name
        with _locked(self.directory):
            try:
                yield place
            except ServiceError:
                _remove(place)
                raise


@contextlib.contextmanager
def services(
    *, durable: bool = True, sources: Sequence[Source] = ALL_SOURCES
) -> Iterator[Services]:
    """Both servers, running until the block ends."""
    with Services.begin(durable=durable, sources=sources) as running:
        running.environment()
        yield running


def keep(directory: Path, owner: int) -> None:
    """The keeper: wait for the owner's end, then stop and remove what it left.

    The owner's end closes the pipe at once. A child that it forked may hold the pipe open; then the
    change of parent, looked at each second, tells.
    """
    while os.getppid() == owner:
        readable, _, _ = select.select([sys.stdin], [], [], 1.0)
        if readable:
            break
    if directory.exists():
        with _locked(directory), contextlib.suppress(ServiceError):
            _stop_in(directory)


def _start_keeper(directory: Path) -> "subprocess.Popen[bytes]":
    """In a session of its own: Ctrl-C reaches the owner, the keeper goes on."""
    return subprocess.Popen(
        [sys.executable, "-S", "-m", "tools.services", "keep", str(directory), str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        start_new_session=True,
    )


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _stop_in(directory: Path) -> None:
    failures = []
    kinds: dict[str, type[Postgres | Redis]] = {"postgres": Postgres, "redis": Redis}
    for name, kind in kinds.items():
        if (directory / name / "service.json").exists():
            try:
                kind.attach(directory / name).stop()
            except ServiceError as error:
                failures.append(str(error))
    _remove(directory)
    if failures:
        raise ServiceError("; ".join(failures))


def _remove(directory: Path) -> None:
    """Again for a while: a program whose parent was killed may still be writing in it."""
    deadline = time.monotonic() + STOP_SECONDS
    while directory.exists() and time.monotonic() < deadline:
        shutil.rmtree(directory, ignore_errors=True)
        if directory.exists():
            time.sleep(0.1)
