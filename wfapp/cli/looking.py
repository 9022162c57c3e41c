"""Verbs that look: list, show, history, result, why. They change nothing."""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wfapp.cli import results, run_cards
from wfapp.cli.answers import VerbError
from wfapp.cli.arguments import add_run
from wfapp.cli.context import Context
from wfapp.presentation import history_lines
from wfapp.presentation.message_json import write_message
from wfapp.presentation.run_view import RunView, explain, load_run
from wfapp.presentation.words import camel, event_name, moment, one_line
from wfcore.protocol import json_form
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.rpc.info import WorkflowExecutionInfo
from wfcore.protocol.rpc.workflows import (
    DescribeWorkflowExecutionRequest,
    ListWorkflowExecutionsRequest,
)

_PAGE = 100


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
        context.printer.json({**body, **_besides(view), "why": view.diagnosis.sentence})
        return
    run_cards.print_facts(context.printer, view)
    run_cards.print_pending(context.printer, view)
    _print_end(context, view)


def _besides(view: RunView) -> dict[str, Any]:
    """What Temporal's describe doesn't tell; what is empty is left out, as there."""
    recorded = view.state.recorded
    policy = recorded.retry_policy
    found = {
        "cronSchedule": recorded.cron_schedule,
        "retryPolicy": json_form.to_json(policy) if policy is not None else {},
        "pendingUpdates": [
            {
                "updateId": update.update_id,
                "name": update.name,
                "stage": update.stage.wire_name,
                **({"acceptedTime": json_form.format_time(update.since)} if update.since else {}),
            }
            for update in view.updates
        ],
    }
    return {name: value for name, value in found.items() if value}


def _print_end(context: Context, view: RunView) -> None:
    if view.state.is_open:
        return
    event = context.reader.message(results.last_event(context, view.key))
    context.printer.line()
    results.print_result(context, camel(view.state.recorded.status), event)


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
    head = results.head_of(context, context.execution)
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
    results.add_timeout(parser)


def result(context: Context) -> None:
    """Wait for the end of a workflow, through all of its runs, and print what came of it."""
    results.wait_and_print(context, context.execution)


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
