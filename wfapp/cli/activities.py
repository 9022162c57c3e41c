"""The verbs of activities: complete, fail, pause, unpause, reset, update-options."""

import argparse
from typing import Any

from wfapp import operating
from wfapp.cli.acting import closed_told_apart
from wfapp.cli.answers import VerbError
from wfapp.cli.arguments import (
    RETRY,
    add_priority,
    add_reason,
    add_retry,
    add_run,
    duration,
    json_value,
    priority,
    retry_fields,
)
from wfapp.cli.context import Context, account
from wfapp.presentation.message_json import write_message
from wfapp.presentation.words import retry_line
from wfcore.protocol.common import FieldMask, RetryPolicy, TaskQueue
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.protocol.json_form import format_duration
from wfcore.protocol.message import Message
from wfcore.protocol.rpc.activity_operations import (
    PauseActivityRequest,
    ResetActivityRequest,
    UnpauseActivityRequest,
    UpdateActivityOptionsRequest,
    UpdateActivityOptionsResponse,
)
from wfcore.protocol.rpc.activity_tasks import (
    RespondActivityTaskCompletedByIdRequest,
    RespondActivityTaskFailedByIdRequest,
)
from wfcore.protocol.rpc.info import ActivityOptions

_TIMEOUTS = (
    "schedule_to_close_timeout",
    "schedule_to_start_timeout",
    "start_to_close_timeout",
    "heartbeat_timeout",
)
_PRIORITY = ("priority_key", "fairness_key", "fairness_weight")


# ---- answered from outside


def complete_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("-a", "--activity-id", required=True)
    parser.add_argument("--result", metavar="JSON", help="without it nothing")
    add_reason(parser)


def complete(context: Context) -> None:
    """Complete an activity, also one that no worker has taken."""
    text, target = context.options["result"], context.execution
    values = [] if text is None else [json_value(text, "--result")]
    _perform(
        context,
        RespondActivityTaskCompletedByIdRequest(
            namespace=context.namespace,
            workflow_id=target.workflow_id,
            run_id=target.run_id,
            activity_id=context.options["activity_id"],
            result=context.payloads(values),
            identity=account(),
        ),
    )
    _done(context, "Activity completed")


def fail_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("-a", "--activity-id", required=True)
    parser.add_argument("--detail", metavar="JSON", help="what the failure tells besides")
    parser.add_argument(
        "--reason", required=True, help="the failure's message; kept in the audit log"
    )


def fail(context: Context) -> None:
    """Fail an activity for good: no attempt follows."""
    text, target = context.options["detail"], context.execution
    values = [] if text is None else [json_value(text, "--detail")]
    _perform(
        context,
        RespondActivityTaskFailedByIdRequest(
            namespace=context.namespace,
            workflow_id=target.workflow_id,
            run_id=target.run_id,
            activity_id=context.options["activity_id"],
            failure=Failure(
                message=context.options["reason"],
                source="manage.py",
                application_failure_info=ApplicationFailureInfo(
                    non_retryable=True, details=context.payloads(values)
                ),
            ),
            identity=account(),
        ),
    )
    _done(context, "Activity failed")


# ---- steered


def _add_activities(parser: argparse.ArgumentParser, *, every: bool = True) -> None:
    add_run(parser)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("-a", "--activity-id", default="")
    which.add_argument("--activity-type", default="", help="all of this type")
    if every:
        which.add_argument("--all", action="store_true", help="all that are pending")
    add_reason(parser)


def _named(context: Context) -> dict[str, Any]:
    """What the requests have in common."""
    return {
        "namespace": context.namespace,
        "execution": context.execution,
        "identity": account(),
        "id": context.options["activity_id"],
        "type": context.options["activity_type"],
    }


def _add_jitter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--jitter", type=duration, metavar="DURATION", help="begin within this time, at random"
    )


def pause_options(parser: argparse.ArgumentParser) -> None:
    _add_activities(parser, every=False)


def pause(context: Context) -> None:
    """Keep attempts from beginning; one that runs goes on and is told by its heartbeat."""
    _perform(context, PauseActivityRequest(**_named(context), reason=context.options["reason"]))
    _done(context, "Activity paused")


