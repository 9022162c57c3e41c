"""What users get wrong, end to end: each a typed error that says what to do, nothing half written,
and other runs go on. What needs no database stands in tests/unit/service/test_bad_input.py.
"""

import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings as django_settings
from django.db import connections

from tools.stack import Stack
from wfapp import conf, operating, wiring
from wfapp.client import WorkflowHandle, get_client
from wfapp.dispatch.discovery import ProjectRegistry
from wfapp.testing import WorkflowEnvironment
from wfcore import activity, workflow
from wfcore.client import WorkflowFailureError
from wfcore.common import (
    RetryPolicy,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
)
from wfcore.exceptions import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
    WorkflowAlreadyStartedError,
)
from wfcore.protocol import events as ev
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.rpc.workflows import (
    RequestCancelWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
)
from wfcore.service.ports import RunFilter

NUL, HALF = "a\0b", "a\ud800"
BIG = "x" * (2 * 1024 * 1024 + 1)
#: What a view may take while a server is away, and what a loaded machine adds.
VIEW_SECONDS = 2.0 + 1.5


@activity.defn
def double(number: int) -> int:
    return 2 * number


@activity.defn
def gives_an_object() -> Any:
    return object()


@activity.defn
def gives_too_much() -> str:
    return BIG


@activity.defn
def misses_a_file() -> None:
    raise FileNotFoundError(b"caf\xe9\0".decode(errors="surrogateescape"))


@workflow.defn
class Calls:
    """Calls an activity, by name, with whatever arguments."""

    @workflow.run
    async def run(self, name: str, args: list[Any]) -> Any:
        return await workflow.execute_activity(
            name,
            args=args,
            start_to_close_timeout=timedelta(seconds=10),
            retry_policy=RetryPolicy(maximum_attempts=1),
        )


@workflow.defn
class Doubles:
    """A workflow as it should be."""

    @workflow.run
    async def run(self, number: int) -> int:
        return await workflow.execute_activity(
            double, number, start_to_close_timeout=timedelta(seconds=10)
        )


@workflow.defn
class Gives:
    """Gives what can't be recorded."""

    @workflow.run
    async def run(self, what: str) -> Any:
        return {"object": object(), "too much": BIG}[what]


@workflow.defn
class Schedules:
    """Schedules an activity under an id that no database takes."""

    @workflow.run
    async def run(self, activity_id: str) -> None:
        await workflow.execute_activity(
            double, 1, activity_id=activity_id, start_to_close_timeout=timedelta(seconds=10)
        )


@pytest.fixture
def environment(db: None) -> Iterator[WorkflowEnvironment]:
    registry = ProjectRegistry(wiring.get_celery_app())
    for kind in (Calls, Doubles, Gives, Schedules):
        registry.add_workflow(kind)
    for function in (double, gives_an_object, gives_too_much, misses_a_file):
        registry.add_activity(function)
    with wiring.replaced(registry=registry), WorkflowEnvironment() as environment:
        yield environment


def start(kind: Any, *args: Any, **options: Any) -> WorkflowHandle:
    return get_client().start_workflow(kind, args=args, **options)


def rows() -> dict[str, int]:
    """How many rows each table has."""
    models = apps.get_app_config("wfapp").get_models()
    return {model.__name__: model._default_manager.count() for model in models}


def others_go_on() -> None:
    assert start(Doubles.run, 21).result() == 42


def last(handle: WorkflowHandle, kind: type) -> Any:
    found = [e.attributes for e in handle.fetch_history().events if isinstance(e.attributes, kind)]
    return found[-1] if found else None


# ---- what workers meet


