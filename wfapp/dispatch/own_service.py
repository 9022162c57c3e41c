"""The engine's service as a worker's runners call it: over lost connections, and for this process.

A call whose answer was lost is repeated under the same name of its claim, by which the engine finds
again what the first one had claimed: it would wait for a timeout beside an idle worker.
"""

import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import connections

from wfapp.dispatch.connections import Surviving, leave_connection, surviving
from wfapp.dispatch.following import ClaimedTask, end_of_code, keep_claimed, kept_queues
from wfcore.history.requests import ClaimTask
from wfcore.protocol.rpc.activity_tasks import (
    RecordActivityTaskHeartbeatRequest,
    RecordActivityTaskHeartbeatResponse,
    RespondActivityTaskCanceledRequest,
    RespondActivityTaskCanceledResponse,
    RespondActivityTaskCompletedRequest,
    RespondActivityTaskCompletedResponse,
    RespondActivityTaskFailedRequest,
    RespondActivityTaskFailedResponse,
)
from wfcore.protocol.rpc.workflow_tasks import (
    RespondWorkflowTaskCompletedRequest,
    RespondWorkflowTaskCompletedResponse,
    RespondWorkflowTaskFailedRequest,
    RespondWorkflowTaskFailedResponse,
)
from wfcore.service import tokens
from wfcore.service.follow import Follow
from wfcore.service.tokens import ActivityToken
from wfcore.service.workflow_service import WorkflowService

T = TypeVar("T")


class OwnService(Surviving):
    """The service for runners: tasks that follow at once are claimed for this process too, and
    what threads of their own report, heartbeats and code that hangs, keeps no connections.

    Args:
        owner: the process that claims.
        draining: whether it takes nothing more.
        known_event_id: of namespace and run id, the last event that it holds.
    """

    def __init__(
        self,
        service: WorkflowService,
        *,
        alias: str,
        owner: Callable[[], str],
        draining: Callable[[], bool],
        known_event_id: Callable[[str, str], int],
    ) -> None:
        super().__init__(service, alias=alias)
        self._service = service
        self._owner = owner
        self._draining = draining
        self._known_event_id = known_event_id

    def record_activity_task_heartbeat(
        self, request: RecordActivityTaskHeartbeatRequest
    ) -> RecordActivityTaskHeartbeatResponse:
        """As the service's; the connection ends, since the next one may be a minute away."""
        try:
            return surviving(
                lambda: self._service.record_activity_task_heartbeat(request), alias=self._alias
            )
        finally:
            leave_connection(self._alias)

    def respond_workflow_task_failed(
        self, request: RespondWorkflowTaskFailedRequest
    ) -> RespondWorkflowTaskFailedResponse:
        """As the service's; the connection ends, since code that hangs is reported by a thread that
        ends then too.
        """
        try:
            return surviving(
                lambda: self._service.respond_workflow_task_failed(request), alias=self._alias
            )
        finally:
            leave_connection(self._alias)

    def respond_workflow_task_completed(
        self, request: RespondWorkflowTaskCompletedRequest
    ) -> RespondWorkflowTaskCompletedResponse:
        """As the service's, with the owner."""
        claim_id = str(uuid.uuid4())
        return surviving(
            lambda: self._service.respond_workflow_task_completed(
                request, owner=self._owner(), claim_id=claim_id
            ),
            alias=self._alias,
        )

    def respond_activity_task_completed(
        self, request: RespondActivityTaskCompletedRequest
    ) -> RespondActivityTaskCompletedResponse:
        """As the service's; the workflow task that follows comes along."""
        return self._followed(self._service.respond_activity_task_completed, request)

    def respond_activity_task_failed(
        self, request: RespondActivityTaskFailedRequest
    ) -> RespondActivityTaskFailedResponse:
        """As the service's; the workflow task that follows comes along."""
        return self._followed(self._service.respond_activity_task_failed, request)

    def respond_activity_task_canceled(
        self, request: RespondActivityTaskCanceledRequest
    ) -> RespondActivityTaskCanceledResponse:
        """As the service's; the workflow task that follows comes along."""
        return self._followed(self._service.respond_activity_task_canceled, request)

    def _followed(self, respond: Callable[..., T], request: Any) -> T:
        end_of_code()
        serves = kept_queues()
        if serves is None or self._draining() or connections[self._alias].in_atomic_block:
            return surviving(lambda: respond(request), alias=self._alias)
        token = tokens.decode(request.task_token, ActivityToken)
        follow = Follow(
            claim=ClaimTask(
                request_id=str(uuid.uuid4()), identity=request.identity, owner=self._owner()
            ),
            serves=serves,
            known_event_id=lambda run_id: self._known_event_id(token.namespace, run_id),
        )
        answer = surviving(lambda: respond(request, follow=follow), alias=self._alias)
        if follow.task is not None:
            keep_claimed(ClaimedTask(namespace=token.namespace, task=follow.task))
        return answer
