"""What workflow code asks for, turned into commands: the last hook of the outbound chain."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NoReturn

from wfcore.converter import encode_search_attributes, retry_policy_to_protocol
from wfcore.protocol import commands
from wfcore.protocol.common import TaskQueue, WorkflowType
from wfcore.protocol.enums import ContinueAsNewVersioningBehavior
from wfcore.protocol.metadata import EventGroupMarker
from wfcore.protocol.payloads import Header, Memo, SearchAttributes
from wfcore.replay.children import ChildTask, ChildWorkflow, Signal
from wfcore.replay.interceptors import (
    ContinueAsNewInput,
    SignalChildWorkflowInput,
    SignalExternalWorkflowInput,
    StartActivityInput,
    StartChildWorkflowInput,
    StartLocalActivityInput,
    WorkflowOutboundInterceptor,
)
from wfcore.replay.local_activities import LocalActivity
from wfcore.replay.matching import Line
from wfcore.replay.pending import Activity, ActivityTask, inherits_build_id
from wfcore.replay.state import RunState
from wfcore.workflow import ActivityHandle, ChildWorkflowHandle, ContinueAsNewError, Info
from wfcore.workflow._event_groups import markers


class ContinueAsNewRequest(ContinueAsNewError):  # noqa: N818 - no error, but a request
    """Carries the request through the code up to the task that runs it."""

    def __init__(self, call: ContinueAsNewInput, groups: tuple[EventGroupMarker, ...]) -> None:
        super().__init__("Continue as new")
        self.call = call
        self.groups = groups


class Outbound(WorkflowOutboundInterceptor):
    """The engine at the end of the chain."""

    def __init__(self, state: RunState) -> None:  # the last one has no next
        self._state = state
        #: The first of the chain, which handles call.
        self.first: WorkflowOutboundInterceptor = self

    def info(self) -> Info:
        return self._state.info

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:  # noqa: A002
        raise ContinueAsNewRequest(input, markers(input.event_groups))

    def start_activity(self, input: StartActivityInput) -> ActivityHandle[Any]:  # noqa: A002
        if not input.start_to_close_timeout and not input.schedule_to_close_timeout:
            raise ValueError(
                "Activity must have start_to_close_timeout or schedule_to_close_timeout"
            )
        operation = Activity(self._state, input)
        return ActivityTask(self._state, operation, operation.run())

    async def start_child_workflow(
        self,
        input: StartChildWorkflowInput,  # noqa: A002
    ) -> ChildWorkflowHandle[Any, Any]:
        child = ChildWorkflow(self._state, input)
        handle = ChildTask(self._state, child, self.chain, child.run())
        await child.wait_for_start()
        return handle

    async def signal_child_workflow(self, input: SignalChildWorkflowInput) -> None:  # noqa: A002
        await Signal(self._state, input).run()

    async def signal_external_workflow(
        self,
        input: SignalExternalWorkflowInput,  # noqa: A002
    ) -> None:
        await Signal(self._state, input).run()

    def start_local_activity(
        self,
        input: StartLocalActivityInput,  # noqa: A002
    ) -> ActivityHandle[Any]:
        if not input.start_to_close_timeout and not input.schedule_to_close_timeout:
            raise ValueError(
                "Activity must have start_to_close_timeout or schedule_to_close_timeout"
            )
        operation = LocalActivity(self._state, input)
        return ActivityTask(self._state, operation, operation.run())

    def chain(self) -> WorkflowOutboundInterceptor:
        """What handles call."""
        return self.first

    def issue_continue_as_new(self, request: ContinueAsNewRequest, line: Line) -> None:
        """Send the command; what the code left out is as in this run."""
        state, call = self._state, request.call
        started = state.started
        values = state.values
        memo = Memo(fields=values.encode_map(call.memo)) if call.memo else started.memo
        attributes = (
            encode_search_attributes(call.search_attributes)
            if call.search_attributes
            else SearchAttributes(indexed_fields=dict(state.search_attributes))
            if state.search_attributes
            else None
        )
        retry_policy = (
            retry_policy_to_protocol(call.retry_policy)
            if call.retry_policy
            else started.retry_policy
        )
        state.commands.add(
            commands.ContinueAsNewWorkflowExecution(
                workflow_type=WorkflowType(name=call.workflow or state.info.workflow_type),
                task_queue=TaskQueue(name=call.task_queue or state.info.task_queue),
                input=values.encode(call.args),
                # Zero, not absent, keeps the run's own: so the SDK says it, and the event shows it.
                workflow_run_timeout=call.run_timeout or timedelta(),
                workflow_task_timeout=call.task_timeout or timedelta(),
                backoff_start_interval=call.backoff_start_interval,
                retry_policy=retry_policy,
                header=Header(fields=dict(call.headers)) if call.headers else None,
                inherit_build_id=inherits_build_id(state, call.task_queue, call.versioning_intent),
                memo=memo,
                search_attributes=attributes,
                initial_versioning_behavior=ContinueAsNewVersioningBehavior(
                    call.initial_versioning_behavior or 0
                ),
            ),
            None,
            None,
            request.groups,
            line,
        )
