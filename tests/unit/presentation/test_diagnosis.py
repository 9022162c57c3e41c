"""Why a run is not moving, told from every state that it can be in."""

from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest

from tests.support.probing import Probe
from tests.support.requests_json import (
    accepted,
    activity,
    cancel_external,
    complete,
    fail,
    signal_external,
    start_child,
    timer,
)
from wfapp.presentation.diagnosis import Diagnosis, Evidence, diagnose
from wfapp.presentation.pending_updates import PendingUpdate, pending_updates
from wfapp.presentation.queue_facts import QueueFacts
from wfcore.history.effects import CarryOut
from wfcore.protocol.enums import UpdateWorkflowExecutionLifecycleStage as Stage
from wfcore.protocol.enums import WorkflowExecutionStatus
from wfcore.service import delivering
from wfcore.service.delivering import Courier
from wfcore.service.host import Host
from wfcore.service.ports import RunKey

SERVED = QueueFacts(name="q-probe", workers=2, slots=4)
FULL = QueueFacts(name="q-probe", workers=1, slots=2, activities=1, workflow_tasks=1)
ALL_ACTIVITIES = QueueFacts(name="q-probe", workers=1, slots=1, activities=1)
UNSERVED = QueueFacts(name="q-probe")


class Silent:
    """Carries nothing out."""

    def carry_out(self, host: Host, effects: Sequence[CarryOut]) -> None:
        pass


