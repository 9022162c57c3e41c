"""Requests of clients: start, signal, cancel, terminate, describe, history, polls."""

from datetime import timedelta
from typing import Any

from tests.conformance.probes.cases import add, add_each, case
from tests.support.probing import Answer, Probe
from tests.support.requests_json import (
    LONG,
    MIB,
    TOO_BIG,
    UUID,
    Json,
    attribute,
    big,
    marker,
    text64,
    value,
)

GOOD_POLICY: Json = {
    "initialInterval": "1s",
    "backoffCoefficient": 2.0,
    "maximumInterval": "10s",
    "maximumAttempts": 3,
}
RUBBISH = text64("rubbish")


def _attributes(**fields: Json) -> Json:
    return {"searchAttributes": {"indexedFields": fields}}


def _policy(**changed: Any) -> Json:
    return {"retryPolicy": GOOD_POLICY | changed}


START: list[tuple[str, Json]] = [
    ("empty workflow id", {"workflowId": ""}),
    ("workflow id of 1,001 bytes", {"workflowId": LONG}),
    ("workflow id of 1,000 bytes", {"workflowId": "y" * 1000}),
    ("workflow id of 501 two-byte characters", {"workflowId": "é" * 501}),
    ("empty workflow type", {"workflowType": {"name": ""}}),
    ("no workflow type", {"workflowType": None}),
    ("workflow type of 1,001 bytes", {"workflowType": {"name": LONG}}),
    ("empty task queue", {"taskQueue": {"name": ""}}),
    ("no task queue", {"taskQueue": None}),
    ("task queue of 1,001 bytes", {"taskQueue": {"name": LONG}}),
    ("task queue with the reserved prefix /_sys/", {"taskQueue": {"name": "/_sys/abc"}}),
    ("request id of 1,001 bytes", {"requestId": LONG}),
    ("identity of 1,001 bytes", {"identity": LONG}),
    ("negative execution timeout", {"workflowExecutionTimeout": "-1s"}),
    ("negative run timeout", {"workflowRunTimeout": "-1s"}),
    ("negative task timeout", {"workflowTaskTimeout": "-1s"}),
    ("negative start delay", {"workflowStartDelay": "-1s"}),
    (
        "run timeout above execution timeout",
        {"workflowRunTimeout": "60s", "workflowExecutionTimeout": "10s"},
    ),
    ("execution timeout of 200 years", {"workflowExecutionTimeout": "6307200000s"}),
    ("cron and start delay", {"cronSchedule": "* * * * *", "workflowStartDelay": "5s"}),
    ("cron: not a spec", {"cronSchedule": "invalid-cron-spec"}),
    ("cron: four fields", {"cronSchedule": "* * * *"}),
    ("cron: six fields", {"cronSchedule": "0 * * * * *"}),
    ("cron: minute 60", {"cronSchedule": "60 * * * *"}),
    ("cron: @every without a duration", {"cronSchedule": "@every x"}),
    ("cron: @every 500ms", {"cronSchedule": "@every 500ms"}),
    ("cron: @every -5s", {"cronSchedule": "@every -5s"}),
    ("cron: @hourly", {"cronSchedule": "@hourly"}),
    ("cron: unknown zone", {"cronSchedule": "CRON_TZ=Mars/Olympus 0 0 * * *"}),
    ("cron: known zone", {"cronSchedule": "CRON_TZ=Europe/Berlin 0 0 * * *"}),
    ("cron: TZ= prefix", {"cronSchedule": "TZ=Europe/Berlin 0 0 * * *"}),
    ("cron: 30 February (never)", {"cronSchedule": "0 0 30 2 *"}),
    ("search attribute: unknown name", _attributes(NoSuchAttr=attribute("Keyword", "x"))),
    ("search attribute: system name", _attributes(WorkflowId=attribute("Keyword", "x"))),
    (
        "search attribute: wrong type (text for Int)",
        _attributes(ProbeInt=attribute("Int", "abc")),
    ),
    (
        "search attribute: value of 2,049 bytes",
        _attributes(ProbeKeyword=attribute("Keyword", "x" * 2049)),
    ),
    (
        "search attribute: reserved TemporalChangeVersion set by the client",
        _attributes(TemporalChangeVersion=attribute("KeywordList", ["a"])),
    ),
    ("search attribute: good value", _attributes(ProbeKeyword=attribute("Keyword", "x"))),
    (
        "search attribute: list of one for Keyword",
        _attributes(ProbeKeyword=attribute("Keyword", ["x"])),
    ),
    (
        "search attribute: list of two for Keyword",
        _attributes(ProbeKeyword=attribute("Keyword", ["x", "y"])),
    ),
    ("search attribute: no type metadata", _attributes(ProbeKeyword=value("x"))),
    ("search attribute: null", _attributes(ProbeKeyword=value(None))),
    ("retry policy: coefficient 0.5", _policy(backoffCoefficient=0.5)),
    ("retry policy: coefficient -1", _policy(backoffCoefficient=-1)),
    ("retry policy: negative initial interval", _policy(initialInterval="-1s")),
    ("retry policy: negative maximum interval", _policy(maximumInterval="-1s")),
    ("retry policy: maximum interval below initial", _policy(initialInterval="20s")),
    ("retry policy: negative maximum attempts", _policy(maximumAttempts=-1)),
    (
        "retry policy: unknown TemporalTimeout type",
        _policy(nonRetryableErrorTypes=["TemporalTimeout:Foo"]),
    ),
    (
        "retry policy: TemporalTimeout:StartToClose",
        _policy(nonRetryableErrorTypes=["TemporalTimeout:StartToClose"]),
    ),
    ("retry policy: empty", {"retryPolicy": {}}),
    (
        "retry policy: maximum attempts 1 with a bad coefficient",
        _policy(maximumAttempts=1, backoffCoefficient=0.5),
    ),
    ("memo above 2 MB", {"memo": {"fields": {"m": big(2 * MIB + 1)}}}),
    ("memo of 1.9 MB", {"memo": {"fields": {"m": big(1900 * 1024)}}}),
    ("input above 2 MB", {"input": TOO_BIG}),
    ("input of 1.9 MB", {"input": {"payloads": [big(1900 * 1024)]}}),
    ("user metadata: summary of 401 bytes", {"userMetadata": {"summary": big(401)}}),
    ("user metadata: summary of 390 bytes", {"userMetadata": {"summary": big(340)}}),
    ("user metadata: details of 20,001 bytes", {"userMetadata": {"details": big(20001)}}),
    ("priority key -1", {"priority": {"priorityKey": -1}}),
    ("priority key 6", {"priority": {"priorityKey": 6}}),
    ("priority key 1000", {"priority": {"priorityKey": 1000}}),
    ("fairness key of 65 bytes", {"priority": {"fairnessKey": "k" * 65}}),
    ("fairness weight -1", {"priority": {"fairnessWeight": -1.0}}),
    ("unknown namespace", {"namespace": "nowhere"}),
    ("empty namespace", {"namespace": ""}),
    ("completion callback with a bad url", {"completionCallbacks": [{"nexus": {"url": "nope"}}]}),
    (
        "completion callback to an unlisted address",
        {"completionCallbacks": [{"nexus": {"url": "http://localhost:9/x"}}]},
    ),
    (
        "eager start with start delay",
        {"requestEagerExecution": True, "workflowStartDelay": "60s"},
    ),
    ("eager start with cron", {"requestEagerExecution": True, "cronSchedule": "@hourly"}),
    (
        "eleven links",
        {
            "links": [{"workflowEvent": {"namespace": "default", "workflowId": "a", "runId": UUID}}]
            * 11
        },
    ),
    # these belong to the server with low size limits
    ("input above the blob limit (5,000 here)", {"input": {"payloads": [big(6000)]}}),
    ("input between warn and error limit", {"input": {"payloads": [big(3000)]}}),
    ("memo above the limit (3,000 here)", {"memo": {"fields": {"m": big(3500)}}}),
    ("header above the blob limit", {"header": {"fields": {"h": big(6000)}}}),
    (
        "input and header together above the limit, each below",
        {"input": {"payloads": [big(3000)]}, "header": {"fields": {"h": big(3000)}}},
    ),
]


