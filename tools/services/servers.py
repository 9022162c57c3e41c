"""A private PostgreSQL, a private Redis: each in a directory from which it can be found again."""

import contextlib
import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, Self, TypeVar

from tools.services.finding import (
    Account,
    ServiceError,
    Source,
    postgres_programs,
    redis_program,
    run_as,
    version_of,
)

LOOPBACK = "127.0.0.1"
DATABASE_NAME = "workflows"
REDIS_DATABASES = 64
START_SECONDS = 60
STOP_SECONDS = 30
PORT_TRIES = 5


@dataclass(frozen=True, kw_only=True)
class Postgres:
    """A private PostgreSQL: its own cluster, a password of its own, TCP on loopback only."""

    directory: Path
    programs: Path
    account: Account | None
    port: int
    password: str

    @classmethod
    def create(cls, directory: Path, *, sources: Sequence[Source], durable: bool) -> Self:
        """Make a cluster and start it. Without `durable`, commits don't wait for the disk."""
        account = Account.for_postgres()
        directory.mkdir()
        directory.chmod(0o711)
        if account:
            os.chown(directory, account.uid, account.gid)
        server = cls(
            directory=directory,
            programs=postgres_programs(account, sources, directory),
            account=account,
            port=0,
            password=secrets.token_urlsafe(18),
        )
        server.initialise(durable=durable)
        return on_free_port(lambda port: replace(server, port=port))

    @classmethod
    def attach(cls, directory: Path) -> Self:
        """The server that another process created in `directory`."""
        state = json.loads((directory / "service.json").read_text())
        return cls(
            directory=directory,
            programs=Path(state["programs"]),
            account=Account(**state["account"]) if state["account"] else None,
            port=state["port"],
            password=state["password"],
        )

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def log(self) -> Path:
        return self.directory / "log"

    @property
    def url(self) -> str:
        return f"postgres://postgres:{self.password}@{LOOPBACK}:{self.port}/{DATABASE_NAME}"

    @property
    def version(self) -> str:
        return ".".join(map(str, version_of(self.programs / "postgres")))

    def initialise(self, *, durable: bool) -> None:
        """Make the cluster and its database, before the first start."""
        secret = self.directory / "password"
        write_private(secret, self.password)
        if self.account:
            os.chown(secret, self.account.uid, self.account.gid)
        self._run(
            "initdb",
            *("--username=postgres", f"--pwfile={secret}", "--auth=scram-sha-256"),
            *("--encoding=UTF8", "--locale=C", "--no-sync"),
        )
        secret.unlink()
        settings = {
            "listen_addresses": f"'{LOOPBACK}'",
            "unix_socket_directories": "''",
            "max_connections": "200",
            "timezone": "'UTC'",
            "log_timezone": "'UTC'",
        }
        if not durable:
            # The system's crash would lose data then, a crash of the server alone does not.
            settings |= {"fsync": "off", "full_page_writes": "off"}
        with (self.data / "postgresql.conf").open("a") as config:
            config.writelines(f"{name} = {value}\n" for name, value in settings.items())
        # In single-user mode: psql is no part of every installation.
        self._run(
            "postgres", "postgres", first="--single", stdin=f"CREATE DATABASE {DATABASE_NAME}"
        )

    def start(self) -> None:
        # The file holds a password, and tells a keeper what to stop: before the start, not after.
        account = vars(self.account) if self.account else None
        state = {"port": self.port, "password": self.password, "account": account}
        write_private(
            self.directory / "service.json",
            json.dumps(state | {"programs": str(self.programs)}),
        )
        wait = ("-w", f"-t{START_SECONDS}", f"-l{self.log}")
        self._run("pg_ctl", "start", *wait, f"-o-p {self.port}")

    def stop(self, *, crash: bool = False) -> None:
        """Stop; with `crash` as a power cut does: nothing is written, the next start recovers."""
        if (self.data / "postmaster.pid").exists():
            mode = "immediate" if crash else "fast"
            self._run("pg_ctl", "stop", "-w", f"-t{STOP_SECONDS}", f"-m{mode}")

    def restart(self, *, crash: bool = False) -> None:
        """Stop and start on the same port with the same data; every connection breaks."""
        self.stop(crash=crash)
        self.start()

    def _run(self, name: str, *arguments: str, first: str = "", stdin: str = "") -> None:
        command = [str(self.programs / name), *([first] if first else []), "-D", str(self.data)]
        log = self.directory / f"{name}.log"
        code = run_as(
            self.account, [*command, *arguments], cwd=self.directory, log=log, stdin=stdin
        )
        if code:
            raise ServiceError(f"{name} failed: {_tail(log)}\n{_tail(self.log)}")


