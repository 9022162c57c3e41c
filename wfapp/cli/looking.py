"""Verbs that look: list, show, history, result, why. They change nothing."""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from wfapp.cli.answers import Exit, VerbError
from wfapp.cli.arguments import add_run, duration
from wfapp.cli.context import Context
from wfapp.presentation import history_lines
from wfapp.presentation.message_json import write_message
from wfapp.presentation.run_view import RunView, explain, load_run
from wfapp.presentation.values import text_of, texts_of, value_of
from wfapp.presentation.words import camel, event_name, failure_line, moment, one_line
from wfcore.exceptions import NotFoundError
from wfcore.history.state import ActivityState
from wfcore.protocol import events as ev
from wfcore.protocol import json_form
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.rpc.info import WorkflowExecutionInfo
from wfcore.protocol.rpc.workflows import (
    DescribeWorkflowExecutionRequest,
    ListWorkflowExecutionsRequest,
)
from wfcore.service import validation
from wfcore.service.ports import RunHead, RunKey

_PAGE = 100
#: Longest wait for news before the run is looked at again.
_LOOK = timedelta(seconds=20)


# ---- list


def list_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-q", "--query", default="", help="filter, such as \"ExecutionStatus = 'Running'\""
    )
    parser.add_argument("--limit", type=int, default=50, help="most runs to print (50)")


def list_runs(context: Context) -> None:
    """Print runs, newest first."""
    found = list(_pages(context, context.options["query"], context.options["limit"]))
    context.printer.json([json_form.to_json(info) for info in found])
    if not found:
        context.printer.note("No runs.")
        return
    context.printer.table(
        ("Status", "WorkflowId", "Type", "StartTime", "RunId"), [_row(info) for info in found]
    )


def _pages(context: Context, query: str, limit: int) -> Iterator[WorkflowExecutionInfo]:
    token = b""
    while limit > 0:
        answer = context.service.list_workflow_executions(
            ListWorkflowExecutionsRequest(
                namespace=context.namespace,
                page_size=min(limit, _PAGE),
                next_page_token=token,
                query=query,
            )
        )
        yield from context.reader.messages(answer.executions)
        limit -= len(answer.executions)
        token = answer.next_page_token
        if not token:
            return


def _row(info: WorkflowExecutionInfo) -> tuple[str, ...]:
    execution = info.execution or WorkflowExecution()
    return (
        camel(info.status),
        execution.workflow_id,
        info.type.name if info.type is not None else "",
        moment(info.start_time) if info.start_time is not None else "",
        execution.run_id,
    )


# ---- show


def show_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)


def show(context: Context) -> None:
    """Print what is known of a run."""
    target = context.execution
    view = load_run(
        context.service, context.namespace, target.workflow_id, target.run_id, context.reader
    )
    if context.printer.as_json:
        answer = context.service.describe_workflow_execution(
            DescribeWorkflowExecutionRequest(
                namespace=context.namespace,
                execution=WorkflowExecution(
                    workflow_id=view.key.workflow_id, run_id=view.key.run_id
                ),
            )
        )
        body = write_message(context.reader.message(answer), short=True)
        context.printer.json({**body, "why": view.diagnosis.sentence})
        return
    _print_card(context, view)
    _print_pending(context, view)
    _print_end(context, view)


def _print_card(context: Context, view: RunView) -> None:
    recorded = view.state.recorded
    printer = context.printer
    printer.title("Execution Info")
    printer.card(
        [
            ("WorkflowId", recorded.workflow_id),
            ("RunId", recorded.run_id),
            ("Type", recorded.workflow_type),
            ("Namespace", recorded.namespace),
            ("TaskQueue", recorded.task_queue),
            ("Status", camel(recorded.status)),
            ("StartTime", moment(recorded.start_time)),
            ("CloseTime", moment(recorded.close_time) if recorded.close_time else ""),
            ("LastProgress", moment(recorded.last_event_time)),
            *(
                (f"Memo.{name}", one_line(text_of(payload)))
                for name, payload in view.memo.fields.items()
            ),
            *(
                (name, one_line(text_of(payload)))
                for name, payload in view.search_attributes.indexed_fields.items()
            ),
            ("HistoryLength", str(recorded.next_event_id - 1)),
            ("HistorySize", str(recorded.history_bytes)),
            ("CancelRequested", "true" if recorded.cancel_requested else ""),
            ("Parent", recorded.parent.workflow_id if recorded.parent is not None else ""),
            ("Why", view.diagnosis.sentence),
            *(("", other) for other in view.diagnosis.others),
        ]
    )


