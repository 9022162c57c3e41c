"""The verbs, each with its options and what it does."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wfapp.cli import acting, activities, looking, running, starting, updating
from wfapp.cli.context import Context

Verb = Callable[[Context], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class VerbEntry:
    """A verb of `manage.py workflow`."""

    help: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Verb


#: A name of two words is a verb of a group.
VERBS: Mapping[str, VerbEntry] = {
    "start": VerbEntry(
        help="start a workflow", add_options=starting.start_options, run=starting.start
    ),
    "execute": VerbEntry(
        help="start a workflow and wait for its result",
        add_options=starting.execute_options,
        run=starting.execute,
    ),
    "signal-with-start": VerbEntry(
        help="signal a workflow, started if it is not open",
        add_options=starting.signal_with_start_options,
        run=starting.signal_with_start,
    ),
    "start-update-with-start": VerbEntry(
        help="update a workflow, started if it is not open, and wait until that is accepted",
        add_options=starting.start_update_options,
        run=starting.start_update_with_start,
    ),
    "execute-update-with-start": VerbEntry(
        help="update a workflow, started if it is not open, and print the update's result",
        add_options=starting.execute_update_options,
        run=starting.execute_update_with_start,
    ),
    "list": VerbEntry(
        help="list runs, newest first", add_options=looking.list_options, run=looking.list_runs
    ),
    "show": VerbEntry(
        help="all that is known of a run, and why it is where it is",
        add_options=looking.show_options,
        run=looking.show,
    ),
    "describe": VerbEntry(
        help="the same as show, by Temporal's name",
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
    "update start": VerbEntry(
        help="send an update and wait until it is accepted",
        add_options=updating.start_options,
        run=updating.start,
    ),
    "update execute": VerbEntry(
        help="send an update and print its result",
        add_options=updating.execute_options,
        run=updating.execute,
    ),
    "update result": VerbEntry(
        help="wait for an update's end and print its result",
        add_options=updating.result_options,
        run=updating.result,
    ),
    "update describe": VerbEntry(
        help="how far an update has come",
        add_options=updating.describe_options,
        run=updating.describe,
    ),
    "cancel": VerbEntry(
        help="ask a run to cancel itself", add_options=acting.cancel_options, run=acting.cancel
    ),
    "terminate": VerbEntry(
        help="end a run at once, without its code",
        add_options=acting.terminate_options,
        run=acting.terminate,
    ),
    "reset": VerbEntry(
        help="go on from an earlier workflow task, in another run",
        add_options=acting.reset_options,
        run=acting.reset,
    ),
    "activity complete": VerbEntry(
        help="complete an activity from outside",
        add_options=activities.complete_options,
        run=activities.complete,
    ),
    "activity fail": VerbEntry(
        help="fail an activity from outside, for good",
        add_options=activities.fail_options,
        run=activities.fail,
    ),
    "activity pause": VerbEntry(
        help="keep attempts from beginning",
        add_options=activities.pause_options,
        run=activities.pause,
    ),
    "activity unpause": VerbEntry(
        help="let attempts begin again",
        add_options=activities.unpause_options,
        run=activities.unpause,
    ),
    "activity reset": VerbEntry(
        help="begin with the first attempt again",
        add_options=activities.reset_options,
        run=activities.reset,
    ),
    "activity update-options": VerbEntry(
        help="change timeouts, queue or retry policy of pending activities",
        add_options=activities.update_options_options,
        run=activities.update_options,
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


GROUPS: Mapping[str, str] = {
    "update": "send updates and see what came of them",
    "activity": "answer and steer pending activities",
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
