"""Signals and queries: order, waiting for a handler, dynamic ones, what they may not do."""

import asyncio
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.support.live_run import LiveRun, asked
from wfcore import workflow
from wfcore.common import RawValue
from wfcore.exceptions import ApplicationError
from wfcore.protocol.enums import QueryResultType, WorkflowTaskFailedCause
from wfcore.protocol.payloads import Payload, Payloads
from wfcore.protocol.rpc.info import WorkflowQuery
from wfcore.workflow import (
    HandlerUnfinishedPolicy,
    UnfinishedSignalHandlersWarning,
)

TEN = timedelta(seconds=10)


@workflow.defn
class Inbox:
    """Notes everything that comes."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.closed = False

    @workflow.run
    async def run(self) -> list[Any]:
        self.log.append("main")
        await workflow.wait_condition(lambda: self.closed)
        return self.log

    @workflow.signal
    def put(self, item: str) -> None:
        self.log.append(item)

    @workflow.signal(name="put-later")
    async def put_later(self, item: str) -> None:
        await workflow.sleep(1)
        self.log.append(item)

    @workflow.signal
    def close(self) -> None:
        self.closed = True

    @workflow.signal(dynamic=True)
    def other(self, name: str, args: Sequence[RawValue]) -> None:
        values = [workflow.payload_converter().from_payload(arg.payload) for arg in args]
        self.log.append([name, *values])

    @workflow.query
    def last(self) -> Any:
        return self.log[-1]

    @workflow.query
    def nth(self, index: int) -> Any:
        return self.log[index]

    @workflow.query(dynamic=True)
    def any_query(self, name: str, args: Sequence[RawValue]) -> str:
        return f"{name}/{len(args)}"


def test_signals_of_the_first_task_come_before_the_main_coroutine() -> None:
    run = LiveRun(Inbox)
    run.signal("put", "first")
    run.work()
    run.signal("put", "second")
    run.signal("close")
    run.work()
    assert run.result() == ["first", "main", "second"]


def test_a_signal_without_handler_goes_to_the_dynamic_one() -> None:
    run = LiveRun(Inbox)
    run.signal("unheard", 1, "two")
    run.signal("close")
    run.work()
    assert run.result() == [["unheard", 1, "two"], "main"]


def test_a_handler_may_wait() -> None:
    run = LiveRun(Inbox)
    run.work()
    run.signal("put-later", "late")
    assert asked(run.work()) == ["START_TIMER"]
    run.fire("1")
    run.work()
    run.signal("close")
    run.work()
    assert run.result() == ["main", "late"]


@workflow.defn
class LateHandlers:
    """Sets its handlers only after a signal."""

    def __init__(self) -> None:
        self.log: list[str] = []

    @workflow.run
    async def run(self, dynamic: bool) -> list[str]:
        await workflow.sleep(1)
        if dynamic:
            workflow.set_dynamic_signal_handler(self.take_any)
        else:
            workflow.set_signal_handler("late", self.log.append)
        await workflow.sleep(1)
        return self.log

    def take_any(self, name: str, args: Sequence[RawValue]) -> None:
        self.log.append(name)


@pytest.mark.parametrize(("dynamic", "seen"), [(False, ["x"]), (True, ["late", "other"])])
def test_a_signal_waits_for_its_handler(dynamic: bool, seen: list[str]) -> None:
    run = LiveRun(LateHandlers, dynamic)
    run.work()
    run.signal("late", "x")
    run.signal("other", "y")
    run.work()
    run.fire("1")
    run.work()
    run.fire("2")
    run.work()
    assert run.result() == seen


def test_handlers_can_be_read_and_removed() -> None:
    @workflow.defn
    class Changing:
        @workflow.run
        async def run(self) -> list[bool]:
            found = [workflow.get_signal_handler("go") is not None]
            workflow.set_signal_handler("go", None)
            found.append(workflow.get_signal_handler("go") is not None)
            workflow.set_query_handler("q", lambda: 1)
            handler = workflow.get_query_handler("q")
            found.append(handler is not None and handler() == 1)
            found.append(workflow.get_dynamic_signal_handler() is None)
            return found

        @workflow.signal
        def go(self) -> None:
            pass

    run = LiveRun(Changing)
    run.work()
    assert run.result() == [True, False, True, True]


def test_a_signal_that_cannot_be_decoded_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    @workflow.defn
    class Counts:
        def __init__(self) -> None:
            self.total = 0
            self.done = False

        @workflow.run
        async def run(self) -> int:
            await workflow.wait_condition(lambda: self.done)
            return self.total

        @workflow.signal
        def add(self, number: int) -> None:
            self.total += number

        @workflow.signal
        def end(self) -> None:
            self.done = True

    run = LiveRun(Counts, checks_replay=False)
    run.signal("add", 2)
    run.signal("add", {"no": "number"})
    run.signal("end")
    run.work()
    assert run.result() == 2
    assert [record.action for record in caplog.records] == ["signal_dropped"]  # type: ignore[attr-defined]


@workflow.defn
class Fragile:
    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    def fail(self, kind: str) -> None:
        raise ApplicationError("bad signal") if kind == "failure" else KeyError("bug")


def test_a_handlers_failure_fails_the_workflow() -> None:
    run = LiveRun(Fragile)
    run.work()
    run.signal("fail", "failure")
    assert asked(run.work()) == ["FAIL_WORKFLOW_EXECUTION"]
    assert run.failure().message == "bad signal"


def test_a_handlers_other_error_fails_the_task() -> None:
    run = LiveRun(Fragile)
    run.work()
    run.signal("fail", "bug")
    result = run.fail()
    assert isinstance(result.error, KeyError)
    assert result.cause is WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE


@workflow.defn
class Hurried:
    """Ends although handlers run."""

    @workflow.run
    async def run(self) -> None:
        await workflow.sleep(1)

    @workflow.signal
    async def slow(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal(unfinished_policy=HandlerUnfinishedPolicy.ABANDON)
    async def forgotten(self) -> None:
        await workflow.wait_condition(lambda: False)


@pytest.mark.parametrize(("signal", "warns"), [("slow", True), ("forgotten", False)])
def test_unfinished_handlers_are_named_at_the_end(signal: str, warns: bool) -> None:
    run = LiveRun(Hurried)
    run.signal(signal)
    run.work()
    run.fire("1")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run.work()
    assert [str(w.message).partition("Unfinished: ")[2] for w in caught] == (
        ['[{"name": "slow", "count": 1}]'] if warns else []
    )
    assert all(w.category is UnfinishedSignalHandlersWarning for w in caught)


def test_all_handlers_finished_waits_for_them() -> None:
    @workflow.defn
    class Patient:
        @workflow.run
        async def run(self) -> str:
            await workflow.sleep(1)
            await workflow.wait_condition(workflow.all_handlers_finished)
            return "all done"

        @workflow.signal
        async def slow(self) -> None:
            await workflow.execute_activity("a", start_to_close_timeout=TEN)

    run = LiveRun(Patient)
    run.signal("slow")
    run.work()
    run.fire("1")
    assert run.work() == []
    run.complete_activity("1")
    run.work()
    assert run.result() == "all done"


# --- queries ------------------------------------------------------------------------------------


def test_a_query_sees_the_state_after_the_last_task() -> None:
    run = LiveRun(Inbox)
    run.work()
    assert run.answer("last") == "main"
    run.signal("put", "x")
    assert run.answer("last") == "main"
    run.work()
    assert run.answer("last") == "x"
    assert run.answer("nth", 0) == "main"
    assert run.answer("whatever", 1, 2) == "whatever/2"


def test_a_query_can_come_with_a_task_and_sees_what_it_did() -> None:
    run = LiveRun(Inbox)
    run.work()
    run.signal("put", "x")
    run.work(queries={"q1": WorkflowQuery(query_type="last")})
    answer = run.last.query_results["q1"]
    assert answer.result_type is QueryResultType.ANSWERED
    assert answer.answer == Payloads(
        payloads=(Payload(metadata={"encoding": b"json/plain"}, data=b'"x"'),)
    )


def test_a_closed_run_answers_after_a_replay() -> None:
    run = LiveRun(Inbox)
    run.signal("close")
    run.work()
    run.evict()
    assert run.answer("last") == "main"


def test_a_query_that_raises_says_so_and_harms_nothing() -> None:
    run = LiveRun(Inbox)
    run.work()
    answer = run.query("nth", 7)
    assert answer.result_type is QueryResultType.FAILED
    assert answer.error_message == "list index out of range"
    assert answer.failure is not None
    assert answer.failure.application_failure_info is not None
    assert answer.failure.application_failure_info.type == "IndexError"
    assert run.answer("last") == "main"


@workflow.defn
class Greedy:
    """Its queries want more than they may have."""

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.query
    def act(self, what: str) -> str:
        if what == "activity":
            workflow.start_activity("a", start_to_close_timeout=TEN)
        elif what == "task":
            asyncio.create_task(asyncio.sleep(0))  # noqa: RUF006
        elif what == "timer":
            asyncio.get_running_loop().call_later(1, int)
        elif what == "memo":
            workflow.upsert_memo({"a": 1})
        elif what == "handler":
            workflow.set_signal_handler("a", None)
        elif what == "patch":
            workflow.patched("p")
        elif what == "continue":
            workflow.continue_as_new()
        return "allowed"

    @workflow.query
    def flags(self) -> list[bool]:
        return [
            workflow.unsafe.is_read_only(),
            workflow.unsafe.is_replaying_history_events(),
        ]


@pytest.mark.filterwarnings("ignore:coroutine 'sleep' was never awaited")
@pytest.mark.parametrize(
    "what", ["activity", "task", "timer", "memo", "handler", "patch", "continue"]
)
def test_a_query_may_only_read(what: str) -> None:
    run = LiveRun(Greedy)
    run.work()
    answer = run.query("act", what)
    assert answer.result_type is QueryResultType.FAILED
    assert "nly read" in answer.error_message
    assert run.work() == []


def test_a_query_knows_what_it_is() -> None:
    run = LiveRun(Greedy)
    run.work()
    assert run.answer("flags") == [True, False]


def test_an_async_query_works_but_must_not_wait() -> None:
    with pytest.warns(DeprecationWarning, match="async def"):

        @workflow.defn
        class Async:
            @workflow.run
            async def run(self) -> None:
                await workflow.wait_condition(lambda: False)

            @workflow.query
            async def ask(self, waits: bool) -> str:
                if waits:
                    await workflow.wait_condition(lambda: True)
                return "answer"

    run = LiveRun(Async)
    run.work()
    assert run.answer("ask", False) == "answer"
    assert run.query("ask", True).result_type is QueryResultType.FAILED


@workflow.defn
class Described:
    @workflow.run
    async def run(self) -> None:
        workflow.set_current_details("*at work*")
        await self.inner()

    async def inner(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal(description="Begins")
    def go(self) -> None:
        pass

    @workflow.query
    def look(self) -> int:
        return 0


def test_an_unknown_query_names_the_known_ones() -> None:
    run = LiveRun(Described)
    run.work()
    assert run.query("nothing").error_message == (
        "Query handler for 'nothing' expected but not found, known queries: "
        "[__enhanced_stack_trace __stack_trace __temporal_workflow_metadata look]"
    )


def test_a_stack_trace_shows_where_the_code_waits() -> None:
    run = LiveRun(Described)
    run.work()
    trace = run.answer("__stack_trace")
    assert "in Described.run\n    await self.inner()" in trace
    assert "in Described.inner\n    await workflow.wait_condition(lambda: False)" in trace
    assert "wfcore" not in trace
    enhanced = run.answer("__enhanced_stack_trace")
    (stack,) = enhanced["stacks"]
    assert [loc["functionName"] for loc in stack["locations"] if not loc["internalCode"]] == [
        "run",
        "inner",
    ]
    assert "class Described" in enhanced["sources"][__file__]["content"]


def test_metadata_tells_what_the_workflow_offers() -> None:
    run = LiveRun(Described)
    run.work()
    metadata = run.answer("__temporal_workflow_metadata")
    assert metadata["currentDetails"] == "*at work*"
    definition = metadata["definition"]
    assert definition["type"] == "Described"
    assert definition["signalDefinitions"] == [{"name": "go", "description": "Begins"}]
    assert "look" in [query["name"] for query in definition["queryDefinitions"]]
