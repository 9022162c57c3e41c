"""What people do to runs, from the admin, the command line or the API: recorded with who and why.

The action and its entry in the audit log commit together, also where the action waits for a worker
afterwards: the entry of an update stands from its admission. Of what is refused there is none.
A view never waits for another transaction for longer than `VIEW_WAIT`.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from wfapp import wiring
from wfapp.conf import config
from wfapp.models import AuditEntry
from wfapp.models.columns import to_micros
from wfapp.operating.actions import ACTIONS, Target
from wfapp.store import DjangoStore, NotingStore
from wfcore.protocol.message import Message
from wfcore.protocol.rpc.updates import UpdateWorkflowExecutionRequest
from wfcore.protocol.updates import Meta
from wfcore.service.ids import RandomIds
from wfcore.service.validation import wellformed_request
from wfcore.service.workflow_service import WorkflowService

__all__ = ["VIEW_WAIT", "Operator", "perform", "view_service"]

#: How long a view waits for a run that another transaction holds.
VIEW_WAIT = timedelta(seconds=2)
#: Longest name of an actor; longer ones are cut.
_ACTOR_LENGTH = 254


def view_service() -> WorkflowService:
    """The service for views: it gives up on a held run before the person who waits does."""
    return wiring.part("view_service", _make_view_service)


def _make_view_service() -> WorkflowService:
    wait = min(config().lock_wait, VIEW_WAIT)
    return WorkflowService(
        DjangoStore(config().database, lock_wait=wait, longest_wait=VIEW_WAIT),
        wiring.get_dispatcher(),
        RandomIds(),
        limits=config().limits,
        arrivals=config().arrivals,
        start_wait=wait,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Operator:
    """Who acts, and why."""

    actor: str
    reason: str = ""


def perform(service: WorkflowService, request: Message, operator: Operator, **options: Any) -> Any:
    """Make a call for a person, and give its answer; the kind of the request says which call.

    Args:
        options: for the call, besides its request.

    Raises:
        RPCError: as the call; nothing is recorded then, unless an update was admitted before.
    """
    action = ACTIONS[type(request)]
    request = _named(service, wellformed_request(request))
    target, facts = action.target(request), action.facts(request)
    with _recorded(service, action.name, target, operator, facts) as deed:
        answer = action.call(deed.service, request, **options)
        deed.run_id = getattr(answer, "run_id", "")
    return answer


def _named(service: WorkflowService, request: Message) -> Message:
    """An update gets its id here, so that the entry tells it."""
    if not isinstance(request, UpdateWorkflowExecutionRequest):
        return request
    asked = request.request
    if asked is None or asked.meta is None or asked.meta.update_id:
        return request
    meta = Meta(update_id=service.host.ids.request_id(), identity=asked.meta.identity)
    return msgspec.structs.replace(request, request=msgspec.structs.replace(asked, meta=meta))


# ---- the audit log


@dataclass(slots=True)
class _Deed:
    """What is being done, and what is known only once it is done."""

    service: WorkflowService
    run_id: str = ""


@dataclass(kw_only=True, slots=True)
class _Entry:
    """The entry of one action, written beside what it does."""

    alias: str
    columns: Mapping[str, Any]
    #: the run that the call names, for an action that changes nothing
    run_id: str = ""
    _written: UUID | None = field(default=None, init=False)

    def write(self, run_id: str) -> None:
        made = AuditEntry.objects.using(self.alias).create(
            run_id=run_id or self.run_id or None, **self.columns
        )
        self._written = made.entry_id

    def take_back(self) -> None:
        if self._written is not None:
            AuditEntry.objects.using(self.alias).filter(entry_id=self._written).delete()


@contextmanager
def _recorded(
    service: WorkflowService,
    action: str,
    target: Target,
    operator: Operator,
    facts: Mapping[str, Any],
) -> Iterator[_Deed]:
    """A service whose first change of a run commits together with the entry.

    What changes nothing, such as a request that came before, is recorded at the end.
    """
    host = service.host
    if not isinstance(host.store, DjangoStore):
        raise TypeError(f"the audit log is beside runs in a DjangoStore, not in {host.store!r}")
    head = host.store.head(target.namespace, target.workflow_id, target.run_id)
    entry = _Entry(
        alias=host.store.alias,
        run_id=head.key.run_id if head is not None else "",
        columns={
            "at": to_micros(host.store.now()),
            "actor": operator.actor[:_ACTOR_LENGTH],
            "action": action,
            "namespace": target.namespace,
            "workflow_id": target.workflow_id,
            "reason": operator.reason,
            "before": head.status.wire_name if head is not None else "",
            "after": json.dumps(facts) if facts else "",
        },
    )
    store = NotingStore(host.store, entry)
    deed = _Deed(
        WorkflowService(
            store,
            host.dispatcher,
            host.ids,
            limits=host.limits,
            arrivals=host.arrivals,
            carrier=host.carrier,
            start_wait=host.start_wait,
        )
    )
    yield deed
    if not store.is_noted:
        with store.database.unit():
            store.note(deed.run_id)
