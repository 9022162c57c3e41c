"""Verbs that run processes: `dev` all in this one, `worker` the recommended pair of workers."""

import argparse
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.core.management import call_command

from wfapp import wiring
from wfapp.cli.answers import VerbError
from wfapp.cli.context import Context
from wfapp.conf import config
from wfapp.dispatch.embedded import EmbeddedWorkerError, embedded_worker
from wfapp.dispatch.queues import DEFAULT_TASK_QUEUE

_LOOK_SECONDS = 0.2


# ---- dev


def dev_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-t",
        "--task-queue",
        action="append",
        default=[],
        help="a queue to serve; repeat it for more; without it that of the setting",
    )
    parser.add_argument("--slots", type=int, default=8, help="tasks at once (8)")
    parser.add_argument("--address", default="127.0.0.1:8000", help="of the web server")
    parser.add_argument("--no-web", action="store_true", help="no web server")
    parser.add_argument("--no-migrate", action="store_true", help="leave the database as it is")


def dev(context: Context) -> None:
    """Web server, worker and ticker in this process, for a machine of one's own; ends on Ctrl-C."""
    options = context.options
    if not options["no_migrate"]:
        call_command("migrate", verbosity=0)
    queues = _celery_queues(options["task_queue"])
    app = wiring.get_celery_app()
    try:
        with _ended_by_signals(), embedded_worker(app, slots=options["slots"], queues=queues):
            context.printer.note(f"worker: {options['slots']} slots on {', '.join(queues)}")
            if options["no_web"]:
                threading.Event().wait()
            else:
                context.printer.note(f"web: http://{options['address']}/admin/")
                call_command("runserver", options["address"], use_reloader=False)
    except EmbeddedWorkerError as error:
        raise VerbError(str(error)) from error
    except KeyboardInterrupt:
        context.printer.note("stopping")


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM ends this process as Ctrl-C does."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# ---- worker


def worker_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-t",
        "--task-queue",
        action="append",
        default=[],
        help="a queue to serve; repeat it for more; without it that of the setting",
    )
    parser.add_argument("-A", "--app", default="", help="the Celery app; without it the current")
    parser.add_argument("--slots", type=int, default=0, help="for activities; 0: one a core")
    parser.add_argument("--workflow-slots", type=int, default=2, help="for workflow tasks (2)")
    parser.add_argument("--pool", default="prefork", help="Celery's pool (prefork)")
    parser.add_argument("--loglevel", default="INFO")


def worker(context: Context) -> None:
    """One worker for the queues, and a small one for their workflow tasks alone.

    So an activity that runs for an hour never holds up a signal. Both end together: whoever
    supervises this process starts it again.
    """
    for process in (pair := [_started(command) for command in commands(context.options)]):
        context.printer.note(f"worker process {process.pid}")
    with _passed_on(pair) as told:
        while all(process.poll() is None for process in pair):
            time.sleep(_LOOK_SECONDS)
        if not told:  # a second signal would end a worker the hard way
            for process in pair:
                process.terminate()
        codes = [process.wait() for process in pair]
    if any(codes):
        raise VerbError(f"a worker ended with code {next(filter(None, codes))}")


def commands(options: dict[str, Any]) -> list[list[str]]:
    """The command lines of the two workers."""
    queues = _celery_queues(options["task_queue"])
    names = wiring.get_queue_names()
    app = options["app"] or wiring.get_celery_app().main
    if not app:
        raise VerbError("the Celery app has no name; give it by --app, as for celery -A")
    base = [sys.executable, "-m", "celery", "-A", app, "worker", f"--pool={options['pool']}"]
    base.append(f"--loglevel={options['loglevel']}")
    slots = [f"--concurrency={options['slots']}"] if options["slots"] else []
    workflows = names.beside(queues)
    return [
        [*base, "--hostname=activities@%h", f"--queues={','.join(queues)}", *slots],
        [
            *base,
            "--hostname=workflows@%h",
            f"--queues={','.join(workflows)}",
            f"--concurrency={options['workflow_slots']}",
        ],
    ]


def _celery_queues(task_queues: Sequence[str]) -> list[str]:
    names = wiring.get_queue_names()
    wanted = task_queues or [config().task_queue or DEFAULT_TASK_QUEUE]
    return [names.activities(queue) for queue in wanted]


def _started(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, start_new_session=True)  # noqa: S603 - our own command line


@contextmanager
def _passed_on(pair: Sequence["subprocess.Popen[bytes]"]) -> Iterator[list[int]]:
    """Signals to this process reach both workers, which then end in their own time; gives those
    that came.
    """
    told: list[int] = []

    def forward(signum: int, _frame: Any) -> None:
        told.append(signum)
        for process in pair:
            process.send_signal(signum)

    caught = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
    before = {signum: signal.signal(signum, forward) for signum in caught}
    try:
        yield told
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
