"""Running workflow and activity tasks."""

from wfcore.replay.cache import InstanceCache
from wfcore.replay.interceptors import (
    ContinueAsNewInput,
    ExecuteWorkflowInput,
    HandleQueryInput,
    HandleSignalInput,
    HandleUpdateInput,
    SignalChildWorkflowInput,
    SignalExternalWorkflowInput,
    StartActivityInput,
    StartChildWorkflowInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from wfcore.worker._activities import MAX_HEARTBEAT_THROTTLE, ActivityTaskRunner
from wfcore.worker._alarms import Alarm, Alarms
from wfcore.worker._interceptors import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)
from wfcore.worker._local_activities import LocalActivityRunner
from wfcore.worker._registry import Registry
from wfcore.worker._replayer import (
    Replayer,
    ReplayerConfig,
    WorkflowReplayResult,
    WorkflowReplayResults,
)
from wfcore.worker._runners import (
    SandboxedWorkflowRunner,
    UnsandboxedWorkflowRunner,
    WorkflowRunner,
)
from wfcore.worker._worker import Worker, WorkerConfig
from wfcore.worker._workflow_tasks import WorkflowTaskRunner

__all__ = [
    "MAX_HEARTBEAT_THROTTLE",
    "ActivityInboundInterceptor",
    "ActivityOutboundInterceptor",
    "ActivityTaskRunner",
    "Alarm",
    "Alarms",
    "ContinueAsNewInput",
    "ExecuteActivityInput",
    "ExecuteWorkflowInput",
    "HandleQueryInput",
    "HandleSignalInput",
    "HandleUpdateInput",
    "InstanceCache",
    "Interceptor",
    "LocalActivityRunner",
    "Registry",
    "Replayer",
    "ReplayerConfig",
    "SandboxedWorkflowRunner",
    "SignalChildWorkflowInput",
    "SignalExternalWorkflowInput",
    "StartActivityInput",
    "StartChildWorkflowInput",
    "StartLocalActivityInput",
    "UnsandboxedWorkflowRunner",
    "Worker",
    "WorkerConfig",
    "WorkflowInboundInterceptor",
    "WorkflowInterceptorClassInput",
    "WorkflowOutboundInterceptor",
    "WorkflowReplayResult",
    "WorkflowReplayResults",
    "WorkflowRunner",
    "WorkflowTaskRunner",
]
