"""Describe, histories, lists and counts: what is committed, without locks.

A page token says where to go on; it stays good while the history grows. A page of a history holds
whole transactions, whose number is its size, and has a token whenever it is full.
"""

from datetime import timedelta
from typing import Annotated

import msgspec

from wfcore.exceptions import InvalidArgumentError, UnimplementedError, WaitInsideTransactionError
from wfcore.history.rebuild import visible_tail
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import HistoryEventFilterType as Filter
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.events import History, HistoryEvent
from wfcore.protocol.payloads import Payload
from wfcore.protocol.rpc.info import CountWorkflowExecutionsResponseAggregationGroup
from wfcore.protocol.rpc.workflows import (
    CountWorkflowExecutionsRequest,
    CountWorkflowExecutionsResponse,
    DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryResponse,
    GetWorkflowExecutionHistoryReverseRequest,
    GetWorkflowExecutionHistoryReverseResponse,
    ListWorkflowExecutionsRequest,
    ListWorkflowExecutionsResponse,
)
from wfcore.service import batches, infos, validation
from wfcore.service.filters import parse_filter
from wfcore.service.host import Host
from wfcore.service.ports import RunHead, RunKey

#: `frontend.historyMaxPageSize`, `frontend.visibilityMaxPageSize`
HISTORY_PAGE = 256
LIST_PAGE = 1_000
#: How long a history call waits for new events before it answers without any.
LONG_POLL = timedelta(seconds=20)


class _HistoryToken(msgspec.Struct, frozen=True, array_like=True, tag="h"):
    """The next event to read of a run; backwards the last one."""

    run_id: str
    event_id: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    reverse: bool = False


_encode_token = msgspec.json.Encoder().encode
_decode_token = msgspec.json.Decoder(_HistoryToken).decode


def describe(
    host: Host, request: DescribeWorkflowExecutionRequest
) -> DescribeWorkflowExecutionResponse:
    """All that is known of a run besides its history; a closed one shows what was pending then."""
    validation.namespace(host, request.namespace)
    target = validation.execution(request.execution)
    state = host.store.read_state(request.namespace, target.workflow_id, target.run_id)
    if state is None:
        raise validation.not_found(target.workflow_id, target.run_id)
    key = RunKey(
        namespace=request.namespace,
        workflow_id=target.workflow_id,
        run_id=state.recorded.run_id,
    )
    memo, search_attributes = host.store.read_visibility(key)
    first = host.store.read_events(key, last=1)
    now = host.store.now()
    return DescribeWorkflowExecutionResponse(
        execution_config=infos.execution_config(
            state.recorded, first[0].user_metadata if first else None
        ),
        workflow_execution_info=infos.with_builds(
            infos.execution_info(state, memo, search_attributes), state.recorded
        ),
        # read after the state: what has begun since then belongs to what isn't shown yet
        pending_activities=tuple(
            infos.pending_activity(row, now)
            for row in host.store.read_activities(key)
            if not state.is_open or row.scheduled_event_id in state.recorded.open_activities
        ),
        pending_children=tuple(
            infos.pending_child(initiated, child)
            for initiated, child in state.recorded.children.items()
        ),
        pending_workflow_task=infos.pending_workflow_task(state),
        workflow_extended_info=infos.extended_info(state),
    )


# ---- histories


def history(
    host: Host, request: GetWorkflowExecutionHistoryRequest, *, show_transient: bool = True
) -> GetWorkflowExecutionHistoryResponse:
    """A page of a history, oldest event first.

    With `wait_new_event` an open run that has nothing new is waited for, and the token of the
    answer leads on until the run is closed. A workflow task that is stored on success only stands
    at the end of the last page, unless `show_transient` is off (Temporal's command line program) or
    the caller waits for events as they are stored.

    Raises:
        WaitInsideTransactionError: waiting would hold the caller's transaction open.
    """
    validation.namespace(host, request.namespace)
    key, token = _resolve(
        host, request.namespace, request.execution, request.next_page_token, reverse=False
    )
    if request.wait_new_event and host.store.inside_callers_transaction():
        raise WaitInsideTransactionError("get_workflow_execution_history(wait_new_event=True)")
    if request.history_event_filter_type is Filter.CLOSE_EVENT:
        return _close_event(host, key, request)
    first = token.event_id if token is not None else 1
    head = _head(host, key)
    if request.wait_new_event and token is not None:
        head = _wait(host, head, first, closed=False)
    size = _page_size(request.maximum_page_size, HISTORY_PAGE)
    events, full = _forward(host, key, first, head.next_event_id - 1, size)
    following = first + len(events)
    open_end = following >= head.next_event_id
    if open_end and not full and show_transient and not request.wait_new_event:
        events += _transient(host, key, head)
    waits = request.wait_new_event and validation.is_open(head.status)
    going_on = full or waits or not open_end
    return GetWorkflowExecutionHistoryResponse(
        history=History(events=tuple(events)),
        next_page_token=_token(key.run_id, following) if going_on else b"",
    )


def history_reverse(
    host: Host, request: GetWorkflowExecutionHistoryReverseRequest
) -> GetWorkflowExecutionHistoryReverseResponse:
    """A page of a history, newest event first."""
    validation.namespace(host, request.namespace)
    key, token = _resolve(
        host, request.namespace, request.execution, request.next_page_token, reverse=True
    )
    last = token.event_id if token is not None else _head(host, key).next_event_id - 1
    size = _page_size(request.maximum_page_size, HISTORY_PAGE)
    events = _backward(host, key, last, size)
    following = events[-1].event_id - 1 if events else 0
    return GetWorkflowExecutionHistoryReverseResponse(
        history=History(events=tuple(events)),
        next_page_token=_token(key.run_id, following, reverse=True) if following else b"",
    )


