"""The demo in one process: SQLite, a broker in its memory, workers in threads; no server at all."""

import os
from pathlib import Path

import django
from django.core.management import call_command

from tools.demo.account import Account

SETTINGS = "tools.demo.settings"
SLOTS = 4


def play(account: Account, output: Path, keep_seconds: float) -> None:
    """Tell the story; what remains is the database file, to be looked at afterwards."""
    del keep_seconds  # nothing is left up: there are no pages
    output.mkdir(parents=True, exist_ok=True)
    database = output / "demo.sqlite3"
    for old in output.glob("demo.sqlite3*"):
        old.unlink()
    environment = {
        "DJANGO_SETTINGS_MODULE": SETTINGS,
        "DATABASE_URL": f"sqlite:///{database}",
        "REDIS_URL": "memory://",
        "DEMO_LOG": str(output / "demo.log"),
    }
    os.environ.update(environment)
    account.head("Starting one process: SQLite, a broker in its memory, workers in threads")
    django.setup()
    call_command("migrate", verbosity=0)
    # Models and the project's Celery app load only now: Django is set up.
    from celery.contrib.testing.worker import start_worker  # noqa: PLC0415

    from settings.celery import app  # noqa: PLC0415
    from tools.demo import story  # noqa: PLC0415

    with start_worker(
        app, pool="threads", concurrency=SLOTS, perform_ping_check=False, shutdown_timeout=30
    ):
        numbers = list(story.orders(account))
        report = story.flights(account, output)
        story.show_orders(account, numbers)
        story.show_report(account, report)
    account.head("Where to look")
    account.say(f"log:      {output / 'demo.log'}")
    account.say(f"history:  export DATABASE_URL=sqlite:///{database}")
    account.say(f"          export DJANGO_SETTINGS_MODULE={SETTINGS}")
    account.say(f"          .venv/bin/python manage.py workflow history order-{numbers[0]}")
    account.say("          .venv/bin/python manage.py workflow show flights-2013")
    account.say("Done; nothing is left running.")
