"""The verbs of updates: start, execute, result, describe."""

import argparse
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from wfapp import operating
from wfapp.cli.acting import closed_told_apart
from wfapp.cli.answers import Exit, VerbError
from wfapp.cli.arguments import add_input, add_reason, add_run, duration, values
from wfapp.cli.context import Context, account
from wfapp.presentation.values import texts_of, value_of
from wfapp.presentation.words import camel, failure_line
from wfcore.exceptions import DeadlineExceededError
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import UpdateWorkflowExecutionLifecycleStage as Stage
from wfcore.protocol.failures import Failure
from wfcore.protocol.rpc.updates import (
    PollWorkflowExecutionUpdateRequest,
    PollWorkflowExecutionUpdateResponse,
    UpdateWorkflowExecutionRequest,
    UpdateWorkflowExecutionResponse,
)
from wfcore.protocol.updates import Input, Meta, Outcome, Request, UpdateRef, WaitPolicy

_STAGES = {"accepted": Stage.ACCEPTED, "completed": Stage.COMPLETED}

Answer = UpdateWorkflowExecutionResponse | PollWorkflowExecutionUpdateResponse


# ---- options


def add_stage(parser: argparse.ArgumentParser, flag: str) -> None:
    """How far the update must have come."""
    parser.add_argument(
        flag, choices=list(_STAGES), default="accepted", help="until when to wait (accepted)"
    )


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """How long to wait."""
    parser.add_argument(
        "--timeout", type=duration, help="how long to wait; without it as long as it takes"
    )


def execute_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--name", required=True, help="update name")
    parser.add_argument("--update-id", default="", help="without it a random one")
    parser.add_argument(
        "--first-execution-run-id", default="", help="refuse runs of another chain than this one's"
    )
    add_input(parser)
    add_timeout(parser)
    add_reason(parser)


def start_options(parser: argparse.ArgumentParser) -> None:
    execute_options(parser)
    add_stage(parser, "--wait-for-stage")


def describe_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--update-id", required=True)


def result_options(parser: argparse.ArgumentParser) -> None:
    describe_options(parser)
    add_timeout(parser)


# ---- verbs


def start(context: Context) -> None:
    """Send an update and wait until it is accepted."""
    _send(context, context.options["wait_for_stage"], tells_result=False)


def execute(context: Context) -> None:
    """Send an update and wait for its result."""
    _send(context, "completed", tells_result=True)


def _send(context: Context, stage: str, *, tells_result: bool) -> None:
    options = context.options
    sent = request(
        context,
        context.execution,
        name=options["name"],
        update_id=options["update_id"],
        arguments=values(options),
        stage=stage,
        first_execution_run_id=options["first_execution_run_id"],
    )
    wait = Wait(context, stage)
    with closed_told_apart(context):
        with wait.timed_out():
            answer = operating.perform(context.service, sent, context.operator, timeout=wait.left())
        found = wait.rest(answer)
    tell(context, options["name"], found, tells_result=tells_result)


def request(
    context: Context,
    execution: WorkflowExecution,
    *,
    name: str,
    update_id: str,
    arguments: list[Any],
    stage: str,
    first_execution_run_id: str = "",
) -> UpdateWorkflowExecutionRequest:
    """The call that sends an update."""
    return UpdateWorkflowExecutionRequest(
        namespace=context.namespace,
        workflow_execution=execution,
        first_execution_run_id=first_execution_run_id,
        wait_policy=WaitPolicy(lifecycle_stage=_STAGES[stage]),
        request=Request(
            meta=Meta(update_id=update_id or str(uuid.uuid4()), identity=account()),
            input=Input(name=name, args=context.payloads(arguments)),
        ),
    )


def result(context: Context) -> None:
    """Wait for the end of an update and print what came of it."""
    wait = Wait(context, "completed")
    tell(context, "", wait.rest(_named(context)), tells_result=True)


