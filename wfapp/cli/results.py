"""Waiting for the end of a workflow, through all of its runs, and printing what came of it."""

import argparse
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from wfapp.cli.answers import Exit, VerbError
from wfapp.cli.arguments import duration
from wfapp.cli.context import Context
from wfapp.presentation.values import texts_of, value_of
from wfapp.presentation.words import camel, failure_line
from wfcore.exceptions import NotFoundError
from wfcore.protocol import events as ev
from wfcore.protocol import json_form
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.events import HistoryEvent
from wfcore.service import validation
from wfcore.service.ports import RunHead, RunKey

#: Longest wait for news before the run is looked at again.
_LOOK = timedelta(seconds=20)


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """How long to wait."""
    parser.add_argument(
        "--timeout", type=duration, help="how long to wait; without it as long as it takes"
    )


def wait_and_print(
    context: Context, execution: WorkflowExecution, facts: Mapping[str, Any] | None = None
) -> None:
    """Wait for the end and print it; `facts` stand in the JSON beside it.

    Raises:
        NotFoundError: there is no such run.
        VerbError: the workflow did not complete, or not in time.
    """
    head = _wait_closed(context, head_of(context, execution))
    event = context.reader.message(last_event(context, head.key))
    status = camel(head.status)
    context.printer.json(
        {
            **(facts or {}),
            "workflowId": head.key.workflow_id,
            "runId": head.key.run_id,
            "namespace": head.key.namespace,
            "status": status.upper(),
            "closeEvent": json_form.event_to_json(event),
            **_outcome(event),
        }
    )
    print_result(context, status, event)
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
                last_event(context, head.key).attributes, "new_execution_run_id", ""
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


def print_result(context: Context, status: str, event: HistoryEvent) -> None:
    """How a run ended, from its last event."""
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


def head_of(context: Context, target: WorkflowExecution) -> RunHead:
    """The run that is named.

    Raises:
        NotFoundError: there is none.
    """
    head = context.service.host.store.head(context.namespace, target.workflow_id, target.run_id)
    if head is None:
        raise validation.not_found(target.workflow_id, target.run_id)
    return head


def last_event(context: Context, key: RunKey) -> HistoryEvent:
    """The newest event of a run."""
    return context.service.host.store.read_events(key, limit=1, reverse=True)[0]