def _print_pending(context: Context, view: RunView) -> None:
    printer = context.printer
    for row in view.activities if view.state.is_open else ():
        printer.line()
        printer.title(f"Pending activity {row.activity_id}")
        waits = row.attempt > 1 and row.state == ActivityState.SCHEDULED
        printer.card(
            [
                ("Type", row.activity_type),
                ("TaskQueue", row.task_queue),
                ("State", row.state.name.capitalize()),
                ("Attempt", str(row.attempt)),
                ("MaximumAttempts", str(row.retry_policy.maximum_attempts or "")),
                ("NextAttempt", moment(row.attempt_scheduled_at) if waits else ""),
                ("LastFailure", failure_line(row.last_failure)),
                ("Worker", row.identity or row.last_worker_identity),
            ]
        )
    timers = view.state.recorded.timers if view.state.is_open else {}
    if timers:
        printer.line()
        printer.title("Timers")
        printer.card([(name, moment(timer.fire_at)) for name, timer in timers.items()])
    if view.state.is_open and view.state.recorded.children:
        printer.line()
        printer.title("Children")
        printer.card(
            [
                (child.workflow_id, child.workflow_type)
                for child in view.state.recorded.children.values()
            ]
        )
    if view.journal:
        printer.line()
        printer.title("Journal")
        printer.table(
            ("Time", "Kind", "Text"),
            [(moment(entry.at), entry.kind, one_line(entry.text)) for entry in view.journal],
        )


def _print_end(context: Context, view: RunView) -> None:
    if view.state.is_open:
        return
    event = context.reader.message(_last_event(context, view.key))
    context.printer.line()
    _print_result(context, camel(view.state.recorded.status), event)


# ---- history


def history_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--compact", action="store_true", help="one line for each activity or timer")
    how.add_argument("--detailed", action="store_true", help="all values of each event")
    parser.add_argument("--reverse", action="store_true", help="newest event first")
    parser.add_argument("--output", metavar="FILE", help="write Temporal's JSON to a file")


def history(context: Context) -> None:
    """Print or export the events of a run."""
    head = _head(context)
    events = context.service.host.store.read_events(head.key)
    if context.options["output"]:
        _export(context, Path(context.options["output"]), events)
        return
    events = context.reader.messages(events)
    if context.options["reverse"]:
        events = events[::-1]
    printer = context.printer
    printer.json(json_form.history_to_json(events))
    if context.options["compact"]:
        lines = history_lines.compact(sorted(events, key=lambda event: event.event_id))
        printer.table(
            ("ID", "Time", "What", "Name", "State", "Took", "Detail"),
            [
                (
                    str(line.event_id),
                    moment(line.began_at),
                    line.what,
                    line.name,
                    line.state,
                    line.took,
                    one_line(line.detail, 120),
                )
                for line in (reversed(lines) if context.options["reverse"] else lines)
            ],
        )
    elif context.options["detailed"]:
        for event in history_lines.full(events):
            printer.line(f"--- [{event.event_id}] {event.name} ---")
            printer.card([("Time", moment(event.at)), *event.values])
    else:
        printer.title("Progress")
        printer.table(
            ("ID", "Time", "Type"),
            [
                (str(event.event_id), moment(event.event_time), event_name(event.event_type))
                for event in events
            ],
        )


