"""What a database would write: one save a run and transaction, of few kinds of rows.

The counts are those of `docs/architecture.md`; a store with a statement for each kind keeps them.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.probing import Probe
from tests.support.requests_json import activity, complete, timer
from wfcore.history.change import Change
from wfcore.service.host import Arrivals
from wfcore.testing import memory_ports
from wfcore.testing.memory_ports import MemoryStore, MemoryTransaction


def kinds(change: Change) -> list[str]:
    """The statements that one save is."""
    written = ["hot row"]
    if change.events:
        written.append("events")
    if change.activity_rows:
        written.append("activities")
    if change.inbox_taken:
        written.append("inbox")
    if change.is_new or change.closed:
        written += ["current run", "visible row"]
    return sorted(written)


class Counter:
    """Notes what is written through the ports."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[str] = []
        save = MemoryTransaction.save

        def noted(tx: MemoryTransaction, change: Change) -> None:
            self.seen += kinds(change)
            save(tx, change)

        monkeypatch.setattr(MemoryTransaction, "save", noted)
        for name in ("put_inbox", "replace_activity", "write_journal", "withdraw_inbox"):
            self._note(monkeypatch, name)

    def _note(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        call = getattr(MemoryStore, name)

        def noted(*given: Any, **named: Any) -> Any:
            self.seen.append(name)
            return call(*given, **named)

        monkeypatch.setattr(MemoryStore, name, noted)

    def of(self, step: Callable[[], Any]) -> list[str]:
        """What this step writes."""
        self.seen = []
        step()
        return self.seen


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    assert memory_ports.MemoryTransaction is MemoryTransaction
    return Counter(monkeypatch)


def test_hello(counter: Counter) -> None:
    probe = Probe()
    workflow_id = probe.workflow_id()
    tasks: list[Any] = []
    row = ["activities", "events", "hot row"]
    assert counter.of(lambda: probe.run(workflow_id)) == [
        "current run",
        "events",
        "hot row",
        "visible row",
    ]
    assert counter.of(lambda: tasks.append(probe.poll())) == ["events", "hot row"]
    step = activity("a", probe.queue)
    assert counter.of(lambda: probe.answer(tasks.pop(), step)) == row
    assert counter.of(lambda: tasks.append(probe.poll_activity())) == ["replace_activity"]
    assert counter.of(lambda: probe.answer_activity("heartbeat", tasks[0])) == ["replace_activity"]
    assert counter.of(lambda: probe.answer_activity("completed", tasks.pop())) == row
    assert counter.of(lambda: tasks.append(probe.poll())) == ["events", "hot row"]
    assert counter.of(lambda: probe.answer(tasks.pop(), complete())) == [
        "current run",
        "events",
        "hot row",
        "visible row",
    ]


def test_a_task_that_schedules_nothing(counter: Counter) -> None:
    probe = Probe()
    probe.run()
    task = probe.poll()
    assert counter.of(lambda: probe.answer(task, timer("t", 5))) == ["events", "hot row"]


def test_a_retry_touches_the_activity_alone(counter: Counter) -> None:
    probe = Probe()
    probe.with_activity()
    task = probe.poll_activity()
    assert counter.of(lambda: probe.answer_activity("failed", task)) == ["replace_activity"]


@pytest.mark.parametrize("arrivals", list(Arrivals))
def test_a_signal_during_a_task_is_one_row_until_it_is_drained(
    counter: Counter, arrivals: Arrivals
) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, _ = probe.run()
    task = probe.poll()
    assert counter.of(lambda: probe.signal(workflow_id)) == ["put_inbox"]
    assert counter.of(lambda: probe.answer(task)) == ["events", "hot row", "inbox"]
    assert counter.of(lambda: probe.signal(workflow_id)) == ["events", "hot row"]


def test_a_refused_answer_and_a_lost_claim_write_nothing(counter: Counter) -> None:
    probe = Probe()
    probe.run()
    task = probe.poll()
    assert counter.of(probe.poll) == []
    assert counter.of(lambda: probe.answer(task, complete(), timer("t", 5))) == []


def test_a_sweep_of_a_timer(counter: Counter) -> None:
    probe = Probe()
    probe.run()
    probe.step(timer("t", 5))
    assert counter.of(lambda: probe.advance(6)) == ["events", "hot row"]
