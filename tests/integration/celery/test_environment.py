"""What users test with: real histories in a TestCase's transaction, and time that is moved."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test import TestCase

from tests.integration.celery.shop import ledger, workflows
from wfapp import wiring
from wfapp.client import get_client
from wfapp.models import HistoryEvent
from wfapp.testing import (
    NothingToDoError,
    WorkflowEnvironment,
    WorkflowTestMixin,
    replay_stored,
)
from wfcore.client import (
    WithStartWorkflowOperation,
    WorkflowFailureError,
    WorkflowUpdateFailedError,
    WorkflowUpdateStage,
)
from wfcore.common import WorkflowIDConflictPolicy
from wfcore.exceptions import ApplicationError, WaitInsideTransactionError

pytestmark = pytest.mark.django_db
DAY = 24 * 3600.0


@pytest.fixture(autouse=True)
def shop(settings: object, stack: str) -> Iterator[None]:
    if stack == "embedded":
        pytest.skip("the ledger of these tests is written for PostgreSQL")
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.integration.celery.shop"]  # type: ignore[attr-defined]
    wiring.reset()
    yield
    wiring.reset()


@pytest.fixture
def environment() -> Iterator[WorkflowEnvironment]:
    with connection.cursor() as cursor:
        cursor.execute(ledger.CREATE)
    with WorkflowEnvironment() as found:
        yield found


def test_hello_has_the_history_of_a_real_run(environment: WorkflowEnvironment) -> None:
    handle = get_client().start_workflow(workflows.Hello.run, "Ada")
    assert handle.result() == "Hello, Ada!"
    kinds = [event.event_type.name for event in handle.fetch_history().events]
    assert kinds[-3:] == [
        "WORKFLOW_TASK_STARTED", "WORKFLOW_TASK_COMPLETED", "WORKFLOW_EXECUTION_COMPLETED",
    ]  # fmt: skip
    assert len(kinds) == 11


def test_a_month_passes_at_once(environment: WorkflowEnvironment) -> None:
    begun = time.monotonic()
    before = environment.now()
    assert get_client().execute_workflow(workflows.Sleeper.run, 30 * DAY) >= 30 * DAY
    assert environment.now() - before >= timedelta(days=30)
    assert time.monotonic() - begun < 2


def test_the_clock_begins_where_the_test_says() -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)
    with WorkflowEnvironment(start=start) as environment:
        handle = get_client().start_workflow(workflows.Sleeper.run, DAY)
        environment.sleep(timedelta(hours=23))
        assert handle.describe().status.name == "RUNNING"
        environment.sleep(timedelta(hours=2))
        assert handle.describe().status.name == "COMPLETED"
        assert handle.describe().start_time.date() == start.date()


def test_retries_signals_queries_and_transactions(environment: WorkflowEnvironment) -> None:
    client = get_client()
    assert client.execute_workflow(workflows.Retried.run, args=["r", 2]) == 3
    handle = client.start_workflow(workflows.Counter.run)
    with transaction.atomic():
        handle.signal(workflows.Counter.add, 4)
    environment.run_until_idle()
    assert handle.query(workflows.Counter.total) == 4
    handle.signal(workflows.Counter.finish)
    assert handle.result() == 4


def test_updates_are_answered_refused_and_found_again(environment: WorkflowEnvironment) -> None:
    handle = get_client().start_workflow(workflows.Counter.run)
    environment.run_until_idle()
    assert handle.execute_update(workflows.Counter.put, 7, id="u") == 7
    events = len(handle.fetch_history().events)
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        handle.execute_update(workflows.Counter.put, -1)
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "Negative"
    assert len(handle.fetch_history().events) == events, "a refusal leaves no event"
    assert handle.execute_update(workflows.Counter.put, 8, id="u") == 7
    assert handle.get_update_handle_for(workflows.Counter.put, "u").result() == 7
    assert handle.query(workflows.Counter.total) == 7


def test_an_update_waits_for_time_that_passes_at_once(environment: WorkflowEnvironment) -> None:
    handle = get_client().start_workflow(workflows.Counter.run)
    update = handle.start_update(
        workflows.Counter.add_later, args=[5, DAY], wait_for_stage=WorkflowUpdateStage.ACCEPTED
    )
    before = environment.now()
    assert update.result() == 5
    assert environment.now() - before >= timedelta(days=1)


def test_an_update_may_start_its_workflow(environment: WorkflowEnvironment) -> None:
    client = get_client()
    operation = WithStartWorkflowOperation(
        workflows.Counter.run,
        id="counter-u",
        task_queue="default",
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
    )
    update = client.start_update_with_start_workflow(
        workflows.Counter.put,
        4,
        start_workflow_operation=operation,
        wait_for_stage=WorkflowUpdateStage.COMPLETED,
    )
    assert (update.workflow_id, update.result()) == ("counter-u", 4)
    handle = client.get_workflow_handle("counter-u")
    kinds = [event.event_type.name for event in handle.fetch_history().events]
    assert kinds[3:] == [
        "WORKFLOW_TASK_COMPLETED",
        "WORKFLOW_EXECUTION_UPDATE_ACCEPTED",
        "WORKFLOW_EXECUTION_UPDATE_COMPLETED",
    ]


def test_an_update_that_meets_the_end_of_a_run_reaches_the_next(
    environment: WorkflowEnvironment,
) -> None:
    handle = get_client().start_workflow(workflows.Counter.run)
    current = get_client().get_workflow_handle(handle.id)
    environment.run_until_idle()
    current.execute_update(workflows.Counter.go_on)
    assert current.execute_update(workflows.Counter.put, 3) == 3
    assert current.describe().run_id != handle.result_run_id


def test_nobody_waits_for_an_update_inside_a_transaction(
    environment: WorkflowEnvironment,
) -> None:
    handle = get_client().start_workflow(workflows.Counter.run)
    update = handle.get_update_handle("u")
    with transaction.atomic():
        with pytest.raises(WaitInsideTransactionError, match="execute_update"):
            handle.execute_update(workflows.Counter.put, 1)
        with pytest.raises(WaitInsideTransactionError, match="result"):
            update.result()


def test_celery_tasks_and_transactional_activities(environment: WorkflowEnvironment) -> None:
    client = get_client()
    answer = client.execute_workflow(workflows.Shared.run, args=["shop.unsteady", "u", [2]])
    assert answer == 2
    answer = client.execute_workflow(workflows.Shared.run, args=["shop.stock", "s", []])
    assert answer == "s stocked"
    assert len(ledger.rows("s")) == 1


def test_waiting_for_what_no_time_brings_is_told_in_words(
    environment: WorkflowEnvironment,
) -> None:
    handle = get_client().start_workflow(workflows.Counter.run)
    with pytest.raises(NothingToDoError, match="a signal"):
        handle.result()


def test_a_failure_of_a_statement_does_not_spoil_the_test(
    environment: WorkflowEnvironment,
) -> None:
    with pytest.raises(WorkflowFailureError):
        get_client().execute_workflow(workflows.BrokenStatement.run)
    assert Group.objects.count() == 0


def test_stored_histories_are_replayed_against_todays_code(
    environment: WorkflowEnvironment,
) -> None:
    get_client().execute_workflow(workflows.Hello.run, "x")
    get_client().start_workflow(workflows.Sleeper.run, DAY)
    environment.run_until_idle()
    results = replay_stored()
    assert [result.replay_failure for result in results] == [None, None]


class InTestCase(WorkflowTestMixin, TestCase):
    """Each test begins with no run, though the one before left one waiting."""

    def test_one(self) -> None:
        self._leave_one_waiting()

    def test_two(self) -> None:
        self._leave_one_waiting()

    def _leave_one_waiting(self) -> None:
        assert HistoryEvent.objects.count() == 0
        get_client().start_workflow(workflows.Sleeper.run, 7 * DAY)
        assert get_client().execute_workflow(workflows.Hello.run, "Ada") == "Hello, Ada!"
        assert self.workflows.now() < datetime.now(UTC) + timedelta(days=1)
