"""Paths, forms and errors of the API, over ports in memory."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, ProgrammingError
from django.http import HttpResponse
from django.urls import get_resolver

from tests.unit.api.conftest import Api, Person
from wfapp import operating
from wfapp.api.problems import HTTP_STATUSES
from wfapp.api.urls import _LONG, _SHORT
from wfapp.api.views import BODY_BYTES, RpcView
from wfcore.exceptions import (
    FailedPreconditionError,
    NondeterminismError,
    RPCError,
    RPCStatusCode,
    UnavailableError,
)
from wfcore.service.ports import RunBusyError
from wfcore.service.workflow_service import WorkflowService

NS = "/api/v1/namespaces/default"
RUN = f"{NS}/workflows/order-1"
Start = Callable[..., str]

VIEW, PAYLOADS, OPERATE = (
    "wfapp.view_workflowexecution",
    "wfapp.view_payloads",
    "wfapp.operate",
)
#: Every route with its method and what it needs.
ROUTES: dict[tuple[str, str], set[str]] = {
    ("GET", f"{NS}/workflows"): {VIEW},
    ("GET", f"{NS}/workflow-count"): {VIEW},
    ("GET", RUN): {VIEW},
    ("POST", RUN): {OPERATE},
    ("GET", f"{RUN}/history"): {VIEW},
    ("GET", f"{RUN}/history-reverse"): {VIEW},
    ("POST", f"{RUN}/signal/go"): {OPERATE},
    ("POST", f"{RUN}/signal-with-start/go"): {OPERATE},
    ("POST", f"{RUN}/query/state"): {VIEW, PAYLOADS},
    ("POST", f"{RUN}/cancel"): {OPERATE},
    ("POST", f"{RUN}/terminate"): {OPERATE},
    ("POST", f"{RUN}/reset"): {OPERATE},
    ("POST", f"{RUN}/update/add"): {OPERATE},
    **{
        ("POST", f"{RUN}/activities/job/{verb}"): {OPERATE}
        for verb in (
            *("complete", "fail", "resolve-as-canceled", "heartbeat"),
            *("pause", "unpause", "reset", "update-options"),
        )
    },
    **{
        ("POST", f"{NS}/activity-{verb}"): {OPERATE}
        for verb in ("complete", "fail", "resolve-as-canceled", "heartbeat")
    },
    **{
        ("POST", f"{NS}/activities-deprecated/{verb}"): {OPERATE}
        for verb in ("pause", "unpause", "reset", "update-options")
    },
    ("GET", "/api/v1/namespaces"): {VIEW},
    ("GET", NS): {VIEW},
    ("GET", "/api/v1/system-info"): {VIEW},
    ("GET", "/api/v1/cluster-info"): {VIEW},
}


# ---- who may what


def test_the_table_of_routes_is_complete() -> None:
    operations = {
        (method, operation.name)
        for view in {*_LONG.values(), *_SHORT.values()}
        for method, operation in view.operations.items()
    }
    assert len(operations) == len(ROUTES)


@pytest.mark.parametrize("lacking", [VIEW, PAYLOADS, OPERATE])
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_each_route_needs_its_permissions(api: Api, method: str, path: str, lacking: str) -> None:
    api.person = Person(permissions=frozenset({VIEW, PAYLOADS, OPERATE} - {lacking}))
    answer = api.call(method, path, {})
    if lacking in ROUTES[method, path]:
        assert answer.status_code == 403
        assert json.loads(answer.content) == {
            "code": 7,
            "message": "Request unauthorized.",
            "details": [
                {
                    "@type": "type.googleapis.com/temporal.api.errordetails.v1."
                    "PermissionDeniedFailure",
                    "reason": "You do not have permission to perform this action.",
                }
            ],
        }
    else:
        assert answer.status_code != 403


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_nothing_is_told_to_who_is_not_logged_in(api: Api, method: str, path: str) -> None:
    api.person = None
    answer = api.call(method, path, {})
    assert answer.status_code == 401
    assert json.loads(answer.content)["code"] == 16


def test_user_data_is_hidden_from_who_may_not_see_it(api: Api, started: Start) -> None:
    started(input=["secret"], memo={"fields": {"a": "secret"}}, userMetadata={"summary": "secret"})
    api.person = Person(permissions=frozenset({VIEW}))
    for path in (RUN, f"{RUN}/history", f"{RUN}/history-reverse", f"{NS}/workflows"):
        for query in ("", "?noPayloadShorthand"):
            answer = api.call("GET", path + query)
            assert answer.status_code == 200
            assert b"secret" not in answer.content
            assert b"InNlY3JldCI=" not in answer.content
    hidden = {"metadata": {"encoding": "YmluYXJ5L2hpZGRlbg=="}}
    _, body = api.get(f"{RUN}/history")
    attributes = body["history"]["events"][0]["workflowExecutionStartedEventAttributes"]
    assert attributes["input"] == {"payloads": [hidden]}


# ---- paths


@pytest.mark.parametrize(
    ("method", "path"), [*ROUTES, ("GET", "/cluster"), ("GET", "/cluster/namespaces")]
)
def test_each_path_exists_with_and_without_its_version(
    api: Api, started: Start, method: str, path: str
) -> None:
    started()
    short = path.removeprefix("/api/v1")
    short = {"/namespaces": "/cluster/namespaces", "/cluster-info": "/cluster"}.get(short, short)
    if short == NS.removeprefix("/api/v1"):
        short = f"/cluster{short}"
    for address in (path, short):
        assert b'"Not Found"' not in api.call(method, address, {}).content


@pytest.mark.parametrize(
    "path", ["/", "/nothing", f"{NS}/nothing", f"{RUN}/nothing", f"{RUN}/history/more", "/api/v1/"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_unknown_path(api: Api, method: str, path: str) -> None:
    answer = api.call(method, path)
    assert (answer.status_code, json.loads(answer.content)) == (
        404,
        {"code": 5, "message": "Not Found"},
    )


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
def test_another_method_is_not_implemented(api: Api, method: str) -> None:
    answer = api.call(method, RUN, {})
    assert answer.status_code == 501
    if method != "HEAD":
        assert json.loads(answer.content) == {"code": 12, "message": "Method Not Allowed"}


def test_the_path_wins_over_the_body(api: Api, service: WorkflowService) -> None:
    body = {"workflowId": "other", "workflowType": {"name": "A"}, "taskQueue": {"name": "q"}}
    _, answer = api.post(RUN, {**body, "namespace": "elsewhere"})
    assert answer["link"]["workflowEvent"]["workflowId"] == "order-1"
    assert api.get(f"{NS}/workflows/other")[0] == 404


def test_the_path_wins_over_query_parameters(api: Api, started: Start) -> None:
    started("order-1")
    _, body = api.get(f"{RUN}?execution.workflowId=other&namespace=elsewhere")
    assert body["workflowExecutionInfo"]["execution"]["workflowId"] == "order-1"


# ---- ids with slashes


@pytest.mark.parametrize("variable", ["RAW_URI", "REQUEST_URI"])
def test_an_id_with_a_slash_is_found_by_the_raw_path(
    api: Api, started: Start, variable: str
) -> None:
    body = {"workflowType": {"name": "Order"}, "taskQueue": {"name": "idle"}}
    raw = f"{NS}/workflows/a%2Fb%2fhistory"
    status, _ = api.post(raw, body, **{variable: raw})
    assert status == 200
    status, answer = api.get(raw, **{variable: f"http://host{raw}?x=1"})
    assert status == 200
    assert answer["workflowExecutionInfo"]["execution"]["workflowId"] == "a/b/history"


def test_without_the_raw_path_such_an_id_is_not_mistaken_for_another_path(api: Api) -> None:
    assert api.get(f"{NS}/workflows/a%2Fb")[0] == 404


def test_a_plain_slash_is_never_part_of_an_id(api: Api, started: Start) -> None:
    started("a")
    path = f"{NS}/workflows/a/b"
    assert api.get(path, RAW_URI=path)[0] == 404


def test_a_signal_name_may_hold_a_slash(api: Api, started: Start) -> None:
    started()
    raw = f"{RUN}/signal/a%2Fb"
    assert api.post(raw, {}, RAW_URI=raw)[0] == 200
    _, body = api.get(f"{RUN}/history")
    attributes = body["history"]["events"][2]["workflowExecutionSignaledEventAttributes"]
    assert attributes["signalName"] == "a/b"


def test_a_path_below_a_prefix_of_the_server(api: Api) -> None:
    body = {"workflowType": {"name": "Order"}, "taskQueue": {"name": "idle"}}
    raw = f"{NS}/workflows/a%2Fb"
    status, _ = api.post(raw, body, RAW_URI=f"/app{raw}", SCRIPT_NAME="/app")
    assert status == 200
    assert api.get(raw, RAW_URI=raw)[0] == 200


def test_an_id_that_holds_an_encoded_slash_is_another_one(api: Api) -> None:
    body = {"workflowType": {"name": "Order"}, "taskQueue": {"name": "idle"}}
    raw = f"{NS}/workflows/a%252Fb"
    _, answer = api.post(raw, body, RAW_URI=raw)
    assert answer["link"]["workflowEvent"]["workflowId"] == "a%2Fb"


@pytest.mark.parametrize("raw", ["%2F", "/api/v1/%2F", f"{NS}/workflows/%EF%B7%90%2F", "//x%2F"])
def test_raw_paths_that_lead_nowhere(api: Api, raw: str) -> None:
    assert api.get(f"{NS}/workflows/x", RAW_URI=raw)[0] == 404


# ---- forms


@pytest.mark.parametrize(
    ("accept", "query", "content_type", "indented", "short"),
    [
        ("application/json", "", "application/json", False, True),
        ("*/*", "", "application/json", False, True),
        ("text/html", "", "application/json", False, True),
        ("application/json+pretty", "", "application/json+pretty", True, True),
        ("text/html, application/json+pretty;q=0.5", "", "application/json+pretty", True, True),
        ("*/*", "?pretty", "application/json+pretty", True, True),
        ("*/*", "?pretty=false", "application/json+pretty", True, True),
        ("*/*", "?noPayloadShorthand", "application/json+no-payload-shorthand", False, False),
        (
            "application/json+pretty",
            "?no_payload_shorthand=1",
            "application/json+pretty+no-payload-shorthand",
            True,
            False,
        ),
    ],
)
def test_forms(
    api: Api,
    started: Start,
    accept: str,
    query: str,
    content_type: str,
    indented: bool,
    short: bool,
) -> None:
    started(input=[1])
    answer = api.call("GET", f"{RUN}/history{query}", headers={"Accept": accept})
    assert answer["Content-Type"] == content_type
    assert (b"\n" in answer.content) == indented
    event = json.loads(answer.content)["history"]["events"][0]
    assert isinstance(event["workflowExecutionStartedEventAttributes"]["input"], list) == short


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ],
)
def test_the_content_type_of_a_body_is_not_looked_at(api: Api, content_type: str) -> None:
    body = {"workflowType": {"name": "A"}, "taskQueue": {"name": "q"}, "input": [1]}
    assert api.post(RUN, body, content_type=content_type)[0] == 200


def test_an_error_has_the_form_that_was_asked_for(api: Api) -> None:
    answer = api.call("GET", f"{RUN}?pretty")
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/json+pretty"


# ---- bodies


def test_an_empty_body_is_an_empty_object(api: Api) -> None:
    for text in ("", "  \n"):
        _, body = api.post(RUN, text=text)
        assert body == {"code": 3, "message": "WorkflowType is not set on request."}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "hello",
        "[]",
        "null",
        '"a"',
        '{"identity":"a","identity":"b"}',
        '{"identity":NaN}',
        '{"identity":"\\ud800"}',
        b"\xff\xfe",
        "[" * 100_000,
        '{"input":' + "[" * 2000 + "]" * 2000 + "}",
        '{"input":[' + "9" * 5000 + "]}",
        '{"identity":"a\\u0000b"}',
        '{"__class__": 1}',
    ],
)
def test_hostile_bodies_are_refused_and_change_nothing(api: Api, text: str | bytes) -> None:
    status, body = api.post(RUN, text=text)
    assert (status, body["code"]) == (400, 3)
    assert len(json.dumps(body)) < 2000
    assert api.get(RUN)[0] == 404


def test_a_body_above_the_limit_is_not_read(api: Api) -> None:
    answer = api.call("POST", RUN, text="x", CONTENT_LENGTH=str(BODY_BYTES + 1))
    assert json.loads(answer.content) == {"code": 3, "message": "http: request body too large"}
    assert api.post(RUN, text='"' + "x" * BODY_BYTES + '"')[0] == 400


def test_a_body_whose_length_is_no_number(api: Api) -> None:
    answer = api.call("POST", RUN, text="x", CONTENT_LENGTH="many")
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        f"{NS}/workflows/a%00b",
        f"{NS}/workflows/{'x' * 2000}",
        "/api/v1/namespaces/%00/workflows",
        f"{RUN}/history?nextPageToken=%00",
        f"{RUN}/history?nextPageToken=W10=",
        f"{RUN}/history?maximumPageSize=99999999999",
        f"{RUN}?execution.runId=%00",
        f"{NS}/workflows?query=%00",
        f"{NS}/workflows?query={'(' * 500}",
        f"{NS}/workflows?nextPageToken=bm9wZQ==",
        f"{NS}/workflows?pageSize=1&pageSize=2",
    ],
)
def test_hostile_addresses_are_refused(api: Api, started: Start, path: str) -> None:
    started()
    status, body = api.get(path)
    assert status in (400, 404)
    assert set(body) <= {"code", "message", "details"}


def test_unknown_parameters_are_passed_over(api: Api, started: Start) -> None:
    started()
    assert api.get(f"{RUN}?bogus=1&execution.bogus=2&.=3&execution=4")[0] == 200


# ---- errors


@pytest.mark.parametrize("code", [code for code in RPCStatusCode if code is not RPCStatusCode.OK])
def test_each_code_has_a_status(api: Api, service: Any, code: RPCStatusCode) -> None:
    def refuse(_request: Any) -> None:
        raise RPCError("refused", code)

    service.describe_workflow_execution = refuse
    status, body = api.get(RUN)
    assert status == HTTP_STATUSES[code] >= 400
    assert body == {"code": int(code), "message": "refused"}


@pytest.mark.parametrize(
    "error",
    [
        OperationalError("connection to server at db.internal failed: password"),
        RunBusyError("another transaction is in the way: at db.internal"),
        ProgrammingError("relation of db.internal does not exist"),
    ],
)
def test_what_the_database_says_stays_inside(api: Api, service: Any, error: Exception) -> None:
    def fail(_request: Any) -> None:
        if isinstance(error, RunBusyError):
            raise error
        if isinstance(error, ProgrammingError):
            raise FailedPreconditionError(f"no tables: {error}") from error
        raise UnavailableError(f"database can't be reached: {error}") from error

    service.describe_workflow_execution = fail
    status, body = api.get(RUN)
    assert (status, body["code"]) == (503, 14)
    assert "db.internal" not in body["message"]
    assert "repeat the call" in body["message"]


def test_another_error_of_the_engine_is_internal(api: Api, service: Any) -> None:
    def fail(_request: Any) -> None:
        raise NondeterminismError("odd")

    service.describe_workflow_execution = fail
    assert api.get(RUN) == (500, {"code": 13, "message": "odd"})


def test_an_unknown_error_is_the_hosts_business(api: Api, service: Any) -> None:
    def fail(_request: Any) -> None:
        raise ZeroDivisionError

    service.describe_workflow_execution = fail
    with pytest.raises(ZeroDivisionError):
        api.get(RUN)


# ---- what is done


def test_what_is_done_is_recorded(
    api: Api, started: Start, audit: list[tuple[str, str, str, str]]
) -> None:
    started()
    api.post(f"{RUN}/signal/go")
    api.post(f"{RUN}/cancel", {"reason": "late"})
    api.post(f"{RUN}/terminate", {"reason": "now"})
    api.post(f"{RUN}/terminate", {"reason": "again"})
    assert audit == [
        ("start", "order-1", "ann", ""),
        ("signal", "order-1", "ann", ""),
        ("cancel", "order-1", "ann", "late"),
        ("terminate", "order-1", "ann", "now"),
    ]


def test_the_same_request_starts_once(api: Api, started: Start) -> None:
    assert started(requestId="r") == started(requestId="r")


def test_the_command_line_program_is_told_by_its_header(api: Api, service: Any) -> None:
    shown = []
    plain = service.get_workflow_execution_history

    def history(request: Any, *, show_transient: bool) -> Any:
        shown.append(show_transient)
        return plain(request)

    service.get_workflow_execution_history = history
    for client in ("temporal-cli", "temporal-ui", "other"):
        api.call("GET", f"{RUN}/history", headers={"Client-Name": client})
    assert shown == [False, False, True]


def test_views_stand_outside_of_the_hosts_transactions() -> None:
    for pattern in get_resolver("wfapp.api.urls").url_patterns:
        callbacks = (
            [pattern.callback]
            if hasattr(pattern, "callback")
            else [inner.callback for inner in pattern.url_patterns]
        )
        for callback in callbacks:
            if issubclass(getattr(callback, "cls", object), RpcView):
                assert callback._non_atomic_requests == {"default"}


def test_a_view_waits_two_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import timedelta

    from wfapp import wiring
    from wfcore.service.ports import START_WAIT

    monkeypatch.setattr(wiring, "get_dispatcher", lambda: None)
    store = operating._make_view_service().host.store
    for wait in (None, START_WAIT, timedelta(hours=1)):
        bound = store.transaction("default", "w", wait=wait)._wait  # type: ignore[attr-defined]
        assert bound == operating.VIEW_WAIT <= timedelta(seconds=2)


def test_answers_are_http_responses(api: Api) -> None:
    assert isinstance(api.call("GET", "/api/v1/system-info"), HttpResponse)
