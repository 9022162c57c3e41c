"""Verbs that act on a run: signal, query, cancel, terminate, reset. All but a query are audited."""

import argparse
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wfapp import operating
from wfapp.cli.answers import Exit, VerbError, WrongStateError
from wfapp.cli.arguments import add_input, add_reason, add_run, duration, values
from wfapp.cli.context import Context, account
from wfapp.presentation.message_json import write_message
from wfapp.presentation.values import texts_of, value_of
from wfapp.presentation.words import camel
from wfcore.exceptions import NotFoundError
from wfcore.protocol.enums import QueryRejectCondition, ResetReapplyExcludeType
from wfcore.protocol.events import WorkflowTaskCompleted
from wfcore.protocol.rpc.info import WorkflowQuery
from wfcore.protocol.rpc.workflows import (
    QueryWorkflowRequest,
    RequestCancelWorkflowExecutionRequest,
    ResetWorkflowExecutionRequest,
    SignalWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
)
from wfcore.service import validation

_NO_PAYLOADS: tuple[Any, ...] = ()


# ---- signal and query


def signal_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--name", required=True, help="signal name")
    add_input(parser)
    add_reason(parser)


def signal(context: Context) -> None:
    """Send a signal."""
    request = SignalWorkflowExecutionRequest(
        namespace=context.namespace,
        workflow_execution=context.execution,
        signal_name=context.options["name"],
        input=context.payloads(values(context.options)),
        identity=account(),
    )
    with closed_told_apart(context):
        operating.perform(context.service, request, context.operator)
    context.printer.json({})
    context.printer.line("Signal workflow succeeded")


def query_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--name", required=True, help="query type")
    add_input(parser)
    parser.add_argument(
        "--reject-condition", choices=["not_open", "not_completed_cleanly"], default=""
    )
    parser.add_argument(
        "--timeout", type=duration, default=duration("10s"), help="how long to wait for a worker"
    )


def query(context: Context) -> None:
    """Ask a run and print the answer."""
    condition = context.options["reject_condition"]
    request = QueryWorkflowRequest(
        namespace=context.namespace,
        execution=context.execution,
        query=WorkflowQuery(
            query_type=context.options["name"],
            query_args=context.payloads(values(context.options)),
        ),
        query_reject_condition=QueryRejectCondition.from_wire(condition.upper() or 0),
    )
    answer = context.service.query_workflow(request, timeout=context.options["timeout"])
    if answer.query_rejected is not None:
        status = camel(answer.query_rejected.status)
        raise VerbError(f"query was rejected, workflow has status: {status}", Exit.WRONG_STATE)
    answer = context.reader.message(answer)
    payloads = answer.query_result.payloads if answer.query_result is not None else _NO_PAYLOADS
    context.printer.json(write_message(answer, short=True))
    context.printer.title("Query result")
    for payload, text in zip(payloads, texts_of(answer.query_result), strict=True):
        value = value_of(payload)
        # A stack trace is read in lines.
        for line in (value if isinstance(value, str) else text).splitlines() or [""]:
            context.printer.line(f"  {line}")


# ---- cancel and terminate


def cancel_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    add_reason(parser)


def cancel(context: Context) -> None:
    """Ask a run to cancel itself."""
    request = RequestCancelWorkflowExecutionRequest(
        namespace=context.namespace,
        workflow_execution=context.execution,
        identity=account(),
        reason=context.options["reason"],
    )
    operating.perform(context.service, request, context.operator)
    context.printer.json({})
    context.printer.line("Canceled workflow")


def terminate_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    add_reason(parser)


def terminate(context: Context) -> None:
    """End a run at once."""
    request = TerminateWorkflowExecutionRequest(
        namespace=context.namespace,
        workflow_execution=context.execution,
        identity=account(),
        reason=context.options["reason"],
    )
    with closed_told_apart(context):
        operating.perform(context.service, request, context.operator)
    context.printer.json({})
    context.printer.line("Workflow terminated")


# ---- reset

_TASK_TYPES = ("FirstWorkflowTask", "LastWorkflowTask")


def reset_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    point = parser.add_mutually_exclusive_group(required=True)
    point.add_argument(
        "--event-id", type=int, help="the workflow task that ends with this event is done anew"
    )
    point.add_argument("--type", choices=_TASK_TYPES, help="which workflow task is done anew")
    parser.add_argument(
        "--reapply-exclude",
        action="append",
        choices=["signal", "update"],
        default=[],
        help="what came after the point and is not applied again",
    )
    add_reason(parser)


def reset(context: Context) -> None:
    """Make a run that goes on from an earlier workflow task."""
    target = context.execution
    event_id = context.options["event_id"] or _task_end(context, context.options["type"])
    request = ResetWorkflowExecutionRequest(
        namespace=context.namespace,
        workflow_execution=target,
        reason=context.options["reason"],
        workflow_task_finish_event_id=event_id,
        request_id=str(uuid.uuid4()),
        reset_reapply_exclude_types=tuple(
            ResetReapplyExcludeType.from_wire(each.upper())
            for each in context.options["reapply_exclude"]
        ),
        identity=account(),
    )
    context.printer.line(f"Resetting workflow {target.workflow_id} to event ID {event_id}")
    answer = operating.perform(context.service, request, context.operator)
    context.printer.json(write_message(answer, short=False))
    context.printer.line(f"New run: {answer.run_id}")


def _task_end(context: Context, which: str) -> int:
    """The event that completed the first or last workflow task."""
    target, store = context.execution, context.service.host.store
    head = store.head(context.namespace, target.workflow_id, target.run_id)
    if head is None:
        raise validation.not_found(target.workflow_id, target.run_id)
    ends = [
        event.event_id
        for event in store.read_events(head.key)
        if isinstance(event.attributes, WorkflowTaskCompleted)
    ]
    if not ends:
        raise WrongStateError("no workflow task has completed: there is nothing to go back to")
    return ends[0] if which == _TASK_TYPES[0] else ends[-1]


@contextmanager
def closed_told_apart(context: Context) -> Iterator[None]:
    """The service calls a closed run "not found", which a script must tell from a missing one."""
    try:
        yield
    except NotFoundError as error:
        target = context.execution
        store = context.service.host.store
        head = store.head(context.namespace, target.workflow_id, target.run_id)
        if head is None or validation.is_open(head.status):
            raise
        raise WrongStateError(error.message) from error
