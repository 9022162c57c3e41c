"""A workflow's run in a test: the least that a server does, around one live instance.

    run = LiveRun(Greeting, "Ann")
    run.work()                                  # a workflow task
    run.complete_activity("1", "Hello, Ann!")
    run.work()
    assert run.result() == "Hello, Ann!"

After each workflow task the whole history is replayed from its start by a second instance, which
must agree. Times are made up: every event is a second after the one before.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from wfcore.converter import DataConverter
from wfcore.protocol import commands, events
from wfcore.protocol.commands import Command
from wfcore.protocol.common import TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import TimeoutType, WorkflowTaskFailedCause
from wfcore.protocol.events import History, HistoryEvent
from wfcore.protocol.failures import ApplicationFailureInfo, Failure, TimeoutFailureInfo
from wfcore.protocol.message import Message
from wfcore.protocol.metadata import WorkflowTaskCompletedMetadata
from wfcore.protocol.payloads import Header, Memo, Payloads, SearchAttributes
from wfcore.protocol.rpc.info import WorkflowQuery, WorkflowQueryResult
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse
from wfcore.protocol.updates import Acceptance, Meta, ProtocolMessage, Request, Response
from wfcore.protocol.updates import Input as UpdateInput
from wfcore.replay.instance import WorkflowInstance, replay_history
from wfcore.replay.local_activities import LocalActivityOutcome, LocalActivityTask
from wfcore.replay.result import WorkflowTaskResult
from wfcore.workflow import WorkflowDefinition

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
CONVERTER = DataConverter.default.payload_converter
#: Command and event that have the same fields, apart from the completed task's id.
_TWINS: dict[type[Message], type[Message]] = {
    commands.ScheduleActivityTask: events.ActivityTaskScheduled,
    commands.StartTimer: events.TimerStarted,
    commands.CancelTimer: events.TimerCanceled,
    commands.RequestCancelActivityTask: events.ActivityTaskCancelRequested,
    commands.RecordMarker: events.MarkerRecorded,
    commands.UpsertWorkflowSearchAttributes: events.UpsertWorkflowSearchAttributes,
    commands.ModifyWorkflowProperties: events.WorkflowPropertiesModified,
    commands.StartChildWorkflowExecution: events.StartChildWorkflowExecutionInitiated,
    commands.SignalExternalWorkflowExecution: events.SignalExternalWorkflowExecutionInitiated,
    commands.RequestCancelExternalWorkflowExecution: (
        events.RequestCancelExternalWorkflowExecutionInitiated
    ),
    commands.CompleteWorkflowExecution: events.WorkflowExecutionCompleted,
    commands.FailWorkflowExecution: events.WorkflowExecutionFailed,
    commands.CancelWorkflowExecution: events.WorkflowExecutionCanceled,
    commands.ContinueAsNewWorkflowExecution: events.WorkflowExecutionContinuedAsNew,
}


def payloads(*values: Any) -> Payloads | None:
    return CONVERTER.to_payloads_wrapper(values) if values else None


class LiveRun:
    """One run and its history."""

    def __init__(
        self,
        workflow: type,
        *args: Any,
        run_id: str = "01a22cd5-7464-7b6f-8891-24e0e5cdfaea",
        checks_replay: bool = True,
        started: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.definition = WorkflowDefinition.must_from_class(workflow)
        self.execution = WorkflowExecution(workflow_id="order-1", run_id=run_id)
        self.options: dict[str, Any] = {"namespace": "test", **options}
        self.checks_replay = checks_replay
        self.history: list[HistoryEvent] = []
        self.messages: list[ProtocolMessage] = []
        self.last: WorkflowTaskResult = WorkflowTaskResult()
        self.instance = self._new_instance()
        self.add(
            events.WorkflowExecutionStarted(
                workflow_type=WorkflowType(name=self.definition.name or "Anything"),
                task_queue=TaskQueue(name="queue"),
                input=payloads(*args),
                original_execution_run_id=run_id,
                first_execution_run_id=run_id,
                workflow_id="order-1",
                workflow_task_timeout=timedelta(seconds=10),
                attempt=1,
                **(started or {}),
            )
        )

    def _new_instance(self) -> WorkflowInstance:
        return WorkflowInstance(
            definition=self.definition, workflow_execution=self.execution, **self.options
        )

    # --- the history ----------------------------------------------------------------------------

    def add(self, attributes: Message) -> HistoryEvent:
        number = len(self.history) + 1
        event = HistoryEvent(
            event_id=number, event_time=BEGIN + timedelta(seconds=number), attributes=attributes
        )
        self.history.append(event)
        return event

    def kinds(self) -> list[str]:
        return [event.event_type.name for event in self.history]

    def event_of(self, kind: type[Message], **fields: Any) -> HistoryEvent:
        """The newest event of a kind with these fields."""
        for event in reversed(self.history):
            matches = (getattr(event.attributes, name) == value for name, value in fields.items())
            if isinstance(event.attributes, kind) and all(matches):
                return event
        raise AssertionError(f"no {kind.__name__} with {fields} in {self.kinds()}")

    # --- workflow tasks -------------------------------------------------------------------------

    def begin_task(self, **fields: Any) -> PollWorkflowTaskQueueResponse:
        """Schedule and start a task; what a worker with this instance gets."""
        scheduled = self.add(events.WorkflowTaskScheduled(attempt=1))
        self.add(events.WorkflowTaskStarted(scheduled_event_id=scheduled.event_id))
        return self.poll(**fields)

    def poll(self, **fields: Any) -> PollWorkflowTaskQueueResponse:
        new = self.history[self.instance.last_event_id :]
        messages, self.messages = tuple(self.messages), []
        return PollWorkflowTaskQueueResponse(
            workflow_execution=self.execution,
            history=History(events=tuple(new)),
            messages=messages,
            attempt=1,
            **fields,
        )

    def work(self, **fields: Any) -> list[Command]:
        """One workflow task, whose answer is committed; gives the commands."""
        result = self.instance.activate(self.begin_task(**fields))
        return self.finish(result)

    def finish(self, result: WorkflowTaskResult) -> list[Command]:
        """Commit a task's answer."""
        self.last = result
        if result.error is not None:
            raise AssertionError("the workflow task failed") from result.error
        self.commit(result)
        if self.checks_replay:
            error = replay_history(
                self.definition,
                self.history,
                workflow_execution=self.execution,
                **self.options,
            )
            if error is not None:
                raise AssertionError("the history does not replay") from error
        return list(result.commands)

    def fail(self, **fields: Any) -> WorkflowTaskResult:
        """One workflow task, which must fail; a new instance takes its place."""
        result = self.instance.activate(self.begin_task(**fields))
        assert result.cause is not None, result
        started = self.history[-1].event_id
        self.add(
            events.WorkflowTaskFailed(
                scheduled_event_id=started - 1,
                started_event_id=started,
                cause=result.cause,
                failure=result.failure,
            )
        )
        self.evict()
        return result

    def evict(self) -> None:
        """Lose the live instance; the next task begins with the whole history."""
        self.instance.evict()
        self.instance = self._new_instance()

    def commit(self, result: WorkflowTaskResult) -> None:
        started = self.history[-1].event_id
        metadata = WorkflowTaskCompletedMetadata(
            core_used_flags=result.core_flags, lang_used_flags=result.lang_flags
        )
        self.add(
            events.WorkflowTaskCompleted(
                scheduled_event_id=started - 1, started_event_id=started, sdk_metadata=metadata
            )
        )
        said = {message.id: message for message in result.messages}
        for command in result.commands:
            self._apply(command, said)

    def _apply(self, command: Command, said: dict[str, ProtocolMessage]) -> None:
        attributes: Any = command.attributes
        if isinstance(attributes, commands.ProtocolMessage):
            message = said[attributes.message_id]
            if isinstance(message.body, Acceptance):
                self.add(
                    events.WorkflowExecutionUpdateAccepted(
                        protocol_instance_id=message.protocol_instance_id,
                        accepted_request_message_id=message.body.accepted_request_message_id,
                        accepted_request=message.body.accepted_request,
                    )
                )
            elif isinstance(message.body, Response):
                self.add(
                    events.WorkflowExecutionUpdateCompleted(
                        meta=message.body.meta, outcome=message.body.outcome
                    )
                )
            return
        kind = _TWINS[type(attributes)]
        fields = {
            name: getattr(attributes, name)
            for name in kind.__struct_fields__
            if hasattr(attributes, name)
        }
        if isinstance(attributes, commands.CancelTimer):
            timer = self.event_of(events.TimerStarted, timer_id=attributes.timer_id)
            fields["started_event_id"] = timer.event_id
        self.add(kind(**fields))

    # --- what happens outside -------------------------------------------------------------------

    def signal(self, name: str, *args: Any) -> None:
        self.add(events.WorkflowExecutionSignaled(signal_name=name, input=payloads(*args)))

    def request_cancel(self, reason: str = "") -> None:
        self.add(events.WorkflowExecutionCancelRequested(cause=reason))

    def fire(self, timer_id: str) -> None:
        started = self.event_of(events.TimerStarted, timer_id=timer_id)
        self.add(events.TimerFired(timer_id=timer_id, started_event_id=started.event_id))

    def _close_activity(self, activity_id: str, kind: type[Message], **fields: Any) -> None:
        scheduled = self.event_of(events.ActivityTaskScheduled, activity_id=activity_id).event_id
        started = self.add(events.ActivityTaskStarted(scheduled_event_id=scheduled, attempt=1))
        self.add(kind(scheduled_event_id=scheduled, started_event_id=started.event_id, **fields))

    def complete_activity(self, activity_id: str, *result: Any) -> None:
        self._close_activity(
            activity_id, events.ActivityTaskCompleted, result=payloads(*(result or (None,)))
        )

    def fail_activity(self, activity_id: str, message: str, kind: str = "Broken") -> None:
        info = ApplicationFailureInfo(type=kind)
        failure = Failure(message=message, application_failure_info=info)
        self._close_activity(activity_id, events.ActivityTaskFailed, failure=failure)

    def time_out_activity(self, activity_id: str) -> None:
        info = TimeoutFailureInfo(timeout_type=TimeoutType.START_TO_CLOSE)
        failure = Failure(message="activity StartToClose timeout", timeout_failure_info=info)
        self._close_activity(activity_id, events.ActivityTaskTimedOut, failure=failure)

    def cancel_activity(self, activity_id: str) -> None:
        self._close_activity(activity_id, events.ActivityTaskCanceled)

    def update(self, update_id: str, name: str, *args: Any) -> None:
        request = Request(
            meta=Meta(update_id=update_id), input=UpdateInput(name=name, args=payloads(*args))
        )
        self.messages.append(
            ProtocolMessage(
                id=f"{update_id}/request",
                protocol_instance_id=update_id,
                event_id=len(self.history),
                body=request,
            )
        )

    def end_local(
        self, task: PollWorkflowTaskQueueResponse, activity: LocalActivityTask, *result: Any
    ) -> WorkflowTaskResult:
        """A local activity completes inside the task."""
        now = self.history[-1].event_time + timedelta(milliseconds=20)
        return self.instance.resolve_local_activity(
            task,
            LocalActivityOutcome(
                number=activity.number,
                attempt=activity.attempt,
                complete_time=now,
                original_schedule_time=now,
                result=payloads(*result),
            ),
        )

    # --- looking at it --------------------------------------------------------------------------

    def query(self, name: str, *args: Any) -> WorkflowQueryResult:
        """Ask the live instance, outside of any task."""
        query = WorkflowQuery(query_type=name, query_args=payloads(*args))
        answer = self.instance.activate(self.poll(query=query)).query_result
        assert answer is not None
        return answer

    def answer(self, name: str, *args: Any) -> Any:
        """The value that a query is answered with."""
        result = self.query(name, *args)
        assert result.answer is not None, result
        return CONVERTER.from_payloads_wrapper(result.answer)[0]

    def result(self) -> Any:
        """What the workflow returned."""
        completed: Any = self.event_of(events.WorkflowExecutionCompleted).attributes
        return CONVERTER.from_payloads_wrapper(completed.result)[0]

    def failure(self) -> Failure:
        """Why the workflow failed."""
        failed: Any = self.event_of(events.WorkflowExecutionFailed).attributes
        assert isinstance(failed.failure, Failure)
        return failed.failure


def asked(found: Sequence[Command]) -> list[str]:
    """The kinds of commands."""
    return [command.command_type.name for command in found]


__all__ = [
    "BEGIN",
    "Header",
    "LiveRun",
    "Memo",
    "SearchAttributes",
    "WorkflowTaskFailedCause",
    "asked",
    "payloads",
]
