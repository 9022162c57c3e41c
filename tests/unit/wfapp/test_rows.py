"""Rows give back what was put into them; what is newer is refused."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfapp.models.columns import entry_id, from_micros, shard_of, to_micros
from wfapp.store import rows
from wfcore.history.change import Change
from wfcore.history.state import SNAPSHOT_FORMAT, InboxItem, MutableState, Recorded, Volatile
from wfcore.protocol.events import (
    ATTRIBUTES,
    ActivityTaskCompleted,
    ActivityTaskStarted,
    HistoryEvent,
    WorkflowExecutionSignaled,
)
from wfcore.protocol.metadata import Link, LinkWorkflow, Principal
from wfcore.protocol.payloads import Payload, Payloads, UserMetadata
from wfcore.service.ports import SnapshotTooNewError

AT = datetime(2026, 3, 1, 12, 0, 0, 123456, UTC)
RUN = "0195504c-2f1a-7000-8000-000000000001"
MINUTE = timedelta(minutes=1)


def a_state() -> MutableState:
    recorded = Recorded(
        namespace="default",
        workflow_id="wf",
        run_id=RUN,
        workflow_type="Order",
        task_queue="queue",
        first_execution_run_id=RUN,
        original_execution_run_id=RUN,
        start_time=AT,
        execution_time=AT,
        workflow_task_timeout=MINUTE,
        last_event_time=AT,
    )
    return MutableState(recorded=recorded, volatile=Volatile())


def through_row(event: HistoryEvent) -> HistoryEvent:
    change = Change(state=a_state(), now=AT, events=[event])
    (row,) = rows.event_rows(change, 1)
    return rows.read_event([row[rows.EVENT_COLUMNS.index(name)] for name in rows.EVENT_READ])


@pytest.mark.parametrize("kind", ATTRIBUTES.values(), ids=lambda kind: kind.__name__)
def test_every_kind_of_event_comes_back(kind: type) -> None:
    event = HistoryEvent(event_id=7, event_time=AT, attributes=kind())
    assert through_row(event) == event


def test_what_few_events_have_comes_back() -> None:
    event = HistoryEvent(
        event_id=7,
        event_time=AT,
        attributes=WorkflowExecutionSignaled(
            signal_name="s", input=Payloads(payloads=(Payload(data=b"\x00\xff NaN"),))
        ),
        version=3,
        task_id=4,
        worker_may_ignore=True,
        user_metadata=UserMetadata(summary=Payload(data=b"summary")),
        links=(Link(workflow=LinkWorkflow(namespace="n", workflow_id="w")),),
        principal=Principal(type="user", name="ann"),
    )
    assert through_row(event) == event


def test_attributes_that_were_encoded_to_be_counted_are_not_encoded_again() -> None:
    event = HistoryEvent(event_id=1, event_time=AT, attributes=WorkflowExecutionSignaled())
    change = Change(state=a_state(), now=AT, events=[event], encoded=[b'{"signalName":"x"}'])
    (row,) = rows.event_rows(change, 1)
    assert row[rows.EVENT_COLUMNS.index("attributes")] == b'{"signalName":"x"}'


def test_an_event_of_an_unknown_kind_is_a_newer_release_s() -> None:
    with pytest.raises(SnapshotTooNewError, match="event type 9999"):
        rows.read_event([0, 1, 9999, b"{}", None])


def test_an_arrival_comes_back_with_its_started_event() -> None:
    item = InboxItem(
        event_time=AT,
        attributes=ActivityTaskCompleted(scheduled_event_id=5, identity="w"),
        started=ActivityTaskStarted(scheduled_event_id=5, attempt=2),
        started_at=AT - MINUTE,
        links=(Link(workflow=LinkWorkflow(namespace="n")),),
        item_id=9,
    )
    assert rows.read_inbox_item([9, *rows.inbox_values(item)]) == item


def test_a_plain_arrival_has_no_extras() -> None:
    item = InboxItem(event_time=AT, attributes=WorkflowExecutionSignaled(signal_name="s"))
    assert rows.inbox_values(item)[-1] is None
    assert rows.read_inbox_item([0, *rows.inbox_values(item)]) == item


def test_a_snapshot_comes_back() -> None:
    state = a_state()
    snapshot = rows.state_values(state, None)[-1]
    assert rows.read_state(snapshot, state.format, RUN) == state


def test_a_newer_snapshot_is_refused() -> None:
    with pytest.raises(SnapshotTooNewError, match=RUN):
        rows.read_state(b"{}", SNAPSHOT_FORMAT + 1, RUN)


@pytest.mark.parametrize(
    ("stored", "needed", "wanted"),
    [
        (None, None, None),
        (None, 30, 30),
        (30, None, None),
        (30, 20, 20),
        (30, 80, 30),
        (30, 90, 30),
        (30, 91, 91),
        (0, 20, 20),
        (-5, None, None),
    ],
)
def test_wakeup_moves_earlier_at_once_and_later_when_it_is_worth_it(
    stored: int | None, needed: int | None, wanted: int | None
) -> None:
    def micros(seconds: int | None) -> int | None:
        return None if seconds is None else to_micros(AT + timedelta(seconds=seconds))

    time = None if needed is None else AT + timedelta(seconds=needed)
    assert rows.wakeup(micros(stored), time, AT) == micros(wanted)


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(9999, 1, 1)))  # noqa: DTZ001 - made aware below
def test_times_come_back(value: datetime) -> None:
    aware = value.replace(tzinfo=UTC)
    assert from_micros(to_micros(aware)) == aware


def test_shards_stay_what_they_are() -> None:
    """A changed hash would lose every run: these numbers are for ever."""
    assert shard_of("default", "wf") == 7101049181032197526
    assert shard_of("default", "") != shard_of("", "default")
    assert all(-(2**63) <= shard_of("n", str(number)) < 2**63 for number in range(100))


@given(st.integers(0, 2**50), st.integers(0, 255))
def test_entry_ids_sort_by_time_and_order(micros: int, order: int) -> None:
    first = entry_id(micros, order)
    assert isinstance(first, uuid.UUID)
    assert first.version == 7
    assert first < entry_id(micros + 1, 0)
    if order < 255:
        assert first < entry_id(micros, order + 1)