def _start(probe: Probe, fields: Json) -> Answer:
    fields = dict(fields)
    return probe.start(fields.pop("workflowId", None), **fields)


add_each("start", START, _start)

USE_EXISTING = "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING"


def _attach(probe: Probe, fields: Json) -> Answer:
    workflow_id, _ = probe.idle()
    return probe.start(workflow_id, **fields)


add_each(
    "start",
    [
        (
            "on_conflict_options: attach_completion_callbacks without attach_request_id",
            {
                "workflowIdConflictPolicy": USE_EXISTING,
                "onConflictOptions": {"attachCompletionCallbacks": True},
            },
        ),
        (
            "on_conflict_options without USE_EXISTING, run open",
            {"onConflictOptions": {"attachRequestId": True}},
        ),
        (
            "on_conflict_options: attach_links only, USE_EXISTING, run open",
            {
                "workflowIdConflictPolicy": USE_EXISTING,
                "onConflictOptions": {"attachLinks": True},
            },
        ),
    ],
    _attach,
)

# ---- calls that address a run

ADDRESSED: dict[str, tuple[str, str, Json]] = {
    "signal": ("signal_workflow_execution", "workflowExecution", {"signalName": "s"}),
    "cancel": ("request_cancel_workflow_execution", "workflowExecution", {}),
    "terminate": ("terminate_workflow_execution", "workflowExecution", {}),
    "reset": (
        "reset_workflow_execution",
        "workflowExecution",
        {"workflowTaskFinishEventId": "4", "requestId": "r"},
    ),
    "describe": ("describe_workflow_execution", "execution", {}),
    "get history": ("get_workflow_execution_history", "execution", {}),
    "get history, newest first": ("get_workflow_execution_history_reverse", "execution", {}),
    "query": ("query_workflow", "execution", {"query": {"queryType": "q"}}),
}


