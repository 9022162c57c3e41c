"""What callers may get wrong: a typed error that names the field, nothing written, others go on."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.support.probing import Probe, Refusal
from tests.support.requests_json import activity, complete
from wfcore.exceptions import InvalidArgumentError
from wfcore.protocol import commands
from wfcore.protocol.commands import Command
from wfcore.protocol.common import (
    ActivityType,
    Priority,
    RetryPolicy,
    TaskQueue,
    WorkflowExecution,
    WorkflowType,
)
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.protocol.message import Message
from wfcore.protocol.payloads import Memo, Payload, Payloads, SearchAttributes
from wfcore.protocol.rpc.activity_tasks import RespondActivityTaskFailedRequest
from wfcore.protocol.rpc.info import WorkflowQuery
from wfcore.protocol.rpc.workflow_tasks import (
    PollWorkflowTaskQueueRequest,
    RespondWorkflowTaskCompletedRequest,
)
from wfcore.protocol.rpc.workflows import (
    CountWorkflowExecutionsRequest,
    DescribeWorkflowExecutionRequest,
    GetWorkflowExecutionHistoryRequest,
    ListWorkflowExecutionsRequest,
    QueryWorkflowRequest,
    RequestCancelWorkflowExecutionRequest,
    SignalWithStartWorkflowExecutionRequest,
    SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
)
from wfcore.service import reading

NUL = "a\0b"
HALF = "a\ud800"
RUN = WorkflowExecution(workflow_id="open")
ONE = Payload(metadata={"encoding": b"json/plain"}, data=b"1")


def a_start(**fields: Any) -> StartWorkflowExecutionRequest:
    return StartWorkflowExecutionRequest(
        namespace="default",
        **{
            "workflow_id": "w",
            "workflow_type": WorkflowType(name="wf"),
            "task_queue": TaskQueue(name="q-probe"),
            **fields,
        },
    )


def a_signal(**fields: Any) -> SignalWorkflowExecutionRequest:
    given = {"workflow_execution": RUN, "signal_name": "s", **fields}
    return SignalWorkflowExecutionRequest(namespace="default", **given)


#: Fields that people and programs fill with texts, by the call and the name in the answer.
TEXTS: dict[str, tuple[str, Callable[[str], Message]]] = {
    "start: namespace": (
        "start_workflow_execution",
        lambda bad: msgspec.structs.replace(a_start(), namespace=bad),
    ),
    "start: workflowId": ("start_workflow_execution", lambda bad: a_start(workflow_id=bad)),
    "start: workflowType.name": (
        "start_workflow_execution",
        lambda bad: a_start(workflow_type=WorkflowType(name=bad)),
    ),
    "start: taskQueue.name": (
        "start_workflow_execution",
        lambda bad: a_start(task_queue=TaskQueue(name=bad)),
    ),
    "start: requestId": ("start_workflow_execution", lambda bad: a_start(request_id=bad)),
    "start: identity": ("start_workflow_execution", lambda bad: a_start(identity=bad)),
    "start: memo.fields: the key": (
        "start_workflow_execution",
        lambda bad: a_start(memo=Memo(fields={bad: ONE})),
    ),
    "start: searchAttributes.indexedFields: the key": (
        "start_workflow_execution",
        lambda bad: a_start(search_attributes=SearchAttributes(indexed_fields={bad: ONE})),
    ),
    "start: retryPolicy.nonRetryableErrorTypes[0]": (
        "start_workflow_execution",
        lambda bad: a_start(retry_policy=RetryPolicy(non_retryable_error_types=(bad,))),
    ),
    "signal: workflowExecution.workflowId": (
        "signal_workflow_execution",
        lambda bad: a_signal(workflow_execution=WorkflowExecution(workflow_id=bad)),
    ),
    "signal: signalName": ("signal_workflow_execution", lambda bad: a_signal(signal_name=bad)),
    "signal: requestId": ("signal_workflow_execution", lambda bad: a_signal(request_id=bad)),
    "signal: identity": ("signal_workflow_execution", lambda bad: a_signal(identity=bad)),
    "signal with start: signalName": (
        "signal_with_start_workflow_execution",
        lambda bad: SignalWithStartWorkflowExecutionRequest(
            namespace="default",
            workflow_id="open",
            workflow_type=WorkflowType(name="wf"),
            task_queue=TaskQueue(name="q-probe"),
            signal_name=bad,
        ),
    ),
    "cancel: reason": (
        "request_cancel_workflow_execution",
        lambda bad: RequestCancelWorkflowExecutionRequest(
            namespace="default", workflow_execution=RUN, reason=bad
        ),
    ),
    "terminate: reason": (
        "terminate_workflow_execution",
        lambda bad: TerminateWorkflowExecutionRequest(
            namespace="default", workflow_execution=RUN, reason=bad
        ),
    ),
    "query: query.queryType": (
        "query_workflow",
        lambda bad: QueryWorkflowRequest(
            namespace="default", execution=RUN, query=WorkflowQuery(query_type=bad)
        ),
    ),
    "describe: execution.workflowId": (
        "describe_workflow_execution",
        lambda bad: DescribeWorkflowExecutionRequest(
            namespace="default", execution=WorkflowExecution(workflow_id=bad)
        ),
    ),
    "list: query": (
        "list_workflow_executions",
        lambda bad: ListWorkflowExecutionsRequest(
            namespace="default", query=f"WorkflowId = '{bad}'"
        ),
    ),
    "count: query": (
        "count_workflow_executions",
        lambda bad: CountWorkflowExecutionsRequest(
            namespace="default", query=f"WorkflowId = '{bad}'"
        ),
    ),
    "poll: identity": (
        "poll_workflow_task_queue",
        lambda bad: PollWorkflowTaskQueueRequest(
            namespace="default", task_queue=TaskQueue(name="q-probe"), identity=bad
        ),
    ),
}


@pytest.mark.parametrize(("bad", "says"), [(NUL, "NUL"), (HALF, "surrogate")])
@pytest.mark.parametrize("what", TEXTS)
def test_texts_that_no_database_takes(what: str, bad: str, says: str) -> None:
    probe = Probe()
    probe.run("open")
    method, build = TEXTS[what]
    refused = probe.call(method, build(bad))
    assert isinstance(refused, Refusal)
    assert refused["code"] == "INVALID_ARGUMENT"
    assert refused["message"].startswith(what.partition(": ")[2])
    assert says in refused["message"]
    assert bad not in refused["message"]
    assert probe.types("open") == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED"]
    assert probe.store.head("default", "w") is None
    assert not isinstance(probe.start(), Refusal)


VALUES = {
    "workflowId must be of type str, not int": a_start(workflow_id=5),
    "workflowRunTimeout must be of type timedelta, not int": a_start(workflow_run_timeout=30),
    "workflowType must be of type WorkflowType, not str": a_start(workflow_type="wf"),
    "links must be of type tuple, not str": a_start(links="x"),
    "memo.fields must be of type dict, not list": a_start(memo=Memo(fields=[])),  # type: ignore[arg-type]
    "memo.fields['k'].metadata['encoding'] must be of type bytes, not str": a_start(
        memo=Memo(fields={"k": Payload(metadata={"encoding": "json/plain"})})  # type: ignore[dict-item]
    ),
    "input.payloads[1] must be of type Payload, not str": a_start(
        input=Payloads(payloads=(ONE, "1"))  # type: ignore[arg-type]
    ),
    "retryPolicy.backoffCoefficient is inf": a_start(
        retry_policy=RetryPolicy(backoff_coefficient=float("inf"))
    ),
    "priority.fairnessWeight is nan": a_start(priority=Priority(fairness_weight=float("nan"))),
    "retryPolicy.maximumAttempts is out of range": a_start(
        retry_policy=RetryPolicy(maximum_attempts=2**31)
    ),
    "priority.priorityKey must be of type int, not str": a_start(
        priority=Priority(priority_key="1")  # type: ignore[arg-type]
    ),
    "WorkflowId exceeds maximum allowed length (1001/1000)": a_start(workflow_id="é" * 500 + "x"),
    "RequestId length exceeds limit": a_start(request_id="r" * 1001),
    "the name of a search attribute exceeds maximum allowed length (1001/1000)": a_start(
        search_attributes=SearchAttributes(indexed_fields={"n" * 1001: ONE})
    ),
    "negative duration": a_start(workflow_run_timeout=timedelta.min),
    "Blob data size exceeds limit.": a_start(
        input=Payloads(payloads=(Payload(data=b"x" * (2 * 1024 * 1024)),))
    ),
}


@pytest.mark.parametrize("says", VALUES)
def test_values_that_no_start_takes(says: str) -> None:
    probe = Probe()
    refused = probe.call("start_workflow_execution", VALUES[says])
    assert isinstance(refused, Refusal)
    assert refused["code"] == "INVALID_ARGUMENT"
    assert says in refused["message"]
    assert probe.store.head("default", "w") is None
    probe.run()


LONG = timedelta.max


@pytest.mark.parametrize(
    "fields",
    [
        {"workflow_execution_timeout": LONG},
        {"workflow_run_timeout": LONG},
        {"workflow_task_timeout": LONG},
        {"workflow_start_delay": LONG},
        {"retry_policy": RetryPolicy(initial_interval=LONG)},
        {"retry_policy": RetryPolicy(maximum_interval=LONG)},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_durations_beyond_all_clocks_are_cut(fields: dict[str, Any]) -> None:
    probe = Probe()
    probe.service.start_workflow_execution(a_start(**fields))
    task = probe.poll()
    if task.task_token:
        probe.answer(task, complete())
    probe.advance(1)


# ---- workers' answers


def schedule(**fields: Any) -> Command:
    return Command.of(
        commands.ScheduleActivityTask(
            **{
                "activity_id": "a",
                "activity_type": ActivityType(name="act"),
                "task_queue": TaskQueue(name="q-probe"),
                "start_to_close_timeout": timedelta(seconds=5),
                **fields,
            }
        )
    )


BAD_COMMANDS = {
    "BadScheduleActivityAttributes: attributes.activityId holds a NUL": schedule(activity_id=NUL),
    "BadScheduleActivityAttributes: attributes.activityType.name holds half": schedule(
        activity_type=ActivityType(name=HALF)
    ),
    "BadScheduleActivityAttributes: attributes.taskQueue.name holds a NUL": schedule(
        task_queue=TaskQueue(name=NUL)
    ),
    "BadScheduleActivityAttributes: attributes.retryPolicy.backoffCoefficient is nan": schedule(
        retry_policy=RetryPolicy(backoff_coefficient=float("nan"))
    ),
    "BadScheduleActivityAttributes: attributes.startToCloseTimeout must be": schedule(
        start_to_close_timeout=5
    ),
    "BadStartTimerAttributes: attributes.timerId holds half": Command.of(
        commands.StartTimer(timer_id=HALF, start_to_fire_timeout=timedelta(seconds=1))
    ),
    "BadSearchAttributes: attributes.searchAttributes.indexedFields: the key": Command.of(
        commands.UpsertWorkflowSearchAttributes(
            search_attributes=SearchAttributes(indexed_fields={NUL: ONE})
        )
    ),
    "BadContinueAsNewAttributes: attributes.workflowType.name holds a NUL": Command.of(
        commands.ContinueAsNewWorkflowExecution(workflow_type=WorkflowType(name=NUL))
    ),
    "BadFailWorkflowExecutionAttributes: attributes.failure.message holds half": Command.of(
        commands.FailWorkflowExecution(failure=Failure(message=HALF))
    ),
}


@pytest.mark.parametrize("says", BAD_COMMANDS)
def test_a_command_that_cannot_be_stored_fails_the_task(says: str) -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    task = probe.poll()
    request = RespondWorkflowTaskCompletedRequest(
        namespace="default", task_token=task.task_token, commands=(BAD_COMMANDS[says],)
    )
    with pytest.raises(InvalidArgumentError, match="Attributes: "):
        probe.service.respond_workflow_task_completed(request)
    failed = probe.attributes(workflow_id, "WORKFLOW_TASK_FAILED")
    assert failed.failure.message.startswith(says)
    assert probe.status(workflow_id).name == "RUNNING"
    assert not isinstance(probe.step(complete()), Refusal)
    assert probe.status(workflow_id).name == "COMPLETED"


@pytest.mark.parametrize(
    "policy",
    [
        {"initialInterval": "86399999999999.9s", "maximumAttempts": 5},
        {"initialInterval": "1s", "backoffCoefficient": 1e300, "maximumInterval": "86399999999s"},
    ],
)
def test_an_activity_that_is_retried_after_ages(policy: dict[str, Any]) -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    probe.step(activity("a", probe.queue, retryPolicy=policy))
    for attempt in (2, 3):
        probe.answer_activity("failed", probe.poll_activity())
        (waiting,) = probe.describe(workflow_id).pending_activities
        assert waiting.attempt == attempt
        probe.clock.move_to(max(waiting.next_attempt_schedule_time, probe.clock.now()))
    assert not probe.service.sweep().failed


def test_a_failure_may_hold_nul_and_asks_for_no_eternal_delay() -> None:
    probe = Probe()
    workflow_id, _ = probe.with_activity()
    info = ApplicationFailureInfo(type="E\0", next_retry_delay=timedelta.max)
    request = RespondActivityTaskFailedRequest(
        namespace="default",
        task_token=probe.poll_activity().task_token,
        failure=Failure(message="bad byte \0", application_failure_info=info),
    )
    probe.service.respond_activity_task_failed(request)
    pending = probe.describe(workflow_id).pending_activities[0]
    assert pending.last_failure.message == "bad byte \0"
    assert pending.next_attempt_schedule_time is not None


# ---- tokens and filters


@pytest.mark.parametrize("event_id", [-1, 2**31, 2**64])
def test_page_tokens_are_not_believed(event_id: int) -> None:
    probe = Probe()
    workflow_id, run_id = probe.run()
    token = msgspec.json.encode(["h", run_id, event_id, False])
    request = GetWorkflowExecutionHistoryRequest(
        namespace="default",
        execution=WorkflowExecution(workflow_id=workflow_id),
        next_page_token=token,
    )
    assert probe.call("get_workflow_execution_history", request)["code"] == "INVALID_ARGUMENT"
    assert reading._decode_token(reading._token(run_id, 2**31 - 1)).event_id == 2**31 - 1


@pytest.mark.parametrize("day", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_times_at_the_end_of_time(day: str) -> None:
    refused = Probe().call("list_workflow_executions", {"query": f"StartTime > '{day}'"})
    assert refused["code"] == "INVALID_ARGUMENT"
    assert "unable to parse datetime" in refused["message"]
