"""Which runs of a workflow id follow each other, and whether they may.

One run of an id is open at most; a run follows another one only as its start's policies or the
closing event in front say.
"""

from collections.abc import Sequence

from wfcore.protocol import events as ev
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.enums import WorkflowIdConflictPolicy as Conflict
from wfcore.protocol.enums import WorkflowIdReusePolicy as Reuse
from wfcore.testing.memory_rows import Run
from wfcore.testing.simulation import families
from wfcore.testing.simulation.ledger import Ledger
from wfcore.testing.simulation.violations import Report

_UNSUCCESSFUL = (Status.FAILED, Status.CANCELED, Status.TERMINATED, Status.TIMED_OUT)


class Chains:
    """The runs of each workflow id, in the order in which they were made."""

    def __init__(self, ledger: Ledger, report: Report) -> None:
        self._ledger = ledger
        self._report = report
        self._runs: dict[str, list[Run]] = {}
        self._by_id: dict[str, Run] = {}
        self._new: list[Run] = []
        #: runs that were closed before the commit that is looked at
        self._closed_before: set[str] = set()

    def began(self, run: Run) -> None:
        """A run was committed for the first time."""
        self._new.append(run)

    def settle(self, touched: Sequence[Run]) -> None:
        """All runs that a commit touched are as it left them."""
        for run in self._new:
            self._follows(run)
            self._runs.setdefault(run.key.workflow_id, []).append(run)
            self._by_id[run.key.run_id] = run
        self._new.clear()
        for run in touched:
            if run.closed:
                self._closed_before.add(run.key.run_id)
        for workflow_id in dict.fromkeys(run.key.workflow_id for run in touched):
            opened = [run for run in self._runs.get(workflow_id, ()) if not run.closed]
            if len(opened) > 1 or (opened and opened[-1] is not self._runs[workflow_id][-1]):
                names = [run.key.run_id[-4:] for run in opened]
                self._report.fail("one run of an id is open", f"{workflow_id}: {names}")

    def _follows(self, run: Run) -> None:
        fail = self._report.of(run.key)
        workflow_id, request_id = run.key.workflow_id, run.current.create_request_id
        runs = self._runs.get(workflow_id)
        previous = runs[-1] if runs else None
        wish = self._ledger.starts.get(request_id)
        # as in Temporal, a request is recognised as long as its run is the current one, and one
        # that brings a signal as long as that run is open
        repeats = previous is not None and previous.current.create_request_id == request_id
        if repeats and (wish is None or not wish.has_signal):
            fail("no request id twice", f"start {request_id}")
        first = run.events[0].attributes
        continued = (
            first.continued_execution_run_id
            if isinstance(first, ev.WorkflowExecutionStarted)
            else ""
        )
        child = families.address_of(request_id) if wish is None else None
        if continued:
            self._continues(run, previous, continued)
        elif child is not None:
            self._is_wanted(run, previous, child)
        elif wish is None:
            fail("a run was asked for", f"request id {request_id}")
        elif previous is not None and not self._may_follow(
            previous,
            wish.request.workflow_id_reuse_policy,
            wish.request.workflow_id_conflict_policy,
        ):
            fail(
                "policies for used ids hold",
                f"{wish.request.workflow_id_reuse_policy.name}, "
                f"{wish.request.workflow_id_conflict_policy.name} after a run that is "
                f"{previous.head.status.name}",
            )

    def _continues(self, run: Run, previous: Run | None, continued: str) -> None:
        last = previous.events[-1].attributes if previous is not None else None
        named = getattr(last, "new_execution_run_id", "")
        if previous is None or previous.key.run_id != continued or named != run.key.run_id:
            self._report.of(run.key)("a chain is linked both ways", f"continues {continued}")

    def _is_wanted(self, run: Run, previous: Run | None, address: tuple[str, int]) -> None:
        """A parent has asked for it, and its policy allows it."""
        fail = self._report.of(run.key)
        reuse = families.was_asked_for(self._by_id.get(address[0]), address, run)
        if reuse is None:
            fail("a run was asked for", f"by event {address[1]} of {address[0]}")
        elif previous is not None and not self._may_follow(previous, reuse, Conflict.FAIL):
            fail("policies for used ids hold", f"{reuse.name} of a child")

    def _may_follow(self, previous: Run, reuse: Reuse, conflict: Conflict) -> bool:
        replaced = previous.closed and previous.key.run_id not in self._closed_before
        if replaced:
            return (
                reuse is Reuse.TERMINATE_IF_RUNNING or conflict is Conflict.TERMINATE_EXISTING
            ) and previous.head.status is Status.TERMINATED
        if reuse is Reuse.REJECT_DUPLICATE:
            return False
        if reuse is Reuse.ALLOW_DUPLICATE_FAILED_ONLY:
            return previous.head.status in _UNSUCCESSFUL
        return previous.closed
