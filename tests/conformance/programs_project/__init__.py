"""A Django app whose one workflow and activities are those of the random programs."""

import os
import sys
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[1] / "random_programs"
#: The programs import each other, and the SDK's names, by plain module names.
if str(PROGRAMS) not in sys.path:
    sys.path.insert(0, str(PROGRAMS))
os.environ.setdefault("SCENARIO_PORTS", "celery")
os.environ.setdefault("SCENARIO_SDK", "tests.conformance.scenario_sdk")