def _unknown(probe: Probe) -> tuple[str, str]:
    return probe.workflow_id(), ""


def _open(probe: Probe) -> tuple[str, str]:
    return probe.idle()[0], ""


def _closed(probe: Probe) -> tuple[str, str]:
    return probe.closed("COMPLETED")[0], ""


WHERE = {
    "unknown workflow id": _unknown,
    "known id, unknown run id": lambda probe: (_open(probe)[0], UUID),
    "known id, run id is not a UUID": lambda probe: (_open(probe)[0], "not-a-uuid"),
    "empty workflow id": lambda _probe: ("", ""),
    "workflow id of 1,001 bytes (limit 100 here)": lambda _probe: (LONG, ""),
    "closed (completed), no run id": _closed,
    "closed (completed), with run id": lambda probe: probe.closed("COMPLETED"),
    "unknown namespace": _open,
}

for _name, (_method, _field, _rest) in ADDRESSED.items():
    for _condition, _where in WHERE.items():
        if _name == "reset" and _condition.startswith("closed"):
            continue  # a run that is made, which the table doesn't tell of

        def _address(
            probe: Probe,
            method: str = _method,
            field: str = _field,
            rest: Json = _rest,
            where: Any = _where,
            condition: str = _condition,
        ) -> Answer:
            workflow_id, run_id = where(probe)
            request = {field: {"workflowId": workflow_id, "runId": run_id}, **rest}
            if condition == "unknown namespace":
                request["namespace"] = "nowhere"
            return probe.call(method, request)

        add(_name, _condition, _address)

for _status in ("COMPLETED", "FAILED", "CANCELED", "TERMINATED", "TIMED_OUT"):
    for _call in ("signal", "cancel", "terminate"):
        for _with in (False, True):

            def _to_closed(
                probe: Probe, call: str = _call, status: str = _status, with_run: bool = _with
            ) -> Answer:
                workflow_id, run_id = probe.closed(status)
                return getattr(probe, call)(workflow_id, run_id=run_id if with_run else "")

            add(
                _call,
                f"closed as {_status}, {'with' if _with else 'without'} run id",
                _to_closed,
            )

for _call in ("signal", "cancel", "terminate"):

    def _to_continued(probe: Probe, call: str = _call) -> Answer:
        workflow_id, run_id = probe.closed("CONTINUED_AS_NEW")
        return getattr(probe, call)(workflow_id, run_id=run_id)

    add(_call, "run that continued as new, with its run id", _to_continued)


@case("signal", "chain that continued as new, without run id (goes to the new run)")
def _signal_chain(probe: Probe) -> Answer:
    return probe.signal(probe.closed("CONTINUED_AS_NEW")[0])


@case("terminate", "first_execution_run_id = the chain's first run")
def _terminate_chain(probe: Probe) -> Answer:
    workflow_id, run_id = probe.closed("CONTINUED_AS_NEW")
    answer = probe.terminate(workflow_id, firstExecutionRunId=run_id)
    assert probe.status(workflow_id).name == "TERMINATED"
    return answer


# ---- reset