class OnlyFirst:
    """Dies between the child's start and its parent's record."""

    def carry_out(self, host: Host, effects: Sequence[CarryOut]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(delivering, "_acknowledge", lambda *given: ())
            patch.setattr(delivering, "_ask", lambda *given: None)
            Courier().carry_out(host, effects)


@pytest.fixture
def probe() -> Probe:
    return Probe()


def why(
    probe: Probe, workflow_id: str, queue: QueueFacts | None = SERVED, task_failure: str = ""
) -> Diagnosis:
    state = probe.store.read_state("default", workflow_id)
    assert state is not None
    key = RunKey(namespace="default", workflow_id=workflow_id, run_id=state.recorded.run_id)
    return diagnose(
        Evidence(
            state=state,
            now=probe.clock.now(),
            activities=probe.store.read_activities(key),
            inbox=probe.store.read_inbox(key),
            queues={queue.name: queue} if queue is not None else {},
            task_failure=task_failure,
        )
    )


def test_a_closed_run(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    probe.advance(5)
    probe.step(complete())
    probe.advance(60)
    assert why(probe, workflow_id) == Diagnosis(sentence="closed: Completed, 60 s ago, after 5 s")


def test_a_workflow_task_that_was_just_sent(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    assert why(probe, workflow_id).sentence == "the workflow task was just sent to a worker"


@pytest.mark.parametrize(
    ("queue", "reason", "trouble"),
    [
        (UNSERVED, ": no worker process serves it", True),
        (
            SERVED,
            ", though 2 worker processes serve it with free slots: is the broker reached?",
            True,
        ),
        (FULL, ": all 2 slots of 1 worker process are taken", False),
        (
            ALL_ACTIVITIES,
            (
                ": all 1 slot of 1 worker process are taken by activities; "
                "start a worker of its own for workflow tasks"
            ),
            False,
        ),
        (None, "", True),
    ],
)
def test_a_workflow_task_that_nobody_claims(
    probe: Probe, queue: QueueFacts | None, reason: str, trouble: bool
) -> None:
    workflow_id, _ = probe.run()
    probe.advance(40)
    found = why(probe, workflow_id, queue)
    assert found.sentence == (
        "the workflow task is due since 40 s, no worker has claimed from queue q-probe for 40 s"
        f"{reason}"
    )
    assert found.is_trouble == trouble


def test_a_running_workflow_task(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    probe.poll()
    probe.advance(3)
    assert why(probe, workflow_id).sentence == ("the workflow task runs since 3 s on probe-worker")


def test_a_failing_workflow_task_is_stuck(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    for _ in range(3):
        probe.fail_task(probe.poll(), "NON_DETERMINISTIC_ERROR")
        probe.advance(30)
    found = why(probe, workflow_id, task_failure="replay mismatch at event 5")
    assert found.sentence.startswith(
        "stuck: the workflow task is at attempt 4, the last one failed (NonDeterministicError): "
        "replay mismatch at event 5"
    )
    assert found.is_trouble


def test_an_activity_that_nobody_claims(probe: Probe) -> None:
    workflow_id, _ = probe.with_activity()
    probe.advance(180)
    assert why(probe, workflow_id, UNSERVED).sentence == (
        "activity act (a) is due since 3 min, no worker has claimed from queue q-probe for 3 min: "
        "no worker process serves it"
    )


def test_a_running_activity(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    probe.step(activity("a", probe.queue, start_to_close=3600, heartbeatTimeout="600s"))
    task = probe.poll_activity()
    probe.advance(100)
    probe.answer_activity("heartbeat", task)
    probe.advance(5)
    assert why(probe, workflow_id).sentence == (
        "activity act (a) runs since 105 s on probe-worker, last heartbeat 5 s ago"
    )


def test_an_activity_that_waits_for_its_next_attempt(probe: Probe) -> None:
    workflow_id, _ = probe.with_activity(
        retryPolicy={"initialInterval": "60s", "maximumInterval": "60s", "maximumAttempts": 5}
    )
    probe.answer_activity("failed", probe.poll_activity())
    probe.advance(20)
    found = why(probe, workflow_id)
    assert found.sentence == (
        "activity act (a) waits 40 s for attempt 2 of 5; attempt 1 failed: MyError: boom"
    )
    assert not found.is_trouble


def test_timers(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    probe.step(timer("late", 7200), timer("soon", 600))
    assert why(probe, workflow_id).sentence == (
        "waits for timer soon in 10 min, at 2030-01-01 00:10:00 UTC (and 1 later ones)"
    )


def test_a_timer_that_no_ticker_fires(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    probe.step(timer("t", 60))
    probe.clock.advance(timedelta(seconds=100))  # nobody ticks
    found = why(probe, workflow_id)
    assert found.sentence == (
        "timer t is due since 40 s, and no ticker has fired it: "
        "run beat or a worker with its ticker"
    )
    assert found.is_trouble


def test_children(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    probe.step(start_child("c", taskQueue={"name": "c"}), start_child("d"))
    probe.step(timer("t", 60))
    found = why(probe, workflow_id)
    assert found.sentence == "waits for child workflow c and 1 more"
    assert not found.is_trouble


def test_a_child_whose_parent_does_not_know_it_yet() -> None:
    silent = Probe(carrier=Silent())
    parent, _ = silent.run()
    silent.step(start_child("c", taskQueue={"name": "c"}))
    silent.advance(100)
    found = why(silent, parent)
    assert found.sentence == (
        "the start of the child of event 5 has failed 3 times: see the ticker's log"
    )
    assert found.is_trouble
    loud = Probe(carrier=OnlyFirst())
    parent, _ = loud.run()
    loud.step(start_child("c", taskQueue={"name": "c"}))
    assert why(loud, "c").sentence == f"waits until its parent {parent} has recorded its start"


def test_a_run_that_waits_for_a_signal(probe: Probe) -> None:
    workflow_id, _ = probe.idle()
    found = why(probe, workflow_id)
    assert found.sentence.startswith("waits for a signal: no activity, timer or workflow task")
    assert not found.is_trouble


def test_a_start_that_is_delayed(probe: Probe) -> None:
    workflow_id, _ = probe.run(workflowStartDelay="3600s")
    assert why(probe, workflow_id).sentence == "starts in 60 min"


def test_messages_and_cancellation_are_told_besides(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    probe.cancel(workflow_id)
    probe.poll()
    probe.signal(workflow_id)
    probe.signal(workflow_id)
    assert why(probe, workflow_id).others == (
        "cancellation is requested; the workflow's code decides what to do",
        "2 messages not read yet",
    )


def test_the_fault_comes_before_what_takes_its_time(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    probe.step(timer("t", 7200), activity("a", probe.queue))
    probe.advance(60)
    found = why(probe, workflow_id, UNSERVED)
    assert found.sentence.startswith("activity act (a) is due since 60 s")
    assert found.others[0].startswith("waits for timer t in 119 min")


def test_a_paused_run(probe: Probe) -> None:
    workflow_id, _ = probe.idle()
    state = probe.store.read_state("default", workflow_id)
    assert state is not None
    state.recorded.status = WorkflowExecutionStatus.PAUSED
    found = diagnose(Evidence(state=msgspec.structs.replace(state), now=probe.clock.now()))
    assert found.sentence == "paused: nothing happens until it is unpaused"


# ---- paused activities, updates, other workflows, runs that follow


def test_a_paused_activity_needs_a_person(probe: Probe) -> None:
    workflow_id, _ = probe.with_activity()
    probe.operate("pause_activity", workflow_id, id="a", reason="the bank is closed")
    probe.advance(180)
    found = why(probe, workflow_id)
    assert found.sentence == (
        "activity act (a) is paused since 3 min by probe-client: the bank is closed; unpause it"
    )
    assert found.is_trouble


def test_an_attempt_that_runs_while_its_activity_is_paused(probe: Probe) -> None:
    workflow_id, _ = probe.with_activity()
    probe.poll_activity()
    probe.operate("pause_activity", workflow_id, id="a")
    found = why(probe, workflow_id)
    assert found.sentence == (
        "activity act (a) runs since 0 ms on probe-worker; it is paused after this attempt"
    )
    assert not found.is_trouble


def test_updates(probe: Probe) -> None:
    workflow_id, run_id = probe.idle()
    seen: list[Diagnosis] = []
    key = RunKey(namespace="default", workflow_id=workflow_id, run_id=run_id)

    def pending() -> list[PendingUpdate]:
        state = probe.store.read_state("default", workflow_id)
        assert state is not None
        return pending_updates(probe.store, key, state)

    def look() -> None:
        seen.append(why(probe, workflow_id))
        assert pending() == [PendingUpdate(update_id="u", name="add", stage=Stage.ADMITTED)]
        probe.say(accepted)

    probe.update(workflow_id, "u", look, name="add", stage="ACCEPTED")
    assert "update u waits for a worker's word" in (seen[0].sentence, *seen[0].others)
    assert why(probe, workflow_id).sentence == "update u is accepted and has not ended"
    now = probe.clock.now()
    assert pending() == [PendingUpdate(update_id="u", name="add", stage=Stage.ACCEPTED, since=now)]
    probe.terminate(workflow_id)
    assert pending() == []


def test_messages_to_other_workflows_are_on_their_way() -> None:
    probe = Probe(carrier=Silent())
    workflow_id, _ = probe.run()
    probe.step(signal_external("order-2"), cancel_external("order-3"))
    found = why(probe, workflow_id)
    assert {found.sentence, *found.others} == {
        "the signal to workflow order-2 is on its way",
        "the cancel request to workflow order-3 is on its way",
    }


def test_a_run_by_cron(probe: Probe) -> None:
    workflow_id, _ = probe.run(cronSchedule="0 12 * * *")
    assert why(probe, workflow_id).sentence == ("starts in 12 h, by the cron schedule 0 12 * * *")


@pytest.mark.parametrize(("most", "of"), [(5, " of 5"), (0, "")])
def test_another_attempt_of_a_workflow(probe: Probe, most: int, of: str) -> None:
    policy = {"initialInterval": "90s", "maximumAttempts": most}
    workflow_id, _ = probe.run(retryPolicy=policy)
    probe.step(fail())
    assert why(probe, workflow_id).sentence == f"attempt 2{of} of the workflow starts in 90 s"
