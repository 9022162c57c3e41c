"""Children and other workflows over the service in memory: what reaches whom, and what comes of
it when a process dies on the way.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.support.probing import Probe, Refusal
from tests.support.requests_json import (
    Json,
    cancel_external,
    complete,
    continue_as_new,
    fail,
    signal_external,
    start_child,
    timer,
)
from wfcore.history.effects import CarryOut
from wfcore.history.state import DeliveryKind as Kind
from wfcore.protocol.common import WorkflowExecution
from wfcore.service import delivering
from wfcore.service.delivering import NOT_RECORDED, Courier
from wfcore.service.host import Arrivals, Host
from wfcore.service.ports import RunKey
from wfcore.testing.memory_ports import MemoryStore

both = pytest.mark.parametrize("arrivals", list(Arrivals))
STARTED = "CHILD_WORKFLOW_EXECUTION_STARTED"
SCHEDULED = "WORKFLOW_TASK_SCHEDULED"
TERMINATED = "WORKFLOW_EXECUTION_TERMINATED"
NO_MORE = "EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND"


class Lost:
    """A process that dies after each commit: it carries nothing out until it is told to."""

    def __init__(self) -> None:
        self.dies = True
        self._courier = Courier()

    def carry_out(self, host: Host, effects: Sequence[CarryOut]) -> None:
        if not self.dies:
            self._courier.carry_out(host, effects)


def a_parent(probe: Probe, *commands: Json, **fields: Any) -> tuple[str, str]:
    """A run that answered its first task with these commands."""
    workflow_id, run_id = probe.run(**fields)
    probe.step(*commands)
    return workflow_id, run_id


def pending(probe: Probe, workflow_id: str, run_id: str = "") -> list[Kind]:
    state = probe.store.read_state("default", workflow_id, run_id)
    assert state is not None
    return [each.kind for each in state.volatile.deliveries.values()]


def last(probe: Probe, workflow_id: str, run_id: str = "") -> Any:
    return probe.events(workflow_id, run_id)[-1].attributes


# ---- starting


@both
def test_a_child_works_once_its_parent_has_recorded_it(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    parent, run_id = a_parent(probe, start_child("c", taskQueue={"name": "other"}))
    assert probe.types(parent)[4:] == [
        "START_CHILD_WORKFLOW_EXECUTION_INITIATED",
        STARTED,
        SCHEDULED,
    ]
    assert probe.types("c") == ["WORKFLOW_EXECUTION_STARTED", SCHEDULED]
    first = probe.events("c")[0].attributes
    execution = WorkflowExecution(workflow_id=parent, run_id=run_id)
    assert first.parent_workflow_execution == first.root_workflow_execution == execution  # type: ignore[attr-defined]
    assert (first.parent_workflow_namespace, first.parent_initiated_event_id) == ("default", 5)  # type: ignore[attr-defined]
    namespace = probe.store.namespace("default")
    assert namespace is not None
    assert first.parent_workflow_namespace_id == namespace.namespace_id  # type: ignore[attr-defined]
    told = probe.attributes(parent, STARTED)
    assert told.namespace_id == namespace.namespace_id
    (shown,) = probe.describe(parent).pending_children
    assert (shown.workflow_id, shown.workflow_type_name, shown.initiated_id) == ("c", "child", 5)
    assert shown.run_id == told.workflow_execution.run_id
    info = probe.describe("c").workflow_execution_info
    assert (info.parent_execution, info.root_execution) == (execution, execution)
    assert info.parent_namespace_id == namespace.namespace_id


def test_a_grandchilds_root_is_the_first_of_all() -> None:
    probe = Probe()
    top, run_id = a_parent(probe, start_child("c", taskQueue={"name": "c"}))
    probe.answer(probe.poll("c"), start_child("g", taskQueue={"name": "g"}))
    first: Any = probe.events("g")[0].attributes
    assert first.root_workflow_execution == WorkflowExecution(workflow_id=top, run_id=run_id)
    assert first.parent_workflow_execution.workflow_id == "c"


@pytest.mark.parametrize(
    ("before", "attributes", "expected"),
    [
        ("open", {}, "START_CHILD_WORKFLOW_EXECUTION_FAILED"),
        ("closed", {}, STARTED),
        (
            "closed",
            {"workflowIdReusePolicy": "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE"},
            "START_CHILD_WORKFLOW_EXECUTION_FAILED",
        ),
        (
            "open",
            {"workflowIdReusePolicy": "WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING"},
            STARTED,
        ),
    ],
)
def test_a_workflow_id_in_use_is_judged_by_the_policy(
    before: str, attributes: Json, expected: str
) -> None:
    probe = Probe()
    _, first = probe.run("c", taskQueue={"name": "c"})
    if before == "closed":
        probe.answer(probe.poll("c"), complete())
    parent, _ = a_parent(probe, start_child("c", **attributes))
    assert probe.types(parent)[5:] == [expected, SCHEDULED]
    if "TERMINATE" in str(attributes):
        assert probe.types("c", first)[-1] == TERMINATED


def test_the_parents_own_workflow_id_is_taken() -> None:
    probe = Probe()
    workflow_id = probe.workflow_id()
    policy = "WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING"
    probe.run(workflow_id)
    probe.step(start_child(workflow_id, workflowIdReusePolicy=policy))
    assert probe.types(workflow_id)[5:] == ["START_CHILD_WORKFLOW_EXECUTION_FAILED", SCHEDULED]


def test_a_parent_that_ends_at_once_has_no_child() -> None:
    probe = Probe()
    policy = "PARENT_CLOSE_POLICY_ABANDON"
    parent, _ = a_parent(probe, start_child("c", parentClosePolicy=policy), complete())
    assert probe.types(parent)[-1] == "WORKFLOW_EXECUTION_COMPLETED"
    assert probe.store.head("default", "c") is None
    assert pending(probe, parent) == []


def test_a_child_that_is_not_recorded_when_its_parent_closes_ends_without_a_task() -> None:
    carrier = Lost()
    probe = Probe(carrier=carrier)
    parent, _ = a_parent(probe, start_child("c", parentClosePolicy="PARENT_CLOSE_POLICY_ABANDON"))
    probe.terminate(parent)
    carrier.dies = False
    # its start was under way when the parent closed
    start_under_way(probe, parent)
    assert probe.types("c") == ["WORKFLOW_EXECUTION_STARTED", TERMINATED]
    assert (last(probe, "c").reason, last(probe, "c").identity) == (
        NOT_RECORDED,
        "history-service",
    )
    probe.advance(60)
    assert (pending(probe, "c"), pending(probe, parent)) == ([], [])
    assert probe.types(parent)[-1] == TERMINATED


def start_under_way(probe: Probe, parent: str) -> None:
    """Carry a start out as it stood before the parent closed."""
    from wfcore.history.machines import child
    from wfcore.service import starting

    state = probe.store.read_state("default", parent)
    assert state is not None
    key = RunKey(namespace="default", workflow_id=parent, run_id=state.recorded.run_id)
    initiated = probe.store.read_events(key, first=5, last=5)[0]
    execution = WorkflowExecution(workflow_id=parent, run_id=key.run_id)
    order = starting.ChildStart(
        request=child.start_request(state.recorded, initiated),
        namespace_id="",
        parent=execution,
        initiated_event_id=5,
        root=execution,
    )
    starting.start_child(probe.service.host, order)
    assert probe.types("c") == ["WORKFLOW_EXECUTION_STARTED"]
    probe.advance(10)


def test_a_child_waits_while_its_parent_may_still_record_it() -> None:
    carrier = Lost()
    probe = Probe(carrier=carrier)
    parent, _ = a_parent(probe, start_child("c"))
    start_under_way(probe, parent)  # nothing more is carried out
    assert probe.types("c") == ["WORKFLOW_EXECUTION_STARTED"]
    carrier.dies = False
    probe.advance(60)
    assert probe.types(parent)[5:] == [STARTED, SCHEDULED]
    assert probe.types("c") == ["WORKFLOW_EXECUTION_STARTED", SCHEDULED]


# ---- ends


@both
@pytest.mark.parametrize("started", [False, True])
def test_the_end_of_a_child_reaches_its_parent(arrivals: Arrivals, started: bool) -> None:
    probe = Probe(arrivals=arrivals)
    parent, _ = a_parent(probe, start_child("c", taskQueue={"name": "c"}))
    task = probe.poll()
    if not started:
        probe.answer(task)
    probe.answer(probe.poll("c"), complete("done"))
    if started:
        assert probe.types(parent)[-1] == "WORKFLOW_TASK_STARTED"
        probe.answer(task)
    told = probe.attributes(parent, "CHILD_WORKFLOW_EXECUTION_COMPLETED")
    assert told.result == last(probe, "c").result
    assert (told.initiated_event_id, told.started_event_id) == (5, 6)
    assert probe.types(parent)[-1] == SCHEDULED
    assert probe.describe(parent).pending_children == ()
    assert pending(probe, "c") == []


def test_a_closed_parent_is_told_nothing() -> None:
    probe = Probe()
    policy = "PARENT_CLOSE_POLICY_ABANDON"
    parent, _ = a_parent(probe, start_child("c", taskQueue={"name": "c"}, parentClosePolicy=policy))
    probe.terminate(parent)
    probe.answer(probe.poll("c"), fail())
    assert probe.types(parent)[-1] == TERMINATED
    assert pending(probe, "c") == []


def test_only_the_last_run_of_a_child_is_told_of() -> None:
    probe = Probe()
    parent, _ = a_parent(probe, start_child("c", taskQueue={"name": "c"}))
    probe.answer(probe.poll("c"), continue_as_new())
    assert probe.types(parent)[-1] == SCHEDULED
    probe.advance(1)
    probe.answer(probe.poll("c"), complete(7))
    told = probe.attributes(parent, "CHILD_WORKFLOW_EXECUTION_COMPLETED")
    state = probe.store.read_state("default", "c")
    assert state is not None
    assert told.workflow_execution.run_id == state.recorded.run_id
    assert told.workflow_execution.run_id != state.recorded.first_execution_run_id


# ---- close policies


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("TERMINATE", [TERMINATED]),
        ("REQUEST_CANCEL", ["WORKFLOW_EXECUTION_CANCEL_REQUESTED"]),
        ("ABANDON", []),
    ],
)
def test_the_close_policy_reaches_the_chain_of_the_child(policy: str, expected: list[str]) -> None:
    probe = Probe()
    child = start_child(
        "c", taskQueue={"name": "c"}, parentClosePolicy=f"PARENT_CLOSE_POLICY_{policy}"
    )
    parent, run_id = a_parent(probe, child)
    probe.answer(probe.poll("c"), continue_as_new())
    probe.advance(1)
    probe.answer(probe.poll("c"), timer("t", 1000))
    before = len(probe.events("c"))
    probe.step(complete())
    assert probe.types("c")[before : before + 1] == expected
    assert pending(probe, parent) == []
    if policy == "TERMINATE":
        assert last(probe, "c").reason == "by parent close policy"
    if policy == "REQUEST_CANCEL":
        request = probe.attributes("c", expected[0])
        assert request.external_workflow_execution == WorkflowExecution(
            workflow_id=parent, run_id=run_id
        )
        assert (request.identity, request.cause) == ("history-service", "")
        assert request.external_initiated_event_id == 0


def test_another_chain_of_the_childs_workflow_id_is_left_alone() -> None:
    carrier = Lost()
    carrier.dies = False
    probe = Probe(carrier=carrier)
    parent, _ = a_parent(probe, start_child("c", taskQueue={"name": "c"}))
    carrier.dies = True
    probe.terminate(parent)
    probe.terminate("c")
    probe.run("c", taskQueue={"name": "c"})
    carrier.dies = False
    probe.advance(60)
    assert probe.types("c")[-1] == SCHEDULED
    assert pending(probe, parent) == []


def test_a_family_of_many_ends_without_deep_calls() -> None:
    probe = Probe()
    top, _ = a_parent(probe, start_child("c0", taskQueue={"name": "q0"}))
    for depth in range(120):
        child = start_child(f"c{depth + 1}", taskQueue={"name": f"q{depth + 1}"})
        probe.answer(probe.poll(f"q{depth}"), child)
    probe.terminate(top)
    probe.advance(60)
    for depth in range(121):
        assert probe.types(f"c{depth}")[-1] == TERMINATED
        assert pending(probe, f"c{depth}") == []


def test_more_children_than_one_call_does_are_left_to_the_ticker() -> None:
    probe = Probe()
    parent, _ = a_parent(probe, *(start_child(f"c{n}") for n in range(25)))
    assert probe.types(parent).count(STARTED) == 10
    probe.advance(0)
    assert probe.types(parent).count(STARTED) == 25
    probe.terminate(parent)
    assert [probe.status(f"c{n}").name for n in range(25)].count("TERMINATED") == 10
    probe.advance(0)
    assert [probe.status(f"c{n}").name for n in range(25)].count("TERMINATED") == 25


# ---- signals and cancel requests


def outcome(probe: Probe, sender: str) -> Any:
    assert probe.types(sender)[-1] == SCHEDULED
    return probe.events(sender)[-2]


@both
def test_a_signal_reaches_another_workflow_once(arrivals: Arrivals) -> None:
    probe = Probe(arrivals=arrivals)
    target, _ = probe.idle(taskQueue={"name": probe.queue})
    sender, run_id = probe.run()
    probe.step(signal_external(target))
    assert outcome(probe, sender).event_type.name == "EXTERNAL_WORKFLOW_EXECUTION_SIGNALED"
    assert probe.types(target)[4:] == ["WORKFLOW_EXECUTION_SIGNALED", SCHEDULED]
    got = probe.attributes(target, "WORKFLOW_EXECUTION_SIGNALED")
    assert got.external_workflow_execution == WorkflowExecution(workflow_id=sender, run_id=run_id)
    assert got.identity == "history-service"


@pytest.mark.parametrize(
    ("target", "signalled", "cancelled"),
    [
        ("open", "SIGNALED", "CANCEL_REQUESTED"),
        ("closed", NO_MORE, "CANCEL_REQUESTED"),
        ("missing", NO_MORE, NO_MORE),
        ("self", NO_MORE, NO_MORE),
        ("no child", NO_MORE, NO_MORE),
        ("closed, no child", NO_MORE, "CANCEL_REQUESTED"),
        ("full", "SIGNAL_COUNT_LIMIT_EXCEEDED", "CANCEL_REQUESTED"),
    ],
)
def test_what_becomes_of_it_is_told(target: str, signalled: str, cancelled: str) -> None:
    probe = Probe("tuned")
    sender = probe.workflow_id()
    named = {"missing": "nobody", "self": sender}.get(target, "t")
    if named == "t":
        probe.run("t", taskQueue={"name": "t"})
        if target == "full":
            for _ in range(8):
                probe.signal("t")
        probe.answer(probe.poll("t"), *([complete()] if "closed" in target else []))
    only = {"childWorkflowOnly": True} if "child" in target else {}
    probe.run(sender)
    probe.step(signal_external(named, **only), cancel_external(named, reason="r", **only))
    told = []
    for event in probe.events(sender)[6:8]:
        cause = getattr(event.attributes, "cause", None)
        told.append(cause.name if cause else event.event_type.name.split("EXECUTION_")[1])
    assert told == [signalled, cancelled]


def test_a_child_may_be_addressed_as_such() -> None:
    probe = Probe()
    parent, run_id = a_parent(probe, start_child("c", taskQueue={"name": "c"}))
    probe.step(
        signal_external("c", childWorkflowOnly=True), cancel_external("c", childWorkflowOnly=True)
    )
    assert probe.types("c")[2:] == [
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_EXECUTION_CANCEL_REQUESTED",
    ]
    got = probe.attributes("c", "WORKFLOW_EXECUTION_CANCEL_REQUESTED")
    assert got.external_workflow_execution == WorkflowExecution(workflow_id=parent, run_id=run_id)
    assert got.external_initiated_event_id == 11


def test_a_run_that_takes_no_signal_now_gets_it_later() -> None:
    """It tries to close, so that signals are refused for the moment."""
    probe = Probe()
    probe.run("t", taskQueue={"name": "t"})
    task = probe.poll("t")
    probe.signal("t")
    assert isinstance(probe.answer(task, complete()), Refusal)
    task = probe.poll("t")
    sender, _ = a_parent(probe, signal_external("t", "late"))
    assert pending(probe, sender) == [Kind.SIGNAL]
    probe.answer(task)
    probe.advance(10)
    assert probe.types("t")[-2:] == ["WORKFLOW_EXECUTION_SIGNALED", SCHEDULED]
    assert outcome(probe, sender).event_type.name == "EXTERNAL_WORKFLOW_EXECUTION_SIGNALED"


@pytest.mark.parametrize("order", [signal_external("t"), cancel_external("t")])
def test_what_reached_a_run_does_not_reach_the_one_that_follows(order: Json) -> None:
    """The sender died before it knew, and the target went on as a new run."""
    probe = Probe(carrier=Courier())
    probe.run("t", taskQueue={"name": "t"})
    crash_at(probe, 2, after=False)  # the second transaction acknowledges
    sender, _ = probe.run()
    task = probe.poll()
    with pytest.raises(CrashError):
        probe.answer(task, order)
    arrived = probe.types("t")[-1]
    probe.answer(probe.poll("t"), continue_as_new())
    probe.advance(60)
    assert arrived not in probe.types("t")
    assert outcome(probe, sender).event_type.name.endswith(("SIGNALED", "CANCEL_REQUESTED"))


class Kept(Lost):
    """Keeps what it is told to carry out."""

    def __init__(self) -> None:
        super().__init__()
        self.effects: list[CarryOut] = []

    def carry_out(self, host: Host, effects: Sequence[CarryOut]) -> None:
        self.effects += effects


@pytest.mark.parametrize("order", [signal_external("t"), cancel_external("t")])
@pytest.mark.parametrize("stalls", ["before it begins", "before it sends", "before it tells"])
def test_of_two_attempts_at_once_only_the_later_is_believed(
    order: Json, stalls: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first stalls until the second is due, and the target begins in between."""
    kept = Kept()
    probe = Probe(carrier=kept)
    host = probe.service.host
    sender, _ = a_parent(probe, order)
    (first,) = kept.effects
    arrive = delivering.arrive

    def meanwhile() -> None:
        monkeypatch.setattr(delivering, "arrive", arrive)
        probe.advance(10)
        if stalls == "before it sends":
            Courier().carry_out(host, kept.effects[1:])
        probe.run("t", taskQueue={"name": "t"})
        if stalls == "before it begins":
            Courier().carry_out(host, kept.effects[1:])

    def stalled(*args: Any, **options: Any) -> Any:
        if stalls == "before it sends":
            meanwhile()
            return arrive(*args, **options)
        try:
            return arrive(*args, **options)
        finally:
            meanwhile()

    if stalls == "before it begins":
        meanwhile()
    else:
        monkeypatch.setattr(delivering, "arrive", stalled)
    Courier().carry_out(host, [first])
    Courier().carry_out(host, kept.effects[1:])
    told = outcome(probe, sender).event_type.name
    there = probe.types("t")[2:]
    if stalls == "before it sends":
        assert (told.rpartition("_")[2], there) == ("FAILED", [])
    else:
        assert told.startswith("EXTERNAL_WORKFLOW_EXECUTION")
        assert len(there) == 1
    assert pending(probe, sender) == []


