"""K. Memo, search attributes, lists, and what is told of a run."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.features import asks, feature
from tests.features.histories import decoded
from tests.features.worlds import Run, World, do, failure
from wfcore import workflow
from wfcore.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from wfcore.exceptions import InvalidArgumentError
from wfcore.protocol import commands
from wfcore.protocol.enums import PendingActivityState
from wfcore.protocol.payloads import Payload, SearchAttributes

MODIFIED = "WORKFLOW_PROPERTIES_MODIFIED"
UPSERTED = "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES"
COLOUR = SearchAttributeKey.for_keyword("Colour")
SIZE = SearchAttributeKey.for_int("Size")
WEIGHT = SearchAttributeKey.for_float("Weight")
READY = SearchAttributeKey.for_bool("Ready")
DUE = SearchAttributeKey.for_datetime("Due")
TAGS = SearchAttributeKey.for_keyword_list("Tags")
NOTE = SearchAttributeKey.for_text("Note")


def memo_of(found: Any) -> Any:
    return asyncio.run(found.memo())


def listed(world: World, run: Run) -> Any:
    """What a list tells of a run."""
    (found,) = world.runs(f"WorkflowId = '{run.id}' AND RunId = '{run.run_id}'")
    return found


def attributes(**given: Any) -> SearchAttributes:
    """Search attributes whose payloads hold this JSON text."""
    return SearchAttributes(
        indexed_fields={
            name: Payload(metadata={"encoding": b"json/plain"}, data=text.encode())
            for name, text in given.items()
        }
    )


@workflow.defn
class Notes:
    """Changes its memo and its search attributes when it is told to."""

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    def note(self, changes: dict[str, Any]) -> None:
        workflow.upsert_memo(changes)

    @workflow.signal
    def colour(self, colour: str | None) -> None:
        change = COLOUR.value_set(colour) if colour else COLOUR.value_unset()
        workflow.upsert_search_attributes([change])


@feature("K1")
def test_K01_a_memo_is_told(world: World) -> None:
    run = world.start("Ships", memo={"why": "asked", "items": [1, 2]})
    wanted = {"why": "asked", "items": [1, 2]}
    assert memo_of(run.describe()) == wanted
    assert memo_of(listed(world, run)) == wanted
    assert set(run.history()[0]["memo"]["fields"]) == {"why", "items"}


@feature("K2")
def test_K02_a_memo_is_changed_by_key(world: World) -> None:
    world.serve([Notes])
    run = world.start(Notes.run, memo={"kept": 1, "changed": 2, "gone": 3})
    run.signal(Notes.note, {"changed": "two", "gone": None, "new": [4]})
    world.settle()
    wanted = {"kept": 1, "changed": "two", "new": [4]}
    assert memo_of(run.describe()) == wanted
    assert memo_of(listed(world, run)) == wanted
    upserted = run.history().only(MODIFIED)["upsertedMemo"]["fields"]
    assert set(upserted) == {"changed", "gone", "new"}
    assert decoded({"payloads": [upserted["changed"]]}) == ["two"]


@feature("K3")
def test_K03_a_memo_is_no_filter(world: World) -> None:
    world.start("Ships", memo={"why": "asked"})
    with pytest.raises(InvalidArgumentError, match="why"):
        world.runs("why = 'asked'")


@feature("K4")
@pytest.mark.parametrize("limits", [{"memo_bytes": 1000}])
def test_K04_a_memo_has_a_size(world: World) -> None:
    with pytest.raises(InvalidArgumentError):
        world.start("Ships", memo={"why": "x" * 1000})
    assert world.runs() == []
    world.serve([Notes])
    run = world.start(Notes.run, memo={"why": "x" * 600})
    run.signal(Notes.note, {"more": "x" * 600})
    world.settle()
    assert run.status == "TERMINATED"
    assert "Memo exceeds size limit" in run.history()[-1]["reason"]


@feature("K5")
def test_K05_search_attributes_are_typed(world: World) -> None:
    """Of each type; the lists show them, and refuse to filter by them."""
    due = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    pairs: list[SearchAttributePair[Any]] = [
        SearchAttributePair(COLOUR, "red"),
        SearchAttributePair(SIZE, 7),
        SearchAttributePair(WEIGHT, 1.5),
        SearchAttributePair(READY, True),
        SearchAttributePair(DUE, due),
        SearchAttributePair(TAGS, ["a", "b"]),
        SearchAttributePair(NOTE, "some words"),
    ]
    run = world.start("Ships", search_attributes=TypedSearchAttributes(pairs))
    for found in (run.describe(), listed(world, run)):
        typed = found.typed_search_attributes
        assert {pair.key.name: typed[pair.key] for pair in pairs} == {
            pair.key.name: pair.value for pair in pairs
        }
    fields = run.history()[0]["searchAttributes"]["indexedFields"]
    assert set(fields) == {pair.key.name for pair in pairs}
    with pytest.raises(InvalidArgumentError, match="Colour"):
        world.runs("Colour = 'red'")


@feature("K6")
def test_K06_search_attributes_are_changed_by_key(world: World) -> None:
    world.serve([Notes])
    given = TypedSearchAttributes([SearchAttributePair(SIZE, 7)])
    run = world.start(Notes.run, search_attributes=given)
    for colour, wanted in (("red", "red"), ("blue", "blue"), (None, None)):
        run.signal(Notes.colour, colour)
        world.settle()
        for found in (run.describe(), listed(world, run)):
            assert found.typed_search_attributes.get(COLOUR) == wanted
            assert found.typed_search_attributes[SIZE] == 7
    upserted = run.history().of(UPSERTED)
    assert len(upserted) == 3
    assert set(upserted[0]["searchAttributes"]["indexedFields"]) == {"Colour"}


@feature("K7")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (attributes(Flavour='"sour"'), "Flavour"),
        (attributes(Size='"many"'), "invalid value for search attribute Size"),
    ],
)
def test_K07_unknown_names_and_wrong_types(
    world: World, given: SearchAttributes, words: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        world.call_start("Ships", search_attributes=given)
    run = world.start("Ships")
    task = world.poll()
    with pytest.raises(InvalidArgumentError, match=words):
        world.answer(task, commands.UpsertWorkflowSearchAttributes(search_attributes=given))
    failed = run.history().only("WORKFLOW_TASK_FAILED")
    assert failed["cause"] == "WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES"
    assert run.status == "RUNNING"


@feature("K8")
@pytest.mark.parametrize("name", ["WorkflowId", "ExecutionStatus", "StartTime"])
def test_K08_system_attributes_are_not_set(world: World, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=name):
        world.call_start("Ships", search_attributes=attributes(**{name: '"mine"'}))
    assert world.runs() == []


@pytest.fixture
def three(world: World) -> list[Run]:
    """Three runs, a minute apart: one completed, one failed, one open."""
    runs = []
    for kind, end in (("Ships", asks.complete()), ("Ships", asks.fail()), ("Bills", None)):
        runs.append(world.start(kind))
        if end is not None:
            world.answer_next(end)
        world.advance(60)
    return runs


@feature("K9")
def test_K09_lists_are_filtered(world: World, three: list[Run]) -> None:
    done, failed, opened = three
    began = done.history()[0].time
    middle = (began + timedelta(seconds=30)).isoformat()
    late = (began + timedelta(seconds=90)).isoformat()
    for query, wanted in (
        ("", [opened, failed, done]),
        (f"WorkflowId = '{failed.id}'", [failed]),
        (f"RunId = '{done.run_id}'", [done]),
        ("WorkflowType = 'Ships'", [failed, done]),
        (f"TaskQueue = '{world.queue}'", [opened, failed, done]),
        ("ExecutionStatus = 'Running'", [opened]),
        ("ExecutionStatus = 1", [opened]),
        ("ExecutionStatus != 'Running'", [failed, done]),
        ("ExecutionStatus IN ('Failed', 'Running')", [opened, failed]),
        (f"StartTime > '{middle}'", [opened, failed]),
        (f"StartTime < '{middle}'", [done]),
        (f"StartTime > '{middle}' AND StartTime < '{late}'", [failed]),
        ("WorkflowType = 'Ships' AND ExecutionStatus = 'Failed'", [failed]),
        ("WorkflowType = 'Nothing'", []),
    ):
        assert [found.run_id for found in world.runs(query)] == [each.run_id for each in wanted]


@feature("K9")
@pytest.mark.parametrize(
    "query",
    [
        "WorkflowType = 'Ships' OR WorkflowType = 'Bills'",
        "WorkflowType STARTS_WITH 'Sh'",
        "CloseTime IS NULL",
        "NOT WorkflowType = 'Ships'",
        "StartTime BETWEEN '2020-01-01T00:00:00Z' AND '2021-01-01T00:00:00Z'",
        "WorkflowType = 'Ships' ORDER BY StartTime",
        "WorkflowType =",
        "WorkflowType = Ships",
        "=",
    ],
)
def test_K09_what_is_not_understood_is_refused(world: World, query: str) -> None:
    with pytest.raises(InvalidArgumentError):
        world.runs(query)


@feature("K10")
def test_K10_runs_are_counted(world: World, three: list[Run]) -> None:
    def count(query: str = "") -> Any:
        return do(world.client.count_workflows(query or None))

    assert count().count == 3
    assert count().groups == []
    assert count("WorkflowType = 'Ships'").count == 2
    grouped = count("GROUP BY ExecutionStatus")
    assert grouped.count == 3
    assert {tuple(each.group_values): each.count for each in grouped.groups} == {
        ("Running",): 1,
        ("Completed",): 1,
        ("Failed",): 1,
    }
    with pytest.raises(InvalidArgumentError, match="GROUP BY"):
        count("GROUP BY WorkflowType")


@feature("K11")
def test_K11_a_run_is_described(world: World) -> None:
    run = world.start("Ships", run_timeout=timedelta(hours=1))
    world.answer_next(asks.activity("a"))
    world.fail_activity(world.take_activity(), failure("first"))
    world.advance(1)
    world.take_activity()
    described = run.describe()
    assert (described.workflow_type, described.task_queue) == ("Ships", world.queue)
    assert described.start_time == run.history()[0].time
    assert described.history_length == len(run.history())
    assert described.raw_description.execution_config.workflow_run_timeout == timedelta(hours=1)
    (pending,) = run.pending_activities
    assert (pending.activity_id, pending.attempt) == ("a", 2)
    assert pending.state is PendingActivityState.STARTED
    assert pending.last_failure.message == "first"
    assert pending.last_worker_identity == "worker"
    run.signal("go")
    assert run.pending_task.attempt == 1


@feature("K12")
def test_K12_words_for_people(world: World) -> None:
    @workflow.defn(name="Tells")
    class Tells:
        @workflow.run
        async def run(self) -> None:
            await workflow.sleep(60, summary="until the kettle boils")
            await workflow.execute_activity(
                "charge",
                start_to_close_timeout=timedelta(seconds=5),
                summary="takes the money",
            )

    world.serve([Tells])
    run = world.start("Tells", static_summary="makes tea", static_details="with milk" * 100)
    world.advance(60)
    history = run.history()

    def words(kind: str, which: str) -> Any:
        (value,) = decoded({"payloads": [history.only(kind).raw["userMetadata"][which]]})
        return value

    assert words("WORKFLOW_EXECUTION_STARTED", "summary") == "makes tea"
    assert words("TIMER_STARTED", "summary") == "until the kettle boils"
    assert history.only("TIMER_STARTED").id == 5
    assert words("ACTIVITY_TASK_SCHEDULED", "summary") == "takes the money"
    described = run.describe()
    assert asyncio.run(described.static_summary()) == "makes tea"
    assert asyncio.run(described.static_details()) == "with milk" * 100


@feature("K13")
def test_K13_a_history_in_pages(world: World) -> None:
    """A page holds what so many transactions wrote, and at most 256 events."""
    run = world.start("Ships")
    for _ in range(300):
        world.advance(0.001)
        run.signal("go")

    async def pages(**options: Any) -> list[int]:
        events = run.handle.fetch_history_events(**options)
        sizes = []
        while True:
            await events.fetch_next_page()
            sizes.append(len(events.current_page or ()))
            if not events.next_page_token:
                return sizes

    sizes = do(pages())
    assert len(sizes) == 2
    assert sum(sizes) == 302
    assert 250 < sizes[0] <= 256
    assert do(pages(page_size=100)) == [101, 100, 100, 1]


@feature("K13")
def test_K13_a_running_workflow_is_followed(world: World) -> None:
    @workflow.defn(name="Ticks")
    class Ticks:
        @workflow.run
        async def run(self) -> None:
            for _ in range(3):
                await workflow.sleep(60)

    world.serve([Ticks])
    run = world.start("Ticks")

    async def follow() -> list[int]:
        return [
            event.event_id
            async for event in run.handle.fetch_history_events(wait_new_event=True, page_size=4)
        ]

    seen = do(follow())
    assert run.status == "COMPLETED"
    assert seen == [event.id for event in run.history()]
    assert len(seen) > 12