@dataclass(frozen=True, kw_only=True)
class Redis:
    """A private Redis without persistence: a restart empties it."""

    directory: Path
    program: Path
    port: int
    password: str

    @classmethod
    def create(cls, directory: Path, *, sources: Sequence[Source]) -> Self:
        directory.mkdir(mode=0o700)
        program = redis_program(sources)
        password = secrets.token_urlsafe(18)
        return on_free_port(
            lambda port: cls(directory=directory, program=program, port=port, password=password)
        )

    @classmethod
    def attach(cls, directory: Path) -> Self:
        """The server that another process created in `directory`."""
        state = json.loads((directory / "service.json").read_text())
        program = Path(state["program"])
        return cls(
            directory=directory, program=program, port=state["port"], password=state["password"]
        )

    @property
    def log(self) -> Path:
        return self.directory / "log"

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@{LOOPBACK}:{self.port}/0"

    @property
    def version(self) -> str:
        return ".".join(map(str, version_of(self.program)))

    def start(self) -> None:
        state = {"port": self.port, "password": self.password, "program": str(self.program)}
        write_private(self.directory / "service.json", json.dumps(state))
        settings = {
            "bind": LOOPBACK,
            "port": self.port,
            "requirepass": self.password,
            "databases": REDIS_DATABASES,
            "save": '""',
            "appendonly": "no",
            "maxmemory-policy": "noeviction",
            "daemonize": "yes",
            "dir": self.directory,
            "pidfile": self.directory / "pid",
            "logfile": self.log,
        }
        config = self.directory / "redis.conf"
        write_private(config, "".join(f"{name} {value}\n" for name, value in settings.items()))
        output = self.directory / "redis-server.log"
        if run_as(None, [str(self.program), str(config)], cwd=self.directory, log=output):
            raise ServiceError(f"redis-server failed: {_tail(output)}\n{_tail(self.log)}")
        _wait(self._answers, START_SECONDS, lambda: f"Redis doesn't answer: {_tail(self.log)}")

    def stop(self, *, crash: bool = False) -> None:
        """Stop; nothing is kept in either case, `crash` differs by the signal."""
        pid = self.directory / "pid"
        if not pid.exists() or not self._listens():
            return
        os.kill(int(pid.read_text()), signal.SIGKILL if crash else signal.SIGTERM)
        _wait(lambda: not self._listens(), STOP_SECONDS, lambda: f"Redis stays: {_tail(self.log)}")
        pid.unlink(missing_ok=True)

    def restart(self, *, crash: bool = False) -> None:
        """Stop and start on the same port, empty."""
        self.stop(crash=crash)
        self.start()

    def empty(self) -> None:
        """Delete every key of every database, as an operator's FLUSHALL does."""
        answer = self.call("FLUSHALL")
        if answer != "+OK":
            raise ServiceError(f"FLUSHALL was answered by {answer}")

    def call(self, *words: str) -> str:
        """Send one command; the first line of the answer, as Redis wrote it."""
        answer = ""
        with socket.create_connection((LOOPBACK, self.port), timeout=5) as connection:
            stream = connection.makefile("rwb")
            for command in (("AUTH", self.password), words):
                parts = [word.encode() for word in command]
                stream.write(b"*%d\r\n" % len(parts))
                stream.writelines(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
                stream.flush()
                answer = stream.readline().decode().rstrip()
                if answer.startswith("-"):
                    break
        return answer

    def _answers(self) -> bool:
        try:
            return self.call("PING") == "+PONG"
        except OSError:
            return False

    def _listens(self) -> bool:
        try:
            socket.create_connection((LOOPBACK, self.port), timeout=5).close()
        except ConnectionRefusedError:
            return False
        except OSError:
            # Reset in the middle of its end, or too busy to accept: still there.
            return True
        return True


@dataclass(frozen=True, kw_only=True)
class GivenServer:
    """A server that the environment names: used, never started, stopped or emptied."""

    url: str
    variable: str
    version: str = "given"

    def start(self) -> None:
        self._refuse()

    def stop(self, *, crash: bool = False) -> None:
        self._refuse()

    def restart(self, *, crash: bool = False) -> None:
        self._refuse()

    def empty(self) -> None:
        self._refuse()

    def _refuse(self) -> None:
        raise ServiceError(
            f"{self.variable} names a server that is not ours to stop or empty. Unset it to get a "
            "private one."
        )


class _Startable(Protocol):
    def start(self) -> None: ...


_Server = TypeVar("_Server", bound=_Startable)


def on_free_port(make: Callable[[int], _Server]) -> _Server:
    """A server started on a port that nobody has; who loses a race for one takes the next."""
    for _ in range(PORT_TRIES - 1):
        server = make(_free_port())
        with contextlib.suppress(ServiceError):
            server.start()
            return server
    server = make(_free_port())
    server.start()
    return server


def write_private(path: Path, text: str) -> None:
    """Whole or not at all, and for the owner's eyes: it holds a password."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    draft.write_text(text)
    draft.replace(path)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:] if log.exists() else ""


def _wait(condition: Callable[[], bool], seconds: float, complaint: Callable[[], str]) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ServiceError(complaint())
        time.sleep(0.02)