@pytest.mark.parametrize("ends", ["by itself", "and another follows"])
def test_a_child_that_an_overtaken_attempt_asks_for_is_not_made_again(
    ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt stalls; the second makes the child, which ends meanwhile."""
    kept = Kept()
    probe = Probe(carrier=kept)
    host = probe.service.host
    parent, _ = a_parent(probe, start_child("c", taskQueue={"name": "c"}))
    (first,) = kept.effects
    make = delivering.starting.start_child

    def stalled(*args: Any) -> Any:
        monkeypatch.setattr(delivering.starting, "start_child", make)
        probe.advance(10)
        Courier().carry_out(host, kept.effects[1:])
        if ends == "and another follows":
            probe.answer(probe.poll("c"), continue_as_new(taskQueue={"name": "c"}))
            probe.advance(1)
        probe.answer(probe.poll("c"), complete())
        return make(*args)

    monkeypatch.setattr(delivering.starting, "start_child", stalled)
    Courier().carry_out(host, [first])
    Courier().carry_out(host, kept.effects[1:])
    runs = 2 if ends == "and another follows" else 1
    assert (
        len(probe.call("list_workflow_executions", {"query": "WorkflowId = 'c'"}).executions)
        == runs
    )
    assert probe.types("c")[-1] == "WORKFLOW_EXECUTION_COMPLETED"
    assert probe.types(parent).count(STARTED) == 1
    assert pending(probe, parent) == []


def test_a_child_is_not_made_by_an_attempt_whose_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its parent would hear of another one by the next attempt."""
    kept = Kept()
    probe = Probe(carrier=kept)
    host = probe.service.host
    parent, _ = a_parent(probe, start_child("c", taskQueue={"name": "c"}))
    (first,) = kept.effects
    make = delivering.starting.start_child

    def stalled(*args: Any) -> Any:
        monkeypatch.setattr(delivering.starting, "start_child", make)
        probe.advance(10)
        return make(*args)

    monkeypatch.setattr(delivering.starting, "start_child", stalled)
    Courier().carry_out(host, [first])
    assert probe.call("describe_workflow_execution", {"execution": {"workflowId": "c"}})[
        "code"
    ] == ("NOT_FOUND")
    Courier().carry_out(host, kept.effects[1:])
    assert probe.types(parent)[-2:] == [STARTED, SCHEDULED]


# ---- a process dies anywhere


class CrashError(BaseException):
    """The process is gone."""


def crash_at(probe: Probe, number: int, *, after: bool) -> Callable[[], bool]:
    """Let the courier's transaction of that number be its last, before or after its commit; gives
    whether it came to that.
    """
    store: MemoryStore = probe.store
    carries, crashed, count = [0], [False], [0]
    transaction, put = store.transaction, store.put_inbox
    carrier = probe.service.host.carrier
    carry_out = carrier.carry_out

    def watched(host: Host, effects: Sequence[CarryOut]) -> None:
        carries[0] += 1
        try:
            carry_out(host, effects)
        finally:
            carries[0] -= 1

    def point() -> bool:
        count[0] += bool(carries[0]) and not crashed[0]
        crashed[0] = crashed[0] or count[0] == number
        return bool(carries[0]) and count[0] == number

    class Watched:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __enter__(self) -> Any:
            self.dies = not crashed[0] and point()
            if self.dies and not after:
                raise CrashError
            return self.inner.__enter__()

        def __exit__(self, *error: object) -> None:
            self.inner.__exit__(*error)
            if self.dies and error[0] is None:
                raise CrashError

    def watched_put(*given: Any, **named: Any) -> Any:
        open_unit = store._tables.open_unit()
        dies = not crashed[0] and open_unit is None and point()
        if dies and not after:
            raise CrashError
        stored = put(*given, **named)
        if dies:
            raise CrashError
        return stored

    carrier.carry_out = watched  # type: ignore[method-assign]
    store.transaction = lambda *a, **k: Watched(transaction(*a, **k))  # type: ignore[method-assign,assignment,return-value]
    store.put_inbox = watched_put  # type: ignore[method-assign]
    return lambda: crashed[0]


class Work:
    """Workers of a small family: a parent with a child and an acquaintance."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.alive(probe.run, "friend", taskQueue={"name": "friend"}, workflowType={"name": "f"})
        self.alive(probe.run, "parent", taskQueue={"name": "parent"})

    def alive(self, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Call; a process that dies on it has a successor."""
        try:
            return call(*given, **named)
        except CrashError:
            return None

    def settle(self) -> None:
        for _ in range(30):
            worked = False
            for queue in ("friend", "parent", "child"):
                task = self.alive(self.probe.poll, queue)
                if task and task.task_token:
                    worked = True
                    self.alive(self.probe.answer, task, *self.decide(queue, task))
            if not worked:
                self.alive(self.probe.advance, 12)
                self.alive(self.probe.advance, 12)
            if self.probe.status("parent").name != "RUNNING" and not worked:
                break
        self.alive(self.probe.advance, 100)
        self.alive(self.probe.advance, 100)

    def decide(self, queue: str, task: Any) -> list[Json]:
        kinds = [event.event_type.name for event in task.history.events]
        if queue == "child":
            return [complete("done")] if "WORKFLOW_EXECUTION_SIGNALED" in kinds else []
        if queue == "friend":
            return []
        if "CHILD_WORKFLOW_EXECUTION_COMPLETED" in kinds:
            told = kinds.count("EXTERNAL_WORKFLOW_EXECUTION_SIGNALED") == 2
            told = told and "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED" in kinds
            return [complete()] if told else []
        if "START_CHILD_WORKFLOW_EXECUTION_INITIATED" not in kinds:
            return [
                start_child("child", taskQueue={"name": "child"}),
                start_child(
                    "left",
                    taskQueue={"name": "left"},
                    parentClosePolicy="PARENT_CLOSE_POLICY_REQUEST_CANCEL",
                ),
                signal_external("friend"),
                cancel_external("friend"),
            ]
        known = kinds.count(STARTED) == 2
        sent = kinds.count("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED") == 2
        return [signal_external("child")] if known and not sent else []


@both
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(1, 14))
def test_a_process_that_dies_loses_nothing_and_doubles_nothing(
    arrivals: Arrivals, number: int, after: bool
) -> None:
    probe = Probe(arrivals=arrivals, carrier=Courier())
    crashed = crash_at(probe, number, after=after)
    work = Work(probe)
    work.settle()
    parent, child = probe.types("parent"), probe.types("child")
    assert parent[-1] == "WORKFLOW_EXECUTION_COMPLETED"
    for kind, times in (
        ("START_CHILD_WORKFLOW_EXECUTION_INITIATED", 2),
        (STARTED, 2),
        ("CHILD_WORKFLOW_EXECUTION_COMPLETED", 1),
        ("EXTERNAL_WORKFLOW_EXECUTION_SIGNALED", 2),
        ("EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED", 1),
    ):
        assert parent.count(kind) == times, kind
    assert child.count("WORKFLOW_EXECUTION_SIGNALED") == 1
    friend = probe.types("friend")
    assert friend.count("WORKFLOW_EXECUTION_SIGNALED") == 1
    assert friend.count("WORKFLOW_EXECUTION_CANCEL_REQUESTED") == 1
    assert probe.types("left").count("WORKFLOW_EXECUTION_CANCEL_REQUESTED") == 1
    for name in ("parent", "child", "friend", "left"):
        assert pending(probe, name) == []
        state = probe.store.read_state("default", name)
        assert state is not None
        assert state.recorded.continued_execution_run_id == ""
    assert crashed()


def test_nothing_is_done_within_the_transaction_of_another_id() -> None:
    probe = Probe()
    held: list[str] = []
    transaction = probe.store.transaction

    def watched(namespace: str, workflow_id: str, *, wait: timedelta | None = None) -> Any:
        unit = probe.store._tables.open_unit()
        locks = unit.locks if unit is not None else []
        held.extend(str(name) for name in locks)
        return transaction(namespace, workflow_id, wait=wait)

    probe.store.transaction = watched  # type: ignore[method-assign]
    parent, _ = a_parent(probe, start_child("c", taskQueue={"name": "c"}), signal_external("c"))
    probe.terminate(parent)
    assert probe.types("c")[-1] == TERMINATED
    assert held == []