def _forward(
    host: Host, key: RunKey, first: int, last: int, size: int
) -> tuple[list[HistoryEvent], bool]:
    """The next events: what `size` transactions wrote, and whether there were as many."""
    events = host.store.read_events(key, first=first, last=last, limit=HISTORY_PAGE)
    found = batches.split(events)
    if first + len(events) <= last and len(found) > 1:
        found.pop()  # more of it may follow
    page = found[:size]
    return [event for batch in page for event in batch], len(page) == size


def _backward(host: Host, key: RunKey, last: int, size: int) -> list[HistoryEvent]:
    events = host.store.read_events(key, last=last, limit=HISTORY_PAGE, reverse=True)
    found = batches.split(events[::-1])
    if events and events[-1].event_id > 1 and len(found) > 1:
        found.pop(0)  # more of it may stand in front
    return [event for batch in reversed(found[-size:]) for event in reversed(batch)]


def _close_event(
    host: Host, key: RunKey, request: GetWorkflowExecutionHistoryRequest
) -> GetWorkflowExecutionHistoryResponse:
    head = _head(host, key)
    if request.wait_new_event:
        head = _wait(host, head, head.next_event_id, closed=True)
    if not validation.is_open(head.status):
        last = head.next_event_id - 1
        events = host.store.read_events(key, first=last, last=last)
        return GetWorkflowExecutionHistoryResponse(history=History(events=tuple(events)))
    token = _token(key.run_id, head.next_event_id) if request.wait_new_event else b""
    return GetWorkflowExecutionHistoryResponse(history=History(), next_page_token=token)


def _wait(host: Host, head: RunHead, first: int, *, closed: bool) -> RunHead:
    """The run as it is when it has event `first` or is closed, or after the long poll's time."""
    until = host.store.now() + LONG_POLL
    while validation.is_open(head.status) and (closed or head.next_event_id <= first):
        left = until - host.store.now()
        if left <= timedelta():
            break
        host.dispatcher.wait_history(head.key, head.next_event_id, left, closed)
        head = _head(host, head.key)
    return head


def _transient(host: Host, key: RunKey, head: RunHead) -> list[HistoryEvent]:
    if not validation.is_open(head.status):
        return []
    state = host.store.read_state(key.namespace, key.workflow_id, key.run_id)
    if state is None or state.recorded.next_event_id != head.next_event_id:
        return []
    return visible_tail(state)


def _resolve(
    host: Host,
    namespace: str,
    execution: WorkflowExecution | None,
    page_token: bytes,
    *,
    reverse: bool,
) -> tuple[RunKey, _HistoryToken | None]:
    """The run that is read, which stays the same over all pages."""
    target = validation.execution(execution)
    token = None
    if page_token:
        try:
            token = _decode_token(page_token)
        except msgspec.DecodeError as error:
            raise InvalidArgumentError("Invalid NextPageToken.") from error
        if token.reverse is not reverse or target.run_id not in ("", token.run_id):
            raise InvalidArgumentError("Invalid NextPageToken.")
    run_id = token.run_id if token is not None else target.run_id
    head = host.store.head(namespace, target.workflow_id, run_id)
    if head is None:
        raise validation.not_found(target.workflow_id, run_id)
    return head.key, token


def _head(host: Host, key: RunKey) -> RunHead:
    head = host.store.head(key.namespace, key.workflow_id, key.run_id)
    if head is None:
        raise validation.not_found(key.workflow_id, key.run_id)
    return head


def _token(run_id: str, event_id: int, *, reverse: bool = False) -> bytes:
    return _encode_token(_HistoryToken(run_id, event_id, reverse))


def _page_size(wanted: int, longest: int) -> int:
    return min(wanted, longest) if wanted > 0 else longest


# ---- lists


def list_runs(host: Host, request: ListWorkflowExecutionsRequest) -> ListWorkflowExecutionsResponse:
    """A page of runs, newest start first."""
    validation.namespace(host, request.namespace)
    wanted = parse_filter(request.query)
    if wanted.group_by_status:
        raise UnimplementedError("GROUP BY makes sense in a count; take it out of the list's query")
    size = _page_size(request.page_size, LIST_PAGE)
    try:
        found, token = host.store.list_runs(
            request.namespace, wanted.runs, limit=size, after=request.next_page_token
        )
    except ValueError as error:
        raise InvalidArgumentError("Invalid NextPageToken.") from error
    return ListWorkflowExecutionsResponse(executions=tuple(found), next_page_token=token)


def count_runs(
    host: Host, request: CountWorkflowExecutionsRequest
) -> CountWorkflowExecutionsResponse:
    """How many runs there are, by status if the query groups by it."""
    validation.namespace(host, request.namespace)
    wanted = parse_filter(request.query)
    counts = host.store.count_runs(request.namespace, wanted.runs, by_status=wanted.group_by_status)
    groups = [
        CountWorkflowExecutionsResponseAggregationGroup(
            group_values=(_status_value(status),), count=count
        )
        for status, count in sorted(counts.items(), key=lambda item: item[0] or 0)
        if status is not None
    ]
    return CountWorkflowExecutionsResponse(count=sum(counts.values()), groups=tuple(groups))


def _status_value(status: Status) -> Payload:
    name = "".join(part.capitalize() for part in status.name.split("_"))
    return Payload(
        metadata={"encoding": b"json/plain", "type": b"Keyword"}, data=msgspec.json.encode(name)
    )
