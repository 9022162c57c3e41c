"""Starting workflows, and talking to them."""

from wfcore.activity import ActivityCancellationDetails
from wfcore.client._async_activities import (
    AsyncActivityHandle,
    AsyncActivityIDReference,
    CompleteAsyncActivityInput,
    FailAsyncActivityInput,
    HeartbeatAsyncActivityInput,
    ReportCancellationAsyncActivityInput,
)
from wfcore.client._calls import Calls, InlineCalls, ThreadCalls, run_inline
from wfcore.client._client import Client, ClientConfig, default_identity
from wfcore.client._errors import (
    AsyncActivityCancelledError,
    RPCTimeoutOrCancelledError,
    WorkflowContinuedAsNewError,
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from wfcore.client._executions import (
    WorkflowExecution,
    WorkflowExecutionCount,
    WorkflowExecutionCountAggregationGroup,
    WorkflowExecutionDescription,
)
from wfcore.client._handles import WorkflowHandle
from wfcore.client._history import WorkflowHistory, WorkflowHistoryEventFilterType
from wfcore.client._host import HostConnect, register_host
from wfcore.client._interceptor import (
    CancelWorkflowInput,
    CountWorkflowsInput,
    DescribeWorkflowInput,
    FetchWorkflowHistoryEventsInput,
    Interceptor,
    ListWorkflowsInput,
    OutboundInterceptor,
    QueryWorkflowInput,
    SignalWorkflowInput,
    StartWorkflowInput,
    StartWorkflowUpdateInput,
    StartWorkflowUpdateWithStartInput,
    TerminateWorkflowInput,
    UpdateWithStartStartWorkflowInput,
    UpdateWithStartUpdateWorkflowInput,
)
from wfcore.client._iterators import (
    WorkflowExecutionAsyncIterator,
    WorkflowHistoryEventAsyncIterator,
)
from wfcore.client._updates import (
    WithStartWorkflowOperation,
    WorkflowUpdateHandle,
    WorkflowUpdateStage,
)
from wfcore.common import HeaderCodecBehavior
from wfcore.exceptions import RPCError, RPCStatusCode
from wfcore.protocol.enums import WorkflowExecutionStatus

__all__ = [
    "ActivityCancellationDetails",
    "AsyncActivityCancelledError",
    "AsyncActivityHandle",
    "AsyncActivityIDReference",
    "Calls",
    "CancelWorkflowInput",
    "Client",
    "ClientConfig",
    "CompleteAsyncActivityInput",
    "CountWorkflowsInput",
    "DescribeWorkflowInput",
    "FailAsyncActivityInput",
    "FetchWorkflowHistoryEventsInput",
    "HeaderCodecBehavior",
    "HeartbeatAsyncActivityInput",
    "HostConnect",
    "InlineCalls",
    "Interceptor",
    "ListWorkflowsInput",
    "OutboundInterceptor",
    "QueryWorkflowInput",
    "RPCError",
    "RPCStatusCode",
    "RPCTimeoutOrCancelledError",
    "ReportCancellationAsyncActivityInput",
    "SignalWorkflowInput",
    "StartWorkflowInput",
    "StartWorkflowUpdateInput",
    "StartWorkflowUpdateWithStartInput",
    "TerminateWorkflowInput",
    "ThreadCalls",
    "UpdateWithStartStartWorkflowInput",
    "UpdateWithStartUpdateWorkflowInput",
    "WithStartWorkflowOperation",
    "WorkflowContinuedAsNewError",
    "WorkflowExecution",
    "WorkflowExecutionAsyncIterator",
    "WorkflowExecutionCount",
    "WorkflowExecutionCountAggregationGroup",
    "WorkflowExecutionDescription",
    "WorkflowExecutionStatus",
    "WorkflowFailureError",
    "WorkflowHandle",
    "WorkflowHistory",
    "WorkflowHistoryEventAsyncIterator",
    "WorkflowHistoryEventFilterType",
    "WorkflowQueryFailedError",
    "WorkflowQueryRejectedError",
    "WorkflowUpdateFailedError",
    "WorkflowUpdateHandle",
    "WorkflowUpdateRPCTimeoutOrCancelledError",
    "WorkflowUpdateStage",
    "default_identity",
    "register_host",
    "run_inline",
]
