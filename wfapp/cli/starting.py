"""Verbs that start runs: start, execute, and those that bring a signal or an update along."""

import argparse
import json
import uuid
from typing import Any

from wfapp import operating
from wfapp.cli import results, updating
from wfapp.cli.answers import Exit, VerbError
from wfapp.cli.arguments import (
    add_input,
    add_priority,
    add_reason,
    add_retry,
    choices,
    duration,
    named_values,
    priority,
    retry_fields,
    values,
)
from wfapp.cli.context import Context, account
from wfapp.conf import config
from wfapp.dispatch.queues import DEFAULT_TASK_QUEUE
from wfcore.protocol.common import RetryPolicy, TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import WorkflowIdConflictPolicy, WorkflowIdReusePolicy
from wfcore.protocol.payloads import Memo, Payload, SearchAttributes, UserMetadata
from wfcore.protocol.rpc.updates import (
    ExecuteMultiOperationRequest,
    ExecuteMultiOperationRequestOperation,
)
from wfcore.protocol.rpc.workflows import (
    SignalWithStartWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
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
    parser.add_argument(
        "--cron", default="", metavar="SCHEDULE", help="run again and again, such as '0 12 * * *'"
    )
    add_retry(parser, "the whole workflow, which without any of these is not repeated")
    parser.add_argument(
        "--retry-non-retryable-error-type", action="append", default=[], metavar="TYPE"
    )
    add_priority(parser)
    parser.add_argument("--memo", action="append", default=[], metavar="KEY=JSON")
    parser.add_argument("--search-attribute", action="append", default=[], metavar="KEY=JSON")
    parser.add_argument("--static-summary", default="", help="one line for people")
    parser.add_argument("--static-details", default="", help="more for people")
    add_reason(parser)


def start(context: Context) -> None:
    """Start a run, or find the one that the policies name."""
    request = _request(context)
    answer = operating.perform(context.service, request, context.operator)
    facts = _facts(request, answer.run_id)
    context.printer.json(facts)
    _print_start(context, facts, started=answer.started)


def _request(context: Context) -> StartWorkflowExecutionRequest:
    options = context.options
    reuse, conflict = options["id_reuse_policy"], options["id_conflict_policy"]
    queue = options["task_queue"] or config().task_queue or DEFAULT_TASK_QUEUE
    return StartWorkflowExecutionRequest(
        namespace=context.namespace,
        workflow_id=options["workflow_id"] or str(uuid.uuid4()),
        workflow_type=WorkflowType(name=options["type"]),
        task_queue=TaskQueue(name=queue),
        input=context.payloads(values(options)),
        workflow_execution_timeout=options["execution_timeout"],
        workflow_run_timeout=options["run_timeout"],
        workflow_task_timeout=options["task_timeout"],
        workflow_start_delay=options["start_delay"],
        workflow_id_reuse_policy=WorkflowIdReusePolicy.from_wire(reuse or 0),
        workflow_id_conflict_policy=WorkflowIdConflictPolicy.from_wire(conflict or 0),
        cron_schedule=options["cron"],
        retry_policy=_retry_policy(options),
        priority=priority(options),
        identity=account(),
        memo=_memo(context),
        search_attributes=_search_attributes(options),
        user_metadata=_metadata(context),
    )


def _retry_policy(options: dict[str, Any]) -> RetryPolicy | None:
    types = tuple(options["retry_non_retryable_error_type"])
    fields = retry_fields(options)
    return RetryPolicy(**fields, non_retryable_error_types=types) if fields or types else None


def _memo(context: Context) -> Memo | None:
    fields = named_values(context.options["memo"], "--memo")
    if not fields:
        return None
    payloads = context.payloads(list(fields.values()))
    items = payloads.payloads if payloads is not None else _NO_PAYLOADS
    return Memo(fields=dict(zip(fields, items, strict=True)))


def _search_attributes(options: dict[str, Any]) -> SearchAttributes | None:
    """In the clear whatever the project's codec: people find runs by them."""
    fields = named_values(options["search_attribute"], "--search-attribute")
    if not fields:
        return None
    return SearchAttributes(
        indexed_fields={
            name: Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(value).encode())
            for name, value in fields.items()
        }
    )


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


