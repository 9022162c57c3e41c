"""Requests are read strictly, in every spelling that Temporal's API takes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wfapp.presentation.message_json import LONGEST, read_message, read_text, write_message
from wfcore.exceptions import InvalidArgumentError
from wfcore.protocol import events as ev
from wfcore.protocol.enums import HistoryEventFilterType, WorkflowIdReusePolicy
from wfcore.protocol.events import History, HistoryEvent
from wfcore.protocol.payloads import Memo, Payload, Payloads, SearchAttributes, UserMetadata
from wfcore.protocol.rpc.info import WorkflowExecutionInfo
from wfcore.protocol.rpc.workflows import (
    GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryResponse,
    ListWorkflowExecutionsResponse,
    StartWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
)


def read(**body: Any) -> StartWorkflowExecutionRequest:
    return read_message(StartWorkflowExecutionRequest, body, short=True)


def plain(data: bytes) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=data)


# ---- what is taken


def test_names_may_be_camel_case_or_snake_case() -> None:
    assert read(workflowType={"name": "A"}) == read(workflow_type={"name": "A"})


@pytest.mark.parametrize(
    "value", ["WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE", "AllowDuplicate", "ALLOW_DUPLICATE", 1]
)
def test_enumerations_by_full_name_short_name_or_number(value: Any) -> None:
    request = read(workflowIdReusePolicy=value)
    assert request.workflow_id_reuse_policy is WorkflowIdReusePolicy.ALLOW_DUPLICATE


def test_numbers_may_be_texts() -> None:
    request = read(retryPolicy={"maximumAttempts": "3", "backoffCoefficient": "2.5"})
    assert request.retry_policy is not None
    assert (request.retry_policy.maximum_attempts, request.retry_policy.backoff_coefficient) == (
        3,
        2.5,
    )


def test_null_means_not_given() -> None:
    assert read(identity=None, input=None, retryPolicy=None) == StartWorkflowExecutionRequest()


def test_null_within_a_map_of_payloads_is_a_value() -> None:
    request = read(memo={"fields": {"a": None}})
    assert request.memo == Memo(fields={"a": Payload(metadata={"encoding": b"binary/null"})})


def test_user_data_stands_short_wherever_it_stands() -> None:
    request = read(
        input=["Ann", 2],
        memo={"fields": {"note": "by hand"}},
        header={"fields": {"trace": "abc"}},
        userMetadata={"summary": "a summary"},
        searchAttributes={"indexedFields": {"City": "Bonn"}},
    )
    assert request.input == Payloads(payloads=(plain(b'"Ann"'), plain(b"2")))
    assert request.memo == Memo(fields={"note": plain(b'"by hand"')})
    assert request.user_metadata == UserMetadata(summary=plain(b'"a summary"'))
    assert request.search_attributes is not None
    assert request.search_attributes.indexed_fields == {"City": plain(b'"Bonn"')}


def test_durations_are_seconds() -> None:
    assert read(workflowRunTimeout="1.5s").workflow_run_timeout == timedelta(seconds=1.5)
    assert read(workflowRunTimeout="-1s").workflow_run_timeout == timedelta(seconds=-1)


# ---- what is refused

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"bogus": 1}, 'unknown field "bogus"'),
    ({"workflowType": {"name": "A", "bogus": 1}}, 'workflowType: unknown field "bogus"'),
    ({"workflowType": 1}, "workflowType: expected an object, got 1"),
    ({"workflowType": {}, "workflow_type": {}}, 'duplicate field "workflow_type"'),
    ({"identity": 1}, "identity: invalid value for string type: 1"),
    ({"identity": "a\0b"}, "identity: a text must not hold NUL"),
    ({"requestEagerExecution": "true"}, "invalid value for bool type"),
    ({"requestEagerExecution": 1}, "invalid value for bool type"),
    ({"retryPolicy": {"maximumAttempts": 1.5}}, "invalid value for int32 type: 1.5"),
    ({"retryPolicy": {"maximumAttempts": 5_000_000_000}}, "invalid value for int32 type"),
    ({"retryPolicy": {"maximumAttempts": True}}, "invalid value for int32 type"),
    ({"retryPolicy": {"maximumAttempts": "9" * 5000}}, "invalid value for int32 type"),
    ({"retryPolicy": {"backoffCoefficient": "inf"}}, "invalid value for double type"),
    ({"retryPolicy": {"backoffCoefficient": "nan"}}, "invalid value for double type"),
    ({"retryPolicy": {"backoffCoefficient": 10**400}}, "invalid value for double type"),
    ({"retryPolicy": {"backoffCoefficient": True}}, "invalid value for double type"),
    ({"retryPolicy": {"nonRetryableErrorTypes": "Bad"}}, "expected a list"),
    ({"retryPolicy": {"nonRetryableErrorTypes": [1]}}, "invalid value for string type"),
    ({"workflowRunTimeout": "10"}, "workflowRunTimeout: '10' is no duration"),
    ({"workflowRunTimeout": "10m"}, "is no duration"),
    ({"workflowRunTimeout": 10}, "invalid value for string type: 10"),
    ({"workflowRunTimeout": "9" * 40 + "s"}, "is longer than 292 years"),
    ({"workflowRunTimeout": "9999999999s"}, "is longer than 292 years"),
    ({"workflowIdReusePolicy": "SOMETIMES"}, "is no WorkflowIdReusePolicy"),
    ({"workflowIdReusePolicy": 77}, "77 is not a valid WorkflowIdReusePolicy"),
    ({"workflowIdReusePolicy": True}, "invalid value for enum type"),
    ({"workflowIdReusePolicy": []}, "invalid value for enum type"),
    ({"memo": {"fields": []}}, "memo: fields: expected an object"),
    ({"input": "text"}, "input: expected a list"),
    ({"links": {}}, "links: expected a list"),
]


@pytest.mark.parametrize(("body", "text"), REFUSED)
def test_the_error_names_the_field(body: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read(**body)
    assert text in caught.value.message


@pytest.mark.parametrize("body", [[], "a", 1, None, True])
def test_a_body_is_an_object(body: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="expected an object"):
        read_message(StartWorkflowExecutionRequest, body, short=True)


def test_short_user_data_is_refused_where_the_long_form_is_asked_for() -> None:
    with pytest.raises(InvalidArgumentError, match="input: expected an object"):
        read_message(StartWorkflowExecutionRequest, {"input": [1]}, short=False)


def test_the_longest_duration_is_a_time_that_the_database_can_hold() -> None:
    assert datetime(2100, 1, 1, tzinfo=UTC) + 2 * LONGEST < datetime(9999, 1, 1, tzinfo=UTC)


# ---- query parameters


def text(path: str, *texts: str) -> Any:
    return read_text(GetWorkflowExecutionHistoryRequest, tuple(path.split(".")), list(texts))


def test_parameters_are_read_by_the_type_of_their_field() -> None:
    assert text("maximum_page_size", "3") == 3
    assert text("wait_new_event", "true") is True
    assert text("wait_new_event", "false") is False
    assert text("next_page_token", "YWI=") == b"ab"
    assert text("next_page_token", "YWI") == b"ab"
    assert text("execution.run_id", "x") == "x"
    by_name = text("history_event_filter_type", "HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT")
    assert by_name is text("history_event_filter_type", "2") is HistoryEventFilterType.CLOSE_EVENT


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("maximum_page_size", "many"),
        ("maximum_page_size", ""),
        ("wait_new_event", "maybe"),
        ("next_page_token", "bogus!"),
        ("history_event_filter_type", "LATEST"),
        ("history_event_filter_type", "99"),
        ("execution.run_id", "\0"),
    ],
)
def test_a_parameter_that_is_no_value_of_its_field(path: str, value: str) -> None:
    with pytest.raises(InvalidArgumentError, match='parsing field "'):
        text(path, value)


def test_a_parameter_stands_once() -> None:
    with pytest.raises(InvalidArgumentError, match="it stands 2 times"):
        text("maximum_page_size", "1", "2")


@pytest.mark.parametrize(
    "path", ["nothing", "execution", "execution.nothing", "execution.run_id.x"]
)
def test_what_is_no_field_is_told_apart(path: str) -> None:
    with pytest.raises(KeyError):
        text(path, "1")


# ---- answers


def answer_with(attributes: Any) -> GetWorkflowExecutionHistoryResponse:
    event = HistoryEvent(
        event_id=1, event_time=datetime(2030, 1, 1, tzinfo=UTC), attributes=attributes
    )
    return GetWorkflowExecutionHistoryResponse(history=History(events=(event,)))


def test_user_data_of_events_is_short_or_long() -> None:
    answer = answer_with(ev.WorkflowExecutionSignaled(input=Payloads(payloads=(plain(b"[1]"),))))
    short = write_message(answer, short=True)["history"]["events"][0]
    long = write_message(answer, short=False)["history"]["events"][0]
    assert short["workflowExecutionSignaledEventAttributes"] == {"input": [[1]]}
    payload = {"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": "WzFd"}
    assert long["workflowExecutionSignaledEventAttributes"] == {"input": {"payloads": [payload]}}


def test_an_empty_list_of_arguments_stays() -> None:
    answer = answer_with(ev.WorkflowExecutionStarted(input=Payloads()))
    (event,) = write_message(answer, short=True)["history"]["events"]
    assert event["workflowExecutionStartedEventAttributes"] == {"input": []}


def test_search_attributes_are_never_short() -> None:
    info = WorkflowExecutionInfo(
        memo=Memo(fields={"a": plain(b"1")}),
        search_attributes=SearchAttributes(indexed_fields={"a": plain(b"1")}),
    )
    written = write_message(ListWorkflowExecutionsResponse(executions=(info,)), short=True)
    assert written["executions"][0] == {
        "memo": {"fields": {"a": 1}},
        "searchAttributes": {
            "indexedFields": {"a": {"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": "MQ=="}}
        },
    }


def test_what_is_read_and_written_again_is_the_same() -> None:
    body = {
        "namespace": "default",
        "workflowExecution": {"workflowId": "a/b", "runId": "r"},
        "reason": "enough",
        "details": ["a", 1, {"b": [None]}],
        "identity": "me",
    }
    request = read_message(TerminateWorkflowExecutionRequest, body, short=True)
    assert write_message(request, short=True) == body
