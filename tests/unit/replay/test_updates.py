"""Updates: validated once, accepted or refused, answered; on replay taken from their events."""

import asyncio
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.support.live_run import CONVERTER, LiveRun, asked
from wfcore import workflow
from wfcore.common import RawValue
from wfcore.exceptions import ApplicationError, ReadOnlyContextError
from wfcore.protocol import events
from wfcore.protocol.updates import Acceptance, Meta, Rejection, Request, Response
from wfcore.protocol.updates import Input as UpdateInput
from wfcore.workflow import UnfinishedUpdateHandlersWarning

TEN = timedelta(seconds=10)


@workflow.defn
class Counter:
    validated: list[int] = []  # noqa: RUF012 - looked at from outside

    def __init__(self) -> None:
        self.value = 0
        self.done = False
        self.peeks = 0

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: self.done and workflow.all_handlers_finished())
        return self.value

    @workflow.update
    def add(self, n: int) -> int:
        self.value += n
        return self.value

    @add.validator
    def check(self, n: int) -> None:
        Counter.validated.append(n)
        if n < 0:
            raise ApplicationError("negative")
        if n == 99:
            workflow.start_activity("a", start_to_close_timeout=TEN)

    @workflow.update
    async def add_slowly(self, n: int) -> list[Any]:
        info = workflow.current_update_info()
        assert info is not None
        self.value = await workflow.execute_activity(
            "add", n, start_to_close_timeout=TEN, result_type=int
        )
        return [info.id, info.name, self.value]

    @workflow.update
    async def refuse(self, bug: bool) -> None:
        raise KeyError("bug") if bug else ApplicationError("refused", type="Refusal")

    @workflow.update(dynamic=True)
    def other(self, name: str, args: Sequence[RawValue]) -> str:
        return f"{name}/{len(args)}"

    @workflow.signal
    def stop(self) -> None:
        self.done = True


@pytest.fixture(autouse=True)
def _forget() -> None:
    Counter.validated.clear()


def outcome(run: LiveRun) -> Any:
    completed: Any = run.event_of(events.WorkflowExecutionUpdateCompleted).attributes
    if completed.outcome.failure is not None:
        return completed.outcome.failure.message
    return CONVERTER.from_payloads_wrapper(completed.outcome.success)[0]


def test_an_update_is_validated_accepted_and_answered_in_one_task() -> None:
    run = LiveRun(Counter)
    run.work()
    run.update("u1", "add", 3)
    found = run.work()
    assert asked(found) == ["PROTOCOL_MESSAGE", "PROTOCOL_MESSAGE"]
    assert [type(message.body) for message in run.last.messages] == [Acceptance, Response]
    assert outcome(run) == 3
    # Once live; the replays that `work` makes did not validate again.
    assert Counter.validated == [3]


def test_a_refused_update_has_no_command_and_leaves_no_event() -> None:
    run = LiveRun(Counter)
    run.work()
    run.update("u1", "add", -1)
    assert run.work() == []
    (message,) = run.last.messages
    assert isinstance(message.body, Rejection)
    assert message.body.failure is not None
    assert message.body.failure.message == "negative"
    assert message.body.rejected_request_message_id == "u1/request"


def test_a_validator_that_acts_fails_the_task() -> None:
    run = LiveRun(Counter)
    run.work()
    run.update("u1", "add", 99)
    assert isinstance(run.fail().error, ReadOnlyContextError)


def test_a_handler_may_wait_for_an_activity() -> None:
    run = LiveRun(Counter)
    run.work()
    run.update("u1", "add_slowly", 4)
    assert asked(run.work()) == ["PROTOCOL_MESSAGE", "SCHEDULE_ACTIVITY_TASK"]
    run.complete_activity("1", 4)
    assert asked(run.work()) == ["PROTOCOL_MESSAGE"]
    assert outcome(run) == ["u1", "add_slowly", 4]
    run.signal("stop")
    run.work()
    assert run.result() == 4


