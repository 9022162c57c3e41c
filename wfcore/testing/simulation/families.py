"""What runs do to each other: each child starts and ends once for its parent and works only when
that knows of it; each signal and cancel request arrives once, and what its sender is told is true.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

from wfcore.history.state import Child, DeliveryKind, MutableState, Recorded
from wfcore.history.step import CHILD_ENDS
from wfcore.protocol import events as ev
from wfcore.protocol.enums import ParentClosePolicy
from wfcore.protocol.enums import WorkflowIdReusePolicy as Reuse
from wfcore.protocol.events import HistoryEvent
from wfcore.testing.memory_ports import read_snapshot
from wfcore.testing.memory_rows import Run
from wfcore.testing.simulation.violations import Fail, Report

#: What becomes of things that a run does to others.
OUTCOMES = (
    ev.StartChildWorkflowExecutionFailed,
    ev.ChildWorkflowExecutionStarted,
    ev.ExternalWorkflowExecutionSignaled,
    ev.SignalExternalWorkflowExecutionFailed,
    ev.ExternalWorkflowExecutionCancelRequested,
    ev.RequestCancelExternalWorkflowExecutionFailed,
    *CHILD_ENDS,
)
#: By which a run is known to what it does to others.
_Address = tuple[str, int]


def address_of(request_id: str) -> _Address | None:
    """The run and the event that an engine's own request id names; None for a client's."""
    run_id, _, event_id = request_id.rpartition(":")
    return (run_id, int(event_id)) if run_id and event_id.isdigit() else None


def look(before: Recorded, event: HistoryEvent, fail: Fail) -> None:
    """An outcome belongs to something that waits for it; `before` is the state without it."""
    match event.attributes:
        case ev.StartChildWorkflowExecutionFailed(initiated_event_id=at) | (
            ev.ChildWorkflowExecutionStarted(initiated_event_id=at)
        ):
            known = before.children.get(at)
            if known is None or known.started_event_id:
                fail("a child starts once", f"event {event.event_id} is about event {at}")
        case (
            ev.ExternalWorkflowExecutionSignaled(initiated_event_id=at)
            | ev.SignalExternalWorkflowExecutionFailed(initiated_event_id=at)
        ):
            if at not in before.external_signals:
                fail("a signal is answered once", f"event {event.event_id} is about event {at}")
        case (
            ev.ExternalWorkflowExecutionCancelRequested(initiated_event_id=at)
            | ev.RequestCancelExternalWorkflowExecutionFailed(initiated_event_id=at)
        ):
            if at not in before.external_cancels:
                fail("a cancel is answered once", f"event {event.event_id} is about event {at}")
        case attributes if isinstance(attributes, CHILD_ENDS):
            at = getattr(attributes, "initiated_event_id", 0)
            known = before.children.get(at)
            told = getattr(attributes, "started_event_id", 0)
            if known is None or not known.started_event_id or known.started_event_id != told:
                fail("a child ends once", f"event {event.event_id} is about event {at}")


def check_close(state: MutableState, fail: Fail) -> None:
    """A run that has just closed has its children and its parent to tell, and nothing else."""
    recorded = state.recorded
    wanted = {
        at: DeliveryKind.CLOSE_CHILD
        for at, child in recorded.children.items()
        if child.started_event_id and child.parent_close_policy is not ParentClosePolicy.ABANDON
    }
    if recorded.parent is not None and not recorded.new_execution_run_id:
        wanted[recorded.next_event_id - 1] = DeliveryKind.REPORT
    found = {at: each.kind for at, each in state.volatile.deliveries.items()}
    if found != wanted:
        fail("a run that closes tells those that must know", f"{found} instead of {wanted}")


def check_calm(runs: Sequence[Run], report: Report) -> None:
    """When nothing is to come any more, whoever waits for others has heard of them, and those that
    a parent left behind know it.
    """
    opened: dict[tuple[str, str], Recorded] = {}
    for run in runs:
        if not run.closed:
            recorded = read_snapshot(run).recorded
            opened[recorded.workflow_id, recorded.first_execution_run_id] = recorded
    for run in runs:
        recorded, fail = read_snapshot(run).recorded, report.of(run.key)
        if not run.closed and (recorded.external_signals or recorded.external_cancels):
            fail("what was sent is answered", "signals or cancels wait for ever")
        for at, child in recorded.children.items():
            living = opened.get((child.workflow_id, child.run_id))
            if not run.closed and living is None:
                fail("a parent hears of its child", f"event {at}: {child}")
            if run.closed and living is not None and not _is_left(child, living):
                fail("a close policy is applied", f"event {at}: {child}")


def _is_left(child: Child, living: Recorded) -> bool:
    """Whether a closed parent may have left an open child so."""
    policy = child.parent_close_policy
    cancelled = policy is ParentClosePolicy.REQUEST_CANCEL and (
        living.cancel_requested or living.continued_execution_run_id
    )
    return policy is ParentClosePolicy.ABANDON or bool(cancelled)


class Families:
    """All runs of a world that has come to its end."""

    def __init__(self, runs: Sequence[Run], report: Report) -> None:
        self._runs = runs
        self._report = report
        self._by_id = {run.key.run_id: run for run in runs}
        self._signals: Counter[_Address] = Counter()
        self._cancels: Counter[_Address] = Counter()
        self._children: dict[_Address, list[Run]] = defaultdict(list)
        for run in runs:
            made = address_of(run.current.create_request_id)
            if made is not None:
                self._children[made].append(run)
            for event in run.events:
                self._count(event)

    def _count(self, event: HistoryEvent) -> None:
        match event.attributes:
            case ev.WorkflowExecutionSignaled(request_id=request_id):
                sent = address_of(request_id)
                if sent is not None:
                    self._signals[sent] += 1
            case ev.WorkflowExecutionCancelRequested(
                external_workflow_execution=sender, external_initiated_event_id=at
            ) if sender is not None and at:
                self._cancels[sender.run_id, at] += 1

    def give(self) -> None:
        """Report all that is wrong."""
        for run in self._runs:
            fail = self._report.of(run.key)
            left = read_snapshot(run).volatile.deliveries
            if left:
                fail("nothing is left to deliver", str(left))
            for event in run.events:
                self._kept(run, event, fail)
            self._works_when_known(run, fail)
        for address, count in (*self._signals.items(), *self._cancels.items()):
            if count > 1:
                self._report.fail("what is sent arrives once", f"{address} came {count} times")

    def _kept(self, run: Run, event: HistoryEvent, fail: Fail) -> None:
        """What a run was told of others is true."""
        match event.attributes:
            case ev.ExternalWorkflowExecutionSignaled(initiated_event_id=at):
                if self._signals[run.key.run_id, at] != 1:
                    fail("a signal that was delivered is there", f"event {at}")
            case ev.SignalExternalWorkflowExecutionFailed(initiated_event_id=at):
                if self._signals[run.key.run_id, at]:
                    fail("a signal that was not delivered is not there", f"event {at}")
            case ev.RequestCancelExternalWorkflowExecutionFailed(initiated_event_id=at):
                if self._cancels[run.key.run_id, at]:
                    fail("a cancel that was not delivered is not there", f"event {at}")
            case ev.ChildWorkflowExecutionStarted(initiated_event_id=at) as told:
                name = told.workflow_execution.run_id if told.workflow_execution else ""
                if name not in [child.key.run_id for child in self._children[run.key.run_id, at]]:
                    fail("a child that has started is there", f"event {at}: {name}")
            case attributes if isinstance(attributes, CHILD_ENDS):
                self._ended(run, attributes, fail)

    def _ended(self, run: Run, attributes: object, fail: Fail) -> None:
        execution = getattr(attributes, "workflow_execution", None)
        child = self._by_id.get(execution.run_id if execution is not None else "")
        if child is None or not child.closed:
            fail("a child that has ended is closed", f"{execution}")
            return
        last = child.events[-1].attributes
        said = type(attributes).__name__.removeprefix("ChildWorkflowExecution")
        followed = getattr(last, "new_execution_run_id", "")
        if followed or type(last).__name__ != f"WorkflowExecution{said}":
            fail("a parent is told of the last run's end", f"{said}: {type(last).__name__}")

    def _works_when_known(self, run: Run, fail: Fail) -> None:
        """A child has a workflow task only if its parent has recorded its chain's start."""
        recorded = read_snapshot(run).recorded
        if recorded.parent is None or not recorded.first_task_scheduled:
            return
        parent = self._by_id.get(recorded.parent.run_id)
        first = recorded.first_execution_run_id
        known = [
            told.workflow_execution.run_id
            for event in (parent.events if parent is not None else ())
            if isinstance(told := event.attributes, ev.ChildWorkflowExecutionStarted)
            and told.workflow_execution is not None
        ]
        if first not in known:
            fail("a child works when its parent knows of it", f"{first} is not in {known}")


def was_asked_for(parent: Run | None, address: _Address, child: Run) -> Reuse | None:
    """The policy under which a parent asked for a child; None if it didn't."""
    _, event_id = address
    events = parent.events if parent is not None else []
    asked = events[event_id - 1].attributes if 0 < event_id <= len(events) else None
    if (
        isinstance(asked, ev.StartChildWorkflowExecutionInitiated)
        and asked.workflow_id == child.key.workflow_id
    ):
        return asked.workflow_id_reuse_policy
    return None
