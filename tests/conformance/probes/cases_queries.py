"""Queries and the answers of those who are asked."""

from typing import Any

from tests.conformance.probes.cases import add_each, case
from tests.support.probing import Answer, Probe
from tests.support.requests_json import big
from wfcore.protocol.enums import QueryResultType
from wfcore.protocol.rpc.workflow_tasks import RespondQueryTaskCompletedRequest


def _failing(probe: Probe, failures: int) -> str:
    workflow_id, _ = probe.idle()
    probe.signal(workflow_id)
    for _ in range(failures):
        probe.fail_task(probe.poll())
    return workflow_id


@case("query", "the workflow's task is at attempt 3")
def _attempt_3(probe: Probe) -> Answer:
    return probe.query(_failing(probe, 2))


@case("query", "the workflow's task is at attempt 4")
def _attempt_4(probe: Probe) -> Answer:
    return probe.query(_failing(probe, 3))


@case("query", "cron run waiting for its time")
def _cron_waits(probe: Probe) -> Answer:
    workflow_id, _ = probe.run(cronSchedule="@hourly")
    return probe.query(workflow_id, 8)


@case("query", "handler failed or unknown query (worker's message passed on)")
def _handler_failed(probe: Probe) -> Answer:
    workflow_id, _ = probe.idle()
    before = probe.types(workflow_id)

    def ask(task: Any) -> None:
        question(task)
        handed = probe.poll()
        assert handed.query.query_type == "q"
        assert [event.event_type.name for event in handed.history.events] == before
        assert (handed.previous_started_event_id, handed.started_event_id) == (3, 0)
        answer = RespondQueryTaskCompletedRequest(
            task_token=handed.task_token,
            completed_type=QueryResultType.FAILED,
            error_message="unknown query q, known: []",
        )
        probe.service.respond_query_task_completed(answer)

    question = probe.dispatcher.dispatch_query
    probe.dispatcher.dispatch_query = ask  # type: ignore[method-assign]
    answer = probe.query(workflow_id)
    assert probe.types(workflow_id) == before
    return answer


@case("query", "another query is buffered already (limit 1)")
def _buffered(probe: Probe) -> Answer:
    workflow_id, _ = probe.idle()
    probe.signal(workflow_id)
    answers: list[Answer] = []
    wait = probe.dispatcher.wait_history

    def ask_again(*given: Any) -> None:
        if not answers:
            answers.append(probe.query(workflow_id))
        wait(*given)

    probe.dispatcher.wait_history = ask_again  # type: ignore[method-assign]
    probe.query(workflow_id)
    return answers[0]


@case("query", "run terminated before its first task completed")
def _never_started(probe: Probe) -> Answer:
    workflow_id, _ = probe.run()
    probe.terminate(workflow_id)
    return probe.query(workflow_id)


@case("query", "first task scheduled, nobody polls")
def _nobody_polls(probe: Probe) -> Answer:
    return probe.query(probe.run()[0], timeout=25)


@case("query", "during the start delay (waited 25 s)")
def _delayed(probe: Probe) -> Answer:
    return probe.query(probe.run(workflowStartDelay="60s")[0], timeout=25)


@case("query", "during the start delay, after a plain signal (waited 8 s)")
def _delayed_signalled(probe: Probe) -> Answer:
    workflow_id, _ = probe.run(workflowStartDelay="60s")
    probe.signal(workflow_id)
    return probe.query(workflow_id, timeout=8)


@case(
    "query",
    "during a start delay that ends before the caller's deadline (4 s of 6 s), no worker",
)
def _delay_ends(probe: Probe) -> Answer:
    return probe.query(probe.run(workflowStartDelay="4s")[0], timeout=6)


@case("query", "first task started, not answered")
def _not_answered(probe: Probe) -> Answer:
    workflow_id, _ = probe.run()
    probe.poll()
    return probe.query(workflow_id, timeout=6)


@case("query", "idle run, nobody polls (waited 35 s)")
def _idle_nobody_polls(probe: Probe) -> Answer:
    return probe.query(probe.idle()[0], timeout=35)


@case("query", "no worker polls, a task completed before")
def _too_short(probe: Probe) -> Answer:
    return probe.query(probe.idle()[0], timeout=4)


add_each(
    "query",
    [
        ("empty query type", {"query": {"queryType": ""}}),
        ("no query", {"query": None}),
        (
            "arguments above the blob limit",
            {"query": {"queryType": "q", "queryArgs": {"payloads": [big(6000)]}}},
        ),
    ],
    lambda probe, fields: probe.query(probe.idle()[0], timeout=4, **fields),
)


def _respond(probe: Probe, token: bytes) -> Answer:
    request = RespondQueryTaskCompletedRequest(namespace="default", task_token=token)
    return probe.call("respond_query_task_completed", request)


add_each(
    "respond query task completed",
    [("token of rubbish", b"rubbish"), ("empty token", b"")],
    _respond,
)
