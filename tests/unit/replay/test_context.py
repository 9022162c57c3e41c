"""What code learns about its run, and what it changes of it."""

import uuid
from datetime import timedelta
from typing import Any

import pytest

from tests.support.live_run import BEGIN, CONVERTER, LiveRun, asked, payloads
from wfcore import workflow
from wfcore.common import (
    Priority,
    RetryPolicy,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
)
from wfcore.converter import encode_search_attributes
from wfcore.exceptions import NotInWorkflowEventLoopError
from wfcore.protocol import commands, events
from wfcore.protocol import common as protocol
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.enums import WorkflowTaskFailedCause
from wfcore.protocol.failures import ApplicationFailureInfo, Failure
from wfcore.protocol.payloads import Memo, UserMetadata
from wfcore.replay.seed import random_seed
from wfcore.workflow import Info, ParentInfo, RootInfo

COLOUR = SearchAttributeKey.for_keyword("Colour")
SIZE = SearchAttributeKey.for_int("Size")
TAGS = SearchAttributeKey.for_keyword_list("Tags")


@workflow.defn
class Asks:
    """Returns nothing, but keeps what it saw for the test."""

    seen: list[Any] = []  # noqa: RUF012 - looked at from outside

    @workflow.run
    async def run(self) -> None:
        Asks.seen[:] = [workflow.info()]


def test_info_comes_from_the_first_event_and_the_task() -> None:
    run = LiveRun(
        Asks,
        started={
            "parent_workflow_namespace": "test",
            "parent_workflow_execution": WorkflowExecution(workflow_id="p", run_id="p-run"),
            "root_workflow_execution": WorkflowExecution(workflow_id="r", run_id="r-run"),
            "retry_policy": protocol.RetryPolicy(
                initial_interval=timedelta(seconds=1),
                backoff_coefficient=2.0,
                maximum_interval=timedelta(seconds=100),
                maximum_attempts=3,
            ),
            "priority": protocol.Priority(priority_key=2),
            "workflow_run_timeout": timedelta(minutes=5),
            "cron_schedule": "@daily",
            "continued_execution_run_id": "before",
            "memo": Memo(fields={"owner": CONVERTER.to_payload("ann")}),
            "search_attributes": encode_search_attributes(
                TypedSearchAttributes([SearchAttributePair(COLOUR, "red")])
            ),
        },
    )
    run.work()
    info: Info = Asks.seen[0]
    assert info.workflow_id == "order-1"
    assert info.workflow_type == "Asks"
    assert info.run_id == info.original_execution_run_id == run.execution.run_id
    assert info.namespace == "test"
    assert info.task_queue == "queue"
    assert info.attempt == 1
    assert info.parent == ParentInfo("test", "p-run", "p")
    assert info.root == RootInfo("r-run", "r")
    assert info.priority == Priority(priority_key=2)
    assert info.retry_policy == RetryPolicy(
        maximum_interval=timedelta(seconds=100), maximum_attempts=3
    )
    assert info.run_timeout == timedelta(minutes=5)
    assert info.execution_timeout is None
    assert info.cron_schedule == "@daily"
    assert info.continued_run_id == "before"
    assert info.workflow_start_time == BEGIN + timedelta(seconds=1)
    assert info.start_time == BEGIN + timedelta(seconds=3)
    assert info.search_attributes == {"Colour": ["red"]}
    assert info.typed_search_attributes[COLOUR] == "red"


def test_outside_of_a_workflow_there_is_nothing_to_ask() -> None:
    assert not workflow.in_workflow()
    with pytest.raises(NotInWorkflowEventLoopError):
        workflow.info()


@workflow.defn
class Chance:
    @workflow.run
    async def run(self) -> list[Any]:
        first = workflow.random().randint(0, 10**9)
        return [
            first,
            str(workflow.uuid4()),
            workflow.uuid7().version,
            workflow.random_seed(),
            workflow.new_random().randint(0, 10**9) == first,
            workflow.new_random("x").randint(0, 10**9) == first,
            workflow.in_workflow(),
            isinstance(workflow.instance(), Chance),
        ]


def test_chance_is_seeded_by_the_original_run_id() -> None:
    run = LiveRun(Chance)
    run.work()
    first, text, version, seed, same, other, inside, own = run.result()
    assert seed == random_seed("01a22cd5-7464-7b6f-8891-24e0e5cdfaea")
    assert uuid.UUID(text).version == 4
    assert version == 7
    assert (same, other, inside, own) == (True, False, True, True)
    again = LiveRun(Chance)
    again.work()
    assert again.result()[:2] == [first, text]
    differs = LiveRun(Chance, run_id="01a22cd5-7464-7b6f-8891-24e0e5cdfaeb")
    differs.work()
    assert differs.result()[0] != first


