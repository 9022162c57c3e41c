"""Runs in every state over any `Store`, made by the state machine itself; for the contracts."""

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from wfcore.history import transition
from wfcore.history.change import Change
from wfcore.history.machines import activity
from wfcore.history.requests import (
    Answer,
    ClaimTask,
    CompleteTask,
    Request,
    SignalRun,
    StartRun,
    TaskToken,
    TerminateRun,
)
from wfcore.history.state import InboxItem, PendingActivity
from wfcore.protocol import commands
from wfcore.protocol.commands import Command
from wfcore.protocol.common import ActivityType, TaskQueue, WorkflowType
from wfcore.protocol.events import WorkflowExecutionSignaled
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Payload, Payloads
from wfcore.protocol.rpc.workflows import StartWorkflowExecutionRequest
from wfcore.protocol.updates import ProtocolMessage
from wfcore.service.ports import RunKey, Store, Transaction
from wfcore.service.transacting import load_change
from wfcore.testing.clocks import SequentialIds

NAMESPACE = "default"
QUEUE = "contract-queue"


def payloads(text: str) -> Payloads:
    """One value."""
    payload = Payload(metadata={"encoding": b"json/plain"}, data=msgspec.json.encode(text))
    return Payloads(payloads=(payload,))


def signal(name: str, at: datetime) -> InboxItem:
    """An arrival with user data."""
    return InboxItem(
        event_time=at,
        attributes=WorkflowExecutionSignaled(
            signal_name=name, input=payloads(f"input of {name}"), identity="contract"
        ),
    )


class Builder:
    """Makes runs with ids of its own, so that tests that share a database don't meet."""

    def __init__(self, store: Store, ids: SequentialIds) -> None:
        self.store = store
        self.ids = ids

    def workflow_id(self) -> str:
        """A workflow id that nobody has."""
        return f"contract-{self.ids.request_id()}"

    def new_run(self, tx: Transaction, workflow_id: str, **fields: object) -> Change:
        """The change that starts a run, not saved."""
        request = StartWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_id=workflow_id,
            workflow_type=WorkflowType(name="contract"),
            task_queue=TaskQueue(name=QUEUE),
            input=payloads("input"),
            identity="contract",
            request_id=self.ids.request_id(),
        )
        request = msgspec.structs.replace(request, **fields)
        order = StartRun(run_id=self.ids.run_id(tx.now), request=request)
        change = transition.start(tx.now, order)
        change.state.volatile.create_request_id = request.request_id
        return change

    def start(self, workflow_id: str = "", **fields: object) -> RunKey:
        """A run whose first workflow task waits."""
        workflow_id = workflow_id or self.workflow_id()
        with self.store.transaction(NAMESPACE, workflow_id) as tx:
            tx.current()
            change = self.new_run(tx, workflow_id, **fields)
            tx.save(change)
        run_id = change.state.recorded.run_id
        return RunKey(namespace=NAMESPACE, workflow_id=workflow_id, run_id=run_id)

    def change(
        self, key: RunKey, request: Request, adjust: Callable[[Change], None] | None = None
    ) -> Answer:
        """Apply one request to a run; `adjust` may alter the change before it is saved."""
        with self.store.transaction(key.namespace, key.workflow_id) as tx:
            state = tx.load(key.run_id)
            if state is None:
                raise LookupError(f"there is no run {key}")
            change = load_change(tx, state, request)
            answer = transition.apply(change, request)
            if adjust is not None:
                adjust(change)
            tx.save(change)
        return answer

    def claim(self, key: RunKey, owner: str = "") -> TaskToken:
        """Have the workflow task started; the token for its answer."""
        order = ClaimTask(request_id=self.ids.request_id(), identity="contract", owner=owner)
        claimed = self.change(key, order).claim
        if claimed is None:
            raise LookupError(f"no workflow task of {key} waits")
        return TaskToken(
            scheduled_event_id=claimed.scheduled_event_id,
            started_event_id=claimed.started_event_id,
            attempt=claimed.attempt,
            started_at=claimed.started_at,
        )

    def complete(self, key: RunKey, *asked: Message) -> Answer:
        """Claim and answer the workflow task with these commands."""
        return self.answer(key, self.claim(key), *asked)

    def answer(
        self,
        key: RunKey,
        token: TaskToken,
        *asked: Message,
        messages: tuple[ProtocolMessage, ...] = (),
    ) -> Answer:
        """Answer a claimed workflow task with these commands and messages."""
        order = CompleteTask(
            token=token,
            commands=tuple(Command.of(attributes) for attributes in asked),
            messages=messages,
            identity="contract",
            next_run_id=self.ids.run_id(self.store.now()),
        )
        return self.change(key, order)

    def signal(self, key: RunKey, name: str = "s") -> Answer:
        """Append a signal."""
        return self.change(key, SignalRun(signal_name=name, request_id=self.ids.request_id()))

    def terminate(self, key: RunKey) -> Answer:
        """Close a run."""
        return self.change(key, TerminateRun(reason="contract", identity="contract"))

    def with_activities(self, number: int = 1, *, queue: str = QUEUE) -> RunKey:
        """A run that waits for activities and has no workflow task."""
        key = self.start()
        self.complete(key, *(self.activity(f"a{i}", queue) for i in range(number)))
        return key

    @staticmethod
    def activity(activity_id: str, queue: str = QUEUE) -> Message:
        """A command that schedules an activity."""
        return commands.ScheduleActivityTask(
            activity_id=activity_id,
            activity_type=ActivityType(name="contract"),
            task_queue=TaskQueue(name=queue),
            input=payloads(f"input of {activity_id}"),
            start_to_close_timeout=timedelta(seconds=30),
            heartbeat_timeout=timedelta(seconds=10),
        )

    def claimed(self, row: PendingActivity, owner: str = "") -> PendingActivity:
        """The row as it would be once a worker took it; not stored."""
        now = max(self.store.now(), row.attempt_scheduled_at)
        decision = activity.claim(
            row, now, request_id=self.ids.request_id(), identity="contract", owner=owner
        )
        if decision is None or decision.row is None:
            raise LookupError(f"activity {row.activity_id} can't be claimed")
        return decision.row

    def completion(self, row: PendingActivity) -> InboxItem:
        """The fact that an activity completed."""
        item = activity.complete(row, self.store.now(), payloads("result"), "contract").item
        if item is None:
            raise LookupError(f"activity {row.activity_id} didn't end")
        return item
