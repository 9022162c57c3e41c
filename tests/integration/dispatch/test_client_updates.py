"""Updates and update-with-start through the client for Django code, and its twins."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from tests.support.database_probe import DatabaseProbe
from tests.support.requests_json import accepted, answered, refused
from wfapp.client import get_client
from wfcore.client import (
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
    WorkflowUpdateStage,
)
from wfcore.common import WorkflowIDConflictPolicy
from wfcore.exceptions import WaitInsideTransactionError

LIMIT = timedelta(seconds=20)


@pytest.fixture
def worker(probe: DatabaseProbe) -> list[Any]:
    """Words that a worker says to the next update that is waited for."""
    words: list[Any] = []
    probe.dispatcher.wait_update = lambda *_: probe.say(*words)  # type: ignore[method-assign]
    return words


def cart() -> WithStartWorkflowOperation[Any, Any]:
    return WithStartWorkflowOperation(
        "Cart",
        id="cart-7",
        task_queue="q-probe",
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
    )


def test_updates_of_an_open_workflow(probe: DatabaseProbe, worker: list[Any]) -> None:
    probe.idle(workflow_id="cart-7")
    handle = get_client().get_workflow_handle("cart-7")
    worker += [accepted, answered]
    assert handle.execute_update("add", 7, id="u1") == "ok"
    assert handle.get_update_handle("u1").result(timeout=LIMIT) == "ok"
    worker[:] = [accepted]
    sent = handle.start_update("add", 8, id="u2", wait_for_stage=WorkflowUpdateStage.ACCEPTED)
    assert (sent.id, sent.workflow_id) == ("u2", "cart-7")
    worker[:] = [refused]
    with pytest.raises(WorkflowUpdateFailedError):
        handle.execute_update("add", -1)


def test_update_with_start(probe: DatabaseProbe, worker: list[Any]) -> None:
    worker += [accepted, answered]
    client = get_client()
    assert (
        client.execute_update_with_start_workflow(
            "add", 7, id="u1", start_workflow_operation=cart(), timeout=LIMIT
        )
        == "ok"
    )
    worker[:] = [accepted]
    update = client.start_update_with_start_workflow(
        "add",
        8,
        id="u2",
        start_workflow_operation=cart(),
        wait_for_stage=WorkflowUpdateStage.ACCEPTED,
    )
    assert (update.id, update.workflow_id) == ("u2", "cart-7")
    assert probe.types("cart-7").count("WORKFLOW_EXECUTION_UPDATE_ACCEPTED") == 2


def test_coroutines_have_the_twins(probe: DatabaseProbe, worker: list[Any]) -> None:
    worker += [accepted, answered]

    async def use() -> list[Any]:
        client = get_client()
        first = await client.aexecute_update_with_start_workflow(
            "add", 7, id="u1", start_workflow_operation=cart(), timeout=LIMIT
        )
        second = await client.astart_update_with_start_workflow(
            "add",
            7,
            id="u1",
            start_workflow_operation=cart(),
            wait_for_stage=WorkflowUpdateStage.COMPLETED,
        )
        named = client.get_workflow_handle("cart-7").get_update_handle("u1")
        listed = [run.id async for run in client.alist_workflows("WorkflowType = 'Cart'")]
        return [first, await second.aresult(), await named.aresult(timeout=LIMIT), *listed]

    assert async_to_sync(use)() == ["ok", "ok", "ok", "cart-7"]


def test_nothing_waits_inside_a_transaction(probe: DatabaseProbe) -> None:
    probe.idle(workflow_id="cart-7")
    handle = get_client().get_workflow_handle("cart-7")
    calls = (
        lambda: handle.execute_update("add", 7),
        lambda: handle.start_update("add", 7, wait_for_stage=WorkflowUpdateStage.ACCEPTED),
        lambda: handle.get_update_handle("u1").result(),
        lambda: get_client().execute_update_with_start_workflow(
            "add", 7, start_workflow_operation=cart()
        ),
        lambda: get_client().start_update_with_start_workflow(
            "add",
            7,
            start_workflow_operation=cart(),
            wait_for_stage=WorkflowUpdateStage.ACCEPTED,
        ),
    )
    for call in calls:
        with transaction.atomic(), pytest.raises(WaitInsideTransactionError):
            call()
    assert "WORKFLOW_EXECUTION_UPDATE_ACCEPTED" not in probe.types("cart-7")


def test_a_wait_ends_in_time_and_the_update_goes_on(probe: DatabaseProbe) -> None:
    probe.idle(workflow_id="cart-7")
    handle = get_client().get_workflow_handle("cart-7")
    with pytest.raises(WorkflowUpdateRPCTimeoutOrCancelledError):
        handle.execute_update("add", 7, id="u1", timeout=timedelta(milliseconds=300))
    probe.say(accepted, answered)
    assert handle.get_update_handle("u1").result(timeout=LIMIT) == "ok"
