"""What must hold when a world has come to its end: what was promised was done, once; what was
refused was not; and nothing is left behind.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from wfcore.history.machines.activity_operations import PAUSE_INFO
from wfcore.history.rebuild import rebuild
from wfcore.protocol import events as ev
from wfcore.protocol.common import WorkflowExecution
from wfcore.protocol.events import HistoryEvent
from wfcore.protocol.payloads import Memo, Payload, Payloads, SearchAttributes
from wfcore.replay.instance import replay_history
from wfcore.service.infos import REPORTED_PROBLEMS
from wfcore.testing.memory_ports import read_snapshot
from wfcore.testing.memory_rows import Run
from wfcore.testing.simulation.errands import Errand
from wfcore.testing.simulation.families import Families
from wfcore.testing.simulation.ledger import ActivityAnswer, Outcome, SignalWish, Wish
from wfcore.testing.simulation.update_verdict import updates_kept
from wfcore.testing.simulation.world import ERRAND, World
from wfcore.workflow import WorkflowDefinition

#: A check of a run's history that is no part of this package: what is wrong with it.
HistoryCheck = Callable[[Sequence[HistoryEvent]], list[str]]

#: Errors of a ticker that faults explain.
_EXPECTED = ("ConnectionLostError",)


class Verdict:
    """All histories of a world, held against its ledger."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._report = world.watch.report
        self._runs = world.runs()
        #: events by what was asked for, as tags
        self._signals: dict[str, list[Run]] = defaultdict(list)
        self._starts: dict[str, list[Run]] = defaultdict(list)
        self._stops: Counter[str] = Counter()
        self._completed: dict[str, list[tuple[Run, HistoryEvent]]] = defaultdict(list)
        self._task_failures: Counter[str] = Counter()
        self._ends: dict[str, list[HistoryEvent]] = defaultdict(list)
        for run in self._runs:
            self._starts[run.current.create_request_id].append(run)
            for event in run.events:
                self._index(run, event)

    def _index(self, run: Run, event: HistoryEvent) -> None:
        match event.attributes:
            case ev.WorkflowExecutionSignaled(identity=tag):
                self._signals[tag].append(run)
            case ev.WorkflowExecutionTerminated(reason=tag):
                self._stops[tag] += 1
            case ev.WorkflowTaskCompleted(binary_checksum=tag):
                self._completed[tag].append((run, event))
            case ev.WorkflowTaskFailed(binary_checksum=tag):
                self._task_failures[tag] += 1
            case ev.ActivityTaskCompleted(result=given) | ev.ActivityTaskCanceled(details=given):
                self._ends[_tag_in(given)].append(event)
            case ev.ActivityTaskFailed(failure=failure) if failure is not None:
                self._ends[failure.message].append(event)

    def give(self, checks: Sequence[HistoryCheck] = ()) -> None:
        """Report all that is wrong."""
        self._nothing_left()
        for run in self._runs:
            self._history(run, checks)
            self._journal(run)
        self._current()
        self._starts_kept()
        self._signals_kept()
        self._order_kept()
        for tag, wish in self._world.ledger.stops.items():
            self._kept("a termination is recorded once", wish, self._stops[tag])
        self._answers_kept()
        Families(self._runs, self._report).give()
        updates_kept(self._world)

    # ---- what is stored

    def _nothing_left(self) -> None:
        tables = self._world.store.tables
        left = {
            "locks": tables.is_locked,
            "due runs": tables.due_runs.first(),
            "due activities": tables.due_activities.first(),
            "arrivals": tables.with_inbox,
            "waiting tasks": [q for q in tables.waiting_tasks.values() if q.first()],
            "waiting activities": [q for q in tables.waiting_activities.values() if q.first()],
            "claims": [owner for owner, names in tables.claims.items() if names],
        }
        names = [name for name, what in left.items() if what]
        if names:
            self._report.fail("nothing is left", ", ".join(names))
        for text in tables.deadlocks:
            self._report.fail("locks are taken in one order", text)

    def _current(self) -> None:
        """The run that a workflow id means is the one that was made last."""
        last = {run.key.workflow_id: run.key for run in self._runs}
        for workflow_id, key in last.items():
            head = self._world.store.head(key.namespace, workflow_id)
            if head is None or head.key != key:
                self._report.of(key)("the current run is the last one", f"it is {head}")

    def _history(self, run: Run, checks: Sequence[HistoryCheck]) -> None:
        fail = self._report.of(run.key)
        key = run.key
        state = read_snapshot(run)
        again = rebuild(
            run.events, namespace=key.namespace, workflow_id=key.workflow_id, run_id=key.run_id
        )
        if again != state.recorded:
            fail("the state follows from the events", "a rebuild gives another one")
        attached = Counter(
            event.attributes.attached_request_id
            for event in run.events
            if isinstance(event.attributes, ev.WorkflowExecutionOptionsUpdated)
        )
        twice = [name for name, count in attached.items() if name and count > 1]
        if twice:
            fail("no request id twice", f"attached {twice}")
        for check in checks:
            for text in check(run.events):
                fail("a history is well formed", text)
        told = {name: _fields(getattr(run, name)) for name in ("memo", "search_attributes")}
        for engines_own in (REPORTED_PROBLEMS, PAUSE_INFO):
            told["search_attributes"].pop(engines_own, None)
        if told != _upserted(run):
            fail("notes are what was noted", f"{told} instead of {_upserted(run)}")
        if state.recorded.workflow_type == ERRAND:
            self._replays(run)

    def _replays(self, run: Run) -> None:
        error = replay_history(
            WorkflowDefinition.must_from_class(Errand),
            run.events,
            namespace=run.key.namespace,
            workflow_execution=WorkflowExecution(
                workflow_id=run.key.workflow_id, run_id=run.key.run_id
            ),
        )
        if error is not None:
            self._report.of(run.key)("a history replays", repr(error))

    def _journal(self, run: Run) -> None:
        for entry in run.journal:
            if entry.kind == "sweep_failed" and not entry.text.startswith(_EXPECTED):
                self._report.of(run.key)("a sweep fails for faults only", entry.text)

    # ---- what was promised

    def _kept(self, rule: str, wish: Wish, count: int) -> None:
        """Done once if anybody was told so; not at all if all were refused."""
        refused = wish.count(Outcome.REFUSED) == len(wish.tries)
        if count > 1 or (wish.is_granted and count != 1) or (refused and count):
            self._report.fail(rule, f"{wish.tag} was done {count} times; {_told(wish)}")

    def _starts_kept(self) -> None:
        for tag, wish in self._world.ledger.starts.items():
            made = self._starts.get(tag, [])
            if wish.count(Outcome.REFUSED) == len(wish.tries) and made:
                self._report.fail("a refused start makes no run", f"{tag}: {made[0].key.run_id}")
            for attempt in wish.tries:
                if attempt.outcome is not Outcome.ACKNOWLEDGED:
                    continue
                found = [run for run in self._runs if run.key.run_id == attempt.run_id]
                asked_for = found and found[0].current.create_request_id == tag
                if not found or (attempt.started and not asked_for):
                    self._report.fail(
                        "an acknowledged start exists", f"{tag} was told {attempt.run_id}"
                    )

    def _signals_kept(self) -> None:
        for tag, wish in self._world.ledger.signals.items():
            runs = self._signals.get(tag, [])
            where = [run.key.workflow_id for run in runs]
            if any(name != wish.workflow_id for name in where):
                self._report.fail("a signal goes where it was sent", f"{tag}: {where}")
            if self._was_dropped(wish, len(runs)):
                continue
            if wish.request_id and not wish.run_id and len(wish.tries) > 1:
                # another chain may have begun in between: once in each
                chains = Counter(run.current.first_execution_run_id for run in runs)
                self._kept_in_chain(wish, len(runs), max(chains.values(), default=0))
            elif wish.request_id or len(wish.tries) == 1:
                self._kept("a signal is recorded once", wish, len(runs))
            else:
                self._kept_without_id(wish, len(runs))

    def _kept_in_chain(self, wish: SignalWish, count: int, most: int) -> None:
        refused = wish.count(Outcome.REFUSED) == len(wish.tries)
        if most > 1 or (refused and count) or (wish.is_granted and not count):
            text = f"{wish.tag} was done {count} times; {_told(wish)}"
            self._report.fail("a signal is recorded once", text)

    def _kept_without_id(self, wish: SignalWish, count: int) -> None:
        least = wish.count(Outcome.ACKNOWLEDGED)
        if not least <= count <= least + wish.count(Outcome.UNKNOWN):
            self._report.fail("a signal is recorded as sent", f"{wish.tag} {count} times")

    def _was_dropped(self, wish: SignalWish, count: int) -> bool:
        """Whether it was sent in a transaction that committed when the run was closed."""
        if count or not any(each.may_be_dropped for each in wish.tries):
            return False
        return any(
            entry.kind == "late_arrival"
            for run in self._runs
            if run.key.workflow_id == wish.workflow_id
            for entry in run.journal
        )

    def _order_kept(self) -> None:
        """Signals that a sender sent one after another, each of them once."""
        numbers = {tag: number for number, tag in enumerate(self._world.ledger.signals)}
        for run in self._runs:
            last: dict[str, str] = {}
            for event in run.events:
                if not isinstance(event.attributes, ev.WorkflowExecutionSignaled):
                    continue
                tag = event.attributes.identity
                wish = self._world.ledger.signals.get(tag)
                if wish is None or len(wish.tries) != 1:
                    continue
                before = last.get(wish.tries[0].by)
                if before is not None and numbers[before] > numbers[tag]:
                    self._report.of(run.key)(
                        "signals of one sender keep their order", f"{tag} behind {before}"
                    )
                last[wish.tries[0].by] = tag

    def _answers_kept(self) -> None:
        for tag, wish in self._world.ledger.task_answers.items():
            completed = self._completed.get(tag, [])
            if wish.is_failure:
                if completed or self._task_failures[tag] > 1:
                    self._report.fail("a task fails once", tag)
                continue
            if not (wish.may_vanish and not completed):
                self._kept("an answer is recorded once", wish, len(completed))
            for run, event in completed:
                if wish.commands != _commands_of(run, event.event_id):
                    self._report.of(run.key)("each command is an event", f"answer {tag}")
        for tag, answer in self._world.ledger.activity_answers.items():
            ends = self._ends.get(tag, [])
            if answer.kind == "fail an activity":
                refused = answer.count(Outcome.REFUSED) == len(answer.tries)
                if len(ends) > 1 or (refused and ends):
                    self._report.fail("an attempt ends once", f"{tag} {len(ends)} times")
            else:
                self._kept("an attempt ends once", answer, len(ends))
            self._late(answer)

    def _late(self, answer: ActivityAnswer) -> None:
        """A result that nobody waits for is told to operators."""
        token = answer.token
        if any(each.why.startswith("NotFoundError") for each in answer.tries) and not any(
            entry.kind == "late_result"
            and (entry.scheduled_event_id, entry.attempt)
            == (token.scheduled_event_id, token.attempt)
            for run in self._runs
            if run.key.run_id == token.run_id
            for entry in run.journal
        ):
            self._report.fail("a late result is journalled", answer.tag)


