"""How fast workflow code is replayed, and what one workflow task of a live instance costs.

    python -m benchmarks.replay_speed [--events 2000] [--rounds 5]

The workflow calls one activity after another, the most common shape there is. Processor time is
measured, so that other work of the machine does not count.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from wfcore import activity, workflow
from wfcore.converter import PayloadConverter
from wfcore.protocol import events
from wfcore.protocol.commands import ScheduleActivityTask
from wfcore.protocol.common import ActivityType, TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.events import History, HistoryEvent
from wfcore.protocol.message import Message
from wfcore.protocol.metadata import WorkflowTaskCompletedMetadata
from wfcore.protocol.payloads import Payloads
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse
from wfcore.replay.instance import WorkflowInstance, replay_history
from wfcore.workflow import WorkflowDefinition

RUN = WorkflowExecution(workflow_id="bench", run_id="01a22cd5-7464-7b6f-8891-24e0e5cdfaea")
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
EVENTS_A_STEP = 6


@activity.defn
async def add(first: int, second: int) -> int:
    return first + second


@workflow.defn
class Steps:
    """Adds one, again and again."""

    @workflow.run
    async def run(self, count: int) -> int:
        total = 0
        for _ in range(count):
            total = await workflow.execute_activity(
                add, args=[total, 1], start_to_close_timeout=timedelta(seconds=10)
            )
        return total


class Recorder:
    """Writes the history of that workflow, step by step."""

    def __init__(self, count: int) -> None:
        self._next_id = 1
        self._now = BEGIN
        self._count = count

    def _event(self, attributes: Message) -> HistoryEvent:
        event = HistoryEvent(event_id=self._next_id, event_time=self._now, attributes=attributes)
        self._next_id += 1
        self._now += timedelta(milliseconds=7)
        return event

    def _task(self) -> Iterator[HistoryEvent]:
        scheduled = self._event(events.WorkflowTaskScheduled(attempt=1))
        yield scheduled
        yield self._event(events.WorkflowTaskStarted(scheduled_event_id=scheduled.event_id))

    def begin(self) -> Sequence[HistoryEvent]:
        """The run's start and its first workflow task."""
        started = events.WorkflowExecutionStarted(
            workflow_type=WorkflowType(name="Steps"),
            task_queue=TaskQueue(name="bench"),
            input=_payloads(self._count),
            original_execution_run_id=RUN.run_id,
            first_execution_run_id=RUN.run_id,
            workflow_id=RUN.workflow_id,
            attempt=1,
        )
        return (self._event(started), *self._task())

    def answer(self) -> HistoryEvent:
        """The task's completion."""
        metadata = WorkflowTaskCompletedMetadata(core_used_flags=(1, 2, 3, 4), lang_used_flags=(1,))
        return self._event(events.WorkflowTaskCompleted(sdk_metadata=metadata))

    def step(self, number: int) -> Sequence[HistoryEvent]:
        """An activity is scheduled and completed, the next task started."""
        scheduled = self._event(
            events.ActivityTaskScheduled(
                activity_id=str(number),
                activity_type=ActivityType(name="add"),
                task_queue=TaskQueue(name="bench"),
                input=_payloads(number - 1, 1),
            )
        )
        started = self._event(
            events.ActivityTaskStarted(scheduled_event_id=scheduled.event_id, attempt=1)
        )
        completed = self._event(
            events.ActivityTaskCompleted(
                result=_payloads(number),
                scheduled_event_id=scheduled.event_id,
                started_event_id=started.event_id,
            )
        )
        return (scheduled, started, completed, *self._task())


def _payloads(*values: int) -> Payloads:
    return PayloadConverter.default.to_payloads_wrapper(values)


def whole_history(steps: int) -> list[HistoryEvent]:
    """The history up to the last step's result."""
    recorder = Recorder(steps + 1)
    history = list(recorder.begin())
    for number in range(1, steps + 1):
        history.append(recorder.answer())
        history.extend(recorder.step(number))
    return history


def replay_seconds(history: Sequence[HistoryEvent]) -> float:
    definition = WorkflowDefinition.must_from_class(Steps)
    begin = time.process_time()
    error = replay_history(definition, history)
    seconds = time.process_time() - begin
    if error is not None:
        raise error
    return seconds


def live_seconds(steps: int) -> float:
    """Seconds for one workflow task of a live instance, with one activity in and one out."""
    recorder = Recorder(steps + 1)
    instance = WorkflowInstance(
        definition=WorkflowDefinition.must_from_class(Steps),
        namespace="bench",
        workflow_execution=RUN,
    )
    instance.activate(_task(recorder.begin()))
    tasks = [_task((recorder.answer(), *recorder.step(number))) for number in range(1, steps + 1)]
    begin = time.process_time()
    for number, task in enumerate(tasks, start=2):
        result = instance.activate(task)
        asked = result.commands[0].attributes
        if not isinstance(asked, ScheduleActivityTask) or asked.activity_id != str(number):
            raise RuntimeError(f"step {number} asked for {result}")
    seconds = time.process_time() - begin
    instance.evict()
    return seconds / steps


def _task(new: Sequence[HistoryEvent]) -> PollWorkflowTaskQueueResponse:
    return PollWorkflowTaskQueueResponse(
        workflow_execution=RUN, history=History(events=tuple(new)), attempt=1
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2000, help="length of the replayed history")
    parser.add_argument("--rounds", type=int, default=5, help="best of so many")
    options = parser.parse_args()
    steps = options.events // EVENTS_A_STEP
    history = whole_history(steps)
    replayed = min(replay_seconds(history) for _ in range(options.rounds))
    live = min(live_seconds(steps) for _ in range(options.rounds))
    print(f"replay: {len(history) / replayed:,.0f} events/s ({len(history)} events)")
    print(f"live:   {live * 1e6:,.1f} microseconds a task with one activity in and one out")


if __name__ == "__main__":
    main()
