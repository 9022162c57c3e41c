"""The verbs, each with its options and what it does."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wfapp.cli import acting, looking, running
from wfapp.cli.context import Context

Verb = Callable[[Context], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class VerbEntry:
    """A verb of `manage.py workflow`."""

    help: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Verb


VERBS: Mapping[str, VerbEntry] = {
    "start": VerbEntry(help="start a workflow", add_options=acting.start_options, run=acting.start),
    "list": VerbEntry(
        help="list runs, newest first", add_options=looking.list_options, run=looking.list_runs
    ),
    "show": VerbEntry(
        help="all that is known of a run, and why it is where it is",
        add_options=looking.show_options,
        run=looking.show,
    ),
    "history": VerbEntry(
        help="the events of a run; --output exports them in Temporal's JSON",
        add_options=looking.history_options,
        run=looking.history,
    ),
    "result": VerbEntry(
        help="wait for a workflow's end and print its result",
        add_options=looking.result_options,
        run=looking.result,
    ),
    "why": VerbEntry(
        help="why a run is not moving, in a sentence",
        add_options=looking.why_options,
        run=looking.why,
    ),
    "signal": VerbEntry(help="send a signal", add_options=acting.signal_options, run=acting.signal),
    "query": VerbEntry(help="ask a run", add_options=acting.query_options, run=acting.query),
    "cancel": VerbEntry(
        help="ask a run to cancel itself", add_options=acting.cancel_options, run=acting.cancel
    ),
    "terminate": VerbEntry(
        help="end a run at once, without its code",
        add_options=acting.terminate_options,
        run=acting.terminate,
    ),
    "dev": VerbEntry(
        help="run web server, worker and ticker in this one process",
        add_options=running.dev_options,
        run=running.dev,
    ),
    "worker": VerbEntry(
        help="run the recommended pair of Celery workers",
        add_options=running.worker_options,
        run=running.worker,
    ),
}


def add_common(parser: argparse.ArgumentParser) -> None:
    """Options of every verb."""
    parser.add_argument(
        "-n", "--namespace", default="", help="namespace; without it that of the setting"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, errors too")


def run(name: str, context: Context) -> None:
    """Do what a verb says."""
    VERBS[name].run(context)
