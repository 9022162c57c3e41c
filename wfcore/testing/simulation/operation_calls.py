"""What operators do to pending activities: hold them, let them go on, begin anew, change limits."""

import random
from collections.abc import Callable

from wfcore.history.state import PendingActivity
from wfcore.protocol.common import FieldMask, WorkflowExecution
from wfcore.protocol.rpc.activity_operations import (
    PauseActivityRequest,
    ResetActivityRequest,
    UnpauseActivityRequest,
    UpdateActivityOptionsRequest,
)
from wfcore.protocol.rpc.info import ActivityOptions
from wfcore.service.workflow_service import WorkflowService
from wfcore.testing.memory_rows import Run
from wfcore.testing.simulation.ledger import ask
from wfcore.testing.simulation.processes import Client
from wfcore.testing.simulation.scripts import seconds
from wfcore.testing.simulation.world import NAMESPACE, World


def operate(world: World, client: Client, rng: random.Random) -> None:
    """Do something to an activity that is pending, or has just ended."""
    runs = runs_with_activities(world)
    if not runs:
        return
    run = rng.choice(runs)
    row = rng.choice(list(run.activities.values()))
    what, call = rng.choice(_OPERATIONS)
    world.asked(what)
    if what == "reset an activity" or what == "unpause an activity":
        world.watch.may_begin_anew(run.key, row.scheduled_event_id)
    ask(lambda: call(client.service, run, row, rng))


def runs_with_activities(world: World) -> list[Run]:
    """Open runs that have some."""
    return [run for run in world.open_runs() if run.activities]


def unpause_all(service: WorkflowService, run: Run) -> None:
    """Let all activities of a run go on."""
    request = UnpauseActivityRequest(
        namespace=NAMESPACE, execution=_execution(run), unpause_all=True, identity="end"
    )
    ask(lambda: service.unpause_activity(request))


def _pause(service: WorkflowService, run: Run, row: PendingActivity, _rng: random.Random) -> object:
    return service.pause_activity(
        PauseActivityRequest(
            namespace=NAMESPACE, execution=_execution(run), id=row.activity_id, reason="hold it"
        )
    )


def _unpause(
    service: WorkflowService, run: Run, row: PendingActivity, rng: random.Random
) -> object:
    return service.unpause_activity(
        UnpauseActivityRequest(
            namespace=NAMESPACE,
            execution=_execution(run),
            id=row.activity_id,
            reset_attempts=rng.random() < 0.3,
            reset_heartbeat=rng.random() < 0.3,
        )
    )


def _reset(service: WorkflowService, run: Run, row: PendingActivity, rng: random.Random) -> object:
    return service.reset_activity(
        ResetActivityRequest(
            namespace=NAMESPACE,
            execution=_execution(run),
            id=row.activity_id,
            reset_heartbeat=rng.random() < 0.3,
            keep_paused=rng.random() < 0.3,
            restore_original_options=rng.random() < 0.3,
        )
    )


def _options(
    service: WorkflowService, run: Run, row: PendingActivity, rng: random.Random
) -> object:
    return service.update_activity_options(
        UpdateActivityOptionsRequest(
            namespace=NAMESPACE,
            execution=_execution(run),
            id=row.activity_id,
            activity_options=ActivityOptions(
                start_to_close_timeout=seconds(rng.choice([2, 20, 200])),
                heartbeat_timeout=seconds(rng.choice([1, 5])),
            ),
            update_mask=FieldMask(paths=("start_to_close_timeout", "heartbeat_timeout")),
        )
    )


def _execution(run: Run) -> WorkflowExecution:
    return WorkflowExecution(workflow_id=run.key.workflow_id, run_id=run.key.run_id)


_Operation = Callable[[WorkflowService, Run, PendingActivity, random.Random], object]
_OPERATIONS: tuple[tuple[str, _Operation], ...] = (
    ("pause an activity", _pause),
    ("unpause an activity", _unpause),
    ("reset an activity", _reset),
    ("change an activity's options", _options),
)
