"""Updates through the service: sent, answered, waited for, found again by their ids."""

import threading
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tests.support.probing import Probe, Refusal
from tests.support.requests_json import (
    accepted,
    answered,
    continue_as_new,
    failure,
    refused,
)
from wfcore.exceptions import (
    MultiOperationExecutionError,
    RPCStatusCode,
    WaitInsideTransactionError,
)
from wfcore.protocol.common import TaskQueue, WorkflowExecution, WorkflowType
from wfcore.protocol.enums import WorkflowIdConflictPolicy
from wfcore.protocol.json_form import to_json
from wfcore.protocol.rpc.cluster import DescribeNamespaceRequest
from wfcore.protocol.rpc.updates import (
    ExecuteMultiOperationRequest,
    ExecuteMultiOperationRequestOperation,
    PollWorkflowExecutionUpdateRequest,
    UpdateWorkflowExecutionRequest,
)
from wfcore.protocol.rpc.workflows import StartWorkflowExecutionRequest
from wfcore.protocol.updates import Input, Meta, Request
from wfcore.service import updating
from wfcore.service.updating import LONG_POLL
from wfcore.testing.memory_ports import MemoryTransaction, SimulatedClock

ENDED = [
    "WORKFLOW_TASK_SCHEDULED",
    "WORKFLOW_TASK_STARTED",
    "WORKFLOW_TASK_COMPLETED",
    "WORKFLOW_EXECUTION_UPDATE_ACCEPTED",
    "WORKFLOW_EXECUTION_UPDATE_COMPLETED",
]
BOTH = (accepted, answered)


def told(answer: Any) -> tuple[str, Any]:
    """The stage, and the result or the failure's type."""
    assert not isinstance(answer, Refusal), answer
    outcome = answer.outcome
    if outcome is None:
        return answer.stage.name, None
    if outcome.failure is not None:
        return answer.stage.name, outcome.failure.application_failure_info.type
    return answer.stage.name, outcome.success.payloads[0].data.decode()


@pytest.fixture
def probe() -> Probe:
    return Probe()


# ---- sent and answered


def test_the_caller_gets_the_outcome(probe: Probe) -> None:
    workflow_id, run_id = probe.idle()
    answer = probe.update(workflow_id, "u", partial(probe.say, *BOTH))
    assert told(answer) == ("COMPLETED", '"ok"')
    assert answer.update_ref.update_id == "u"
    assert answer.update_ref.workflow_execution.run_id == run_id
    assert probe.types(workflow_id)[4:] == ENDED


def test_a_worker_gets_the_request_with_a_task_of_which_nothing_is_stored(probe: Probe) -> None:
    workflow_id, _ = probe.idle()

    def look() -> None:
        task = probe.poll()
        [message] = task.messages
        assert (message.id, message.protocol_instance_id, message.event_id) == ("u/request", "u", 5)
        assert message.body.input.name == "set"
        assert message.body.meta.identity == "probe-client"
        kinds = [event.event_type.name for event in task.history.events]
        assert kinds[4:] == ["WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED"]
        assert task.started_event_id == 6
        assert len(probe.types(workflow_id)) == 4
        assert probe.describe(workflow_id).pending_workflow_task.state.name == "STARTED"
        probe.say(*BOTH, task=task)

    assert told(probe.update(workflow_id, "u", look, name="set"))[0] == "COMPLETED"


def test_the_same_poll_gets_its_messages_again(probe: Probe) -> None:
    workflow_id, run_id = probe.idle()
    key = probe.store.head("default", workflow_id, run_id).key  # type: ignore[union-attr]

    def twice() -> None:
        first = probe.service.claim_workflow_task(key, request_id="poll")
        again = probe.service.claim_workflow_task(key, request_id="poll")
        assert again == first
        assert len(again.messages) == 1
        probe.say(*BOTH, task=again)

    probe.update(workflow_id, "u", twice)


