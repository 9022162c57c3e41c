"""The end of every transition: what the host must do, and when it must look again."""

from datetime import datetime

from wfcore.history.deadlines import next_deadline
from wfcore.history.effects import NotifyHistory, WakeTicker
from wfcore.history.machines import activity, delivery, workflow_task
from wfcore.history.step import Step


def finish(step: Step, before: datetime | None = None) -> None:
    """Complete a change; `before` is the run's next deadline as it was."""
    change = step.change
    recorded = step.recorded
    changed = step.has_changed
    task = step.volatile.task
    if step.announce and task is not None:
        workflow_task.announce(step, task)
    delivery.begin(step)
    soonest: list[datetime] = []
    for scheduled_event_id, row in change.activity_rows.items():
        if row is None:
            continue
        if activity.waits_unannounced(row, step.now) and not change.closed:
            step.effect(activity.dispatch(row))
            row = activity.announced(row, step.now, step.limits)  # noqa: PLW2901
            change.activity_rows[scheduled_event_id] = row
        if row.due_at is not None:
            soonest.append(row.due_at)
    change.next_deadline = next_deadline(change.state)
    if change.next_deadline is not None and (before is None or change.next_deadline < before):
        soonest.append(change.next_deadline)
    if change.events:
        step.effect(
            NotifyHistory(
                namespace=recorded.namespace,
                workflow_id=recorded.workflow_id,
                run_id=recorded.run_id,
                next_event_id=recorded.next_event_id,
                closed=change.closed,
            )
        )
    if soonest:
        step.effect(WakeTicker(at=min(soonest)))
    if changed:
        step.volatile.state_transitions += 1
