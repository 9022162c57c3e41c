"""What clients ask for: to start, steer and stop workflows."""

import random
from collections.abc import Iterator

from wfcore.protocol.common import RetryPolicy, TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import WorkflowIdConflictPolicy as Conflict
from wfcore.protocol.enums import WorkflowIdReusePolicy as Reuse
from wfcore.protocol.events import WorkflowExecutionCancelRequested
from wfcore.protocol.payloads import Memo, Payload
from wfcore.protocol.rpc.info import OnConflictOptions
from wfcore.protocol.rpc.workflows import (
    RequestCancelWorkflowExecutionRequest,
    SignalWithStartWorkflowExecutionRequest,
    SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
)
from wfcore.service.ports import RunKey
from wfcore.testing.memory_ports import read_snapshot
from wfcore.testing.memory_rows import Run
from wfcore.testing.simulation.faults import ConnectionLostError
from wfcore.testing.simulation.ledger import (
    Outcome,
    SignalWish,
    StartWish,
    StopWish,
    Try,
    ask,
    trying,
)
from wfcore.testing.simulation.processes import Client
from wfcore.testing.simulation.scripts import seconds
from wfcore.testing.simulation.world import ERRAND, NAMESPACE, QUEUE, SCRIPT, World, text


class RollBackError(Exception):
    """The calling code changed its mind."""


# ---- starting


def start(world: World, client: Client, rng: random.Random) -> None:
    """Start a run, under any policies."""
    wish = start_wish(world, client, rng)
    world.asked("start")
    _start(client, wish)


def start_again(world: World, client: Client, rng: random.Random) -> None:
    """A start whose answer was not heard, or which came twice."""
    wish = rng.choice(list(world.ledger.starts.values()))
    world.asked("start again")
    _start(client, wish)


def start_inside(world: World, client: Client, rng: random.Random) -> None:
    """In a transaction of the calling code, which may signal the run and may roll all back."""
    wish = start_wish(world, client, rng)
    world.asked("start inside a transaction")

    def body() -> Iterator[Try]:
        yield _start(client, wish)
        if rng.random() < 0.5:
            yield _signal_inside(world, client, rng, wish.request.workflow_id)

    _in_transaction(world, rng, body())


def _start(client: Client, wish: StartWish) -> Try:
    with trying(wish, Try(by=client.name)) as attempt:
        answer = client.service.start_workflow_execution(wish.request)
        attempt.run_id, attempt.started = answer.run_id, answer.started
    return attempt


def start_wish(world: World, client: Client, rng: random.Random) -> StartWish:
    """A run to start, under any policies."""
    tag = world.tag("start")
    wish = StartWish(tag=tag, request=_start_request(world, client, rng, tag))
    world.ledger.starts[tag] = wish
    return wish


def _start_request(
    world: World, client: Client, rng: random.Random, tag: str
) -> StartWorkflowExecutionRequest:
    is_coded = rng.random() < world.profile.real_share
    reuse, conflict = _policies(rng)
    attach = rng.random() < 0.5
    memo = Memo(fields={"a": Payload(metadata={"encoding": b"json/plain"}, data=b"1")})
    cron = rng.choice([""] * 9 + ["* * * * *", "@every 7s"])
    return StartWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_id=_workflow_id(world, rng),
        workflow_type=WorkflowType(name=ERRAND if is_coded else SCRIPT),
        task_queue=TaskQueue(name=QUEUE),
        input=text(client.name) if not is_coded else None,
        workflow_execution_timeout=rng.choice([None] * 6 + [seconds(60), seconds(600)]),
        workflow_run_timeout=rng.choice([None] * 5 + [seconds(20), seconds(200)]),
        workflow_task_timeout=rng.choice([None, None, None, seconds(1)]),
        identity=client.name,
        request_id=tag,
        workflow_id_reuse_policy=reuse,
        workflow_id_conflict_policy=conflict,
        retry_policy=rng.choice(
            [None, None, RetryPolicy(maximum_attempts=3), RetryPolicy(maximum_attempts=1)]
        ),
        memo=memo if rng.random() < 0.3 else None,
        workflow_start_delay=(
            rng.choice([None] * 5 + [seconds(3), seconds(90)]) if not cron else None
        ),
        cron_schedule=cron,
        on_conflict_options=OnConflictOptions(attach_request_id=True) if attach else None,
    )


