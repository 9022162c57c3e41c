"""What callers of updates were told, held against the histories."""

from collections import Counter

from wfcore.protocol import events as ev
from wfcore.protocol.enums import UpdateWorkflowExecutionLifecycleStage as Stage
from wfcore.protocol.updates import Outcome
from wfcore.testing.memory_ports import read_snapshot
from wfcore.testing.memory_rows import Run
from wfcore.testing.simulation.ledger import Outcome as Heard
from wfcore.testing.simulation.ledger import UpdateTry, UpdateWish
from wfcore.testing.simulation.violations import Report
from wfcore.testing.simulation.world import World

#: Failures that leave no event: a worker's, and the engine's own.
_UNRECORDED = ("Refused", "Negative", "UnprocessedUpdate")
_RUN_ENDED = "AcceptedUpdateCompletedWorkflow"


class _Course:
    """What the history of one run tells of its updates."""

    def __init__(self, run: Run, report: Report) -> None:
        self.run = run
        self.accepted: dict[str, int] = {}
        self.ends: dict[str, Outcome | None] = {}
        times: Counter[tuple[str, str]] = Counter()
        for event in run.events:
            match event.attributes:
                case ev.WorkflowExecutionUpdateAccepted(protocol_instance_id=update_id):
                    self.accepted[update_id] = event.event_id
                    times["accepted", update_id] += 1
                case ev.WorkflowExecutionUpdateCompleted(meta=meta, outcome=outcome) if meta:
                    self.ends[meta.update_id] = outcome
                    times["completed", meta.update_id] += 1
        twice = [name for name, count in times.items() if count > 1]
        if twice or not set(self.ends) <= set(self.accepted):
            report.of(run.key)("an update is accepted and completed once", f"{twice}")


def updates_kept(world: World) -> None:
    """Whatever a caller heard is in the history that the answer names."""
    report = world.watch.report
    courses = {run.key.run_id: _Course(run, report) for run in world.runs()}
    for course in courses.values():
        _rows(course, report)
    for wish in world.ledger.updates.values():
        for attempt in wish.tries:
            if isinstance(attempt, UpdateTry) and attempt.outcome is Heard.ACKNOWLEDGED:
                wrong = _differs(wish, attempt, courses.get(attempt.run_id))
                if wrong:
                    report.fail("an update is as its caller was told", f"{wish.tag}: {wrong}")
        sent = [each for each in wish.tries if not getattr(each, "is_poll", False)]
        if sent and all(each.outcome is Heard.REFUSED for each in sent):
            found = [
                course.run.key.run_id for course in courses.values() if wish.tag in course.accepted
            ]
            if found:
                report.fail("a refused update is not accepted", f"{wish.tag} in {found}")


def _rows(course: _Course, report: Report) -> None:
    """Rows tell what the history tells, and no open update is left behind an end."""
    fail = report.of(course.run.key)
    rows = course.run.updates
    accepted = {key: row.accepted_event_id for key, row in rows.items() if row.accepted_event_id}
    if accepted != course.accepted:
        fail("an update's row names its events", f"{accepted}, accepted {course.accepted}")
    completed = {key for key, row in rows.items() if row.completed_event_id}
    if completed != set(course.ends):
        fail("an update's row names its events", f"{completed}, completed {set(course.ends)}")
    state = read_snapshot(course.run)
    if not state.is_open and state.volatile.updates:
        fail("no update waits behind the end", f"{list(state.volatile.updates)}")


def _differs(wish: UpdateWish, attempt: UpdateTry, course: _Course | None) -> str:
    """What is wrong with an answer; empty if nothing is."""
    if course is None or course.run.key.workflow_id != wish.workflow_id:
        return f"told of run {attempt.run_id}"
    is_accepted, end = wish.tag in course.accepted, course.ends.get(wish.tag)
    if attempt.stage is Stage.ADMITTED:
        return "" if attempt.end is None else "an end before acceptance"
    if attempt.stage is Stage.ACCEPTED:
        return "" if is_accepted and attempt.end is None else "told that it was accepted"
    failure = attempt.end.failure if attempt.end is not None else None
    info = failure.application_failure_info if failure is not None else None
    kind = info.type if info is not None else ""
    if kind in _UNRECORDED:
        return ""  # another one of the same id may have been accepted later
    if kind == _RUN_ENDED:
        ended = course.run.closed and is_accepted and end is None
        return "" if ended else "told that the run had ended"
    return "" if end == attempt.end else f"told {attempt.end}, recorded {end}"
