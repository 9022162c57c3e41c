"""Operations on pending activities do to them what Temporal's server was seen to do."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.probing import Probe
from tests.support.requests_json import activity, cancel_activity, values
from wfcore.history.machines import activity as machine
from wfcore.protocol.enums import PendingActivityState as State
from wfcore.protocol.json_form import from_json, to_json
from wfcore.protocol.rpc.activity_operations import UpdateActivityOptionsRequest

SLOW = {"retryPolicy": {"initialInterval": "60s"}}
QUICK = {"retryPolicy": {"initialInterval": "0.5s"}}


class Pending:
    """A run with one activity, and what is done to it."""

    def __init__(self, **attributes: Any) -> None:
        self.probe = Probe()
        self.id, _ = self.probe.with_activity(**attributes)

    @property
    def shown(self) -> Any:
        (info,) = self.probe.describe(self.id).pending_activities
        return info

    @property
    def state(self) -> tuple[State, int]:
        return self.shown.state, self.shown.attempt

    @property
    def ended(self) -> list[str]:
        """Events after the one that scheduled it."""
        return self.probe.types(self.id)[5:]

    @property
    def paused_types(self) -> Any:
        found = self.probe.describe(self.id).workflow_execution_info.search_attributes
        payload = found.indexed_fields.get("TemporalPauseInfo")
        if payload is None:
            return None
        assert payload.metadata == {"encoding": b"json/plain", "type": b"KeywordList"}
        return json.loads(payload.data)

    def take(self) -> Any:
        """An attempt that a worker may take now; None if there is none."""
        task = self.probe.poll_activity()
        return task if task.task_token else None

    def beat(self, task: Any, *details: Any) -> tuple[bool, bool, bool]:
        given = values(*details) if details else None
        answer = self.probe.answer_activity("heartbeat", task, details=given)
        return answer.cancel_requested, answer.activity_paused, answer.activity_reset

    def fail(self, task: Any) -> None:
        assert not isinstance(self.probe.answer_activity("failed", task), dict)

    def do(self, method: str, **fields: Any) -> Any:
        fields = (
            fields if {"type", "unpauseAll", "matchAll"} & fields.keys() else {"id": "a"} | fields
        )
        answer = self.probe.operate(f"{method}", self.id, **fields)
        assert not isinstance(answer, dict), answer
        return answer

    def pause(self, **fields: Any) -> None:
        self.do("pause_activity", **fields)

    def unpause(self, **fields: Any) -> None:
        self.do("unpause_activity", **fields)

    def reset(self, **fields: Any) -> None:
        self.do("reset_activity", **fields)

    def change(self, mask: str, **options: Any) -> Any:
        return self.do("update_activity_options", updateMask=mask, activityOptions=options)


def failed_once(**attributes: Any) -> Pending:
    """Attempt 2 waits for a minute."""
    pending = Pending(**{**SLOW, **attributes})
    task = pending.take()
    pending.beat(task, "hb")
    pending.fail(task)
    return pending


def running_twice(**attributes: Any) -> tuple[Pending, Any]:
    """Attempt 2 runs."""
    pending = Pending(**{**QUICK, **attributes})
    pending.fail(pending.take())
    pending.probe.advance(0.5)
    return pending, pending.take()


def details_of(task: Any) -> Any:
    found = task.heartbeat_details
    return json.loads(found.payloads[0].data) if found and found.payloads else None


# --- pause ---


def test_a_paused_activity_waits() -> None:
    pending = Pending()
    pending.pause(reason="why")
    assert pending.state == (State.PAUSED, 1)
    assert pending.shown.paused
    assert pending.shown.pause_info.manual.reason == "why"
    assert pending.shown.pause_info.manual.identity == "probe-client"
    assert pending.shown.pause_info.pause_time == pending.probe.clock.now()
    pending.probe.advance(3600)
    assert pending.take() is None
    pending.unpause()
    assert pending.state == (State.SCHEDULED, 1)
    assert pending.take().attempt == 1
    assert pending.ended == []


def test_one_that_runs_goes_on_and_is_told() -> None:
    pending, task = running_twice()
    pending.pause()
    assert pending.state == (State.PAUSE_REQUESTED, 2)
    assert pending.beat(task, "keep") == (False, True, False)
    pending.unpause()
    assert pending.state == (State.STARTED, 2)
    assert pending.beat(task) == (False, False, False)


def test_one_that_runs_may_complete() -> None:
    pending = Pending()
    task = pending.take()
    pending.pause()
    pending.probe.answer_activity("completed", task)
    assert pending.ended[:2] == ["ACTIVITY_TASK_STARTED", "ACTIVITY_TASK_COMPLETED"]


def test_a_failure_meanwhile_counts_and_the_next_attempt_waits_for_the_end_of_the_pause() -> None:
    pending = Pending(retryPolicy={"initialInterval": "0.5s", "maximumAttempts": 1})
    task = pending.take()
    pending.beat(task, "keep")
    pending.pause()
    pending.fail(task)
    assert pending.state == (State.PAUSED, 2)
    pending.probe.advance(60)
    assert pending.take() is None
    pending.unpause()
    again = pending.take()
    assert (again.attempt, details_of(again)) == (2, "keep")


def test_a_failure_that_is_final_stays_final() -> None:
    pending = Pending(retryPolicy={"nonRetryableErrorTypes": ["MyError"]})
    task = pending.take()
    pending.pause()
    pending.fail(task)
    assert "ACTIVITY_TASK_FAILED" in pending.ended


def test_a_lost_worker_meanwhile_counts_too() -> None:
    pending = Pending()
    pending.take()
    pending.pause()
    (row,) = pending.probe.store.read_activities(
        pending.probe.store.head("default", pending.id).key
    )  # type: ignore[union-attr]
    lost = machine.lost(row, pending.probe.clock.now(), "gone")
    assert lost is not None
    assert lost.row is not None
    assert (lost.row.attempt, lost.row.claimable_at, lost.row.due_at) == (2, None, None)


def test_no_timeout_fires_while_it_runs_paused_and_overdue_ones_fire_then() -> None:
    pending = Pending(
        start_to_close=2, scheduleToCloseTimeout="3s", retryPolicy={"maximumAttempts": 1}
    )
    pending.take()
    pending.pause()
    pending.probe.advance(4.5)
    assert pending.ended == []
    pending.unpause()
    pending.probe.advance(0)
    assert pending.ended[:2] == ["ACTIVITY_TASK_STARTED", "ACTIVITY_TASK_TIMED_OUT"]
    failure = pending.probe.attributes(pending.id, "ACTIVITY_TASK_TIMED_OUT").failure
    assert failure.message == "activity StartToClose timeout"


def test_no_timeout_fires_while_it_waits_paused_and_schedule_to_close_does_then() -> None:
    pending = Pending(start_to_close=2, scheduleToCloseTimeout="3s")
    pending.pause()
    pending.probe.advance(4.5)
    assert pending.ended == []
    pending.unpause()
    pending.probe.advance(0)
    assert pending.ended[:1] == ["ACTIVITY_TASK_TIMED_OUT"]


def test_schedule_to_start_counts_from_the_end_of_the_pause() -> None:
    pending = Pending(scheduleToStartTimeout="2s")
    pending.pause()
    pending.probe.advance(3.5)
    pending.unpause()
    pending.probe.advance(1.9)
    assert pending.ended == []
    pending.probe.advance(0.2)
    assert pending.ended[:1] == ["ACTIVITY_TASK_TIMED_OUT"]


def test_heartbeats_meanwhile_count_for_the_heartbeat_timeout() -> None:
    pending = Pending(heartbeatTimeout="2s", **SLOW)
    task = pending.take()
    pending.pause()
    pending.probe.advance(5)
    pending.beat(task)
    pending.unpause()
    pending.probe.advance(1.9)
    assert pending.state == (State.STARTED, 1)
    pending.probe.advance(0.2)
    assert pending.state == (State.SCHEDULED, 2)


def test_the_attribute_names_paused_types_once_each() -> None:
    probe = Probe()
    pending = Pending.__new__(Pending)
    pending.probe = probe
    pending.id, _ = probe.run(searchAttributes={"indexedFields": {}})
    probe.step(
        activity("a", probe.queue),
        activity("b", probe.queue),
        activity("c", probe.queue, kind="other"),
    )
    assert pending.paused_types is None
    pending.pause(type="act", requestId="r")
    assert pending.paused_types == ["property:activityType=act"]
    pending.pause(id="c")
    assert pending.paused_types == ["property:activityType=act", "property:activityType=other"]
    pending.unpause(id="a")
    assert pending.paused_types == ["property:activityType=act", "property:activityType=other"]
    refused = probe.operate("pause_activity", pending.id, type="act", requestId="r3")
    assert refused["message"] == "activity is already paused"
    states = {i.activity_id: i.state for i in probe.describe(pending.id).pending_activities}
    assert states == {"a": State.SCHEDULED, "b": State.PAUSED, "c": State.PAUSED}
    pending.unpause(unpauseAll=True)
    assert pending.paused_types is None


def test_a_cancel_request_ends_a_paused_activity_that_waits() -> None:
    pending = Pending()
    pending.pause()
    pending.probe.signal(pending.id)
    pending.probe.step(cancel_activity(5))
    assert "ACTIVITY_TASK_CANCELED" in pending.ended


def test_a_cancel_request_is_shown_before_a_pause() -> None:
    pending = Pending()
    task = pending.take()
    pending.pause()
    pending.probe.signal(pending.id)
    pending.probe.step(cancel_activity(5))
    assert pending.shown.state is State.CANCEL_REQUESTED
    assert pending.shown.paused
    assert pending.beat(task) == (True, True, False)


def test_a_paused_activity_may_be_completed_by_its_name() -> None:
    pending = Pending()
    pending.pause()
    pending.probe.answer_by_id("completed", pending.id)
    assert pending.ended[:2] == ["ACTIVITY_TASK_STARTED", "ACTIVITY_TASK_COMPLETED"]


# --- unpause ---


def test_unpause_drops_the_rest_of_the_wait() -> None:
    pending = failed_once()
    pending.pause()
    assert pending.state == (State.PAUSED, 2)
    assert pending.shown.next_attempt_schedule_time is None
    pending.unpause()
    task = pending.take()
    assert (task.attempt, details_of(task)) == (2, "hb")


@pytest.mark.parametrize(
    ("options", "attempt", "details"),
    [({"resetAttempts": True}, 1, "hb"), ({"resetHeartbeat": True}, 2, None)],
)
def test_unpause_resets_what_it_is_told_to(options: Any, attempt: int, details: Any) -> None:
    pending = failed_once()
    pending.pause()
    pending.unpause(**options)
    task = pending.take()
    assert (task.attempt, details_of(task)) == (attempt, details)


def test_unpause_that_resets_takes_the_number_from_under_the_attempt_that_runs() -> None:
    pending, task = running_twice()
    pending.beat(task, "d")
    pending.pause()
    pending.unpause(resetAttempts=True, resetHeartbeat=True)
    assert pending.state == (State.STARTED, 1)
    assert pending.shown.heartbeat_details is None
    refused = pending.probe.answer_activity("heartbeat", task)
    assert refused["code"] == "NOT_FOUND"


def test_jitter_spreads_attempts() -> None:
    pending = failed_once()
    pending.pause()
    now = pending.probe.clock.now()
    pending.unpause(jitter="3s")
    at = pending.shown.next_attempt_schedule_time
    assert now < at < now + timedelta(seconds=3)
    assert pending.shown.current_retry_interval == at - pending.shown.last_attempt_complete_time
    assert pending.take() is None
    pending.probe.advance((at - now).total_seconds())
    assert pending.take().attempt == 2


# --- reset ---


def test_reset_begins_with_the_first_attempt_at_once() -> None:
    pending = failed_once()
    pending.reset()
    task = pending.take()
    assert (task.attempt, details_of(task)) == (1, "hb")
    pending.probe.answer_activity("completed", task)
    started = pending.probe.attributes(pending.id, "ACTIVITY_TASK_STARTED")
    assert (started.attempt, started.last_failure) == (1, None)


def test_reset_forgets_heartbeat_details_if_told_to() -> None:
    pending = failed_once()
    pending.reset(resetHeartbeat=True)
    assert details_of(pending.take()) is None


def test_reset_ends_a_pause_unless_told_to_keep_it() -> None:
    pending = failed_once()
    pending.pause()
    pending.reset(keepPaused=True)
    assert pending.state == (State.PAUSED, 1)
    assert pending.take() is None
    pending.reset()
    assert pending.paused_types is None
    assert pending.take().attempt == 1


def test_reset_tells_the_first_attempt_that_runs_and_leaves_it_its_token() -> None:
    pending = Pending(**QUICK)
    task = pending.take()
    pending.beat(task, "hb")
    pending.reset()
    assert pending.beat(task, "hb2") == (False, False, True)
    pending.fail(task)
    assert pending.state == (State.SCHEDULED, 2)
    pending.probe.advance(0.5)
    again = pending.take()
    assert details_of(again) == "hb2"
    assert pending.beat(again) == (False, False, False)


def test_reset_of_a_running_attempt_forgets_its_details_with_the_next_one() -> None:
    pending = Pending(**QUICK)
    task = pending.take()
    pending.beat(task, "hb")
    pending.reset(resetHeartbeat=True)
    assert pending.shown.heartbeat_details is not None
    assert pending.beat(task, "hb2") == (False, False, True)
    pending.fail(task)
    pending.probe.advance(0.5)
    assert details_of(pending.take()) is None


def test_reset_ends_the_pause_of_a_running_attempt_unless_told_to_keep_it() -> None:
    pending = Pending()
    task = pending.take()
    pending.pause()
    pending.reset(keepPaused=True)
    assert pending.beat(task) == (False, True, True)
    pending.reset()
    assert pending.beat(task) == (False, False, True)


def test_reset_of_a_later_attempt_waits_for_its_time_limit() -> None:
    pending, task = running_twice(start_to_close=3)
    pending.reset()
    assert pending.state == (State.STARTED, 1)
    for how in ("heartbeat", "completed", "failed"):
        assert pending.probe.answer_activity(how, task)["code"] == "NOT_FOUND"
    pending.probe.advance(3.6)
    assert pending.take().attempt == 2


def test_reset_brings_the_original_options_back_if_told_to() -> None:
    pending = failed_once()
    pending.change("startToCloseTimeout", startToCloseTimeout="33s")
    pending.reset(restoreOriginalOptions=True)
    assert pending.shown.activity_options.start_to_close_timeout == timedelta(seconds=10)


# --- options ---


def test_a_shorter_interval_moves_the_next_attempt() -> None:
    pending = failed_once()
    pending.change("retryPolicy.initialInterval", retryPolicy={"initialInterval": "3s"})
    assert pending.shown.current_retry_interval == timedelta(seconds=6)
    pending.probe.advance(5.9)
    assert pending.take() is None
    pending.probe.advance(0.2)
    assert pending.take().attempt == 2


def test_options_are_merged_and_answered() -> None:
    pending = Pending(**SLOW)
    answer = pending.change(
        "retryPolicy.initialInterval,startToCloseTimeout",
        retryPolicy={"initialInterval": "1s"},
        startToCloseTimeout="7s",
        heartbeatTimeout="5s",  # which the mask doesn't name
    )
    options = to_json(answer.activity_options)
    assert options == {
        "taskQueue": {"name": pending.probe.queue, "kind": "TASK_QUEUE_KIND_NORMAL"},
        "scheduleToCloseTimeout": "0s",
        "scheduleToStartTimeout": "0s",
        "startToCloseTimeout": "7s",
        "heartbeatTimeout": "0s",
        "retryPolicy": {
            "initialInterval": "1s",
            "backoffCoefficient": 2.0,
            "maximumInterval": "6000s",
        },
    }


def test_time_limits_are_brought_in_line() -> None:
    pending = Pending()
    options = pending.change("scheduleToCloseTimeout", scheduleToCloseTimeout="5s").activity_options
    five = timedelta(seconds=5)
    assert options.schedule_to_close_timeout == five
    assert options.schedule_to_start_timeout == five
    assert options.start_to_close_timeout == five
    options = pending.change("heartbeatTimeout", heartbeatTimeout="500s").activity_options
    assert options.heartbeat_timeout == five


def test_the_worker_sees_the_scheduled_limits_and_the_clocks_use_the_new_ones() -> None:
    pending = failed_once()
    pending.change("startToCloseTimeout", startToCloseTimeout="1s")
    pending.reset()
    task = pending.take()
    assert task.start_to_close_timeout == timedelta(seconds=10)
    pending.probe.advance(1)
    assert pending.state == (State.SCHEDULED, 2)
    assert pending.shown.last_failure.message == "activity StartToClose timeout"


def test_new_limits_hold_for_the_attempt_that_runs_and_leave_it_its_token() -> None:
    pending = Pending()
    task = pending.take()
    pending.change("startToCloseTimeout", startToCloseTimeout="60s")
    pending.probe.advance(30)
    assert pending.beat(task) == (False, False, False)
    pending.probe.advance(31)
    assert pending.state == (State.SCHEDULED, 2)


def test_another_queue_gets_the_attempt_that_waits() -> None:
    pending = Pending()
    pending.change("taskQueue.name", taskQueue={"name": "elsewhere"})
    assert pending.take() is None
    assert pending.probe.poll_activity("elsewhere").attempt == 1


def test_parts_of_a_priority_are_changed_or_all_of_it() -> None:
    pending = Pending(priority={"priorityKey": 2})

    def priority(mask: str, **given: Any) -> Any:
        return to_json(pending.change(mask, priority=given).activity_options.priority)

    assert priority("priority.priorityKey", priorityKey=4) == {"priorityKey": 4}
    assert priority("priority.fairnessKey", fairnessKey="f") == {
        "priorityKey": 4,
        "fairnessKey": "f",
    }
    assert priority("priority", fairnessKey="g") == {"fairnessKey": "g"}


def test_a_lower_number_of_attempts_acts_at_the_next_failure() -> None:
    pending = failed_once()
    pending.pause()
    pending.change("retryPolicy.maximumAttempts", retryPolicy={"maximumAttempts": 1})
    assert pending.shown.state is State.PAUSED
    pending.unpause()
    pending.fail(pending.take())
    failed = pending.probe.attributes(pending.id, "ACTIVITY_TASK_FAILED")
    assert failed.retry_state.name == "MAXIMUM_ATTEMPTS_REACHED"


def test_the_scheduled_options_come_back() -> None:
    pending = Pending(priority={"priorityKey": 2})
    pending.change(
        "startToCloseTimeout,taskQueue.name,priority.priorityKey",
        startToCloseTimeout="33s",
        taskQueue={"name": "elsewhere"},
        priority={"priorityKey": 5},
    )
    options = pending.do("update_activity_options", restoreOriginal=True).activity_options
    assert options.start_to_close_timeout == timedelta(seconds=10)
    assert options.task_queue.name == pending.probe.queue
    assert options.priority.priority_key == 2
    assert pending.take().attempt == 1


@pytest.mark.parametrize(
    ("mask", "options", "text"),
    [
        ("startToCloseTimeout", {}, "a valid StartToCloseTimeout or ScheduleToCloseTimeout"),
        ("retryPolicy.initialInterval", {}, "RetryPolicy is not provided"),
        ("taskQueue.name", {}, "TaskQueue is not provided"),
        ("taskQueue.name", {"taskQueue": {"name": "/_sys/x"}}, "reserved prefix /_sys/"),
        ("priority.priorityKey", {"priority": {"priorityKey": -4}}, "can't be negative"),
        ("retryPolicy.maximumAttempts", {"retryPolicy": {"maximumAttempts": -1}}, "negative"),
    ],
)
def test_options_that_can_not_be_are_refused(mask: str, options: Any, text: str) -> None:
    pending = Pending()
    before = pending.shown.activity_options
    request = {"id": "a", "updateMask": mask, "activityOptions": options}
    answer = pending.probe.operate("update_activity_options", pending.id, **request)
    assert answer["code"] == "INVALID_ARGUMENT"
    assert text in answer["message"]
    assert pending.shown.activity_options == before


# --- in general ---


def test_none_of_them_writes_an_event() -> None:
    pending = failed_once()
    count = len(pending.probe.types(pending.id))
    for step in (
        pending.pause,
        lambda: pending.reset(keepPaused=True),
        lambda: pending.change("startToCloseTimeout", startToCloseTimeout="9s"),
        pending.unpause,
        pending.reset,
    ):
        step()
    assert len(pending.probe.types(pending.id)) == count


OPERATIONS: dict[str, Callable[[Pending], None]] = {
    "pause": lambda pending: pending.pause(),
    "reset": lambda pending: pending.reset(),
    "options": lambda pending: pending.change("startToCloseTimeout", startToCloseTimeout="9s"),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_heartbeat_or_claim_that_was_decided_before_takes_nothing_back(name: str) -> None:
    pending = Pending()
    store = pending.probe.store
    (waiting,) = store.read_activities(store.head("default", pending.id).key)  # type: ignore[union-attr]
    claim = machine.claim(waiting, pending.probe.clock.now(), request_id="r")
    OPERATIONS[name](pending)
    assert claim is not None
    assert claim.row is not None
    assert not store.replace_activity(waiting, claim.row)


def test_they_reach_the_run_that_has_taken_the_place_of_a_closed_one() -> None:
    probe = Probe()
    workflow_id, first = probe.closed("COMPLETED")
    probe.run(workflow_id)
    probe.step(activity("a", probe.queue))
    answer = probe.operate("pause_activity", workflow_id, id="a")
    assert not isinstance(answer, dict)
    refused = probe.operate("pause_activity", workflow_id, first, id="a")
    assert refused["message"] == "workflow execution already completed"


def test_a_mask_is_one_text_in_json() -> None:
    text = "retryPolicy.initialInterval,startToCloseTimeout"
    request = from_json(UpdateActivityOptionsRequest, {"updateMask": text})
    assert request.update_mask is not None
    assert request.update_mask.paths == ("retry_policy.initial_interval", "start_to_close_timeout")
    assert to_json(request) == {"updateMask": text}
    snake = from_json(UpdateActivityOptionsRequest, {"update_mask": "start_to_close_timeout"})
    assert snake.update_mask is not None
    assert snake.update_mask.paths == ("start_to_close_timeout",)


def test_an_answer_of_an_earlier_claim_does_not_end_the_attempt_that_got_its_number() -> None:
    """A reset gives the attempt that runs the number of the first, whose worker may be alive."""
    pending = Pending(**QUICK)
    first = pending.take()
    pending.probe.answer_activity("failed", first)
    pending.probe.advance(1)
    second = pending.take()
    assert (first.attempt, second.attempt) == (1, 2)
    pending.reset()
    assert pending.state == (State.STARTED, 1)
    refused = pending.probe.answer_activity("completed", first)
    assert refused["code"] == "NOT_FOUND"
    assert pending.state == (State.STARTED, 1)
