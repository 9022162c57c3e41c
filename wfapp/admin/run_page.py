"""What the page of one run shows: built in a handful of queries, however long the run's history."""

from typing import Any

from django.http import HttpRequest

from wfapp.models import WorkflowExecution
from wfapp.presentation import history_lines
from wfapp.presentation.run_view import RunView, load_run
from wfapp.presentation.values import Reader, text_of, texts_of
from wfapp.presentation.words import camel, event_name, failure_line, retry_line, span
from wfcore.history.state import ActivityState, InboxItem, PendingActivity
from wfcore.protocol import events as ev
from wfcore.protocol.events import EVENT_TYPES
from wfcore.service.workflow_service import WorkflowService

#: Events on one page of a history.
EVENTS = 250


def run_page(
    request: HttpRequest, run: WorkflowExecution, service: WorkflowService, reader: Reader
) -> dict[str, Any]:
    """The context of the page.

    Raises:
        NotFoundError: the run is gone.
    """
    view = load_run(service, run.namespace, run.workflow_id, str(run.run_id), reader)
    return {
        "run": run,
        "view": view,
        "status": camel(view.state.recorded.status),
        "facts": _facts(view),
        "memo": [(name, text_of(payload)) for name, payload in view.memo.fields.items()],
        "search_attributes": [
            (name, text_of(payload))
            for name, payload in view.search_attributes.indexed_fields.items()
        ],
        "activities": [_activity(view, row) for row in view.activities],
        "timers": [
            {"id": timer_id, "fires_at": timer.fire_at, "in": span(timer.fire_at - view.now)}
            for timer_id, timer in view.state.recorded.timers.items()
        ],
        "children": _children(view) if view.state.is_open else [],
        "updates": [
            {
                "id": update.update_id,
                "name": update.name,
                "stage": camel(update.stage),
                "since": update.since,
            }
            for update in view.updates
        ],
        "inbox": [_waiting(item) for item in view.inbox],
        "may_see_payloads": reader.may_see,
        **_history(request, view, service, reader),
    }


def _facts(view: RunView) -> list[tuple[str, Any]]:
    recorded = view.state.recorded
    return [
        ("Workflow id", recorded.workflow_id),
        ("Run id", recorded.run_id),
        ("Type", recorded.workflow_type),
        ("Namespace", recorded.namespace),
        ("Task queue", recorded.task_queue),
        ("Started", recorded.start_time),
        ("Closed", recorded.close_time),
        ("Last progress", recorded.last_event_time),
        ("Took", span(recorded.close_time - recorded.start_time) if recorded.close_time else ""),
        ("Cron schedule", recorded.cron_schedule),
        ("Retry policy", retry_line(recorded.retry_policy)),
        ("Attempt", recorded.attempt if recorded.attempt > 1 else ""),
        ("Cancel requested", recorded.cancel_reason or "yes" if recorded.cancel_requested else ""),
        ("Ends at the latest", recorded.expiration_time),
        ("Next run", recorded.new_execution_run_id),
        ("Events", recorded.next_event_id - 1),
        ("History bytes", recorded.history_bytes),
    ]


def _activity(view: RunView, row: PendingActivity) -> dict[str, Any]:
    waits = row.state == ActivityState.SCHEDULED
    state = "waits" if waits else "runs"
    return {
        "id": row.activity_id,
        "type": row.activity_type,
        "queue": row.task_queue,
        "state": "paused" if waits and row.pause is not None else state,
        "pause": row.pause,
        "attempt": row.attempt,
        "most": row.retry_policy.maximum_attempts or "",
        "next": row.claimable_at if row.claimable_at and row.claimable_at > view.now else None,
        "since": row.started_at,
        "worker": row.identity or row.last_worker_identity,
        "failure": failure_line(row.last_failure),
        "stack": row.last_failure.stack_trace if row.last_failure is not None else "",
        "heartbeat": row.last_heartbeat_at,
        "details": ", ".join(texts_of(row.heartbeat_details)),
    }


def _children(view: RunView) -> list[dict[str, Any]]:
    return [
        {
            "workflow_id": child.workflow_id,
            "run_id": child.run_id,
            "type": child.workflow_type,
            "state": "started" if child.run_id else "to be started",
            "policy": camel(child.parent_close_policy),
        }
        for child in view.state.recorded.children.values()
    ]


def _waiting(item: InboxItem) -> dict[str, Any]:
    attributes = item.attributes
    name = attributes.signal_name if isinstance(attributes, ev.WorkflowExecutionSignaled) else ""
    return {
        "what": event_name(EVENT_TYPES[type(attributes)]),
        "name": name,
        "at": item.event_time,
    }


def _history(
    request: HttpRequest, view: RunView, service: WorkflowService, reader: Reader
) -> dict[str, Any]:
    first = _number(request.GET.get("from", ""))
    last = view.state.recorded.next_event_id - 1
    events = reader.messages(
        service.host.store.read_events(view.key, first=first, last=last, limit=EVENTS)
    )
    in_full = request.GET.get("events") == "full"
    return {
        "in_full": in_full,
        "lines": [] if in_full else history_lines.compact(events),
        "events": history_lines.full(events) if in_full else [],
        "from": first,
        "earlier": max(first - EVENTS, 1) if first > 1 else None,
        "later": first + EVENTS if first + EVENTS <= last else None,
    }


def _number(text: str) -> int:
    """The first event of a page; whatever isn't one counts as the first."""
    return max(int(text), 1) if text.isdecimal() and len(text) < len("1000000000") else 1