def test_a_refusal_answers_the_caller_and_leaves_nothing(probe: Probe) -> None:
    workflow_id, _ = probe.idle()
    answers: list[Any] = []
    answer = probe.update(workflow_id, "u", lambda: answers.append(probe.say(refused)))
    assert told(answer) == ("COMPLETED", "Rejected")
    assert len(probe.types(workflow_id)) == 4
    assert answers[0].reset_history_event_id == 3
    assert told(probe.poll_update(workflow_id, "u")) == ("COMPLETED", "Rejected")
    assert told(probe.update(workflow_id, "u", partial(probe.say, *BOTH)))[1] == '"ok"'


def test_a_failure_after_acceptance_is_the_outcome(probe: Probe) -> None:
    workflow_id, _ = probe.idle()
    fails = partial(answered, failure=failure("bad", "Bad"))
    answer = probe.update(workflow_id, "u", lambda: probe.say(accepted, fails))
    assert told(answer) == ("COMPLETED", "Bad")
    assert probe.status(workflow_id).name == "RUNNING"


def test_an_id_is_made_up_when_none_is_given(probe: Probe) -> None:
    workflow_id, _ = probe.idle()
    answer = probe.update(workflow_id, "", partial(probe.say, *BOTH))
    assert len(answer.update_ref.update_id) == 36


def test_an_answer_that_also_takes_the_next_task_gets_its_messages(probe: Probe) -> None:
    workflow_id, _ = probe.run()
    seconds: list[Any] = []

    def during() -> None:
        first = probe.poll()
        seconds.append(probe.update(workflow_id, "b", partial(inline, first)))

    def inline(first: Any) -> None:
        following = probe.say(*BOTH, task=first, returnNewWorkflowTask=True).workflow_task
        assert [message.protocol_instance_id for message in following.messages] == ["b"]
        assert following.history.events[-1].event_type.name == "WORKFLOW_TASK_STARTED"
        probe.say(refused, task=following)

    assert told(probe.update(workflow_id, "a", during)) == ("COMPLETED", '"ok"')
    assert told(seconds[0]) == ("COMPLETED", "Rejected")


def test_a_worker_that_keeps_runs_goes_back_to_what_is_stored(probe: Probe) -> None:
    workflow_id, _ = probe.idle()

    def one_then_another() -> None:
        first = probe.poll()
        probe.update(workflow_id, "b", partial(inline, first), stage="ACCEPTED")

    def inline(first: Any) -> None:
        answer = probe.say(refused, task=first, returnNewWorkflowTask=True, stickyAttributes={})
        assert answer.reset_history_event_id == 3
        following = answer.workflow_task
        assert [event.event_id for event in following.history.events] == [4, 5, 6]
        probe.say(*BOTH, task=following)

    assert told(probe.update(workflow_id, "a", one_then_another)) == ("COMPLETED", "Rejected")


# ---- stages


def test_a_call_may_wait_for_acceptance_only(probe: Probe) -> None:
    workflow_id, _ = probe.idle()
    answer = probe.update(workflow_id, "u", partial(probe.say, accepted), stage="ACCEPTED")
    assert told(answer) == ("ACCEPTED", None)
    assert told(probe.update(workflow_id, "u", stage="ACCEPTED")) == ("ACCEPTED", None)


def test_a_long_poll_ends_with_the_stage_that_was_reached(probe: Probe) -> None:
    workflow_id, _ = probe.idle()
    before = probe.clock.now()
    assert told(probe.update(workflow_id, "u")) == ("ADMITTED", None)
    assert probe.clock.now() - before == LONG_POLL
    assert told(probe.update(workflow_id, "u", partial(probe.say, accepted))) == ("ACCEPTED", None)


def test_a_caller_with_less_time_gets_an_error(probe: Probe) -> None:
    workflow_id, _ = probe.idle()
    before = probe.clock.now()
    assert probe.update(workflow_id, "u", timeout=5)["code"] == "NO_ANSWER"
    assert probe.clock.now() - before == timedelta(seconds=5)