def test_a_reset_changes_the_seed() -> None:
    seeds: list[int] = []

    @workflow.defn
    class Watches:
        @workflow.run
        async def run(self) -> list[int]:
            workflow.register_random_seed_callback(seeds.append)
            before = workflow.random().getrandbits(32)
            await workflow.sleep(1)
            return [before, workflow.random_seed(), workflow.random().getrandbits(32)]

    run = LiveRun(Watches, checks_replay=False)
    run.work()
    run.fire("1")
    run.add(events.WorkflowTaskScheduled())
    run.add(events.WorkflowTaskStarted())
    run.add(
        events.WorkflowTaskFailed(
            cause=WorkflowTaskFailedCause.RESET_WORKFLOW, new_run_id="01a22cd5-new"
        )
    )
    run.work()
    assert seeds == [random_seed("01a22cd5-new")]
    assert run.result()[1] == seeds[0]


@workflow.defn
class Remembers:
    @workflow.run
    async def run(self) -> list[Any]:
        before = dict(workflow.memo())
        workflow.upsert_memo({"owner": "bob", "gone": None, "list": [1]})
        workflow.upsert_memo({})
        missing = workflow.memo_value("nothing", "default")
        try:
            workflow.memo_value("gone")
        except KeyError:
            missing += ", gone"
        return [before, dict(workflow.memo()), workflow.memo_value("owner"), missing]


def test_the_memo_follows_its_changes() -> None:
    memo = Memo(fields={"owner": CONVERTER.to_payload("ann"), "gone": CONVERTER.to_payload("soon")})
    run = LiveRun(Remembers, started={"memo": memo})
    first, _ = run.work()
    assert isinstance(first.attributes, commands.ModifyWorkflowProperties)
    fields = first.attributes.upserted_memo.fields if first.attributes.upserted_memo else {}
    assert fields["gone"].metadata == {"encoding": b"binary/null"}
    assert run.result() == [
        {"owner": "ann", "gone": "soon"},
        {"owner": "bob", "list": [1]},
        "bob",
        "default, gone",
    ]


@workflow.defn
class Searchable:
    @workflow.run
    async def run(self, untyped: bool) -> list[Any]:
        if untyped:
            workflow.upsert_search_attributes({"Colour": ["blue"], "Size": [], "Tags": ["a", "b"]})
        else:
            workflow.upsert_search_attributes(
                [COLOUR.value_set("blue"), SIZE.value_unset(), TAGS.value_set(["a", "b"])]
            )
        info = workflow.info()
        typed = info.typed_search_attributes
        return [dict(info.search_attributes), typed.get(COLOUR), typed.get(SIZE), typed.get(TAGS)]


@pytest.mark.parametrize("untyped", [False, True])
def test_search_attributes_follow_their_changes(untyped: bool) -> None:
    before = TypedSearchAttributes(
        [SearchAttributePair(COLOUR, "red"), SearchAttributePair(SIZE, 3)]
    )
    run = LiveRun(
        Searchable, untyped, started={"search_attributes": encode_search_attributes(before)}
    )
    command, _ = run.work()
    attributes = command.attributes
    assert isinstance(attributes, commands.UpsertWorkflowSearchAttributes)
    assert attributes.search_attributes is not None
    assert set(attributes.search_attributes.indexed_fields) == {"Colour", "Size", "Tags"}
    assert run.result() == [
        {"Colour": ["blue"], "Size": [], "Tags": ["a", "b"]},
        "blue",
        None,
        ["a", "b"],
    ]


@workflow.defn
class Continues:
    @workflow.run
    async def run(self, left: int, explicit: bool) -> None:
        if explicit:
            workflow.continue_as_new(
                left - 1,
                workflow="Other",
                task_queue="elsewhere",
                run_timeout=timedelta(minutes=1),
                memo={"a": 1},
                retry_policy=RetryPolicy(maximum_attempts=1),
            )
        workflow.upsert_search_attributes([SIZE.value_set(7)])
        workflow.upsert_memo({"owner": "bob"})
        await self.inner(left)

    async def inner(self, left: int) -> None:
        workflow.continue_as_new(args=[left - 1, False])


def test_continue_as_new_keeps_what_is_not_said() -> None:
    policy = protocol.RetryPolicy(
        initial_interval=timedelta(seconds=1),
        backoff_coefficient=2.0,
        maximum_interval=timedelta(seconds=9),
        maximum_attempts=2,
    )
    memo = Memo(fields={"owner": CONVERTER.to_payload("ann")})
    run = LiveRun(Continues, 3, False, started={"retry_policy": policy, "memo": memo})
    command = run.work()[-1]
    attributes = command.attributes
    assert isinstance(attributes, commands.ContinueAsNewWorkflowExecution)
    assert attributes.workflow_type is not None
    assert attributes.workflow_type.name == "Continues"
    assert attributes.input == payloads(2, False)
    assert attributes.retry_policy == policy
    assert attributes.memo == memo  # as it was at the start
    assert attributes.search_attributes is not None
    assert set(attributes.search_attributes.indexed_fields) == {"Size"}
    assert attributes.inherit_build_id


