"""What people do to runs, from the admin, the command line or the API: recorded with who and why.

The action and its entry in the audit log commit together. A view never waits for another
transaction for longer than `VIEW_WAIT`.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction

from wfapp import wiring
from wfapp.conf import config
from wfapp.models import AuditEntry
from wfapp.models.columns import to_micros
from wfapp.store import DjangoStore
from wfapp.store.transaction import DjangoTransaction
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.rpc.workflows import (
    RequestCancelWorkflowExecutionRequest,
    SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
    StartWorkflowExecutionResponse,
    TerminateWorkflowExecutionRequest,
)
from wfcore.service.ids import RandomIds
from wfcore.service.validation import wellformed_request
from wfcore.service.workflow_service import WorkflowService

_Request = (
    StartWorkflowExecutionRequest
    | SignalWorkflowExecutionRequest
    | RequestCancelWorkflowExecutionRequest
    | TerminateWorkflowExecutionRequest
)

#: How long a view waits for a run that another transaction holds.
VIEW_WAIT = timedelta(seconds=2)
#: Longest name of an actor; longer ones are cut.
_ACTOR_LENGTH = 254


class _ImpatientStore(DjangoStore):
    """The store as a view uses it."""

    def transaction(
        self, namespace: str, workflow_id: str, *, wait: timedelta | None = None
    ) -> DjangoTransaction:
        bound = self.lock_wait if wait is None else min(wait, VIEW_WAIT)
        return super().transaction(namespace, workflow_id, wait=bound)


def view_service() -> WorkflowService:
    """The service for views: it gives up on a held run before the person who waits does."""
    return wiring.part("view_service", _make_view_service)


def _make_view_service() -> WorkflowService:
    store = _ImpatientStore(config().database, lock_wait=min(config().lock_wait, VIEW_WAIT))
    return WorkflowService(
        store,
        wiring.get_dispatcher(),
        RandomIds(),
        limits=config().limits,
        arrivals=config().arrivals,
        start_wait=store.lock_wait,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Operator:
    """Who acts, and why."""

    actor: str
    reason: str = ""


def start(
    service: WorkflowService, request: StartWorkflowExecutionRequest, operator: Operator
) -> StartWorkflowExecutionResponse:
    """Start a run for a person."""
    target = WorkflowExecution(workflow_id=request.workflow_id)
    with _recorded(service, "start", request, target, operator) as entry:
        answer = service.start_workflow_execution(request)
        entry.run_id = answer.run_id
    return answer


def signal(
    service: WorkflowService, request: SignalWorkflowExecutionRequest, operator: Operator
) -> None:
    """Send a signal for a person."""
    with _recorded(
        service,
        "signal",
        request,
        request.workflow_execution,
        operator,
        {"signal": request.signal_name},
    ):
        service.signal_workflow_execution(request)


def cancel(
    service: WorkflowService, request: RequestCancelWorkflowExecutionRequest, operator: Operator
) -> None:
    """Ask a run to cancel itself, for a person."""
    with _recorded(service, "cancel", request, request.workflow_execution, operator):
        service.request_cancel_workflow_execution(request)


def terminate(
    service: WorkflowService, request: TerminateWorkflowExecutionRequest, operator: Operator
) -> None:
    """End a run at once, for a person."""
    with _recorded(service, "terminate", request, request.workflow_execution, operator):
        service.terminate_workflow_execution(request)


@dataclass(slots=True)
class _Entry:
    """What is known only once it is done."""

    run_id: str | None


@contextmanager
def _recorded(
    service: WorkflowService,
    action: str,
    request: _Request,
    execution: WorkflowExecution | None,
    operator: Operator,
    facts: Mapping[str, Any] | None = None,
) -> Iterator[_Entry]:
    """A transaction that commits what is done in it together with its entry in the audit log."""
    alias, namespace = config().database, wellformed_request(request).namespace
    store = service.host.store
    target = execution or WorkflowExecution()
    with transaction.atomic(using=alias):
        head = store.head(namespace, target.workflow_id, target.run_id)
        entry = _Entry(run_id=head.key.run_id if head is not None else None)
        yield entry
        AuditEntry.objects.using(alias).create(
            at=to_micros(store.now()),
            run_id=entry.run_id,
            actor=operator.actor[:_ACTOR_LENGTH],
            action=action,
            namespace=namespace,
            workflow_id=target.workflow_id,
            reason=operator.reason,
            before=head.status.wire_name if head is not None else "",
            after=json.dumps(facts) if facts else "",
        )
