"""What the engine itself costs: hello (start, task, activity, task) over the store in memory.

No worker code runs, no database, no broker: the rest is `WorkflowService` and the state machine.

    python -m benchmarks.engine_speed [--runs 2000] [--profile]
"""

import argparse
import cProfile
import pstats
import time
from collections import Counter
from datetime import timedelta

from wfcore.protocol import commands
from wfcore.protocol.commands import Command
from wfcore.protocol.common import ActivityType, TaskQueue, WorkflowType
from wfcore.protocol.payloads import Payload, Payloads
from wfcore.protocol.rpc.activity_tasks import (
    PollActivityTaskQueueRequest,
    RespondActivityTaskCompletedRequest,
)
from wfcore.protocol.rpc.workflow_tasks import (
    PollWorkflowTaskQueueRequest,
    RespondWorkflowTaskCompletedRequest,
)
from wfcore.protocol.rpc.workflows import StartWorkflowExecutionRequest
from wfcore.service.ids import RandomIds
from wfcore.service.workflow_service import WorkflowService
from wfcore.testing.memory_ports import MemoryDispatcher, MemoryStore, SimulatedClock

QUEUE = TaskQueue(name="speed")
VALUE = Payloads(payloads=(Payload(metadata={"encoding": b"json/plain"}, data=b'"hello"'),))
SCHEDULE = Command.of(
    commands.ScheduleActivityTask(
        activity_id="1",
        activity_type=ActivityType(name="greet"),
        task_queue=QUEUE,
        input=VALUE,
        start_to_close_timeout=timedelta(seconds=10),
    )
)
FINISH = Command.of(commands.CompleteWorkflowExecution(result=VALUE))


class Hello:
    """Runs of one workflow, driven by hand."""

    def __init__(self) -> None:
        clock = SimulatedClock(real_time=True)
        self.store = MemoryStore(clock)
        self.service = WorkflowService(self.store, MemoryDispatcher(clock), RandomIds())

    def start(self, number: int) -> None:
        self.service.start_workflow_execution(
            StartWorkflowExecutionRequest(
                namespace="default",
                workflow_id=f"hello-{number}",
                workflow_type=WorkflowType(name="hello"),
                task_queue=QUEUE,
                input=VALUE,
            )
        )

    def workflow_task(self, *asked: Command) -> None:
        task = self.service.poll_workflow_task_queue(
            PollWorkflowTaskQueueRequest(namespace="default", task_queue=QUEUE)
        )
        self.service.respond_workflow_task_completed(
            RespondWorkflowTaskCompletedRequest(task_token=task.task_token, commands=asked)
        )

    def activity_task(self) -> None:
        task = self.service.poll_activity_task_queue(
            PollActivityTaskQueueRequest(namespace="default", task_queue=QUEUE)
        )
        self.service.respond_activity_task_completed(
            RespondActivityTaskCompletedRequest(task_token=task.task_token, result=VALUE)
        )


def measure(runs: int) -> dict[str, float]:
    """CPU microseconds of each step, the mean over all runs."""
    hello = Hello()
    spent: Counter[str] = Counter()
    for number in range(runs):
        for name, step in (
            ("start", lambda number=number: hello.start(number)),
            ("task that schedules", lambda: hello.workflow_task(SCHEDULE)),
            ("activity", hello.activity_task),
            ("task that closes", lambda: hello.workflow_task(FINISH)),
        ):
            before = time.process_time()
            step()
            spent[name] += time.process_time() - before
    return {name: seconds / runs * 1e6 for name, seconds in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    if asked.profile:
        with cProfile.Profile() as profile:
            measure(asked.runs)
        pstats.Stats(profile).sort_stats("cumulative").print_stats(60)
        return
    times = measure(asked.runs)
    for name, micros in times.items():
        print(f"{name:24}{micros:9.0f} us")
    whole = sum(times.values())
    print(f"{'hello':24}{whole:9.0f} us, {1e6 / whole:.0f} a second of one core")


if __name__ == "__main__":
    main()
