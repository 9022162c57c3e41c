"""Updates: requests that a workflow validates, accepts and answers, and handles for them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Required, TypedDict, TypeVar, cast

from wfcore.client._errors import (
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from wfcore.client._interceptor import UpdateWithStartStartWorkflowInput
from wfcore.common import (
    UNSET,
    Priority,
    RetryPolicy,
    SearchAttributes,
    TypedSearchAttributes,
    VersioningOverride,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
    arg_or_args,
)
from wfcore.converter import WorkflowSerializationContext
from wfcore.exceptions import DeadlineExceededError
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import UpdateWorkflowExecutionLifecycleStage
from wfcore.protocol.rpc.updates import PollWorkflowExecutionUpdateRequest
from wfcore.protocol.updates import Outcome, UpdateRef, WaitPolicy
from wfcore.workflow import WorkflowDefinition

if TYPE_CHECKING:
    from wfcore.client._client import Client
    from wfcore.client._handles import WorkflowHandle

SelfType = TypeVar("SelfType")
ReturnType = TypeVar("ReturnType")
LocalReturnType = TypeVar("LocalReturnType")
_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class UpdateOptions(TypedDict, total=False):
    """The keyword arguments of an update that is given by its method."""

    id: str | None
    rpc_metadata: Mapping[str, str | bytes]
    rpc_timeout: timedelta | None


class UpdateOptionsWithArgs(UpdateOptions, total=False):
    """The keyword arguments of an update that takes several arguments."""

    args: Required[Sequence[Any]]


class AnyUpdateOptions(UpdateOptions, total=False):
    """The keyword arguments of an update that is given by its name."""

    args: Sequence[Any]
    result_type: Any


class WorkflowUpdateStage(IntEnum):
    """How far an update has come; nobody can wait for ADMITTED."""

    ADMITTED = UpdateWorkflowExecutionLifecycleStage.ADMITTED
    ACCEPTED = UpdateWorkflowExecutionLifecycleStage.ACCEPTED
    COMPLETED = UpdateWorkflowExecutionLifecycleStage.COMPLETED


class WorkflowUpdateHandle(Generic[LocalReturnType]):
    """Names an update of a workflow and gives its result; made by `WorkflowHandle` and `Client`."""

    def __init__(
        self,
        client: Client,
        id: str,  # noqa: A002 - Temporal's name
        workflow_id: str,
        *,
        workflow_run_id: str | None = None,
        result_type: Any = None,
        known_outcome: Outcome | None = None,
    ) -> None:
        self._client = client
        self._id = id
        self._workflow_id = workflow_id
        self._workflow_run_id = workflow_run_id
        self._result_type = result_type
        self._known_outcome = known_outcome

    @property
    def id(self) -> str:
        """The id of the update."""
        return self._id

    @property
    def workflow_id(self) -> str:
        """The id of the workflow."""
        return self._workflow_id

    @property
    def workflow_run_id(self) -> str | None:
        """The run that has the update; None means the current one."""
        return self._workflow_run_id

    def over(self, client: Client) -> WorkflowUpdateHandle[LocalReturnType]:
        """The same handle over another client."""
        return WorkflowUpdateHandle(
            client,
            self.id,
            self.workflow_id,
            workflow_run_id=self.workflow_run_id,
            result_type=self._result_type,
            known_outcome=self._known_outcome,
        )

    async def result(
        self,
        *,
        rpc_metadata: Mapping[str, str | bytes] = {},
        rpc_timeout: timedelta | None = None,
    ) -> LocalReturnType:
        """Wait for the update's end and give its result.

        Args:
            rpc_timeout: a limit for each call, not for the wait as a whole.

        Raises:
            WorkflowUpdateFailedError: it was refused or failed, or the workflow ended before it.
            WorkflowUpdateRPCTimeoutOrCancelledError: the call was given up; the update goes on.
            NotFoundError: the workflow has no such update.
        """
        outcome = await self.outcome(rpc_timeout)
        converter = self._client.data_converter.with_context(
            WorkflowSerializationContext(
                namespace=self._client.namespace, workflow_id=self.workflow_id
            )
        )
        if outcome.failure is not None:
            raise WorkflowUpdateFailedError(await converter.decode_failure(outcome.failure))
        hints = [self._result_type] if self._result_type else None
        results = await converter.decode_wrapper(outcome.success, hints)
        if len(results) > 1:
            warnings.warn(f"Expected single update result, got {len(results)}", stacklevel=2)
        result: Any = results[0] if results else None
        return cast("LocalReturnType", result)

    async def outcome(self, rpc_timeout: timedelta | None = None) -> Outcome:
        """How the update ended, once it has; see `result`."""
        request = PollWorkflowExecutionUpdateRequest(
            namespace=self._client.namespace,
            update_ref=UpdateRef(
                workflow_execution=WorkflowExecution(
                    workflow_id=self.workflow_id, run_id=self.workflow_run_id or ""
                ),
                update_id=self.id,
            ),
            identity=self._client.identity,
            wait_policy=WaitPolicy(lifecycle_stage=UpdateWorkflowExecutionLifecycleStage.COMPLETED),
        )
        while self._known_outcome is None:
            method = self._client.service.poll_workflow_execution_update
            answer = await waiting_call(self._client, method, request, rpc_timeout)
            self._known_outcome = answer.outcome
        return self._known_outcome


def refuse_admitted(stage: WorkflowUpdateStage) -> None:
    """Raises: ValueError: nobody can wait for this stage."""
    if stage is WorkflowUpdateStage.ADMITTED:
        raise ValueError("ADMITTED wait stage not supported")


async def waiting_call(
    client: Client,
    method: Callable[..., _Response],
    request: _Request,
    rpc_timeout: timedelta | None,
) -> _Response:
    """Make a call that waits for an update.

    Raises:
        WorkflowUpdateRPCTimeoutOrCancelledError: it was given up.
    """
    if rpc_timeout is not None:
        method = partial(method, timeout=rpc_timeout)
    try:
        return await client.calls.make(method, request, time_limit=rpc_timeout, waits=True)
    except (DeadlineExceededError, asyncio.CancelledError) as err:
        raise WorkflowUpdateRPCTimeoutOrCancelledError from err


class WithStartWorkflowOperation(Generic[SelfType, ReturnType]):
    """The start half of update-with-start: the workflow that is started unless it is open.

    Args:
        id_conflict_policy: what to do when a workflow of this id is open: USE_EXISTING updates it,
            FAIL refuses.

    All else as for `Client.start_workflow`. One serves for one call.
    """

    def __init__(
        self,
        workflow: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        id: str,  # noqa: A002 - Temporal's name
        task_queue: str,
        id_conflict_policy: WorkflowIDConflictPolicy,
        result_type: Any = None,
        execution_timeout: timedelta | None = None,
        run_timeout: timedelta | None = None,
        task_timeout: timedelta | None = None,
        id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        retry_policy: RetryPolicy | None = None,
        cron_schedule: str = "",
        memo: Mapping[str, Any] | None = None,
        search_attributes: SearchAttributes | TypedSearchAttributes | None = None,
        static_summary: str | None = None,
        static_details: str | None = None,
        start_delay: timedelta | None = None,
        priority: Priority = Priority.default,
        versioning_override: VersioningOverride | None = None,
        stack_level: int = 2,
    ) -> None:
        del stack_level  # a warning's place; there is none to give
        name, hint = WorkflowDefinition.name_and_result_type(workflow)
        self._start_workflow_input = UpdateWithStartStartWorkflowInput(
            workflow=name,
            args=arg_or_args(arg, args),
            id=id,
            task_queue=task_queue,
            execution_timeout=execution_timeout,
            run_timeout=run_timeout,
            task_timeout=task_timeout,
            id_reuse_policy=id_reuse_policy,
            id_conflict_policy=id_conflict_policy,
            retry_policy=retry_policy,
            cron_schedule=cron_schedule,
            memo=memo,
            search_attributes=search_attributes,
            start_delay=start_delay,
            headers={},
            static_summary=static_summary,
            static_details=static_details,
            ret_type=result_type or hint,
            priority=priority,
            versioning_override=versioning_override,
        )
        self._started: concurrent.futures.Future[WorkflowHandle[SelfType, ReturnType]] = (
            concurrent.futures.Future()
        )
        self._is_used = False

    async def workflow_handle(self) -> WorkflowHandle[SelfType, ReturnType]:
        """The handle of the workflow, once it is known to run.

        Raises:
            RPCError, WorkflowAlreadyStartedError: it could not be started.
        """
        if self._started.done():
            return self._started.result()
        return await asyncio.shield(asyncio.wrap_future(self._started))

    def use(self) -> UpdateWithStartStartWorkflowInput:
        """What to start.

        Raises:
            RuntimeError: it was used before.
        """
        if self._is_used:
            raise RuntimeError("WithStartWorkflowOperation cannot be reused")
        self._is_used = True
        return self._start_workflow_input

    def has_started(self, handle: WorkflowHandle[SelfType, ReturnType]) -> None:
        """The workflow runs."""
        self._started.set_result(handle)

    def has_failed(self, error: BaseException) -> None:
        """The workflow was not started, as far as is known."""
        self._started.set_exception(error)
