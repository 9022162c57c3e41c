"""Lists and histories, page by page; a page is fetched when it is needed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from wfcore.client._executions import WorkflowExecution
from wfcore.client._history import WorkflowHistory, WorkflowHistoryEventFilterType
from wfcore.client._interceptor import FetchWorkflowHistoryEventsInput, ListWorkflowsInput
from wfcore.protocol.common import WorkflowExecution as ProtocolExecution
from wfcore.protocol.enums import HistoryEventFilterType
from wfcore.protocol.events import History, HistoryEvent
from wfcore.protocol.rpc.workflows import (
    GetWorkflowExecutionHistoryRequest,
    ListWorkflowExecutionsRequest,
)

if TYPE_CHECKING:
    from wfcore.client._client import Client


# ruff: noqa: A002 - parameters have Temporal's names
class WorkflowExecutionAsyncIterator:
    """Runs of a list, newest first."""

    def __init__(self, client: Client, input: ListWorkflowsInput) -> None:
        self._client = client
        self._input = input
        self._next_page_token = input.next_page_token
        self._page: Sequence[WorkflowExecution] | None = None
        self._index = 0
        self._yielded = 0

    @property
    def current_page_index(self) -> int:
        """The place of the next run in the page."""
        return self._index

    @property
    def current_page(self) -> Sequence[WorkflowExecution] | None:
        """The page that was fetched last."""
        return self._page

    @property
    def next_page_token(self) -> bytes | None:
        """Leads to the next page; None after the last."""
        return self._next_page_token

    async def fetch_next_page(self, *, page_size: int | None = None) -> None:
        """Fetch the next page, wherever the iteration stands."""
        size = page_size or self._input.page_size
        if self._input.limit is not None:
            size = max(1, min(size, self._input.limit - self._yielded))
        answer = await self._client.calls.make(
            self._client.service.list_workflow_executions,
            ListWorkflowExecutionsRequest(
                namespace=self._client.namespace,
                page_size=size,
                next_page_token=self._next_page_token or b"",
                query=self._input.query or "",
            ),
            time_limit=self._input.rpc_timeout,
        )
        self._index = 0
        self._page = [
            WorkflowExecution.from_info(info, self._client.namespace, self._client.data_converter)
            for info in answer.executions
        ]
        self._next_page_token = answer.next_page_token or None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WorkflowExecution:
        if self._input.limit is not None and self._yielded >= self._input.limit:
            raise StopAsyncIteration
        while self._page is None or self._index >= len(self._page):
            if self._page is not None and not self._next_page_token:
                raise StopAsyncIteration
            await self.fetch_next_page()
        run = self._page[self._index]
        self._index += 1
        self._yielded += 1
        return run

    async def map_histories(
        self,
        *,
        event_filter_type: WorkflowHistoryEventFilterType = (
            WorkflowHistoryEventFilterType.ALL_EVENT
        ),
        skip_archival: bool = False,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> AsyncIterator[WorkflowHistory]:
        """The history of each run in turn."""
        async for run in self:
            yield await self._client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history(
                event_filter_type=event_filter_type,
                skip_archival=skip_archival,
                rpc_metadata=rpc_metadata,
                rpc_timeout=rpc_timeout,
            )


class WorkflowHistoryEventAsyncIterator:
    """Events of a run, oldest first; with `wait_new_event` it ends when the run does."""

    def __init__(self, client: Client, input: FetchWorkflowHistoryEventsInput) -> None:
        self._client = client
        self._input = input
        self._next_page_token = input.next_page_token
        self._page: Sequence[HistoryEvent] | None = None
        self._index = 0

    @property
    def current_page_index(self) -> int:
        """The place of the next event in the page."""
        return self._index

    @property
    def current_page(self) -> Sequence[HistoryEvent] | None:
        """The page that was fetched last."""
        return self._page

    @property
    def next_page_token(self) -> bytes | None:
        """Leads to the next page; None after the last."""
        return self._next_page_token

    async def fetch_next_page(self, *, page_size: int | None = None) -> None:
        """Fetch the next page; it may be empty when the service waited for nothing."""
        wanted = self._input
        answer = await self._client.calls.make(
            self._client.service.get_workflow_execution_history,
            GetWorkflowExecutionHistoryRequest(
                namespace=self._client.namespace,
                execution=ProtocolExecution(workflow_id=wanted.id, run_id=wanted.run_id or ""),
                maximum_page_size=page_size or wanted.page_size or 0,
                next_page_token=self._next_page_token or b"",
                wait_new_event=wanted.wait_new_event,
                history_event_filter_type=HistoryEventFilterType(wanted.event_filter_type),
                skip_archival=wanted.skip_archival,
            ),
            time_limit=wanted.rpc_timeout,
            waits=wanted.wait_new_event,
        )
        self._index = 0
        self._page = (answer.history or History()).events
        self._next_page_token = answer.next_page_token or None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> HistoryEvent:
        while self._page is None or self._index >= len(self._page):
            if self._page is not None and not self._next_page_token:
                raise StopAsyncIteration
            await self.fetch_next_page()
        event = self._page[self._index]
        self._index += 1
        return event
