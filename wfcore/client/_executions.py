"""What lists, descriptions and counts tell about runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from wfcore.common import UNSET, SearchAttributes, SearchAttributeValue, TypedSearchAttributes
from wfcore.converter import (
    DataConverter,
    WorkflowSerializationContext,
    decode_search_attributes,
    decode_typed_search_attributes,
)
from wfcore.protocol.common import WorkflowExecution as ProtocolExecution
from wfcore.protocol.common import WorkflowType
from wfcore.protocol.enums import WorkflowExecutionStatus
from wfcore.protocol.payloads import UserMetadata
from wfcore.protocol.rpc.info import WorkflowExecutionConfig, WorkflowExecutionInfo
from wfcore.protocol.rpc.workflows import (
    CountWorkflowExecutionsResponse,
    DescribeWorkflowExecutionResponse,
)

_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass
class WorkflowExecution:
    """A run.

    `execution_time` is when its first workflow task could start, after a start delay or by cron.
    `raw_info` is the service's own answer.
    """

    close_time: datetime | None
    execution_time: datetime | None
    history_length: int
    id: str
    namespace: str
    parent_id: str | None
    parent_run_id: str | None
    root_id: str | None
    root_run_id: str | None
    raw_info: WorkflowExecutionInfo
    run_id: str
    search_attributes: SearchAttributes
    start_time: datetime
    status: WorkflowExecutionStatus | None
    task_queue: str
    typed_search_attributes: TypedSearchAttributes
    workflow_type: str
    _context_free_data_converter: DataConverter = field(repr=False)

    @classmethod
    def from_info(
        cls,
        info: WorkflowExecutionInfo,
        namespace: str,
        data_converter: DataConverter,
        **more: Any,
    ) -> Self:
        """Read the service's answer."""
        execution = info.execution or ProtocolExecution()
        parent = info.parent_execution or ProtocolExecution()
        root = info.root_execution or ProtocolExecution()
        return cls(
            close_time=info.close_time,
            execution_time=info.execution_time,
            history_length=info.history_length,
            id=execution.workflow_id,
            namespace=namespace,
            parent_id=parent.workflow_id or None,
            parent_run_id=parent.run_id or None,
            root_id=root.workflow_id or None,
            root_run_id=root.run_id or None,
            raw_info=info,
            run_id=execution.run_id,
            search_attributes=decode_search_attributes(info.search_attributes),
            start_time=info.start_time or _EPOCH,
            status=info.status or None,
            task_queue=info.task_queue,
            typed_search_attributes=decode_typed_search_attributes(info.search_attributes),
            workflow_type=(info.type or WorkflowType()).name,
            _context_free_data_converter=data_converter,
            **more,
        )

    @property
    def data_converter(self) -> DataConverter:
        """The client's converter with this workflow's context."""
        return self._context_free_data_converter.with_context(
            WorkflowSerializationContext(namespace=self.namespace, workflow_id=self.id)
        )

    async def memo(self) -> Mapping[str, Any]:
        """All values of the memo, without types."""
        return await self.data_converter.decode_memo(self.raw_info.memo)

    async def memo_value(self, key: str, default: Any = UNSET, *, type_hint: Any = None) -> Any:
        """One value of the memo.

        Raises:
            KeyError: there is no such key and no default is given.
        """
        return await self.data_converter.decode_memo_field(
            self.raw_info.memo, key, default, type_hint
        )


@dataclass
class WorkflowExecutionDescription(WorkflowExecution):
    """A run with all that describe tells; `raw_description` has its pending activities too."""

    raw_description: DescribeWorkflowExecutionResponse

    async def static_summary(self) -> str | None:
        """The one line that was given with the start."""
        return await self._text(self._metadata().summary)

    async def static_details(self) -> str | None:
        """The text that was given with the start."""
        return await self._text(self._metadata().details)

    def _metadata(self) -> UserMetadata:
        config = self.raw_description.execution_config or WorkflowExecutionConfig()
        return config.user_metadata or UserMetadata()

    async def _text(self, payload: Any) -> str | None:
        if payload is None:
            return None
        (text,) = await self.data_converter.decode([payload], [str])
        return str(text)


@dataclass
class WorkflowExecutionCountAggregationGroup:
    """How many runs have these values of the attributes that the query groups by."""

    count: int
    group_values: Sequence[SearchAttributeValue]


@dataclass
class WorkflowExecutionCount:
    """How many runs there are; `groups` if the query has GROUP BY."""

    count: int
    groups: Sequence[WorkflowExecutionCountAggregationGroup]

    @staticmethod
    def from_answer(answer: CountWorkflowExecutionsResponse) -> WorkflowExecutionCount:
        """Read the service's answer."""
        return WorkflowExecutionCount(
            count=answer.count,
            groups=[
                WorkflowExecutionCountAggregationGroup(
                    count=group.count,
                    group_values=[
                        values[0] if len(values) == 1 else values
                        for values in decode_search_attributes(
                            {str(index): value for index, value in enumerate(group.group_values)}
                        ).values()
                    ],
                )
                for group in answer.groups
            ],
        )
