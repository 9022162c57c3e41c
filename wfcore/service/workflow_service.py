"""The service: one method for each of Temporal's RPCs, and what only a host calls.

Synchronous, without state of its own besides what waits in this process; any number of instances
over one store work together.
"""

from datetime import timedelta

from wfcore.history.effects import DispatchActivity, DispatchWorkflowTask
from wfcore.history.limits import DEFAULT_LIMITS, Limits
from wfcore.protocol.rpc.activity_executions import (
    PauseActivityExecutionRequest,
    PauseActivityExecutionResponse,
    ResetActivityExecutionRequest,
    ResetActivityExecutionResponse,
    UnpauseActivityExecutionRequest,
    UnpauseActivityExecutionResponse,
    UpdateActivityExecutionOptionsRequest,
    UpdateActivityExecutionOptionsResponse,
)
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
from wfcore.protocol.rpc.activity_tasks import (
    PollActivityTaskQueueRequest,
    PollActivityTaskQueueResponse,
    RecordActivityTaskHeartbeatByIdRequest,
    RecordActivityTaskHeartbeatByIdResponse,
    RecordActivityTaskHeartbeatRequest,
    RecordActivityTaskHeartbeatResponse,
    RespondActivityTaskCanceledByIdRequest,
    RespondActivityTaskCanceledByIdResponse,
    RespondActivityTaskCanceledRequest,
    RespondActivityTaskCanceledResponse,
    RespondActivityTaskCompletedByIdRequest,
    RespondActivityTaskCompletedByIdResponse,
    RespondActivityTaskCompletedRequest,
    RespondActivityTaskCompletedResponse,
    RespondActivityTaskFailedByIdRequest,
    RespondActivityTaskFailedByIdResponse,
    RespondActivityTaskFailedRequest,
    RespondActivityTaskFailedResponse,
)
from wfcore.protocol.rpc.cluster import (
    DescribeNamespaceRequest,
    DescribeNamespaceResponse,
    GetClusterInfoRequest,
    GetClusterInfoResponse,
    GetSystemInfoRequest,
    GetSystemInfoResponse,
    ListNamespacesRequest,
    ListNamespacesResponse,
)
from wfcore.protocol.rpc.updates import (
    ExecuteMultiOperationRequest,
    ExecuteMultiOperationResponse,
    PollWorkflowExecutionUpdateRequest,
    PollWorkflowExecutionUpdateResponse,
    UpdateWorkflowExecutionRequest,
    UpdateWorkflowExecutionResponse,
)
from wfcore.protocol.rpc.workflow_tasks import (
    PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse,
    RespondQueryTaskCompletedRequest,
    RespondQueryTaskCompletedResponse,
    RespondWorkflowTaskCompletedRequest,
    RespondWorkflowTaskCompletedResponse,
    RespondWorkflowTaskFailedRequest,
    RespondWorkflowTaskFailedResponse,
)
from wfcore.protocol.rpc.workflows import (
    CountWorkflowExecutionsRequest,
    CountWorkflowExecutionsResponse,
    DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryResponse,
    GetWorkflowExecutionHistoryReverseRequest,
    GetWorkflowExecutionHistoryReverseResponse,
    ListWorkflowExecutionsRequest,
    ListWorkflowExecutionsResponse,
    QueryWorkflowRequest,
    QueryWorkflowResponse,
    RequestCancelWorkflowExecutionRequest,
    RequestCancelWorkflowExecutionResponse,
    ResetWorkflowExecutionRequest,
    ResetWorkflowExecutionResponse,
    SignalWithStartWorkflowExecutionRequest,
    SignalWithStartWorkflowExecutionResponse,
    SignalWorkflowExecutionRequest,
    SignalWorkflowExecutionResponse,
    StartWorkflowExecutionRequest,
    StartWorkflowExecutionResponse,
    TerminateWorkflowExecutionRequest,
    TerminateWorkflowExecutionResponse,
)
from wfcore.service import (
    activities_by_id,
    activity_executions,
    activity_operations,
    activity_tasks,
    messaging,
    querying,
    reading,
    repairing,
    starting,
    starting_with_update,
    system,
    updating,
    workflow_tasks,
)
from wfcore.service.delivering import Courier
from wfcore.service.follow import Follow
from wfcore.service.host import Arrivals, Carrier, Host
from wfcore.service.local_workers import LocalWorkers
from wfcore.service.ports import START_WAIT, Dispatcher, Ids, QueryTask, RunKey, Store
from wfcore.service.sweeping import Sweeper, SweepReport
from wfcore.service.validation import wellformed_request


