"""Cases from public reports of Celery and Temporal, as tests: what went wrong there holds here.

Each test names its case. What stands elsewhere: S11 in test_transactions, S12 in test_pools and
test_deaths, S14 in test_long_loops.
"""

import base64
import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psutil
import pytest
import redis
from django.db import connections

from tests.integration.celery.conftest import FULL, Workers, World, in_group
from tests.integration.celery.shop import workflows
from tests.support.waiting import wait_until
from tools.stack import ProgramError, free_port
from wfapp import wiring
from wfapp.client import get_client
from wfapp.presentation.values import encode
from wfcore.client import WorkflowFailureError, WorkflowQueryFailedError
from wfcore.exceptions import CancelledError, ResourceExhaustedError, RPCError
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import EventType
from wfcore.protocol.rpc.workflows import SignalWorkflowExecutionRequest

pytestmark = pytest.mark.timeout(180)

LIMIT = timedelta(seconds=60)
BOSS = "boss"


class Web:
    """The project's web server, and a person who may do everything."""

    def __init__(self, url: str) -> None:
        self.url = url
        login = base64.b64encode(f"{BOSS}:{BOSS}".encode()).decode()
        self._headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}

    def call(self, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of an API call."""
        request = urllib.request.Request(  # noqa: S310 - our own address
            f"{self.url}/api/v1/namespaces/default/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers=self._headers,
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def is_up(self) -> bool:
        try:
            return self.call("workflow-count")[0] == 200
        except urllib.error.URLError:
            return False


@pytest.fixture(scope="module")
def web(world: World) -> Iterator[Web]:
    stack, port = world.stack, free_port()
    person = {f"DJANGO_SUPERUSER_{name}": BOSS for name in ("USERNAME", "PASSWORD")}
    stack.environment.update(person)
    try:
        stack.manage("createsuperuser", "--noinput", "--email=nobody@example.com")
    finally:
        for name in person:
            del stack.environment[name]
    program = stack.web(port)
    found = Web(f"http://127.0.0.1:{port}")
    wait_until(found.is_up, seconds=40, what=f"the web server: {program.tail()}")
    yield found
    program.kill()


def kinds(workflow_id: str) -> list[str]:
    history = get_client().get_workflow_handle(workflow_id).fetch_history()
    return [event.event_type.name for event in history.events]


def workflow_verb(world: World, *arguments: str) -> Any:
    """What `manage.py workflow ... --json` prints."""
    return json.loads(world.stack.manage("workflow", *arguments, "--json"))


# ---- S07


@pytest.mark.parametrize("by", ["command", "api"])
def test_s07_a_cancel_while_every_worker_is_down_holds(
    world: World, workers: Workers, web: Web, name: str, by: str
) -> None:
    client = get_client()
    first = workers.start(queues=["celery.workflow"])
    handle = client.start_workflow(workflows.CleansUp.run, name, id=name)
    wait_until(lambda: "TIMER_STARTED" in kinds(name), what="the activity and the timer")
    first.kill()

    if by == "command":
        workflow_verb(world, "cancel", name, "--reason", "customer left")
    else:
        assert web.call(f"workflows/{name}/cancel", {"reason": "customer left"})[0] == 200
    world.redis.stop()
    world.redis.start()
    world.redis.empty()
    # a second one changes nothing and is no error
    before = kinds(name)
    workflow_verb(world, "cancel", name, "--reason", "again")
    assert kinds(name) == before

    workers.start()
    with pytest.raises(WorkflowFailureError) as raised:
        handle.result(timeout=LIMIT)
    assert isinstance(raised.value.cause, CancelledError)
    assert world.rows(name) == [], "the activity's code never runs"
    assert handle.describe().status.name == "CANCELED"
    _, shown = web.call(f"workflows/{name}")
    memo = shown["workflowExecutionInfo"]["memo"]["fields"]
    assert "cleaned" in memo, "its handler ran, as a workflow task"

    requested = next(
        event.attributes
        for event in handle.fetch_history().events
        if event.event_type.name == "WORKFLOW_EXECUTION_CANCEL_REQUESTED"
    )
    assert requested.cause == "customer left"  # type: ignore[union-attr]
    assert bool(requested.identity) == (by == "command")  # type: ignore[union-attr]
    _, shown = web.call(f"workflows/{name}/history")
    assert "customer left" in json.dumps(shown)
    audited = world.ask(
        "SELECT actor, reason, at FROM wfapp_auditentry WHERE workflow_id = %s "
        "AND action = 'cancel' ORDER BY entry_id",
        name,
    )
    assert [row[1] for row in audited] == ["customer left", "again"]
    assert all(actor and at for actor, _, at in audited)
    assert (audited[0][0] == BOSS) == (by == "api")


# ---- S13 and S16


def stuck_runs(names: list[str]) -> int:
    """How many say that their workflow tasks fail."""
    described = [get_client().get_workflow_handle(each).describe() for each in names]
    return sum("TemporalReportedProblems" in each.search_attributes for each in described)


def test_s13_a_deploy_that_removes_an_activity_makes_runs_stuck_not_failed(
    world: World, workers: Workers, name: str
) -> None:
    client = get_client()
    names = [f"{name}-{number}" for number in range(20)]
    first = workers.start(slots=2)
    for each in names:
        client.start_workflow(
            workflows.Deployed.run, each, id=each, task_timeout=timedelta(seconds=1)
        )
    for each in names:
        world.wait_begun(f"{each}-B")
    wait_until(lambda: all("ACTIVITY_TASK_SCHEDULED" in kinds(each) for each in names))
    first.kill()

    second = workers.start(slots=2, env={"TEST_BUILD": "2"})
    for each in names:
        client.get_async_activity_handle(workflow_id=each, run_id=None, activity_id="B").complete(
            None
        )
    fresh = client.start_workflow(workflows.Deployed.run, f"{name}-new", id=f"{name}-new")
    assert fresh.result(timeout=LIMIT) == f"{name}-new", "new runs are unaffected"
    wait_until(lambda: stuck_runs(names) == 20, seconds=90, what="all are told as stuck")
    assert {client.get_workflow_handle(each).describe().status.name for each in names} == {
        "RUNNING"
    }
    failed = [kind for kind in kinds(names[0]) if kind == "WORKFLOW_TASK_FAILED"]
    assert len(failed) == 1, "repeated failures leave no events"
    failure = next(
        event.attributes.failure.message  # type: ignore[union-attr]
        for event in client.get_workflow_handle(names[0]).fetch_history().events
        if event.event_type.name == "WORKFLOW_TASK_FAILED"
    )
    for words in ("event 11", "wait_outside", "work", "cases.py:"):
        assert words in failure, failure
    why = workflow_verb(world, "why", names[0])
    assert "stuck" in json.dumps(why)
    assert names[0] in second.output()
    assert [row[:1] for row in world.rows(f"{names[0]}-C")] == []
    second.kill()

    workers.start(slots=2, env={"TEST_BUILD": "2b"})
    for each in names:
        assert client.get_workflow_handle(each).result(timeout=timedelta(seconds=90)) == each
        for activity in "ABC":
            assert [row[0] for row in world.rows(f"{each}-{activity}")] == [1], activity
    assert stuck_runs(names) == 0


def test_s16_queries_to_runs_in_every_state(
    world: World, workers: Workers, web: Web, name: str
) -> None:
    client = get_client()
    worker = workers.start(slots=2)

    def start(label: str, kind: Any = workflows.Deployed.run, **options: Any) -> Any:
        return client.start_workflow(kind, args=[label], id=label, **options)

    completed = start(f"{name}-completed")
    world.wait_begun(f"{name}-completed-B")
    client.get_async_activity_handle(
        workflow_id=completed.id, run_id=None, activity_id="B"
    ).complete(None)
    completed.result(timeout=LIMIT)
    failed = start(f"{name}-failed")
    world.wait_begun(f"{name}-failed-B")
    client.get_async_activity_handle(workflow_id=failed.id, run_id=None, activity_id="B").fail(
        RuntimeError("no")
    )
    # retried until it succeeds: terminated instead, which closes it with a failure for the caller
    failed.terminate()
    unknown = start(f"{name}-unknown", "NobodyKnowsIt")
    nobody = start(f"{name}-nobody", task_queue=f"{name}-queue")

    lengths = {each.id: len(kinds(each.id)) for each in (completed, failed)}
    answers: Counter[str] = Counter()

    def ask() -> None:
        answers[client.get_workflow_handle(completed.id).query("state")] += 1
        connections.close_all()

    threads = [threading.Thread(target=ask) for _ in range(50)]
    begun = time.monotonic()
    for number, thread in enumerate(threads):
        thread.start()
        time.sleep(max(0.0, begun + number * 0.04 - time.monotonic()))
    for thread in threads:
        thread.join()
    assert answers == {"C is done": 50}
    assert failed.query("state") == "A is done"
    status, answer = web.call(f"workflows/{completed.id}/query/state", {})
    assert (status, answer["queryResult"]) == (200, ["C is done"])
    assert "A is done" in json.dumps(workflow_verb(world, "query", failed.id, "--name=state"))
    assert lengths == {each.id: len(kinds(each.id)) for each in (completed, failed)}

    begun = time.monotonic()
    status, answer = web.call(f"workflows/{nobody.id}/query/state", {})
    assert time.monotonic() - begun < 3
    assert status == 400
    assert f"no worker serves the task queue '{name}-queue'" in answer["message"]
    with pytest.raises(ProgramError, match="not started"):
        workflow_verb(world, "query", nobody.id, "--name=state")

    with pytest.raises((WorkflowQueryFailedError, RPCError)):
        unknown.query("state")
    assert worker.is_running
    for each in (unknown, nobody):
        each.terminate()


# ---- S15


@pytest.mark.timeout(400)
def test_s15_signals_pour_in_during_continue_as_new(
    world: World, workers: Workers, name: str
) -> None:
    senders, each_sends, per_run = 8, 625 if FULL else 150, 100
    count = senders * each_sends
    client, service = get_client(), wiring.get_service()
    first = workers.start(slots=2)
    handle = client.start_workflow(
        workflows.Summing.run, args=[count, per_run, 0, [0] * senders, []], id=name
    )
    errors: list[BaseException] = []
    accepted: Counter[int] = Counter()

    def deliver(request: SignalWorkflowExecutionRequest) -> None:
        """As the client does: a run that tries to close takes no signals for a moment."""
        while True:
            try:
                service.signal_workflow_execution(request)
            except ResourceExhaustedError:
                time.sleep(0.05)
            else:
                return

    def send(sender: int) -> None:
        rng = random.Random(sender)
        try:
            for number in range(1, each_sends + 1):
                request = SignalWorkflowExecutionRequest(
                    namespace="default",
                    workflow_execution=WorkflowExecution(workflow_id=name),
                    signal_name="add",
                    input=encode(wiring.get_converter(), [sender * 1_000_000 + number]),
                    identity=f"sender {sender}",
                    request_id=f"{name}-{sender}-{number}",
                )
                for _ in range(2 if rng.random() < 0.05 else 1):
                    deliver(request)
                accepted[sender] += 1
        except BaseException as error:  # noqa: BLE001 - told by the test
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(senders)]
    for thread in threads:
        thread.start()
    for third in (1, 2):
        wait_until(
            lambda: errors or accepted.total() >= third * count / 3,  # noqa: B023 - called at once
            seconds=120,
            what="another third of the signals",
        )
        victim = first
        first = workers.start(slots=2, wait=False)
        victim.kill()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
    assert handle.result(timeout=timedelta(seconds=200)) == [
        senders * sum(range(1, each_sends + 1))
    ]
    run_ids = [
        row[0]
        for row in world.ask(
            "SELECT run_id FROM wfapp_workflowexecution WHERE workflow_id = %s", name
        )
    ]
    assert len(run_ids) - 1 >= 0.9 * count / per_run
    for run_id in run_ids:
        history = client.get_workflow_handle(name, run_id=str(run_id)).fetch_history()
        refused = [
            event for event in history.events if event.event_type.name == "WORKFLOW_TASK_FAILED"
        ]
        assert len(refused) <= 2


# ---- S02


def in_broker(world: World) -> dict[str, int]:
    """How many messages each queue of the broker holds, those taken and not acknowledged too."""
    client = redis.Redis.from_url(world.services.redis_url)
    lengths = {
        name.decode(): client.llen(name)
        for name in client.keys("*celery*")
        if client.type(name) == b"list"
    }
    return {**lengths, "unacked": client.hlen("unacked")}


def test_s02_a_wait_beyond_the_visibility_timeout_ends_once(
    world: World, workers: Workers, name: str
) -> None:
    sleepers, seconds = (20_000, 120.0) if FULL else (100, 12.0)
    short = {"TEST_VISIBILITY": "5"}
    both = [workers.start(slots=2, env=short) for _ in range(2)]
    client = get_client()
    payer = client.start_workflow(workflows.SleepsThenWorks.run, args=[name, seconds], id=name)
    for number in range(sleepers):
        client.start_workflow(workflows.Sleeper.run, 86_400.0, id=f"{name}-{number}")
    began = payer.describe().start_time.timestamp()

    def timers() -> int:
        ((count,),) = world.ask(
            "SELECT count(*) FROM wfapp_historyevent AS event JOIN wfapp_executionstate AS state "
            "ON (state.shard, state.run_id) = (event.shard, event.run_id) "
            "WHERE state.workflow_id LIKE %s AND event.event_type = %s",
            f"{name}-%",
            EventType.TIMER_STARTED.value,
        )
        return int(count)

    wait_until(lambda: timers() == sleepers, seconds=900 if FULL else 60, what="all sleep")
    wait_until(lambda: not any(in_broker(world).values()), what=f"nothing: {in_broker(world)}")
    for program in both:
        memory = max(psutil.Process(pid).memory_info().rss for pid in in_group(program))
        assert memory < 300e6
        program.kill()
    for _ in range(2):
        workers.start(slots=2, env=short)
    assert payer.result(timeout=timedelta(seconds=seconds + 60)) == f"{name} done"
    ((attempt, _, ended, begun),) = world.rows(name)
    assert (attempt, ended) == (1, True)
    if not FULL:  # at full size the sleepers are started for longer than that
        assert seconds - 0.1 <= begun - began < seconds + 8
    assert timers() == sleepers
    world.ask("DELETE FROM wfapp_executionstate WHERE workflow_id LIKE %s RETURNING 1", f"{name}-%")


# ---- S03


def test_s03_an_emptied_broker_loses_and_repeats_nothing(
    world: World, workers: Workers, name: str
) -> None:
    each, away = (50, 20.0) if FULL else (8, 4.0)
    client = get_client()
    for _ in range(2):
        workers.start(slots=4)

    def start(kind: Any, label: str, *arguments: Any) -> list[Any]:
        return [
            client.start_workflow(
                kind, args=[f"{name}-{label}-{number}", *arguments], id=f"{name}-{label}-{number}"
            )
            for number in range(each)
        ]

    started = start(workflows.SleepsThenWorks.run, "waiting", 6.0)
    started += start(workflows.Work.run, "running", 5.0)
    world.wait_begun(f"{name}-running-0")
    started += start(workflows.Work.run, "queued", 0.1)
    world.redis.empty()
    started += start(workflows.Work.run, "started", 0.1)
    world.redis.stop()
    time.sleep(away)
    world.redis.start()
    world.redis.empty()
    back = time.monotonic()
    for handle in started:
        handle.result(timeout=timedelta(seconds=90))
    assert time.monotonic() - back < 60 + 5.0 * each / 8
    for handle in started:
        assert [(row[0], row[2]) for row in world.rows(handle.id)] == [(1, True)], handle.id


# ---- S17


def test_s17_the_late_result_of_an_attempt_is_refused_and_told(
    world: World, workers: Workers, name: str
) -> None:
    limit, first = (5.0, 12.0) if FULL else (2.0, 6.0)
    program = workers.start(slots=2)
    handle = get_client().start_workflow(workflows.Overdue.run, args=[name, limit, first], id=name)
    assert handle.result(timeout=LIMIT) == ["attempt 2"]
    wait_until(lambda: all(row[2] for row in world.rows(name)), what="the end of attempt 1")
    one, two = world.rows(name)
    assert (one[0], two[0]) == (1, 2)
    assert two[3] - one[3] < limit + 0.5 + 4, "a backoff, and what a busy machine adds"
    key = f"{name} key {handle.result_run_id}/1"
    assert [row[0] for row in world.rows(key)] == [1, 2], "both attempts have the same key"

    def told() -> list[Any]:
        return world.ask(
            "SELECT kind, attempt FROM wfapp_runjournal WHERE run_id = %s AND kind = 'late_result'",
            handle.result_run_id,
        )

    wait_until(told, what="the journal")
    assert told() == [("late_result", 1)]
    wait_until(lambda: "too late" in program.output(), what="the worker's log")
