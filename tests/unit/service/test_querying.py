"""Queries: asked of a worker, answered by replay, see all that was recorded before."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.support.probing import Probe, Refusal
from tests.support.requests_json import marker, values
from wfcore.exceptions import DeadlineExceededError, FailedPreconditionError, QueryFailedError
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import QueryRejectCondition as Reject
from wfcore.protocol.enums import QueryResultType
from wfcore.protocol.failures import Failure
from wfcore.protocol.json_form import from_json
from wfcore.protocol.payloads import Payloads
from wfcore.protocol.rpc.info import WorkflowQuery
from wfcore.protocol.rpc.workflow_tasks import RespondQueryTaskCompletedRequest
from wfcore.protocol.rpc.workflows import QueryWorkflowRequest, QueryWorkflowResponse
from wfcore.service import querying
from wfcore.service.ports import QueryTask
from wfcore.testing.memory_ports import SimulatedClock

PATIENCE = 10


def waiting_probe() -> Probe:
    """A probe on whose clock threads really wait."""
    return Probe(clock=SimulatedClock(real_time=True))


def apart(call: Callable[[], Any]) -> "Future[Any]":
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - handed to who waits
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def ask(probe: Probe, workflow_id: str, timeout: float = PATIENCE) -> QueryWorkflowResponse:
    request = QueryWorkflowRequest(
        namespace="default",
        execution=WorkflowExecution(workflow_id=workflow_id),
        query=WorkflowQuery(query_type="state"),
    )
    return probe.service.query_workflow(request, timeout=timedelta(seconds=timeout))


def next_question(probe: Probe) -> Any:
    """The question that comes to a worker."""
    while True:
        task = probe.poll()
        if task.task_token:
            return task
        probe.dispatcher.wait_tasks("default", probe.queue, timedelta(seconds=PATIENCE))


def answered(probe: Probe, task: Any, **fields: Any) -> None:
    answer = RespondQueryTaskCompletedRequest(
        task_token=task.task_token, completed_type=QueryResultType.ANSWERED
    )
    probe.service.respond_query_task_completed(msgspec.structs.replace(answer, **fields))


def instantly(probe: Probe, answer: Callable[[QueryTask], None]) -> None:
    """Have each question answered as soon as it is asked."""
    send = probe.dispatcher.dispatch_query

    def sent(task: QueryTask) -> None:
        send(task)
        answer(task)

    probe.dispatcher.dispatch_query = sent  # type: ignore[method-assign]


def test_an_idle_run_is_asked_with_its_whole_history() -> None:
    probe = waiting_probe()
    workflow_id, run_id = probe.idle()
    asked = apart(lambda: ask(probe, workflow_id))
    task = next_question(probe)
    assert task.query.query_type == "state"
    assert task.workflow_execution.run_id == run_id
    assert [event.event_id for event in task.history.events] == [1, 2, 3, 4]
    result = from_json(Payloads, values(7))
    answered(probe, task, query_result=result)
    assert asked.result(PATIENCE).query_result == result
    assert len(probe.events(workflow_id)) == 4


def test_a_query_sees_a_signal_that_was_sent_before() -> None:
    probe = waiting_probe()
    workflow_id, _ = probe.idle()
    probe.signal(workflow_id)
    asked = apart(lambda: ask(probe, workflow_id))
    task = next_question(probe)
    assert not task.query  # the workflow task comes first
    probe.answer(task, marker())
    question = next_question(probe)
    assert question.query.query_type == "state"
    assert question.history.events[-1].event_type.name == "MARKER_RECORDED"
    answered(probe, question)
    assert asked.result(PATIENCE).query_rejected is None


def test_a_query_during_a_started_task_sees_what_came_during_it() -> None:
    probe = waiting_probe()
    workflow_id, _ = probe.run()
    task = probe.poll()
    probe.signal(workflow_id)
    asked = apart(lambda: ask(probe, workflow_id))
    probe.answer(task)
    following = next_question(probe)
    assert not following.query
    assert not asked.done()
    probe.answer(following)
    question = next_question(probe)
    assert question.query.query_type == "state"
    answered(probe, question)
    asked.result(PATIENCE)


def test_a_task_that_fails_is_waited_for_again() -> None:
    probe = waiting_probe()
    workflow_id, _ = probe.run()
    asked = apart(lambda: ask(probe, workflow_id))
    probe.fail_task(next_question(probe))
    probe.answer(next_question(probe))
    answered(probe, next_question(probe))
    asked.result(PATIENCE)


def test_a_failing_handler_is_the_askers_error() -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    why = Failure(message="no such state")

    def refuse(_task: QueryTask) -> None:
        answered(
            probe,
            probe.poll(),
            completed_type=QueryResultType.FAILED,
            error_message="no such state",
            failure=why,
        )

    instantly(probe, refuse)
    with pytest.raises(QueryFailedError, match="no such state") as caught:
        ask(probe, workflow_id)
    assert caught.value.failure == why


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED", "CANCELED", "TERMINATED", "TIMED_OUT"])
def test_a_closed_run_is_asked_or_rejected(status: str) -> None:
    probe = Probe()
    workflow_id, _ = probe.closed(status) if status != "TERMINATED" else probe.idle()
    if status == "TERMINATED":
        probe.terminate(workflow_id)
    if status == "TIMED_OUT":
        # its first task never completed, so that there is nothing to replay
        assert probe.query(workflow_id)["detail"] == "WorkflowNotReadyFailure"

    def rejected(condition: Reject) -> bool:
        answer = probe.query(workflow_id, queryRejectCondition=int(condition))
        if isinstance(answer, Refusal) or answer.query_rejected is None:
            return False
        assert answer.query_rejected.status.name == status
        return True

    instantly(probe, lambda _task: answered(probe, probe.poll()))
    assert rejected(Reject.NOT_OPEN)
    assert rejected(Reject.NOT_COMPLETED_CLEANLY) == (status != "COMPLETED")
    assert not rejected(Reject.NONE)


def test_an_open_run_is_rejected_by_no_condition() -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    instantly(probe, lambda _task: answered(probe, probe.poll()))
    for condition in Reject:
        answer = probe.query(workflow_id, queryRejectCondition=int(condition))
        assert answer.query_rejected is None


def test_a_message_may_bring_the_question() -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    seen: list[QueryTask] = []

    def by_message(task: QueryTask) -> None:
        seen.append(task)
        handed = probe.service.claim_query(task)
        assert handed.query == task.query
        answered(probe, handed)

    instantly(probe, by_message)
    ask(probe, workflow_id)
    assert seen[0].workflow_type == "wf"
    assert seen[0].task_queue == probe.queue


def test_an_answer_after_the_deadline_is_dropped() -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    with pytest.raises(DeadlineExceededError):
        ask(probe, workflow_id, timeout=5)
    assert not probe.poll().task_token


def test_many_questions_may_be_asked_of_an_idle_run() -> None:
    probe = waiting_probe()
    workflow_id, _ = probe.idle()
    asked = [apart(lambda: ask(probe, workflow_id)) for _ in range(3)]
    for _ in asked:
        answered(probe, next_question(probe))
    for future in asked:
        future.result(PATIENCE)


def test_a_worker_that_is_there_but_slow_is_waited_for() -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    wait = probe.dispatcher.wait_answer

    def worker_polls(query_id: str, timeout: timedelta) -> Any:
        found = wait(query_id, timeout)
        probe.dispatcher.note_worker("default", probe.queue)
        return found

    probe.dispatcher.wait_answer = worker_polls  # type: ignore[method-assign]
    with pytest.raises(DeadlineExceededError):
        ask(probe, workflow_id, timeout=100)


def test_a_run_that_no_worker_will_begin_says_so_where_workers_are_known() -> None:
    probe = waiting_probe()
    probe.dispatcher.lists_workers = True  # type: ignore[misc]
    workflow_id, _ = probe.run()
    begun = time.monotonic()
    with pytest.raises(FailedPreconditionError, match="not started: no worker"):
        ask(probe, workflow_id)
    assert time.monotonic() - begun < PATIENCE / 2


def test_a_run_that_a_worker_may_still_begin_is_waited_for() -> None:
    probe = waiting_probe()
    probe.dispatcher.lists_workers = True  # type: ignore[misc]
    probe.dispatcher.note_worker("default", probe.queue)
    workflow_id, _ = probe.run()
    with pytest.raises(DeadlineExceededError):
        ask(probe, workflow_id, timeout=2.5)


def test_a_question_that_got_lost_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(querying, "ASK_AGAIN_AFTER", timedelta(seconds=0.1))
    probe = waiting_probe()
    workflow_id, _ = probe.idle()
    send, lost = probe.dispatcher.dispatch_query, list[QueryTask]()

    def lose_first(task: QueryTask) -> None:
        if lost:
            send(task)
        else:
            lost.append(task)

    probe.dispatcher.dispatch_query = lose_first  # type: ignore[method-assign]
    asked = apart(lambda: ask(probe, workflow_id))
    question = next_question(probe)
    answered(probe, question)
    assert asked.result(PATIENCE).query_rejected is None
