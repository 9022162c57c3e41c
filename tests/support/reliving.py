"""A recorded history lived again: each workflow task is run as new, and its commands compared with
the events that they became. What the server fills in or caps is left out.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from tests.support.replaying import Case
from wfcore.protocol import commands, events
from wfcore.protocol.commands import Command
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.events import History, HistoryEvent
from wfcore.protocol.failures import Failure
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Payload, Payloads
from wfcore.protocol.rpc.workflow_tasks import PollWorkflowTaskQueueResponse
from wfcore.protocol.updates import Acceptance, ProtocolMessage, Response
from wfcore.replay.activation import HistoryCursor, Recorded, Turn
from wfcore.replay.instance import WorkflowInstance
from wfcore.replay.local_activities import LocalActivityOutcome
from wfcore.replay.markers import read_local_activity
from wfcore.replay.result import WorkflowTaskResult

#: Fields of a command that its event need not repeat as they are.
_FILLED_IN = {
    "namespace",
    "request_eager_execution",
    "retry_policy",
    "schedule_to_close_timeout",
    "schedule_to_start_timeout",
    "start_to_close_timeout",
    "heartbeat_timeout",
    "workflow_run_timeout",
    "workflow_execution_timeout",
    "workflow_task_timeout",
    "backoff_start_interval",
    "header",
    "priority",
    "details",  # of markers: numbers and times of their own
}


def relive(case: Case) -> list[str]:
    """What differs, one line each."""
    history = case.history()
    first: Any = history[0].attributes
    instance = WorkflowInstance(
        definition=case.definition(),
        namespace="default",
        workflow_execution=WorkflowExecution(
            workflow_id=first.workflow_id, run_id=first.original_execution_run_id
        ),
    )
    differences: list[str] = []
    try:
        for turn, known in _turns(history):
            task = PollWorkflowTaskQueueResponse(
                history=History(events=tuple(history[instance.last_event_id : known])),
                messages=tuple(_requests(turn)),
            )
            result = instance.activate(task)
            result = _run_local_activities(instance, task, result, turn)
            if result.error is not None:
                return [
                    *differences,
                    f"task {known}: {type(result.error).__name__}: {result.error}",
                ]
            answer = turn.answer
            if answer is not None and (answer.commands or answer.next_event is None):
                differences += _compare(result, answer)
    finally:
        instance.evict()
    return differences


def _turns(history: Sequence[HistoryEvent]) -> Iterator[tuple[Turn, int]]:
    """Each task that was answered, and how many events its worker knew."""
    for step in HistoryCursor().walk(history):
        if isinstance(step, Turn) and step.answer is not None:
            yield step, step.started.event_id


def _requests(turn: Turn) -> Iterator[ProtocolMessage]:
    """The updates that the task accepted, as the engine delivered them."""
    assert turn.answer is not None
    for event in turn.answer.commands:
        attributes = event.attributes
        if isinstance(attributes, events.WorkflowExecutionUpdateAccepted):
            if attributes.accepted_request is None:
                continue
            yield ProtocolMessage(
                id=attributes.accepted_request_message_id,
                protocol_instance_id=attributes.protocol_instance_id,
                event_id=attributes.accepted_request_sequencing_event_id,
                body=attributes.accepted_request,
            )


def _run_local_activities(
    instance: WorkflowInstance,
    task: PollWorkflowTaskQueueResponse,
    result: WorkflowTaskResult,
    turn: Turn,
) -> WorkflowTaskResult:
    """Let local activities end as the task's markers say, in their order."""
    assert turn.answer is not None
    for event in turn.answer.commands:
        record = read_local_activity(event.attributes)
        waiting = {activity.number for activity in result.local_activities}
        if record is None or record.number not in waiting or record.complete_time is None:
            continue
        result = instance.resolve_local_activity(
            task,
            LocalActivityOutcome(
                number=record.number,
                attempt=record.attempt,
                complete_time=record.complete_time,
                original_schedule_time=record.original_schedule_time or record.complete_time,
                result=record.result,
                failure=record.failure,
                backoff=record.backoff,
            ),
        )
    return result


