"""A fact and a commit meet: nothing is lost, nothing is recorded twice, in both modes."""

import random
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.probing import Probe, Refusal
from tests.support.requests_json import (
    activity,
    cancel_activity,
    complete,
    continue_as_new,
    marker,
    timer,
    values,
)
from tests.support.waiting import wait_until
from wfcore.history import transition
from wfcore.history.rebuild import rebuild
from wfcore.history.requests import CompleteTask
from wfcore.service.host import Arrivals
from wfcore.service.ids import RandomIds
from wfcore.service.ports import RunKey, StaleActivityError
from wfcore.testing.memory_ports import MemoryTransaction, SimulatedClock

both = pytest.mark.parametrize("arrivals", list(Arrivals))


def before_put(probe: Probe, meanwhile: Callable[[], Any]) -> None:
    """Let something happen after an arrival has looked and before it is stored; once."""
    put, todo = probe.store.put_inbox, [meanwhile]

    def late(*given: Any, **named: Any) -> int | None:
        if todo:
            todo.pop()()
        return put(*given, **named)

    probe.store.put_inbox = late  # type: ignore[method-assign]


def after_put(probe: Probe, meanwhile: Callable[[], Any]) -> None:
    """Let something happen after an arrival was stored and before its sender looks; once."""
    put, todo = probe.store.put_inbox, [meanwhile]

    def early(*given: Any, **named: Any) -> int | None:
        item_id = put(*given, **named)
        if todo:
            todo.pop()()
        return item_id

    probe.store.put_inbox = early  # type: ignore[method-assign]


def after_inbox(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], Any]) -> None:
    """Let something happen after a transaction has read what waits; once."""
    read, todo = MemoryTransaction.inbox, [meanwhile]

    def early(self: MemoryTransaction, run_id: str) -> list[Any]:
        found = read(self, run_id)
        if todo:
            elsewhere = threading.Thread(target=todo.pop())
            elsewhere.start()
            elsewhere.join(0.1)
        return found

    monkeypatch.setattr(MemoryTransaction, "inbox", early)


def inbox(probe: Probe, workflow_id: str, run_id: str) -> list[Any]:
    key = RunKey(namespace="default", workflow_id=workflow_id, run_id=run_id)
    return probe.store.read_inbox(key)


def journal(probe: Probe, workflow_id: str, run_id: str) -> list[Any]:
    key = RunKey(namespace="default", workflow_id=workflow_id, run_id=run_id)
    return probe.store.read_journal(key)


