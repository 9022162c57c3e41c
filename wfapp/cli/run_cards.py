"""A run in cards: what it is, what it waits for, what its journal tells."""

from wfapp.cli.answers import Printer
from wfapp.presentation.run_view import RunView
from wfapp.presentation.values import text_of
from wfapp.presentation.words import camel, failure_line, moment, one_line, retry_line, span
from wfcore.history.state import ActivityState, PendingActivity


def print_facts(printer: Printer, view: RunView) -> None:
    """What the run is, and why it is where it is."""
    recorded = view.state.recorded
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
            ("CronSchedule", recorded.cron_schedule),
            ("RetryPolicy", retry_line(recorded.retry_policy)),
            ("Attempt", str(recorded.attempt) if recorded.attempt > 1 else ""),
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
            ("NextRun", recorded.new_execution_run_id),
            ("Why", view.diagnosis.sentence),
            *(("", other) for other in view.diagnosis.others),
        ]
    )


def print_pending(printer: Printer, view: RunView) -> None:
    """What an open run waits for, and the journal of any."""
    if view.state.is_open:
        for row in view.activities:
            _print_activity(printer, row, view)
        _print_children(printer, view)
        _print_updates(printer, view)
        _print_timers(printer, view)
    if view.journal:
        printer.line()
        printer.title("Journal")
        printer.table(
            ("Time", "Kind", "Text"),
            [(moment(entry.at), entry.kind, one_line(entry.text)) for entry in view.journal],
        )


def _print_activity(printer: Printer, row: PendingActivity, view: RunView) -> None:
    printer.line()
    printer.title(f"Pending activity {row.activity_id}")
    waits = row.attempt > 1 and row.claimable_at is not None
    pause = row.pause
    state = row.state.name.capitalize()
    if pause is not None and row.state == ActivityState.SCHEDULED:
        state = "Paused"
    printer.card(
        [
            ("Type", row.activity_type),
            ("TaskQueue", row.task_queue),
            ("State", state),
            ("Paused", f"{span(view.now - pause.at)} ago by {pause.identity}" if pause else ""),
            ("PauseReason", one_line(pause.reason) if pause else ""),
            ("Attempt", str(row.attempt)),
            ("MaximumAttempts", str(row.retry_policy.maximum_attempts or "")),
            ("NextAttempt", moment(row.attempt_scheduled_at) if waits else ""),
            ("LastFailure", failure_line(row.last_failure)),
            ("Worker", row.identity or row.last_worker_identity),
        ]
    )


def _print_children(printer: Printer, view: RunView) -> None:
    children = view.state.recorded.children.values()
    if not children:
        return
    printer.line()
    printer.title("Pending child workflows")
    printer.table(
        ("WorkflowId", "Type", "State", "ParentClosePolicy", "RunId"),
        [
            (
                child.workflow_id,
                child.workflow_type,
                "Started" if child.run_id else "Initiated",
                camel(child.parent_close_policy),
                child.run_id,
            )
            for child in children
        ],
    )


def _print_updates(printer: Printer, view: RunView) -> None:
    if not view.updates:
        return
    printer.line()
    printer.title("Pending updates")
    printer.table(
        ("UpdateID", "Name", "Stage", "Since"),
        [
            (
                update.update_id,
                update.name,
                camel(update.stage),
                moment(update.since) if update.since is not None else "",
            )
            for update in view.updates
        ],
    )


def _print_timers(printer: Printer, view: RunView) -> None:
    timers = view.state.recorded.timers
    if timers:
        printer.line()
        printer.title("Timers")
        printer.card([(name, moment(timer.fire_at)) for name, timer in timers.items()])