def test_a_failure_after_acceptance_is_the_updates_outcome() -> None:
    run = LiveRun(Counter)
    run.work()
    run.update("u1", "refuse", False)
    run.work()
    assert outcome(run) == "refused"


def test_another_error_after_acceptance_fails_the_task() -> None:
    run = LiveRun(Counter)
    run.work()
    run.update("u1", "refuse", True)
    assert isinstance(run.fail().error, KeyError)


def test_an_unheard_name_goes_to_the_dynamic_handler() -> None:
    run = LiveRun(Counter)
    run.work()
    run.update("u1", "whatever", 1, 2)
    run.work()
    assert outcome(run) == "whatever/2"


def test_arguments_that_do_not_decode_are_refused() -> None:
    run = LiveRun(Counter)
    run.work()
    run.update("u1", "add", {"no": "number"})
    run.work()
    (message,) = run.last.messages
    assert isinstance(message.body, Rejection)


def test_an_update_in_the_first_task_comes_before_the_main_coroutine() -> None:
    run = LiveRun(Counter)
    run.update("u1", "add", 1)
    run.signal("stop")
    run.work()
    assert run.kinds()[-3:] == [
        "WORKFLOW_EXECUTION_UPDATE_ACCEPTED",
        "WORKFLOW_EXECUTION_UPDATE_COMPLETED",
        "WORKFLOW_EXECUTION_COMPLETED",
    ]


def test_an_answer_after_the_runs_end_comes_before_the_closing_command() -> None:
    @workflow.defn
    class EndsFirst:
        def __init__(self) -> None:
            self.over = False

        @workflow.run
        async def run(self) -> str:
            self.over = True
            return "result"

        @workflow.update
        async def late(self) -> str:
            await workflow.wait_condition(lambda: self.over)
            return "late"

    run = LiveRun(EndsFirst)
    run.update("u1", "late")
    run.work()
    assert run.kinds()[-2:] == [
        "WORKFLOW_EXECUTION_UPDATE_COMPLETED",
        "WORKFLOW_EXECUTION_COMPLETED",
    ]
    assert outcome(run) == "late"


def test_what_a_refused_update_changed_lets_no_condition_pass() -> None:
    @workflow.defn
    class Leaky:
        def __init__(self) -> None:
            self.attempts = 0

        @workflow.run
        async def run(self) -> int:
            await workflow.wait_condition(lambda: self.attempts > 0)
            return self.attempts

        @workflow.update
        def never(self) -> None:
            pass

        @never.validator
        def check(self) -> None:
            self.attempts += 1
            raise ApplicationError("no")

    run = LiveRun(Leaky)
    run.work()
    run.update("u1", "never")
    assert run.work() == []


def test_unfinished_updates_are_named_at_the_end() -> None:
    run = LiveRun(Counter, checks_replay=False)
    run.work()
    run.update("u1", "add_slowly", 1)
    run.work()
    run.request_cancel()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run.work()
    assert [w.category for w in caught] == [UnfinishedUpdateHandlersWarning]
    assert '"add_slowly", "id": "u1"' in str(caught[0].message)


def test_continue_as_new_in_a_handler_fails_the_task() -> None:
    @workflow.defn
    class Restarts:
        @workflow.run
        async def run(self) -> None:
            await asyncio.sleep(100)

        @workflow.update
        async def restart(self) -> None:
            workflow.continue_as_new()

    run = LiveRun(Restarts)
    run.work()
    run.update("u1", "restart")
    assert "continue as new" in str(run.fail().error)


def test_an_update_that_a_reset_brought_over_is_validated_again() -> None:
    run = LiveRun(Counter)
    run.work()
    request = Request(
        meta=Meta(update_id="u1"),
        input=UpdateInput(name="add", args=CONVERTER.to_payloads_wrapper([5])),
    )
    run.add(events.WorkflowExecutionUpdateAdmitted(request=request))
    run.work()
    assert Counter.validated == [5]
    accepted: Any = run.event_of(events.WorkflowExecutionUpdateAccepted).attributes
    assert accepted.accepted_request is None
    assert outcome(run) == 5
