"""Updates: admitted without an event, delivered with a workflow task, accepted by an event and
completed by one. One that is refused leaves no event; only who waits for it hears of it.
"""

from datetime import datetime

import msgspec

from wfcore.exceptions import (
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedCause,
    ResourceExhaustedError,
    WorkflowNotReadyError,
)
from wfcore.history import buffer, sizes
from wfcore.history.change import Change
from wfcore.history.effects import NotifyUpdate
from wfcore.history.faults import BadCommandError
from wfcore.history.limits import Limits
from wfcore.history.machines import signal, workflow_task
from wfcore.history.requests import AdmitUpdate, CompleteTask
from wfcore.history.state import MutableState, TaskClaim
from wfcore.history.step import Step
from wfcore.history.updates import AdmittedUpdate, Update
from wfcore.protocol import commands, events
from wfcore.protocol.commands import Command
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.protocol.message import Message
from wfcore.protocol.updates import (
    Acceptance,
    Meta,
    ProtocolMessage,
    Rejection,
    Response,
    body_name,
)
from wfcore.protocol.updates import Request as UpdateRequest

#: Attempt of a workflow task from which on new updates are refused.
FAILING_ATTEMPT = 3
#: `NotifyUpdate.version` of a run's end, behind which no other one comes.
LAST_VERSION = 2**62

_BAD = Cause.BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE
_NOT_PROCESSED = Failure(
    message=(
        "Workflow Update is rejected because it wasn't processed by worker. Probably, Workflow "
        "Update is not supported by the worker."
    ),
    source="Server",
    application_failure_info=ApplicationFailureInfo(type="UnprocessedUpdate", non_retryable=True),
)


# ---- from outside


def is_known(state: MutableState, row: Update | None, update_id: str) -> bool:
    """Whether an update of this id waits, goes on, or was completed."""
    if update_id in state.volatile.updates or update_id in state.recorded.open_updates:
        return True
    return row is not None and bool(row.accepted_event_id)


def check(state: MutableState, limits: Limits) -> None:
    """Refuse an update of a new id to an open run that takes none.

    Raises:
        FailedPreconditionError: the run is paused, or has had as many as it may have.
        WorkflowNotReadyError: its workflow task keeps failing.
        ResourceExhaustedError: too many are in flight (CONCURRENT_LIMIT), or the run tries to close
            (BUSY_WORKFLOW).
    """
    signal.refuse_while_closing(state)
    recorded, volatile = state.recorded, state.volatile
    if recorded.status is Status.PAUSED:
        raise FailedPreconditionError("Workflow is paused. Cannot update the workflow.")
    if volatile.task is not None and volatile.task.attempt >= FAILING_ATTEMPT:
        raise WorkflowNotReadyError(
            "Unable to perform workflow execution update due to Workflow Task in failed state."
        )
    if len(volatile.updates) + len(recorded.open_updates) >= limits.updates_in_flight:
        raise ResourceExhaustedError(
            "limit on number of concurrent in-flight updates has been reached "
            f"({limits.updates_in_flight})",
            ResourceExhaustedCause.CONCURRENT_LIMIT,
        )
    if recorded.update_count + len(volatile.updates) >= limits.updates:
        raise FailedPreconditionError(
            "The limit on the total number of distinct updates in this workflow has been reached "
            f"({limits.updates}). Make sure any duplicate updates share an Update ID so the server "
            "can deduplicate them, and consider rejecting updates that you aren't going to "
            "process. You can also Continue-as-New to avoid this; we recommend you check "
            "Continue-as-New Suggested in your Workflow."
        )


def admit(step: Step, request: AdmitUpdate) -> None:
    """Have a worker see to an update; a task that waits takes it along."""
    volatile, update_id = step.volatile, request.update_id
    size = sizes.request_bytes(request.request)
    waiting = sum(update.size for update in volatile.updates.values())
    if volatile.updates and waiting + size > step.limits.updates_bytes:
        raise ResourceExhaustedError(
            "limit on total payload size of in-flight updates has been reached "
            f"({step.limits.updates_bytes} bytes)",
            ResourceExhaustedCause.CONCURRENT_LIMIT,
        )
    _forget_answers(step, readmitted=update_id)
    volatile.admissions += 1
    volatile.updates = {
        **volatile.updates,
        update_id: AdmittedUpdate(admission=volatile.admissions, size=size),
    }
    _write(
        step,
        Update(update_id=update_id, admission=volatile.admissions, request=request.request),
    )
    if step.started_task is None:
        workflow_task.schedule(step, speculative=True)


