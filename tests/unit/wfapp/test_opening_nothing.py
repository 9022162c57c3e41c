import subprocess
import sys


def test_importing_and_making_a_store_opens_nothing() -> None:
    """In a process of its own: this one has opened what other tests need."""
    program = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "settings.test"
import django
django.setup()
import threading
from django.db import connections
from wfapp.store import DjangoStore
store = DjangoStore()
assert store.inside_callers_transaction() is False
assert store.open_elsewhere() == ""
assert all(connection.connection is None for connection in connections.all(initialized_only=True))
assert threading.active_count() == 1
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
