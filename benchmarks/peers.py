"""Runs the engine beside other systems, in the peers' own harness.

    python -m benchmarks.peers HARNESS --scratch DIR --setup      # once: the peers' environments
    python -m benchmarks.peers HARNESS --scratch DIR --systems ours,dbos,temporal-dev --repeat 3

HARNESS is the folder with `run_all.py`; all other arguments are that script's. The engine runs in
this interpreter's environment.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

#: What the harness starts for us.
NEEDS = {"pg", "redis"}


def main(given: Sequence[str] | None = None) -> int:
    """Command line."""
    arguments = list(sys.argv[1:] if given is None else given)
    if not arguments or not (Path(arguments[0]) / "run_all.py").is_file():
        sys.stderr.write(f"{__doc__}\nThe first argument must be the folder of run_all.py.\n")
        return 2
    harness = Path(arguments[0]).resolve()
    sys.path.insert(0, str(harness))
    run_all = importlib.import_module("run_all")
    script = Path(__file__).resolve().with_name("ours_peer.py")
    # ahead of all others, so that a run without --systems begins with it
    run_all.SYSTEMS = {"ours": (str(script), "ours", NEEDS), **run_all.SYSTEMS}
    os.environ["PEER_PYTHON_OURS"] = sys.executable
    sys.argv = ["run_all.py", *arguments[1:]]
    run_all.main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
