"""Verbs that act: start, signal, query, cancel, terminate. All but a query are audited."""

import argparse
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wfapp import operating
from wfapp.cli.answers import Exit, VerbError, WrongStateError
from wfapp.cli.arguments import (
    add_input,
    add_reason,
    add_run,
    choices,
    duration,
    named_values,
    values,
)
from wfapp.cli.context import Context, account
from wfapp.conf import config
from wfapp.dispatch.queues import DEFAULT_TASK_QUEUE
from wfapp.presentation.message_json import write_message
from wfapp.presentation.values import texts_of, value_of
from wfapp.presentation.words import camel
from wfcore.exceptions import NotFoundError
from wfcore.protocol.common import TaskQueue, WorkflowType
from wfcore.protocol.enums import (
    QueryRejectCondition,
    WorkflowIdConflictPolicy,
    WorkflowIdReusePolicy,
)
from wfcore.protocol.payloads import Memo, UserMetadata
from wfcore.protocol.rpc.info import WorkflowQuery
from wfcore.protocol.rpc.workflows import (
    QueryWorkflowRequest,
    RequestCancelWorkflowExecutionRequest,
    SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
)

_NO_PAYLOADS: tuple[Any, ...] = ()


# ---- start


def start_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--type", required=True, help="workflow type")
    parser.add_argument("-t", "--task-queue", default="", help="without it that of the setting")
    parser.add_argument("-w", "--workflow-id", default="", help="without it a random one")
    add_input(parser)
    for name in ("execution-timeout", "run-timeout", "task-timeout", "start-delay"):
        parser.add_argument(f"--{name}", type=duration, metavar="DURATION", help="such as 1h30m")
    parser.add_argument("--id-reuse-policy", choices=choices(WorkflowIdReusePolicy))
    parser.add_argument("--id-conflict-policy", choices=choices(WorkflowIdConflictPolicy))
    parser.add_argument("--memo", action="append", default=[], metavar="KEY=JSON")
    parser.add_argument("--static-summary", default="", help="one line for people")
    parser.add_argument("--static-details", default="", help="more for people")
    add_reason(parser)


def start(context: Context) -> None:
    """Start a run, or find the one that the policies name."""
    options = context.options
    workflow_id = options["workflow_id"] or str(uuid.uuid4())
    queue = options["task_queue"] or config().task_queue or DEFAULT_TASK_QUEUE
    reuse, conflict = options["id_reuse_policy"], options["id_conflict_policy"]
    request = StartWorkflowExecutionRequest(
        namespace=context.namespace,
        workflow_id=workflow_id,
        workflow_type=WorkflowType(name=options["type"]),
        task_queue=TaskQueue(name=queue),
        input=context.payloads(values(options)),
        workflow_execution_timeout=options["execution_timeout"],
        workflow_run_timeout=options["run_timeout"],
        workflow_task_timeout=options["task_timeout"],
        workflow_start_delay=options["start_delay"],
        workflow_id_reuse_policy=WorkflowIdReusePolicy.from_wire(reuse or 0),
        workflow_id_conflict_policy=WorkflowIdConflictPolicy.from_wire(conflict or 0),
        identity=account(),
        memo=_memo(context),
        user_metadata=_metadata(context),
    )
    answer = operating.perform(context.service, request, context.operator)
    facts = {
        "workflowId": workflow_id,
        "runId": answer.run_id,
        "type": options["type"],
        "namespace": context.namespace,
        "taskQueue": queue,
    }
    context.printer.json(facts)
    context.printer.title("Running execution")
    context.printer.card([(name[0].upper() + name[1:], value) for name, value in facts.items()])
    if not answer.started:
        context.printer.note("Nothing was started: this run was open already.")


def _memo(context: Context) -> Memo | None:
    fields = named_values(context.options["memo"], "--memo")
    if not fields:
        return None
    payloads = context.payloads(list(fields.values()))
    items = payloads.payloads if payloads is not None else _NO_PAYLOADS
    return Memo(fields=dict(zip(fields, items, strict=True)))


def _metadata(context: Context) -> UserMetadata | None:
    texts = {
        "summary": context.options["static_summary"],
        "details": context.options["static_details"],
    }
    fields = {
        name: payloads.payloads[0]
        for name, text in texts.items()
        if text and (payloads := context.payloads([text])) is not None
    }
    return UserMetadata(**fields) if fields else None


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
    with _closed_told_apart(context):
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
    with _closed_told_apart(context):
        operating.perform(context.service, request, context.operator)
    context.printer.json({})
    context.printer.line("Workflow terminated")


@contextmanager
def _closed_told_apart(context: Context) -> Iterator[None]:
    """The service calls a closed run "not found", which a script must tell from a missing one."""
    try:
        yield
    except NotFoundError as error:
        target = context.execution
        store = context.service.host.store
        if store.head(context.namespace, target.workflow_id, target.run_id) is None:
            raise
        raise WrongStateError(error.message) from error