class WorkflowService:
    """Temporal's WorkflowService over the ports of a host.

    Errors are `wfcore.exceptions.RPCError` with the code, detail and text of Temporal's server.
    Inside a caller's transaction a start joins it, signals and cancel requests take effect with its
    commit, and calls that wait raise `WaitInsideTransactionError`.
    """

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        ids: Ids,
        limits: Limits = DEFAULT_LIMITS,
        arrivals: Arrivals = Arrivals.OPTIMISTIC,
        carrier: Carrier | None = None,
        start_wait: timedelta = START_WAIT,
    ) -> None:
        self.host = Host(
            store=store,
            dispatcher=dispatcher,
            ids=ids,
            carrier=carrier or Courier(),
            limits=limits,
            arrivals=arrivals,
            start_wait=start_wait,
        )
        #: workers in this process, for starts whose caller wants the first task at once
        self.local_workers = LocalWorkers()
        self._waiting_queries = querying.Waiting()
        self._sweeper = Sweeper(self.host)

    # ---- starting and steering

    def start_workflow_execution(
        self, request: StartWorkflowExecutionRequest
    ) -> StartWorkflowExecutionResponse:
        return starting.start(self.host, wellformed_request(request))

    def signal_workflow_execution(
        self, request: SignalWorkflowExecutionRequest
    ) -> SignalWorkflowExecutionResponse:
        return messaging.signal(self.host, wellformed_request(request))

    def signal_with_start_workflow_execution(
        self, request: SignalWithStartWorkflowExecutionRequest
    ) -> SignalWithStartWorkflowExecutionResponse:
        return starting.signal_with_start(self.host, wellformed_request(request))

    def request_cancel_workflow_execution(
        self, request: RequestCancelWorkflowExecutionRequest
    ) -> RequestCancelWorkflowExecutionResponse:
        return messaging.request_cancel(self.host, wellformed_request(request))

    def terminate_workflow_execution(
        self, request: TerminateWorkflowExecutionRequest
    ) -> TerminateWorkflowExecutionResponse:
        return messaging.terminate(self.host, wellformed_request(request))

    def reset_workflow_execution(
        self, request: ResetWorkflowExecutionRequest
    ) -> ResetWorkflowExecutionResponse:
        return repairing.reset_run(self.host, wellformed_request(request))

    def query_workflow(
        self,
        request: QueryWorkflowRequest,
        *,
        timeout: timedelta = querying.DEFAULT_TIMEOUT,
    ) -> QueryWorkflowResponse:
        return querying.query(
            self.host, self._waiting_queries, wellformed_request(request), timeout
        )

    def update_workflow_execution(
        self, request: UpdateWorkflowExecutionRequest, *, timeout: timedelta | None = None
    ) -> UpdateWorkflowExecutionResponse:
        return updating.update(self.host, wellformed_request(request), timeout)

    def poll_workflow_execution_update(
        self, request: PollWorkflowExecutionUpdateRequest, *, timeout: timedelta | None = None
    ) -> PollWorkflowExecutionUpdateResponse:
        return updating.poll(self.host, wellformed_request(request), timeout)

    def execute_multi_operation(
        self, request: ExecuteMultiOperationRequest, *, timeout: timedelta | None = None
    ) -> ExecuteMultiOperationResponse:
        return starting_with_update.execute(self.host, wellformed_request(request), timeout)

    # ---- reading

    def describe_workflow_execution(
        self, request: DescribeWorkflowExecutionRequest
    ) -> DescribeWorkflowExecutionResponse:
        return reading.describe(self.host, wellformed_request(request))

    def get_workflow_execution_history(
        self, request: GetWorkflowExecutionHistoryRequest, *, show_transient: bool = True
    ) -> GetWorkflowExecutionHistoryResponse:
        return reading.history(
            self.host, wellformed_request(request), show_transient=show_transient
        )

    def get_workflow_execution_history_reverse(
        self, request: GetWorkflowExecutionHistoryReverseRequest
    ) -> GetWorkflowExecutionHistoryReverseResponse:
        return reading.history_reverse(self.host, wellformed_request(request))

    def list_workflow_executions(
        self, request: ListWorkflowExecutionsRequest
    ) -> ListWorkflowExecutionsResponse:
        return reading.list_runs(self.host, wellformed_request(request))

    def count_workflow_executions(
        self, request: CountWorkflowExecutionsRequest
    ) -> CountWorkflowExecutionsResponse:
        return reading.count_runs(self.host, wellformed_request(request))

    # ---- workflow tasks

    def poll_workflow_task_queue(
        self,
        request: PollWorkflowTaskQueueRequest,
        *,
        owner: str = "",
        timeout: timedelta | None = None,
    ) -> PollWorkflowTaskQueueResponse:
        return workflow_tasks.poll(
            self.host, wellformed_request(request), owner=owner, timeout=timeout
        )

    def respond_workflow_task_completed(
        self,
        request: RespondWorkflowTaskCompletedRequest,
        *,
        owner: str = "",
        claim_id: str = "",
    ) -> RespondWorkflowTaskCompletedResponse:
        return workflow_tasks.complete(
            self.host, wellformed_request(request), owner=owner, claim_id=claim_id
        )

    def respond_workflow_task_failed(
        self, request: RespondWorkflowTaskFailedRequest
    ) -> RespondWorkflowTaskFailedResponse:
        return workflow_tasks.fail(self.host, wellformed_request(request))

    def respond_query_task_completed(
        self, request: RespondQueryTaskCompletedRequest
    ) -> RespondQueryTaskCompletedResponse:
        return querying.respond(self.host, wellformed_request(request))

    # ---- activity tasks

    def poll_activity_task_queue(
        self,
        request: PollActivityTaskQueueRequest,
        *,
        owner: str = "",
        timeout: timedelta | None = None,
    ) -> PollActivityTaskQueueResponse:
        return activity_tasks.poll(
            self.host, wellformed_request(request), owner=owner, timeout=timeout
        )

    def record_activity_task_heartbeat(
        self, request: RecordActivityTaskHeartbeatRequest
    ) -> RecordActivityTaskHeartbeatResponse:
        return activity_tasks.heartbeat(self.host, wellformed_request(request))

    def respond_activity_task_completed(
        self, request: RespondActivityTaskCompletedRequest, *, follow: Follow | None = None
    ) -> RespondActivityTaskCompletedResponse:
        answer = activity_tasks.complete(self.host, wellformed_request(request), follow=follow)
        workflow_tasks.hand_out(self.host, request.task_token, follow)
        return answer

    def respond_activity_task_failed(
        self, request: RespondActivityTaskFailedRequest, *, follow: Follow | None = None
    ) -> RespondActivityTaskFailedResponse:
        answer = activity_tasks.fail(self.host, wellformed_request(request), follow=follow)
        workflow_tasks.hand_out(self.host, request.task_token, follow)
        return answer

    def respond_activity_task_canceled(
        self, request: RespondActivityTaskCanceledRequest, *, follow: Follow | None = None
    ) -> RespondActivityTaskCanceledResponse:
        answer = activity_tasks.cancel(self.host, wellformed_request(request), follow=follow)
        workflow_tasks.hand_out(self.host, request.task_token, follow)
        return answer

    # ---- activities completed from outside

    def record_activity_task_heartbeat_by_id(
        self, request: RecordActivityTaskHeartbeatByIdRequest
    ) -> RecordActivityTaskHeartbeatByIdResponse:
        return activities_by_id.heartbeat(self.host, wellformed_request(request))

    def respond_activity_task_completed_by_id(
        self, request: RespondActivityTaskCompletedByIdRequest
    ) -> RespondActivityTaskCompletedByIdResponse:
        return activities_by_id.complete(self.host, wellformed_request(request))

    def respond_activity_task_failed_by_id(
        self, request: RespondActivityTaskFailedByIdRequest
    ) -> RespondActivityTaskFailedByIdResponse:
        return activities_by_id.fail(self.host, wellformed_request(request))

    def respond_activity_task_canceled_by_id(
        self, request: RespondActivityTaskCanceledByIdRequest
    ) -> RespondActivityTaskCanceledByIdResponse:
        return activities_by_id.cancel(self.host, wellformed_request(request))

    # ---- operations on pending activities

    def pause_activity(self, request: PauseActivityRequest) -> PauseActivityResponse:
        return activity_operations.pause(self.host, wellformed_request(request))

    def unpause_activity(self, request: UnpauseActivityRequest) -> UnpauseActivityResponse:
        return activity_operations.unpause(self.host, wellformed_request(request))

    def reset_activity(self, request: ResetActivityRequest) -> ResetActivityResponse:
        return activity_operations.reset(self.host, wellformed_request(request))

    def update_activity_options(
        self, request: UpdateActivityOptionsRequest
    ) -> UpdateActivityOptionsResponse:
        return activity_operations.update_options(self.host, wellformed_request(request))

    def pause_activity_execution(
        self, request: PauseActivityExecutionRequest
    ) -> PauseActivityExecutionResponse:
        return activity_executions.pause(self.host, wellformed_request(request))

    def unpause_activity_execution(
        self, request: UnpauseActivityExecutionRequest
    ) -> UnpauseActivityExecutionResponse:
        return activity_executions.unpause(self.host, wellformed_request(request))

    def reset_activity_execution(
        self, request: ResetActivityExecutionRequest
    ) -> ResetActivityExecutionResponse:
        return activity_executions.reset(self.host, wellformed_request(request))

    def update_activity_execution_options(
        self, request: UpdateActivityExecutionOptionsRequest
    ) -> UpdateActivityExecutionOptionsResponse:
        return activity_executions.update_options(self.host, wellformed_request(request))

    # ---- system and namespaces

    def get_system_info(self, request: GetSystemInfoRequest) -> GetSystemInfoResponse:
        return system.system_info()

    def get_cluster_info(self, request: GetClusterInfoRequest) -> GetClusterInfoResponse:
        return system.cluster_info()

    def describe_namespace(self, request: DescribeNamespaceRequest) -> DescribeNamespaceResponse:
        return system.describe_namespace(self.host, wellformed_request(request))

    def list_namespaces(self, request: ListNamespacesRequest) -> ListNamespacesResponse:
        return system.list_namespaces(self.host, wellformed_request(request))

    # ---- what a host calls: messages name the work, claims decide

    def claim_workflow_task(
        self,
        task: RunKey | DispatchWorkflowTask,
        *,
        identity: str = "",
        owner: str = "",
        request_id: str = "",
        after_event_id: int = 0,
    ) -> PollWorkflowTaskQueueResponse:
        """Take the workflow task of a run, if it waits; an empty answer when it doesn't."""
        key = RunKey(namespace=task.namespace, workflow_id=task.workflow_id, run_id=task.run_id)
        return workflow_tasks.claim(
            self.host,
            key,
            identity=identity,
            owner=owner,
            request_id=request_id,
            after_event_id=after_event_id,
        )

    def claim_activity(
        self,
        task: DispatchActivity,
        *,
        identity: str = "",
        owner: str = "",
        request_id: str = "",
    ) -> PollActivityTaskQueueResponse:
        """Take the attempt that a message names, if it waits; else an empty answer."""
        return activity_tasks.claim(
            self.host, task, identity=identity, owner=owner, request_id=request_id
        )

    def claim_query(self, task: QueryTask) -> PollWorkflowTaskQueueResponse:
        """The question that a message brings, with the history to answer it from."""
        return querying.hand_out(self.host, task)

    def sweep(self, limit: int = 100) -> SweepReport:
        """Do what has come due: deadlines of runs and activities, arrivals that nobody took in."""
        return self._sweeper.sweep(limit)

    def lose_worker(self, owner: str, why: str, limit: int = 100) -> int:
        """A worker process is dead: end its claims; gives how many, repeat until 0."""
        return self._sweeper.lose_worker(owner, why, limit)
