"""The demo: servers, migrations, and the example applications that are installed."""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

from tools.services import ServiceError, services


def migrate() -> int:
    command = [sys.executable, "manage.py", "migrate", "--verbosity=0"]
    return subprocess.run(command, check=False).returncode


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.demo", description=__doc__)
    parser.add_argument("--stack", choices=["server", "embedded"], default="server")
    arguments = parser.parse_args(given)
    if arguments.stack == "embedded":
        os.environ.pop("REDIS_URL", None)
        os.environ["DATABASE_URL"] = "sqlite:///db.sqlite3"
        code = migrate()
    else:
        try:
            with services() as running:
                os.environ |= running.environment()
                code = migrate()
        except ServiceError as error:
            print(f"demo: {error}", file=sys.stderr)
            return 1
    if code == 0:
        print("The database is migrated. No example application is installed yet.")
    return code


if __name__ == "__main__":
    sys.exit(main())
