"""Queries: a question to a worker, answered by replay; nothing of it is stored.

A question sees all that was recorded before it was asked: while a workflow task is outstanding it
waits until a task that started after it was asked is over.
"""

import threading
from collections import Counter
from datetime import datetime, timedelta

from wfcore.exceptions import (
    DeadlineExceededError,
    FailedPreconditionError,
    QueryFailedError,
    ResourceExhaustedCause,
    ResourceExhaustedError,
    WaitInsideTransactionError,
    WorkflowNotReadyError,
)
from wfcore.history.state import MutableState
from wfcore.protocol.common import TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import QueryRejectCondition as Reject
from wfcore.protocol.enums import QueryResultType, TaskQueueKind
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.events import History
from wfcore.protocol.rpc.info import QueryRejected, WorkflowQuery, WorkflowQueryResult
from wfcore.protocol.rpc.workflow_tasks import (
    PollWorkflowTaskQueueResponse,
    RespondQueryTaskCompletedRequest,
    RespondQueryTaskCompletedResponse,
)
from wfcore.protocol.rpc.workflows import QueryWorkflowRequest, QueryWorkflowResponse
from wfcore.service import tokens, validation
from wfcore.service.host import Host
from wfcore.service.ports import QueryTask, RunKey
from wfcore.service.tokens import QueryToken

#: How long a query waits when its caller doesn't say.
DEFAULT_TIMEOUT = timedelta(seconds=10)
#: How long a question waits for its answer before it is asked once more; doubled each time.
ASK_AGAIN_AFTER = timedelta(seconds=3)
#: How long nobody may ask for work of a queue before a question to it is given up.
NO_WORKER_AFTER = timedelta(seconds=30)
#: The same for a run that has not yet begun, where it is known at once who works.
NOT_BEGUN_AFTER = timedelta(seconds=1.5)
#: Attempt of a workflow task from which on new questions are refused.
FAILING_ATTEMPT = 3
#: Questions of one run that may wait for its workflow task (`history.MaxBufferedQueryCount`).
WAITING_LIMIT = 1


