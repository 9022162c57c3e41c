"""Updates that clients send, send again and wait for."""

import random
from contextlib import suppress

import msgspec

from wfcore.exceptions import DeadlineExceededError, RPCError
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import UpdateWorkflowExecutionLifecycleStage as Stage
from wfcore.protocol.enums import WorkflowIdConflictPolicy as Conflict
from wfcore.protocol.rpc.updates import (
    ExecuteMultiOperationRequest,
    ExecuteMultiOperationRequestOperation,
    PollWorkflowExecutionUpdateRequest,
    PollWorkflowExecutionUpdateResponse,
    UpdateWorkflowExecutionRequest,
    UpdateWorkflowExecutionResponse,
)
from wfcore.protocol.updates import Input, Meta, Request, UpdateRef, WaitPolicy
from wfcore.testing.simulation.client_calls import some_run, start_wish
from wfcore.testing.simulation.faults import ConnectionLostError
from wfcore.testing.simulation.ledger import Outcome, Try, UpdateTry, UpdateWish, trying
from wfcore.testing.simulation.processes import Client
from wfcore.testing.simulation.scripts import seconds
from wfcore.testing.simulation.world import NAMESPACE, World, text


def update(world: World, client: Client, rng: random.Random) -> None:
    """Send an update to a run, mostly one that is open."""
    run = some_run(world, rng)
    tag = world.tag("update")
    wish = UpdateWish(
        tag=tag,
        workflow_id=run.key.workflow_id if run is not None else "nobody",
        run_id=run.key.run_id if run is not None and rng.random() < 0.5 else "",
    )
    world.ledger.updates[tag] = wish
    world.asked("update")
    _send(client, rng, wish)


def update_again(world: World, client: Client, rng: random.Random) -> None:
    """Send one once more, by whoever; the first call may still wait."""
    wish = rng.choice(list(world.ledger.updates.values())[-6:])
    world.asked("update again")
    _send(client, rng, wish)


def poll_update(world: World, client: Client, rng: random.Random) -> None:
    """Wait for one that was sent."""
    wish = rng.choice(list(world.ledger.updates.values())[-6:])
    request = PollWorkflowExecutionUpdateRequest(
        namespace=NAMESPACE,
        update_ref=UpdateRef(workflow_execution=_execution(wish), update_id=wish.tag),
        identity=client.name,
        wait_policy=WaitPolicy(lifecycle_stage=rng.choice(list(Stage))),
    )
    world.asked("poll an update")
    limit = seconds(rng.choice([0, 5, 100]))
    heard = UpdateTry(by=client.name, is_poll=True)
    with trying(wish, heard):
        try:
            answer = client.service.poll_workflow_execution_update(request, timeout=limit)
        except DeadlineExceededError as error:
            raise ConnectionLostError("no answer in time") from error
        _hear(heard, answer)


def update_with_start(world: World, client: Client, rng: random.Random) -> None:
    """Update the open run of an id, or start one for that; an error leaves open what was done."""
    begun = start_wish(world, client, rng)
    conflict = rng.choice([Conflict.USE_EXISTING, Conflict.USE_EXISTING, Conflict.FAIL])
    begun.request = msgspec.structs.replace(begun.request, workflow_id_conflict_policy=conflict)
    wish = UpdateWish(tag=world.tag("update"), workflow_id=begun.request.workflow_id)
    world.ledger.updates[wish.tag] = wish
    started, heard = Try(by=client.name), UpdateTry(by=client.name)
    begun.tries.append(started)
    wish.tries.append(heard)
    request = ExecuteMultiOperationRequest(
        namespace=NAMESPACE,
        operations=(
            ExecuteMultiOperationRequestOperation(start_workflow=begun.request),
            ExecuteMultiOperationRequestOperation(update_workflow=_request(client, rng, wish)),
        ),
    )
    world.asked("update with start")
    with suppress(ConnectionLostError, RPCError):
        limit = seconds(rng.choice([5, 30, 100]))
        first, second = client.service.execute_multi_operation(request, timeout=limit).responses
        if first.start_workflow is not None and second.update_workflow is not None:
            started.run_id = first.start_workflow.run_id
            started.started = first.start_workflow.started
            _hear(heard, second.update_workflow)
            started.outcome = heard.outcome = Outcome.ACKNOWLEDGED


def _send(client: Client, rng: random.Random, wish: UpdateWish) -> None:
    request = _request(client, rng, wish)
    limit = seconds(rng.choice([0, 5, 30, 100]))
    heard = UpdateTry(by=client.name)
    with trying(wish, heard):
        try:
            answer = client.service.update_workflow_execution(request, timeout=limit)
        except DeadlineExceededError as error:
            raise ConnectionLostError("no answer in time") from error
        _hear(heard, answer)


def _request(
    client: Client, rng: random.Random, wish: UpdateWish
) -> UpdateWorkflowExecutionRequest:
    return UpdateWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_execution=_execution(wish),
        wait_policy=WaitPolicy(
            lifecycle_stage=rng.choice([Stage.UNSPECIFIED, Stage.ACCEPTED, Stage.COMPLETED])
        ),
        request=Request(
            meta=Meta(update_id=wish.tag, identity=client.name),
            input=Input(name="ask", args=text(wish.tag)),
        ),
    )


def _hear(
    heard: UpdateTry, answer: UpdateWorkflowExecutionResponse | PollWorkflowExecutionUpdateResponse
) -> None:
    ref = answer.update_ref
    run = ref.workflow_execution if ref is not None else None
    heard.run_id = run.run_id if run is not None else ""
    heard.stage = answer.stage
    heard.end = answer.outcome


def _execution(wish: UpdateWish) -> WorkflowExecution:
    return WorkflowExecution(workflow_id=wish.workflow_id, run_id=wish.run_id)