@pytest.mark.parametrize(
    ("name", "args", "says"),
    [
        ("nobody", [], "Activity function nobody for workflow .* is not registered"),
        ("double", [1, 2], "takes 1 positional argument but 2 were given"),
        ("double", [], "missing 1 required positional argument: 'number'"),
        ("double", ["one"], "Failed decoding arguments"),
        ("gives_an_object", [], "Object of type object is not JSON serializable"),
        ("gives_too_much", [], "Complete result exceeds size limit"),
        ("misses_a_file", [], r"caf\\udce9"),
    ],
)
def test_activities_that_can_not_be_done(
    environment: WorkflowEnvironment, name: str, args: list[Any], says: str
) -> None:
    handle = start(Calls.run, name, args)
    with pytest.raises(WorkflowFailureError) as caught:
        handle.result()
    reason = caught.value.cause.cause  # type: ignore[union-attr]  # the activity's error has one
    with pytest.raises(type(reason), match=says):
        raise reason
    others_go_on()


@pytest.mark.parametrize(
    ("kind", "args", "says"),
    [
        ("Nobody", [], "Workflow class Nobody is not registered on this worker, available"),
        (Doubles.run, [], "missing 1 required positional argument: 'number'"),
        (Gives.run, ["object"], "Object of type object is not JSON serializable"),
        (Schedules.run, [NUL], "BadScheduleActivityAttributes: attributes.activityId holds a NUL"),
        (Schedules.run, [HALF], "BadScheduleActivityAttributes: attributes.activityId holds half"),
        (Schedules.run, ["a" * 1001], "activityId exceeds length limit. Length=1001 Limit=1000"),
    ],
)
def test_workflows_that_can_not_be_run_fail_their_task_and_wait_for_better_code(
    environment: WorkflowEnvironment, kind: Any, args: list[Any], says: str
) -> None:
    handle = start(kind, *args)
    environment.run_until_idle()
    assert says in last(handle, ev.WorkflowTaskFailed).failure.message
    assert handle.describe().status.name == "RUNNING"  # type: ignore[union-attr]
    others_go_on()


def test_a_result_that_is_too_big_ends_the_run(environment: WorkflowEnvironment) -> None:
    handle = start(Gives.run, "too much")
    with pytest.raises(WorkflowFailureError):
        handle.result()
    assert "Result exceeds size limit" in last(handle, ev.WorkflowExecutionTerminated).reason
    others_go_on()


# ---- what callers meet


