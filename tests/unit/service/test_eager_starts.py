"""A start may hand the first workflow task to the caller; nobody else gets it, and nothing is lost
when the caller drops it.
"""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.probing import Probe, Refusal
from tests.support.requests_json import complete
from wfcore.history.effects import DispatchWorkflowTask, Effect
from wfcore.history.limits import Limits
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse

NOTHING = PollWorkflowTaskQueueResponse()
EAGER = {"requestEagerExecution": True, "requestId": "r", "identity": "client"}
TERMINATE = {"workflowIdConflictPolicy": "WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING"}
USE_EXISTING = {"workflowIdConflictPolicy": "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING"}


@pytest.fixture
def sent() -> list[Effect]:
    return []


@pytest.fixture
def probe(sent: list[Effect]) -> Probe:
    return Probe(on_dispatch=sent.append)


def eager(probe: Probe, workflow_id: str = "", **fields: Any) -> Any:
    return probe.start(workflow_id or probe.workflow_id(), **{**EAGER, **fields})


def test_the_first_task_comes_with_the_answer(probe: Probe, sent: list[Effect]) -> None:
    workflow_id = probe.workflow_id()
    started = eager(probe, workflow_id)
    task = started.eager_workflow_task
    assert [event.event_id for event in task.history.events] == [1, 2, 3]
    assert (task.attempt, task.started_event_id, task.previous_started_event_id) == (1, 3, 0)
    assert task.workflow_execution.run_id == started.run_id
    first, _, third = (event.attributes for event in task.history.events)
    assert first.eager_execution_accepted
    assert (third.request_id, third.identity, third.history_size_bytes) == ("r", "client", 0)
    assert probe.poll() == NOTHING
    assert not [effect for effect in sent if isinstance(effect, DispatchWorkflowTask)]
    probe.answer(task, complete())
    assert probe.types(workflow_id)[-1] == "WORKFLOW_EXECUTION_COMPLETED"


@pytest.mark.parametrize("fields", [{"workflowStartDelay": "60s"}, {"cronSchedule": "0 0 * * *"}])
def test_a_first_task_that_waits_is_not_handed_out(probe: Probe, fields: dict[str, str]) -> None:
    workflow_id = probe.workflow_id()
    assert eager(probe, workflow_id, **fields).eager_workflow_task is None
    assert not probe.attributes(workflow_id, "WORKFLOW_EXECUTION_STARTED").eager_execution_accepted
    assert probe.types(workflow_id) == ["WORKFLOW_EXECUTION_STARTED"]


def test_a_dropped_task_is_recovered_by_its_timeout(probe: Probe) -> None:
    task = eager(probe).eager_workflow_task
    probe.advance(11)
    again = probe.poll()
    assert again.attempt == 2
    refused = probe.answer(task, complete())
    assert isinstance(refused, Refusal)
    assert refused["code"] == "NOT_FOUND"
    probe.answer(again, complete())


def test_a_repeated_start_gets_the_task_again_while_it_stands(probe: Probe) -> None:
    workflow_id = probe.workflow_id()
    first = eager(probe, workflow_id)
    assert eager(probe, workflow_id) == first
    assert eager(probe, workflow_id, requestEagerExecution=False).eager_workflow_task is None
    probe.advance(11)
    again = eager(probe, workflow_id)
    assert (again.run_id, again.eager_workflow_task) == (first.run_id, None)
    probe.step(complete())
    assert eager(probe, workflow_id).eager_workflow_task is None


def test_an_open_run_hands_out_nothing(probe: Probe) -> None:
    workflow_id, run_id = probe.run()
    used = eager(probe, workflow_id, **USE_EXISTING)
    assert (used.run_id, used.started, used.eager_workflow_task) == (run_id, False, None)


def test_a_run_that_takes_anothers_place_is_handed_out(probe: Probe) -> None:
    workflow_id, run_id = probe.run()
    task = eager(probe, workflow_id, **TERMINATE).eager_workflow_task
    assert task.workflow_execution.run_id != run_id
    probe.answer(task, complete())


def test_inside_a_callers_transaction_nothing_is_handed_out(probe: Probe) -> None:
    with probe.store.callers_transaction():
        assert eager(probe).eager_workflow_task is None
    assert probe.poll().attempt == 1


def test_it_can_be_switched_off(probe: Probe) -> None:
    probe.service.host = replace(probe.service.host, limits=Limits(eager_starts=False))
    assert eager(probe).eager_workflow_task is None
    assert probe.poll().attempt == 1