def _compare(result: WorkflowTaskResult, answer: Recorded) -> Iterator[str]:
    said = {message.id: message for message in result.messages}
    for command, event in zip(result.commands, answer.commands, strict=False):
        where = f"event {event.event_id} {event.event_type.name}"
        if isinstance(command.attributes, commands.ProtocolMessage):
            yield from _compare_update(where, said[command.attributes.message_id], event)
        else:
            yield from _compare_fields(where, command, event)
    if len(result.commands) != len(answer.commands):
        kinds = [command.command_type.name for command in result.commands]
        yield f"task {answer.completed.event_id}: {len(answer.commands)} events, but {kinds}"


def _compare_fields(where: str, command: Command, event: HistoryEvent) -> Iterator[str]:
    attributes: Any = command.attributes
    recorded: Any = event.attributes
    for name in type(attributes).__struct_fields__:
        if name in _FILLED_IN or not hasattr(recorded, name):
            continue
        ours, theirs = getattr(attributes, name), getattr(recorded, name)
        if not _same(ours, theirs):
            yield f"{where}.{name}: {_short(ours)} instead of {_short(theirs)}"
    if not _same(command.user_metadata, event.user_metadata):
        yield f"{where}: {command.user_metadata} instead of {event.user_metadata}"
    if event.event_group_markers and command.event_group_markers != event.event_group_markers:
        yield f"{where}: {command.event_group_markers} instead of {event.event_group_markers}"


def _compare_update(where: str, message: ProtocolMessage, event: HistoryEvent) -> Iterator[str]:
    recorded: Any = event.attributes
    if isinstance(recorded, events.WorkflowExecutionUpdateCompleted):
        if not isinstance(message.body, Response) or not _same(
            message.body.outcome, recorded.outcome
        ):
            yield f"{where}: {_short(message.body)} instead of {_short(recorded.outcome)}"
    elif not isinstance(message.body, Acceptance):
        yield f"{where}: {_short(message.body)}"


def _same(ours: Any, theirs: Any) -> bool:
    """Equal, but for stack traces, the kind of a queue, and empty messages."""
    if isinstance(ours, Failure) and isinstance(theirs, Failure):
        return (
            ours.message == theirs.message
            and _same(ours.application_failure_info, theirs.application_failure_info)
            and _same(ours.activity_failure_info, theirs.activity_failure_info)
            and _same(
                ours.child_workflow_execution_failure_info,
                theirs.child_workflow_execution_failure_info,
            )
            and _same(ours.timeout_failure_info, theirs.timeout_failure_info)
            and _same(ours.cause, theirs.cause)
        )
    if isinstance(ours, Payloads) and isinstance(theirs, Payloads):
        return len(ours.payloads) == len(theirs.payloads) and all(
            map(_same, ours.payloads, theirs.payloads)
        )
    if isinstance(ours, Payload) and isinstance(theirs, Payload):
        return ours.data == theirs.data and ours.metadata.get("encoding") == theirs.metadata.get(
            "encoding"
        )
    if isinstance(ours, Message) and isinstance(theirs, Message) and type(ours) is type(theirs):
        names = [name for name in type(ours).__struct_fields__ if name not in ("kind", "namespace")]
        return all(_same(getattr(ours, name), getattr(theirs, name)) for name in names)
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_same(ours[k], theirs[k]) for k in ours)
    return bool(ours == theirs) or (not ours and not theirs) or _is_empty(ours, theirs)


def _is_empty(ours: Any, theirs: Any) -> bool:
    known = ours if ours is not None else theirs
    return (
        (ours is None or theirs is None) and isinstance(known, Message) and known == type(known)()
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 300 else text[:300] + "..."