@both
def test_facts_wait_while_a_task_is_started_and_follow_its_commands(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, run_id = probe.run()
    task = probe.poll()
    probe.signal(workflow_id, "s1")
    probe.cancel(workflow_id)
    assert probe.types(workflow_id)[-1] == "WORKFLOW_TASK_STARTED"
    assert len(inbox(probe, workflow_id, run_id)) == 2
    probe.answer(task, timer("t", 60))
    assert probe.types(workflow_id)[3:] == [
        "WORKFLOW_TASK_COMPLETED",
        "TIMER_STARTED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_EXECUTION_CANCEL_REQUESTED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    assert inbox(probe, workflow_id, run_id) == []


@both
def test_facts_of_an_idle_run_are_appended_at_once(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, _ = probe.idle()
    probe.signal(workflow_id)
    probe.signal(workflow_id)
    assert probe.types(workflow_id)[4:] == [
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_EXECUTION_SIGNALED",
    ]


def test_a_task_that_ends_before_the_fact_is_stored_leaves_it_to_the_second_look() -> None:
    probe = Probe()
    workflow_id, run_id = probe.run()
    task = probe.poll()
    before_put(probe, lambda: probe.answer(task))
    assert not isinstance(probe.signal(workflow_id), Refusal)
    assert probe.types(workflow_id)[3:] == [
        "WORKFLOW_TASK_COMPLETED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    assert inbox(probe, workflow_id, run_id) == []


def test_a_run_that_closes_before_the_fact_is_stored_refuses_it() -> None:
    probe = Probe()
    workflow_id, run_id = probe.run()
    task = probe.poll()
    before_put(probe, lambda: probe.answer(task, complete()))
    refused = probe.signal(workflow_id)
    assert (refused["code"], refused["message"]) == (
        "NOT_FOUND",
        "workflow execution already completed",
    )
    assert probe.types(workflow_id)[-1] == "WORKFLOW_EXECUTION_COMPLETED"
    assert inbox(probe, workflow_id, run_id) == []
    assert [entry.kind for entry in journal(probe, workflow_id, run_id)] == ["late_arrival"]


def sweep_drops_it(probe: Probe) -> None:
    """The sender sleeps so long that the ticker takes care of what it has stored."""
    probe.advance(6)
    probe.service.sweep()


def test_a_fact_that_the_ticker_dropped_before_its_sender_looked_is_refused() -> None:
    probe = Probe()
    workflow_id, run_id = probe.run()
    task = probe.poll()
    before_put(probe, lambda: probe.answer(task, complete()))
    after_put(probe, lambda: sweep_drops_it(probe))
    refused = probe.signal(workflow_id)
    assert refused["message"] == "workflow execution already completed"
    assert "WORKFLOW_EXECUTION_SIGNALED" not in probe.types(workflow_id)
    assert inbox(probe, workflow_id, run_id) == []


def test_an_end_that_the_ticker_dropped_before_its_worker_looked_is_refused() -> None:
    probe = Probe()
    workflow_id, _ = probe.with_activity()
    running = probe.poll_activity()
    probe.signal(workflow_id)
    task = probe.poll()
    before_put(probe, lambda: probe.answer(task, complete()))
    after_put(probe, lambda: sweep_drops_it(probe))
    refused = probe.answer_activity("completed", running)
    assert refused["message"] == "workflow execution already completed"
    assert "ACTIVITY_TASK_COMPLETED" not in probe.types(workflow_id)


def test_an_activity_that_ends_while_its_cancellation_commits_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    probe = Probe()
    workflow_id, _ = probe.with_activity()
    running = probe.poll_activity()
    probe.signal(workflow_id)
    task = probe.poll()
    after_inbox(monkeypatch, lambda: probe.answer_activity("completed", running))
    assert not isinstance(probe.answer(task, cancel_activity(5)), Refusal)
    wait_until(lambda: "ACTIVITY_TASK_COMPLETED" in probe.types(workflow_id))
    assert probe.types(workflow_id).count("ACTIVITY_TASK_CANCEL_REQUESTED") == 1


def test_a_fact_that_the_close_took_in_before_its_sender_looked_is_recorded() -> None:
    probe = Probe()
    workflow_id, run_id = probe.run()
    probe.poll()
    after_put(probe, lambda: probe.terminate(workflow_id))
    assert not isinstance(probe.signal(workflow_id), Refusal)
    assert probe.types(workflow_id).count("WORKFLOW_EXECUTION_SIGNALED") == 1
    assert inbox(probe, workflow_id, run_id) == []


def test_a_repeated_request_is_refused_like_the_one_that_it_repeats() -> None:
    """Both senders have seen the run open; the first is about to withdraw what it stored."""
    probe = Probe()
    workflow_id, run_id = probe.run()
    task = probe.poll()
    seen, read_state = probe.store.read_state("default", workflow_id), probe.store.read_state
    answers: list[Any] = []

    def repeat() -> None:
        probe.store.read_state = lambda *_: seen  # type: ignore[method-assign]
        answers.append(probe.signal(workflow_id, requestId="the-same"))
        probe.store.read_state = read_state  # type: ignore[method-assign]

    before_put(probe, lambda: probe.answer(task, complete()))
    after_put(probe, repeat)
    answers.append(probe.signal(workflow_id, requestId="the-same"))
    assert [answer["code"] for answer in answers] == ["NOT_FOUND", "NOT_FOUND"]
    assert "WORKFLOW_EXECUTION_SIGNALED" not in probe.types(workflow_id)
    assert inbox(probe, workflow_id, run_id) == []


def test_a_repeated_request_is_accepted_when_the_close_took_the_first_one_in() -> None:
    probe = Probe()
    workflow_id, _ = probe.run()
    probe.poll()
    assert not isinstance(probe.signal(workflow_id, requestId="the-same"), Refusal)
    before_put(probe, lambda: probe.terminate(workflow_id))
    assert not isinstance(probe.signal(workflow_id, requestId="the-same"), Refusal)
    assert probe.types(workflow_id).count("WORKFLOW_EXECUTION_SIGNALED") == 1


def test_a_cancel_request_that_comes_too_late_is_no_error() -> None:
    probe = Probe()
    workflow_id, run_id = probe.run()
    task = probe.poll()
    before_put(probe, lambda: probe.answer(task, complete()))
    assert not isinstance(probe.cancel(workflow_id), Refusal)
    assert inbox(probe, workflow_id, run_id) == []


def test_a_fact_without_a_run_id_follows_the_chain() -> None:
    probe = Probe()
    workflow_id, first = probe.run()
    task = probe.poll()
    before_put(probe, lambda: probe.answer(task, continue_as_new()))
    assert not isinstance(probe.signal(workflow_id, "late"), Refusal)
    assert "WORKFLOW_EXECUTION_SIGNALED" not in probe.types(workflow_id, first)
    assert probe.types(workflow_id) == [
        "WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_EXECUTION_SIGNALED",
    ]
    refused = probe.signal(workflow_id, "to the old one", run_id=first)
    assert refused["code"] == "NOT_FOUND"


@both
def test_the_end_of_an_activity_waits_like_a_signal(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, run_id = probe.with_activity()
    running = probe.poll_activity()
    probe.signal(workflow_id)
    task = probe.poll()
    probe.answer_activity("completed", running)
    assert probe.describe(workflow_id).pending_activities == ()
    assert len(inbox(probe, workflow_id, run_id)) == 1
    probe.answer(task, marker())
    assert probe.types(workflow_id)[8:] == [
        "WORKFLOW_TASK_COMPLETED",
        "MARKER_RECORDED",
        "ACTIVITY_TASK_STARTED",
        "ACTIVITY_TASK_COMPLETED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    again = probe.answer_activity("completed", running)
    assert again["code"] == "NOT_FOUND"


def test_the_end_of_an_activity_that_races_a_task_is_delivered() -> None:
    probe = Probe()
    workflow_id, run_id = probe.with_activity()
    running = probe.poll_activity()
    probe.signal(workflow_id)
    task = probe.poll()
    before_put(probe, lambda: probe.answer(task))
    assert not isinstance(probe.answer_activity("completed", running), Refusal)
    assert probe.types(workflow_id)[9:] == [
        "ACTIVITY_TASK_STARTED",
        "ACTIVITY_TASK_COMPLETED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    assert inbox(probe, workflow_id, run_id) == []


def test_of_an_end_and_a_timeout_of_one_attempt_one_counts() -> None:
    probe = Probe()
    workflow_id, _ = probe.with_activity(start_to_close=1, retryPolicy={"maximumAttempts": 1})
    running = probe.poll_activity()
    probe.signal(workflow_id)
    task = probe.poll()
    before_put(probe, lambda: probe.advance(2))
    refused = probe.answer_activity("completed", running)
    assert refused["code"] == "NOT_FOUND"
    probe.answer(task)
    kinds = probe.types(workflow_id)
    assert "ACTIVITY_TASK_TIMED_OUT" in kinds
    assert "ACTIVITY_TASK_COMPLETED" not in kinds


@both
def test_an_answer_that_meets_the_end_of_its_run_is_journalled(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, run_id = probe.with_activity()
    running = probe.poll_activity()
    read, todo = probe.store.read_activity, [lambda: probe.terminate(workflow_id)]

    def meanwhile(*given: Any) -> Any:
        row = read(*given)
        if todo:
            todo.pop()()
        return row

    probe.store.read_activity = meanwhile  # type: ignore[method-assign]
    refused = probe.answer_activity("failed", running)
    assert refused["message"] == "workflow execution already completed"
    entries = journal(probe, workflow_id, run_id)
    assert [(entry.kind, entry.attempt) for entry in entries] == [("late_result", 1)]


@both
def test_a_late_result_is_journalled(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, run_id = probe.with_activity()
    running = probe.poll_activity()
    probe.answer_activity("completed", running)
    probe.answer_activity("failed", running)
    key = RunKey(namespace="default", workflow_id=workflow_id, run_id=run_id)
    (entry,) = probe.store.read_journal(key)
    assert (entry.kind, entry.scheduled_event_id, entry.attempt) == ("late_result", 5, 1)


@both
def test_a_signal_with_a_known_request_id_is_recorded_once(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, _ = probe.idle()
    probe.signal(workflow_id, requestId="the-same")
    probe.signal(workflow_id, requestId="the-same")
    task = probe.poll()
    probe.signal(workflow_id, requestId="the-same")
    probe.signal(workflow_id, requestId="another")
    probe.signal(workflow_id, requestId="another")
    probe.answer(task)
    probe.signal(workflow_id, requestId="another")
    assert probe.types(workflow_id).count("WORKFLOW_EXECUTION_SIGNALED") == 2


@both
@pytest.mark.parametrize("is_started", [False, True])
def test_a_signal_that_the_run_before_had_is_not_recorded_again(
    arrivals: Arrivals, is_started: bool
) -> None:
    """Who repeats a request whose answer got lost doesn't know that another run has followed."""
    probe = Probe(arrivals=arrivals)
    workflow_id, first = probe.run()
    probe.signal(workflow_id, requestId="before")
    probe.answer(probe.poll(), continue_as_new())
    probe.advance(1)
    if is_started:
        probe.poll()
    probe.signal(workflow_id, requestId="before")
    probe.signal(workflow_id, requestId="new")
    task = probe.poll() if not is_started else None
    probe.signal(workflow_id, requestId="before")
    probe.signal(workflow_id, requestId="new")
    assert probe.types(workflow_id, first).count("WORKFLOW_EXECUTION_SIGNALED") == 1
    if is_started:
        probe.advance(20)
    else:
        probe.answer(task)
    assert probe.types(workflow_id).count("WORKFLOW_EXECUTION_SIGNALED") == 1
    assert probe.attributes(workflow_id, "WORKFLOW_EXECUTION_SIGNALED").request_id == "new"


def test_a_signal_that_the_run_before_stored_and_did_not_record_is_no_repetition() -> None:
    """It closed without it; the sender, or who repeats it, gives it to the next run."""
    probe = Probe()
    workflow_id, first = probe.run()
    key = RunKey(namespace="default", workflow_id=workflow_id, run_id=first)
    task = probe.poll()
    probe.answer(task, continue_as_new())
    probe.advance(1)
    with probe.store.transaction("default", workflow_id) as tx:
        assert not tx.seen_request(key.run_id, "withdrawn")
    probe.signal(workflow_id, requestId="withdrawn")
    assert probe.types(workflow_id).count("WORKFLOW_EXECUTION_SIGNALED") == 1


@both
def test_a_second_cancel_request_leaves_nothing(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, _ = probe.idle()
    probe.cancel(workflow_id, reason="first")
    probe.cancel(workflow_id, reason="second")
    task = probe.poll()
    probe.cancel(workflow_id, reason="third")
    probe.answer(task)
    assert probe.types(workflow_id).count("WORKFLOW_EXECUTION_CANCEL_REQUESTED") == 1
    assert probe.attributes(workflow_id, "WORKFLOW_EXECUTION_CANCEL_REQUESTED").cause == "first"


@both
def test_a_buffer_that_overflows_fails_the_task_and_keeps_all(arrivals: Arrivals) -> None:
    probe = Probe("tuned", arrivals)
    workflow_id, _ = probe.run()
    probe.poll()
    for number in range(5):
        assert not isinstance(probe.signal(workflow_id, f"s{number}"), Refusal)
    assert probe.types(workflow_id)[3:] == [
        "WORKFLOW_TASK_FAILED",
        *["WORKFLOW_EXECUTION_SIGNALED"] * 5,
    ]
    assert probe.poll().attempt == 2


@both
def test_what_nobody_delivered_is_taken_in_by_the_next_fact(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, run_id = probe.run()
    task = probe.poll()
    probe.signal(workflow_id, "waits")
    (item,) = inbox(probe, workflow_id, run_id)
    probe.answer(task)
    # as if a process had died between its store and its second look
    key = RunKey(namespace="default", workflow_id=workflow_id, run_id=run_id)
    probe.store.put_inbox(key, item)
    probe.signal(workflow_id, "comes after")
    names = [
        event.attributes.signal_name
        for event in probe.events(workflow_id)
        if event.event_type.name == "WORKFLOW_EXECUTION_SIGNALED"
    ]
    assert names == ["waits", "waits", "comes after"]


class Storm:
    """Senders, an activity worker and a workflow worker at once, in threads."""

    SENDERS, SIGNALS = 4, 30

    def __init__(self, arrivals: Arrivals, seed: int) -> None:
        clock = SimulatedClock(real_time=True)
        self.probe = Probe(arrivals=arrivals, clock=clock, ids=RandomIds())
        self.seed = seed
        self.failures: list[BaseException] = []
        self.counting = threading.Lock()
        self.sent = 0
        #: senders keep in step with the workers
        self.permits = threading.Semaphore(6)

    def run(self) -> tuple[str, str]:
        self.workflow_id, run_id = self.probe.run()
        threads = [
            threading.Thread(target=self._guarded, args=(call, number))
            for number, call in enumerate(
                [*[self._send] * self.SENDERS, self._work, self._work, self._act]
            )
        ]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)  # threads meet everywhere
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
                assert not thread.is_alive()
        finally:
            sys.setswitchinterval(interval)
        assert self.failures == []
        return self.workflow_id, run_id

    def _guarded(self, call: Callable[[int], None], number: int) -> None:
        try:
            call(number)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            self.failures.append(error)

    def _send(self, number: int) -> None:
        for count in range(self.SIGNALS):
            assert self.permits.acquire(timeout=20)
            answer = self.probe.signal(self.workflow_id, f"{number}/{count}", requestId="")
            assert not isinstance(answer, Refusal), answer
            with self.counting:
                self.sent += 1

    def _done(self) -> bool:
        if self.sent < self.SENDERS * self.SIGNALS:
            return False
        state = self.probe.store.read_state("default", self.workflow_id)
        assert state is not None
        return state.volatile.task is None and not state.recorded.open_activities

    def _work(self, number: int) -> None:
        chance = random.Random(self.seed + number)
        while not self._done():
            task = self.probe.poll()
            if not task.task_token:
                continue
            commands = [marker()]
            if task.started_event_id == 3 or chance.random() < 0.5:
                commands.append(activity(f"a{task.started_event_id}", self.probe.queue))
            answer = self.probe.answer(task, *commands)
            assert not isinstance(answer, Refusal), answer
            self.permits.release(6)

    def _act(self, _number: int) -> None:
        while not self._done():
            task = self.probe.poll_activity()
            if task.task_token:
                answer = self.probe.answer_activity("completed", task)
                assert not isinstance(answer, Refusal), answer


@both
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_in_a_storm(arrivals: Arrivals, seed: int) -> None:
    storm = Storm(arrivals, seed)
    workflow_id, run_id = storm.run()
    events = storm.probe.events(workflow_id)
    assert inbox(storm.probe, workflow_id, run_id) == []
    assert [event.event_id for event in events] == list(range(1, len(events) + 1))
    names = [
        event.attributes.signal_name
        for event in events
        if event.event_type.name == "WORKFLOW_EXECUTION_SIGNALED"
    ]
    for number in range(Storm.SENDERS):
        mine = [name for name in names if name.startswith(f"{number}/")]
        assert mine == [f"{number}/{count}" for count in range(Storm.SIGNALS)]
    kinds = [event.event_type.name for event in events]
    scheduled = kinds.count("ACTIVITY_TASK_SCHEDULED")
    assert kinds.count("ACTIVITY_TASK_COMPLETED") == scheduled > 0
    assert kinds.count("WORKFLOW_TASK_STARTED") == kinds.count("WORKFLOW_TASK_COMPLETED")
    state = storm.probe.store.read_state("default", workflow_id)
    assert state is not None
    assert state.recorded == rebuild(
        events, namespace="default", workflow_id=workflow_id, run_id=run_id
    )


def test_a_termination_without_a_run_id_follows_the_chain() -> None:
    probe = Probe()
    workflow_id, first = probe.run()
    task = probe.poll()
    opened, todo = probe.store.transaction, [lambda: probe.answer(task, continue_as_new())]

    def late(*given: Any, **named: Any) -> Any:
        if todo:
            todo.pop()()
        return opened(*given, **named)

    probe.store.transaction = late  # type: ignore[method-assign]
    assert not isinstance(probe.terminate(workflow_id), Refusal)
    assert probe.status(workflow_id, first).name == "CONTINUED_AS_NEW"
    assert probe.status(workflow_id).name == "TERMINATED"


def test_a_termination_that_comes_too_late_is_told() -> None:
    probe = Probe()
    workflow_id, run_id = probe.run()
    task = probe.poll()
    opened, todo = probe.store.transaction, [lambda: probe.answer(task, complete())]

    def late(*given: Any, **named: Any) -> Any:
        if todo:
            todo.pop()()
        return opened(*given, **named)

    probe.store.transaction = late  # type: ignore[method-assign]
    refused = probe.terminate(workflow_id, run_id)
    assert refused["message"] == "workflow execution already completed"
    assert probe.status(workflow_id).name == "COMPLETED"


@both
def test_a_cancelled_activity_says_so(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    workflow_id, _ = probe.with_activity()
    running = probe.poll_activity()
    probe.signal(workflow_id)
    probe.step(cancel_activity(5))
    assert probe.answer_activity("heartbeat", running).cancel_requested
    (info,) = probe.describe(workflow_id).pending_activities
    assert info.state.name == "CANCEL_REQUESTED"
    probe.answer_activity("canceled", running, details=values("bye"))
    ended = probe.attributes(workflow_id, "ACTIVITY_TASK_CANCELED")
    assert ended.latest_cancel_requested_event_id == 10
    assert ended.details.payloads[0].data == b'"bye"'


def test_a_heartbeat_between_a_transitions_read_and_its_save_is_not_lost() -> None:
    probe = Probe()
    workflow_id, _ = probe.with_activity(heartbeatTimeout="60s")
    running = probe.poll_activity()
    probe.signal(workflow_id)
    task = probe.poll()
    save, beats = MemoryTransaction.save, []

    def late(tx: MemoryTransaction, change: Any) -> None:
        if not beats:
            beat = threading.Thread(
                target=lambda: probe.answer_activity("heartbeat", running, details=values("hb"))
            )
            beats.append(beat)
            beat.start()
        save(tx, change)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryTransaction, "save", late)
        probe.answer(task, cancel_activity(5))
    beats[0].join(10)
    (info,) = probe.describe(workflow_id).pending_activities
    assert info.state.name == "CANCEL_REQUESTED"
    assert info.heartbeat_details.payloads[0].data == b'"hb"'


def test_facts_for_a_run_whose_activities_change_too_fast_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    probe = Probe()
    workflow_id, _ = probe.idle()

    def stale(*_given: Any) -> None:
        raise StaleActivityError("changed")

    monkeypatch.setattr(MemoryTransaction, "save", stale)
    assert probe.signal(workflow_id)["code"] == "ABORTED"


@both
@pytest.mark.parametrize("closes", [True, False])
def test_a_fact_that_meets_an_answer_under_way_is_recorded_or_refused(
    arrivals: Arrivals, closes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer has read the inbox and not committed; the sender must not trust what it sees."""
    probe = Probe(arrivals=arrivals)
    workflow_id, run_id = probe.run()
    task = probe.poll()
    stored, answers = threading.Event(), []
    apply, put = transition.apply, probe.store.put_inbox

    def send() -> None:
        answers.append(probe.signal(workflow_id))
        stored.set()

    def noted(*given: Any, **named: Any) -> int | None:
        item_id = put(*given, **named)
        stored.set()
        return item_id

    sender = threading.Thread(target=send)

    def under_way(change: Any, request: Any, *rest: Any) -> Any:
        if isinstance(request, CompleteTask):
            sender.start()
            if arrivals is Arrivals.OPTIMISTIC:
                assert stored.wait(10)
        return apply(change, request, *rest)

    monkeypatch.setattr(probe.store, "put_inbox", noted)
    monkeypatch.setattr(transition, "apply", under_way)
    probe.answer(task, complete() if closes else marker())
    sender.join(10)
    (answer,) = answers
    assert inbox(probe, workflow_id, run_id) == []
    if closes:
        assert answer["message"] == "workflow execution already completed"
        assert probe.types(workflow_id)[-1] == "WORKFLOW_EXECUTION_COMPLETED"
    else:
        assert not isinstance(answer, Refusal)
        assert probe.types(workflow_id)[-2:] == [
            "WORKFLOW_EXECUTION_SIGNALED",
            "WORKFLOW_TASK_SCHEDULED",
        ]
