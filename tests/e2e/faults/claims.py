"""Who holds what, read from the claim rows as an operator would."""

from dataclasses import dataclass
from uuid import UUID

from wfapp.models import ExecutionState, PendingActivity, WorkerProcess


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A workflow task or an attempt of an activity, and the process that works on it."""

    kind: str
    run_id: UUID
    scheduled_event_id: int
    owner: str
    pid: int


def claims() -> list[Claim]:
    """All claims of processes that are known."""
    pids = dict(WorkerProcess.objects.values_list("boot_id", "pid"))
    activities = PendingActivity.objects.filter(owner__gt="").values_list(
        "run_id", "scheduled_event_id", "owner"
    )
    tasks = ExecutionState.objects.filter(owner__gt="").values_list("run_id", "owner")
    found = [
        Claim(
            kind="activity", run_id=run_id, scheduled_event_id=event, owner=owner, pid=pids[owner]
        )
        for run_id, event, owner in activities
        if owner in pids
    ]
    found += [
        Claim(
            kind="workflow task", run_id=run_id, scheduled_event_id=0, owner=owner, pid=pids[owner]
        )
        for run_id, owner in tasks
        if owner in pids
    ]
    return found


def still_held(claim: Claim) -> bool:
    """Whether the row still names the owner; a dead one can't have given its claim back."""
    if claim.kind == "activity":
        return PendingActivity.objects.filter(
            run_id=claim.run_id, scheduled_event_id=claim.scheduled_event_id, owner=claim.owner
        ).exists()
    return ExecutionState.objects.filter(run_id=claim.run_id, owner=claim.owner).exists()