def unpause_options(parser: argparse.ArgumentParser) -> None:
    _add_activities(parser)
    parser.add_argument("--reset-attempts", action="store_true", help="count from 1 again")
    parser.add_argument("--reset-heartbeats", action="store_true", help="forget their details")
    _add_jitter(parser)


def unpause(context: Context) -> None:
    """Let attempts begin again, at once."""
    options = context.options
    _perform(
        context,
        UnpauseActivityRequest(
            **_named(context),
            unpause_all=options["all"],
            reset_attempts=options["reset_attempts"],
            reset_heartbeat=options["reset_heartbeats"],
            jitter=options["jitter"],
        ),
    )
    _done(context, "Activity unpaused")


def reset_options(parser: argparse.ArgumentParser) -> None:
    _add_activities(parser)
    parser.add_argument("--keep-paused", action="store_true", help="leave paused ones paused")
    parser.add_argument("--clear-heartbeat-details", action="store_true", help="forget them")
    parser.add_argument("--restore-original-options", action="store_true", help="as scheduled")
    _add_jitter(parser)


def reset(context: Context) -> None:
    """Begin with the first attempt again, at once."""
    options = context.options
    _perform(
        context,
        ResetActivityRequest(
            **_named(context),
            match_all=options["all"],
            keep_paused=options["keep_paused"],
            reset_heartbeat=options["clear_heartbeat_details"],
            restore_original_options=options["restore_original_options"],
            jitter=options["jitter"],
        ),
    )
    _done(context, "Activity reset")


def update_options_options(parser: argparse.ArgumentParser) -> None:
    _add_activities(parser)
    parser.add_argument("--task-queue", metavar="QUEUE")
    for name in _TIMEOUTS:
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=duration, metavar="DURATION", help="0s: none"
        )
    add_retry(parser, "the activity")
    add_priority(parser)
    parser.add_argument("--restore-original-options", action="store_true", help="as scheduled")


def update_options(context: Context) -> None:
    """Change those options of activities that are given; attempts that wait go by them."""
    options = context.options
    given = ActivityOptions(
        task_queue=TaskQueue(name=options["task_queue"] or ""),
        **{name: options[name] for name in _TIMEOUTS},
        retry_policy=RetryPolicy(**retry_fields(options)),
        priority=priority(options),
    )
    paths = _mask(options)
    if not paths and not options["restore_original_options"]:
        raise VerbError("nothing to change is given; see --help for the options there are")
    answer: UpdateActivityOptionsResponse = _perform(
        context,
        UpdateActivityOptionsRequest(
            **_named(context),
            match_all=options["all"],
            activity_options=given if paths else None,
            update_mask=FieldMask(paths=paths) if paths else None,
            restore_original=options["restore_original_options"],
        ),
    )
    context.printer.json(write_message(answer, short=True))
    context.printer.title("Activity options")
    _print_options(context, answer.activity_options or ActivityOptions())


def _mask(options: dict[str, Any]) -> tuple[str, ...]:
    """Paths of the options that are given."""
    names = {
        "task_queue": "task_queue.name",
        **{name: name for name in _TIMEOUTS},
        **{name: f"retry_policy.{name.removeprefix('retry_')}" for name in RETRY},
        **{name: f"priority.{name}" for name in _PRIORITY},
    }
    return tuple(path for name, path in names.items() if options[name] is not None)


def _print_options(context: Context, told: ActivityOptions) -> None:
    timeouts = [
        ("".join(part.capitalize() for part in name.split("_")), getattr(told, name))
        for name in _TIMEOUTS
    ]
    context.printer.card(
        [
            ("TaskQueue", told.task_queue.name if told.task_queue is not None else ""),
            *((name, format_duration(value) if value else "") for name, value in timeouts),
            ("RetryPolicy", retry_line(told.retry_policy)),
        ]
    )


def _perform(context: Context, request: Message) -> Any:
    with closed_told_apart(context):
        return operating.perform(context.service, request, context.operator)


def _done(context: Context, text: str) -> None:
    context.printer.json({})
    context.printer.line(text)