def _naive() -> TypedSearchAttributes:
    key = SearchAttributeKey.for_datetime("Since")
    return TypedSearchAttributes([SearchAttributePair(key, datetime(2026, 1, 1))])  # noqa: DTZ001


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a NUL in an id": (lambda: start("T", id=NUL), InvalidArgumentError, "workflowId holds a NUL"),
    "half a pair in an id": (
        lambda: start("T", id=HALF),
        InvalidArgumentError,
        "workflowId holds half of a surrogate pair",
    ),
    "a NUL in a queue": (
        lambda: start("T", task_queue=NUL),
        InvalidArgumentError,
        "taskQueue.name holds a NUL",
    ),
    "an id that is too long": (
        lambda: start("T", id="ü" * 501),
        InvalidArgumentError,
        r"WorkflowId exceeds maximum allowed length \(1002/1000\)",
    ),
    "an id that is none": (
        lambda: start("T", id=5),  # type: ignore[arg-type]
        InvalidArgumentError,
        "workflowId must be of type str, not int",
    ),
    "seconds without a unit": (
        lambda: start("T", run_timeout=30),
        InvalidArgumentError,
        "workflowRunTimeout must be of type timedelta, not int",
    ),
    "a negative duration": (
        lambda: start("T", start_delay=-timedelta(seconds=1)),
        InvalidArgumentError,
        "negative duration",
    ),
    "a coefficient that is no number": (
        lambda: start("T", retry_policy=RetryPolicy(backoff_coefficient=float("nan"))),
        InvalidArgumentError,
        "retryPolicy.backoffCoefficient is nan",
    ),
    "a search attribute with a long name": (
        lambda: start("T", search_attributes={"n" * 1001: ["x"]}),
        InvalidArgumentError,
        "the name of a search attribute exceeds",
    ),
    "a time without a zone": (
        lambda: start("T", search_attributes=_naive()),
        ValueError,
        "Timezone must be present",
    ),
    "an argument that JSON can't express": (
        lambda: start("T", object()),
        TypeError,
        "Object of type object is not JSON serializable",
    ),
    "an argument that is too big": (
        lambda: start("T", BIG),
        InvalidArgumentError,
        "Blob data size exceeds limit",
    ),
    "a second start": (
        lambda: start("T", id="open"),
        WorkflowAlreadyStartedError,
        "already started",
    ),
    "a signal to nobody": (
        lambda: get_client().get_workflow_handle("nobody").signal("go"),
        NotFoundError,
        "workflow not found for ID: nobody",
    ),
    "a signal to a closed run": (
        lambda: get_client().get_workflow_handle("closed").signal("go"),
        NotFoundError,
        "workflow execution already completed",
    ),
    "a signal without a name": (
        lambda: get_client().get_workflow_handle("open").signal(""),
        InvalidArgumentError,
        "SignalName is not set",
    ),
    "a NUL in a signal's name": (
        lambda: get_client().get_workflow_handle("open").signal(NUL),
        InvalidArgumentError,
        "signalName holds a NUL",
    ),
    "half a pair in a reason": (
        lambda: get_client().get_workflow_handle("open").terminate(reason=HALF),
        InvalidArgumentError,
        "reason holds half of a surrogate pair",
    ),
    "a run id that is none": (
        lambda: get_client().get_workflow_handle("open", run_id="first").cancel(),
        InvalidArgumentError,
        "Invalid RunId",
    ),
    "a list with a NUL": (
        lambda: list(get_client().list_workflows(f"WorkflowId = '{NUL}'")),
        InvalidArgumentError,
        "query holds a NUL",
    ),
    "a NUL in what an operator cancels": (
        lambda: operating.perform(
            operating.view_service(),
            RequestCancelWorkflowExecutionRequest(
                namespace="default", workflow_execution=WorkflowExecution(workflow_id=NUL)
            ),
            operating.Operator(actor="boss"),
        ),
        InvalidArgumentError,
        "workflowExecution.workflowId holds a NUL",
    ),
    "half a pair in what an operator starts": (
        lambda: operating.perform(
            operating.view_service(),
            StartWorkflowExecutionRequest(namespace="default", workflow_id=HALF),
            operating.Operator(actor="boss"),
        ),
        InvalidArgumentError,
        "workflowId holds half of a surrogate pair",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_calls_that_are_refused_write_nothing(environment: WorkflowEnvironment, what: str) -> None:
    start(Doubles.run, 1, id="closed").result()
    start("T", id="open")
    call, kind, says = REFUSED[what]
    before = rows()
    with pytest.raises(kind, match=says):
        call()
    assert rows() == before
    others_go_on()


def test_what_slips_through_is_told_in_words_all_the_same(db: None) -> None:
    store = wiring.get_store()
    with pytest.raises(InvalidArgumentError, match="can't hold a value"):
        store.list_runs("default", RunFilter(workflow_type=HALF), limit=1)
    if connections["default"].vendor == "postgresql":
        with pytest.raises(InvalidArgumentError, match="can't hold a value"):
            store.head("default", NUL)


# ---- servers that are away


@contextlib.contextmanager
def elsewhere(entry: dict[str, Any]) -> Iterator[None]:
    """Workflows under an alias of its own."""
    alias, before = "elsewhere", django_settings.WORKFLOWS
    django_settings.DATABASES[alias] = entry
    connections.configure_settings(django_settings.DATABASES)
    django_settings.WORKFLOWS = {"DATABASE": alias}
    conf.config.cache_clear()
    wiring.reset()
    try:
        yield
    finally:
        connections[alias].close()
        del connections[alias]
        del django_settings.DATABASES[alias]
        django_settings.WORKFLOWS = before
        conf.config.cache_clear()
        wiring.reset()


@contextlib.contextmanager
def silent_server() -> Iterator[int]:
    """A port where connections are taken and nobody says a word."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(50)
        yield server.getsockname()[1]


@pytest.mark.parametrize("silent", [False, True], ids=["refused", "silent"])
def test_without_a_database_a_view_is_told_so_in_time(silent: bool, django_db_blocker: Any) -> None:
    from settings.databases import from_url

    with silent_server() as port, django_db_blocker.unblock():
        entry = from_url(f"postgres://nobody:secret@127.0.0.1:{port if silent else 1}/none")
        with elsewhere(entry):
            calls: list[Callable[[], Any]] = [
                lambda: start("T", id="a"),
                lambda: get_client().get_workflow_handle("a").signal("go"),
                lambda: get_client().get_workflow_handle("a").describe(),
            ]
            for call in calls:
                begun = time.monotonic()
                with pytest.raises(UnavailableError, match=r"DATABASES\['elsewhere'\]") as caught:
                    call()
                assert time.monotonic() - begun < VIEW_SECONDS
                assert "secret" not in str(caught.value)
                assert "\n" not in str(caught.value)


def test_before_migrate_the_error_says_to_migrate(tmp_path: Path, django_db_blocker: Any) -> None:
    from settings.databases import sqlite

    with django_db_blocker.unblock(), elsewhere(sqlite(tmp_path / "empty.sqlite3")):
        begun = time.monotonic()
        with pytest.raises(FailedPreconditionError, match="migrate --database elsewhere"):
            get_client().get_workflow_handle("a").describe()
        assert time.monotonic() - begun < VIEW_SECONDS


@pytest.mark.parametrize("silent", [False, True], ids=["refused", "silent"])
def test_without_a_broker_a_start_is_recorded_in_time_and_told_once(
    db: None, silent: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app = wiring.get_celery_app()
    before = app.conf.broker_url
    with silent_server() as port:
        app.conf.broker_url = f"redis://:secret@127.0.0.1:{port if silent else 1}/0"
        wiring.reset()
        try:
            dispatcher = wiring.get_dispatcher()
            with caplog.at_level(logging.WARNING):
                for number in range(3):
                    handle = start("T", id=f"w{number}")
                    begun = time.monotonic()
                    # What a TestCase never commits is announced by hand.
                    dispatcher.dispatch([_announcement(handle)])
                    assert time.monotonic() - begun < VIEW_SECONDS
        finally:
            app.conf.broker_url = before
            wiring.reset()
    assert rows()["CurrentRun"] == 3
    (record,) = [each for each in caplog.records if each.__dict__.get("action") == "broker_away"]
    assert "secret" not in record.getMessage()


def _announcement(handle: WorkflowHandle) -> Any:
    from wfcore.history.effects import DispatchWorkflowTask

    return DispatchWorkflowTask(
        namespace="default",
        workflow_id=handle.id,
        run_id=handle.result_run_id or "",
        task_queue="default",
        scheduled_event_id=2,
        attempt=1,
    )


def test_a_worker_without_servers_says_so_and_ends_when_it_is_told(tmp_path: Path) -> None:
    environment = {
        "DJANGO_SETTINGS_MODULE": "settings.test",
        "DATABASE_URL": "postgres://nobody:secret@127.0.0.1:1/none",
        "REDIS_URL": "redis://:secret@127.0.0.1:1/0",
        "TMPDIR": str(tmp_path),
    }
    with Stack(tmp_path, environment) as programs:
        worker = programs.worker("w", slots=1)
        for words in (
            "Cannot connect to redis",
            "lease not renewed, it is tried again: database 'default' can't be had",
            "nothing can come due while the database is away; it is tried again: database",
        ):
            worker.wait_for(words)
        worker.ask_to_stop()
        worker.wait_for("leaving without the database")
        worker.wait(30)
    said = worker.output()
    assert "Traceback" not in said
    assert "secret" not in said
    assert said.count("nothing can come due") == 1