def _reset(probe: Probe, fields: Json) -> Answer:
    workflow_id, run_id = probe.idle()
    request: Json = {
        "workflowExecution": {"workflowId": workflow_id, "runId": run_id},
        "workflowTaskFinishEventId": "4",
        "requestId": "r",
    }
    return probe.call("reset_workflow_execution", request | fields)


add_each(
    "reset",
    [
        ("event id 0", {"workflowTaskFinishEventId": "0"}),
        ("event id -1", {"workflowTaskFinishEventId": "-1"}),
        ("event id 1", {"workflowTaskFinishEventId": "1"}),
        ("event id 2 (TASK_SCHEDULED)", {"workflowTaskFinishEventId": "2"}),
        ("event id 3 (TASK_STARTED)", {"workflowTaskFinishEventId": "3"}),
        ("event id beyond the history", {"workflowTaskFinishEventId": "99"}),
        ("event id = next event", {"workflowTaskFinishEventId": "5"}),
        ("no request id", {"requestId": ""}),
        (
            "post-reset operation: signal",
            {"postResetOperations": [{"signalWorkflow": {"signalName": "s"}}]},
        ),
    ],
    _reset,
)


@case("reset", "event id 5 (an activity)")
def _reset_to_activity(probe: Probe) -> Answer:
    workflow_id, run_id = probe.with_activity()
    return probe.call(
        "reset_workflow_execution",
        {
            "workflowExecution": {"workflowId": workflow_id, "runId": run_id},
            "workflowTaskFinishEventId": "5",
            "requestId": "r",
        },
    )


def _reset_early(probe: Probe, event_id: int) -> Answer:
    workflow_id, run_id = probe.run()
    request = {
        "workflowExecution": {"workflowId": workflow_id, "runId": run_id},
        "workflowTaskFinishEventId": str(event_id),
        "requestId": "r",
    }
    return probe.call("reset_workflow_execution", request)


for _event_id in (2, 3):
    add(
        "reset",
        f"no task completed yet, event id {_event_id}",
        lambda probe, event_id=_event_id: _reset_early(probe, event_id),
    )

# ---- messages with a fault


def _signal(probe: Probe, fields: Json) -> Answer:
    return probe.signal(probe.idle()[0], **fields)


add_each(
    "signal",
    [
        ("empty signal name", {"name": ""}),
        ("signal name of 1,001 bytes", {"name": LONG}),
        ("request id of 1,001 bytes", {"requestId": LONG}),
        ("input above 2 MB", {"input": TOO_BIG}),
        ("empty request id", {"requestId": ""}),
        ("input above the blob limit", {"input": {"payloads": [big(6000)]}}),
        ("header above the blob limit", {"header": {"fields": {"h": big(6000)}}}),
    ],
    _signal,
)
add_each(
    "cancel",
    [
        ("request id of 1,001 bytes", {"requestId": LONG}),
        ("first_execution_run_id of another chain", {"firstExecutionRunId": UUID}),
    ],
    lambda probe, fields: probe.cancel(probe.idle()[0], **fields),
)
add_each(
    "terminate",
    [
        ("first_execution_run_id of another chain", {"firstExecutionRunId": UUID}),
        ("first_execution_run_id is not a UUID", {"firstExecutionRunId": "nope"}),
        ("details above the blob limit", {"details": {"payloads": [big(6000)]}}),
    ],
    lambda probe, fields: probe.terminate(probe.idle()[0], **fields),
)


@case("signal", "count limit per run reached (8 here)")
def _ninth_signal(probe: Probe) -> Answer:
    workflow_id, _ = probe.run()
    for number in range(8):
        probe.signal(workflow_id, f"s{number}")
    return probe.signal(workflow_id)


@case("signal-with-start", "open run with the signal count used up")
def _signal_with_start_used_up(probe: Probe) -> Answer:
    workflow_id, _ = probe.run()
    for number in range(8):
        probe.signal(workflow_id, f"s{number}")
    return _signal_with_start(probe, {"workflowId": workflow_id})


@case("signal", "the call that exceeds the history count limit (or the next)")
def _history_count(probe: Probe) -> Answer:
    workflow_id, _ = probe.run()
    answer = None
    while not isinstance(answer, dict):
        probe.step(marker())
        answer = probe.signal(workflow_id)
    assert probe.status(workflow_id).name == "TERMINATED"
    return answer


