"""One process: SQLite, a broker in its memory, a worker in its threads."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import threading
from datetime import timedelta

import django
django.setup()

from django.core.management import call_command
from settings.celery import app
from tests.integration.celery.shop import workflows
from wfapp.client import get_client
from wfapp.dispatch.embedded import embedded_worker

call_command("migrate", verbosity=0)
limit = timedelta(seconds=20)
for turn in range(2):
    with embedded_worker(app):
        client = get_client()
        assert client.execute_workflow(workflows.Hello.run, "Ada", timeout=limit) == "Hello, Ada!"
        assert client.execute_workflow(workflows.Sleeper.run, 0.3, timeout=limit) < 2
        counter = client.start_workflow(workflows.Counter.run)
        counter.signal("add", 3)
        counter.signal("finish")
        assert counter.result(timeout=limit) == 3
        assert counter.query("total") == 3
    left = [thread.name for thread in threading.enumerate()]
    assert not [name for name in left if name.startswith("wfapp-")], left
print("done")
"""


def test_one_process_is_enough(tmp_path: Path) -> None:
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.integration.celery.settings",
        "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
        "REDIS_URL": "memory://",
    }
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert answer.stdout.strip().endswith("done"), answer.stderr[-3000:]