@pytest.mark.parametrize("stage", ["UNSPECIFIED", "ADMITTED"])
def test_a_poll_without_a_stage_tells_at_once(probe: Probe, stage: str) -> None:
    workflow_id, _ = probe.idle()
    seen: list[Any] = []
    probe.update(
        workflow_id,
        "u",
        lambda: seen.append(probe.poll_update(workflow_id, "u", stage=stage)),
        partial(probe.say, *BOTH),
    )
    assert told(seen[0]) == ("ADMITTED", None)
    assert told(probe.poll_update(workflow_id, "u", stage=stage)) == ("COMPLETED", '"ok"')


def test_a_poll_waits_for_the_outcome(probe: Probe) -> None:
    workflow_id, _ = probe.idle()
    words: list[Any] = []

    def accept() -> None:
        task = probe.poll()
        words.extend(task.messages)
        probe.say(accepted, task=task)

    def finish() -> None:
        probe.signal(workflow_id)
        probe.answer(probe.poll(), messages=[answered(to_json(words[0]))])

    probe.update(workflow_id, "u", accept, stage="ACCEPTED")
    assert told(probe.poll_update(workflow_id, "u", finish)) == ("COMPLETED", '"ok"')


def test_who_waits_in_another_thread_is_told() -> None:
    probe = Probe(clock=SimulatedClock(real_time=True))
    workflow_id, _ = probe.idle()
    answers: list[Any] = []
    waiting = threading.Thread(
        target=lambda: answers.append(probe.update(workflow_id, "u")), daemon=True
    )
    waiting.start()
    deadline = threading.Event()
    for _ in range(500):
        if probe.store.read_update(probe.store.head("default", workflow_id).key, "u"):  # type: ignore[union-attr]
            break
        deadline.wait(0.01)
    probe.say(*BOTH)
    waiting.join(10)
    assert told(answers[0]) == ("COMPLETED", '"ok"')


# ---- known ids


def test_a_known_id_gets_the_outcome_and_the_handler_does_not_run_again(probe: Probe) -> None:
    workflow_id, _ = probe.idle()
    probe.update(workflow_id, "u", partial(probe.say, *BOTH))
    assert told(probe.update(workflow_id, "u", name="other")) == ("COMPLETED", '"ok"')
    assert not probe.poll().task_token
    probe.terminate(workflow_id)
    assert told(probe.update(workflow_id, "u")) == ("COMPLETED", '"ok"')
    assert told(probe.poll_update(workflow_id, "u")) == ("COMPLETED", '"ok"')


def test_an_accepted_update_fails_with_the_end_of_its_run(probe: Probe) -> None:
    workflow_id, _ = probe.idle()
    probe.update(workflow_id, "u", partial(probe.say, accepted), stage="ACCEPTED")
    answer = probe.poll_update(workflow_id, "u", lambda: probe.terminate(workflow_id))
    assert told(answer) == ("COMPLETED", "AcceptedUpdateCompletedWorkflow")


def test_after_continue_as_new_an_id_is_new_and_the_old_run_is_still_asked(probe: Probe) -> None:
    workflow_id, first = probe.idle()
    probe.update(workflow_id, "u", partial(probe.say, *BOTH))
    probe.signal(workflow_id)
    probe.step(continue_as_new())
    assert probe.poll_update(workflow_id, "u")["message"] == 'update "u" not found'
    assert told(probe.poll_update(workflow_id, "u", run_id=first)) == ("COMPLETED", '"ok"')
    probe.advance(2)
    assert told(probe.update(workflow_id, "u", partial(probe.say, *BOTH)))[0] == "COMPLETED"


