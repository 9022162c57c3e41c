"""Which machine carries out which command. Whoever adds a machine adds its commands here."""

from collections.abc import Callable
from typing import Any

from wfcore.exceptions import InvalidArgumentError
from wfcore.history.faults import BadCommandError
from wfcore.history.machines import (
    activity_commands,
    child,
    closing,
    external,
    marker,
    timer,
    update,
)
from wfcore.history.step import Step
from wfcore.protocol import wellformed
from wfcore.protocol.commands import ATTRIBUTES, CLOSING, Command
from wfcore.protocol.enums import CommandType
from wfcore.protocol.enums import WorkflowTaskFailedCause as Cause

Carry = Callable[[Step, Command, Any, int], None]

#: What carries out a command, and the cause of failure when its attributes are missing.
COMMANDS: dict[CommandType, tuple[Carry, Cause]] = {
    CommandType.SCHEDULE_ACTIVITY_TASK: (
        activity_commands.schedule,
        Cause.BAD_SCHEDULE_ACTIVITY_ATTRIBUTES,
    ),
    CommandType.REQUEST_CANCEL_ACTIVITY_TASK: (
        activity_commands.request_cancel,
        Cause.BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES,
    ),
    CommandType.START_TIMER: (timer.start, Cause.BAD_START_TIMER_ATTRIBUTES),
    CommandType.CANCEL_TIMER: (timer.cancel, Cause.BAD_CANCEL_TIMER_ATTRIBUTES),
    CommandType.RECORD_MARKER: (marker.record, Cause.BAD_RECORD_MARKER_ATTRIBUTES),
    CommandType.PROTOCOL_MESSAGE: (
        update.carry_out,
        Cause.BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE,
    ),
    CommandType.MODIFY_WORKFLOW_PROPERTIES: (
        marker.modify_properties,
        Cause.BAD_MODIFY_WORKFLOW_PROPERTIES_ATTRIBUTES,
    ),
    CommandType.UPSERT_WORKFLOW_SEARCH_ATTRIBUTES: (
        marker.upsert_search_attributes,
        Cause.BAD_SEARCH_ATTRIBUTES,
    ),
    CommandType.START_CHILD_WORKFLOW_EXECUTION: (
        child.start,
        Cause.BAD_START_CHILD_EXECUTION_ATTRIBUTES,
    ),
    CommandType.SIGNAL_EXTERNAL_WORKFLOW_EXECUTION: (
        external.signal,
        Cause.BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES,
    ),
    CommandType.REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION: (
        external.request_cancel,
        Cause.BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES,
    ),
    CommandType.COMPLETE_WORKFLOW_EXECUTION: (
        closing.complete,
        Cause.BAD_COMPLETE_WORKFLOW_EXECUTION_ATTRIBUTES,
    ),
    CommandType.FAIL_WORKFLOW_EXECUTION: (
        closing.fail,
        Cause.BAD_FAIL_WORKFLOW_EXECUTION_ATTRIBUTES,
    ),
    CommandType.CANCEL_WORKFLOW_EXECUTION: (
        closing.cancel,
        Cause.BAD_CANCEL_WORKFLOW_EXECUTION_ATTRIBUTES,
    ),
    CommandType.CONTINUE_AS_NEW_WORKFLOW_EXECUTION: (
        closing.continue_as_new,
        Cause.BAD_CONTINUE_AS_NEW_ATTRIBUTES,
    ),
}


def check_sequence(commands: tuple[Command, ...]) -> None:
    """Refuse an answer whose commands can't stand together.

    Raises:
        InvalidArgumentError: a kind is unknown, or something follows a command that ends the run.
    """
    for place, command in enumerate(commands):
        kind = command.command_type
        if kind in CLOSING and place < len(commands) - 1:
            names = ", ".join(_name(each.command_type) for each in commands)
            raise InvalidArgumentError(
                f"invalid command sequence: [{names}], command {_name(kind)} must be the last "
                "command."
            )
        if kind not in ATTRIBUTES:
            raise InvalidArgumentError(f"unknown command type: {_name(kind)}")


def carry_out(step: Step, command: Command, completed: int) -> None:
    """Do what one command asks for.

    Raises:
        BadCommandError: it can't be done; whatever was done for the answer is to be undone.
    """
    kind = command.command_type
    name = _name(kind)
    known = COMMANDS.get(kind)
    if known is None:
        raise BadCommandError(
            Cause.FEATURE_DISABLED, f"{name} is not supported by this version of the engine"
        )
    carry, cause = known
    if command.attributes is None:
        raise BadCommandError(cause, f"{name}CommandAttributes is not set on {name}Command.")
    if not isinstance(command.attributes, ATTRIBUTES[kind]):
        raise InvalidArgumentError(
            f"{name} carries {type(command.attributes).__name__}: send {ATTRIBUTES[kind].__name__}"
        )
    if fault := wellformed.fault(command):
        raise BadCommandError(cause, fault)
    carry(step, command, command.attributes, completed)


def _name(kind: CommandType) -> str:
    return "".join(part.capitalize() for part in kind.name.split("_"))
