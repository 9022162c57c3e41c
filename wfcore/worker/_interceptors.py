"""Hooks around activities, and the class that a user derives from to hook into a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from wfcore.activity import Info
from wfcore.protocol.payloads import Payload
from wfcore.replay.interceptors import WorkflowInboundInterceptor, WorkflowInterceptorClassInput


@dataclass
class ExecuteActivityInput:
    """For `ActivityInboundInterceptor.execute_activity`."""

    fn: Callable[..., Any]
    args: Sequence[Any]
    executor: Executor | None
    headers: Mapping[str, Payload]


class Interceptor:
    """What a worker is given to hook into its activities and workflows; override what you need."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - Temporal's name
        """Wrap the interceptor of an activity."""
        return next

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002 - Temporal's name
    ) -> type[WorkflowInboundInterceptor] | None:
        """The class of the interceptor that wraps each run, if any."""
        del input
        return None


class ActivityInboundInterceptor:
    """Around an activity's execution; by default everything goes to the next one."""

    def __init__(self, next: ActivityInboundInterceptor) -> None:  # noqa: A002 - Temporal's name
        self.next = next

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        """Called first, with what the activity's own calls go through; wrap and pass it on."""
        self.next.init(outbound)

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - Temporal's name
        """Run the activity."""
        return await self.next.execute_activity(input)


class ActivityOutboundInterceptor:
    """Around what an activity calls; by default everything goes to the next one."""

    def __init__(self, next: ActivityOutboundInterceptor) -> None:  # noqa: A002 - Temporal's name
        self.next = next

    def info(self) -> Info:
        """For `activity.info`."""
        return self.next.info()

    def heartbeat(self, *details: Any) -> None:
        """For `activity.heartbeat`."""
        self.next.heartbeat(*details)
