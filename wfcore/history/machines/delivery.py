"""What a run has to do to other workflow ids: start a child, signal, cancel, tell its parent.

Each stands in the state with a time at which it is begun (again), until it is acknowledged. What is
new is begun by whoever commits it, as far as that may take; all else by the ticker.
"""

import msgspec

from wfcore.history.effects import CarryOut
from wfcore.history.state import Delivery, DeliveryKind
from wfcore.history.step import Step
from wfcore.protocol.enums import ParentClosePolicy

#: The event to which a child's question to its parent belongs.
FIRST_EVENT = 1
#: After so many attempts operators are told.
_STUCK = 5


def request_id(run_id: str, event_id: int) -> str:
    """What names a delivery to the run that it reaches, however often it comes."""
    return f"{run_id}:{event_id}"


def add(step: Step, kind: DeliveryKind, event_id: int) -> None:
    """There is something to do, as soon as this step is committed."""
    step.volatile.deliveries[event_id] = Delivery(kind=kind, due_at=step.now)


def ask_later(step: Step) -> None:
    """A child that waits asks by itself when its parent's word fails to come."""
    step.volatile.deliveries[FIRST_EVENT] = Delivery(
        kind=DeliveryKind.ASK_PARENT, due_at=step.now + step.limits.resend_after(1)
    )


def close(step: Step) -> None:
    """The run has ended: what it wanted of others is dropped; its children and its parent learn."""
    recorded, deliveries = step.recorded, step.volatile.deliveries
    deliveries.clear()
    for event_id, child in recorded.children.items():
        if child.started_event_id and child.parent_close_policy is not ParentClosePolicy.ABANDON:
            add(step, DeliveryKind.CLOSE_CHILD, event_id)
    if recorded.parent is not None and not recorded.new_execution_run_id:
        add(step, DeliveryKind.REPORT, recorded.next_event_id - 1)


def hand_over(step: Step, *, keeps_children: bool) -> None:
    """A reset has ended the run: its parent hears of the run that takes its place, which may have
    its children too.
    """
    deliveries = step.volatile.deliveries
    for event_id, each in list(deliveries.items()):
        if each.kind is DeliveryKind.REPORT or keeps_children:
            del deliveries[event_id]


def begin(step: Step) -> None:
    """Have the host carry out what this step made, or what is due if it looks after that."""
    deliveries = step.volatile.deliveries
    before = step.origin.volatile.deliveries
    wanted = [
        (delivery.due_at, event_id)
        for event_id, delivery in deliveries.items()
        if delivery.due_at <= step.now and (step.takes_up or delivery is not before.get(event_id))
    ]
    begun: list[tuple[int, int]] = []
    for _, event_id in sorted(wanted)[: step.limits.deliveries_at_once]:
        delivery = deliveries[event_id]
        attempts = delivery.attempts + 1
        if attempts == _STUCK:
            step.note(
                "undelivered",
                f"{delivery.kind.name} of event {event_id} has failed {delivery.attempts} times",
                attempt=delivery.attempts,
            )
        deliveries[event_id] = msgspec.structs.replace(
            delivery, attempts=attempts, due_at=step.now + step.limits.resend_after(attempts)
        )
        begun.append((event_id, attempts))
    if begun:
        step.effect(
            CarryOut(
                namespace=step.recorded.namespace,
                workflow_id=step.recorded.workflow_id,
                run_id=step.recorded.run_id,
                deliveries=tuple(begun),
            )
        )