@case("signal", "history count limit reached")
def _history_count_by_signals(probe: Probe) -> Answer:
    workflow_id, _ = probe.run()
    answer = None
    while not isinstance(answer, dict):
        answer = probe.signal(workflow_id)
    assert probe.types(workflow_id)[-2:] == [
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_EXECUTION_TERMINATED",
    ]
    return answer


@case("signal", "history size limit reached")
def _history_size(probe: Probe) -> Answer:
    workflow_id, _ = probe.idle()
    answer = None
    while not isinstance(answer, dict):
        answer = probe.signal(workflow_id, input={"payloads": [big(4500)]})
    ended = probe.attributes(workflow_id, "WORKFLOW_EXECUTION_TERMINATED")
    assert ended.reason == "Workflow history size exceeds limit."
    return answer


def _signal_with_start(probe: Probe, fields: Json) -> Answer:
    request = {
        "workflowId": probe.workflow_id(),
        "workflowType": {"name": "wf"},
        "taskQueue": {"name": probe.queue},
        "signalName": "s",
        **fields,
    }
    return probe.call("signal_with_start_workflow_execution", request)


add_each(
    "signal-with-start",
    [
        ("empty signal name", {"signalName": ""}),
        ("signal name of 1,001 bytes", {"signalName": LONG}),
        (
            "conflict policy FAIL",
            {"workflowIdConflictPolicy": "WORKFLOW_ID_CONFLICT_POLICY_FAIL"},
        ),
        ("cron and start delay", {"cronSchedule": "@hourly", "workflowStartDelay": "5s"}),
        ("signal input above 2 MB", {"signalInput": TOO_BIG}),
        ("empty workflow id", {"workflowId": ""}),
    ],
    _signal_with_start,
)

# ---- histories


def _history(probe: Probe, fields: Json) -> Answer:
    workflow_id, _ = probe.idle()
    execution = {"workflowId": workflow_id}
    return probe.call("get_workflow_execution_history", {"execution": execution, **fields})


add_each(
    "get history",
    [
        ("next page token of rubbish", {"nextPageToken": RUBBISH}),
        ("maximum page size -1", {"maximumPageSize": -1}),
    ],
    _history,
)


@case("get history, newest first", "next page token of rubbish")
def _history_reverse(probe: Probe) -> Answer:
    execution = {"workflowId": probe.idle()[0]}
    request = {"execution": execution, "nextPageToken": RUBBISH}
    return probe.call("get_workflow_execution_history_reverse", request)


@case(
    "get history",
    "closed run, wait_new_event, close event filter: returns the close event",
)
def _history_close_event(probe: Probe) -> Answer:
    workflow_id, _ = probe.closed("TERMINATED")
    answer = probe.call(
        "get_workflow_execution_history",
        {
            "execution": {"workflowId": workflow_id},
            "waitNewEvent": True,
            "historyEventFilterType": "HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT",
        },
    )
    names = [event.event_type.name for event in answer.history.events]
    assert names == ["WORKFLOW_EXECUTION_TERMINATED"]
    return answer


# ---- polls

for _kind in ("workflow", "activity"):
    _method = f"poll_{_kind}_task_queue"

    def _poll(probe: Probe, fields: Json, method: str = _method) -> Answer:
        fields = dict(fields)
        wait = timedelta(seconds=fields.pop("timeout", 5))
        return probe.call(method, {"identity": "x", **fields}, timeout=wait)

    add_each(
        _method.replace("_", " "),
        [
            ("no task queue", {}),
            ("empty task queue name", {"taskQueue": {"name": ""}}),
            ("task queue name of 1,001 bytes", {"taskQueue": {"name": LONG}}),
            ("identity of 1,001 bytes", {"taskQueue": {"name": "q"}, "identity": LONG}),
            ("unknown namespace", {"taskQueue": {"name": "q"}, "namespace": "nowhere"}),
            ("deadline of 1.5 s", {"taskQueue": {"name": "q"}, "timeout": 1.5}),
        ],
        _poll,
    )

# ---- tokens that are none

for _how in ("completed", "failed", "canceled", "heartbeat"):
    _request = _how if _how == "heartbeat" else f"activity {_how}"

    def _with_bytes(probe: Probe, token: bytes, how: str = _how) -> Answer:
        return probe.answer_activity(how, token)

    add_each(
        _request,
        [("empty task token", b""), ("task token of rubbish", b"rubbish-token")],
        _with_bytes,
    )