def _fields(notes: Memo | SearchAttributes | None) -> dict[str, Payload]:
    if notes is None:
        return {}
    return dict(notes.fields if isinstance(notes, Memo) else notes.indexed_fields)


def _upserted(run: Run) -> dict[str, dict[str, Payload]]:
    """Memo and search attributes as the events make them."""
    memo: dict[str, Payload] = {}
    search: dict[str, Payload] = {}
    for event in run.events:
        match event.attributes:
            case ev.WorkflowExecutionStarted() as started:
                memo |= _fields(started.memo)
                search |= _fields(started.search_attributes)
            case ev.WorkflowPropertiesModified(upserted_memo=given):
                memo |= _fields(given)
            case ev.UpsertWorkflowSearchAttributes(search_attributes=given):
                search |= _fields(given)
    return {
        "memo": {key: value for key, value in memo.items() if value.data != b"null"},
        "search_attributes": search,
    }


def _told(wish: Wish) -> str:
    """What the callers have heard."""
    return ", ".join(f"{each.by}: {each.outcome} {each.why}".rstrip() for each in wish.tries)


def _commands_of(run: Run, completed_event_id: int) -> int:
    return sum(
        getattr(event.attributes, "workflow_task_completed_event_id", 0) == completed_event_id
        for event in run.events[completed_event_id:]
    )


def _tag_in(given: Payloads | None) -> str:
    if given is None or not given.payloads:
        return ""
    return given.payloads[0].data.decode().strip('"')
