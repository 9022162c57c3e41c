"""Connections of threads beside the one that runs a task."""

import threading
from typing import Any

import pytest
from django.db import connections

from tests.support.waiting import wait_until
from wfapp.client import WorkflowHandle, get_client
from wfapp.dispatch.own_service import OwnService
from wfcore.client import WorkflowFailureError
from wfcore.protocol.rpc.activity_tasks import (
    RecordActivityTaskHeartbeatRequest,
    RecordActivityTaskHeartbeatResponse,
)
from wfcore.protocol.rpc.workflow_tasks import (
    RespondWorkflowTaskFailedRequest,
    RespondWorkflowTaskFailedResponse,
)


class Service:
    """Looks at the database as the real one does."""

    def record_activity_task_heartbeat(
        self, request: RecordActivityTaskHeartbeatRequest
    ) -> RecordActivityTaskHeartbeatResponse:
        self._look()
        return RecordActivityTaskHeartbeatResponse(cancel_requested=True)

    def respond_workflow_task_failed(
        self, request: RespondWorkflowTaskFailedRequest
    ) -> RespondWorkflowTaskFailedResponse:
        self._look()
        return RespondWorkflowTaskFailedResponse()

    def _look(self) -> None:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT 1")

    def respond_workflow_task_completed(self, request: Any) -> None: ...


def own_service(service: Any) -> OwnService:
    return OwnService(
        service,
        alias="default",
        owner=lambda: "boot",
        draining=lambda: False,
        known_event_id=lambda namespace, run_id: 0,
    )


def test_the_thread_of_heartbeats_keeps_no_connection(db: None) -> None:
    service: Any = Service()
    own = own_service(service)
    seen: list[Any] = []

    def beat() -> None:
        answer = own.record_activity_task_heartbeat(RecordActivityTaskHeartbeatRequest())
        seen.extend([answer.cancel_requested, connections["default"].connection])

    thread = threading.Thread(target=beat)
    thread.start()
    thread.join(20)
    assert seen == [True, None]


def test_the_thread_that_reports_hanging_code_keeps_no_connection(db: None) -> None:
    service: Any = Service()
    own = own_service(service)
    seen: list[Any] = []

    def report() -> None:
        own.respond_workflow_task_failed(RespondWorkflowTaskFailedRequest())
        seen.append(connections["default"].connection)

    thread = threading.Thread(target=report)
    thread.start()
    thread.join(20)
    assert seen == [None]


def test_a_heartbeat_within_a_transaction_leaves_it_open(db: None) -> None:
    service: Any = Service()
    own = own_service(service)
    own.record_activity_task_heartbeat(RecordActivityTaskHeartbeatRequest())
    assert connections["default"].connection is not None


@pytest.mark.django_db(transaction=True)
def test_who_waits_for_a_result_holds_no_connection(stack: str) -> None:
    if stack == "embedded":
        pytest.skip("the embedded stack has no server that counts connections")
    client = get_client()
    handle = client.start_workflow("NobodyRunsIt", id="w")
    waiting = [
        threading.Thread(target=_wait_in_vain, args=(handle,), daemon=True) for _ in range(4)
    ]
    before = _connections()
    for thread in waiting:
        thread.start()
    wait_until(lambda: _connections() > before, what="the waiting to look for the run")
    wait_until(lambda: _connections() == before, what="their connections to be let go of")
    assert all(thread.is_alive() for thread in waiting)
    handle.terminate()
    for thread in waiting:
        thread.join(20)


def _wait_in_vain(handle: WorkflowHandle) -> None:
    with pytest.raises(WorkflowFailureError):
        handle.result()
    connections.close_all()


def _connections() -> int:
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return int(cursor.fetchone()[0])