def _export(context: Context, path: Path, events: list[HistoryEvent]) -> None:
    """Write a history whole or not at all. Payloads stay encoded, so that it replays elsewhere."""
    text = json.dumps(json_form.history_to_json(events), indent=2, ensure_ascii=False)
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=path.name, suffix=".part", delete=False
        ) as draft:
            draft.write(text + "\n")
        os.replace(draft.name, path)  # noqa: PTH105 - whole, or not at all
    except OSError as error:
        raise VerbError(f"{path} can't be written: {error.strerror}") from error
    context.printer.json({"output": str(path), "events": len(events)})
    context.printer.line(f"{len(events)} events written to {path}")


# ---- result


def result_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "--timeout", type=duration, help="how long to wait; without it as long as it takes"
    )


def result(context: Context) -> None:
    """Wait for the end of a workflow, through all of its runs, and print what came of it."""
    head = _wait_closed(context, _head(context))
    event = context.reader.message(_last_event(context, head.key))
    status = camel(head.status)
    context.printer.json(
        {
            "workflowId": head.key.workflow_id,
            "runId": head.key.run_id,
            "namespace": head.key.namespace,
            "status": status.upper(),
            "closeEvent": json_form.event_to_json(event),
            **_outcome(event),
        }
    )
    _print_result(context, status, event)
    if not isinstance(event.attributes, ev.WorkflowExecutionCompleted):
        raise VerbError("workflow failed" if status == "Failed" else f"workflow ended as {status}")


def _wait_closed(context: Context, head: RunHead) -> RunHead:
    """The last run of the chain, closed."""
    store, dispatcher = context.service.host.store, context.service.host.dispatcher
    limit: timedelta | None = context.options["timeout"]
    until = store.now() + limit if limit is not None else None
    while True:
        if not validation.is_open(head.status):
            following = getattr(
                _last_event(context, head.key).attributes, "new_execution_run_id", ""
            )
            if not following:
                return head
            found = store.head(head.key.namespace, head.key.workflow_id, following)
        else:
            left = until - store.now() if until is not None else _LOOK
            if left <= timedelta():
                raise VerbError("the workflow is still running", Exit.TIMED_OUT)
            dispatcher.wait_history(head.key, head.next_event_id, min(left, _LOOK))
            found = store.head(head.key.namespace, head.key.workflow_id, head.key.run_id)
        if found is None:
            raise NotFoundError(f"run {head.key.run_id} was deleted while its end was waited for")
        head = found


def _outcome(event: HistoryEvent) -> dict[str, Any]:
    attributes = event.attributes
    if isinstance(attributes, ev.WorkflowExecutionCompleted):
        payloads = attributes.result.payloads if attributes.result is not None else ()
        return {"result": value_of(payloads[0]) if payloads else None}
    return {}


def _print_result(context: Context, status: str, event: HistoryEvent) -> None:
    attributes = event.attributes
    failure = getattr(attributes, "failure", None)
    context.printer.title("Results")
    context.printer.card(
        [
            ("Status", status.upper()),
            ("Result", ", ".join(texts_of(getattr(attributes, "result", None)))),
            ("Failure", failure_line(failure)),
            ("Reason", getattr(attributes, "reason", "")),
        ]
    )


# ---- why


def why_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)


def why(context: Context) -> None:
    """Print why a run is not moving."""
    target = context.execution
    found = explain(context.service, context.namespace, target.workflow_id, target.run_id)
    context.printer.json(
        {"why": found.sentence, "others": list(found.others), "trouble": found.is_trouble}
    )
    context.printer.line(found.sentence)
    for other in found.others:
        context.printer.line(f"  also: {other}")


# ---- shared


def _head(context: Context) -> RunHead:
    target = context.execution
    head = context.service.host.store.head(context.namespace, target.workflow_id, target.run_id)
    if head is None:
        raise validation.not_found(target.workflow_id, target.run_id)
    return head


def _last_event(context: Context, key: RunKey) -> HistoryEvent:
    return context.service.host.store.read_events(key, limit=1, reverse=True)[0]
