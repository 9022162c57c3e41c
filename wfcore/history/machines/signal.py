"""Signals: each becomes an event, in order of arrival."""

from datetime import datetime

from wfcore.exceptions import (
    InvalidArgumentError,
    ResourceExhaustedCause,
    ResourceExhaustedError,
)
from wfcore.history.limits import Limits
from wfcore.history.requests import SignalRun
from wfcore.history.state import InboxItem, MutableState
from wfcore.protocol import events


def check(state: MutableState, limits: Limits, waiting: int = 0) -> None:
    """Refuse a signal to an open run that takes none.

    Raises:
        InvalidArgumentError: the run has as many as it may have.
        ResourceExhaustedError: the run tries to close; without this, signals could keep it open.
    """
    if state.recorded.signal_count + waiting >= limits.signals:
        raise InvalidArgumentError("exceeded workflow execution limit for signal events")
    refuse_while_closing(state)


def refuse_while_closing(state: MutableState) -> None:
    """Raises: ResourceExhaustedError: the run tries to close, and must not be kept open."""
    if state.volatile.closing and state.task_started:
        raise ResourceExhaustedError(
            "workflow operation can not be applied because workflow is closing",
            ResourceExhaustedCause.BUSY_WORKFLOW,
        )


def item(request: SignalRun, now: datetime) -> InboxItem:
    """The fact that a signal arrived."""
    header = request.header
    return InboxItem(
        event_time=now,
        attributes=events.WorkflowExecutionSignaled(
            signal_name=request.signal_name,
            input=request.input,
            identity=request.identity,
            header=header if header is not None and header.fields else None,
            external_workflow_execution=request.external_workflow_execution,
            request_id=request.request_id,
        ),
        links=request.links,
    )
