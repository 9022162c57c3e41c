"""Histories, journals, visibility, lists."""

from datetime import timedelta

import pytest

from wfcore.history.change import Change
from wfcore.history.requests import SignalRun
from wfcore.protocol.common import WorkflowType
from wfcore.protocol.enums import WorkflowExecutionStatus as Status
from wfcore.protocol.payloads import Memo, Payload, SearchAttributes
from wfcore.service.ports import (
    RunFilter,
    Store,
)
from wfcore.testing.contracts.base import (
    MANY,
    MINUTE,
    StoreContract,
    journal,
    state_of,
)
from wfcore.testing.port_builders import NAMESPACE, QUEUE, Builder


class ReadingContract(StoreContract):
    """Histories, journals, visibility, lists."""

    def test_a_history_is_read_in_windows(self, store: Store, build: Builder) -> None:
        key = build.start()
        for number in range(8):
            build.signal(key, f"s{number}")
        assert [event.event_id for event in store.read_events(key)] == list(range(1, 11))

        def ids(**window: int | bool) -> list[int]:
            return [e.event_id for e in store.read_events(key, **window)]  # type: ignore[arg-type]

        assert ids(first=4) == [4, 5, 6, 7, 8, 9, 10]
        assert ids(last=3) == [1, 2, 3]
        assert ids(first=3, last=6) == [3, 4, 5, 6]
        assert ids(first=3, last=9, limit=2) == [3, 4]
        assert ids(first=3, last=9, limit=2, reverse=True) == [9, 8]
        assert ids(first=11) == []
        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            tx.load(key.run_id)
            assert [e.event_id for e in tx.events(key.run_id, (7, 1, 99))] == [1, 7]

    def test_a_journal_is_kept_in_order(self, store: Store, build: Builder) -> None:
        key = build.start()
        store.write_journal((journal(key, store, "first"),))
        build.change(
            key,
            SignalRun(signal_name="s", request_id="r"),
            lambda change: change.journal.append(journal(key, store, "second")),
        )
        store.write_journal((journal(key, store, "third"),))
        entries = store.read_journal(key)
        assert [entry.kind for entry in entries] == ["first", "second", "third"]
        assert entries[0].text == "text"

    def test_what_people_see_follows_the_changes(self, store: Store, build: Builder) -> None:
        first = Memo(fields={"a": Payload(data=b"1")})
        key = build.start(memo=first)
        assert store.read_visibility(key)[0] == first
        second = Memo(fields={"b": Payload(data=b"2")})
        attributes = SearchAttributes(indexed_fields={"K": Payload(data=b'"v"')})

        def adjust(change: Change) -> None:
            change.memo, change.search_attributes = second, attributes

        build.change(key, SignalRun(signal_name="s", request_id="r"), adjust)
        build.signal(key)
        assert store.read_visibility(key) == (second, attributes)
        with store.transaction(NAMESPACE, key.workflow_id) as tx:
            assert tx.memo(key.run_id) == second
            assert tx.search_attributes(key.run_id) == attributes

    def test_reported_problems_are_a_search_attribute(self, store: Store, build: Builder) -> None:
        key = build.start()

        def report(*problems: str) -> set[str]:
            def adjust(change: Change) -> None:
                change.reported_problems = problems

            order = SignalRun(signal_name="s", request_id=build.ids.request_id())
            build.change(key, order, adjust)
            attributes = store.read_visibility(key)[1] or SearchAttributes()
            return set(attributes.indexed_fields)

        assert report("category=WorkflowTaskFailed") == {"TemporalReportedProblems"}
        assert report() == set()

    def test_runs_are_listed_newest_first_in_pages(self, store: Store, build: Builder) -> None:
        name = build.workflow_id()
        keys = [build.start(workflow_type=WorkflowType(name=name)) for _ in range(5)]
        wanted = RunFilter(workflow_type=name)
        seen: list[str] = []
        token = b""
        for _ in range(4):
            page, token = store.list_runs(NAMESPACE, wanted, limit=2, after=token)
            assert len(page) <= 2
            seen += [info.execution.run_id for info in page if info.execution is not None]
            if not token:
                break
        assert seen == [key.run_id for key in reversed(keys)]
        with pytest.raises(ValueError, match=r".+"):
            store.list_runs(NAMESPACE, wanted, limit=2, after=b"rubbish")

    def test_a_list_shows_what_describe_would(self, store: Store, build: Builder) -> None:
        key = build.start(memo=Memo(fields={"a": Payload(data=b"1")}))
        build.terminate(key)
        (info,), _ = store.list_runs(NAMESPACE, RunFilter(run_id=key.run_id), limit=5)
        recorded = state_of(store, key).recorded
        assert info.status is Status.TERMINATED
        assert info.type == WorkflowType(name="contract")
        assert (info.start_time, info.close_time) == (recorded.start_time, recorded.close_time)
        assert info.history_length == recorded.next_event_id - 1
        assert info.memo == Memo(fields={"a": Payload(data=b"1")})
        assert info.task_queue == QUEUE

    def test_runs_are_filtered_and_counted(self, store: Store, build: Builder) -> None:
        name = build.workflow_id()
        kind = WorkflowType(name=name)
        keys = [build.start(workflow_type=kind) for _ in range(3)]
        build.terminate(keys[0])
        start = state_of(store, keys[0]).recorded.start_time

        def found(**parts: object) -> set[str]:
            wanted = RunFilter(workflow_type=name, **parts)  # type: ignore[arg-type]
            page, _ = store.list_runs(NAMESPACE, wanted, limit=MANY)
            assert store.count_runs(NAMESPACE, wanted) == {None: len(page)}
            return {info.execution.run_id for info in page if info.execution is not None}

        everything = {key.run_id for key in keys}
        assert found() == everything
        assert found(workflow_id=keys[1].workflow_id) == {keys[1].run_id}
        assert found(run_id=keys[2].run_id) == {keys[2].run_id}
        assert found(task_queue="another") == set()
        assert found(statuses=(Status.TERMINATED,)) == {keys[0].run_id}
        assert found(statuses=(Status.TERMINATED, Status.RUNNING)) == everything
        assert found(started_after=start - MINUTE) == everything
        assert found(started_before=start - MINUTE) == set()
        counts = store.count_runs(NAMESPACE, RunFilter(workflow_type=name), by_status=True)
        assert counts == {Status.RUNNING: 2, Status.TERMINATED: 1}
        assert store.count_runs("other", RunFilter(workflow_type=name)) == {None: 0}

    def test_the_default_namespace_is_there(self, store: Store) -> None:
        default = store.namespace("default")
        assert default is not None
        assert default.retention > timedelta()
        assert default in store.namespaces()
        assert store.namespace("nowhere") is None
