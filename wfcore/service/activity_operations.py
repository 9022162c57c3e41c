"""Pause, unpause, reset and new options of pending activities; texts are those of the server."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from wfcore.exceptions import NotFoundError
from wfcore.history.activity_orders import (
    OperateActivities,
    Order,
    Pause,
    Reset,
    Unpause,
    UpdateOptions,
)
from wfcore.history.machines.activity_operations import options_of
from wfcore.history.state import PendingActivity
from wfcore.protocol.common import TaskQueue, WorkflowExecution
from wfcore.protocol.enums import TaskQueueKind
from wfcore.protocol.rpc.activity_operations import (
    PauseActivityRequest,
    PauseActivityResponse,
    ResetActivityRequest,
    ResetActivityResponse,
    UnpauseActivityRequest,
    UnpauseActivityResponse,
    UpdateActivityOptionsRequest,
    UpdateActivityOptionsResponse,
)
from wfcore.protocol.rpc.info import ActivityOptions
from wfcore.service import validation
from wfcore.service.host import Host
from wfcore.service.transacting import TRIES, change_run

_ZERO = timedelta(0)

Request = (
    PauseActivityRequest
    | UnpauseActivityRequest
    | ResetActivityRequest
    | UpdateActivityOptionsRequest
)


def pause(host: Host, request: PauseActivityRequest) -> PauseActivityResponse:
    """Keep attempts from being taken; one that runs goes on, and is told by its heartbeat."""
    order = Pause(identity=request.identity, reason=request.reason, request_id=request.request_id)
    _operate(host, request, order)
    return PauseActivityResponse()


def unpause(host: Host, request: UnpauseActivityRequest) -> UnpauseActivityResponse:
    """Let attempts be taken again, at once; of what isn't paused nothing changes."""
    order = Unpause(
        reset_attempts=request.reset_attempts,
        reset_heartbeat=request.reset_heartbeat,
        jitter=_jitter(request.jitter),
    )
    _operate(host, request, order, every=request.unpause_all)
    return UnpauseActivityResponse()


def reset(host: Host, request: ResetActivityRequest) -> ResetActivityResponse:
    """Begin with the first attempt again, at once; one that runs is told by its heartbeat."""
    order = Reset(
        reset_heartbeat=request.reset_heartbeat,
        keep_paused=request.keep_paused,
        restore_original=request.restore_original_options,
        jitter=_jitter(request.jitter),
    )
    _operate(host, request, order, every=request.match_all)
    return ResetActivityResponse()


def update_options(
    host: Host, request: UpdateActivityOptionsRequest
) -> UpdateActivityOptionsResponse:
    """Change options; an attempt that waits is offered by the new ones."""
    mask = request.update_mask.paths if request.update_mask is not None else ()

    def check() -> None:
        if request.restore_original and mask:
            raise validation.fail("Both UpdateMask and RestoreOriginal are provided")
        if not request.restore_original and request.update_mask is None:
            raise validation.fail("UpdateMask is not provided")

    order = UpdateOptions(
        options=request.activity_options or ActivityOptions(),
        paths=mask,
        restore_original=request.restore_original,
    )
    rows = _operate(host, request, order, every=request.match_all, check=check)
    options = options_of(rows[0])
    # of the original options the server tells the queue's name alone
    kind = TaskQueueKind.UNSPECIFIED if request.restore_original else TaskQueueKind.NORMAL
    queue = TaskQueue(name=rows[0].task_queue, kind=kind)
    return UpdateActivityOptionsResponse(
        activity_options=msgspec.structs.replace(options, task_queue=queue)
    )


def _jitter(given: timedelta | None) -> timedelta:
    return max(given or _ZERO, _ZERO)


def _operate(
    host: Host,
    request: Request,
    order: Order,
    *,
    every: bool = False,
    check: Callable[[], Any] = lambda: None,
) -> list[PendingActivity]:
    """Give an order to the current run or the one that is named.

    Raises:
        NotFoundError: there is no such run, it is closed, or has no such activity.
        InvalidArgumentError: the request doesn't say what is meant, or asks for what can't be.
        FailedPreconditionError: an activity is paused by another request.
    """
    validation.namespace(host, request.namespace)
    target = request.execution or WorkflowExecution()
    if not target.workflow_id:
        raise validation.fail("WorkflowId is not set on request.")
    validation.run_id(target.run_id)
    if not (every or request.id or request.type):
        raise validation.fail("Either Activity.Id or Activity.Type should be set on request.")
    check()
    asked = OperateActivities(
        order=order,
        activity_id="" if every else request.id,
        activity_type="" if every else request.type,
    )
    for _ in range(TRIES):
        head = host.store.head(request.namespace, target.workflow_id, target.run_id)
        if head is None:
            raise validation.not_found(target.workflow_id, target.run_id)
        if not validation.is_open(head.status):
            break
        try:
            missing = "workflow execution not found"
            return change_run(host, head.key, asked, missing=missing).selected
        except NotFoundError:
            now = host.store.head(request.namespace, target.workflow_id, target.run_id)
            if now is not None and now.key == head.key and validation.is_open(now.status):
                raise
            # it closed meanwhile; without a run id the order goes to the run that followed
    raise validation.completed()