def _policies(rng: random.Random) -> tuple[Reuse, Conflict]:
    """Mostly some that let an open run live; sometimes any two, also if they exclude each other."""
    if rng.random() < 0.75:
        return Reuse.UNSPECIFIED, rng.choice([Conflict.UNSPECIFIED, Conflict.USE_EXISTING])
    return rng.choice(list(Reuse)), rng.choice(list(Conflict))


# ---- signals


def signal(world: World, client: Client, rng: random.Random) -> None:
    """Signal a run, mostly one that is open."""
    wish = _signal_wish(world, rng)
    world.asked("signal")
    _signal(client, wish)


def signal_again(world: World, client: Client, rng: random.Random) -> None:
    """A signal with a request id once more, by whoever; the first may still be on its way."""
    repeatable = [
        wish
        for wish in world.ledger.signals.values()
        if wish.request_id and not wish.start_request_id
    ]
    wish = rng.choice(repeatable[-6:]) if repeatable else _signal_wish(world, rng)
    world.asked("signal again" if repeatable else "signal")
    _signal(client, wish)


def _signal(client: Client, wish: SignalWish) -> None:
    with trying(wish, Try(by=client.name)):
        client.service.signal_workflow_execution(_signal_request(wish))


def signal_inside(world: World, client: Client, rng: random.Random) -> None:
    """In a transaction of the calling code: one or more, delivered after the commit if at all."""
    world.asked("signal inside a transaction")

    def body() -> Iterator[Try]:
        for _ in range(rng.choice([1, 1, 2])):
            yield _signal_inside(world, client, rng)
        if rng.random() < 0.2:
            _cancel(client, *_target(world, rng))
        if rng.random() < 0.1:
            yield _terminate(world, client, *_target(world, rng))

    _in_transaction(world, rng, body())


def _signal_inside(world: World, client: Client, rng: random.Random, workflow_id: str = "") -> Try:
    wish = _signal_wish(world, rng, workflow_id)
    with trying(wish, Try(by=client.name, may_be_dropped=True)) as attempt:
        client.service.signal_workflow_execution(_signal_request(wish))
    return attempt


def _in_transaction(world: World, rng: random.Random, body: Iterator[Try]) -> None:
    """Run the body in a caller's transaction; what it was told counts when that commits."""
    tries: list[Try] = []
    otherwise: Outcome | None = Outcome.UNKNOWN
    try:
        with world.store.callers_transaction():
            for attempt in body:
                tries.append(attempt)
                if attempt.outcome is Outcome.UNKNOWN:
                    raise ConnectionLostError("the transaction is broken")
            if rng.random() < 0.25:
                raise RollBackError
        otherwise = None
    except RollBackError:
        otherwise = Outcome.REFUSED
    except ConnectionLostError:
        pass
    finally:
        for attempt in tries:
            attempt.outcome = otherwise or attempt.outcome


def signal_with_start(world: World, client: Client, rng: random.Random) -> None:
    """Signal the open run of an id, or start one that begins with the signal; perhaps twice."""
    tag = world.tag("start")
    begun = StartWish(tag=tag, request=_start_request(world, client, rng, tag), has_signal=True)
    wish = SignalWish(
        tag=world.tag("signal"),
        workflow_id=begun.request.workflow_id,
        request_id=tag,
        start_request_id=tag,
    )
    shared = {name: getattr(begun.request, name) for name in _SHARED}
    own = {"signal_name": "note", "signal_input": text(wish.tag), "identity": wish.tag}
    request = SignalWithStartWorkflowExecutionRequest(**shared | own)
    world.ledger.starts[tag] = begun
    world.ledger.signals[wish.tag] = wish
    for _ in range(rng.choice([1, 1, 1, 2])):
        world.asked("signal with start")
        with trying(wish, Try(by=client.name)) as attempt:
            begun.tries.append(attempt)
            answer = client.service.signal_with_start_workflow_execution(request)
            attempt.run_id, attempt.started = answer.run_id, answer.started


