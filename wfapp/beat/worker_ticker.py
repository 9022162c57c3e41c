"""The sweep of this process, and the ticker that every worker starts."""

from django.db import connections

from wfapp import wiring
from wfapp.beat.sweep import Sweep
from wfapp.beat.ticker import HostLock, Ticker
from wfapp.conf import config


def get_sweep() -> Sweep:
    """What each form of the ticker calls in this process."""
    sweep: Sweep = wiring.part("sweep", _make_sweep)
    return sweep


def start() -> Ticker | None:
    """Start the worker's ticker thread, unless the setting leaves ticking to others."""
    if not config().ticker.thread:
        return None
    ticker = Ticker(get_sweep, wiring.get_notices().wait_wake, HostLock(_what_is_ticked()))
    ticker.start()
    return ticker


def _make_sweep() -> Sweep:
    ticker = config().ticker
    return Sweep(
        service=wiring.get_service(),
        store=wiring.get_store(),
        judge=wiring.make_judge(),
        health=wiring.get_health(),
        epochs=wiring.make_epoch_watch(),
        lost=wiring.make_lost_messages(),
        budget=ticker.budget,
        interval=ticker.interval,
        batch=ticker.batch,
    )


def _what_is_ticked() -> str:
    """Names the database, so that two projects on one host tick both."""
    settings = connections[config().database].settings_dict
    parts = ("ENGINE", "HOST", "PORT", "NAME")
    return "|".join(str(settings.get(part, "")) for part in parts)