def test_a_new_id_reaches_the_run_that_followed_while_the_lock_was_waited_for(
    probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow_id, first = probe.idle()
    probe.signal(workflow_id)
    task = probe.poll()
    load, followed = MemoryTransaction.load, list[bool]()

    def late(tx: MemoryTransaction, run_id: str) -> Any:
        if not followed:
            followed.append(True)
            answering = threading.Thread(target=probe.answer, args=(task, continue_as_new()))
            answering.start()
            answering.join(10)
        return load(tx, run_id)

    monkeypatch.setattr(MemoryTransaction, "load", late)
    answer = probe.update(workflow_id, "u", partial(probe.say, *BOTH))
    assert told(answer)[0] == "COMPLETED"
    assert answer.update_ref.workflow_execution.run_id != first


# ---- beside other calls


def test_a_question_does_not_wait_for_an_updates_task(probe: Probe) -> None:
    workflow_id, _ = probe.idle()
    asked: list[Any] = []
    dispatch = probe.dispatcher.dispatch_query

    def ask(task: Any) -> None:
        asked.append(task)
        dispatch(task)

    probe.dispatcher.dispatch_query = ask  # type: ignore[method-assign]
    probe.update(workflow_id, "u", lambda: probe.query(workflow_id, timeout=1), timeout=30)
    assert len(asked) == 1


def test_readers_see_the_task_that_is_not_stored(probe: Probe) -> None:
    workflow_id, _ = probe.idle()

    def look() -> None:
        probe.poll()
        shown = probe.call(
            "get_workflow_execution_history", {"execution": {"workflowId": workflow_id}}
        )
        kinds = [event.event_type.name for event in shown.history.events]
        assert kinds[4:] == ["WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED"]

    probe.update(workflow_id, "u", look)


def test_a_sweep_writes_a_task_that_nobody_takes(probe: Probe) -> None:
    workflow_id, _ = probe.idle()

    def wait() -> None:
        probe.advance(4.5)
        assert len(probe.types(workflow_id)) == 4
        probe.advance(1)

    probe.update(workflow_id, "u", wait, partial(probe.say, *BOTH))
    assert probe.types(workflow_id)[4:] == [
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_TIMED_OUT",
        *ENDED,
    ]


@pytest.mark.parametrize(
    ("method", "request_"),
    [
        ("update_workflow_execution", UpdateWorkflowExecutionRequest()),
        ("poll_workflow_execution_update", PollWorkflowExecutionUpdateRequest()),
        ("execute_multi_operation", ExecuteMultiOperationRequest()),
    ],
)
def test_inside_a_callers_transaction_nobody_waits(
    probe: Probe, method: str, request_: Any
) -> None:
    with (
        probe.store.callers_transaction(),
        pytest.raises(WaitInsideTransactionError, match=method),
    ):
        probe.call(method, request_)


# ---- update-with-start


def test_a_run_is_started_with_the_update_in_its_first_task(probe: Probe) -> None:
    answer = probe.update_with_start(partial(probe.say, *BOTH))
    started, updated = answer.responses
    assert told(updated.update_workflow) == ("COMPLETED", '"ok"')
    assert started.start_workflow.started
    assert started.start_workflow.first_execution_run_id == started.start_workflow.run_id
    assert started.start_workflow.status.name == "RUNNING"
    assert probe.types(probe.workflow_ids[-1]) == ["WORKFLOW_EXECUTION_STARTED", *ENDED]


def test_an_open_run_gets_the_update(probe: Probe) -> None:
    workflow_id, run_id = probe.idle()
    answer = probe.update_with_start(partial(probe.say, *BOTH), start={"workflowId": workflow_id})
    started = answer.responses[0].start_workflow
    assert (started.run_id, started.started) == (run_id, False)
    assert started.first_execution_run_id == ""
    assert probe.types(workflow_id)[4:] == ENDED


def test_a_known_update_is_found_whatever_the_policy(probe: Probe) -> None:
    workflow_id, run_id = probe.idle()
    probe.update(workflow_id, "u", partial(probe.say, *BOTH))
    answer = probe.update_with_start(
        start={
            "workflowId": workflow_id,
            "workflowIdConflictPolicy": "WORKFLOW_ID_CONFLICT_POLICY_FAIL",
        }
    )
    assert answer.responses[0].start_workflow.run_id == run_id
    assert told(answer.responses[1].update_workflow) == ("COMPLETED", '"ok"')


def test_an_open_run_may_be_replaced(probe: Probe) -> None:
    workflow_id, first = probe.idle()
    answer = probe.update_with_start(
        partial(probe.say, *BOTH),
        start={
            "workflowId": workflow_id,
            "workflowIdConflictPolicy": "WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING",
        },
    )
    assert answer.responses[0].start_workflow.started
    assert probe.status(workflow_id, first).name == "TERMINATED"
    assert told(answer.responses[1].update_workflow) == ("COMPLETED", '"ok"')


def test_the_default_policy_refuses_an_open_run(probe: Probe) -> None:
    workflow_id, run_id = probe.idle()
    with pytest.raises(MultiOperationExecutionError, match="could not be executed") as caught:
        probe.service.execute_multi_operation(_operations(probe, workflow_id))
    assert caught.value.status is RPCStatusCode.ALREADY_EXISTS
    failed, aborted = caught.value.statuses
    assert failed["code"] == 6
    [detail] = failed["details"]
    assert detail["@type"].endswith("errordetails.v1.WorkflowExecutionAlreadyStartedFailure")
    assert detail["runId"] == run_id
    assert aborted["message"] == "Operation was aborted."


def _operations(
    probe: Probe,
    workflow_id: str,
    conflict: WorkflowIdConflictPolicy = WorkflowIdConflictPolicy.UNSPECIFIED,
) -> ExecuteMultiOperationRequest:
    start = StartWorkflowExecutionRequest(
        namespace="default",
        workflow_id=workflow_id,
        workflow_type=WorkflowType(name="wf"),
        task_queue=TaskQueue(name=probe.queue),
        workflow_id_conflict_policy=conflict,
    )
    update = UpdateWorkflowExecutionRequest(
        namespace="default",
        workflow_execution=WorkflowExecution(workflow_id=workflow_id),
        request=Request(meta=Meta(update_id="u"), input=Input(name="u")),
    )
    return ExecuteMultiOperationRequest(
        namespace="default",
        operations=(
            ExecuteMultiOperationRequestOperation(start_workflow=start),
            ExecuteMultiOperationRequestOperation(update_workflow=update),
        ),
    )


def test_a_refused_update_lets_the_started_run_stand(probe: Probe) -> None:
    answer = probe.update_with_start(partial(probe.say, refused))
    assert told(answer.responses[1].update_workflow) == ("COMPLETED", "Rejected")
    assert probe.status(probe.workflow_ids[-1]).name == "RUNNING"


def test_a_limit_is_told_as_the_updates_failure(probe: Probe) -> None:
    workflow_id, _ = probe.idle()
    for number in range(10):
        probe.update(workflow_id, f"u{number}", timeout=0)
    request = _operations(probe, workflow_id, WorkflowIdConflictPolicy.USE_EXISTING)
    with pytest.raises(MultiOperationExecutionError, match="could not be executed") as caught:
        probe.service.execute_multi_operation(request)
    assert caught.value.status is RPCStatusCode.RESOURCE_EXHAUSTED
    aborted, failed = caught.value.statuses
    assert aborted["code"] == 10
    assert failed["code"] == 8
    assert failed["details"][0]["cause"] == "RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT"


def test_a_run_that_closes_meanwhile_is_followed_by_a_new_one(
    probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow_id, first = probe.idle()
    admit = updating.admit

    def late(*given: Any, **named: Any) -> Any:
        if probe.status(workflow_id).name == "RUNNING":
            probe.terminate(workflow_id)
        return admit(*given, **named)

    monkeypatch.setattr(updating, "admit", late)
    answer = probe.update_with_start(partial(probe.say, *BOTH), start={"workflowId": workflow_id})
    assert answer.responses[0].start_workflow.run_id != first
    assert told(answer.responses[1].update_workflow) == ("COMPLETED", '"ok"')


def test_a_namespace_tells_that_it_has_updates(probe: Probe) -> None:
    found = probe.service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
    assert found.namespace_info is not None
    assert found.namespace_info.capabilities is not None
    assert found.namespace_info.capabilities.sync_update
    assert found.namespace_info.capabilities.async_update