def describe(context: Context) -> None:
    """Print how far an update has come, without waiting."""
    found = _poll(context, _ref(context), Stage.UNSPECIFIED, None)
    outcome, update_id = found.outcome, _update_id(found)
    context.printer.json(
        {
            "updateId": update_id,
            "stage": found.stage.name,
            **_result(context, outcome),
            **({"failure": failure_line(outcome.failure)} if outcome and outcome.failure else {}),
        }
    )
    context.printer.card(
        [
            ("UpdateID", update_id),
            ("Stage", camel(found.stage)),
            ("Result", _result_text(context, outcome)),
            ("Failure", failure_line(outcome.failure) if outcome is not None else ""),
        ]
    )


# ---- waiting


@dataclass
class Wait:
    """Waits for a stage, for as long as the command line says; a call waits 20 s at most."""

    context: Context
    stage: str

    def __post_init__(self) -> None:
        limit: timedelta | None = self.context.options["timeout"]
        store = self.context.service.host.store
        self._until: datetime | None = store.now() + limit if limit is not None else None

    def left(self) -> timedelta | None:
        """How much of the time is left; None: as long as it takes."""
        if self._until is None:
            return None
        return max(self._until - self.context.service.host.store.now(), timedelta())

    @contextmanager
    def timed_out(self) -> Iterator[None]:
        """Says in which words a wait was in vain."""
        try:
            yield
        except DeadlineExceededError as error:
            raise VerbError(f"the update is not {self.stage} yet", Exit.TIMED_OUT) from error

    def rest(self, answer: Answer) -> Answer:
        """The answer that tells of the stage, this one or one that is asked for."""
        stage = _STAGES[self.stage]
        while answer.stage < stage:
            ref = answer.update_ref or UpdateRef()
            with self.timed_out():
                answer = _poll(self.context, ref, stage, self.left())
        return answer


def _named(context: Context) -> PollWorkflowExecutionUpdateResponse:
    return PollWorkflowExecutionUpdateResponse(update_ref=_ref(context))


def _ref(context: Context) -> UpdateRef:
    return UpdateRef(workflow_execution=context.execution, update_id=context.options["update_id"])


def _poll(
    context: Context, ref: UpdateRef, stage: Stage, timeout: timedelta | None
) -> PollWorkflowExecutionUpdateResponse:
    return context.service.poll_workflow_execution_update(
        PollWorkflowExecutionUpdateRequest(
            namespace=context.namespace,
            update_ref=ref,
            identity=account(),
            wait_policy=WaitPolicy(lifecycle_stage=stage),
        ),
        timeout=timeout,
    )


# ---- telling


def tell(
    context: Context,
    name: str,
    found: Answer,
    *,
    tells_result: bool,
    facts: Mapping[str, str] | None = None,
) -> None:
    """Print how an update ended, or that it was accepted.

    Raises:
        VerbError: it was refused or failed.
    """
    outcome, update_id = found.outcome, _update_id(found)
    if outcome is not None and outcome.failure is not None:
        failure = context.reader.message(outcome.failure)
        raise VerbError(f"unable to update workflow: {_failure_text(failure)}")
    told = {"name": name, "updateId": update_id}
    named = {key: value for key, value in told.items() if value}
    context.printer.json(
        {**(facts or {}), **named, **(_result(context, outcome) if tells_result else {})}
    )
    context.printer.card(
        [
            ("Name", name),
            ("UpdateID", update_id),
            ("Result", _result_text(context, outcome) if tells_result else ""),
        ]
    )


def _update_id(found: Answer) -> str:
    return found.update_ref.update_id if found.update_ref is not None else ""


def _result(context: Context, outcome: Outcome | None) -> dict[str, Any]:
    if outcome is None or outcome.success is None:
        return {}
    payloads = context.reader.message(outcome).success
    items = payloads.payloads if payloads is not None else ()
    return {"result": value_of(items[0]) if items else None}


def _result_text(context: Context, outcome: Outcome | None) -> str:
    return ", ".join(texts_of(context.reader.message(outcome or Outcome()).success))


def _failure_text(failure: Failure) -> str:
    info = failure.application_failure_info
    if info is None:
        return failure.message
    retryable = "false" if info.non_retryable else "true"
    kind = f"type: {info.type}, " if info.type else ""
    return f"{failure.message} ({kind}retryable: {retryable})"
