"""`python -m tools.demo`, which `make demo` calls."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.demo import embedded, server
from tools.demo.account import Account
from tools.services import ServiceError
from tools.stack import ProgramError

ROOT = Path(__file__).resolve().parents[2]


def parse(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.demo", description="Both examples, live, with a worker killed."
    )
    parser.add_argument("--stack", choices=["server", "embedded"], default="server")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "build/demo", help="where the report goes"
    )
    parser.add_argument(
        "--keep",
        type=float,
        metavar="SECONDS",
        default=float(os.environ.get("KEEP") or 0),
        help="leave everything up after the story (also KEEP in the environment)",
    )
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    arguments = parse(given)
    # So that what was started is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    account = Account()
    stacks = {"server": server.play, "embedded": embedded.play}
    try:
        stacks[arguments.stack](account, arguments.output.resolve(), arguments.keep)
    except KeyboardInterrupt:
        account.say("stopped")
        return 130
    except (ServiceError, ProgramError) as error:
        sys.stderr.write(f"demo: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
