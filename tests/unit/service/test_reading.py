"""Histories in pages and long polls, describe, lists and counts."""

import threading
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from tests.support.probing import Probe
from tests.support.requests_json import activity, timer, value, values
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.testing.memory_ports import SimulatedClock

CLOSE = {"historyEventFilterType": "HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT"}


def read(probe: Probe, workflow_id: str, reverse: bool = False, **fields: Any) -> Any:
    method = "get_workflow_execution_history" + ("_reverse" if reverse else "")
    options = {key: fields.pop(key) for key in ("show_transient",) if key in fields}
    token = fields.pop("token", b"")
    return probe.call(
        method,
        {
            "execution": {"workflowId": workflow_id},
            "nextPageToken": b64encode(token).decode(),
            **fields,
        },
        **options,
    )


def ids(page: Any) -> list[int]:
    return [event.event_id for event in page.history.events]


def names(page: Any) -> list[str]:
    return [event.event_type.name for event in page.history.events]


def with_signals(probe: Probe, number: int) -> str:
    workflow_id, _ = probe.run()
    for _ in range(number):
        probe.advance(0.001)
        probe.signal(workflow_id)
    return workflow_id


def all_pages(probe: Probe, workflow_id: str, reverse: bool = False, **fields: Any) -> list[Any]:
    pages = [read(probe, workflow_id, reverse, **fields)]
    while pages[-1].next_page_token:
        assert len(pages) < 200
        token = pages[-1].next_page_token
        pages.append(read(probe, workflow_id, reverse, token=token, **fields))
    return pages


@pytest.mark.parametrize("size", [0, 1, 7, 1000])
def test_pages_together_are_the_history(size: int) -> None:
    probe = Probe()
    workflow_id = with_signals(probe, 150)
    probe.step(*(timer(f"t{number}", 60) for number in range(150)))
    expected = list(range(1, 305))
    forward = all_pages(probe, workflow_id, maximumPageSize=size)
    assert [event_id for page in forward for event_id in ids(page)] == expected
    assert max(len(ids(page)) for page in forward) <= 256
    backward = all_pages(probe, workflow_id, reverse=True, maximumPageSize=size)
    assert [event_id for page in backward for event_id in ids(page)] == expected[::-1]


def test_a_page_holds_whole_transactions() -> None:
    probe = Probe()
    workflow_id = with_signals(probe, 3)
    assert ids(read(probe, workflow_id, maximumPageSize=2)) == [1, 2, 3]
    assert ids(read(probe, workflow_id, reverse=True, maximumPageSize=2)) == [5, 4]


def test_a_token_leads_on_while_the_history_grows() -> None:
    probe = Probe()
    workflow_id = with_signals(probe, 2)
    first = read(probe, workflow_id, maximumPageSize=2)
    probe.advance(0.001)
    probe.signal(workflow_id)
    second = read(probe, workflow_id, maximumPageSize=3, token=first.next_page_token)
    assert ids(second) == [4, 5]


def test_a_token_stays_with_its_run() -> None:
    probe = Probe()
    workflow_id = with_signals(probe, 3)
    first = read(probe, workflow_id, maximumPageSize=1)
    probe.terminate(workflow_id)
    probe.run(workflow_id)
    second = read(probe, workflow_id, token=first.next_page_token)
    assert ids(second) == [3, 4, 5, 6]
    other = {"execution": {"workflowId": workflow_id, "runId": probe.request_id()}}
    refused = read(probe, workflow_id, token=first.next_page_token, **other)
    assert refused["message"] == "Invalid NextPageToken."
    refused = read(probe, workflow_id, reverse=True, token=first.next_page_token)
    assert refused["message"] == "Invalid NextPageToken."


def test_the_close_event_alone() -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    page = read(probe, workflow_id, **CLOSE)
    assert (ids(page), page.next_page_token) == ([], b"")
    probe.terminate(workflow_id)
    assert names(read(probe, workflow_id, **CLOSE)) == ["WORKFLOW_EXECUTION_TERMINATED"]


def test_a_long_poll_ends_after_twenty_seconds_with_a_token() -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    before = probe.clock.now()
    page = read(probe, workflow_id, waitNewEvent=True, **CLOSE)
    assert probe.clock.now() - before == timedelta(seconds=20)
    assert ids(page) == []
    assert page.next_page_token
    probe.terminate(workflow_id)
    page = read(probe, workflow_id, waitNewEvent=True, token=page.next_page_token, **CLOSE)
    assert names(page) == ["WORKFLOW_EXECUTION_TERMINATED"]
    assert page.next_page_token == b""


