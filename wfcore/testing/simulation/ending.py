"""The end of a simulated world: nothing goes wrong any more, one healthy worker and one ticker work
on, and time passes as far as anything is to come. Then nothing may be left.
"""

import random
from collections.abc import Callable
from datetime import datetime, timedelta

from wfcore.history.effects import DispatchActivity, DispatchWorkflowTask
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.rpc.workflows import (
    SignalWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
)
from wfcore.service.ports import QueryTask
from wfcore.testing.memory_ports import read_snapshot
from wfcore.testing.memory_rows import Run
from wfcore.testing.simulation import operation_calls, worker_calls
from wfcore.testing.simulation.families import check_calm
from wfcore.testing.simulation.ledger import SignalWish, Try, ask, trying
from wfcore.testing.simulation.processes import Ticker, Worker
from wfcore.testing.simulation.world import NAMESPACE, World, text

_SECOND = timedelta(seconds=1)
#: A sender's grace for what it has stored, and a little more.
_GRACE = timedelta(seconds=6)
#: Rounds of work after which a world that still goes on goes round in circles.
_ROUNDS = 2_000
_PATIENCE = 200
#: How often runs are told to end: others may follow them.
_FOLLOWING = 10


def end(world: World) -> None:
    """Bring a world to its end, and look whether it got there."""
    world.faults.is_calm = True
    if not _calls_end(world):
        return
    world.clock.shift = timedelta()
    rng = random.Random(world.profile.seed + 2)
    ending = _Ending(world, rng)
    ending.settle_claims()
    world.is_ending = True
    for run in world.open_runs():
        ending.let_go_on(run)
        ending.end_cron(run)
    for _ in range(_FOLLOWING):
        if not ending.run_dry():
            return
        check_calm(world.runs(), world.watch.report)
        if not world.open_runs():
            return
        for run in world.open_runs():
            _check_idle(world, run)
            ending.tell_to_end(run)
    for run in world.open_runs():
        world.watch.report.of(run.key)("a run that can end ends", world.watch.latest(run))


def _calls_end(world: World) -> bool:
    """Let all calls that are in progress come to their ends."""
    for _ in range(_PATIENCE):
        world.turns.turn += 10
        world.turns.resume_all()
        if not world.turns.alive:
            return True
        world.clock.advance(_SECOND)
    names = [fiber.name for fiber in world.turns.alive]
    world.watch.report.fail("every call ends", f"still there: {names}")
    return False