def messages(claim: TaskClaim, updates: dict[str, Update]) -> tuple[ProtocolMessage, ...]:
    """What a claimed task delivers; it counts after the event in front of the task's STARTED."""
    return tuple(
        ProtocolMessage(
            id=f"{update_id}/request",
            protocol_instance_id=update_id,
            event_id=claim.started_event_id - 1,
            body=updates[update_id].request,
        )
        for update_id in claim.updates
        if update_id in updates
    )


def waiting(step: Step) -> list[str]:
    """Ids of updates that a workflow task has to bring; those of UPDATE_ADMITTED events come with
    the history.
    """
    return [update_id for update_id, each in step.volatile.updates.items() if not each.event_id]


def take_over(step: Step, event_id: int, request: UpdateRequest) -> None:
    """UPDATE_ADMITTED stands in the history of a run that a reset makes: nobody need bring it."""
    volatile = step.volatile
    update_id = request.meta.update_id if request.meta is not None else ""
    volatile.admissions += 1
    volatile.updates = {
        **volatile.updates,
        update_id: AdmittedUpdate(
            admission=volatile.admissions, size=sizes.request_bytes(request), event_id=event_id
        ),
    }
    _write(step, Update(update_id=update_id, admission=volatile.admissions))


# ---- a worker's answer


def listen(step: Step, request: CompleteTask) -> None:
    """Take note of what an answer says about updates.

    Raises:
        InvalidArgumentError: a message says nothing.
    """
    if any(message.body is None for message in request.messages):
        raise InvalidArgumentError("nil message body")
    step.messages = {message.id: message for message in request.messages}


def leaves_nothing(step: Step, task: TaskClaim, request: CompleteTask) -> bool:
    """Whether a task came to nothing but refusals, so that it need not have been."""
    recorded = step.recorded
    if not task.is_speculative or request.commands or request.force_create_new_workflow_task:
        return False
    if not all(isinstance(message.body, Rejection) for message in request.messages):
        return False
    if buffer.holds_facts(step, recorded.next_event_id):
        return False
    # STARTED and COMPLETED of the task before
    known = recorded.previous_started_event_id + 1
    shown = recorded.next_event_id - 1 - known
    return shown <= (step.limits.speculative_task_events if request.can_forget_events else 0)


def take_rejections(step: Step, request: CompleteTask) -> None:
    """Carry out refusals that no command gives a place. They leave no event, so that they count
    although the run may end with the same answer.
    """
    placed = {
        command.attributes.message_id
        for command in request.commands
        if isinstance(command.attributes, commands.ProtocolMessage)
    }
    for message_id, message in list(step.messages.items()):
        if isinstance(message.body, Rejection) and message_id not in placed:
            del step.messages[message_id]
            _carry_out(step, message)


def carry_out(
    step: Step, _command: Command, attributes: commands.ProtocolMessage, _completed: int
) -> None:
    """PROTOCOL_MESSAGE: the place of a message among the commands."""
    message_id = attributes.message_id
    if not message_id:
        raise BadCommandError(_BAD, "MessageID is not set on ProtocolMessageCommand.")
    message = step.messages.pop(message_id, None)
    if message is None:
        raise BadCommandError(
            _BAD, f"ProtocolMessageCommand referenced absent message ID {message_id}"
        )
    _carry_out(step, message)


def carry_out_rest(step: Step) -> None:
    """Messages that no command gave a place."""
    for message_id in list(step.messages):
        _carry_out(step, step.messages.pop(message_id))


def reject_unprocessed(step: Step, task: TaskClaim) -> None:
    """Refuse what the worker was shown and said nothing about."""
    for update_id in task.updates:
        if update_id in step.volatile.updates:
            _refuse(step, update_id, rejection=_NOT_PROCESSED)


def abort_all(step: Step) -> None:
    """The task that should have answered the waiting updates failed by its own fault."""
    for update_id in waiting(step):
        _refuse(step, update_id, is_aborted=True)


def end_all(step: Step) -> None:
    """The run is over, and with it what waits; who waits for an update looks again."""
    for update_id in (*step.volatile.updates, *step.recorded.open_updates):
        _notify(step, update_id, LAST_VERSION)
    step.volatile.updates = {}


