"""Commands that can't be carried out: the answers of a real server, text by text."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.histories import (
    QUEUE,
    Run,
    a_run,
    blob,
    cancel_activity,
    cancel_run,
    cancel_timer,
    complete_run,
    continue_as_new,
    fail_run,
    record_marker,
    schedule_activity,
    seconds,
    start_timer,
    text,
    upsert_memo,
    upsert_search_attributes,
)
from wfcore.exceptions import InvalidArgumentError
from wfcore.history.limits import Limits
from wfcore.protocol import commands
from wfcore.protocol.commands import Command
from wfcore.protocol.common import ActivityType, Priority, RetryPolicy, TaskQueue, WorkflowType
from wfcore.protocol.enums import CommandType, IndexedValueType
from wfcore.protocol.failures import Failure
from wfcore.protocol.payloads import SearchAttributes, UserMetadata

ERRORS = Path(__file__).parents[2] / "conformance" / "probes" / "errors.json"
LONG = "x" * 1001
BIG = 2 * 1024 * 1024 + 1


def _bare(kind: CommandType) -> Command:
    return Command(command_type=kind)


def _bad_retries(**policy: Any) -> Command:
    return schedule_activity(retry_policy=RetryPolicy(**policy))


def _untimed(**timeouts: Any) -> Command:
    return schedule_activity(
        "a", activity_type=ActivityType(name="act"), start_to_close_timeout=None, **timeouts
    )


_BIG_VALUE = blob(BIG).payloads[0]
_NOTE = text("n").payloads[0]
REGISTERED = {"ProbeInt": IndexedValueType.INT, "ProbeKeyword": IndexedValueType.KEYWORD}
#: Commands by the name of the probe that sent them.
PROBES: dict[str, tuple[Command, ...]] = {
    "activity: empty id": (schedule_activity(""),),
    "activity: empty type": (schedule_activity(activity_type=None),),
    "activity: id of 1,001 bytes": (schedule_activity(LONG),),
    "activity: type of 1,001 bytes": (schedule_activity(activity_type=ActivityType(name=LONG)),),
    "activity: neither start-to-close nor schedule-to-close": (_untimed(),),
    "activity: only schedule-to-start and heartbeat": (
        _untimed(schedule_to_start_timeout=seconds(5), heartbeat_timeout=seconds(5)),
    ),
    "activity: negative start-to-close": (schedule_activity(start_to_close_timeout=-seconds(1)),),
    "activity: negative schedule-to-close": (
        schedule_activity(schedule_to_close_timeout=-seconds(1)),
    ),
    "activity: negative schedule-to-start": (
        schedule_activity(schedule_to_start_timeout=-seconds(1)),
    ),
    "activity: negative heartbeat": (schedule_activity(heartbeat_timeout=-seconds(1)),),
    "activity: retry policy coefficient 0.5": (_bad_retries(backoff_coefficient=0.5),),
    "activity: retry policy with negative attempts": (_bad_retries(maximum_attempts=-1),),
    "activity: retry policy maximum interval below initial": (
        _bad_retries(initial_interval=seconds(5), maximum_interval=seconds(1)),
    ),
    "activity: task queue of 1,001 bytes": (schedule_activity(task_queue=TaskQueue(name=LONG)),),
    "activity: reserved task queue prefix": (
        schedule_activity(task_queue=TaskQueue(name="/_sys/x")),
    ),
    "activity: no task queue": (schedule_activity(task_queue=None),),
    "activity: empty task queue name": (schedule_activity(task_queue=TaskQueue()),),
    "activity: good": (schedule_activity(),),
    "activity: negative priority key": (schedule_activity(priority=Priority(priority_key=-1)),),
    "activity: fairness key of 65 bytes": (
        schedule_activity(priority=Priority(fairness_key="x" * 65)),
    ),
    "activity: negative weight": (schedule_activity(priority=Priority(fairness_weight=-1)),),
    "activity: no attributes": (_bare(CommandType.SCHEDULE_ACTIVITY_TASK),),
    "activity: two with one id": (schedule_activity("a"), schedule_activity("a")),
    "activity: good one, then a bad one": (schedule_activity("a"), schedule_activity("")),
    "activity: input above 2 MB": (schedule_activity(input=blob(BIG)),),
    "cancel activity: event id 0": (cancel_activity(0),),
    "cancel activity: negative event id": (cancel_activity(-5),),
    "cancel activity: unknown event id": (cancel_activity(99),),
    "cancel activity: id of an event that is no activity": (cancel_activity(1),),
    "timer: empty id": (start_timer(""),),
    "timer: id of 1,001 bytes": (start_timer(LONG),),
    "timer: negative": (start_timer("t", -1),),
    "timer: zero": (start_timer("t", 0),),
    "timer: no duration": (start_timer("t", None),),
    "timer: 200 years": (start_timer("t", 200 * 365 * 86400),),
    "timer: two with one id": (start_timer("t"), start_timer("t")),
    "timer: start, cancel, start again with one id": (
        start_timer("t"),
        cancel_timer("t"),
        start_timer("t"),
    ),
    "cancel timer: empty id": (cancel_timer(""),),
    "cancel timer: unknown id": (cancel_timer("t"),),
    "complete: result above 2 MB": (complete_run(blob(BIG)),),
    "complete: no attributes": (_bare(CommandType.COMPLETE_WORKFLOW_EXECUTION),),
    "complete: no result": (complete_run(),),
    "fail: no failure": (Command.of(commands.FailWorkflowExecution()),),
    "fail: failure above 2 MB": (fail_run(Failure(message="x" * BIG)),),
    "cancel workflow without a cancel request": (cancel_run(),),
    "a timer after a complete": (complete_run(), start_timer()),
    "two completes": (complete_run(), complete_run()),
    "fail, then complete": (fail_run(), complete_run()),
    "timer, then complete": (start_timer(), complete_run()),
    "unknown command type (unspecified)": (_bare(CommandType.UNSPECIFIED),),
    "marker: empty name": (record_marker(""),),
    "marker: name of 1,001 bytes": (record_marker(LONG),),
    "marker: details above 2 MB": (record_marker(details={"data": blob(BIG)}),),
    "continue as new: type of 1,001 bytes": (
        continue_as_new(workflow_type=WorkflowType(name=LONG)),
    ),
    "continue as new: negative run timeout": (continue_as_new(workflow_run_timeout=-seconds(1)),),
    "continue as new: negative task timeout": (continue_as_new(workflow_task_timeout=-seconds(1)),),
    "continue as new: negative backoff": (continue_as_new(backoff_start_interval=-seconds(1)),),
    "continue as new: bad retry policy": (
        continue_as_new(retry_policy=RetryPolicy(backoff_coefficient=0.5)),
    ),
    "continue as new: bad cron (not checked)": (continue_as_new(cron_schedule="nope"),),
    "continue as new: input above 2 MB": (continue_as_new(input=blob(BIG)),),
    "continue as new: memo above 2 MB": (
        continue_as_new(memo=commands.Memo(fields={"m": _BIG_VALUE})),
    ),
    "continue as new: reserved task queue": (
        continue_as_new(task_queue=TaskQueue(name="/_sys/x")),
    ),
    "upsert memo: none": (upsert_memo(),),
    "upsert memo: above 2 MB": (upsert_memo(m=_BIG_VALUE),),
    "upsert search attributes: none": (upsert_search_attributes(),),
    "upsert search attributes: unknown name": (upsert_search_attributes(NoSuch=_NOTE),),
    "upsert search attributes: system name": (upsert_search_attributes(WorkflowId=_NOTE),),
    "upsert search attributes: wrong type": (
        upsert_search_attributes(ProbeInt=text("abc").payloads[0]),
    ),
    "upsert search attributes: value of 2,051 bytes": (
        upsert_search_attributes(ProbeKeyword=text("x" * 2049).payloads[0]),
    ),
    "upsert search attributes: no attributes": (
        _bare(CommandType.UPSERT_WORKFLOW_SEARCH_ATTRIBUTES),
    ),
    "continue as new: unknown search attribute": (
        continue_as_new(search_attributes=SearchAttributes(indexed_fields={"NoSuch": _NOTE})),
    ),
    "user metadata: summary of 500 bytes on a timer": (
        Command.of(
            commands.StartTimer(timer_id="t", start_to_fire_timeout=seconds(1)),
            UserMetadata(summary=_NOTE),
        ),
    ),
}


#: The server needs up to a second for what fires here in the same transition.
FIRE_AT_ONCE = {"timer: zero", "timer: no duration"}


def _probes() -> dict[str, dict[str, Any]]:
    found = {}
    for entry in json.loads(ERRORS.read_text()):
        if entry["area"] == "commands" and entry["condition"] in PROBES and "effect" in entry:
            found[entry["condition"]] = entry
    return found


SEEN = _probes()


SEEN["activity: negative weight"] = {
    "code": "INVALID_ARGUMENT",
    "message": "BadScheduleActivityAttributes: invalid priorities: must be greater than zero",
    "effect": {
        "events_after_the_start": ["WORKFLOW_TASK_FAILED"],
        "cause": "BAD_SCHEDULE_ACTIVITY_ATTRIBUTES",
        "failure_message": "BadScheduleActivityAttributes: invalid priorities: must be greater "
        "than zero",
    },
}


def _fresh_run() -> Run:
    run = a_run(
        Limits(search_attributes=REGISTERED),
        workflow_type=WorkflowType(name="wf"),
        task_queue=TaskQueue(name="<queue>"),
    )
    run.take_task()
    return run


def test_every_probe_of_these_commands_is_made() -> None:
    assert set(PROBES) == set(SEEN)


@pytest.mark.parametrize("condition", sorted(PROBES))
def test_the_engine_answers_as_the_server(condition: str) -> None:
    seen = SEEN[condition]
    run = _fresh_run()
    expected = seen["effect"]["events_after_the_start"]
    if seen["code"] == "OK":
        run.answer(*PROBES[condition])
    else:
        with pytest.raises(InvalidArgumentError) as refusal:
            run.answer(*PROBES[condition])
        assert str(refusal.value).replace(LONG, "<long>") == seen["message"]
    written = [event.event_type.name for event in run.events[3:]]
    if condition in FIRE_AT_ONCE:
        assert written == [*expected, "TIMER_FIRED", "WORKFLOW_TASK_SCHEDULED"]
        return
    assert written == expected
    if not expected or expected[0] != "WORKFLOW_TASK_FAILED":
        return
    failed = run.event(4)
    assert failed.cause.name == seen["effect"]["cause"]
    assert failed.failure.message.replace(LONG, "<long>") == seen["effect"]["failure_message"]
    assert failed.failure.server_failure_info is not None
    assert failed.identity == "worker"
    if len(expected) > 1:
        closed = run.event(5)
        assert closed.reason == seen["effect"]["terminated_reason"]
        assert closed.identity == seen["effect"]["terminated_identity"]


def test_a_bad_command_leaves_nothing_of_the_good_ones_before_it() -> None:
    run = _fresh_run()
    with pytest.raises(InvalidArgumentError):
        run.answer(schedule_activity("a"), start_timer("t"), upsert_memo(n=_NOTE), start_timer(""))
    assert run.kinds(4) == ["TASK_FAILED"]
    assert run.activities == {}
    assert run.state.recorded.timers == {}
    assert run.memo is None
    assert run.state.volatile.task is not None
    assert run.state.volatile.task.attempt == 2


@pytest.mark.parametrize(
    "bad", [start_timer(""), schedule_activity(input=blob(BIG))], ids=["bad", "too big"]
)
def test_from_the_second_attempt_on_a_bad_answer_is_passed_over(bad: Command) -> None:
    run = _fresh_run()
    run.fail_task()
    claim = run.take_task()
    assert claim.attempt == 2
    before = len(run.events)
    with pytest.raises(InvalidArgumentError):
        run.answer(bad)
    assert len(run.events) == before
    assert run.state.task_started, "the task waits for its timeout"
    run.answer(start_timer())
    assert run.kinds(5) == ["TASK_SCHEDULED", "TASK_STARTED", "TASK_COMPLETED", "TIMER_STARTED"]


def test_too_many_pending_activities_fail_the_task() -> None:
    run = a_run(Limits(pending_activities=3))
    run.take_task()
    with pytest.raises(InvalidArgumentError) as refusal:
        run.answer(*(schedule_activity(str(number)) for number in range(4)))
    assert str(refusal.value) == (
        "PendingActivitiesLimitExceeded: the number of pending activities, 3, has reached the "
        "per-workflow limit of 3"
    )


def test_a_memo_that_grows_too_big_ends_the_run() -> None:
    run = a_run(Limits(memo_bytes=3000))
    value = blob(2000).payloads[0]
    run.work(upsert_memo(first=value), force_create_new_workflow_task=True)
    run.take_task()
    with pytest.raises(InvalidArgumentError) as refusal:
        run.answer(upsert_memo(second=value))
    text_ = "BadModifyWorkflowPropertiesAttributes: ModifyWorkflowPropertiesCommandAttributes. "
    assert str(refusal.value) == text_ + "Memo exceeds size limit."
    assert run.kinds()[-2:] == ["TASK_FAILED", "TERMINATED"]


def test_a_command_that_has_no_machine_yet_fails_the_task_and_says_so() -> None:
    run = _fresh_run()
    with pytest.raises(InvalidArgumentError, match="ScheduleNexusOperation is not supported"):
        run.answer(Command.of(commands.ScheduleNexusOperation(endpoint="e")))
    assert run.kinds(4) == ["TASK_FAILED"]


def test_a_command_with_the_attributes_of_another_is_refused() -> None:
    run = _fresh_run()
    mixed = Command(
        command_type=CommandType.START_TIMER, attributes=commands.CancelTimer(timer_id="t")
    )
    with pytest.raises(InvalidArgumentError, match="StartTimer carries CancelTimer"):
        run.answer(mixed)
    assert run.kinds(4) == []


def test_details_of_a_cancelled_run_and_headers_are_not_measured() -> None:
    run = _fresh_run()
    run.answer(cancel_run(blob(BIG)))
    assert run.kinds(4) == ["TASK_COMPLETED", "CANCELED"]


def test_the_queue_of_an_activity_may_be_another() -> None:
    run = _fresh_run()
    run.answer(schedule_activity(task_queue=TaskQueue(name=QUEUE + "-2")))
    assert run.event(5).task_queue.name == QUEUE + "-2"
