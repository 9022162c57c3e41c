"""A run's `Info`: read from its first event, its search attributes changed as the run does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from wfcore.common import (
    RetryPolicy,
    SearchAttributeIndexedValueType,
    SearchAttributeKey,
    SearchAttributePair,
    SearchAttributes,
    SearchAttributeUpdate,
)
from wfcore.converter import (
    decode_search_attributes,
    decode_typed_search_attributes,
    priority_from_protocol,
)
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.events import HistoryEvent, WorkflowExecutionStarted
from wfcore.protocol.payloads import Payload
from wfcore.workflow import Info, ParentInfo, RootInfo

_KEYWORD_LIST = SearchAttributeIndexedValueType.KEYWORD_LIST


def read_info(
    first: HistoryEvent,
    started: WorkflowExecutionStarted,
    *,
    execution: WorkflowExecution,
    namespace: str,
    memo: Mapping[str, Payload],
    first_task_at: datetime,
) -> Info:
    """The facts of a run.

    Args:
        first: its first event.
        started: that event's attributes.
        execution: its ids.
        namespace: its namespace.
        memo: its memo, which the run's own changes go to.
        first_task_at: when its first workflow task began.
    """
    run_id = execution.run_id or started.original_execution_run_id
    return Info(
        attempt=started.attempt,
        continued_run_id=started.continued_execution_run_id or None,
        cron_schedule=started.cron_schedule or None,
        execution_timeout=started.workflow_execution_timeout,
        first_execution_run_id=started.first_execution_run_id,
        headers=dict(started.header.fields) if started.header else {},
        namespace=namespace,
        original_execution_run_id=started.original_execution_run_id or run_id,
        parent=_parent(started),
        root=_root(started),
        priority=priority_from_protocol(started.priority),
        raw_memo=memo,
        retry_policy=RetryPolicy.from_proto(started.retry_policy) if started.retry_policy else None,
        run_id=run_id,
        run_timeout=started.workflow_run_timeout,
        search_attributes=decode_search_attributes(started.search_attributes),
        start_time=first_task_at,
        task_queue=started.task_queue.name if started.task_queue else "",
        task_timeout=started.workflow_task_timeout or timedelta(0),
        typed_search_attributes=decode_typed_search_attributes(started.search_attributes),
        workflow_id=execution.workflow_id or started.workflow_id,
        workflow_start_time=first.event_time,
        workflow_type=started.workflow_type.name if started.workflow_type else "",
    )


def _parent(started: WorkflowExecutionStarted) -> ParentInfo | None:
    parent = started.parent_workflow_execution
    if parent is None:
        return None
    return ParentInfo(started.parent_workflow_namespace, parent.run_id, parent.workflow_id)


def _root(started: WorkflowExecutionStarted) -> RootInfo | None:
    root = started.root_workflow_execution
    return RootInfo(root.run_id, root.workflow_id) if root is not None else None


def change_search_attributes(
    info: Info, changes: SearchAttributes | Sequence[SearchAttributeUpdate[Any]]
) -> None:
    """Let the facts follow an upsert of the run's own."""
    # They were made above as a dict and a list; only their public types are read-only.
    untyped = cast(dict[str, Any], info.search_attributes)
    typed = {pair.key.name: pair for pair in info.typed_search_attributes}
    if isinstance(changes, Mapping):
        for name, values in changes.items():
            untyped[name] = values
            pair = _guess(name, values)
            if pair is not None:
                typed[name] = pair
            elif not values:
                typed.pop(name, None)
    else:
        for update in changes:
            name, value = update.key.name, update.value
            if value is None:
                untyped[name] = []
                typed.pop(name, None)
                continue
            is_list = update.key.indexed_value_type is _KEYWORD_LIST
            untyped[name] = list(value) if is_list else [value]
            typed[name] = SearchAttributePair(update.key, value)
    pairs = cast(list[SearchAttributePair[Any]], info.typed_search_attributes.search_attributes)
    pairs[:] = sorted(typed.values(), key=lambda pair: pair.key.name)


def _guess(name: str, values: Sequence[Any]) -> SearchAttributePair[Any] | None:
    """What untyped values most likely are; None if that can't be told."""
    key = SearchAttributeKey.guess_from_untyped_values(name, values)
    if key is None:
        return None
    if key.indexed_value_type is _KEYWORD_LIST:
        return SearchAttributePair(key, values)
    return SearchAttributePair(key, values[0]) if len(values) == 1 else None