def _carry_out(step: Step, message: ProtocolMessage) -> None:
    body, update_id = message.body, message.protocol_instance_id
    match body:
        case Acceptance():
            size = sizes.request_bytes(body.accepted_request)
        case Rejection():
            size = sizes.failure_bytes(body.failure)
        case Response():
            size = sizes.outcome_bytes(body.outcome)
        case _:
            raise BadCommandError(_BAD, f"unsupported message {type(body).__name__}")
    if size > step.limits.blob_bytes:
        text = f"Message type {body_name(body)} exceeds size limit."
        raise BadCommandError(_BAD, text, terminates=True)
    match body:
        case Acceptance():
            _accept(step, update_id, body)
        case Rejection():
            _check_admitted(step, update_id, body)
            _refuse(step, update_id, rejection=body.failure or Failure())
        case Response():
            _complete(step, update_id, body)


def _accept(step: Step, update_id: str, body: Acceptance) -> None:
    _check_admitted(step, update_id, body)
    row = _row(step, update_id)
    event_id = step.append(
        events.WorkflowExecutionUpdateAccepted(
            protocol_instance_id=update_id,
            accepted_request_message_id=f"{update_id}/request",
            accepted_request_sequencing_event_id=body.accepted_request_sequencing_event_id,
            # as it was sent: a worker's codec may have written it otherwise
            accepted_request=row.request or body.accepted_request,
        )
    )
    _no_longer_admitted(step, update_id)
    _write(step, msgspec.structs.replace(row, request=None, accepted_event_id=event_id))


def _complete(step: Step, update_id: str, body: Response) -> None:
    accepted_event_id = step.recorded.open_updates.get(update_id)
    if accepted_event_id is None:
        raise _bad_state(step, update_id, body)
    if body.outcome is None:
        raise BadCommandError(_BAD, "invalid *update.Response: outcome is not set")
    event_id = step.append(
        events.WorkflowExecutionUpdateCompleted(
            meta=body.meta or Meta(update_id=update_id),
            accepted_event_id=accepted_event_id,
            outcome=body.outcome,
        )
    )
    row = msgspec.structs.replace(_row(step, update_id), completed_event_id=event_id)
    _write(step, row)


def _check_admitted(step: Step, update_id: str, body: Message) -> None:
    if update_id not in step.volatile.updates:
        raise _bad_state(step, update_id, body)


def _bad_state(step: Step, update_id: str, body: Message) -> BadCommandError:
    if update_id in step.volatile.updates:
        state = "Sent"
    elif update_id in step.recorded.open_updates:
        state = "Accepted"
    else:
        return BadCommandError(
            _BAD,
            f"update {update_id} wasn't found on the server. This is most likely a transient error "
            "which will be resolved automatically by retries",
        )
    return BadCommandError(
        _BAD,
        f"invalid state transition attempted for Update {update_id}: received "
        f"*update.{type(body).__name__} message while in state {state}",
    )


# ---- rows


def _row(step: Step, update_id: str) -> Update:
    """An update as it stands in this step; only its admission is lost with a rebuilt state."""
    change: Change = step.change
    row = change.update_rows.get(update_id) or change.updates.get(update_id)
    if row is not None:
        return row
    return Update(
        update_id=update_id,
        admission=step.volatile.admissions,
        accepted_event_id=step.recorded.open_updates.get(update_id, 0),
    )


def _write(step: Step, row: Update) -> None:
    step.change.update_rows[row.update_id] = row
    _notify(step, row.update_id, row.version)


def _notify(step: Step, update_id: str, version: int) -> None:
    recorded = step.recorded
    step.effect(
        NotifyUpdate(
            namespace=recorded.namespace,
            workflow_id=recorded.workflow_id,
            run_id=recorded.run_id,
            update_id=update_id,
            version=version,
        )
    )


def _refuse(
    step: Step, update_id: str, *, rejection: Failure | None = None, is_aborted: bool = False
) -> None:
    admitted = step.volatile.updates[update_id]
    _no_longer_admitted(step, update_id)
    step.volatile.answered_updates = {
        **step.volatile.answered_updates,
        update_id: step.now + step.limits.update_answer,
    }
    _write(
        step,
        Update(
            update_id=update_id,
            admission=admitted.admission,
            rejection=rejection,
            is_aborted=is_aborted,
        ),
    )


def _no_longer_admitted(step: Step, update_id: str) -> None:
    step.volatile.updates = {
        waiting: update for waiting, update in step.volatile.updates.items() if waiting != update_id
    }


def _forget_answers(step: Step, readmitted: str) -> None:
    """Drop rows of refused updates whose time is over, or of which there are too many."""
    answered: dict[str, datetime] = dict(step.volatile.answered_updates)
    answered.pop(readmitted, None)
    spare = len(answered) - step.limits.update_answers
    for place, (update_id, until) in enumerate(list(answered.items())):
        if place < spare or until <= step.now:
            del answered[update_id]
            step.change.update_rows[update_id] = None
    step.volatile.answered_updates = answered
