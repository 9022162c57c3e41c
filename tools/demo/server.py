"""The demo on the real thing: every process of a production set-up, on this machine."""

import os
import secrets
import tempfile
import time
from pathlib import Path

import django
import psutil

from tools.demo.account import Account
from tools.services import services
from tools.stack import BEAT_READY, LOOPBACK, WEB_READY, WORKER_READY, Program, Stack, free_port

SETTINGS = "tools.demo.settings"
WORKERS = ("worker-1", "worker-2")
SLOTS = 2
ADMIN = "demo"
SEARCH_SECONDS = 30.0
LOOK_SECONDS = 0.05


def play(account: Account, output: Path, keep_seconds: float) -> None:
    """Start everything, tell the story, show where to look, end everything."""
    account.head("Starting PostgreSQL and Redis")
    with tempfile.TemporaryDirectory(prefix="wf-demo-") as scratch, services() as running:
        account.say(f"PostgreSQL {running.postgres.version}, Redis {running.redis.version}")
        password = secrets.token_urlsafe(9)
        environment = {**running.environment(), "DJANGO_SETTINGS_MODULE": SETTINGS}
        os.environ.update(environment)
        with Stack(Path(scratch), environment) as stack:
            base = _start(stack, account)
            os.environ["DEMO_LOG"] = str(Path(scratch) / "demo.log")
            django.setup()
            numbers = _tell_the_story(stack, account, output)
            _make_admin(password)
            _where_to_look(account, environment, base, password, numbers[0])
            if keep_seconds:
                account.say(f"All of it stays up for {keep_seconds:.0f} s; Ctrl-C ends it sooner.")
                time.sleep(keep_seconds)
            account.head("Stopping everything")
    account.say("Done; nothing is left running.")


def _start(stack: Stack, account: Account) -> str:
    account.head("Starting the project")
    stack.manage("migrate", "--verbosity=0")
    port = free_port()
    started = [(_start_worker(stack, name), WORKER_READY) for name in WORKERS]
    started += [(_start_workflow_worker(stack), WORKER_READY)]
    started += [(stack.beat(), BEAT_READY), (stack.web(port), WEB_READY)]
    for program, words in started:
        program.wait_for(words)
        account.say(f"{program.name:<16} process {program.pid}")
    return f"http://{LOOPBACK}:{port}"


def _start_worker(stack: Stack, name: str) -> Program:
    return stack.worker(name, slots=SLOTS)


def _start_workflow_worker(stack: Stack) -> Program:
    """Small and apart, so that no long activity keeps a signal waiting."""
    return stack.worker("worker-workflows", slots=1, queues=["celery.workflow"])


def _make_admin(password: str) -> None:
    """An account of the demo's own, also in a database that was given."""
    from django.contrib.auth.models import User  # noqa: PLC0415

    user, _ = User.objects.get_or_create(username=ADMIN)
    user.is_staff = user.is_superuser = True
    user.set_password(password)
    user.save()


def _tell_the_story(stack: Stack, account: Account, output: Path) -> list[str]:
    # Models load only now: Django is set up for this run's servers.
    from tools.demo import story  # noqa: PLC0415

    def kill_a_worker() -> None:
        program, slot = _busy_worker(stack)
        account.tell("kill -9", f"{program.name} with all its slots; {slot} was at work", "fault")
        program.kill()
        _start_worker(stack, program.name)
        account.tell(program.name, "started again")

    numbers = list(story.orders(account))
    report = story.flights(account, output, kill_a_worker)
    story.show_orders(account, numbers)
    story.show_report(account, report)
    return numbers


def _busy_worker(stack: Stack) -> tuple[Program, str]:
    """A worker one of whose processes holds the claim of an activity, as the database tells."""
    from wfapp.models import PendingActivity, WorkerProcess  # noqa: PLC0415

    deadline = time.monotonic() + SEARCH_SECONDS
    while time.monotonic() < deadline:
        owners = PendingActivity.objects.filter(owner__gt="").values("owner")
        for pid in WorkerProcess.objects.filter(boot_id__in=owners).values_list("pid", flat=True):
            line = {pid, *(parent.pid for parent in psutil.Process(pid).parents())}
            for program in stack.programs:
                if program.name in WORKERS and program.pid in line:
                    return program, f"process {pid}"
        time.sleep(LOOK_SECONDS)
    raise RuntimeError("no worker was at work")


def _where_to_look(
    account: Account, environment: dict[str, str], base: str, password: str, number: str
) -> None:
    account.head("Where to look")
    account.say(f"admin:    {base}/admin/   user {ADMIN}, password {password}")
    runs = f"{base}/api/v1/namespaces/default/workflows"
    account.say(f"API:      curl -u {ADMIN}:{password} {runs}")
    exports = " ".join(
        f"{name}='{environment[name]}'"
        for name in ("DJANGO_SETTINGS_MODULE", "DATABASE_URL", "REDIS_URL")
    )
    account.say("history:  export " + exports)
    account.say("          .venv/bin/python manage.py workflow list")
    account.say(f"          .venv/bin/python manage.py workflow history order-{number}")
    account.say("          .venv/bin/python manage.py workflow show flights-2013")