def _facts(request: StartWorkflowExecutionRequest, run_id: str) -> dict[str, str]:
    """What is told of a start, whatever came with it."""
    return {
        "workflowId": request.workflow_id,
        "runId": run_id,
        "type": request.workflow_type.name if request.workflow_type is not None else "",
        "namespace": request.namespace,
        "taskQueue": request.task_queue.name if request.task_queue is not None else "",
    }


def _print_start(context: Context, facts: dict[str, str], *, started: bool) -> None:
    context.printer.title("Running execution")
    context.printer.card([(name[0].upper() + name[1:], value) for name, value in facts.items()])
    if not started:
        context.printer.note("Nothing was started: this run was open already.")


# ---- execute


def execute_options(parser: argparse.ArgumentParser) -> None:
    start_options(parser)
    results.add_timeout(parser)


def execute(context: Context) -> None:
    """Start a workflow and wait for its end, through all of its runs."""
    request = _request(context)
    answer = operating.perform(context.service, request, context.operator)
    facts = _facts(request, answer.run_id)
    _print_start(context, facts, started=answer.started)
    execution = WorkflowExecution(workflow_id=request.workflow_id, run_id=answer.run_id)
    results.wait_and_print(context, execution, facts)


# ---- with a signal


def signal_with_start_options(parser: argparse.ArgumentParser) -> None:
    start_options(parser)
    parser.add_argument("--signal-name", required=True)
    add_input(parser, "signal-", " of the signal")


def signal_with_start(context: Context) -> None:
    """Signal a workflow, and start it to take the signal if it is not open."""
    plain = _request(context)
    names = StartWorkflowExecutionRequest.__struct_fields__
    shared = set(names) & set(SignalWithStartWorkflowExecutionRequest.__struct_fields__)
    request = SignalWithStartWorkflowExecutionRequest(
        **{name: getattr(plain, name) for name in shared},
        signal_name=context.options["signal_name"],
        signal_input=context.payloads(values(context.options, "signal-")),
    )
    answer = operating.perform(context.service, request, context.operator)
    facts = _facts(plain, answer.run_id)
    context.printer.json(facts)
    context.printer.title("Running execution")
    context.printer.card([(name[0].upper() + name[1:], value) for name, value in facts.items()])


# ---- with an update


def start_update_options(parser: argparse.ArgumentParser) -> None:
    execute_update_options(parser)
    updating.add_stage(parser, "--update-wait-for-stage")


def execute_update_options(parser: argparse.ArgumentParser) -> None:
    start_options(parser)
    # without a policy the start is refused where Temporal's command line asks for one
    parser.set_defaults(id_conflict_policy="UseExisting")
    parser.add_argument("--update-name", required=True)
    parser.add_argument("--update-id", default="", help="without it a random one")
    add_input(parser, "update-", " of the update")
    updating.add_timeout(parser)


def start_update_with_start(context: Context) -> None:
    """Update a workflow that is started if it is not open; wait until the update is accepted."""
    _update_with_start(context, context.options["update_wait_for_stage"], tells_result=False)


def execute_update_with_start(context: Context) -> None:
    """Update a workflow that is started if it is not open; wait for the update's result."""
    _update_with_start(context, "completed", tells_result=True)


def _update_with_start(context: Context, stage: str, *, tells_result: bool) -> None:
    options = context.options
    request = _request(context)
    update = updating.request(
        context,
        WorkflowExecution(workflow_id=request.workflow_id),
        name=options["update_name"],
        update_id=options["update_id"],
        arguments=values(options, "update-"),
        stage=stage,
    )
    wait = updating.Wait(context, stage)
    answer = operating.perform(
        context.service,
        ExecuteMultiOperationRequest(
            namespace=context.namespace,
            operations=(
                ExecuteMultiOperationRequestOperation(start_workflow=request),
                ExecuteMultiOperationRequestOperation(update_workflow=update),
            ),
        ),
        context.operator,
        timeout=wait.left(),
    )
    started, updated = answer.responses[0].start_workflow, answer.responses[1].update_workflow
    if started is None or updated is None:
        raise VerbError("the service answered other operations than it was sent", Exit.ERROR)
    facts = _facts(request, started.run_id)
    _print_start(context, facts, started=started.started)
    found = wait.rest(updated)
    context.printer.line()
    updating.tell(context, options["update_name"], found, tells_result=tells_result, facts=facts)
