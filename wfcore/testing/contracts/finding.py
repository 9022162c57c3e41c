"""Work is found when it is due, and by those whose it is."""

from datetime import timedelta
from typing import Any

from wfcore.history.change import Change
from wfcore.history.requests import Acknowledge, Delivered, SignalRun
from wfcore.history.state import DeliveryKind
from wfcore.protocol import commands
from wfcore.protocol.common import TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.events import ChildWorkflowExecutionStarted
from wfcore.service.ports import (
    RunKey,
    Store,
)
from wfcore.testing.contracts.base import (
    MANY,
    MINUTE,
    StoreContract,
    journal,
    only_activity,
    state_of,
)
from wfcore.testing.port_builders import NAMESPACE, Builder

CHILD: dict[str, Any] = {
    "workflow_id": "child",
    "workflow_type": WorkflowType(name="contract"),
}
#: The child's start, as its parent learns of it.
DONE = Acknowledge(
    done=(
        Delivered(
            kind=DeliveryKind.START_CHILD,
            event_id=5,
            fact=ChildWorkflowExecutionStarted(
                initiated_event_id=5,
                workflow_execution=WorkflowExecution(workflow_id="child", run_id="child-run"),
            ),
        ),
    )
)


class FindingContract(StoreContract):
    """Work is found when it is due, and by those whose it is."""

    @staticmethod
    def _deadline(build: Builder, key: RunKey, hours: float | None) -> None:
        """Give a run a deadline that far from now."""

        def adjust(change: Change) -> None:
            change.next_deadline = None
            if hours is not None:
                change.next_deadline = change.now + timedelta(hours=hours)

        build.change(key, SignalRun(signal_name="s", request_id=build.ids.request_id()), adjust)

    def test_due_runs_are_found_nearest_first(self, store: Store, build: Builder) -> None:
        keys = [build.start() for _ in range(4)]
        now = store.now()
        for key, hours in zip(keys, (30, 10, None, 20), strict=True):
            self._deadline(build, key, hours)

        def found(hours: float) -> list[RunKey]:
            due = store.due_runs(now + timedelta(hours=hours), MANY)
            return [key for key in due if key in keys]

        assert found(9) == []
        assert found(25) == [keys[1], keys[3]]
        assert found(31) == [keys[1], keys[3], keys[0]]
        assert len(store.due_runs(now + timedelta(hours=31), 2)) <= 2

    def test_a_nearer_deadline_counts_at_once(self, store: Store, build: Builder) -> None:
        key = build.start()
        now = store.now()
        self._deadline(build, key, 20)
        self._deadline(build, key, 5)
        assert key in store.due_runs(now + timedelta(hours=6), MANY)
        self._deadline(build, key, 30)
        assert key not in store.due_runs(now + timedelta(hours=29), MANY)
        assert key in store.due_runs(now + timedelta(hours=31), MANY)

    def test_a_deadline_may_be_kept_too_early_but_never_too_late(
        self, store: Store, build: Builder
    ) -> None:
        key = build.start()
        now = store.now()
        second = 1 / 3600
        self._deadline(build, key, 1)
        self._deadline(build, key, 1 + 20 * second)
        assert key in store.due_runs(now + timedelta(hours=1, seconds=30), MANY)

    def test_the_nearest_time_of_all_is_known(self, store: Store, build: Builder) -> None:
        key = build.start()
        now = store.now()
        self._deadline(build, key, 1)
        nearest = store.next_due()
        assert nearest is not None
        assert nearest <= now + timedelta(hours=1, minutes=1)

    def test_what_a_run_has_to_do_to_others_is_found_when_it_is_due(
        self, store: Store, build: Builder
    ) -> None:
        key = build.start()
        build.complete(key, commands.StartChildWorkflowExecution(**CHILD))
        state = state_of(store, key)
        assert list(state.volatile.deliveries) == list(state.recorded.children) == [5]
        due = state.volatile.deliveries[5].due_at
        assert key in store.due_runs(due, MANY)
        build.change(key, DONE)
        assert state_of(store, key).volatile.deliveries == {}
        build.complete(key)
        assert key not in store.due_runs(due + timedelta(hours=1), MANY)

    def test_a_closed_run_is_found_until_others_know(self, store: Store, build: Builder) -> None:
        key = build.start()
        build.complete(key, commands.StartChildWorkflowExecution(**CHILD))
        build.change(key, DONE)
        build.terminate(key)
        due = state_of(store, key).volatile.deliveries[5].due_at
        assert due > store.now()
        assert key in store.due_runs(due, MANY)
        gone = Delivered(kind=DeliveryKind.CLOSE_CHILD, event_id=5)
        build.change(key, Acknowledge(done=(gone,)))
        assert key not in store.due_runs(due + timedelta(hours=1), MANY)

    def test_a_run_can_be_postponed(self, store: Store, build: Builder) -> None:
        key = build.start()
        now = store.now()
        self._deadline(build, key, 0)
        assert key in store.due_runs(now + MINUTE, MANY)
        store.postpone_run(key, now + timedelta(hours=5), journal(key, store, "sweep_failed"))
        assert key not in store.due_runs(now + timedelta(hours=4), MANY)
        assert key in store.due_runs(now + timedelta(hours=6), MANY)
        assert [entry.kind for entry in store.read_journal(key)] == ["sweep_failed"]

    def test_workflow_tasks_wait_in_their_queue_oldest_first(
        self, store: Store, build: Builder
    ) -> None:
        name = build.workflow_id()
        queue = TaskQueue(name=name)
        keys = [build.start(task_queue=queue) for _ in range(3)]
        build.start()
        assert store.unclaimed_workflow_tasks(NAMESPACE, name, MANY) == keys
        assert store.unclaimed_workflow_tasks(NAMESPACE, name, 2) == keys[:2]
        build.claim(keys[0])
        build.terminate(keys[1])
        assert store.unclaimed_workflow_tasks(NAMESPACE, name, MANY) == [keys[2]]
        assert store.unclaimed_workflow_tasks("other", name, MANY) == []

    def test_a_process_is_asked_for_its_claims(self, store: Store, build: Builder) -> None:
        owner = f"boot-{build.workflow_id()}"
        key, other = build.start(), build.start()
        build.claim(key, owner)
        build.claim(other, owner + "-other")
        with_activity = build.with_activities()
        row = only_activity(store, with_activity)
        started = build.claimed(row, owner)
        store.replace_activity(row, started)
        assert store.claims_of(owner, MANY) == ([key], [started])
        build.terminate(key)
        assert store.claims_of(owner, MANY) == ([], [started])
        assert store.claims_of("", MANY) == ([], [])
