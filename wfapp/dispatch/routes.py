"""Celery's routes hold for its tasks whatever queue the workflow runs on.

An activity that names no queue goes to that of its workflow; a Celery task with a route of its own
goes to ``default`` instead, which for the dispatcher means: where Celery routes it. Replay compares
no queues, so that a route may change while runs are open.
"""

from collections.abc import Callable
from typing import Any

from wfapp.dispatch.queues import DEFAULT_TASK_QUEUE
from wfcore import workflow
from wfcore.worker import (
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)


class CeleryRoutes(Interceptor):
    """Lets Celery route activities that are its tasks; `has_route` tells which it does."""

    def __init__(self, has_route: Callable[[str], bool]) -> None:
        self._has_route = has_route

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002 - Temporal's name
    ) -> type[WorkflowInboundInterceptor]:
        """The class that wraps each run."""
        has_route = self._has_route

        class Inbound(WorkflowInboundInterceptor):
            def init(self, outbound: WorkflowOutboundInterceptor) -> None:
                self.next.init(_Outbound(outbound, has_route))

        return Inbound


class _Outbound(WorkflowOutboundInterceptor):
    def __init__(
        self, following: WorkflowOutboundInterceptor, has_route: Callable[[str], bool]
    ) -> None:
        super().__init__(following)
        self._has_route = has_route

    def start_activity(
        self,
        input: StartActivityInput,  # noqa: A002 - Temporal's name
    ) -> Any:
        if input.task_queue is None:
            # Not the workflow's code: what it reads may change between two replays.
            with workflow.unsafe.sandbox_unrestricted():
                routed = self._has_route(input.activity)
            if routed:
                input.task_queue = DEFAULT_TASK_QUEUE
        return super().start_activity(input)