def test_continue_as_new_takes_what_is_said() -> None:
    (command,) = LiveRun(Continues, 3, True).work()
    attributes = command.attributes
    assert isinstance(attributes, commands.ContinueAsNewWorkflowExecution)
    assert attributes.workflow_type is not None
    assert attributes.task_queue is not None
    assert attributes.retry_policy is not None
    assert attributes.memo is not None
    assert attributes.workflow_type.name == "Other"
    assert attributes.task_queue.name == "elsewhere"
    assert attributes.workflow_run_timeout == timedelta(minutes=1)
    assert attributes.retry_policy.maximum_attempts == 1
    assert attributes.memo.fields["a"].data == b"1"
    assert not attributes.inherit_build_id


@workflow.defn
class Follows:
    @workflow.run
    async def run(self) -> list[Any]:
        failure = workflow.get_last_failure()
        return [
            workflow.has_last_completion_result(),
            workflow.get_last_completion_result(int),
            str(failure),
        ]


def test_the_run_before_leaves_a_result_and_a_failure() -> None:
    failure = Failure(message="no", application_failure_info=ApplicationFailureInfo(type="T"))
    run = LiveRun(
        Follows, started={"last_completion_result": payloads(5), "continued_failure": failure}
    )
    run.work()
    assert run.result() == [True, 5, "T: no"]
    first = LiveRun(Follows)
    first.work()
    assert first.result() == [False, None, "None"]


@workflow.defn
class Patched:
    @workflow.run
    async def run(self) -> str:
        new = workflow.patched("one")
        await workflow.sleep(1)
        return f"{new}/{workflow.patched('one')}/{workflow.patched('two')}"


def test_a_patch_is_recorded_once_with_its_search_attribute() -> None:
    run = LiveRun(Patched)
    assert asked(run.work()) == [
        "RECORD_MARKER",
        "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES",
        "START_TIMER",
    ]
    run.fire("1")
    found = run.work()
    assert asked(found)[:2] == ["RECORD_MARKER", "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES"]
    upsert = found[1].attributes
    assert isinstance(upsert, commands.UpsertWorkflowSearchAttributes)
    assert upsert.search_attributes is not None
    shown = upsert.search_attributes.indexed_fields["TemporalChangeVersion"]
    assert (shown.data, shown.metadata["type"]) == (b'["one","two"]', b"KeywordList")
    assert run.result() == "True/True/True"


def test_a_patch_does_not_change_a_run_that_began_before() -> None:
    @workflow.defn(name="Versioned")
    class Before:
        @workflow.run
        async def run(self) -> str:
            await workflow.sleep(1)
            return "old"

    @workflow.defn(name="Versioned")
    class After:
        @workflow.run
        async def run(self) -> str:
            new = workflow.patched("change")
            await workflow.sleep(1)
            return "new" if new else "old"

    run = LiveRun(Before)
    run.work()
    run.definition = workflow.WorkflowDefinition.must_from_class(After)
    run.evict()
    run.fire("1")
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]
    assert run.result() == "old"


def test_a_deprecated_patch_may_be_gone_from_the_code() -> None:
    @workflow.defn(name="Versioned")
    class Deprecated:
        @workflow.run
        async def run(self) -> None:
            workflow.deprecate_patch("change")
            await workflow.sleep(1)

    @workflow.defn(name="Versioned")
    class Gone:
        @workflow.run
        async def run(self) -> None:
            await workflow.sleep(1)

    run = LiveRun(Deprecated)
    run.work()
    run.definition = workflow.WorkflowDefinition.must_from_class(Gone)
    run.evict()
    run.fire("1")
    assert asked(run.work()) == ["COMPLETE_WORKFLOW_EXECUTION"]


def test_groups_mark_the_commands_of_their_scope_and_of_a_signal() -> None:
    @workflow.defn
    class Grouped:
        @workflow.run
        async def run(self) -> None:
            outer = workflow.create_event_group("outer", label="Outer")
            with outer.scope():
                await workflow.sleep(
                    1, event_groups=[workflow.create_event_group("own")], summary="nap"
                )

        @workflow.signal
        async def go(self) -> None:
            await workflow.sleep(2)

    run = LiveRun(Grouped)
    run.signal("go")
    by_signal, by_main = run.work()
    assert [marker.inbound_event is not None for marker in by_signal.event_group_markers] == [True]
    labels = [marker.label.id for marker in by_main.event_group_markers if marker.label]
    assert labels == ["outer", "own"]
    assert isinstance(by_main.user_metadata, UserMetadata)


def test_history_length_and_size_are_the_tasks() -> None:
    @workflow.defn
    class Grows:
        @workflow.run
        async def run(self) -> list[Any]:
            info = workflow.info()
            before = info.get_current_history_length()
            await workflow.sleep(1)
            return [
                before,
                info.get_current_history_length(),
                info.get_current_history_size(),
                info.is_continue_as_new_suggested(),
                info.get_current_build_id(),
            ]

    run = LiveRun(Grows, build_id="1.2", checks_replay=False)
    run.work()
    run.fire("1")
    run.add(events.WorkflowTaskScheduled())
    run.add(events.WorkflowTaskStarted(history_size_bytes=4000, suggest_continue_as_new=True))
    run.finish(run.instance.activate(run.poll()))
    assert run.result() == [3, 8, 4000, True, "1.2"]
