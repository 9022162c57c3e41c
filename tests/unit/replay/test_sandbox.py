"""Guards: what breaks replay is refused in guarded workflows, and nowhere else."""

import datetime as dt
import logging
import os
import random
import secrets
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from time import time as imported_time
from typing import Any

import pytest

from tests.support.live_run import LiveRun, asked
from wfcore import workflow
from wfcore.exceptions import RestrictedWorkflowAccessError
from wfcore.replay import sandbox
from wfcore.workflow import WorkflowDefinition


@pytest.fixture(autouse=True)
def _guards() -> Iterator[None]:
    sandbox.install()
    yield
    sandbox.uninstall()


def calling(call: Callable[[], Any]) -> type:
    """A workflow that calls this, out of sight of its source."""

    @workflow.defn
    class Calls:
        @workflow.run
        async def run(self) -> None:
            call()

    return Calls


CALLS: list[tuple[str, Callable[[], Any], str]] = [
    # Looked up when called: the guards come later than this list.
    ("time.time()", lambda: time.time() + 0, "workflow.now()"),
    ("time.time_ns()", lambda: time.time_ns() + 0, "workflow.time()"),
    ("time.time()", lambda: str(date.today()), "workflow.now()"),  # noqa: DTZ011
    ("time.sleep()", lambda: time.sleep(0), "asyncio.sleep()"),
    ("random.randint()", lambda: random.randint(1, 6), "workflow.random()"),
    ("random.shuffle()", lambda: random.shuffle([1]), "workflow.random()"),
    ("uuid.uuid4()", lambda: str(uuid.uuid4()), "workflow.uuid4()"),
    ("os.urandom()", lambda: os.urandom(1), "workflow.random()"),
    ("secrets.token_hex()", lambda: secrets.token_hex(4), "workflow.uuid4()"),
    ("Thread.start()", lambda: threading.Thread(target=int).start(), "activity"),
    ("open()", lambda: open(__file__), "activity"),  # noqa: PTH123, SIM115
    ("io.open()", lambda: Path(__file__).read_text(), "activity"),
    ("socket()", lambda: socket.create_connection(("127.0.0.1", 9)), "activity"),
    ("Popen()", lambda: subprocess.run([sys.executable]), "activity"),  # noqa: PLW1510
]


@pytest.mark.parametrize(("name", "call", "advice"), CALLS)
def test_a_guarded_workflow_is_told_what_to_use(
    name: str, call: Callable[[], Any], advice: str
) -> None:
    result = LiveRun(calling(call), guarded=True).fail()
    assert isinstance(result.error, RestrictedWorkflowAccessError)
    assert name.removesuffix("()") in str(result.error)
    assert advice in str(result.error)


@pytest.mark.parametrize("options", [{"guarded": False}, {"guarded": True}])
def test_others_may_do_as_they_like(options: dict[str, bool]) -> None:
    """An unguarded worker, and a class that wants no sandbox."""

    @workflow.defn(sandboxed=not options["guarded"])
    class Free:
        @workflow.run
        async def run(self) -> None:
            time.time()
            random.random()
            uuid.uuid4()

    run = LiveRun(Free, **options)
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]


def test_outside_of_workflows_nothing_changes() -> None:
    assert time.time() > 0
    assert 0 <= random.random() < 1
    with open(__file__) as file:  # noqa: PTH123
        assert file.readline()
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()


def test_restrictions_can_be_lifted() -> None:
    def call() -> None:
        with workflow.unsafe.sandbox_unrestricted():
            time.time()

    run = LiveRun(calling(call), guarded=True)
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]


def test_logging_and_imports_are_not_the_workflows_doing(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_in_workflow.py").write_text("import time\nNOW = time.time()\n")
    monkeypatch.syspath_prepend(tmp_path)
    caplog.set_level(logging.INFO)

    def call() -> None:
        logging.getLogger("plain").info("a line")
        workflow.logger.info("another")
        __import__("imported_in_workflow")

    run = LiveRun(calling(call), guarded=True)
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]
    assert "a line" in caplog.messages


def test_handlers_and_conditions_are_guarded_too() -> None:
    clock = [time.time]

    @workflow.defn
    class Everywhere:
        @workflow.run
        async def run(self, early: bool) -> None:
            await workflow.wait_condition(lambda: early and clock[0]() < 0)

        @workflow.query
        def ask(self) -> float:
            return clock[0]()

    run = LiveRun(Everywhere, True, guarded=True)
    assert isinstance(run.fail().error, RestrictedWorkflowAccessError)
    run = LiveRun(Everywhere, False, guarded=True)
    run.work()
    assert "time.time()" in run.query("ask").error_message


def test_a_hosts_own_functions_can_be_guarded() -> None:
    class Timezone:
        @staticmethod
        def now() -> float:
            return 0.0

    sandbox.guard(Timezone, "now", "Use workflow.now().")
    result = LiveRun(calling(lambda: str(Timezone.now())), guarded=True).fail()
    assert "Use workflow.now()." in str(result.error)
    assert Timezone.now() == 0.0


# --- the source ---------------------------------------------------------------------------------


@workflow.defn
class ReadsClock:
    @workflow.run
    async def run(self) -> str:
        return str(datetime.now())  # noqa: DTZ005


@workflow.defn
class ReadsClockByModule:
    @workflow.run
    async def run(self) -> str:
        return str(dt.datetime.utcnow())  # noqa: DTZ003


@workflow.defn
class ReadsClockByName:
    @workflow.run
    async def run(self) -> float:
        return self.inner()

    def inner(self) -> float:
        return imported_time()


@pytest.mark.parametrize("cls", [ReadsClock, ReadsClockByModule, ReadsClockByName])
def test_calls_that_cannot_be_guarded_are_found_in_the_source(cls: type) -> None:
    with pytest.raises(RestrictedWorkflowAccessError) as caught:
        sandbox.prepare(WorkflowDefinition.must_from_class(cls))
    assert f"{cls.__qualname__} calls it at {__file__}:" in str(caught.value)
    line = int(str(caught.value).split(f"{__file__}:")[1].split(".")[0])
    assert "return" in Path(__file__).read_text().splitlines()[line - 1]


@workflow.defn
class Harmless:
    """Looks like it, but is not."""

    @workflow.run
    async def run(self) -> str:
        with workflow.unsafe.sandbox_unrestricted():
            meant = datetime.now()  # noqa: DTZ005
        return f"{workflow.now()} {meant} {datetime.fromtimestamp(0, dt.UTC)}"


def test_what_is_allowed_passes() -> None:
    sandbox.prepare(WorkflowDefinition.must_from_class(Harmless))


def test_uninstalling_leaves_everything_as_it_was() -> None:
    guarded = time.time
    sandbox.uninstall()
    assert time.time is not guarded
    assert time.time is imported_time
    sandbox.install()
