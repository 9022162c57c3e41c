"""What a transition costs: ``python -m benchmarks.state_machine``.

Microseconds of processor time for one, as the median of several rounds. A store's part (decoding
the snapshot, encoding it again) is shown beside, to see which of them matters.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from wfcore.history.change import Change
from wfcore.history.machines import activity
from wfcore.history.requests import Arrive, ClaimTask, CompleteTask, SignalRun, StartRun, TaskToken
from wfcore.history.state import MutableState, TaskClaim
from wfcore.history.transition import apply, start
from wfcore.protocol import commands
from wfcore.protocol.commands import Command
from wfcore.protocol.common import ActivityType, TaskQueue, WorkflowType
from wfcore.protocol.payloads import Payload, Payloads
from wfcore.protocol.rpc.workflows import StartWorkflowExecutionRequest

T = TypeVar("T")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
VALUE = Payloads(
    payloads=(Payload(metadata={"encoding": b"json/plain"}, data=b'{"order":12345}' * 4),)
)


def there(value: T | None) -> T:
    """A value that the state machine must have given."""
    if value is None:
        raise RuntimeError("the state machine gave nothing")
    return value


def begin() -> Change:
    return start(
        NOW,
        StartRun(
            run_id="01a22cd6-7cf4-753e-b4de-d600ef97f5d9",
            request=StartWorkflowExecutionRequest(
                namespace="default",
                workflow_id="order-12345",
                workflow_type=WorkflowType(name="Order"),
                task_queue=TaskQueue(name="orders"),
                input=VALUE,
                request_id="04800eeb-c527-4981-b6ed-ffea286c5c81",
            ),
        ),
    )


def token(claim: TaskClaim) -> TaskToken:
    return TaskToken(
        scheduled_event_id=claim.scheduled_event_id,
        started_event_id=claim.started_event_id,
        attempt=claim.attempt,
        started_at=claim.started_at,
    )


def wish(number: int) -> Command:
    return Command.of(
        commands.ScheduleActivityTask(
            activity_id=str(number),
            activity_type=ActivityType(name="charge_card"),
            task_queue=TaskQueue(name="orders"),
            input=VALUE,
            start_to_close_timeout=timedelta(seconds=10),
        )
    )


def claim_and_complete(state: MutableState, count: int) -> Change:
    """Claim the outstanding task and answer it with `count` activities."""
    answer = apply(Change(state=state, now=NOW), ClaimTask(request_id="poll", identity="worker"))
    change = Change(state=state, now=NOW)
    wishes = tuple(wish(number) for number in range(count))
    apply(
        change, CompleteTask(token=token(there(answer.claim)), commands=wishes, identity="worker")
    )
    return change


def measure(name: str, prepare: Callable[[], object], act: Callable[[object], object]) -> None:
    times = []
    for _ in range(30):
        values = [prepare() for _ in range(40)]
        began = time.process_time()
        for value in values:
            act(value)
        times.append((time.process_time() - began) / len(values))
    print(f"{name:<52} {statistics.median(times) * 1e6:8.1f} µs")


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    fresh = msgspec.json.encode(begin().state)

    def state() -> MutableState:
        return msgspec.json.decode(fresh, type=MutableState)

    def idle() -> tuple[MutableState, Arrive]:
        held = state()
        row = there(claim_and_complete(held, 1).activity_rows[5])
        taken = there(there(activity.claim(row, NOW, request_id="poll")).row)
        item = there(activity.complete(taken, NOW, VALUE, "worker").item)
        return held, Arrive(item=item, closes=taken)

    measure("start", lambda: None, lambda _: begin())
    measure("claim + complete, no command", state, lambda value: claim_and_complete(value, 0))
    measure("claim + complete, 1 activity", state, lambda value: claim_and_complete(value, 1))
    measure("claim + complete, 100 activities", state, lambda value: claim_and_complete(value, 100))
    measure(
        "activity result arrives",
        idle,
        lambda value: apply(Change(state=value[0], now=NOW), value[1]),
    )
    measure(
        "signal",
        state,
        lambda value: apply(
            Change(state=value, now=NOW), SignalRun(signal_name="note", input=VALUE)
        ),
    )
    measure("snapshot: decode", lambda: None, lambda _: state())
    measure("snapshot: encode", state, msgspec.json.encode)


if __name__ == "__main__":
    main()
