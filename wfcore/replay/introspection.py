"""Queries that every workflow answers: where its code waits, and what it offers."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Iterator, Mapping
from importlib import metadata
from types import FrameType
from typing import Any

from wfcore.replay.loop import WorkflowTask
from wfcore.replay.runtime import WorkflowRuntime
from wfcore.workflow import QueryDefinition
from wfcore.workflow._handler_definitions import HandlerDefinition
from wfcore.workflow._runtime import current

#: Modules whose frames say nothing to the author of a workflow.
_INNER = ("wfcore.", "asyncio.")


def _runtime() -> WorkflowRuntime:
    runtime = current()
    assert isinstance(runtime, WorkflowRuntime)  # noqa: S101 - the queries are its own
    return runtime


def _stack_trace() -> str:
    """Where each task waits, oldest task first."""
    return "\n\n".join(
        f"{task.get_name()} (most recent call last):\n"
        + "".join(
            traceback.format_list(
                [_summary(frame) for frame in _frames(task) if not _is_inner(frame)]
            )
        )
        for task in _runtime().open_tasks()
    )


def _enhanced_stack_trace() -> dict[str, Any]:
    """The same with the source, in the form of Temporal's EnhancedStackTrace."""
    sources: dict[str, dict[str, Any]] = {}
    stacks = []
    for task in _runtime().open_tasks():
        locations = []
        for frame in _frames(task):
            path = frame.f_code.co_filename
            if path not in sources:
                text = "".join(linecache.getlines(path)) or "The source is not available"
                sources[path] = {"lineOffset": 0, "content": text}
            locations.append(
                {
                    "filePath": path,
                    "line": frame.f_lineno,
                    "column": -1,
                    "functionName": frame.f_code.co_name,
                    "internalCode": _is_inner(frame),
                }
            )
        stacks.append({"locations": locations})
    return {
        "sdk": {"name": "wfcore", "version": _version()},
        "sources": sources,
        "stacks": stacks,
    }


def _version() -> str:
    try:
        return metadata.version("wfcore")
    except metadata.PackageNotFoundError:
        return ""  # runs from a source tree


def _workflow_metadata() -> dict[str, Any]:
    """Type, handlers and current details, in the form of Temporal's WorkflowMetadata."""
    runtime = _runtime()
    handlers = runtime.handlers
    return {
        "definition": {
            "type": runtime.info().workflow_type,
            "queryDefinitions": _offered(handlers.queries),
            "signalDefinitions": _offered(handlers.signals),
            "updateDefinitions": _offered(handlers.updates),
        },
        "currentDetails": runtime.current_details,
    }


def _offered(table: Mapping[str | None, HandlerDefinition]) -> list[dict[str, str]]:
    return [
        {"name": name or "", "description": definition.description or ""}
        for name, definition in sorted(table.items(), key=lambda item: item[0] or "")
    ]


def _frames(task: WorkflowTask[Any]) -> Iterator[FrameType]:
    """Frames of a waiting coroutine and of those that it waits for, inside one task."""
    waiting: Any = task.get_coro()
    while waiting is not None:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        if frame is not None:
            yield frame
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)


def _summary(frame: FrameType) -> traceback.FrameSummary:
    code = frame.f_code
    return traceback.FrameSummary(code.co_filename, frame.f_lineno, code.co_qualname)


def _is_inner(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith(_INNER)


#: The definitions, by name.
QUERIES: dict[str | None, QueryDefinition] = {
    name: QueryDefinition(name=name, fn=fn, is_method=False, description=description)
    for name, fn, description in (
        ("__stack_trace", _stack_trace, "Where the code waits"),
        ("__enhanced_stack_trace", _enhanced_stack_trace, "Where the code waits, with its source"),
        ("__temporal_workflow_metadata", _workflow_metadata, "What the workflow offers"),
    )
}