def test_following_a_run_to_its_end() -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()
    page = read(probe, workflow_id, waitNewEvent=True)
    assert ids(page) == [1, 2, 3, 4]
    page = read(probe, workflow_id, waitNewEvent=True, token=page.next_page_token)
    assert ids(page) == []
    probe.signal(workflow_id)
    page = read(probe, workflow_id, waitNewEvent=True, token=page.next_page_token)
    assert ids(page) == [5, 6]
    probe.terminate(workflow_id)
    page = read(probe, workflow_id, waitNewEvent=True, token=page.next_page_token)
    assert names(page) == ["WORKFLOW_EXECUTION_TERMINATED"]
    assert page.next_page_token == b""


def test_a_waiting_reader_is_woken() -> None:
    probe = Probe(clock=SimulatedClock(skip_waits=False))
    workflow_id, _ = probe.idle()
    asked = threading.Event()
    wait = probe.dispatcher.wait_history

    def waits(*given: Any) -> None:
        asked.set()
        wait(*given)

    probe.dispatcher.wait_history = waits  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(read, probe, workflow_id, waitNewEvent=True, **CLOSE)
        assert asked.wait(10)
        probe.terminate(workflow_id)
        assert names(reading.result(10)) == ["WORKFLOW_EXECUTION_TERMINATED"]


def test_a_transient_task_is_shown_but_to_the_command_line() -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    probe.fail_task(probe.poll())
    stored = ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED"]
    stored.append("WORKFLOW_TASK_FAILED")
    assert names(read(probe, workflow_id)) == [*stored, "WORKFLOW_TASK_SCHEDULED"]
    assert names(read(probe, workflow_id, show_transient=False)) == stored
    probe.poll()
    assert names(read(probe, workflow_id))[4:] == [
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
    ]
    page = read(probe, workflow_id, maximumPageSize=2)
    assert names(page) == stored[:3]
    probe.terminate(workflow_id)
    assert names(read(probe, workflow_id))[4:] == ["WORKFLOW_EXECUTION_TERMINATED"]


def test_a_transient_task_is_shown_once_although_the_last_page_is_full() -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    probe.fail_task(probe.poll())
    shown, token = [], b""
    for _ in range(5):
        page = read(probe, workflow_id, maximumPageSize=1, token=token)
        shown += ids(page)
        token = page.next_page_token
        if not token:
            break
    assert shown == [1, 2, 3, 4, 5]


# ---- describe


def test_describe_shows_how_a_run_was_started() -> None:
    probe = Probe()
    workflow_id, run_id = probe.run(
        requestId="the-request",
        workflowExecutionTimeout="86400s",
        workflowRunTimeout="3600s",
        workflowTaskTimeout="20s",
        userMetadata={"summary": value("a summary")},
        memo={"fields": {"note": value("by hand")}},
        priority={"priorityKey": 2},
    )
    shown = probe.describe(workflow_id)
    config, info, more = (
        shown.execution_config,
        shown.workflow_execution_info,
        shown.workflow_extended_info,
    )
    assert config.task_queue.name == probe.queue
    assert config.workflow_run_timeout == timedelta(hours=1)
    assert config.default_workflow_task_timeout == timedelta(seconds=20)
    assert config.user_metadata.summary.data == b'"a summary"'
    assert (info.execution.run_id, info.first_run_id) == (run_id, run_id)
    assert (info.status, info.history_length) == (Status.RUNNING, 2)
    assert info.memo.fields["note"].data == b'"by hand"'
    assert info.priority.priority_key == 2
    assert info.root_execution == info.execution
    assert more.run_expiration_time == info.start_time + timedelta(hours=1)
    assert more.execution_expiration_time == info.start_time + timedelta(days=1)
    assert more.request_id_infos["the-request"].event_id == 1
    pending = shown.pending_workflow_task
    assert (pending.state.name, pending.attempt) == ("SCHEDULED", 1)
    assert pending.scheduled_time == pending.original_scheduled_time == info.start_time


def test_describe_shows_an_activity_on_its_way() -> None:
    probe = Probe()
    workflow_id, _ = probe.with_activity(heartbeatTimeout="30s")

    def shown() -> Any:
        (info,) = probe.describe(workflow_id).pending_activities
        return info

    assert (shown().state.name, shown().attempt) == ("SCHEDULED", 1)
    task = probe.poll_activity()
    probe.answer_activity("heartbeat", task, details=values("hb"))
    assert shown().state.name == "STARTED"
    assert shown().heartbeat_details.payloads[0].data == b'"hb"'
    assert shown().last_worker_identity == "probe-worker"
    probe.answer_activity("failed", task)
    assert (shown().state.name, shown().attempt) == ("SCHEDULED", 2)
    assert shown().current_retry_interval == timedelta(seconds=1)
    assert shown().next_attempt_schedule_time == probe.clock.now() + timedelta(seconds=1)
    assert shown().last_failure.message == "boom"
    assert shown().activity_options.start_to_close_timeout == timedelta(seconds=10)


