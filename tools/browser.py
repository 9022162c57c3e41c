"""The browser of the end-to-end tests: an installed Chromium, or how to get one.

python -m tools.browser             where it is, or what to do
python -m tools.browser --install   install Debian's if there is none (as root, or by sudo)
"""

import argparse
import os
import shutil
import subprocess
import sys

#: What it may be called; `CHROMIUM` in the environment names another one.
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGE = "chromium"


def find() -> str | None:
    """The path of a Chromium, None if there is none."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def advice() -> str:
    """How to get one."""
    return (
        f"no Chromium is installed: apt-get install {PACKAGE}, or set CHROMIUM to where one is "
        "(python -m tools.browser --install does the first)"
    )


def install() -> None:
    """Install Debian's Chromium.

    Raises:
        SystemExit: this system has no apt-get, or it failed.
    """
    if shutil.which("apt-get") is None:
        sys.exit(f"This system has no apt-get; {advice()}")
    root = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    commands = (
        ["apt-get", "update"],
        ["apt-get", "install", "--yes", "--no-install-recommends", PACKAGE],
    )
    for command in commands:
        done = subprocess.run(
            [*root, *command], env=environment, check=False, stdout=subprocess.DEVNULL
        )
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed; {advice()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install", action="store_true", help="install one if there is none")
    options = parser.parse_args()
    if options.install and find() is None:
        install()
    found = find()
    if found is None:
        sys.exit(advice())
    print(found)


if __name__ == "__main__":
    main()