def _signal_wish(world: World, rng: random.Random, workflow_id: str = "") -> SignalWish:
    target, run_id = (workflow_id, "") if workflow_id else _target(world, rng)
    tag = world.tag("signal")
    wish = SignalWish(
        tag=tag,
        workflow_id=target,
        run_id=run_id,
        request_id=f"request of {tag}" if rng.random() < 0.7 else "",
    )
    world.ledger.signals[tag] = wish
    return wish


def _signal_request(wish: SignalWish) -> SignalWorkflowExecutionRequest:
    return SignalWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_execution=WorkflowExecution(workflow_id=wish.workflow_id, run_id=wish.run_id),
        signal_name="note",
        input=text(wish.tag),
        identity=wish.tag,
        request_id=wish.request_id,
    )


# ---- ends


def cancel(world: World, client: Client, rng: random.Random) -> None:
    """Ask a run to cancel itself."""
    world.asked("cancel")
    target = _target(world, rng)
    key = RunKey(namespace=NAMESPACE, workflow_id=target[0], run_id=target[1])
    if _cancel(client, *target) and target[1] and not _is_stopping(world, key):
        world.watch.report.of(key)("an acknowledged cancel request is recorded", "it is not")


def _cancel(client: Client, workflow_id: str, run_id: str) -> bool:
    request = RequestCancelWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        identity=client.name,
    )
    return ask(lambda: client.service.request_cancel_workflow_execution(request)) is not None


def _is_stopping(world: World, key: RunKey) -> bool:
    run = world.run(key)
    if run is None or run.closed or read_snapshot(run).recorded.cancel_requested:
        return True
    return any(
        isinstance(row.item.attributes, WorkflowExecutionCancelRequested)
        for row in run.inbox.values()
    )


def terminate(world: World, client: Client, rng: random.Random) -> None:
    """End a run at once; mostly one that has ended already, so that others can live."""
    runs = world.runs() if rng.random() < 0.6 else []
    workflow_id, run_id = _target(world, rng)
    if runs and runs[0].closed:
        workflow_id, run_id = runs[0].key.workflow_id, runs[0].key.run_id
    world.asked("terminate")
    _terminate(world, client, workflow_id, run_id)


def _terminate(world: World, client: Client, workflow_id: str, run_id: str) -> Try:
    wish = StopWish(tag=world.tag("stop"), workflow_id=workflow_id, run_id=run_id)
    world.ledger.stops[wish.tag] = wish
    request = TerminateWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        reason=wish.tag,
        identity=client.name,
    )
    with trying(wish, Try(by=client.name)) as attempt:
        client.service.terminate_workflow_execution(request)
    return attempt


# ---- whom


def _workflow_id(world: World, rng: random.Random) -> str:
    return f"wf-{rng.randrange(world.profile.workflow_ids)}"


def _target(world: World, rng: random.Random) -> tuple[str, str]:
    """A workflow id, and a run id or none; mostly of an open run."""
    run = some_run(world, rng)
    if run is None or rng.random() < 0.03:
        return "nobody", ""
    return run.key.workflow_id, run.key.run_id if rng.random() < 0.5 else ""


def some_run(world: World, rng: random.Random) -> Run | None:
    """Mostly one that is open."""
    runs = world.open_runs() if rng.random() < 0.9 else world.runs()
    return rng.choice(runs) if runs else None


_SHARED = sorted(
    set(SignalWithStartWorkflowExecutionRequest.__struct_fields__)
    & set(StartWorkflowExecutionRequest.__struct_fields__)
)
