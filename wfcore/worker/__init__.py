"""Running workflow and activity tasks."""

from wfcore.replay.interceptors import WorkflowInterceptorClassInput
from wfcore.worker._activities import ActivityTaskRunner
from wfcore.worker._interceptors import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)
from wfcore.worker._registry import Registry

__all__ = [
    "ActivityInboundInterceptor",
    "ActivityOutboundInterceptor",
    "ActivityTaskRunner",
    "ExecuteActivityInput",
    "Interceptor",
    "Registry",
    "WorkflowInterceptorClassInput",
]
