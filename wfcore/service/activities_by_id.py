"""Answers from outside to activities that are named by workflow and activity id.

The attempt that runs now is meant, whatever its number. Only a completion may come before any
worker has taken the activity.
"""

from collections.abc import Callable

from wfcore.exceptions import NotFoundError
from wfcore.history.machines import activity
from wfcore.history.state import PendingActivity
from wfcore.protocol.rpc.activity_tasks import (
    RecordActivityTaskHeartbeatByIdRequest,
    RecordActivityTaskHeartbeatByIdResponse,
    RespondActivityTaskCanceledByIdRequest,
    RespondActivityTaskCanceledByIdResponse,
    RespondActivityTaskCompletedByIdRequest,
    RespondActivityTaskCompletedByIdResponse,
    RespondActivityTaskFailedByIdRequest,
    RespondActivityTaskFailedByIdResponse,
)
from wfcore.service import validation
from wfcore.service.activity_tasks import decide
from wfcore.service.host import Host
from wfcore.service.ports import RunKey

Request = (
    RecordActivityTaskHeartbeatByIdRequest
    | RespondActivityTaskCanceledByIdRequest
    | RespondActivityTaskCompletedByIdRequest
    | RespondActivityTaskFailedByIdRequest
)


def heartbeat(
    host: Host, request: RecordActivityTaskHeartbeatByIdRequest
) -> RecordActivityTaskHeartbeatByIdResponse:
    """The attempt is alive; the answer says whether it should stop."""
    decision = decide(
        host,
        _started(host, request),
        lambda row, now: activity.heartbeat(row, now, request.details, host.limits),
    )
    return RecordActivityTaskHeartbeatByIdResponse(
        cancel_requested=decision.cancel_requested,
        activity_paused=decision.paused,
        activity_reset=decision.reset,
    )


def complete(
    host: Host, request: RespondActivityTaskCompletedByIdRequest
) -> RespondActivityTaskCompletedByIdResponse:
    """The activity succeeded, also one that no worker has taken."""
    decide(
        host,
        _open(host, request),
        lambda row, now: activity.complete(row, now, request.result, request.identity, host.limits),
    )
    return RespondActivityTaskCompletedByIdResponse()


def fail(
    host: Host, request: RespondActivityTaskFailedByIdRequest
) -> RespondActivityTaskFailedByIdResponse:
    """The attempt failed; its retry policy says what follows."""
    decide(
        host,
        _started(host, request),
        lambda row, now: activity.fail(
            row,
            now,
            request.failure,
            request.identity,
            request.last_heartbeat_details,
            host.limits,
        ),
    )
    return RespondActivityTaskFailedByIdResponse()


def cancel(
    host: Host, request: RespondActivityTaskCanceledByIdRequest
) -> RespondActivityTaskCanceledByIdResponse:
    """The attempt ended because it was asked to."""
    decide(
        host,
        _started(host, request),
        lambda row, now: activity.cancel(row, now, request.details, request.identity),
    )
    return RespondActivityTaskCanceledByIdResponse()


def _started(host: Host, request: Request) -> Callable[[], PendingActivity]:
    """Finds the attempt that runs."""
    find = _open(host, request)
    return lambda: activity.check_attempt(find())


def _open(host: Host, request: Request) -> Callable[[], PendingActivity]:
    """Finds the activity, whatever its state.

    Raises:
        InvalidArgumentError, NotFoundError: the request names none.
    """
    validation.namespace(host, request.namespace)
    if not request.activity_id:
        raise validation.fail("ActivityId is not set on request.")
    if not request.workflow_id:
        # it would be an activity of its own, without a workflow
        raise NotFoundError(f"activity not found for ID: {request.activity_id}")
    validation.run_id(request.run_id)
    return lambda: _find(host, request)


def _find(host: Host, request: Request) -> PendingActivity:
    state = host.store.read_state(request.namespace, request.workflow_id, request.run_id)
    if state is None:
        raise validation.not_found(request.workflow_id, request.run_id)
    if not state.is_open:
        raise validation.completed()
    key = RunKey(
        namespace=request.namespace,
        workflow_id=request.workflow_id,
        run_id=state.recorded.run_id,
    )
    # the id of one whose end waits to be written may have been given to another
    for event_id, name in reversed(state.recorded.open_activities.items()):
        if name == request.activity_id:
            row = host.store.read_activity(key, event_id)
            if row is not None:
                return row
    raise NotFoundError(
        f"cannot find pending activity with ActivityID {request.activity_id}, check workflow "
        "execution history for more details"
    )
