"""Command line: start private servers and print their URLs, or run a command with them."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from tools.services import ALL_SOURCES, ServiceError, Source, services
from tools.services.private import keep


def parse(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.services",
        description="Private PostgreSQL and Redis on free loopback ports.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    up = verbs.add_parser("up", help="start both, print their URLs, stop on Ctrl-C or SIGTERM")
    run = verbs.add_parser("run", help="run a command with DATABASE_URL and REDIS_URL set")
    for verb in (up, run):
        verb.add_argument(
            "--source",
            action="append",
            choices=list(Source),
            help="look only here for servers (may be repeated; default: all, in this order)",
        )
        verb.add_argument(
            "--no-fsync", action="store_true", help="commits don't wait for the disk: tests only"
        )
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")
    keeper = verbs.add_parser("keep", help="used by the others: clean up after a process")
    keeper.add_argument("directory", type=Path)
    keeper.add_argument("owner", type=int)
    return parser.parse_args(given)


def end(signum: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + signum)


def main(given: Sequence[str] | None = None) -> int:
    arguments = parse(given)
    if arguments.verb == "keep":
        keep(arguments.directory, arguments.owner)
        return 0
    signal.signal(signal.SIGTERM, end)
    sources = [Source(source) for source in arguments.source or ALL_SOURCES]
    try:
        with services(durable=not arguments.no_fsync, sources=sources) as running:
            if arguments.verb == "run":
                command = arguments.command[arguments.command[:1] == ["--"] :]
                environment = os.environ | running.environment()
                return subprocess.run(command, env=environment, check=False).returncode
            for name, value in running.environment().items():
                print(f"export {name}={value}", flush=True)
            signal.pause()
    except ServiceError as error:
        print(f"services: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
