"""`python -m benchmarks`, which `make bench` calls."""

import sys

from benchmarks.run import main

if __name__ == "__main__":
    sys.exit(main())