def test_describe_of_a_closed_run_keeps_what_was_pending() -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    probe.step(activity("a", probe.queue), timer("t", 60))
    probe.signal(workflow_id)
    probe.advance(3)
    probe.terminate(workflow_id)
    shown = probe.describe(workflow_id)
    assert [info.activity_id for info in shown.pending_activities] == ["a"]
    assert shown.workflow_execution_info.status is Status.TERMINATED
    assert shown.workflow_execution_info.execution_duration == timedelta(seconds=3)


# ---- lists


def list_ids(probe: Probe, query: str = "", **fields: Any) -> list[str]:
    found = probe.call("list_workflow_executions", {"query": query, **fields})
    return [info.execution.workflow_id for info in found.executions]


def test_runs_are_listed_by_what_they_are() -> None:
    probe = Probe()
    first, _ = probe.run(workflowType={"name": "one"})
    probe.advance(1)
    middle = probe.clock.now().isoformat()
    second, run_id = probe.run(workflowType={"name": "it's two"})
    probe.terminate(second)
    assert list_ids(probe) == [second, first]
    assert list_ids(probe, "WorkflowType = 'one'") == [first]
    assert list_ids(probe, "WorkflowType = 'it''s two'") == [second]
    assert list_ids(probe, f"WorkflowId = '{first}' AND TaskQueue = 'q-probe'") == [first]
    assert list_ids(probe, f'RunId = "{run_id}"') == [second]
    assert list_ids(probe, "ExecutionStatus = 'Running'") == [first]
    assert list_ids(probe, "ExecutionStatus != 'Running'") == [second]
    assert list_ids(probe, "ExecutionStatus IN ('Terminated', 1)") == [second, first]
    assert list_ids(probe, f"StartTime < '{middle}'") == [first]
    assert list_ids(probe, f"StartTime > '{probe.clock.now().isoformat()}'") == []


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("WorkflowType LIKE 'a'", "'=' is missing"),
        ("WorkflowType = one", "must stand in quotes"),
        ("WorkflowType =", "incomplete expression"),
        ("WorkflowType = 'a' AND WorkflowType = 'b'", "two conditions on workflow_type"),
        ("WorkflowType = 'a' OR TaskQueue = 'b'", "joined by AND only"),
        ("StartTime = '2030-01-01T00:00:00Z'", "operator '=' for StartTime"),
        ("StartTime > '2030-01-01T00:00:00'", "unable to parse datetime"),
        ("WorkflowType = 'a", "syntax error at position"),
        ("WorkflowType = 'a' LIMIT 5", "'LIMIT' clause"),
        ("ExecutionStatus = 'Sleeping'", "invalid ExecutionStatus value 'Sleeping'"),
    ],
)
def test_what_a_filter_cannot_do_is_said(query: str, text: str) -> None:
    refused = Probe().call("list_workflow_executions", {"query": query})
    assert refused["code"] == "INVALID_ARGUMENT"
    assert text in refused["message"]


def test_lists_come_in_pages() -> None:
    probe = Probe()
    started = [probe.run()[0] for _ in range(5)]
    seen, token = [], ""
    for _ in range(3):
        page = probe.call("list_workflow_executions", {"pageSize": 2, "nextPageToken": token})
        seen += [info.execution.workflow_id for info in page.executions]
        token = b64encode(page.next_page_token).decode()
    assert seen == list(reversed(started))
    refused = probe.call("list_workflow_executions", {"nextPageToken": "cnViYmlzaA=="})
    assert refused["message"] == "Invalid NextPageToken."


def test_counts_may_be_grouped_by_status() -> None:
    probe = Probe()
    probe.closed("COMPLETED")
    probe.closed("COMPLETED")
    probe.run()
    counted = probe.call("count_workflow_executions", {})
    assert (counted.count, counted.groups) == (3, ())
    counted = probe.call("count_workflow_executions", {"query": "GROUP BY ExecutionStatus"})
    assert counted.count == 3
    groups = {group.group_values[0].data: group.count for group in counted.groups}
    assert groups == {b'"Running"': 1, b'"Completed"': 2}
    refused = probe.call("list_workflow_executions", {"query": "GROUP BY ExecutionStatus"})
    assert refused["code"] == "UNIMPLEMENTED"