class _Ending:
    """One worker and one ticker that do all that is left."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._worker: Worker = world.add_worker()
        self._ticker: Ticker = world.add_ticker()

    def settle_claims(self) -> None:
        """Workers answer late, hang for ever, or are found to be dead."""
        world, rng = self._world, self._rng
        for worker in world.workers[:-1]:
            if rng.random() < 0.5:
                while worker.tasks:
                    worker_calls.answer(world, worker, rng)
                while worker.activities:
                    worker_calls.end_activity(world, worker, rng)
            elif worker.tasks or worker.activities:
                world.lost_workers.append(worker)
        world.workers[:-1] = []
        if world.profile.leases:
            for worker in world.lost_workers:
                while self._ticker.service.lose_worker(worker.boot_id, "it hangs", 3):
                    world.asked("lose a worker")

    def let_go_on(self, run: Run) -> None:
        """What operators hold goes on."""
        if any(row.pause is not None for row in run.activities.values()):
            self._world.asked("unpause an activity")
            operation_calls.unpause_all(self._ticker.service, run)

    def end_cron(self, run: Run) -> None:
        """One run would follow another for ever."""
        if read_snapshot(run).recorded.cron_schedule:
            self._terminate(run)

    def run_dry(self) -> bool:
        """Work and let time pass until nothing is to come; False when that doesn't happen."""
        for _ in range(_ROUNDS):
            if self._work() or self._sweep():
                continue
            coming = self._next()
            if coming is None:
                self._world.clock.advance(_GRACE)
                if not self._sweep() and self._next() is None and not self._work():
                    return True
            else:
                self._world.clock.move_to(coming)
            if self._world.watch.report.violations:
                return False
        self._world.watch.report.fail("work comes to an end", self._unfinished())
        return False

    def tell_to_end(self, run: Run) -> None:
        """By a signal; a run that takes none any more is terminated."""
        world = self._world
        wish = SignalWish(
            tag=world.tag("signal"), workflow_id=run.key.workflow_id, run_id=run.key.run_id
        )
        world.ledger.signals[wish.tag] = wish
        request = SignalWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_execution=WorkflowExecution(
                workflow_id=run.key.workflow_id, run_id=run.key.run_id
            ),
            signal_name="note",
            input=text("end"),
            identity=wish.tag,
        )
        world.asked("signal")
        with trying(wish, Try(by="end")):
            self._ticker.service.signal_workflow_execution(request)
        if not wish.is_granted:
            self._terminate(run)

    def _terminate(self, run: Run) -> None:
        request = TerminateWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_execution=WorkflowExecution(
                workflow_id=run.key.workflow_id, run_id=run.key.run_id
            ),
        )
        self._world.asked("terminate")
        # the signal may have ended it, by taking it over its limit
        ask(lambda: self._ticker.service.terminate_workflow_execution(request))

    def _work(self) -> bool:
        """Whether anything could be done."""
        world, worker, rng = self._world, self._worker, self._rng
        done = self._messages() | self._answers()
        if world.profile.polls and world.has_waiting_task():
            done |= self._changes(lambda: worker_calls.poll(world, worker, rng))
        if world.profile.polls and world.has_waiting_activity():
            done |= self._changes(lambda: worker_calls.poll_for_activity(world, worker, rng))
        return done | self._answers()

    def _messages(self) -> bool:
        world, rng = self._world, self._rng
        done = False
        while (work := world.dispatcher.take(rng, *_WORK)) is not None:
            done = True
            worker_calls.take_up(world, self._worker, rng, work)
            self._answers()
        return done

    def _answers(self) -> bool:
        """Answer all that is held."""
        world, worker, rng = self._world, self._worker, self._rng
        done = bool(worker.tasks or worker.activities)
        while worker.tasks:
            worker_calls.answer(world, worker, rng)
        while worker.activities:
            worker_calls.end_activity(world, worker, rng)
        return done

    def _changes(self, call: Callable[[], None]) -> bool:
        """Whether a call changed what is stored."""
        before = self._world.watch.commits
        call()
        return self._world.watch.commits > before

    def _sweep(self) -> bool:
        """Whether a sweep did anything."""
        if not self._world.has_work_for_ticker():
            return False
        self._world.asked("sweep")
        report = self._ticker.service.sweep()
        return report.runs + report.activities + report.inboxes > 0

    def _next(self) -> datetime | None:
        """When something is to come, as the ticker and the broker know it."""
        times = (self._world.store.next_due(), self._world.dispatcher.next_arrival())
        return min((at for at in times if at is not None), default=None)

    def _unfinished(self) -> str:
        return "; ".join(self._world.watch.latest(run) for run in self._world.open_runs())


def _check_idle(world: World, run: Run) -> None:
    """A run that is left waits for a signal, and for nothing else."""
    state = read_snapshot(run)
    recorded = state.recorded
    reasons = {
        "a workflow task": state.volatile.task,
        "timers": recorded.timers,
        "activities": run.activities,
        "arrivals": run.inbox,
        "something to deliver": state.volatile.deliveries,
        "a first task": not recorded.first_task_scheduled,
        "an end in time": recorded.run_timeout or recorded.expiration_time,
    }
    left = [name for name, reason in reasons.items() if reason]
    if left:
        world.watch.report.of(run.key)("nothing is forgotten", f"it has {', '.join(left)}")


_WORK = (DispatchWorkflowTask, DispatchActivity, QueryTask)
