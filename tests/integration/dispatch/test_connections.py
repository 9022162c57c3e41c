"""Connections of threads beside the one that runs a task."""

import threading
from typing import Any

from django.db import connections

from wfapp.dispatch.running import _OwnService
from wfcore.protocol.rpc.activity_tasks import (
    RecordActivityTaskHeartbeatRequest,
    RecordActivityTaskHeartbeatResponse,
)


class Service:
    """Looks at the database as the real one does."""

    def record_activity_task_heartbeat(
        self, request: RecordActivityTaskHeartbeatRequest
    ) -> RecordActivityTaskHeartbeatResponse:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT 1")
        return RecordActivityTaskHeartbeatResponse(cancel_requested=True)

    def respond_workflow_task_completed(self, request: Any) -> None: ...


def test_the_thread_of_heartbeats_keeps_no_connection(db: None) -> None:
    service: Any = Service()
    own = _OwnService(service, alias="default", owner=lambda: "boot")
    seen: list[Any] = []

    def beat() -> None:
        answer = own.record_activity_task_heartbeat(RecordActivityTaskHeartbeatRequest())
        seen.extend([answer.cancel_requested, connections["default"].connection])

    thread = threading.Thread(target=beat)
    thread.start()
    thread.join(20)
    assert seen == [True, None]


def test_a_heartbeat_within_a_transaction_leaves_it_open(db: None) -> None:
    service: Any = Service()
    own = _OwnService(service, alias="default", owner=lambda: "boot")
    own.record_activity_task_heartbeat(RecordActivityTaskHeartbeatRequest())
    assert connections["default"].connection is not None