class Waiting:
    """How many questions wait for the workflow task of each run, in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[RunKey] = Counter()

    def enter(self, key: RunKey) -> bool:
        """Count a question; False when too many wait."""
        with self._lock:
            if self._counts[key] >= WAITING_LIMIT:
                return False
            self._counts[key] += 1
            return True

    def leave(self, key: RunKey) -> None:
        """A question goes on."""
        with self._lock:
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]


def query(
    host: Host,
    waiting: Waiting,
    request: QueryWorkflowRequest,
    timeout: timedelta = DEFAULT_TIMEOUT,
) -> QueryWorkflowResponse:
    """Ask a run; `timeout` is the caller's deadline.

    Raises:
        WaitInsideTransactionError: a worker would not see what the caller's transaction wrote.
        QueryFailedError: the handler failed, or there is none of that name.
        WorkflowNotReadyError: the run can't answer now.
        FailedPreconditionError: no worker asks for work of the run's queue.
        DeadlineExceededError: no answer in time.
    """
    if host.store.inside_callers_transaction():
        raise WaitInsideTransactionError("query_workflow")
    question = _checked(host, request)
    target = validation.execution(request.execution)
    state = host.store.read_state(request.namespace, target.workflow_id, target.run_id)
    if state is None:
        raise validation.not_found(target.workflow_id, target.run_id)
    if _is_rejected(state.recorded.status, request.query_reject_condition):
        return QueryWorkflowResponse(query_rejected=QueryRejected(status=state.recorded.status))
    until = host.store.now() + timeout
    _check_ready(state, until)
    key = RunKey(
        namespace=request.namespace,
        workflow_id=target.workflow_id,
        run_id=state.recorded.run_id,
    )
    if _is_pending(state):
        if not waiting.enter(key):
            raise ResourceExhaustedError(
                "consistent query buffer is full, this may be caused by too many queries "
                "and workflow not able to process query fast enough",
                ResourceExhaustedCause.BUSY_WORKFLOW,
            )
        try:
            _wait_for_task(host, key, state, until)
        finally:
            waiting.leave(key)
    return _response(_ask(host, key, state, question, until))


def _checked(host: Host, request: QueryWorkflowRequest) -> WorkflowQuery:
    validation.namespace(host, request.namespace)
    validation.execution(request.execution)
    if request.query is None:
        raise validation.fail("WorkflowQuery is not set on request.")
    if not request.query.query_type:
        raise validation.fail("QueryType is not set on request.")
    validation.blob(request.query.query_args, host.limits)
    return request.query


def _is_rejected(status: Status, condition: Reject) -> bool:
    if status is Status.PAUSED:
        return True
    if condition is Reject.NOT_OPEN:
        return status is not Status.RUNNING
    if condition is Reject.NOT_COMPLETED_CLEANLY:
        return status not in (Status.RUNNING, Status.COMPLETED)
    return False


def _check_ready(state: MutableState, until: datetime) -> None:
    """Whether the run has answered, or will answer, a workflow task in time."""
    recorded, task = state.recorded, state.volatile.task
    if not recorded.last_completed_event_id:
        if not state.is_open:
            raise WorkflowNotReadyError(
                "Workflow execution closed before WorkflowTaskStarted event"
            )
        if not recorded.first_task_scheduled and recorded.execution_time > until:
            raise WorkflowNotReadyError("Workflow task is not scheduled yet.")
    if state.is_open and task is not None and task.attempt >= FAILING_ATTEMPT:
        raise WorkflowNotReadyError(
            "Unable to query workflow due to Workflow Task in failed state."
        )


def _is_pending(state: MutableState) -> bool:
    """Whether the code has not yet seen all that is recorded."""
    if not state.is_open:
        return False
    task = state.volatile.task
    # a speculative task brings updates, which are recorded when it ends
    waits = task is not None and not task.is_speculative
    return waits or not state.recorded.last_completed_event_id


def _wait_for_task(host: Host, key: RunKey, asked: MutableState, until: datetime) -> None:
    last_event_id = asked.recorded.next_event_id - 1
    state: MutableState | None = asked
    patience = until
    if host.dispatcher.lists_workers:
        patience = min(until, host.store.now() + NOT_BEGUN_AFTER)
    while state is not None and _is_pending(state):
        if state.recorded.previous_started_event_id > last_event_id:
            return
        left = until - host.store.now()
        if left <= timedelta():
            raise _too_late()
        if until - left >= patience:
            _check_worker(host, state)
            patience = until
        wait = min(left, max(patience - (until - left), timedelta()))
        host.dispatcher.wait_history(key, state.recorded.next_event_id, wait)
        state = host.store.read_state(key.namespace, key.workflow_id, key.run_id)


def _check_worker(host: Host, state: MutableState) -> None:
    """Whether a worker will begin the run."""
    recorded, task = state.recorded, state.volatile.task
    if recorded.last_completed_event_id or task is None or task.started_at is not None:
        return
    if not host.dispatcher.worker_seen(recorded.namespace, recorded.task_queue):
        raise FailedPreconditionError(
            f"the workflow has not started: no worker serves the task queue "
            f"{recorded.task_queue!r}; its first task waits since {task.scheduled_at.isoformat()}"
        )


def _ask(
    host: Host, key: RunKey, state: MutableState, question: WorkflowQuery, until: datetime
) -> WorkflowQueryResult:
    queue = state.recorded.task_queue
    task = QueryTask(
        query_id=host.ids.request_id(),
        namespace=key.namespace,
        workflow_id=key.workflow_id,
        run_id=key.run_id,
        workflow_type=state.recorded.workflow_type,
        task_queue=queue,
        query=question,
    )
    host.dispatcher.dispatch_query(task)
    patience, give_up_at = ASK_AGAIN_AFTER, host.store.now() + NO_WORKER_AFTER
    try:
        while (left := until - (now := host.store.now())) > timedelta():
            if now >= give_up_at:
                if not host.dispatcher.worker_seen(key.namespace, queue):
                    raise FailedPreconditionError(
                        "no poller seen for task queue recently, worker may be down"
                    )
                give_up_at = now + NO_WORKER_AFTER
            wait = min(left, patience, give_up_at - now)
            answer = host.dispatcher.wait_answer(task.query_id, wait)
            if answer is not None:
                return answer
            if wait == patience:
                host.dispatcher.dispatch_query(task)  # the first one may be lost
                patience *= 2
        raise _too_late()
    finally:
        host.dispatcher.forget_query(task.query_id)


def _too_late() -> DeadlineExceededError:
    return DeadlineExceededError("no worker answered the query within the caller's time limit")


def _response(answer: WorkflowQueryResult) -> QueryWorkflowResponse:
    if answer.result_type is QueryResultType.FAILED:
        raise QueryFailedError(answer.error_message, answer.failure)
    return QueryWorkflowResponse(query_result=answer.answer)


# ---- the worker's side


def hand_out(host: Host, task: QueryTask) -> PollWorkflowTaskQueueResponse:
    """What a worker gets: the question and the whole history."""
    key = RunKey(namespace=task.namespace, workflow_id=task.workflow_id, run_id=task.run_id)
    state = host.store.read_state(task.namespace, task.workflow_id, task.run_id)
    if state is None:
        return PollWorkflowTaskQueueResponse()
    token = QueryToken(namespace=task.namespace, query_id=task.query_id)
    return PollWorkflowTaskQueueResponse(
        task_token=tokens.encode(token),
        workflow_execution=WorkflowExecution(workflow_id=task.workflow_id, run_id=task.run_id),
        workflow_type=WorkflowType(name=task.workflow_type),
        previous_started_event_id=state.recorded.previous_started_event_id,
        attempt=1,
        history=History(events=tuple(host.store.read_events(key))),
        workflow_execution_task_queue=TaskQueue(
            name=state.recorded.task_queue, kind=TaskQueueKind.NORMAL
        ),
        query=task.query,
    )


def respond(
    host: Host, request: RespondQueryTaskCompletedRequest
) -> RespondQueryTaskCompletedResponse:
    """A worker's answer to a question; one that nobody waits for any more is dropped."""
    token = tokens.decode(request.task_token, QueryToken)
    validation.namespace(host, request.namespace or token.namespace)
    host.dispatcher.answer_query(
        token.query_id,
        WorkflowQueryResult(
            result_type=request.completed_type,
            answer=request.query_result,
            error_message=request.error_message,
            failure=request.failure,
        ),
    )
    return RespondQueryTaskCompletedResponse()
