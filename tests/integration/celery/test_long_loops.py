"""S14: a loop whose history grows for ever, in virtual time. It is told when to continue as new and
ends at the limit with a reason if it doesn't; nothing gets slow.

Parking a run at the limit, instead of terminating it as Temporal does, does not exist.
"""

import time
from collections.abc import Iterator

import pytest
from django.db import connection

from tests.integration.celery.conftest import FULL
from tests.integration.celery.shop import ledger, workflows
from wfapp import conf, wiring
from wfapp.client import get_client
from wfapp.models import RunJournal, WorkflowExecution
from wfapp.testing import WorkflowEnvironment
from wfcore.client import WorkflowFailureError
from wfcore.exceptions import TerminatedError

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(1800 if FULL else 180)]

ROUNDS = 10_000 if FULL else 100
SOFT = 2_000 if FULL else 200
HARD = 5_000 if FULL else 600
#: events of a round, at most
ROUND_EVENTS = 15


@pytest.fixture
def environment(settings: object, stack: str) -> Iterator[WorkflowEnvironment]:
    if stack == "embedded":
        pytest.skip("the ledger of these tests is written for PostgreSQL")
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.integration.celery.shop"]  # type: ignore[attr-defined]
    settings.WORKFLOWS = {  # type: ignore[attr-defined]
        "LIMITS": {
            "HISTORY_EVENTS_SUGGEST": SOFT,
            "HISTORY_EVENTS_WARN": SOFT,
            "HISTORY_EVENTS": HARD,
        }
    }
    conf.config.cache_clear()
    wiring.reset()
    with connection.cursor() as cursor:
        cursor.execute(ledger.CREATE)
    with WorkflowEnvironment() as found:
        yield found
    wiring.reset()


def test_s14_a_loop_that_continues_as_new_loses_no_round(
    environment: WorkflowEnvironment,
) -> None:
    handle = get_client().start_workflow(
        workflows.Polls.run, args=[ROUNDS, 0, True], id="heeds", task_queue="default"
    )
    assert handle.result() == ROUNDS
    runs = WorkflowExecution.objects.filter(workflow_id="heeds")
    lengths = [
        get_client().get_workflow_handle("heeds", run_id=str(run.run_id)).describe().history_length
        for run in runs
    ]
    assert len(lengths) >= ROUNDS * 9 // (SOFT + ROUND_EVENTS)
    assert max(lengths) < SOFT + ROUND_EVENTS


def test_s14_a_loop_that_goes_on_ends_at_the_limit_and_not_before(
    environment: WorkflowEnvironment,
) -> None:
    handle = get_client().start_workflow(
        workflows.Polls.run, args=[ROUNDS, 0, False], id="goes on", task_queue="default"
    )
    spent: list[tuple[int, float]] = []
    while (described := handle.describe()).status.name == "RUNNING":
        spent.append((described.history_length, time.process_time()))
        for _ in range(15):
            environment.step()
            environment.advance()
    with pytest.raises(WorkflowFailureError) as raised:
        handle.result()
    assert isinstance(raised.value.cause, TerminatedError)
    assert "history" in str(raised.value.cause).lower()
    assert HARD <= handle.describe().history_length <= HARD + 2
    journal = RunJournal.objects.filter(run_id=handle.result_run_id)
    assert [entry.kind for entry in journal if str(SOFT) in entry.text], "a warning at the limit"

    def cost(first: int, last: int) -> float:
        """CPU seconds for an event between two lengths of the history."""
        inside = [each for each in spent if first <= each[0] <= last]
        (begin, at_begin), (end, at_end) = inside[0], inside[-1]
        return (at_end - at_begin) / (end - begin)

    assert cost(HARD * 7 // 10, HARD) < 3 * cost(0, HARD * 3 // 10)
